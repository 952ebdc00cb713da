//! Consistency of the reference, the schema and the table of keys.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::fixture_tests::Bed;
use super::reference::example;
use super::{explain, keys, reference_markdown, schema};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

fn check_document(name: &str, text: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(docs(name), text).unwrap();
    }
    let stored = std::fs::read_to_string(docs(name)).unwrap_or_default();
    assert_eq!(
        stored, text,
        "docs/{name} is out of date: run the tests once with UPDATE_DOCS=1"
    );
}

fn accepts(text: &str) -> bool {
    let file: Json = toml_edit::de::from_str(text).unwrap();
    jsonschema::validator_for(&schema()).unwrap().is_valid(&file)
}

/// CFG-1
#[test]
fn the_documents_are_up_to_date() {
    check_document("config.md", &reference_markdown());
    let schema = serde_json::to_string_pretty(&schema()).unwrap();
    check_document("config.schema.json", &format!("{schema}\n"));
}

/// CFG-1
#[test]
fn the_schema_agrees_with_loading() {
    assert!(jsonschema::meta::is_valid(&schema()));
    let mut cases = vec![
        ("model = 5".to_owned(), false),
        ("modle = \"x\"".to_owned(), false),
        ("agent.max_iterations = 0".to_owned(), false),
        ("agent.max_iterations = 1".to_owned(), true),
        ("agent.reasoning = \"much\"".to_owned(), false),
        ("retry.max_retries = 21".to_owned(), false),
        ("context.hard_threshold = 0.05".to_owned(), false),
        ("tools.timeout_secs = 0.5".to_owned(), true),
        ("providers.x.api_key = \"x\"".to_owned(), false),
        ("providers.x.key_env = \"sk-1\"".to_owned(), false),
        ("providers.x.key_command = []".to_owned(), false),
        ("providers.x.key_command = \"a\"".to_owned(), true),
        ("providers.x.headers.a = 1".to_owned(), false),
        ("models.x.price.input = -1".to_owned(), false),
        ("models.x.price.zebra = 1".to_owned(), false),
        (example(), true),
    ];
    for key in keys::all().filter(|key| !key.is_pattern()) {
        cases.push((format!("{} = {}", key.name, key.example), true));
    }
    for (text, valid) in cases {
        assert_eq!(accepts(&text), valid, "the schema and {text}");
        assert_eq!(Bed::new().user(&text).load().is_ok(), valid, "loading and {text}");
    }
}

/// CFG-3
#[test]
fn every_key_describes_itself() {
    for key in keys::all() {
        let explained = explain(key.name).unwrap();
        assert!(
            key.help.ends_with('.') && key.effect.ends_with('.'),
            "{} is no sentence",
            key.name
        );
        let parts = [
            key.name,
            key.help,
            key.effect,
            "- type: ",
            "- default: ",
            "- example: ",
            "- a project may",
        ];
        for part in parts {
            assert!(explained.contains(part), "{} lacks {part:?}", key.name);
        }
        assert!(reference_markdown().contains(&format!("### `{}`", key.name)));
    }
}

/// CFG-3
#[test]
fn keys_are_explained_by_any_of_their_names() {
    let expected = "agent.max_iterations\n\n\
        Maximum number of model requests in one turn.\n\
        A turn that reaches it ends according to `agent.on_max_iterations`.\n\n\
        - type: an integer, at least 1\n\
        - default: `200`\n\
        - environment: `WINDLASS_AGENT_MAX_ITERATIONS`\n\
        - example: `agent.max_iterations = 50`\n\
        - a project may set it\n";
    assert_eq!(explain("agent.max_iterations").unwrap(), expected);
    assert_eq!(explain("WINDLASS_AGENT_MAX_ITERATIONS").unwrap(), expected);
    assert!(
        explain("providers.mine.base_url")
            .unwrap()
            .starts_with("providers.<name>.base_url\n")
    );
    assert!(
        explain("agent")
            .unwrap()
            .contains("- agent.reasoning: How much the model")
    );
    assert_eq!(
        explain("models.x.price").unwrap(),
        "models.x.price: its keys are input, output, cache_read, cache_write\n"
    );
}
