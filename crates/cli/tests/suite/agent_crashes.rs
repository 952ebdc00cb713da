//! Trees of sub-agents whose process is killed.

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, When};
use windlass_testkit::{Signal, eventually};

use super::agents::{STREAM, child, ledger, with};

/// SUB-4: a process that is killed loses no result and delivers none twice: the child that was running is orphaned,
/// its end is delivered when the session is resumed, and it can be resumed itself.
#[test]
fn a_killed_tree_is_resumed() {
    let replies = vec![
        child("quick work", Reply::text("quick result")),
        child(
            "go on with it",
            Reply::text("second try").fault(Fault::new().delay_ms(400)),
        ),
        child(
            "long work",
            Reply::call("list_directory", json!({"path": "."})).say("half way"),
        ),
        child("long work", Reply::text("x").fault(Fault::new().delay_ms(60_000))),
        Reply::call(
            "agent",
            json!({"task": "quick work", "background": true, "name": "quick"}),
        )
        .and_call("agent", json!({"task": "long work", "name": "long"})),
        Reply::call("agent_send", json!({"agent": "long", "message": "go on with it"}))
            .when(When::new().user_contains("quick result")),
        Reply::call("agent_wait", json!({})),
        Reply::text("complete").when(When::new().last_result_contains("second try")),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let running = workspace.run(&STREAM).arg("go").start();
    assert!(eventually(std::time::Duration::from_secs(20), || sim.count() >= 4));
    assert!(eventually(std::time::Duration::from_secs(10), || {
        ledger(&workspace).iter().any(|row| row["state"] == "done")
    }));
    running.signal(Signal::KILL);
    running.output();
    let output = workspace
        .run(&["exec", "-o", "stream-json", "--continue", "what now"])
        .output();
    output.assert_code(0);
    sim.assert_valid();
    let requests = sim.requests();
    let resumed = requests
        .iter()
        .map(|request| String::from_utf8_lossy(&request.raw).into_owned());
    let resumed: Vec<String> = resumed
        .filter(|text| text.contains("what now") && !text.contains("started for one task"))
        .collect();
    let first = &resumed[0];
    assert_eq!(first.matches("quick result").count(), 1, "{first}");
    assert!(
        first.contains("orphaned") && first.contains("half way"),
        "{first}"
    );
    assert_eq!(output.events_of("final")[0]["content"], "complete", "{output}");
    let last = resumed.last().unwrap();
    assert_eq!(last.matches("quick result").count(), 1, "{last}");
    let rows = ledger(&workspace);
    assert!(
        rows.iter()
            .all(|row| row["state"] == "done" && row["delivered"] == true),
        "{rows:?}"
    );
}

/// Number of trees that are killed; `WINDLASS_CRASH_RUNS` sets another.
const RUNS: u64 = 12;

/// SUB-4: wherever a tree of one session and five children is killed, no result is lost, none is delivered twice, and
/// no call of a child runs twice.
#[test]
fn kills_lose_and_repeat_nothing() {
    let runs = std::env::var("WINDLASS_CRASH_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok());
    let mut dice = super::support::Dice::new(20_261_116);
    for number in 0..runs.unwrap_or(RUNS) {
        let wait = dice.roll(900);
        kill_tree(&format!("run {number}, after {wait} ms"), wait);
    }
}

fn kill_tree(context: &str, wait: u64) {
    let mut replies = vec![
        Reply::text("went on")
            .when(When::new().user_contains("go on"))
            .forever(),
    ];
    let mut spawn = Reply::default();
    for number in 1..=5 {
        let task = format!("job {number};");
        let mark = json!({ "command": format!("echo {number} >> ran.txt") });
        replies.push(child(
            &task,
            Reply::call("bash", mark).fault(Fault::new().delay_ms(40 * number)),
        ));
        replies.push(child(
            &task,
            Reply::text(&format!("result {number}.")).fault(Fault::new().delay_ms(30)),
        ));
        let input =
            json!({"task": task, "type": "coder", "isolation": "none", "background": number % 2 == 0});
        spawn = spawn.and_call("agent", input);
    }
    replies.extend([
        spawn,
        Reply::call("agent_wait", json!({})),
        Reply::text("all done"),
    ]);
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let running = workspace.run(&STREAM).arg("work").start();
    eventually(std::time::Duration::from_secs(10), || sim.count() >= 1);
    eventually(std::time::Duration::from_millis(wait), || false);
    running.signal(Signal::KILL);
    running.output();
    let before = ledger(&workspace);
    let resumed = workspace.run(&["exec", "--continue", "go on"]).output();
    resumed.assert_code(0);
    sim.assert_valid();
    let rows = ledger(&workspace);
    assert_eq!(rows.len(), before.len(), "{context}");
    let Some(parent) = rows.first().and_then(|row| row["parent"].as_str()) else {
        return;
    };
    let record = workspace
        .run(&["sessions", "export", parent, "--format", "json"])
        .output()
        .json();
    let entries = record["entries"].as_array().cloned().unwrap_or_default();
    let delivered: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "agent_delivered")
        .flat_map(|entry| entry["agents"].as_array().unwrap())
        .collect();
    for row in &rows {
        let times = delivered
            .iter()
            .filter(|agent| ***agent == row["session"])
            .count();
        assert_eq!((times, &row["delivered"]), (1, &json!(true)), "{context}: {row}");
        assert!(
            !["queued", "running", "waiting"].contains(&row["state"].as_str().unwrap()),
            "{context}: {row}"
        );
        let was_done = before
            .iter()
            .any(|old| old["session"] == row["session"] && old["state"] == "done");
        assert!(!was_done || row["state"] == "done", "{context}: {row}");
    }
    let last = String::from_utf8_lossy(&sim.requests().pop().unwrap().raw).into_owned();
    for number in 1..=5 {
        let times = last.matches(&format!("result {number}.")).count();
        let is_done = rows
            .iter()
            .any(|row| row["task"] == format!("job {number};") && row["state"] == "done");
        // A child that was killed after its last words is delivered with them, as orphaned.
        assert!(times <= 1 && (times == 1 || !is_done), "{context}: {last}");
    }
    if workspace.has("ran.txt") {
        let ran = workspace.read("ran.txt");
        for number in 1..=5 {
            let times = ran.lines().filter(|line| *line == number.to_string()).count();
            assert!(times <= 1, "{context}: {ran}");
        }
    }
}
