//! Bad input: the problem, the fix, and the exit code.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{PATIENCE, SimServer, WIRES, Workspace, settings_name};

use super::support::{script, with_replies, workspace};

const KEY: &str = "sk-test-51f0a3c2d9e84b7f";

fn guarded(wire: Protocol, more: &str) -> (SimServer, Workspace) {
    let sim = SimServer::script_with_key(script([Reply::text("fine").forever()]), KEY);
    let workspace = workspace();
    workspace.use_sim_with(&sim, wire, more);
    (sim, workspace)
}

/// PROV-6, PROV-11, EXT-6: for a wrong key, the provider's message and the variable to set are shown; one
/// request, code 8.
#[test]
fn a_wrong_key_is_reported_once() {
    for wire in WIRES {
        for format in ["text", "json", "stream-json"] {
            let (sim, workspace) = guarded(wire, "key_env = \"TEST_KEY\"\n");
            let wrong = "sk-wrong-8a7b6c5d4e3f2a1b";
            let output = workspace
                .run(&["exec", "hi", "-o", format])
                .env("TEST_KEY", wrong)
                .output();
            output.assert_code(8);
            assert!(
                format!("{output}").contains("the API key is missing or wrong"),
                "{output}"
            );
            assert!(
                format!("{output}").contains("check the key in TEST_KEY"),
                "{wire} {format}\n{output}"
            );
            assert!(!format!("{output}").contains(wrong), "the key is shown\n{output}");
            assert!(
                !format!("{output}").contains("retrying in") && !output.stdout.contains("retry"),
                "{output}"
            );
            assert_eq!(sim.count(), 0, "the server logs only requests with the right key");
        }
    }
}

/// PROV-6: for a model unknown to the provider, its message and a hint are shown; no retry.
#[test]
fn a_wrong_model_is_reported_once() {
    for wire in WIRES {
        let fault = Fault::status(404).message("model: gpt-17 does not exist");
        let (sim, workspace) = with_replies(wire, [Reply::default().fault(fault), Reply::text("fine")]);
        let output = workspace.run(&["exec", "hi", "--model", "gpt-17"]).output();
        output
            .assert_code(8)
            .assert_says("model: gpt-17 does not exist")
            .assert_says("check the model name `gpt-17`");
        assert_eq!(sim.count(), 1, "{wire}");
    }
}

/// PROV-6: the error names an unreachable or invalid address.
#[test]
fn a_wrong_address_is_named() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for wire in WIRES {
        let workspace = workspace();
        let provider = |url: &str| {
            let wire = settings_name(wire);
            format!(
                "provider = \"test\"\n[providers.test]\nwire = \"{wire}\"\nbase_url = \"{url}\"\nmodel = \"sim-1\"\n"
            )
        };
        workspace.config(&provider(&format!("http://127.0.0.1:{port}")));
        let output = workspace
            .run(&["exec", "hi", "-c", "retry.max_retries=0"])
            .output();
        output
            .assert_code(8)
            .assert_says(&format!("http://127.0.0.1:{port}"))
            .assert_says("base_url");
        workspace.config(&provider("not an address"));
        workspace
            .run(&["exec", "hi"])
            .output()
            .assert_code(3)
            .assert_says("config.toml:4:12: providers.test.base_url");
        let (sim, _) = with_replies(wire, [Reply::text("fine")]);
        workspace.config(&provider(&format!("{}/nowhere", sim.url())));
        workspace
            .run(&["exec", "hi"])
            .output()
            .assert_code(8)
            .assert_says("base_url");
    }
}

/// PROV-5, UI-3: without any key, `exec` lists what to set and suggests the simulated model.
#[test]
fn no_key_anywhere() {
    let workspace = workspace();
    let output = workspace.run(&["exec", "hi"]).output();
    output
        .assert_code(8)
        .assert_says("ANTHROPIC_API_KEY")
        .assert_says("OPENAI_API_KEY")
        .assert_says("--provider sim");
    let output = workspace.run(&["exec", "hi", "--provider", "anthropic"]).output();
    output
        .assert_code(8)
        .assert_says("no key for provider `anthropic`")
        .assert_says("ANTHROPIC_API_KEY");
    for provider in [&[][..], &["--provider", "anthropic"]] {
        let args = [&["exec", "hi", "-o", "json"], provider].concat();
        let error = workspace.run(&args).output().assert_code(8).json()["error"].clone();
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(
            error["kind"] == "auth" && hint.contains("windlass connect"),
            "{error}"
        );
    }
    workspace
        .run(&["exec", "hi"])
        .env("ANTHROPIC_API_KEY", "")
        .output()
        .assert_code(8);
}

/// PROV-5: the simulated model works without a key and settings, and is labeled as simulated.
#[test]
fn the_simulated_model_needs_nothing() {
    let workspace = workspace();
    workspace.write("hello.txt", "x");
    let output = workspace
        .run(&["exec", "--provider", "sim", "list the files here"])
        .output();
    output.assert_code(0).assert_says("is not a language model");
    assert!(
        output.stdout.starts_with("[simulated model]") && output.stdout.contains("hello.txt"),
        "{output}"
    );
}

/// EXT-6, PROV-2, PROV-3: the usual variables are enough.
#[test]
fn the_usual_variables_are_enough() {
    let cases = [
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "",
            "claude-sonnet-4-5",
            Protocol::Anthropic,
        ),
        (
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "",
            "claude-sonnet-4-5",
            Protocol::Anthropic,
        ),
        (
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "/v1",
            "gpt-5.1",
            Protocol::Chat,
        ),
    ];
    for (key, address, path, model, wire) in cases {
        let sim = SimServer::script_with_key(script([Reply::text("fine")]), KEY);
        let workspace = workspace();
        let run = workspace
            .run(&["exec", "hi"])
            .env(key, KEY)
            .env(address, &format!("{}{path}", sim.url()));
        let output = run.output();
        assert_eq!(output.assert_code(0).stdout, "fine\n", "{key}");
        let requests = sim.requests();
        assert_eq!(
            (requests[0].wire, requests[0].seen.model.as_str()),
            (wire, model),
            "{key}"
        );
        sim.assert_valid();
    }
}

/// EXT-6: `provider/model` names both, and flags win over settings.
#[test]
fn a_model_may_name_its_provider() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine").forever()]);
    let config = std::fs::read_to_string(workspace.config_file())
        .unwrap()
        .replace("provider = \"test\"\n", "");
    workspace.config(&config);
    workspace
        .run(&["exec", "hi", "--model", "test/some-model"])
        .output()
        .assert_code(0);
    assert_eq!(sim.requests()[0].seen.model, "some-model");
}

/// CFG-1: for an unknown provider the nearest one is suggested; for an unknown preset, the list.
#[test]
fn an_unknown_provider_gets_a_suggestion() {
    let workspace = workspace();
    let output = workspace.run(&["exec", "hi", "--provider", "antropic"]).output();
    output
        .assert_code(3)
        .assert_says("no provider `antropic`")
        .assert_says("did you mean `anthropic`?");
    workspace.config("provider = \"mine\"\n[providers.mine]\npreset = \"opnai\"\n");
    workspace
        .run(&["exec", "hi"])
        .output()
        .assert_code(3)
        .assert_says("providers.mine.preset")
        .assert_says("openai");
    workspace.config("provider = \"mine\"\n[providers.mine]\nwire = \"openai-chat\"\n");
    workspace
        .run(&["exec", "hi"])
        .output()
        .assert_code(3)
        .assert_says("providers.mine.base_url");
}

/// CFG-1: a broken settings file prevents the start and is reported with file, line and the nearest key; code
/// 3.
#[test]
fn broken_settings_name_file_line_and_key() {
    let cases = [
        (
            "model = \"x\"\n\n[agent]\nmax_iteration = 5\n",
            ":4:",
            "agent.max_iterations",
        ),
        (
            "model = \"x\"\n[agent]\nmax_iterations = \"many\"\n",
            ":3:",
            "max_iterations",
        ),
        ("model = \"x\n", ":1:", ""),
        ("[agent]\nreasoning = \"hard\"\n", ":2:", "high"),
        ("[timeout]\nstream_idle_secs = 1\n", ":1:", "timeouts"),
        ("[providers.x]\napi_key = \"sk-123456\"\n", ":2:", "key_env"),
    ];
    for (text, line, hint) in cases {
        let workspace = workspace();
        workspace.config(text);
        let place = format!("{}{line}", workspace.config_file().display());
        for command in [&["exec", "hi"][..], &["config", "show"]] {
            let output = workspace.run(command).output();
            output.assert_code(3).assert_says(&place).assert_says(hint);
            assert!(!output.stderr.contains("sk-123456"), "{output}");
        }
        let output = workspace.run(&["doctor", "--offline"]).output();
        assert!(output.assert_code(3).stdout.contains(&place), "{output}");
    }
}

/// CFG-1: invalid variables and flags are reported by name likewise.
#[test]
fn broken_variables_and_flags_are_named() {
    let workspace = workspace();
    let output = workspace
        .run(&["exec", "hi"])
        .env("WINDLASS_AGENT_MAX_ITERATIONS", "many")
        .output();
    output.assert_code(3).assert_says("WINDLASS_AGENT_MAX_ITERATIONS");
    let output = workspace
        .run(&["exec", "hi", "-c", "agent.max_iteration=5"])
        .output();
    output.assert_code(3).assert_says("agent.max_iterations");
    workspace
        .run(&["exec", "hi", "-c", "nonsense"])
        .output()
        .assert_code(2)
        .assert_says("key=value");
    workspace
        .run(&["exec", "hi", "--config", "missing.toml"])
        .output()
        .assert_code(3)
        .assert_says("missing.toml");
}

/// EXT-6: wrong usage is code 2, with the correct usage.
#[test]
fn wrong_usage_is_code_2() {
    let workspace = workspace();
    workspace.write("file", "x");
    workspace.write("broken.json", "{");
    workspace.write("odd.json", r#"{"type": "nonsense"}"#);
    let cases: [(&[&str], &str); 12] = [
        (&["exec", "--frobnicate", "hi"], "--frobnicate"),
        (&["exec", "hi", "--max-iterations", "many"], "--max-iterations"),
        (&["exec", "hi", "-o", "yaml"], "stream-json"),
        (&["sesions"], "`sessions`"),
        (&["exec", "hi", "--cd", "nowhere"], "--cd nowhere"),
        (&["exec", "hi", "--cd", "file"], "not a folder"),
        (
            &["exec", "hi", "--output-schema", "nowhere.json"],
            "--output-schema nowhere.json",
        ),
        (&["exec", "hi", "--output-schema", "broken.json"], "not JSON"),
        (
            &["exec", "hi", "--output-schema", "odd.json"],
            "not a JSON Schema",
        ),
        (&["exec"], "there is no prompt"),
        (&["exec", ""], "there is no prompt"),
        (
            &["config", "explain", "agent.max_iteration"],
            "agent.max_iterations",
        ),
    ];
    for (args, text) in cases {
        let output = workspace.run(args).output();
        output.assert_code(2).assert_says(text);
        assert_eq!(output.stdout, "", "{args:?}");
    }
    let silent = workspace.run(&[]).output();
    silent.assert_code(2).assert_says("no input: standard input");
    silent.assert_says("windlass --help");
}

/// PROV-11: a key is never shown in any format, not even when the provider repeats it.
#[test]
fn a_key_is_never_shown() {
    for wire in WIRES {
        for format in ["text", "json", "stream-json"] {
            let fault = Fault::status(400).message(&format!("bad request with key {KEY} and Bearer {KEY}"));
            let sim = SimServer::script_with_key(script([Reply::default().fault(fault)]), KEY);
            let workspace = workspace();
            workspace.use_sim_with(&sim, wire, "key_env = \"TEST_KEY\"\n");
            let output = workspace
                .run(&["exec", "hi", "-o", format])
                .env("TEST_KEY", KEY)
                .output();
            output.assert_code(8);
            assert!(format!("{output}").contains("bad request with key"), "{output}");
            assert!(!format!("{output}").contains(KEY), "{wire} {format}\n{output}");
        }
    }
    let workspace = workspace();
    for args in [&["doctor", "--offline"][..], &["config", "show", "--origin"]] {
        let output = workspace.run(args).env("ANTHROPIC_API_KEY", KEY).output();
        output.assert_code(0);
        assert!(!format!("{output}").contains(KEY), "{output}");
    }
}

/// PROV-11: commands that the model runs do not see keys.
#[test]
fn commands_do_not_see_keys() {
    let sim = SimServer::script_with_key(
        script([
            Reply::call("bash", serde_json::json!({"command": "env"})),
            Reply::text("{{last_result}}"),
        ]),
        KEY,
    );
    let workspace = workspace();
    workspace.use_sim_with(&sim, Protocol::Chat, "key_env = \"TEST_KEY\"\n");
    let output = workspace
        .run(&["exec", "hi"])
        .env("TEST_KEY", KEY)
        .env("OPENAI_API_KEY", KEY)
        .output();
    assert!(
        output.assert_code(0).stdout.contains("HOME=") && !output.stdout.contains(KEY),
        "{output}"
    );
}

/// PROV-11: a key comes from a command, given as a shell command line or as a program with arguments.
#[test]
fn a_key_comes_from_a_command() {
    for command in [
        format!("'echo {KEY}'"),
        format!("[\"printf\", \"%s\", \"{KEY}\"]"),
    ] {
        let (sim, workspace) = guarded(Protocol::Anthropic, &format!("key_command = {command}\n"));
        workspace.run(&["exec", "hi"]).output().assert_code(0);
        assert_eq!(sim.count(), 1);
    }
    let cases = [
        ("'exit 3'", "failed (exit status: 3)"),
        ("'true'", "printed nothing"),
        ("[\"/no/such/program\"]", "could not be started"),
    ];
    for (command, text) in cases {
        let (sim, workspace) = guarded(Protocol::Chat, &format!("key_command = {command}\n"));
        let output = workspace.run(&["exec", "hi"]).output();
        output
            .assert_code(8)
            .assert_says("providers.test.key_command")
            .assert_says(text);
        assert_eq!(sim.count(), 0);
    }
    let (_sim, workspace) = guarded(Protocol::Chat, "key_env = \"NOT_SET\"\n");
    workspace
        .run(&["exec", "hi"])
        .output()
        .assert_code(8)
        .assert_says("NOT_SET, which is not set");
}

/// EXT-6: a pipe that nobody writes to, a device and a folder given as a file are refused at once, and what the shell
/// puts in place of `<(…)` is read.
#[test]
fn what_is_no_file_is_refused() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("{}").forever()]);
    let made = Command::new("mkfifo").arg(workspace.path().join("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    for given in ["pipe", "/dev/zero", "."] {
        for arguments in [
            &["exec", "hi", "--output-schema"][..],
            &["exec", "hi", "--image"],
            &["exec", "hi", "--config"],
            &["sessions", "import"],
            &["permissions", "test"],
            &["memory", "import"],
            &["sim", "serve", "--script"],
        ] {
            // The largest session that is imported is larger than this test wants to wait for.
            if given == "/dev/zero" && arguments == ["sessions", "import"] {
                continue;
            }
            let output = workspace.run(arguments).arg(given).limit(PATIENCE).output();
            assert!(
                matches!(output.code, Some(1..=3)),
                "{arguments:?} {given}\n{output}"
            );
            assert!(
                output.stderr.contains(given) && !output.stderr.contains("os error"),
                "{output}"
            );
        }
    }
    assert_eq!(sim.count(), 0);
    let line = "exec hi --output-schema <(echo '{\"type\":\"object\"}')";
    let binary = env!("CARGO_BIN_EXE_windlass");
    let shell = format!("{binary} {line}");
    let mut command = Command::new("bash");
    command
        .args(["-c", &shell])
        .current_dir(workspace.path())
        .env("WINDLASS_HOME", workspace.home())
        .env("HOME", workspace.user_home());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// EXT-6, UI-7: errors are in the user's words: no numbers of system errors, no names of types in the program, and the
/// place of the mistake.
#[test]
fn errors_have_no_library_words() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    workspace.write("list.json", "[1, 2]");
    workspace.write("half.json", "{\"a\":");
    let run = |arguments: &[&str]| workspace.run(arguments).output();
    for (output, place) in [
        (run(&["sessions", "import", "missing"]), "missing"),
        (
            run(&["sessions", "import", "--from", "windlass", "list.json"]),
            "list.json",
        ),
        (
            run(&["sessions", "import", "--from", "codex", "half.json"]),
            "half.json:1",
        ),
        (run(&["permissions", "test", "list.json"]), "list.json:1"),
        (run(&["exec", "hi", "--output-schema", "half.json"]), "half.json"),
        (run(&["exec", "hi", "--cd", "missing"]), "missing"),
        (run(&["exec", "hi", "--image", "missing.png"]), "missing.png"),
        (
            run(&["tools", "run", "bash", "{\"command\":\"ls\",\"timeout\":\"x\"}"]),
            "timeout",
        ),
        (
            workspace
                .run(&["exec", "--input-format", "stream-json"])
                .stdin("{\"type\":\"user\",\"message\":3}\n")
                .output(),
            "line 1",
        ),
    ] {
        assert_ne!(output.code, Some(0), "{output}");
        output.assert_says(place);
        for words in ["os error", "invalid type", "struct ", "u64", "EOF", "untagged"] {
            assert!(!output.stderr.contains(words), "{words}: {output}");
        }
    }
}

/// PROV-11: the value of a header that looks like a credential is in no file and no output, whatever its name.
#[test]
fn a_credential_in_a_header_is_hidden() {
    const SECRET: &str = "0f3c9a1be77d4e21aa55";
    let sim = SimServer::script(script([Reply::text(&format!("echo {SECRET}")).forever()]));
    let workspace = workspace();
    let more = format!("headers = {{ X-Gate = \"{SECRET}\", X-Team = \"blue\" }}\n");
    workspace.use_sim_with(&sim, Protocol::Anthropic, &more);
    let dump = workspace.path().join("dump");
    let arguments = [
        "exec",
        "-c",
        "log.level=debug",
        "--debug-dump",
        dump.to_str().unwrap(),
        "hi",
    ];
    workspace.run(&arguments).output().assert_code(0);
    for entry in std::fs::read_dir(&dump).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(SECRET), "{text}");
    }
    let shown = workspace.run(&["config", "show", "--origin"]).output();
    assert!(!shown.stdout.contains(SECRET), "{shown}");
    assert!(shown.stdout.contains("blue"), "{shown}");
    let log = workspace.home().join("state/windlass.log");
    let log = std::fs::read_to_string(log).unwrap_or_default();
    assert!(!log.contains(SECRET), "{log}");
}

/// SAFE-7: an error that repeats an argument repeats nothing that affects a terminal.
#[test]
fn wrong_arguments_cannot_reach_the_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[31mred\u{9b}32m\u{202e}";
    let workspace = workspace();
    for arguments in [&["memory", "show"][..], &["permissions", "forget"], &["sessions"]] {
        let output = workspace.run(arguments).args(&[hostile]).output();
        output.assert_code(2);
        let affects = |letter: char| letter != '\n' && letter.is_control() || letter == '\u{202e}';
        assert!(output.stderr.contains("red"), "{output}");
        assert!(!output.stderr.contains(affects), "{output}");
    }
}

/// EXT-6: a folder whose path is not text is refused before a session begins, with the reason.
#[test]
fn a_folder_with_an_unreadable_name_is_refused() {
    let workspace = workspace();
    let folder = workspace.path().join(OsStr::from_bytes(b"w\xff"));
    std::fs::create_dir(&folder).unwrap();
    let refused = |run: windlass_testkit::Run| {
        run.output()
            .assert_code(2)
            .assert_says("its path is not UTF-8 text; rename the folder");
    };
    let command = ["exec", "--provider", "sim", "hello"];
    refused(workspace.run(&command).cwd(&folder));
    refused(workspace.run(&command).arg("--cd").arg(&folder));
    let listed = workspace.run(&["sessions", "list", "--all", "--json"]).output();
    assert_eq!(listed.json(), serde_json::json!([]));
}
