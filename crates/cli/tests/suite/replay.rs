//! Offline replay of sessions.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Output, WIRES, Workspace};

use super::support::with_replies;

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

fn session(workspace: &Workspace) -> String {
    let listed = run(workspace, &["sessions", "list", "--json"]);
    listed.json()[0]["id"].as_str().unwrap().to_owned()
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::call("bash", json!({"command": "echo one"}))
            .thinking("let me see")
            .and_call("write_file", json!({"path": "a.txt", "content": "x"})),
        Reply::text("").fault(Fault::status(429)),
        Reply::call("read_file", json!({"path": "nothing.txt"})),
        Reply::call("no_such_tool", json!({})),
        Reply::raw_call("bash", "{\"command\": \"l"),
        Reply::text("first answer"),
        Reply::call(
            "todo",
            json!({"items": [{"content": "later", "status": "pending"}]}),
        ),
        Reply::text("too early"),
        Reply::call(
            "todo",
            json!({"items": [{"content": "later", "status": "completed"}]}),
        ),
        Reply::text("second answer"),
    ]
}

/// OBS-2: whatever happened in a session, its replay sends byte for byte the same requests and produces the
/// same history, on every wire; no tool runs and no model is called.
#[test]
fn a_session_comes_out_the_same() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, replies());
        run(&workspace, &["exec", "first"]).assert_code(0);
        run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
        let asked = sim.count();
        fs::remove_file(workspace.path().join("a.txt")).unwrap();
        let replayed = run(&workspace, &["replay", &session(&workspace)]);
        let text = &replayed.assert_code(0).stdout;
        assert_eq!(text.matches("the same   ").count(), 2, "{wire:?}: {replayed}");
        assert!(
            text.contains(&format!(
                "{asked} of {asked} recorded requests replayed, byte for byte identical"
            )),
            "{wire:?}: {replayed}"
        );
        assert_eq!(sim.count(), asked, "nobody was asked");
        assert!(!workspace.has("a.txt"), "nothing was run");
        let part = run(&workspace, &["replay", &session(&workspace), "--to", "2"]);
        part.assert_code(0);
        assert!(
            part.stdout.contains("stopped here") && part.stdout.contains("2 of "),
            "{part}"
        );
    }
}

/// OBS-2: a compaction in the middle of a session is replayed as well.
#[test]
fn compaction_is_driven_again() {
    let long = "word ".repeat(3_000);
    let calls = (0..6).map(|number| {
        Reply::call(
            "write_file",
            json!({"path": format!("{number}.txt"), "content": long}),
        )
    });
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        calls.chain([Reply::text("an answer").forever()]),
    );
    let window = ["-c", "models.sim-1.context_window=16000"];
    let first = run(
        &workspace,
        &[&["exec", "-o", "stream-json"], &window[..], &["go"]].concat(),
    );
    assert!(
        !first.assert_code(0).events_of("compaction").is_empty(),
        "{first}"
    );
    let replayed = run(
        &workspace,
        &[&["replay"], &window[..], &[&session(&workspace)]].concat(),
    );
    replayed.assert_code(0);
    assert!(replayed.stdout.contains("the history is identical"), "{replayed}");
}

/// OBS-2: a difference is reported with its request and byte, and has its own exit code.
#[test]
fn a_difference_is_named() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("yes"), Reply::text("and no")]);
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
    let file = workspace.home().join("data/windlass.db");
    let changed = Command::new("python3")
        .arg("-c")
        .arg(format!(
            "import sqlite3; c = sqlite3.connect('{}'); c.execute(\"update entry set payload = replace(payload, 'first', 'worst')\"); c.commit()",
            file.display()
        ))
        .status();
    if !changed.is_ok_and(|status| status.success()) {
        return;
    }
    let replayed = run(&workspace, &["replay", &session(&workspace)]);
    replayed.assert_code(1);
    for text in ["request 1 differs from byte", "first", "worst"] {
        assert!(replayed.stdout.contains(text), "{text}: {replayed}");
    }
}

/// OBS-2: the recording contains no key, is readable only by its user, and ends at the size limit.
#[test]
fn what_is_kept_is_private() {
    let replies = [Reply::text("yes").forever()];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.use_sim_with(&sim, Protocol::Anthropic, "key_env = \"TEST_KEY\"\n");
    let exec = |args: &[&str]| {
        let run = workspace
            .run(args)
            .env("TEST_KEY", "sk-very-secret-key-1234567890");
        run.output()
    };
    exec(&["exec", "my key is sk-very-secret-key-1234567890, is it good?"]).assert_code(0);
    let replayed = exec(&["replay", &session(&workspace)]);
    replayed.assert_code(0);
    exec(&[
        "exec",
        "--continue",
        "-c",
        "session.record_max_mb=1",
        &"long ".repeat(20_000),
    ])
    .assert_code(0);
    exec(&["exec", "-c", "session.record=false", "not kept"]).assert_code(0);
    let none = exec(&["replay", &session(&workspace)]);
    none.assert_code(2).assert_says("has no recording");
    let missing = exec(&["replay", "nothing"]);
    missing.assert_code(2).assert_says("there is no session nothing");
}

/// OBS-2: a new session starts in the middle of another, optionally with a different input.
#[test]
fn a_session_goes_on_from_its_middle() {
    let replies = [
        Reply::call("bash", json!({"command": "echo one"})),
        Reply::text("first answer"),
        Reply::text("second answer"),
        Reply::text("another answer"),
    ];
    let (sim, workspace) = with_replies(Protocol::Responses, replies);
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
    let id = session(&workspace);
    let forked = run(&workspace, &["replay", &id, "--fork-at", "3"]);
    let new = forked.assert_code(0).stdout.lines().next().unwrap().to_owned();
    let exported = run(&workspace, &["sessions", "export", &new]);
    assert!(
        exported.stdout.contains("second") && !exported.stdout.contains("second answer"),
        "{exported}"
    );
    let edited = run(
        &workspace,
        &["replay", &id, "--fork-at", "3", "--edit", "something else"],
    );
    assert_eq!(edited.assert_code(0).stdout.trim(), "another answer");
    let outlines = sim.outlines();
    let last = outlines.last().unwrap();
    assert!(
        last.contains("something else") && !last.contains("user second"),
        "{last}"
    );
    sim.assert_valid();
    run(&workspace, &["replay", &id, "--fork-at", "9"])
        .assert_code(2)
        .assert_says("there is no request 9");
    run(&workspace, &["replay", &id, "--edit", "x"]).assert_code(2);
}

/// OBS-2: a session becomes a standalone test that fails when an answer changes.
#[test]
fn a_session_becomes_a_test() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second\nwith two lines"]).assert_code(0);
    let folder = workspace.path().join("fixture");
    let shown = folder.display().to_string();
    let id = session(&workspace);
    run(&workspace, &["sessions", "export", &id, "--fixture", &shown]).assert_code(0);
    run(&workspace, &["sessions", "export", &id, "--fixture", &shown])
        .assert_code(2)
        .assert_says("nothing was written");
    let test = || {
        Command::new("sh")
            .arg(folder.join("run.sh"))
            .env("WINDLASS", env!("CARGO_BIN_EXE_windlass"))
            .output()
            .unwrap()
    };
    let passed = test();
    let text = String::from_utf8_lossy(&passed.stderr);
    assert!(passed.status.success(), "{text}");
    fs::write(folder.join("turns/0002.answer"), "something else\n").unwrap();
    assert!(!test().status.success());
}

/// OBS-2, EVT-6: the exported JSON of a session is still complete with recording on.
#[test]
fn recording_does_not_change_exports() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("yes")]);
    run(&workspace, &["exec", "first"]).assert_code(0);
    let exported = run(
        &workspace,
        &["sessions", "export", "--format", "json", &session(&workspace)],
    );
    let object: Value = exported.assert_code(0).json();
    assert!(
        object["entries"]
            .as_array()
            .is_some_and(|entries| entries.len() >= 4),
        "{object}"
    );
}
