//! Copies of the files in which sub-agents write.

use serde_json::json;
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::SimServer;

use super::agents::{STREAM, child, ledger, results, with};
use super::support::workspace;

/// SUB-6: a coder works in its own copy, uncommitted files included; the sandbox keeps it there; its result carries the
/// diff; `/agents merge` is one checkpoint that `/undo` takes back.
#[test]
fn a_coder_has_its_own_copy() {
    let workspace_path = workspace();
    let inside = workspace_path.path().join("notes.txt").display().to_string();
    let replies = vec![
        child(
            "change it",
            Reply::call(
                "bash",
                json!({"command": format!("echo two >> notes.txt; echo spoiled > {inside}")}),
            ),
        ),
        child(
            "change it",
            Reply::call("write_file", json!({"path": "new.txt", "content": "made\n"})),
        ),
        child("change it", Reply::text("changed")),
        child("change nothing", Reply::text("nothing to do")),
        Reply::call("agent", json!({"task": "change it", "type": "coder"})),
        Reply::call("agent", json!({"task": "change nothing", "type": "coder"})),
        Reply::text("end"),
    ];
    let sim = SimServer::script(replies.into_iter().fold(Script::new(), Script::reply));
    let workspace = workspace_path;
    workspace.use_sim_with(&sim, Protocol::Anthropic, "");
    workspace.write("notes.txt", "one\n");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    let results = results(&output);
    assert!(
        results[0].contains("+two") && results[0].contains("+made"),
        "{}",
        results[0]
    );
    assert!(results[0].contains("/agents merge 1"), "{}", results[0]);
    assert_eq!(workspace.read("notes.txt"), "one\n", "the original is untouched");
    assert!(!workspace.has("new.txt"));
    let rows = ledger(&workspace);
    assert!(rows[0]["worktree"].is_string(), "{rows:?}");
    assert!(
        rows[1]["worktree"].is_null(),
        "an unchanged copy is gone: {rows:?}"
    );
    let said = workspace
        .run(&["--plain", "--continue"])
        .stdin("/agents merge 1\n/agents merge 1\n")
        .output();
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(text.contains("Merged 2 files; /undo takes it back."), "{text}");
    assert!(text.contains("agent 1 coder has no copy of the files"), "{text}");
    assert_eq!(
        (workspace.read("notes.txt"), workspace.read("new.txt")),
        ("one\ntwo\n".into(), "made\n".into())
    );
    workspace.run(&["undo"]).output().assert_code(0);
    assert_eq!(workspace.read("notes.txt"), "one\n");
    assert!(!workspace.has("new.txt"));
}

/// SUB-6, SAFE-10: a copy with a file that another program would run by itself is not merged, and stays.
#[test]
fn a_copy_with_settings_of_an_editor_is_not_merged() {
    let script = "mkdir -p part/.vscode; echo '{}' > part/.vscode/tasks.json; echo fine > fine.txt\n";
    let replies = vec![
        child(
            "change it",
            Reply::call("write_file", json!({"path": "make.sh", "content": script})),
        ),
        child("change it", Reply::call("bash", json!({"command": "sh make.sh"}))),
        child("change it", Reply::text("changed")),
        Reply::call("agent", json!({"task": "change it", "type": "coder"})),
        Reply::text("end"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.run(&STREAM).arg("go").output().assert_code(0);
    let said = workspace
        .run(&["--plain", "--continue"])
        .stdin("/agents merge 1\n")
        .output();
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(text.contains("nothing was merged: it changes"), "{text}");
    assert!(!workspace.has("part") && !workspace.has("make.sh"));
    assert!(ledger(&workspace)[0]["worktree"].is_string());
}
