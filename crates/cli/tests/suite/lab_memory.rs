//! `windlass lab memory`: sessions with memory and without, without a model.

use serde_json::Value;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{repository_file, with_replies, workspace};

fn lab(workspace: &Workspace, args: &[&str]) -> Output {
    let all: Vec<&str> = ["lab", "memory"].iter().chain(args).copied().collect();
    workspace.run(&all).output()
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} in {row}"))
}

/// CTX-14, MEM-1: recall makes facts of earlier sessions known that are not without it, for few tokens; the documents show
/// the result. `UPDATE_DOCS=1` rewrites them.
#[test]
fn planted_facts_are_known_with_memory() {
    let workspace = workspace();
    let json = lab(&workspace, &["--synthetic", "--json"]).assert_code(0).json();
    let (without, with) = (&json["without"], &json["with"]);
    assert_eq!(number(without, "facts"), 10, "{json}");
    assert_eq!(number(without, "known"), 0, "{json}");
    assert!(number(with, "known") >= 9, "{json}");
    assert_eq!(number(without, "recalled_turns"), 0, "{json}");
    let (less, more) = (number(without, "input_tokens"), number(with, "input_tokens"));
    assert!(less < more && more < less + less / 5, "{json}");
    assert!(with["cost_usd"].as_f64() > without["cost_usd"].as_f64(), "{json}");
    let table = lab(&workspace, &["--synthetic"]).assert_code(0).stdout.clone();
    let text = repository_file("docs/memory.md");
    let (begin, end) = ("<!-- lab: memory -->\n", "<!-- lab: end -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let new = format!("{head}{begin}```\n{table}```\n{end}{tail}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/memory.md");
        std::fs::write(file, new).unwrap();
        return;
    }
    assert_eq!(
        text, new,
        "docs/memory.md is out of date: run the tests once with UPDATE_DOCS=1"
    );
}

/// CTX-14: recorded sessions are run again in their order, without a model and without a trace in the user's own memory.
#[test]
fn recorded_sessions_are_run_again() {
    let replies = ["Understood.", "Sunny.", "It is db-stage-4711.internal."];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies.map(Reply::text));
    for prompt in [
        "The staging database is db-stage-4711.internal.",
        "How is the weather?",
        "Which database do we use for staging?",
    ] {
        workspace.run(&["exec", prompt]).output().assert_code(0);
    }
    let asked = sim.requests().len();
    let shown = lab(&workspace, &["--all", "--json"]);
    let json = shown.assert_code(0).json();
    assert_eq!(
        (json["turns"].as_u64(), &json["search"]),
        (Some(3), &"by words".into()),
        "{json}"
    );
    assert_eq!(json["sessions"].as_array().unwrap().len(), 3, "{json}");
    assert_eq!(
        (
            number(&json["without"], "facts"),
            number(&json["without"], "known")
        ),
        (1, 0),
        "{json}"
    );
    assert_eq!(
        (number(&json["with"], "facts"), number(&json["with"], "known")),
        (1, 1),
        "{json}"
    );
    assert_eq!(sim.requests().len(), asked, "no model is asked");
    let stats = workspace.run(&["memory", "stats", "--json"]).output().json();
    assert_eq!(stats["units"], serde_json::json!([]), "{stats}");
    lab(&workspace, &[]).assert_code(2).assert_says("--synthetic");
    lab(&workspace, &["nothing"])
        .assert_code(2)
        .assert_says("there is no session nothing");
}
