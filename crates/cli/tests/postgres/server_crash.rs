//! The server crashes in the middle of a turn.

use serde_json::json;
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::{Flush, PATIENCE, PostgresServer, SimServer, Workspace, eventually};

/// DIST-2, SES-5: a turn goes on over crashes of the server, and its record has no gap, nothing twice, and everything that
/// was shown.
#[test]
fn a_turn_survives_crashes_of_the_server() {
    const CALLS: usize = 8;
    let mut server = PostgresServer::start(Flush::On);
    let url = server.url(&server.empty());
    let mut script = Script::new();
    for number in 0..CALLS {
        let command = format!("echo {number} >> ran.txt");
        script = script.reply(Reply::call("bash", json!({ "command": command })));
    }
    let sim = SimServer::script(script.reply(Reply::text("all done").forever()));
    let workspace = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(url);
    workspace.use_sim(&sim, Protocol::Anthropic);
    let running = workspace
        .run(&["exec", "--output-format", "stream-json", "count"])
        .start();
    for crash in 1..=2 {
        assert!(
            eventually(PATIENCE, || sim.count() >= crash * 3),
            "the turn goes on"
        );
        server.crash();
        server.resume();
    }
    let output = running.output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let ran: Vec<String> = workspace.read("ran.txt").lines().map(str::to_owned).collect();
    let expected: Vec<String> = (0..CALLS).map(|number| number.to_string()).collect();
    assert_eq!(ran, expected, "each call ran once");
    let listed = workspace
        .run(&["sessions", "list", "--all", "--json"])
        .output()
        .json();
    let id = listed[0]["id"].as_str().unwrap();
    let export = workspace
        .run(&["sessions", "export", id, "--format", "json"])
        .output();
    let export = export.json();
    let numbers: Vec<u64> = export["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let shown = output
        .events()
        .iter()
        .filter_map(|event| event["seq"].as_u64())
        .max();
    assert!(shown.unwrap_or_default() <= numbers.len() as u64);
}
