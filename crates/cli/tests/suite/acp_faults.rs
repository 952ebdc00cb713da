//! Editors that misbehave: they do not answer, do not read, or go away.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sim::Reply;
use windlass_testkit::{Editor, PATIENCE, Signal, eventually, processes_with};

use super::acp::{editor, endless, is_text};

fn asking() -> [Reply; 2] {
    let command = json!({ "command": "curl -s http://a.localhost:9/" });
    [Reply::call("bash", command), Reply::text("done")]
}

/// ACP-1: a request for permission that is never answered is freed by a cancellation, and withdrawn.
#[test]
fn a_silent_client_is_freed_by_cancel() {
    let (_sim, workspace, mut editor) = editor(json!({}), asking());
    let session = editor.open(workspace.path());
    editor.answering(|_| None);
    let id = editor.ask(&session, "go");
    while editor.asked.is_empty() {
        editor.receive();
    }
    editor.notify("session/cancel", json!({ "sessionId": session }));
    let mut withdrawn = Value::Null;
    let answer = loop {
        let message = editor.receive();
        if message["method"] == "$/cancel_request" {
            withdrawn = message["params"]["requestId"].clone();
        }
        if message["id"] == id && message.get("method").is_none() {
            break message;
        }
    };
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    if withdrawn.is_null() {
        withdrawn = editor.receive()["params"]["requestId"].clone();
    }
    assert_eq!(withdrawn, editor.asked[0]["id"]);
    // A late answer changes nothing.
    let late =
        json!({ "jsonrpc": "2.0", "id": withdrawn, "result": { "outcome": { "outcome": "cancelled" } } });
    editor.line(&late.to_string());
    assert_eq!(editor.prompt(&session, "/mode"), "end_turn");
    editor.end().assert_code(0);
}

/// ACP-1: closing the session frees it too.
#[test]
fn a_silent_client_is_freed_by_close() {
    let (_sim, workspace, mut editor) = editor(json!({}), asking());
    let session = editor.open(workspace.path());
    editor.answering(|_| None);
    let id = editor.ask(&session, "go");
    while editor.asked.is_empty() {
        editor.receive();
    }
    editor.call("session/close", json!({ "sessionId": session }));
    assert_eq!(editor.wait(id).unwrap()["stopReason"], "cancelled");
    editor.end().assert_code(0);
}

/// ACP-2: a client that cannot ask is no approver: the call is denied, and nothing waits.
#[test]
fn a_client_that_cannot_ask_denies() {
    let (sim, workspace, mut editor) = editor(json!({}), asking());
    let session = editor.open(workspace.path());
    editor.answering(|_| Some(Err(json!({ "code": -32601, "message": "no such method" }))));
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let told = editor.text_of("agent_thought_chunk");
    assert!(told.contains("nobody could be asked: no such method"), "{told}");
    assert_eq!(sim.count(), 1);
    // An outcome that cancels stops the turn.
    editor.answering(|_| Some(Ok(json!({ "outcome": { "outcome": "cancelled" } }))));
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (SHUTDOWN-001): a client that goes away in the middle of a turn stops it, and leaves no process.
#[test]
fn shutdown_001_a_client_that_goes_away() {
    let marker = format!("62.{}", std::process::id());
    let command = json!({ "command": format!("sleep {marker}") });
    for is_killed in [false, true] {
        let (_sim, workspace, mut editor) = editor(json!({}), [Reply::call("bash", command.clone())]);
        let session = editor.open(workspace.path());
        editor.ask(&session, "go");
        assert!(
            eventually(PATIENCE, || !processes_with(&marker).is_empty()),
            "it runs"
        );
        let since = Instant::now();
        if is_killed {
            editor.process().signal(Signal::TERM);
        }
        editor.end().assert_code(0);
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
        assert!(
            eventually(PATIENCE, || processes_with(&marker).is_empty()),
            "nothing is left"
        );
        let list = workspace.run(&["sessions", "list"]).output();
        assert!(list.stdout.contains("canceled"), "{list}");
    }
}

/// ACP-3 (SHUTDOWN-001): the process ends when its input ends, whatever it was doing.
#[test]
fn shutdown_001_the_input_ends() {
    let (_sim, workspace, mut editor) = editor(json!({}), [endless()]);
    let session = editor.open(workspace.path());
    editor.ask(&session, "go");
    editor.wait_for_update(is_text);
    editor.end().assert_code(0);
    let (_sim, _workspace, editor) = super::acp::editor(json!({}), []);
    editor.end().assert_code(0);
}

/// ACP-1: sessions in several folders run at the same time, each with its own updates.
#[test]
fn several_sessions_at_once() {
    let replies: Vec<Reply> = (0..4)
        .map(|number| {
            let when = windlass_sim::When::new().user_contains(&format!("task {number}"));
            Reply::text(&format!("answer {number}")).when(when)
        })
        .collect();
    let (_sim, workspace, mut editor) = editor(json!({}), replies);
    let sessions: Vec<String> = (0..4)
        .map(|number| {
            let folder = workspace.path().join(format!("sub{number}"));
            std::fs::create_dir_all(&folder).unwrap();
            editor.open(folder)
        })
        .collect();
    let asked: Vec<u64> = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| editor.ask(session, &format!("task {number}")))
        .collect();
    for id in asked {
        assert_eq!(editor.wait(id).unwrap()["stopReason"], "end_turn");
    }
    for (number, session) in sessions.iter().enumerate() {
        let said: String = editor
            .updates
            .iter()
            .filter(|(of, update)| of == session && is_text(update))
            .filter_map(|(_, update)| update["content"]["text"].as_str())
            .collect();
        assert_eq!(said, format!("answer {number}"));
    }
    editor.end().assert_code(0);
}

/// ACP-1: standard output carries only the protocol; a wrong option is reported on standard error.
#[test]
fn problems_go_to_standard_error() {
    let workspace = super::support::workspace();
    workspace.config("provider = \"sim\"\n");
    let output = workspace.run(&["acp", "--mode", "nonsense"]).stdin("").output();
    assert_ne!(output.code, Some(0));
    assert!(
        output.stdout.is_empty() && output.stderr.contains("nonsense"),
        "{output}"
    );
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let session = editor.open(workspace.path());
    editor.prompt(&session, "hello");
    editor.end().assert_code(0);
}
