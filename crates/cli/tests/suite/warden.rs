//! The warden of `windlass serve`: nothing that a session started outlives the server.

use std::fs;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{HttpServer, PATIENCE, Signal, eventually, processes_with};

use super::support::with_replies;

/// DIST-3: hooks and commands of a server end with it when it is killed, also those that left its group and session.
#[test]
fn a_killed_server_leaves_no_process_behind() {
    let mark = format!("{}.5", 80_000 + std::process::id());
    let command = format!("sleep {mark}; true");
    let replies = [
        Reply::call("bash", json!({ "command": command })),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let hook = format!("(setsid sleep {mark} > /dev/null 2>&1 &) ; sleep {mark}");
    let hooks = json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [
        { "type": "command", "command": hook, "async": true },
    ] }] });
    let path = workspace.user_home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, json!({ "hooks": hooks }).to_string()).unwrap();
    let run = workspace.run(&["serve", "--listen", "127.0.0.1:0", "--mode", "auto"]);
    let server = HttpServer::start(run);
    let session = server.session();
    server.say(&session, "go");
    let sleep = format!("sleep\0{mark}");
    assert!(
        eventually(PATIENCE, || processes_with(&sleep).len() >= 2),
        "the hook did not start"
    );
    server.running.signal(Signal::KILL);
    server.running.output();
    assert!(
        eventually(PATIENCE, || processes_with(&sleep).is_empty()),
        "a process is left running"
    );
}
