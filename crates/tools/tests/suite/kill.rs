//! Ending a call ends everything it started.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use windlass_core::tool::ToolError;
use windlass_tools::ToolsConfig;

use windlass_sandbox::process;

use crate::desk::{Desk, SOON, pids, runs, until};

/// A name, a command, and the number of processes it starts that write their pid to the file `pids`.
type Case = (&'static str, &'static str, usize);

/// Processes that are hard to end.
const STUBBORN: &[Case] = &[
    ("plain", "echo $$ >> pids; sleep 100; true", 1),
    (
        "a child and its child",
        "(echo $BASHPID >> pids; sleep 100; true) & echo $$ >> pids; wait",
        2,
    ),
    (
        "ignores TERM",
        "trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done",
        1,
    ),
    (
        "session of its own",
        "setsid bash -c 'echo $$ >> pids; sleep 100; true' & echo $$ >> pids; wait",
        2,
    ),
    (
        "session of its own, ignores TERM",
        "setsid bash -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.1; done' & wait",
        1,
    ),
    (
        "parent gone, environment gone, session of its own",
        "(env -i setsid bash -c 'echo $$ >> pids; while :; do sleep 0.1; done' &); echo $$ >> pids; sleep 100; true",
        2,
    ),
    (
        "group of its own",
        "set -m; bash -c 'echo $$ >> pids; sleep 100; true' & wait",
        1,
    ),
];

/// LOOP-8: a cancelled call returns immediately with the output so far, and its whole tree ends soon after.
#[tokio::test]
async fn cancel_ends_the_tree() {
    let cases: JoinSet<()> = STUBBORN.iter().map(|case| canceled(*case)).collect();
    cases.join_all().await;
}

async fn canceled((name, command, count): Case) {
    let desk = Desk::new();
    let call = desk
        .prepare("bash", &json!({ "command": format!("echo begun; {command}") }))
        .expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    let pids = pids(&desk.path("pids"), count).await;
    until("the output is there", || desk.live().contains("begun")).await;
    assert!(pids.iter().all(|pid| runs(*pid)), "{name}");
    let canceled = Instant::now();
    desk.cancel.cancel();
    let result = running.await.expect("no panic");
    let returned = canceled.elapsed();
    match result {
        Err(ToolError::Canceled(text)) => assert_eq!(text, "begun\n", "{name}"),
        other => panic!("{name}: {other:?}"),
    }
    until(name, || !pids.iter().any(|pid| runs(*pid))).await;
    // Far above the promised time, for busy machines; far below the duration of a hang.
    assert!(returned < SOON, "{name}: returned after {returned:?}");
}

/// TOOL-4: the same trees end on timeout.
#[tokio::test]
async fn a_timeout_ends_the_tree() {
    let cases: JoinSet<()> = STUBBORN.iter().map(|case| timed_out(*case)).collect();
    cases.join_all().await;
}

async fn timed_out((name, command, count): Case) {
    let config = ToolsConfig {
        command_timeout: Duration::from_secs(4),
        ..ToolsConfig::default()
    };
    let desk = Desk::with(&config);
    let file = desk.path("pids");
    let call = desk.call("bash", json!({ "command": command }));
    let (output, pids) = tokio::join!(call, pids(&file, count));
    let output = output.expect(name);
    assert!(
        output.content.ends_with("[timed out after 4 s]"),
        "{name}: {}",
        output.content
    );
    until(name, || !pids.iter().any(|pid| runs(*pid))).await;
}

/// LOOP-8: a dropped call ends its tree like a cancelled one.
#[tokio::test]
async fn a_dropped_call_ends_its_tree() {
    let desk = Desk::new();
    let command = "setsid bash -c 'echo $$ >> pids; sleep 100; true' & echo $$ >> pids; wait";
    let call = desk
        .prepare("bash", &json!({ "command": command }))
        .expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    let pids = pids(&desk.path("pids"), 2).await;
    running.abort();
    until("all have ended", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// LOOP-8: cancelling a call that waits for the output of a background process ends that process as well.
#[tokio::test]
async fn cancel_reaches_what_outlived_the_command() {
    let desk = Desk::new();
    // The noise keeps the call waiting for more.
    let command = "bash -c 'echo $$ >> pids; while :; do echo noise; sleep 0.05; done' &";
    let call = desk
        .prepare("bash", &json!({ "command": command }))
        .expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    let pids = pids(&desk.path("pids"), 1).await;
    until("there is output", || desk.live().contains("noise")).await;
    desk.cancel.cancel();
    let result = running.await.expect("no panic");
    // On a busy machine the call may have ended before; then the process was left running on purpose.
    if matches!(result, Err(ToolError::Canceled(_))) {
        until("it has ended", || !pids.iter().any(|pid| runs(*pid))).await;
    } else {
        desk_kill(&pids);
    }
}

/// LOOP-8: a call that is cancelled before it starts runs nothing.
#[tokio::test]
async fn a_canceled_call_does_not_start() {
    let desk = Desk::new();
    desk.cancel.cancel();
    let error = desk.error("bash", json!({ "command": "touch made" })).await;
    assert_eq!(error, ToolError::Canceled(String::new()));
    assert!(!desk.path("made").exists());
}

/// Name of the test below, for the process it starts.
const ALONE: &str = "kill::an_orphan_that_hides_everything_is_ended";
const ALONE_MARK: &str = "WINDLASS_TEST_ALONE";

/// LOOP-8: an orphan without marker, group, session, parent or pipe is still ended, because it was reparented
/// to us. Runs in a process of its own: adopting orphans, and the absence of other calls that could own them,
/// concern the whole process.
#[tokio::test]
async fn an_orphan_that_hides_everything_is_ended() {
    if std::env::var_os(ALONE_MARK).is_none() {
        let program = std::env::current_exe().expect("this program");
        let run = tokio::process::Command::new(program)
            .args([ALONE, "--exact"])
            .env(ALONE_MARK, "1")
            .output()
            .await;
        let output = run.expect("it runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        return;
    }
    process::adopt_orphans().expect("the kernel agrees");
    let desk = Desk::new();
    let hide = "(env -i setsid bash -c 'echo $$ >> pids; while :; do sleep 0.1; done' < /dev/null > /dev/null 2>&1 &)";
    let call = desk
        .prepare(
            "bash",
            &json!({ "command": format!("{hide}; echo $$ >> pids; sleep 100; true") }),
        )
        .expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    let pids = pids(&desk.path("pids"), 2).await;
    desk.cancel.cancel();
    assert!(matches!(
        running.await.expect("no panic"),
        Err(ToolError::Canceled(_))
    ));
    until("all have ended", || !pids.iter().any(|pid| runs(*pid))).await;
    assert!(process::settle(Duration::from_secs(10)).await);
    // The adopted processes were reaped as well.
    let left: Vec<&u32> = pids
        .iter()
        .filter(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn desk_kill(pids: &[u32]) {
    for pid in pids {
        let pid = i32::try_from(*pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .expect("a pid");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
