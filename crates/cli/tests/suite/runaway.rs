//! Runaway commands: they are stopped before the machine, and the session goes on.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::processes_with;

use super::support::{results, with_replies};

fn call(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command, "write": true }))
}

/// SAFE-10: a command whose processes use too much memory together is killed with all of them, and the result says
/// why; memory that they share counts once.
#[test]
fn too_much_memory_ends_the_command() {
    let mark = format!("5301.{}", std::process::id());
    let hog = format!("python3 -c 'import time; x = b\"x\" * 60_000_000; time.sleep({mark})'");
    let several = format!("echo begun; for i in 1 2 3 4; do {hog} & done; (setsid {hog} &); wait");
    let shared = "python3 -c 'import os, time\nx = b\"x\" * 90_000_000\nfor i in range(4):\n \
                  if os.fork() == 0: time.sleep(2); os._exit(0)\nfor i in range(4): os.wait()\nprint(\"all sh\" + \"ared\")'";
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [call(&several), call(shared), Reply::text("done")],
    );
    let started = Instant::now();
    let args = ["exec", "go", "--mode", "full", "-c", "security.max_memory_mb=200"];
    let output = workspace.run(&args).output();
    output.assert_code(0);
    assert!(started.elapsed() < Duration::from_secs(30), "{output}");
    let results = results(&sim);
    for text in ["begun", "200.0 MB", "security.max_memory_mb", "signal KILL"] {
        assert!(results[0].contains(text), "{text}: {}", results[0]);
    }
    assert!(results[1].contains("all shared"), "{}", results[1]);
    assert_eq!(processes_with(&mark), [0_u32; 0]);
}

/// SAFE-10: a background job that uses too much memory ends, and says why.
#[test]
fn too_much_memory_ends_a_job() {
    let hog = "python3 -c 'import time; x = b\"x\" * 120_000_000; time.sleep(60)'";
    let replies = [
        Reply::call(
            "bash",
            json!({ "command": hog, "write": true, "background": true }),
        ),
        Reply::call(
            "bash_job",
            json!({ "action": "read", "job": "job-1", "wait_secs": 20 }),
        ),
        Reply::text("done"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let args = ["exec", "go", "--mode", "full", "-c", "security.max_memory_mb=100"];
    workspace.run(&args).output().assert_code(0);
    let results = results(&sim).concat();
    assert!(results.contains("security.max_memory_mb"), "{results}");
}

/// SAFE-10: `windlass sandbox` has the same limit.
#[test]
fn the_sandbox_command_has_the_limit() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let hog = "import time; x = b'x' * 120_000_000; time.sleep(60)";
    let args = [
        "sandbox",
        "-c",
        "security.max_memory_mb=100",
        "--",
        "python3",
        "-c",
        hog,
    ];
    let output = workspace.run(&args).output();
    output.assert_code(137);
    output.assert_says("security.max_memory_mb");
}

