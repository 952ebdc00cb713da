//! Scripts and habits from other agents.

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};

use super::support::{with_replies, workspace};

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// UI-7: without a terminal, `windlass "prompt"` answers and exits; a mistyped command is not sent to a model.
#[test]
fn a_prompt_needs_no_command() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine"), Reply::text("well")]);
    let output = workspace.run(&["say", "something nice"]).output();
    output.assert_code(0);
    assert_eq!(output.stdout, "fine\n");
    let seen = sim.requests()[0]
        .seen
        .last_user_text()
        .unwrap_or_default()
        .to_owned();
    assert!(seen.ends_with("say something nice"), "{seen}");
    // The prompt may follow other options.
    let output = workspace.run(&["-p", "-o", "json", "another one"]).output();
    output.assert_code(0);
    assert_eq!(object(&output.stdout)["result"], "well");
    for (args, expected) in [
        (&["sesions"][..], "`sessions`"),
        (
            &["session", "list"],
            "did you mean `sessions`? To send it as a prompt: `windlass -p \"session …\"`",
        ),
        (&["exce", "hi"], "did you mean `exec`?"),
        (&["exec", "/mode full"], "use `windlass exec --mode full"),
        (&["exec", "/plan"], "`--goal TEXT` works unattended"),
        (&["exec", "/keys"], "a command of the terminal UI"),
        (&["exec", "/login x y"], "/connect"),
        (&["exec", "/config"], "`windlass config show`"),
        (
            &["exec", "--output-last-message", "/nope/x", "hi"],
            "--output-last-message /nope/x: No such file",
        ),
        (
            &["exec", "--max-cost", "abc", "hi"],
            "expected an amount in US dollars",
        ),
        (&["attach", "http://127.0.0.1:9"], "no server of your own runs at"),
        (&["--model", "x", "exec", "hi"], "options come after the command"),
        (&["help", "nothing"], "`nothing`"),
    ] {
        let output = workspace.run(args).output();
        output.assert_code(2);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
    assert_eq!(sim.requests().len(), 2);
    let help = workspace.run(&["help", "exec"]).output();
    help.assert_code(0);
    assert!(help.stdout.contains("--append-system-prompt"), "{}", help.stdout);
}

/// UI-7: prompts, rules, folders, network and effort by the names that other agents use.
#[test]
fn flags_of_other_agents() {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::text("a"),
            Reply::text("b"),
            Reply::call("bash", json!({ "command": "touch made.txt" })),
            Reply::text("c"),
            Reply::call("write_file", json!({ "path": "no.txt", "content": "x" })),
            Reply::text("d"),
        ],
    );
    let run = |args: &[&str]| {
        let output = workspace.run(args).output();
        output.assert_code(0);
        output
    };
    run(&["exec", "--append-system-prompt", "Speak like a pirate.", "hi"]);
    run(&["exec", "--system-prompt", "\"Quoted\" prompt.", "hi"]);
    let system = |index: usize| sim.requests()[index].body["system"].to_string();
    assert!(system(0).contains("Look before you change"), "{}", system(0));
    assert!(system(0).contains("Speak like a pirate."), "{}", system(0));
    assert!(system(1).contains("\\\"Quoted\\\" prompt."), "{}", system(1));
    assert!(!system(1).contains("Look before you change"), "{}", system(1));
    // Claude's `default` asks before a command; its own rule allows this one.
    run(&[
        "exec",
        "make it",
        "--permission-mode",
        "default",
        "--allowedTools",
        "Bash(touch:*)",
        "Read",
    ]);
    assert!(workspace.has("made.txt"));
    let output = run(&["exec", "write it", "--disallowed-tools", "Write,Edit"]);
    assert!(!workspace.has("no.txt"));
    assert!(
        output.stderr.contains("the rule `write_file`"),
        "{}",
        output.stderr
    );
    let shown = |args: &[&str], key: &str| {
        let output = workspace
            .run(&[&["exec", "/permissions"], args].concat())
            .output();
        output.assert_code(0);
        assert!(output.stdout.contains(key), "{args:?}: {}", output.stdout);
    };
    shown(&["--allowed-tools", "Bash(git log:*)"], "bash(git log *)");
    for (args, code, expected) in [
        (
            &["exec", "--allowed-tools", "Bash", "fix the tests"][..],
            2,
            "put it before --allowed-tools",
        ),
        (&["exec", "--add-dir", "nowhere", "hi"], 2, "nowhere"),
        (&["exec", "--profile", "missing", "hi"], 2, "missing.toml"),
        (&["exec", "--effort", "huge", "hi"], 2, "low, medium or high"),
        (&["exec", "--timeout", "soon", "hi"], 2, "15m"),
        (&["exec", "--session-id", "mine", "hi"], 2, "UUID"),
        (&["exec", "--image", "made.txt", "hi"], 2, "PNG"),
        (&["exec", "--resume"], 2, "--resume needs a session here"),
    ] {
        let output = workspace.run(args).output();
        output.assert_code(code);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
}

/// UI-7: a profile adds settings, an image goes with the prompt, and the answer also goes to a file.
#[test]
fn profiles_images_and_files() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("seen")]);
    let profiles = workspace.config_file().with_file_name("profiles");
    std::fs::create_dir(&profiles).unwrap();
    std::fs::write(
        profiles.join("quick.toml"),
        "agent.system_prompt = \"Be quick.\"\n",
    )
    .unwrap();
    let png = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
    std::fs::write(workspace.path().join("dot.png"), png).unwrap();
    let args = [
        "exec",
        "--profile",
        "quick",
        "-i",
        "dot.png",
        "look",
        "--output-last-message",
        "answer.txt",
    ];
    workspace.run(&args).output().assert_code(0);
    let request = &sim.requests()[0].body;
    assert!(request["system"].to_string().contains("Be quick."), "{request}");
    let last = request["messages"].to_string();
    assert!(last.contains("image/png"), "{last}");
    assert_eq!(
        std::fs::read_to_string(workspace.path().join("answer.txt")).unwrap(),
        "seen"
    );
}

/// UI-7, UI-3: a session has the id and the name that the script gave it, and is found by both.
#[test]
fn a_session_is_named_by_the_script() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::text("a"), Reply::text("b"), Reply::text("c")],
    );
    let id = "123e4567-e89b-42d3-a456-426614174000";
    let run = |args: &[&str]| {
        workspace
            .run(&[&["exec", "-o", "json", "hi"], args].concat())
            .output()
    };
    let first = run(&["--session-id", id, "--name", "morning"]);
    first.assert_code(0);
    let first = object(&first.stdout);
    assert_eq!(
        (&first["session_id"], &first["session"]),
        (&json!(id), &json!(id))
    );
    for args in [&["--resume", "morning"][..], &["--last"]] {
        let output = run(args);
        output.assert_code(0);
        assert_eq!(object(&output.stdout)["session_id"], id, "{args:?}");
    }
    let again = run(&["--session-id", id]);
    again.assert_code(2);
    assert!(again.stderr.contains("this session exists"), "{}", again.stderr);
    assert_eq!(object(&again.stdout)["error"]["kind"], "usage");
}

/// UI-3, UI-7: every end is one JSON object with a plain kind, also without a model, a key or a connection.
#[test]
fn json_on_every_path() {
    let workspace = workspace();
    for format in ["json", "stream-json"] {
        for (args, code, kind) in [
            (&["exec", "hi"][..], 8, "auth"),
            (&["exec", "hi", "--provider", "anthropic"], 8, "auth"),
            (&["exec", "hi", "--mode", "strange"], 2, "usage"),
            (&["exec", "hi", "--provider", "sim", "--continue"], 2, "usage"),
        ] {
            let args = [args, &["-o", format]].concat();
            let output = workspace.run(&args).output();
            output.assert_code(code);
            let result = object(&output.stdout);
            assert_eq!(result["error"]["kind"], kind, "{args:?}: {result}");
            assert_eq!(
                (&result["is_error"], &result["ok"]),
                (&json!(true), &json!(false))
            );
            assert!(!output.stderr.is_empty());
        }
    }
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::default().fault(Fault::status(401))]);
    let output = workspace.run(&["exec", "-o", "json", "hi"]).output();
    output.assert_code(8);
    let result = object(&output.stdout);
    assert_eq!(result["error"]["kind"], "auth", "{result}");
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result.get("total_cost_usd"), result.get("cost_usd"));
}

/// UI-7: messages as lines of JSON, each a turn; with `--verbose`, the stream ends with a result.
#[test]
fn messages_as_lines_of_json() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one"), Reply::text("two")]);
    let line = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": text }] } });
    let stdin = format!("{}\n\n{}\n", line("first"), line("second"));
    let args = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
    ];
    let output = workspace.run(&args).stdin(stdin).output();
    output.assert_code(0);
    let last = object(output.stdout.lines().last().unwrap());
    assert_eq!(
        (&last["type"], &last["result"]),
        (&json!("result"), &json!("two"))
    );
    assert_eq!(sim.requests().len(), 2);
    let wrong = workspace.run(&args).stdin("{\"type\":\"user\"}\n").output();
    wrong.assert_code(2);
    assert!(wrong.stderr.contains("line 1"), "{}", wrong.stderr);
}

/// UI-7: a run that takes longer than `--timeout` ends, and an inline schema is a schema.
#[test]
fn a_limit_in_time_and_an_inline_schema() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call("bash", json!({ "command": "tail -f /dev/null" })),
            Reply::text("{\"n\": 1}"),
        ],
    );
    let output = workspace
        .run(&["exec", "-o", "json", "--timeout", "1", "wait"])
        .output();
    output.assert_code(1);
    assert_eq!(object(&output.stdout)["error"]["kind"], "timeout");
    let schema = r#"{"type":"object","required":["n"]}"#;
    let output = workspace
        .run(&["exec", "-o", "json", "--json-schema", schema, "count"])
        .output();
    output.assert_code(0);
    assert_eq!(object(&output.stdout)["structured_output"], json!({ "n": 1 }));
}

/// PROV-8: a provider chosen in one local front end is used by the others, in any folder.
#[test]
fn a_choice_holds_in_every_front_end() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let chosen = workspace.run(&["--plain"]).stdin("/provider sim\n").output();
    chosen.assert_code(0);
    std::fs::create_dir(workspace.path().join("sub")).unwrap();
    let output = workspace.run(&["exec", "-C", "sub", "/status"]).output();
    output.assert_code(0);
    assert!(output.stdout.contains("sim"), "{}", output.stdout);
}
