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

/// SUB-6: two coders that change the same line in parallel are told apart: the session hears about it while they run,
/// the first merge applies, the second reports the conflict and keeps your version and the copy.
#[test]
fn two_coders_collide() {
    let coder = |task: &str, word: &str| {
        [
            child(
                task,
                Reply::call(
                    "bash",
                    json!({"command": format!("echo {word} > notes.txt; echo {word} > {word}.txt")}),
                ),
            ),
            // Long enough that both have changed the file when the other one's next step ends.
            child(task, Reply::call("bash", json!({"command": "sleep 6"}))),
            child(task, Reply::text("changed")),
        ]
    };
    let mut replies = Vec::new();
    replies.extend(coder("say left;", "left"));
    replies.extend(coder("say right;", "right"));
    replies.push(
        Reply::call(
            "agent",
            json!({"task": "say left;", "type": "coder", "name": "one"}),
        )
        .and_call(
            "agent",
            json!({"task": "say right;", "type": "coder", "name": "two"}),
        ),
    );
    replies.push(Reply::text("end"));
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.write("notes.txt", "one\n");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    let warnings = output.events_of("warning");
    let told = "several agents change the same files: notes.txt";
    assert!(
        warnings.iter().any(|warning| warning["message"] == told),
        "{output}"
    );
    let said = workspace
        .run(&["--plain", "--continue"])
        .stdin("/agents merge one\n/agents merge two\n")
        .output();
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(text.contains("Merged 2 files; /undo takes it back."), "{text}");
    assert!(
        text.contains("Conflicts; your version stays, and the agent's copy is kept:\n  notes.txt: "),
        "{text}"
    );
    assert_eq!(
        (workspace.read("notes.txt"), workspace.read("right.txt")),
        ("left\n".into(), "right\n".into())
    );
    let rows = ledger(&workspace);
    assert!(
        rows[0]["worktree"].is_null() && rows[1]["worktree"].is_string(),
        "{rows:?}"
    );
}

/// SUB-5, SUB-6: a coder that a limit refuses gets no copy of the files, also if it is called at the same time as the
/// one that reaches the limit.
#[test]
fn a_refused_coder_has_no_copy() {
    let work = || {
        child(
            "wait a bit",
            Reply::call("bash", json!({"command": "echo x > new.txt"})),
        )
    };
    let replies = vec![
        work(),
        child("wait a bit", Reply::text("done")),
        Reply::call("agent", json!({"task": "wait a bit", "type": "coder"}))
            .and_call("agent", json!({"task": "wait a bit", "type": "coder"}))
            .and_call("agent", json!({"task": "wait a bit", "type": "coder"})),
        Reply::text("end"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.write("notes.txt", "one\n");
    let output = workspace
        .run(&STREAM)
        .args(&["-c", "agents.max_agents=1", "go"])
        .output();
    output.assert_code(0);
    let refused = results(&output);
    let refused = refused
        .iter()
        .filter(|text| text.contains("agents.max_agents is 1"));
    assert_eq!(refused.count(), 2, "{output}");
    let rows = ledger(&workspace);
    assert_eq!(rows.len(), 1);
    // The folder of all copies, above that of this one.
    let copy = std::path::Path::new(rows[0]["worktree"].as_str().unwrap());
    let all = copy.ancestors().nth(3).unwrap();
    assert!(all.ends_with("state-worktrees"), "{}", all.display());
    assert_eq!(std::fs::read_dir(all).unwrap().count(), 1);
}

/// SUB-7: a coder whose unchanged copy was removed gets a new one, from the files as they are then, when it continues.
#[test]
fn a_resumed_coder_has_a_copy_again() {
    let replies = vec![
        child(
            "write it now",
            Reply::call("bash", json!({"command": "cat late.txt > copy.txt"})),
        ),
        child("write it now", Reply::text("written")),
        child("only look", Reply::text("seen")),
        Reply::call("agent", json!({"task": "only look", "type": "coder"})),
        Reply::call("bash", json!({"command": "echo late > late.txt"})),
        Reply::call("agent_send", json!({"agent": "1", "message": "write it now"})),
        Reply::call("agent_wait", json!({})),
        Reply::text("end"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.write("notes.txt", "one\n");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    let results = results(&output);
    assert!(results[3].starts_with("written"), "{output}");
    assert!(!workspace.has("copy.txt"));
    let row = &ledger(&workspace)[0];
    let copy = std::path::Path::new(row["worktree"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(copy.join("copy.txt")).unwrap(), "late\n");
}
