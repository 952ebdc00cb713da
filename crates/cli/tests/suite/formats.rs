//! Databases, output files and exports of earlier versions.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::Workspace;

use super::support::with_replies;

/// Sessions of the fixture: name, number of messages, text to search for, and texts that a resumed session
/// sends.
const SESSIONS: &[(&str, u64, &str, &[&str])] = &[
    (
        "plain",
        4,
        "builds less",
        &[
            "Name two ways to run the tests.",
            "The second one: it builds less.",
        ],
    ),
    (
        "tools",
        4,
        "counted",
        &["Count to three thousand.", "I counted, and wrote result.txt."],
    ),
    (
        "compacted",
        19,
        "something new",
        &["A summary: the user asked for", "Here is something new."],
    ),
    (
        "todo",
        8,
        "the plan stands",
        &["Plan two steps.", "The plan stands, one step is open."],
    ),
    (
        "pasted",
        2,
        "names a folder",
        &["Folder: /tmp/project", "What does this pasted text say?"],
    ),
    (
        "original",
        2,
        "winch",
        &["Begin a story.", "Once there was a winch."],
    ),
    ("fork", 4, "rusted", &["Begin a story.", "It rusted."]),
];

/// Id of the output file of the session `tools`.
const OUTPUT: &str = "bash-t7454f";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/v0.1")
        .join(name)
}

/// Copies the database and the output files of version 0.1 into a workspace.
fn install(workspace: &Workspace) {
    let data = workspace.home().join("data");
    fs::create_dir_all(&data).unwrap();
    fs::copy(fixture("windlass.db"), data.join("windlass.db")).unwrap();
    for session in fs::read_dir(fixture("outputs")).unwrap().flatten() {
        let folder = workspace.home().join("state/outputs").join(session.file_name());
        fs::create_dir_all(&folder).unwrap();
        for file in fs::read_dir(session.path()).unwrap().flatten() {
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
}

fn export(workspace: &Workspace, session: &str) -> Value {
    let output = workspace
        .run(&["sessions", "export", session, "--format", "json"])
        .output();
    output.assert_code(0).json()
}

fn earlier_export(session: &str) -> Value {
    let text = fs::read_to_string(fixture(&format!("exports/{session}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// As [`install`], with the sessions in the folder of the workspace: their own is not on this machine.
fn install_here(workspace: &Workspace) {
    install(workspace);
    let database = rusqlite::Connection::open(workspace.home().join("data/windlass.db")).unwrap();
    let place = workspace.path().display().to_string();
    database
        .execute("UPDATE session SET place = ?1", [place])
        .unwrap();
}

/// The export of an earlier version as this version writes it: injected text has its source.
fn converted_export(session: &str) -> Value {
    let mut export = earlier_export(session);
    export["windlass"] = json!(2);
    for entry in export["entries"].as_array_mut().unwrap() {
        let parts = entry.pointer_mut("/message/parts").and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(convert);
    }
    export
}

/// The texts that version 0.1 injected, by their tags.
fn convert(part: &mut Value) {
    let Some(text) = part["data"]["text"].as_str().map(str::to_owned) else {
        return;
    };
    let between = |start: &str, end: &str| text.strip_prefix(start)?.strip_suffix(end).map(str::to_owned);
    let context =
        |source: &str, text: String| json!({"type": "context", "data": {"source": source, "text": text}});
    if let Some(inner) = between("<environment>\nworking directory: ", "\n</environment>") {
        *part = context("environment", format!("working directory: {inner}"));
    } else if let Some(inner) = between("<reminder>\n", "\n</reminder>") {
        *part = context("reminder", inner);
    } else if let Some(inner) = between("<said_by_the_user>\n", "\n</said_by_the_user>") {
        *part = context("quote", inner);
    } else if text.starts_with("<left_out ref=") {
        *part = context("reference", text.clone());
    }
}

/// Asserts that `now` has everything that `then` has. New fields are allowed.
#[track_caller]
fn assert_has_all(now: &Value, then: &Value, place: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (key, value) in then {
                let found = now.get(key).unwrap_or(&Value::Null);
                assert_has_all(found, value, &format!("{place}.{key}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "length of {place}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                assert_has_all(now, then, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{place}"),
    }
}

/// MSG-2, SES-5: a database of version 0.1 opens, and every entry of every session is exported unchanged.
#[test]
fn an_earlier_database_is_read_whole() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    install(&workspace);
    let list = workspace
        .run(&["sessions", "list", "--all", "-n", "0", "--json"])
        .output();
    let list = list.assert_code(0).json();
    assert_eq!(list.as_array().unwrap().len(), SESSIONS.len());
    for (name, messages, words, _) in SESSIONS {
        let shown = workspace.run(&["sessions", "show", name, "--json"]).output();
        shown.assert_code(0);
        let text = workspace.run(&["sessions", "show", name]).output();
        text.assert_code(0);
        let found = workspace.run(&["sessions", "search", words, "--json"]).output();
        let found = found.assert_code(0).json();
        assert!(!found.as_array().unwrap().is_empty(), "`{words}` in {name}");
        let now = export(&workspace, name);
        assert_eq!(now["session"]["totals"]["messages"], *messages, "{name}");
        assert_has_all(&now, &converted_export(name), name);
        let read = workspace.run(&["sessions", "export", name]).output();
        read.assert_code(0);
    }
    // Pasted text that starts like injected text was not searchable in that version.
    let pasted = workspace
        .run(&["sessions", "search", "this pasted text", "--json"])
        .output();
    assert_eq!(pasted.assert_code(0).json().as_array().unwrap().len(), 1);
    let check = workspace.run(&["db", "check"]).output();
    check.assert_code(0);
}

/// MSG-2, SES-5: every session of version 0.1 is resumed: the model receives its history, and nothing that
/// was stored changes.
#[test]
fn earlier_sessions_are_resumed() {
    for (name, messages, _, sent) in SESSIONS {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("went on")]);
        install_here(&workspace);
        let output = workspace.run(&["exec", "--resume", name, "Continue."]).output();
        assert_eq!(output.assert_code(0).stdout, "went on\n", "{name}");
        sim.assert_valid();
        let request = sim.requests().pop().unwrap();
        let request = String::from_utf8_lossy(&request.raw).into_owned();
        for text in *sent {
            assert!(request.contains(text), "{name}: `{text}` is missing\n{request}");
        }
        let now = export(&workspace, name);
        assert_eq!(now["session"]["totals"]["messages"], *messages + 2, "{name}");
        let then = converted_export(name);
        let count = then["entries"].as_array().unwrap().len();
        let kept = now["entries"].as_array().unwrap()[..count].to_vec();
        assert_has_all(&Value::Array(kept), &then["entries"], name);
    }
}

/// SES-5, CTX-11: a resumed session reads the long output that version 0.1 stored as a file.
#[test]
fn earlier_outputs_are_read() {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call("tool_output", json!({"id": OUTPUT, "offset": 2_999})),
            Reply::text("read"),
        ],
    );
    install_here(&workspace);
    let output = workspace
        .run(&["exec", "--resume", "tools", "Read the end of the output."])
        .output();
    assert_eq!(output.assert_code(0).stdout, "read\n", "{output}");
    sim.assert_valid();
    let request = sim.requests().pop().unwrap();
    assert_eq!(
        request.seen.last_result().unwrap().text,
        "  2999\t2999\n  3000\t3000\n[lines 2999-3000 of 3000; this is the end]"
    );
}

/// SES-5: a session of version 0.1 is forked, and deleted with everything that belongs to it.
#[test]
fn earlier_sessions_are_forked_and_deleted() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("forked")]);
    install(&workspace);
    let forked = workspace
        .run(&["exec", "--resume", "compacted", "--fork", "Continue."])
        .output();
    assert_eq!(forked.assert_code(0).stdout, "forked\n");
    sim.assert_valid();
    assert_has_all(
        &export(&workspace, "compacted"),
        &converted_export("compacted"),
        "compacted",
    );
    let deleted = workspace.run(&["sessions", "delete", "--yes", "tools"]).output();
    deleted.assert_code(0);
    let outputs = fs::read_dir(workspace.home().join("state/outputs")).unwrap();
    assert_eq!(outputs.count(), 0);
}

/// MSG-2, SES-5: every export of version 0.1 is imported, and the imported session continues.
#[test]
fn earlier_exports_are_imported() {
    for (name, _, _, sent) in SESSIONS {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("went on")]);
        // An imported session keeps its folder, and `--continue` looks for sessions of the current one.
        let mut moved = earlier_export(name);
        moved["session"]["place"] = json!(workspace.path());
        let file = workspace.write("export.json", &moved.to_string());
        let file = file.display().to_string();
        let output = workspace.run(&["sessions", "import", &file]).output();
        let id = output.assert_code(0).stdout.trim().to_owned();
        let (now, then) = (export(&workspace, &id), earlier_export(name));
        let count = |record: &Value| record["entries"].as_array().unwrap().len();
        assert!(count(&now) >= count(&then), "{name}");
        let output = workspace.run(&["exec", "--continue", "Continue."]).output();
        assert_eq!(output.assert_code(0).stdout, "went on\n", "{name}");
        sim.assert_valid();
        let request = sim.requests().pop().unwrap();
        let request = String::from_utf8_lossy(&request.raw).into_owned();
        for text in *sent {
            assert!(request.contains(text), "{name}: `{text}` is missing\n{request}");
        }
    }
}
