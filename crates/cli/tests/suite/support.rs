//! Helpers shared by the tests of this suite.

use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::{Output, SimServer, Workspace};

/// An empty workspace for the binary under test.
pub(super) fn workspace() -> Workspace {
    super::store::given(Workspace::new(env!("CARGO_BIN_EXE_windlass")))
}

/// A folder that is neither in a workspace nor in a temporary folder of the machine, which a session replaces.
pub(super) fn elsewhere() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Starts a simulated model with these replies, and returns a workspace that uses it over `wire`.
pub(super) fn with_replies(
    wire: Protocol,
    replies: impl IntoIterator<Item = Reply>,
) -> (SimServer, Workspace) {
    let sim = SimServer::script(script(replies));
    let workspace = workspace();
    workspace.use_sim(&sim, wire);
    (sim, workspace)
}

pub(super) fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    replies.into_iter().fold(Script::new(), Script::reply)
}

/// Returns the texts of all results in the last request.
pub(super) fn results(sim: &SimServer) -> Vec<String> {
    let requests = sim.requests();
    let last = requests.last().expect("a request");
    last.seen.results().map(|result| result.text.clone()).collect()
}

/// Returns the number in an environment variable that makes a test longer.
pub(super) fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

/// Reads a file of the repository.
pub(super) fn repository_file(name: &str) -> String {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// EVT-2, EVT-6: events match the published schema, are in order, and end once.
#[track_caller]
pub(super) fn check_events(output: &Output) {
    let schema: Value = serde_json::from_str(&repository_file("docs/events.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let events = output.events();
    for event in &events {
        let complaints: Vec<_> = validator
            .iter_errors(event)
            .map(|error| error.to_string())
            .collect();
        assert!(complaints.is_empty(), "{event} is not an event: {complaints:?}");
    }
    check_sequence(&events, output);
    check_order(&events, output);
}

/// Checks that state events are numbered without a gap, and that live events repeat the last number.
fn check_sequence(events: &[Value], output: &Output) {
    let mut last = 0;
    for event in events {
        let seq = event["seq"].as_u64().unwrap();
        let expected = if is_live(event) { last } else { last + 1 };
        assert_eq!(seq, expected, "the number of {event}\n{output}");
        last = seq;
    }
}

pub(super) fn is_live(event: &Value) -> bool {
    ["delta", "tool_output", "status", "compacting", "subagent"]
        .contains(&event["type"].as_str().unwrap_or_default())
}

/// Checks the order: per iteration reasoning, text, then four events per call; one terminal event, at the
/// very end.
fn check_order(events: &[Value], output: &Output) {
    let rank = |kind: &str| match kind {
        "usage" => Some(0),
        "reasoning" => Some(1),
        "text" => Some(2),
        "step_start" | "tool_call" | "tool_result" | "step_complete" => Some(3),
        _ => None,
    };
    let mut before = 0;
    let mut call: Vec<(String, Value)> = Vec::new();
    for event in events {
        let kind = event["type"].as_str().unwrap();
        let Some(now) = rank(kind) else { continue };
        // The usage of a model call starts an iteration.
        assert!(
            now >= before || kind == "usage",
            "`{kind}` comes too late\n{output}"
        );
        before = now;
        if now == 3 {
            call.push((kind.to_owned(), event["call_id"].clone()));
        }
        if kind == "step_complete" {
            let kinds: Vec<_> = call.iter().map(|(kind, _)| kind.as_str()).collect();
            assert_eq!(
                kinds,
                ["step_start", "tool_call", "tool_result", "step_complete"],
                "{output}"
            );
            assert!(
                call.iter().all(|(_, id)| *id == event["call_id"]),
                "calls are mixed up\n{output}"
            );
            call.clear();
        }
    }
    let terminal = |event: &Value| {
        ["final", "canceled", "failed"]
            .iter()
            .any(|kind| event["type"] == *kind)
    };
    assert_eq!(
        events.iter().filter(|event| terminal(event)).count(),
        1,
        "one terminal event\n{output}"
    );
    assert!(
        events.last().is_some_and(terminal),
        "the terminal event is the last\n{output}"
    );
}

/// A small random number generator, so that a run can be repeated by its seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        dice.roll(2);
        dice
    }

    /// Returns a number below `sides`.
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}
