//! Values, keys and hidden text that must not get where they do harm.

use std::fs;

use serde_json::json;
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Output, SimServer, WIRES, Workspace};

use super::support::{script, with_replies, workspace};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    let output = workspace.run(args).output();
    output.assert_code(0);
    output
}

/// TOOL-6 (S6.9): after a switch that takes no value, a value does not become an option of the program.
#[test]
fn a_value_after_a_switch_is_not_an_option() {
    let workspace = workspace();
    let tools = "tools:\n  - name: sorted\n    description: x\n    category: read\n    cmd: sort\n    \
                 args: [-u, '{{name}}']\n    parameters: { name: { type: string } }\n  - name: last\n    \
                 description: x\n    category: read\n    cmd: tail\n    args: [-n, '{{count}}', a.txt]\n    \
                 parameters: { count: { type: integer } }\n";
    fs::create_dir_all(workspace.home().join("config")).unwrap();
    fs::write(workspace.home().join("config/tools.yaml"), tools).unwrap();
    workspace.write("a.txt", "b\na\na\n");
    for value in ["--output=hit.txt", "-ohit.txt", "-o"] {
        let output = workspace
            .run(&["tools", "run", "sorted", &json!({ "name": value }).to_string()])
            .output();
        assert_ne!(output.code, Some(0), "{value}\n{output}");
        assert!(format!("{output}").contains("must not make"), "{output}");
        assert!(!workspace.has("hit.txt"), "{value}");
    }
    let sorted = run(&workspace, &["tools", "run", "sorted", r#"{"name":"a.txt"}"#]);
    assert_eq!(sorted.stdout, "a\nb\n");
    let last = run(&workspace, &["tools", "run", "last", r#"{"count":-1}"#]);
    assert_eq!(last.stdout, "a\n");
}

/// LOOP-7: arguments must be an object; a list is not read as the fields in order, at any depth.
#[test]
fn a_list_is_not_taken_for_arguments() {
    let cases = [
        ("list_directory", r#"["."]"#),
        ("write_file", r#"["made.txt","text"]"#),
        ("write_file", r#""made.txt""#),
        ("write_file", "7"),
        ("write_file", "null"),
    ];
    for wire in WIRES {
        for (tool, arguments) in cases {
            let (sim, workspace) =
                with_replies(wire, [Reply::raw_call(tool, arguments), Reply::text("fine")]);
            let output = run(&workspace, &["exec", "go", "-o", "stream-json"]);
            let result = &output.events_of("tool_result")[0];
            assert_eq!(result["is_error"], true, "{wire} {arguments}\n{output}");
            assert!(!workspace.has("made.txt"), "{wire} {arguments}");
            sim.assert_valid();
        }
    }
    let output = workspace().run(&["tools", "run", "grep", r#"["TODO"]"#]).output();
    assert_ne!(output.code, Some(0));
    assert!(
        format!("{output}").contains("must be one JSON object"),
        "{output}"
    );
}

/// PROV-11: a key that a provider repeats is stored nowhere: neither in recorded answers nor in messages.
#[test]
fn an_echoed_key_is_not_stored() {
    const KEY: &str = "odd/key-0123+456789";
    let escaped = KEY.replace('/', "\\/");
    let bodies = [
        format!(r#"{{"error":{{"message":"key {KEY} is disabled"}}}}"#),
        format!(r#"{{"error":{{"message":"key {escaped} is disabled"}}}}"#),
        format!("key {KEY} is disabled"),
    ];
    for wire in WIRES {
        for body in &bodies {
            let fault = Fault::status(403).body(body);
            let sim = SimServer::script_with_key(script([Reply::default().fault(fault).forever()]), KEY);
            let workspace = workspace();
            workspace.use_sim_with(&sim, wire, "key_env = \"TEST_KEY\"\n");
            let output = workspace.run(&["exec", "hi"]).env("TEST_KEY", KEY).output();
            output.assert_code(8).assert_says("is disabled");
            assert_nowhere(&workspace.home(), &[KEY, &escaped]);
        }
    }
}

/// Asserts that no file below a folder contains any of the texts.
#[track_caller]
fn assert_nowhere(folder: &std::path::Path, texts: &[&str]) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_nowhere(&path, texts);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let content = String::from_utf8_lossy(&bytes);
        for text in texts {
            assert!(!content.contains(text), "{text} is in {}", path.display());
        }
    }
}

/// Text that only a model sees is reported to the user, whichever tool returns it.
#[test]
fn hidden_text_is_reported() {
    let texts = [
        "a\u{2066}b\u{2069}\u{2060}c",
        "note\u{E0069}\u{E0067}\u{E006E}\u{E006F}\u{E0072}\u{E0065}",
        "x\u{200B}\u{200C}\u{200B}y",
    ];
    for text in texts {
        let replies = [
            Reply::call("read_file", json!({"path": "a.txt"})),
            Reply::call("bash", json!({"command": "cat a.txt"})),
            Reply::text("fine"),
        ];
        let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
        workspace.write("a.txt", text);
        let output = run(&workspace, &["exec", "go"]);
        let reports = output.stderr.matches("text that you do not see").count();
        assert_eq!(reports, 2, "{text:?}\n{output}");
    }
    let replies = [
        Reply::call("read_file", json!({"path": "a.txt"})),
        Reply::text("fine"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "größer ❤\u{FE0F} 👩\u{200D}💻 می\u{200C}خواهم");
    let output = run(&workspace, &["exec", "go"]);
    assert!(!output.stderr.contains("do not see"), "{output}");
}

/// SES-10: an export masks keys of known formats, in every format, and keeps everything else; `--secrets` keeps
/// them.
#[test]
fn exports_mask_keys() {
    let keys = [
        "sk-ant-api03-0123456789abcdef",
        "ghp_0123456789abcdef0123456789abcdef0123",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIzNDU2",
    ];
    let content = format!("A={}\nB={}\n{}\n\"{}\"\n", keys[0], keys[1], keys[2], keys[3]);
    let replies = [
        Reply::call("bash", json!({ "command": format!("printf '%s' '{content}'") })),
        Reply::text(&format!("The key is {}.", keys[0])),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    run(&workspace, &["exec", &format!("use {}", keys[1])]);
    let id = run(&workspace, &["sessions", "list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for format in ["json", "markdown"] {
        let export = ["sessions", "export", "--format", format, &id];
        let masked = run(&workspace, &export);
        masked.assert_says("masked keys");
        assert!(masked.stdout.contains("The key is [redacted]."), "{masked}");
        let whole = run(&workspace, &[&export[..], &["--secrets"]].concat());
        for key in keys {
            assert!(!masked.stdout.contains(key), "{format}: {key}\n{masked}");
            assert!(whole.stdout.contains(key), "{format}: {key}\n{whole}");
        }
    }
    let masked = run(&workspace, &["sessions", "export", "--format", "json", &id]);
    let file = workspace.write("past.json", &masked.stdout).display().to_string();
    run(&workspace, &["sessions", "import", &file]);
}
