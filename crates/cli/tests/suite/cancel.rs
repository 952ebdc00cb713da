//! Cancellation: signals during a reply, a tool call or a retry delay, and readers that close the output.

use std::time::Instant;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{
    Output, PATIENCE, Running, Signal, SimServer, WIRES, Workspace, eventually, processes_with,
};

use super::support::{check_events, script, with_replies, workspace};

const STREAM: [&str; 4] = ["exec", "-o", "stream-json", "go"];

fn finish_of_last_assistant(output: &Output) -> Value {
    let messages = output.events_of("message");
    let last = messages
        .iter()
        .rev()
        .find(|event| event["message"]["role"] == "assistant");
    let parts = last.and_then(|event| event["message"]["parts"].as_array());
    let finish = parts.and_then(|parts| parts.iter().find(|part| part["type"] == "finish"));
    finish
        .map(|part| part["data"]["reason"].clone())
        .unwrap_or_default()
}

/// Waits for the end of an interrupted run: soon, with its code, with one `canceled` and no `final`.
#[track_caller]
fn check_canceled(run: Running, since: Instant) -> Output {
    let output = run.output();
    assert!(
        since.elapsed() < PATIENCE,
        "it took {:?}\n{output}",
        since.elapsed()
    );
    output.assert_code(130);
    check_events(&output);
    assert_eq!(
        output.story().last().map(String::as_str),
        Some("canceled"),
        "{output}"
    );
    output
}

/// LOOP-8 (S5.5): a signal ends a stream in the middle; the partial reply is stored, marked as canceled.
#[test]
fn a_signal_ends_the_stream() {
    for wire in WIRES {
        let stalled = Reply::text("one two three four")
            .delta_chars(4)
            .fault(Fault::new().stall_after_events(5));
        let (sim, workspace) = with_replies(wire, [stalled]);
        let mut run = workspace.run(&STREAM).start();
        run.wait_for_stdout(r#""type":"delta""#);
        let since = Instant::now();
        run.interrupt();
        let output = check_canceled(run, since);
        assert_eq!(finish_of_last_assistant(&output), "canceled", "{wire}\n{output}");
        assert_eq!(sim.count(), 1);
    }
}

/// LOOP-8: each of the three signals also ends a wait for the first byte or for a retry immediately.
#[test]
fn every_wait_ends_at_a_signal() {
    let silent = || Reply::text("late").fault(Fault::new().delay_ms(600_000));
    let later = || Reply::default().fault(Fault::status(429).header("retry-after", "119"));
    for (reply, sign, signal) in [
        (silent(), "start", Signal::INT),
        (later(), "retry", Signal::TERM),
        (silent(), "start", Signal::HUP),
    ] {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [reply]);
        let mut run = workspace.run(&STREAM).start();
        run.wait_for_stdout(&format!(r#""type":"{sign}""#));
        assert!(eventually(PATIENCE, || sim.count() == 1));
        let since = Instant::now();
        run.signal(signal);
        check_canceled(run, since);
        assert_eq!(sim.count(), 1);
    }
}

/// Returns a marker that identifies the processes of one test.
fn marker(workspace: &Workspace) -> String {
    let root = workspace.path();
    let name = root
        .parent()
        .and_then(|root| root.file_name())
        .and_then(|name| name.to_str());
    name.unwrap().to_owned()
}

/// Commands that are hard to stop. Each writes `up` once all its processes run.
fn stubborn(marker: &str) -> [String; 4] {
    let deaf = format!("trap '' TERM INT HUP; echo up > up; while :; do sleep 1 # {marker}\ndone");
    [
        format!("echo up > up; sleep 1000 # {marker}"),
        deaf.clone(),
        format!("setsid sh -c \"{deaf}\" {marker} & wait"),
        // A grandchild in a separate session, whose parents are gone.
        format!("(setsid sh -c \"{deaf}\" {marker} &) & sleep 1000 # {marker}"),
    ]
}

/// LOOP-8 (S5.5, S5.8): a signal ends a running command with its whole process tree, however stubborn; later
/// calls get a result without running.
#[test]
fn a_signal_ends_the_whole_tree() {
    for number in 0..4 {
        let workspace = workspace();
        let marker = marker(&workspace);
        let command = &stubborn(&marker)[number];
        let calls = Reply::call("bash", json!({"command": command}))
            .and_call("bash", json!({"command": "touch made"}))
            .and_call("list_directory", json!({"path": "."}));
        let sim = SimServer::script(script([calls]));
        workspace.use_sim(&sim, Protocol::Anthropic);
        let run = workspace.run(&STREAM).start();
        assert!(eventually(PATIENCE, || workspace.has("up")), "{command}");
        let since = Instant::now();
        run.interrupt();
        let output = check_canceled(run, since);
        let left = eventually(PATIENCE, || processes_with(&marker).is_empty());
        assert!(left, "{command} left {:?}", processes_with(&marker));
        let results = output.events_of("tool_result");
        let contents: Vec<_> = results
            .iter()
            .map(|event| event["content"].as_str().unwrap())
            .collect();
        assert_eq!(
            contents[1..],
            ["Tool execution canceled by user"; 2],
            "{command}\n{output}"
        );
        assert!(results.iter().all(|event| event["is_error"] == true), "{output}");
        assert_eq!(finish_of_last_assistant(&output), "canceled", "{output}");
        assert!(!workspace.has("made"));
        sim.assert_valid();
    }
}

/// LOOP-8: a second signal ends the program immediately, and the process tree is still killed.
#[test]
fn the_second_signal_leaves_at_once() {
    let workspace = workspace();
    let marker = marker(&workspace);
    let [_, _, _, command] = stubborn(&marker);
    let sim = SimServer::script(script([Reply::call("bash", json!({"command": command}))]));
    workspace.use_sim(&sim, Protocol::Chat);
    let run = workspace.run(&["exec", "go"]).start();
    assert!(eventually(PATIENCE, || workspace.has("up")));
    let since = Instant::now();
    run.interrupt();
    run.interrupt();
    run.terminate();
    run.output().assert_code(130);
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
    let left = eventually(PATIENCE, || processes_with(&marker).is_empty());
    assert!(left, "left {:?}", processes_with(&marker));
}

/// LOOP-8, UI-3: a reader that closes the output ends the run without a panic and without leaving commands
/// behind.
#[test]
fn a_reader_that_leaves_ends_the_run() {
    let long = "all work and no play ".repeat(20_000);
    for format in ["text", "json", "stream-json"] {
        let workspace = workspace();
        let marker = marker(&workspace);
        let talk = Reply::call("bash", json!({"command": format!("echo {marker}")}))
            .say(&long)
            .delta_chars(2_000);
        let wait = Reply::call("bash", json!({"command": format!("sleep 1 # {marker}")}));
        let replies = [talk, wait, Reply::text(&long).delta_chars(2_000)];
        let sim = SimServer::script(script(replies));
        workspace.use_sim(&sim, Protocol::Chat);
        let run = workspace
            .run(&["exec", "go", "-o", format])
            .start_with_short_readers(100, u64::MAX);
        let output = run.output();
        output.assert_code(141);
        assert!(
            eventually(PATIENCE, || processes_with(&marker).is_empty()),
            "{format}"
        );
    }
}

/// EXT-6: commands that print a page accept a reader that closes the output.
#[test]
fn pages_do_not_mind_a_reader_that_leaves() {
    let workspace = workspace();
    let pages: [&[&str]; 8] = [
        &["completions", "bash"],
        &["completions", "zsh"],
        &["man"],
        &["config", "schema"],
        &["config", "show"],
        &["config", "explain", "provider"],
        &["doctor", "--offline"],
        &["demo"],
    ];
    for page in pages {
        let output = workspace.run(page).start_with_short_readers(0, u64::MAX).output();
        assert!(!output.stderr.contains("panicked"), "{page:?}\n{output}");
        assert!(output.code.is_some(), "{page:?}\n{output}");
    }
}

/// UI-3, EXT-6: output that a full disk does not take is an error that names standard output.
#[test]
fn a_full_disk_is_no_success() {
    let workspace = workspace();
    workspace
        .run(&["exec", "--provider", "sim", "hi"])
        .output()
        .assert_code(0);
    for line in [
        "sessions list",
        "config show",
        "exec -q --provider sim hi",
        "exec -q --provider sim -o json hi",
        "exec -q --provider sim -o stream-json hi",
        "exec -q /help",
        "--help",
    ] {
        let output = workspace.run_on_terminal(&format!("{line} > /dev/full")).output();
        output.assert_code(1);
        let said = "error: standard output: No space left on device";
        assert!(output.stdout.contains(said), "{line}: {output}");
    }
}

/// UI-1: unread status lines do not stop the work, as in `windlass exec … 2>&1 >answer | head -1`.
#[test]
fn status_lines_may_go_unread() {
    let call = |word: &str| Reply::call("bash", json!({"command": format!("echo {word}")}));
    let (_sim, workspace) = with_replies(Protocol::Chat, [call("one"), call("two"), Reply::text("fine")]);
    let output = workspace
        .run(&["exec", "go"])
        .start_with_short_readers(u64::MAX, 0)
        .output();
    assert_eq!(output.assert_code(0).stdout, "fine\n");
}
