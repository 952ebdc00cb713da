//! The other commands: settings, doctor, demo, the simulated model, help.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Run, Workspace};

use super::support::{repository_file, with_replies, workspace};

/// CFG-1: every layer overrides the one before, and `config show --origin` names it.
#[test]
fn settings_say_where_they_come_from() {
    let workspace = workspace();
    workspace.config("[agent]\nmax_iterations = 11\nmax_incomplete_prompts = 1\nreasoning = \"low\"\n");
    workspace.write(
        ".windlass/config.toml",
        "[agent]\nmax_iterations = 22\n\n[tools]\nexecution = \"sequential\"\n",
    );
    workspace.run(&["trust", "--yes"]).output().assert_code(0);
    let show = |args: &[&str]| {
        workspace
            .run(&["config", "show", "--origin"])
            .args(args)
            .env("WINDLASS_TOOLS_EXECUTION", "parallel")
            .output()
    };
    let output = show(&["-c", "agent.max_incomplete_prompts=7"]);
    output.assert_code(0);
    let line = |key: &str| {
        output
            .stdout
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_default()
            .to_owned()
    };
    let user = workspace.config_file().display().to_string();
    for (key, value, origin) in [
        ("agent.max_iterations", "= 22", ".windlass/config.toml:2"),
        ("agent.max_incomplete_prompts", "= 7", "-c"),
        ("agent.reasoning", "= \"low\"", user.as_str()),
        ("tools.execution", "= \"parallel\"", "WINDLASS_TOOLS_EXECUTION"),
        ("retry.max_retries", "= 8", "default"),
    ] {
        let line = line(key);
        assert!(
            line.contains(value) && line.contains(origin),
            "{key}: {line}\n{output}"
        );
    }
    let plain = workspace.run(&["config", "show"]).output();
    assert!(!plain.assert_code(0).stdout.contains("# default"), "{plain}");
}

/// CFG-1, SAFE-6: a project cannot choose where keys are sent, trusted or not; settings it may not set are
/// ignored with a warning.
#[test]
fn a_project_cannot_redirect() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine"), Reply::text("fine")]);
    workspace.write(
        ".windlass/config.toml",
        "provider = \"evil\"\n[providers.evil]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"x\"\n",
    );
    let exec = || workspace.run(&["exec", "hi"]).output();
    exec().assert_code(0).assert_says("not trusted");
    assert_eq!(sim.count(), 1);
    workspace.run(&["trust", "--yes"]).output().assert_code(0);
    exec()
        .assert_code(0)
        .assert_says("warning:")
        .assert_says("provider: ignored: a project may not set it");
    assert_eq!(sim.count(), 2);
}

/// CFG-1: the published schema is valid, equals the one the program prints, and accepts the documented
/// example.
#[test]
fn the_schema_accepts_the_documented_example() {
    let output = workspace().run_in_itself(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        schema,
        serde_json::from_str::<Value>(&repository_file("docs/config.schema.json")).unwrap()
    );
    let validator = jsonschema::validator_for(&schema).unwrap();
    let page = repository_file("docs/config.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let document: toml_edit::DocumentMut = example.parse().unwrap();
    let value: Value = toml_edit::de::from_document(document).unwrap();
    let complaints: Vec<_> = validator
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(!validator.is_valid(&serde_json::json!({"agent": {"max_iteration": 5}})));
    let workspace = workspace();
    workspace.config(example);
    workspace.run(&["config", "show"]).output().assert_code(0);
    assert_eq!(workspace.run_in_itself(&["config", "reference"]), page);
}

trait RunInItself {
    fn run_in_itself(&self, args: &[&str]) -> String;
}

impl RunInItself for Workspace {
    /// Returns the output of a command that must succeed.
    fn run_in_itself(&self, args: &[&str]) -> String {
        self.run(args).output().assert_code(0).stdout.clone()
    }
}

/// CFG-3: `config explain` shows the meaning, default and effect of every key.
#[test]
fn every_key_is_explained() {
    let workspace = workspace();
    let shown = workspace.run_in_itself(&["config", "show"]);
    let keys = shown
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split([' ', '=']).next());
    let keys: Vec<_> = keys.filter(|key| !key.is_empty()).collect();
    assert!(keys.len() > 15, "{shown}");
    for key in keys {
        let text = workspace.run_in_itself(&["config", "explain", key]);
        assert!(text.starts_with(key) && text.contains("default"), "{text}");
    }
    let text = workspace.run_in_itself(&["config", "explain", "providers.mine.base_url"]);
    assert!(text.contains("Address of the server"), "{text}");
}

/// EXT-6: `WINDLASS_HOME` moves every folder; without it, XDG determines them.
#[test]
fn folders_follow_the_environment() {
    let workspace = workspace();
    let home = workspace.user_home().display().to_string();
    let text = workspace.run_in_itself(&["doctor", "--offline", "--provider", "sim"]);
    let own = workspace.home().display().to_string();
    for folder in ["config/config.toml", "data", "state", "cache"] {
        assert!(text.contains(&format!("{own}/{folder}")), "{text}");
    }
    assert!(!text.contains(&home), "{text}");
    let plain = |run: Run| {
        run.without("WINDLASS_HOME")
            .output()
            .assert_code(0)
            .stdout
            .clone()
    };
    let path = plain(workspace.run(&["config", "path"]));
    assert_eq!(path, format!("{home}/.config/windlass/config.toml\n"));
    let path = plain(
        workspace
            .run(&["config", "path"])
            .env("XDG_CONFIG_HOME", "/elsewhere"),
    );
    assert_eq!(path, "/elsewhere/windlass/config.toml\n");
    workspace
        .run(&["config", "path"])
        .env("WINDLASS_HOME", "relative")
        .output()
        .assert_code(3)
        .assert_says("absolute");
}

/// EXT-6: completions for the usual shells, and a manual page for each command.
#[test]
fn completions_and_manual() {
    let workspace = workspace();
    for (shell, sign) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef windlass"),
        ("fish", "complete -c windlass"),
    ] {
        let script = workspace.run_in_itself(&["completions", shell]);
        assert!(
            script.contains(sign) && script.contains("output-format"),
            "{shell}: {script}"
        );
    }
    let page = workspace.run_in_itself(&["man"]);
    assert!(
        page.starts_with(".ie") && page.contains(".TH windlass 1"),
        "{page}"
    );
    let page = workspace.run_in_itself(&["man", "exec"]);
    assert!(page.contains("output\\-schema"), "{page}");
    assert!(
        page.contains("\\fBwindlass exec\\fR"),
        "the synopsis has the whole command: {page}"
    );
    workspace.run(&["man", "frobnicate"]).output().assert_code(2);
}

/// UI-3, EXT-6: the help lists every option and exit code.
#[test]
fn help_tells_what_there_is() {
    let workspace = workspace();
    let exec = "--output-format --cd --provider --model --max-iterations --max-turns --max-cost --require-done \
                --output-schema --quiet stream-json standard input Exit codes 130";
    let cases: [(&[&str], &str); 9] = [
        (
            &["--help"],
            "exec demo config doctor sim completions man -p --plain --full-screen --continue --resume windlass demo --provider sim ANTHROPIC_API_KEY",
        ),
        (&["exec", "--help"], exec),
        (&["demo", "--help"], "--keep --wire responses"),
        (&["config", "--help"], "show schema explain path"),
        (&["config", "show", "--help"], "--origin"),
        (&["doctor", "--help"], "--offline"),
        (&["sim", "serve", "--help"], "--script --port --api-key"),
        (&["completions", "--help"], "bash zsh fish"),
        (&["trust", "--help"], "--yes --list --revoke .windlass Exit codes"),
    ];
    for (args, words) in cases {
        let text = workspace.run_in_itself(args);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            assert!(flat.contains(word), "{args:?} does not say `{word}`:\n{text}");
        }
    }
    for code in 0..=9 {
        assert!(
            workspace
                .run_in_itself(&["exec", "--help"])
                .contains(&format!("\n  {code}    ")),
            "{code}"
        );
    }
    assert!(workspace.run_in_itself(&["--version"]).starts_with("windlass "));
}

/// EXT-6, PROV-5: the doctor reports whether a prompt could run now, also by its exit code.
#[test]
fn the_doctor_looks() {
    let empty = workspace();
    let output = empty.run(&["doctor"]).output();
    assert!(
        output.assert_code(8).stdout.contains("--provider sim"),
        "{output}"
    );
    for word in [
        "ANTHROPIC_API_KEY",
        "OPENROUTER_API_KEY",
        "ollama",
        "landlock",
        "seccomp",
    ] {
        assert!(output.stdout.contains(word), "{word}\n{output}");
    }
    let text = empty.run_in_itself(&["doctor", "--provider", "sim"]);
    assert!(text.contains("built in, no network needed"), "{text}");
    let (sim, workspace) = with_replies(Protocol::Responses, []);
    let text = workspace.run_in_itself(&["doctor"]);
    assert!(
        text.contains("reachable       yes") && text.contains(&sim.url()),
        "{text}"
    );
    assert_eq!(sim.count(), 0, "no request is sent");
    drop(sim);
    let output = workspace
        .run(&["doctor", "-c", "timeouts.connect_secs=1"])
        .output();
    assert!(
        output.assert_code(8).stdout.contains("reachable       no"),
        "{output}"
    );
    let output = workspace.run(&["doctor", "--offline"]).output();
    assert!(output.assert_code(0).stdout.contains("not tried"), "{output}");
}

/// PROV-5: `sim serve` prints its address, answers there, checks keys, and ends on a signal.
#[test]
fn the_simulated_model_is_served() {
    let workspace = workspace();
    workspace.write("script.yaml", "replies:\n  - text: scripted\n");
    let mut run = workspace
        .run(&[
            "sim",
            "serve",
            "--script",
            "script.yaml",
            "--port",
            "0",
            "--api-key",
            "k1",
        ])
        .start();
    run.wait_for_stdout("\n");
    let line = run.stdout();
    let address = line
        .trim()
        .strip_prefix("listening on http://")
        .unwrap()
        .to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let health = get(&address, "/__sim/health");
    assert!(
        health.starts_with("HTTP/1.1 200") && health.contains(r#"{"ok":true}"#),
        "{health}"
    );
    let with_key = |key: &str| {
        let run = workspace.run(&["exec", "hi", "-q"]).env("OPENAI_API_KEY", key);
        run.env("OPENAI_BASE_URL", &format!("http://{address}/v1"))
            .output()
    };
    with_key("k2").assert_code(8);
    assert_eq!(with_key("k1").assert_code(0).stdout, "scripted\n");
    run.interrupt();
    run.output().assert_code(130);
    workspace.write("script.yaml", "replies:\n  - txt: scripted\n");
    let output = workspace
        .run(&["sim", "serve", "--script", "script.yaml"])
        .output();
    output
        .assert_code(2)
        .assert_says("script.yaml:2")
        .assert_says("text");
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// PROV-5, UI-1: the demo fixes a project over each wire, without a terminal or a key, and suggests next
/// steps.
#[test]
fn the_demo_fixes_a_project() {
    for wire in ["anthropic", "chat", "responses"] {
        let workspace = workspace();
        let output = workspace
            .run(&["demo", "--wire", wire, "--keep", "made"])
            .output();
        output.assert_code(0);
        for text in ["(fails)", "(passes", "ANTHROPIC_API_KEY", "--provider sim"] {
            assert!(output.stdout.contains(text), "{text}\n{output}");
        }
        let stats = workspace.read("made/src/stats.sh");
        assert!(
            stats.contains("average") && !stats.contains("count - 1"),
            "{stats}"
        );
        let again = workspace.run(&["demo", "--keep", "made"]).output();
        again.assert_code(2).assert_says("not empty");
    }
    workspace().run_in_itself(&["demo"]);
}

/// PROV-5: the demo needs no settings, keys or network, and ignores existing ones.
#[test]
fn the_demo_ignores_settings_for_models() {
    let workspace = workspace();
    workspace.config("provider = \"nowhere\"\nmodel = \"none\"\n[providers.nowhere]\nwire = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\n");
    workspace
        .run(&["demo"])
        .env("OPENAI_API_KEY", "x")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .output()
        .assert_code(0);
}

/// EXT-6: for an unknown command the nearest one is suggested.
#[test]
fn a_wrong_command_gets_the_nearest() {
    let workspace = workspace();
    workspace
        .run(&["doctro"])
        .output()
        .assert_code(2)
        .assert_says("doctor");
    workspace
        .run(&["config", "shwo"])
        .output()
        .assert_code(2)
        .assert_says("show");
}
