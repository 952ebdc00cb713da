//! Background commands: started, read, ended, and never left behind.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::permission::Subject;
use windlass_core::tool::{Category, ToolError};
use windlass_tools::{OutputStore, ToolsConfig};

use windlass_sandbox::process;

use crate::desk::{Desk, pids, runs, until};

fn begin(command: &str) -> Value {
    json!({ "command": command, "background": true })
}

fn read(job: &str) -> Value {
    json!({ "action": "read", "job": job })
}

/// Returns a command that waits until the file `name` exists.
fn wait_for(name: &str) -> String {
    format!("while [ ! -e {name} ]; do sleep 0.01; done")
}

/// Reads until the answer contains `text`. Returns everything read until then.
async fn read_until(desk: &Desk, job: &str, text: &str) -> String {
    answers_until(desk, job, text).await.concat()
}

/// Reads until the answers contain `text`, and returns each answer with a line end.
async fn answers_until(desk: &Desk, job: &str, text: &str) -> Vec<String> {
    let mut answers: Vec<String> = Vec::new();
    let reading = async {
        while !answers.concat().contains(text) {
            let arguments = json!({ "action": "read", "job": job, "wait_secs": 1 });
            answers.push(desk.text("bash_job", arguments).await + "\n");
        }
    };
    let in_time = tokio::time::timeout(crate::desk::SOON, reading).await;
    assert!(in_time.is_ok(), "no {text} in {answers:?}");
    answers
}

/// TOOL-9: a background command returns its first output, is read piece by piece, and reports how it ended.
#[tokio::test]
async fn a_job_is_started_read_and_ends() {
    let desk = Desk::new();
    let command = format!(
        "echo one; {}; echo two; {}; exit 3",
        wait_for("go"),
        wait_for("end")
    );
    let output = desk.call("bash", begin(&command)).await.expect("an answer");
    assert!(!output.failed);
    assert!(
        output.content.contains("[job-1: running for "),
        "{}",
        output.content
    );
    // On a busy machine the first line may come later.
    if !output.content.starts_with("one\n") {
        read_until(&desk, "job-1", "one").await;
    }
    let details = output.details.expect("details");
    assert_eq!(
        (&details["job"], &details["running"], &details["exit_code"]),
        (&json!("job-1"), &json!(true), &Value::Null)
    );
    let nothing = desk.text("bash_job", read("job-1")).await;
    assert!(
        nothing.starts_with("(no new output)\n[job-1: running for "),
        "{nothing}"
    );
    assert!(nothing.ends_with(" s; 4 B of output in total]"), "{nothing}");

    desk.put("go", "");
    let news = read_until(&desk, "job-1", "two").await;
    assert!(!news.contains("one"), "{news}");
    desk.put("end", "");
    let end = read_until(&desk, "job-1", "ended").await;
    assert!(end.contains("[job-1: ended with exit code 3 after "), "{end}");
    let again = desk.call("bash_job", read("job-1")).await.expect("an answer");
    assert!(again.content.starts_with("(no new output)\n[job-1: ended"));
    assert_eq!(again.details.expect("details")["exit_code"], 3);
    let killed = desk
        .text("bash_job", json!({ "action": "kill", "job": "job-1" }))
        .await;
    assert!(killed.starts_with("It had already ended."), "{killed}");
}

/// TOOL-9: a background command that ends immediately is answered like any other.
#[tokio::test]
async fn a_short_job_is_over_at_once() {
    let desk = Desk::new();
    for (number, command, failed, text) in [
        (1, "echo hi", false, "hi\n[job-1: ended with exit code 0 after "),
        (
            2,
            "exit 4",
            true,
            "(no output)\n[job-2: ended with exit code 4 after ",
        ),
        (
            3,
            "kill -KILL $$",
            true,
            "(no output)\n[job-3: ended with signal KILL after ",
        ),
    ] {
        let output = desk.call("bash", begin(command)).await.expect("an answer");
        // On a busy machine even these may take longer than the first look.
        if output.content.contains("running for") {
            read_until(&desk, &format!("job-{number}"), "ended").await;
            continue;
        }
        assert!(output.content.starts_with(text), "{}", output.content);
        assert_eq!(output.failed, failed, "{command}");
    }
    let list = desk.text("bash_job", json!({ "action": "list" })).await;
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[1].starts_with("job-2: exit 4 (ended with exit code 4 after "),
        "{list}"
    );
}

/// TOOL-9: ending a job ends its whole tree, and returns the rest of its output.
#[tokio::test]
async fn kill_ends_the_tree() {
    let desk = Desk::new();
    let command =
        "setsid bash -c 'echo $$ >> pids; while :; do sleep 0.1; done' & echo $$ >> pids; echo up; wait";
    desk.text("bash", begin(command)).await;
    let pids = pids(&desk.path("pids"), 2).await;
    assert!(pids.iter().all(|pid| runs(*pid)));
    let output = desk
        .call("bash_job", json!({ "action": "kill", "job": "job-1" }))
        .await
        .expect("an answer");
    assert!(
        output.content.contains("[job-1: ended with signal TERM after "),
        "{}",
        output.content
    );
    assert!(!pids.iter().any(|pid| runs(*pid)));
}

/// TOOL-9: processes that outlive a job still belong to it: their output is read, and they are ended with it.
#[tokio::test]
async fn what_outlives_a_job_belongs_to_it() {
    let desk = Desk::new();
    let command = "bash -c 'echo $$ >> pids; echo mine; while :; do sleep 0.1; done' & exit 0";
    let begun = desk.text("bash", begin(command)).await;
    let pids = pids(&desk.path("pids"), 1).await;
    let outlived = "ended with exit code 0, but a process it started still runs";
    if !begun.contains(outlived) {
        read_until(&desk, "job-1", outlived).await;
    }
    let end = desk
        .text("bash_job", json!({ "action": "kill", "job": "job-1" }))
        .await;
    assert!(end.contains("[job-1: ended with exit code 0 after "), "{end}");
    until("it has ended", || !runs(pids[0])).await;
}

/// TOOL-9: cancelling ends neither the job nor its output; the end of the session does.
#[tokio::test]
async fn a_job_ends_with_the_session_and_not_before() {
    let desk = Desk::new();
    let command = "echo $$ >> pids; setsid bash -c 'echo $$ >> pids; sleep 100; true' & wait";
    let call = desk.prepare("bash", &begin(command)).expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    let pids = pids(&desk.path("pids"), 2).await;
    desk.cancel.cancel();
    let output = running
        .await
        .expect("no panic")
        .expect("it was started all the same");
    assert!(output.content.contains("[job-1: running"), "{}", output.content);
    assert!(pids.iter().all(|pid| runs(*pid)));
    drop(desk);
    until("all have ended", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// TOOL-9, TOOL-4: there is no timeout unless one is requested.
#[tokio::test]
async fn a_time_limit_ends_a_job() {
    let desk = Desk::with(&ToolsConfig {
        command_timeout: Duration::from_millis(1),
        ..ToolsConfig::default()
    });
    let endless = "echo $$ >> pids; while :; do sleep 0.1; done";
    desk.text("bash", begin(endless)).await;
    let limited = json!({ "command": endless, "background": true, "timeout_secs": 4 });
    desk.text("bash", limited).await;
    let pids = pids(&desk.path("pids"), 2).await;
    let end = read_until(&desk, "job-2", "timed out").await;
    assert!(
        end.contains("[job-2: timed out after 4 s and was ended; "),
        "{end}"
    );
    assert!(!runs(pids[1]));
    assert!(runs(pids[0]), "it has no limit");
}

/// TOOL-9: at most sixteen jobs run, and the error lists the candidates to end.
#[tokio::test]
async fn jobs_are_counted() {
    let desk = Arc::new(Desk::new());
    let start = |number: usize| {
        let desk = Arc::clone(&desk);
        async move { desk.call("bash", begin(&format!("sleep 100 # {number}"))).await }
    };
    let begun = futures_join((0..20).map(start)).await;
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 16);
    match start(21).await {
        Err(ToolError::Permanent(text)) => {
            assert!(
                text.contains("16 background jobs") && text.contains("job-16: sleep 100 #"),
                "{text}"
            );
            assert_eq!(text.lines().count(), 17, "{text}");
        }
        other => panic!("{other:?}"),
    }
    desk.text("bash_job", json!({ "action": "kill", "job": "job-5" }))
        .await;
    assert!(start(22).await.is_ok());
}

async fn futures_join<F>(all: impl Iterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: tokio::task::JoinSet<F::Output> = all.collect();
    tasks.join_all().await
}

/// TOOL-9, SAFE-5: a job is judged like any command; reading is a read, ending is a write.
#[test]
fn jobs_are_judged() {
    let desk = Desk::new();
    for (command, category) in [("ls", Category::Read), ("git push", Category::Admin)] {
        let call = desk.prepare("bash", &begin(command)).expect("valid");
        assert_eq!(call.category, category);
        assert_eq!(call.subjects, [Subject::Command(command.to_owned())]);
    }
    assert!(
        desk.prepare("bash", &begin("rm -rf x"))
            .expect("valid")
            .blocked
            .is_some()
    );
    for (action, category) in [
        ("list", Category::Read),
        ("read", Category::Read),
        ("kill", Category::Write),
    ] {
        let call = desk.prepare("bash_job", &json!({ "action": action, "job": "job-1" }));
        assert_eq!(call.expect("valid").category, category);
    }
}

/// TOOL-1: an unknown job is named, and so is a missing argument.
#[tokio::test]
async fn bad_arguments_are_explained() {
    let desk = Desk::new();
    assert_eq!(
        desk.text("bash_job", json!({ "action": "list" })).await,
        "No background jobs."
    );
    for (arguments, words) in [
        (json!({ "action": "read" }), "`job` is missing"),
        (json!({ "action": "stop", "job": "job-1" }), "stop"),
        (
            read("job-1"),
            "There is no job `job-1`. No job was started since Windlass was; jobs end with it.",
        ),
    ] {
        let error = desk.error("bash_job", arguments).await.to_string();
        assert!(error.contains(words), "{error}");
    }
    desk.text("bash", begin("true")).await;
    let error = desk.error("bash_job", read("job-9")).await.to_string();
    assert!(error.ends_with("There are:\njob-1: true"), "{error}");
    let plain = json!({ "command": "echo hi", "background": null });
    assert_eq!(desk.text("bash", plain).await, "hi");
}

/// TOOL-9, TOOL-3: memory holds both ends of the unread output, and the store all of it, from the first byte
/// and while the job runs.
#[tokio::test]
async fn the_whole_output_of_a_job_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let desk = Desk::with(&ToolsConfig {
        outputs: Some(Arc::new(OutputStore::new(folder.path().join("outputs")))),
        max_command_output: 1000,
        ..ToolsConfig::default()
    });
    let command = format!("echo first; {}; seq 1 5000; {}", wait_for("go"), wait_for("end"));
    let begun = desk.call("bash", begin(&command)).await.expect("an answer");
    let id = begun.kept.expect("kept").id;
    assert!(id.starts_with("job-"), "{id}");
    desk.put("go", "");
    until("all of it was written", || {
        std::fs::read_to_string(folder.path().join("outputs").join(&id))
            .is_ok_and(|text| text.ends_with("\n5000\n"))
    })
    .await;
    // The disk comes before memory, so the last piece may need an answer of its own.
    let news = answers_until(&desk, "job-1", "\n5000\n").await;
    let left_out = format!(" bytes left out; read them with tool_output, id \"{id}\" …]\n");
    assert!(news.concat().contains(&left_out), "{news:?}");
    assert!(news.iter().all(|answer| answer.len() < 1500), "{news:?}");
    let page = desk.text("tool_output", json!({ "id": id, "limit": 2 })).await;
    assert_eq!(
        page,
        "     1\tfirst\n     2\t1\n[lines 1-2 of 5001; continue with offset=3]"
    );
    desk.put("end", "");
    read_until(&desk, "job-1", "ended").await;
}

/// TOOL-9: a read that waits ends when it is cancelled.
#[tokio::test]
async fn a_look_can_be_canceled() {
    let desk = Desk::new();
    desk.text("bash", begin("sleep 100")).await;
    let arguments = json!({ "action": "read", "job": "job-1", "wait_secs": 60 });
    let call = desk.prepare("bash_job", &arguments).expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    desk.cancel.cancel();
    let ended = tokio::time::timeout(crate::desk::SOON, running).await;
    let result = ended.expect("in time").expect("no panic");
    assert_eq!(result, Err(ToolError::Canceled(String::new())));
}

/// TOOL-9: programs that need a terminal end, and the model is told the reason; others are not affected.
#[tokio::test]
async fn there_is_no_terminal() {
    let note = "[there is no terminal and no stdin; use non-interactive options]";
    let desk = Desk::new();
    for (command, noted) in [
        ("stty size", true),
        ("echo 'the input device is not a tty' >&2; exit 1", true),
        ("true python3", false),
        ("cat", false),
        ("exit 1", false),
        ("vi_is_not_here() { :; }; echo fine", false),
    ] {
        let text = desk.text("bash", json!({ "command": command })).await;
        assert_eq!(text.ends_with(note), noted, "{command}: {text}");
    }
    desk.put("bin/python3", "#!/bin/sh\nexit 0\n");
    let text = desk.text(
        "bash",
        json!({ "command": "chmod +x bin/python3; PATH=$PWD/bin:$PATH; python3" }),
    );
    let text = text.await;
    assert_eq!(text, format!("(no output)\n{note}"));
    let env = desk.text(
        "bash",
        json!({ "command": "echo $PAGER $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND" }),
    );
    assert_eq!(env.await, "cat 0 noninteractive");
}

/// Name of the test below, for the process it starts.
const ALONE: &str = "jobs::the_end_of_the_program_ends_all_jobs";
const ALONE_MARK: &str = "WINDLASS_TEST_ALONE_JOBS";

/// TOOL-9: `settle` and `end_all` end all background commands. Runs in a process of its own, because they
/// affect the whole process.
#[tokio::test]
async fn the_end_of_the_program_ends_all_jobs() {
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
    let stubborn = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done";
    let left = "setsid bash -c 'echo $$ >> pids; while :; do sleep 0.1; done' & exit 0";
    for hurry in [false, true] {
        let desk = Desk::new();
        desk.text("bash", begin(stubborn)).await;
        desk.text("bash", begin(left)).await;
        let pids = pids(&desk.path("pids"), 2).await;
        assert!(pids.iter().all(|pid| runs(*pid)));
        let all_ended = if hurry {
            process::end_all(Duration::from_secs(10)).await
        } else {
            process::settle(Duration::from_secs(10)).await
        };
        assert!(all_ended);
        assert!(!pids.iter().any(|pid| runs(*pid)), "hurry: {hurry}");
    }
}
