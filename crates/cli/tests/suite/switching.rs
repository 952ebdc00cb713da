//! Providers that are switched, remembered or missing.

use serde_json::Value;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, Workspace, settings_name};

use super::support::{script, workspace};

/// Two providers: `first` on Anthropic's wire, `Other` on another one. Each has its own model and its own
/// server.
struct Two {
    first: SimServer,
    other: SimServer,
    workspace: Workspace,
}

fn two(wire: Protocol, more: &str) -> Two {
    let reply = |text: &str| {
        Reply::text(text)
            .thinking(&format!("secret thought of {text}"))
            .forever()
    };
    let two = Two {
        first: SimServer::script(script([reply("one")])),
        other: SimServer::script(script([reply("two")])),
        workspace: workspace(),
    };
    two.workspace.config(&format!(
        "provider = \"first\"\n\n[agent]\nreasoning = \"low\"\n\n[retry]\nmax_delay_secs = 0\n\n\
         [models.sim-1]\nreasoning = true\n\n[models.sim-2]\ncontext_window = 100000\nreasoning = true\n\n\
         [providers.first]\nwire = \"anthropic-messages\"\nbase_url = \"{}\"\nmodel = \"sim-1\"\n\n\
         [providers.Other]\nwire = \"{}\"\nbase_url = \"{}\"\nmodel = \"sim-2\"\n{more}",
        two.first.url(),
        settings_name(wire),
        two.other.url()
    ));
    two
}

impl Two {
    fn run(&self, args: &[&str]) -> Output {
        self.workspace.run(args).output()
    }

    #[track_caller]
    fn answers(&self, args: &[&str], answer: &str) {
        let output = self.run(args);
        assert_eq!(output.assert_code(0).stdout, format!("{answer}\n"), "{output}");
    }
}

/// PROV-7: a session switches from one provider to another and back; every request is valid, contains no
/// reasoning of the other provider (which stays in the log), and returns a provider's own reasoning to it.
#[test]
fn a_session_changes_its_provider() {
    for wire in [Protocol::Chat, Protocol::Responses] {
        let two = two(wire, "");
        two.answers(&["exec", "begin"], "one");
        let switched = two.run(&["exec", "--continue", "/provider OTHER"]);
        assert_eq!(
            switched.assert_code(0).stdout,
            "Switched to provider: Other (model: sim-2)\n"
        );
        two.answers(&["exec", "--continue", "go on"], "two");
        two.answers(
            &["exec", "--continue", "/provider other"],
            "Provider 'Other' is already active.",
        );
        two.answers(
            &["exec", "--continue", "/provider first"],
            "Switched to provider: first (model: sim-1)",
        );
        two.answers(&["exec", "--continue", "and back"], "one");
        two.first.assert_valid();
        two.other.assert_valid();
        let bodies = |sim: &SimServer| -> Vec<String> {
            sim.requests()
                .iter()
                .map(|request| request.body.to_string())
                .collect()
        };
        let (first, other) = (bodies(&two.first), bodies(&two.other));
        assert_eq!((first.len(), other.len()), (2, 1));
        assert!(
            other[0].contains("go on") && !other[0].contains("secret thought"),
            "{}",
            other[0]
        );
        assert!(
            first[1].contains("and back") && !first[1].contains("secret thought of two"),
            "{}",
            first[1]
        );
        assert!(first[1].contains("secret thought of one"), "{}", first[1]);
        let record = two.run(&["exec", "--continue", "/session export json"]);
        for thought in ["secret thought of one", "secret thought of two"] {
            assert!(record.assert_code(0).stdout.contains(thought), "{thought}");
        }
    }
}

/// PROV-7: `/provider` lists the configured providers and those with a key; an unknown or unusable one is
/// reported and changes nothing.
#[test]
fn providers_are_listed() {
    let two = two(
        Protocol::Chat,
        "\n[providers.locked]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"x\"\nkey_env = \"NO_SUCH_KEY\"\n",
    );
    let run = two
        .workspace
        .run(&["exec", "/provider"])
        .env("GROQ_API_KEY", "gk");
    let listed = run.output();
    for line in [
        "Configured providers:",
        ". first [anthropic-messages] model=sim-1 (active)",
        ". Other [openai-chat] model=sim-2",
        ". groq [openai-chat] model=",
    ] {
        assert!(listed.assert_code(0).stdout.contains(line), "{line}: {listed}");
    }
    assert!(!listed.stdout.contains("gk"), "{listed}");
    let unknown = two.run(&["exec", "/provider nix"]);
    unknown
        .assert_code(1)
        .assert_says("Unknown provider 'nix'. Available: Other, first, locked");
    let locked = two.run(&["exec", "/provider locked"]);
    locked
        .assert_code(1)
        .assert_says("Failed to switch to 'locked': ");
    two.answers(&["exec", "begin"], "one");
    two.answers(&["exec", "/model other/sim-9"], "Switched to model: sim-9 (provider: Other)\nthe model `sim-9` is not in the registry: assuming a window of 128000 tokens and no known price (set `models.\"sim-9\".context_window` and `.price` to change that)\ndid you mean `sim-1`?");
}

/// PROV-8: the last choice in a folder is restored there, unless a flag, a variable or a later change of the
/// settings overrides it; only `/provider` and `/model` are remembered.
#[test]
fn a_choice_is_remembered() {
    let two = two(Protocol::Chat, "");
    two.answers(&["exec", "--provider", "Other", "hi"], "two");
    two.answers(&["exec", "hi"], "one");
    two.run(&["exec", "/provider other"]).assert_code(0);
    two.answers(&["exec", "hi"], "two");
    two.answers(&["exec", "--provider", "first", "hi"], "one");
    let by_variable = two
        .workspace
        .run(&["exec", "hi"])
        .env("WINDLASS_PROVIDER", "first");
    assert_eq!(by_variable.output().assert_code(0).stdout, "one\n");
    two.answers(&["exec", "-c", "session.provider_persistence=false", "hi"], "one");
    two.answers(&["exec", "--ephemeral", "hi"], "one");
    std::fs::create_dir(two.workspace.path().join("sub")).unwrap();
    // All local front ends share one choice, in any folder.
    two.answers(&["exec", "-C", "sub", "hi"], "two");
    two.run(&["exec", "/model sim-3"]).assert_code(0);
    two.answers(&["exec", "/model"], "sim-3 (provider: Other)");
    // A settings file changed later takes precedence.
    let config = std::fs::read_to_string(two.workspace.config_file()).unwrap();
    let changed = config.replace("provider = \"first\"", "provider = \"first\"\nmodel = \"sim-1\"");
    two.workspace.config(&changed);
    two.answers(&["exec", "hi"], "one");
}

/// PROV-8: if the provider or its key no longer exists, the settings apply silently.
#[test]
fn a_choice_that_is_gone_is_forgotten() {
    let two = two(Protocol::Chat, "");
    two.run(&["exec", "/provider other"]).assert_code(0);
    two.answers(&["exec", "hi"], "two");
    let config = std::fs::read_to_string(two.workspace.config_file()).unwrap();
    two.workspace
        .config(&config.replace("[providers.Other]", "[providers.Renamed]"));
    let gone = two.run(&["exec", "hi"]);
    assert_eq!(gone.assert_code(0).stdout, "one\n");
    assert!(!gone.stderr.contains("Other"), "{gone}");
    let locked = "[providers.Other]\nkey_env = \"NO_SUCH_KEY\"";
    two.workspace.config(&config.replace("[providers.Other]", locked));
    two.answers(&["exec", "hi"], "one");
}

/// PROV-9: a turn that could not reach the provider fails, and so does the next one during the pause, with
/// the same reason: correcting an answer is not even tried.
#[test]
fn nobody_there_is_reported() {
    let workspace = workspace();
    workspace.config(
        "provider = \"gone\"\n\n[retry]\nmax_retries = 0\n\n[providers.gone]\nwire = \"openai-chat\"\n\
         base_url = \"http://127.0.0.1:1\"\nmodel = \"x\"\n",
    );
    let output = workspace.run(&["exec", "hi"]).output();
    output
        .assert_code(8)
        .assert_says("cannot connect to http://127.0.0.1:1");
}

/// SES-6: titles come from the model in the settings, and are counted as such.
#[test]
fn a_title_model_makes_titles() {
    let two = two(Protocol::Chat, "\n[session]\ntitle_model = \"Other/sim-2\"\n");
    let output = two.run(&["exec", "-o", "json", "a long question about zebras"]);
    let session = output.assert_code(0).json()["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = two.run(&["sessions", "show", &session, "--json"]).json();
    assert_eq!(shown["session"]["label"]["title"], "two");
    let cost = two
        .run(&["sessions", "cost", &session, "--by", "cause", "--json"])
        .json();
    let causes: Vec<&Value> = cost["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["of"])
        .collect();
    assert!(
        causes.contains(&&Value::from(format!("title-{session}"))),
        "{cost}"
    );
    assert_eq!((two.first.count(), two.other.count()), (1, 1));
}
