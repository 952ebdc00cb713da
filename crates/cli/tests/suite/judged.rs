//! Calls of one reply that change the meaning of the calls after them. Each is judged directly before it runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_core::tool::{ExecutionContext, Person, Progress, ToolContext};
use windlass_sandbox::{CommandSandbox, SandboxPolicy, child_environment};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};
use windlass_tools::{ToolsConfig, builtin};

use super::support::{elsewhere, with_replies};

/// Runs a reply of two calls. The temporary folder of the run is inside the project, so that nothing outside is
/// writable.
fn two_calls(first: &str, then: (&str, Value), more: &[&str]) -> (Workspace, Output) {
    let (tool, arguments) = then;
    let reply = Reply::call("bash", json!({ "command": first })).and_call(tool, arguments);
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [reply, Reply::text("done")]);
    let temp = workspace.path().join("temp");
    fs::create_dir_all(&temp).unwrap();
    for folder in ["inside", "secrets"] {
        fs::create_dir(workspace.path().join(folder)).unwrap();
    }
    workspace.write("write.sh", "echo written > link/x\n");
    let run = workspace
        .run(&["exec", "-o", "stream-json", "go"])
        .env("TMPDIR", &temp.display().to_string());
    let output = run.args(more).output();
    (workspace, output)
}

fn outside() -> (TempDir, String) {
    let folder = elsewhere();
    let path = folder.path().canonicalize().unwrap().display().to_string();
    (folder, path)
}

fn results(output: &Output) -> Vec<Value> {
    output.events_of("tool_result")
}

/// LOOP-18, SAFE-5: a call whose target the call before it moved outside is judged where it leads when it runs: it asks,
/// and without a person nothing is written outside.
#[test]
fn a_link_made_by_the_call_before_is_followed() {
    let calls: [(&str, Value); 3] = [
        ("write_file", json!({"path": "link/x", "content": "written"})),
        ("bash", json!({"command": "echo written > link/x"})),
        ("bash", json!({"command": "echo written > link/x; sh write.sh"})),
    ];
    for call in calls {
        let (folder, path) = outside();
        let (_, output) = two_calls(&format!("ln -s {path} link"), call.clone(), &[]);
        let results = results(&output);
        assert_eq!(results[0]["is_error"], false, "{output}");
        assert_eq!(results[1]["is_error"], true, "{call:?}: {output}");
        let asked = output.events_of("permission_request");
        assert_eq!(asked.len(), 1, "{call:?}: {output}");
        assert!(
            asked[0]["reasons"].to_string().contains("outside the workspace"),
            "{call:?}: {output}"
        );
        assert!(!folder.path().join("x").exists(), "{call:?}: {output}");
        // With a person who allows everything the same calls write, so the test can fail.
        let (folder, path) = outside();
        let open = ["--mode", "full", "-c", "security.allowed_paths=[\"/\"]"];
        let (_, output) = two_calls(&format!("ln -s {path} link"), call.clone(), &open);
        assert!(folder.path().join("x").exists(), "{call:?}: {output}");
    }
}

/// LOOP-18: a deny rule holds for the file that a path leads to after the calls before it.
#[test]
fn a_rule_holds_for_the_moved_target() {
    let call = ("write_file", json!({"path": "link/x", "content": "written"}));
    let rule = "security.deny=[\"write_file(secrets/*)\"]";
    let (workspace, output) = two_calls("ln -s secrets link", call.clone(), &["-c", rule]);
    let text = results(&output)[1]["content"].to_string();
    assert!(
        text.contains("the rule `write_file(secrets/*)` forbids"),
        "{output}"
    );
    assert!(!workspace.has("secrets/x"), "{output}");
    let (workspace, output) = two_calls("ln -s inside link", call, &["-c", rule]);
    assert!(workspace.has("inside/x"), "{output}");
}

/// LOOP-18, SAFE-4: a command runs with the access it was judged with: a link that is turned around between the
/// judgement and the start does not open the sandbox.
#[tokio::test]
async fn a_command_runs_with_the_access_it_was_judged_with() {
    let root = tempfile::tempdir().unwrap();
    let (folder, path) = outside();
    let work = root.path().canonicalize().unwrap();
    fs::create_dir(work.join("inside")).unwrap();
    symlink("inside", work.join("link")).unwrap();
    let policy = SandboxPolicy {
        read: vec!["/".into()],
        write: vec![work.clone()],
        ..SandboxPolicy::default()
    };
    let config = ToolsConfig {
        workspace: windlass_sandbox::Workspace::new(&work, None),
        sandbox: Arc::new(CommandSandbox::with_helper(
            policy,
            Path::new(env!("CARGO_BIN_EXE_windlass")),
        )),
        ..ToolsConfig::default()
    };
    let execution = Arc::new(ExecutionContext {
        cwd: work.clone(),
        env: child_environment(std::env::vars(), &work, "s"),
        session: None,
    });
    let command = json!({"command": "echo written > link/x; echo ended"}).to_string();
    let call = Arc::clone(builtin(&config).get("bash").unwrap())
        .prepare(&command)
        .unwrap();
    assert!(call.reasons.is_empty(), "{:?}", call.reasons);
    fs::remove_file(work.join("link")).unwrap();
    symlink(&path, work.join("link")).unwrap();
    let context = ToolContext {
        call_id: "c".into(),
        cancel: Default::default(),
        execution,
        progress: Progress::none(),
        person: Person::nobody(),
        confirmed: false,
    };
    let output = call.run(context).await.unwrap();
    assert!(output.content.contains("ended"), "{}", output.content);
    assert!(!folder.path().join("x").exists(), "{}", output.content);
}
