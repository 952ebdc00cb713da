//! The end of Windlass ends everything it started, and the resumed session says what that was.

use std::time::Duration;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Signal, eventually, processes_with};

use super::support::{with_replies, workspace};

/// Limit of SES-16.
const LIMIT: Duration = Duration::from_secs(2);

/// Ways in which a command may try to outlive the program, with the mark of its process.
fn escapes(mark: &str) -> Vec<String> {
    [
        "sleep MARK",
        "setsid sleep MARK",
        "(setsid -f sleep MARK >/dev/null 2>&1); sleep MARK",
        "nohup sleep MARK >/dev/null 2>&1 & wait",
        "trap '' TERM HUP INT; (trap '' TERM; sleep MARK) & sleep MARK",
        "sh -c 'sh -c \"sleep MARK & disown 2>/dev/null\" &'; sleep MARK",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  os.closerange(0,3); os.execvpe(\"sleep\",[\"sleep\",\"MARK\"],{\"PATH\":\"/usr/bin:/bin\"})\n os._exit(0)\ntime.sleep(MARK)'",
    ]
    .iter()
    .map(|script| script.replace("MARK", mark))
    .collect()
}

/// SES-16, LOOP-8: `kill -9` of Windlass ends every process of the running command, wherever it went.
#[test]
fn a_kill_ends_everything() {
    for (number, command) in escapes("4711").into_iter().enumerate() {
        let mark = format!("47{number}1.{}", std::process::id());
        let command = command.replace("4711", &mark);
        let replies = [Reply::call("bash", json!({ "command": command, "write": true }))];
        let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let run = workspace.run(&["exec", "--mode", "full", "go"]).start();
        let runs = eventually(Duration::from_secs(10), || !processes_with(&mark).is_empty());
        assert!(runs, "{command} does not run");
        run.signal(Signal::KILL);
        let ended = eventually(LIMIT, || processes_with(&mark).is_empty());
        assert!(ended, "{command} outlives Windlass: {:?}", processes_with(&mark));
        drop(run);
    }
}

/// SES-16: processes that a finished command left behind end with the program, also if it ends normally.
#[test]
fn nothing_is_left_behind() {
    let workspace = workspace();
    let mark = format!("4801.{}", std::process::id());
    for script in [
        "nohup sleep MARK >/dev/null 2>&1 & echo up",
        "setsid -f sleep MARK >/dev/null 2>&1; echo up",
        "(sleep MARK & disown) >/dev/null 2>&1; echo up",
    ] {
        let arguments = json!({ "command": script.replace("MARK", &mark), "write": true });
        let output = workspace
            .run(&["tools", "run", "bash", &arguments.to_string()])
            .output();
        output.assert_code(0);
        assert!(output.stdout.contains("up"), "{output}");
        let ended = eventually(LIMIT, || processes_with(&mark).is_empty());
        assert!(ended, "{script}: {:?}", processes_with(&mark));
    }
}

/// SES-16: the resumed session names the command and the job that ran when Windlass was killed, once.
#[test]
fn the_resumed_session_says_what_ran() {
    let mark = format!("4901.{}", std::process::id());
    let job = json!({ "command": format!("sleep {mark}; true job"), "background": true });
    let command = json!({ "command": format!("sleep {mark}; true command") });
    let replies = [
        Reply::call("bash", job),
        Reply::call("bash", command),
        Reply::text("resumed"),
        Reply::text("again"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let run = workspace.run(&["exec", "go"]).start();
    let both = || processes_with(&mark).len() >= 4;
    assert!(
        eventually(Duration::from_secs(15), both),
        "{:?}",
        processes_with(&mark)
    );
    run.signal(Signal::KILL);
    assert!(eventually(LIMIT, || processes_with(&mark).is_empty()));
    drop(run);
    let resumed = workspace.run(&["exec", "--continue", "and now?"]).output();
    resumed.assert_code(0);
    for text in ["job-1", "true job", "true command"] {
        resumed.assert_says(text);
    }
    let again = workspace.run(&["exec", "--continue", "and now?"]).output();
    again.assert_code(0);
    assert!(!again.stderr.contains("job-1"), "{again}");
}

/// SAFE-10: a command that ends its supervisor or the launcher ends itself; the call says so, and the next
/// command runs in a new sandbox.
#[test]
fn a_launcher_that_dies_is_replaced() {
    for script in ["kill -9 $PPID; sleep 5", "kill -9 1; kill -9 $PPID; sleep 5"] {
        let call = |command: &str| Reply::call("bash", json!({ "command": command, "write": true }));
        let replies = [call(script), call("echo fine > a; cat a"), Reply::text("done")];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        workspace
            .run(&["exec", "--mode", "full", "go"])
            .output()
            .assert_code(0);
        let outlines = sim.outlines();
        assert!(
            outlines[1].contains("launcher ended"),
            "{script}: {}",
            outlines[1]
        );
        assert!(outlines[2].contains("fine"), "{script}: {}", outlines[2]);
        assert_eq!(workspace.read("a"), "fine\n");
    }
}
