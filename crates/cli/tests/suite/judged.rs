//! Calls of one reply that change the meaning of the calls after them. Each is judged directly before it runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_core::tool::{CallModel, ExecutionContext, Person, Progress, ToolContext, ToolSet};
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
        model: CallModel::none(),
        confirmed: false,
        places: Arc::default(),
    };
    let output = call.run(context).await.unwrap();
    assert!(output.content.contains("ended"), "{}", output.content);
    assert!(!folder.path().join("x").exists(), "{}", output.content);
}

/// A project whose `link` leads to `inside`, `other` or outside of it.
struct Links {
    _root: TempDir,
    work: PathBuf,
    outside: PathBuf,
    _folder: TempDir,
}

impl Links {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (folder, path) = outside();
        let work = root.path().canonicalize().unwrap();
        for name in ["inside", "other"] {
            fs::create_dir(work.join(name)).unwrap();
            fs::write(work.join(name).join("x"), format!("of {name}\n")).unwrap();
        }
        fs::write(Path::new(&path).join("x"), "of outside\n").unwrap();
        let links = Self {
            _root: root,
            work,
            outside: path.into(),
            _folder: folder,
        };
        links.turn(0);
        links
    }

    /// Points the link at one of the folders, in one step.
    fn turn(&self, number: usize) {
        let outside = self.outside.display().to_string();
        let target = ["inside", "other", &outside][number % 3];
        let new = self.work.join(".new-link");
        let _ = fs::remove_file(&new);
        symlink(target, &new).unwrap();
        fs::rename(new, self.work.join("link")).unwrap();
    }

    fn tools(&self) -> ToolSet {
        let workspace = windlass_sandbox::Workspace::new(&self.work, None);
        builtin(&ToolsConfig {
            workspace: workspace.limited(std::slice::from_ref(&self.work), &[]).unwrap(),
            ..ToolsConfig::default()
        })
    }

    fn context(&self) -> ToolContext {
        ToolContext {
            call_id: "c".into(),
            cancel: Default::default(),
            execution: Arc::new(ExecutionContext {
                cwd: self.work.clone(),
                ..ExecutionContext::default()
            }),
            progress: Progress::none(),
            person: Person::nobody(),
            model: CallModel::none(),
            confirmed: false,
            places: Arc::default(),
        }
    }

    fn content(&self, folder: &str) -> String {
        let folder = match folder {
            "outside" => self.outside.clone(),
            name => self.work.join(name),
        };
        fs::read_to_string(folder.join("x")).unwrap()
    }
}

/// Calls of every tool that opens a file or a folder.
fn file_calls() -> Vec<(&'static str, Value)> {
    let patch = "*** Begin Patch\n*** Update File: link/x\n@@\n-of inside\n+new text\n*** End Patch\n";
    vec![
        ("read_file", json!({"path": "link/x"})),
        ("grep", json!({"pattern": "of", "path": "link"})),
        ("glob", json!({"pattern": "*", "path": "link"})),
        ("list_directory", json!({"path": "link"})),
        ("write_file", json!({"path": "link/x", "content": "new text\n"})),
        (
            "edit_file",
            json!({"path": "link/x", "old_string": "of", "new_string": "new text"}),
        ),
        ("apply_patch", json!({"patch": patch})),
    ]
}

/// SAFE-6, LOOP-18: a link that is turned around between the judgement of a file tool's call and its start makes the
/// call fail with a reason, and nothing is read or written.
#[tokio::test]
async fn a_file_is_opened_where_it_was_judged() {
    for (tool, arguments) in file_calls() {
        for (turn, works) in [(0, true), (1, false), (2, false)] {
            let links = Links::new();
            let tools = links.tools();
            let call = Arc::clone(tools.get(tool).unwrap())
                .prepare(&arguments.to_string())
                .unwrap();
            links.turn(turn);
            let result = call.run(links.context()).await;
            assert_eq!(result.is_ok(), works, "{tool} {turn}: {result:?}");
            if let Err(error) = result {
                assert!(
                    error.to_string().contains("Path changed after it was checked"),
                    "{tool}: {error}"
                );
                assert!(!error.to_string().contains("of other"), "{tool}: {error}");
            }
            assert_eq!(links.content("other"), "of other\n", "{tool}");
            assert_eq!(links.content("outside"), "of outside\n", "{tool}");
        }
    }
}

/// SAFE-6, LOOP-18: while a link is turned around all the time, random calls that were judged to be inside never read
/// or write anything but what they were judged by.
#[tokio::test(flavor = "multi_thread")]
async fn turning_links_open_nothing_else() {
    const ROUNDS: usize = 20_000;
    const WANTED: usize = 150;
    let links = Arc::new(Links::new());
    let stop = Arc::new(AtomicBool::new(false));
    let flipping = {
        let (links, stop) = (Arc::clone(&links), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                links.turn(number);
            }
        })
    };
    let tools = links.tools();
    let calls = file_calls();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        if ran + refused >= WANTED && ran > 0 {
            break;
        }
        // A small generator, so that a failure can be repeated.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (tool, arguments) = &calls[(seed >> 33) as usize % calls.len()];
        let call = Arc::clone(tools.get(tool).unwrap())
            .prepare(&arguments.to_string())
            .unwrap();
        if call.escalation.outside {
            std::thread::yield_now();
            continue;
        }
        let judged = call.subjects.last().unwrap().text().to_owned();
        let other = if judged.starts_with("inside") {
            "other"
        } else {
            "inside"
        };
        let before = links.content(other);
        match call.run(links.context()).await {
            Ok(output) => {
                ran += 1;
                let told = format!("{} {:?}", output.content, output.details);
                assert!(!told.contains("of outside"), "{tool} on {judged}: {told}");
                assert!(
                    !told.contains(&format!("of {other}")),
                    "{tool} on {judged}: {told}"
                );
            }
            Err(_) => refused += 1,
        }
        assert_eq!(links.content(other), before, "{tool} on {judged}");
        assert_eq!(links.content("outside"), "of outside\n", "{tool} on {judged}");
        for name in ["inside", "other"] {
            fs::write(links.work.join(name).join("x"), format!("of {name}\n")).unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    flipping.join().unwrap();
    // Refusals are certain in the test above.
    assert!(ran > 0, "{ran} ran, {refused} were refused");
}
