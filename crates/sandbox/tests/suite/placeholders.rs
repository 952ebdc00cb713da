//! Placeholders of absent protected paths, with several sandboxes, killed programs and the user's own files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use windlass_sandbox::{Access, CommandSandbox, Sandbox};
use windlass_testkit::{PATIENCE, eventually};

use super::sandbox::{Scene, helper, run_with};

fn run(sandbox: &Sandbox, scene: &Scene, script: &str) -> String {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    run_with(sandbox, "/bin/sh", &["-c", script], &scene.at("work"), &env).0
}

/// SAFE-4: a placeholder exists only while a sandbox needs it. A sandbox that finds one holds it as well, so it keeps its
/// protection when the other sandbox ends.
#[test]
fn placeholders_go_with_the_sandbox() {
    let scene = Scene::new();
    let sandbox = |scene: &Scene| Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox");
    let (first, second) = (sandbox(&scene), sandbox(&scene));
    assert_eq!(scene.names(), [".env", ".git", ".mcp", ".windlass"]);
    drop(first);
    assert_eq!(scene.names(), [".env", ".git", ".mcp", ".windlass"]);
    let script = "mkdir .mcp/x || rmdir .mcp; ls -A .mcp";
    assert!(run(&second, &scene, script).contains("Read-only file system"));
    drop(second);
    assert_eq!(scene.names(), [".env", ".git"]);
}

/// SAFE-10: the placeholders of a program that was killed go with it, unless another sandbox needs them.
#[test]
fn placeholders_of_a_killed_program_are_removed() {
    let scene = Scene::new();
    let policy = serde_json::to_string(&scene.policy()).expect("a policy");
    let kill = || {
        let mut program = Command::new(helper())
            .args([
                "run",
                &policy,
                "--",
                "/bin/sh",
                "-c",
                "echo ready; exec sleep 600",
            ])
            .current_dir(scene.at("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let mut line = [0; 6];
        let output = program.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut line).expect("a command");
        assert_eq!(scene.names(), [".env", ".git", ".mcp", ".windlass"]);
        program.kill().expect("an end");
        program.wait().expect("an end");
    };
    kill();
    assert!(eventually(PATIENCE, || scene.names() == [".env", ".git"]));
    let sandbox = Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox");
    kill();
    let script = "for i in 1 2 3 4 5; do sleep 0.1; mkdir .mcp/x .windlass/x; done";
    let output = run(&sandbox, &scene, script);
    assert_eq!(output.matches("Read-only file system").count(), 10, "{output}");
    assert_eq!(scene.names(), [".env", ".git", ".mcp", ".windlass"]);
}

/// SAFE-10: what a killed program left behind is removed by the next sandbox; what the user made meanwhile stays.
#[test]
fn placeholders_that_were_left_behind_are_removed() {
    let scene = Scene::new();
    for name in ["work/.mcp", "work/.windlass"] {
        fs::create_dir(scene.at(name)).expect("a folder");
    }
    let mark = UNIX_EPOCH + Duration::from_secs(0x5749_4e44);
    let left = fs::File::open(scene.at("work/.windlass")).expect("a folder");
    left.set_modified(mark).expect("a mark");
    drop(Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox"));
    assert_eq!(scene.names(), [".env", ".git", ".mcp"]);
}

/// SAFE-10: when a command could not remove a placeholder, as `git clean` tries, the result says what it is.
#[test]
fn busy_placeholders_are_explained() {
    let scene = Scene::new();
    let sandbox = CommandSandbox::with_helper(scene.policy(), &helper());
    let hint = |output: &str| sandbox.hint(&Access::default(), output).unwrap_or_default();
    let placeholder = "warning: failed to remove .mcp/: Device or resource busy";
    assert!(hint(placeholder).contains("placeholders of the sandbox"));
    assert!(!hint("rm: cannot remove 'x': Device or resource busy\nsee .mcp").contains("placeholders"));
}

/// SAFE-10: a path stays protected after another program removed its placeholder.
#[test]
fn a_removed_placeholder_is_replaced() {
    let scene = Scene::new();
    let sandbox = Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox");
    let write = || run(&sandbox, &scene, "mkdir -p .mcp/x");
    assert!(write().contains("Read-only file system"));
    fs::remove_dir(scene.at("work/.mcp")).expect("a placeholder");
    assert!(write().contains("Read-only file system"));
    drop(sandbox);
    assert_eq!(scene.names(), [".env", ".git"]);
}
