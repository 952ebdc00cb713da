//! Clients: each works in a session of its own, through any server, notes what was acknowledged, and reads the events
//! of its session from one server after the other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_testkit::eventually;

use super::fleet::Fleet;

/// Time for a turn to end, whatever happens.
const TURN: Duration = Duration::from_secs(120);

/// Notes of a client.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) session: String,
    /// Ids of acknowledged messages.
    pub(super) acknowledged: Vec<String>,
    /// Longest turn.
    pub(super) longest: Duration,
    /// State events in the order in which they came: number and type.
    pub(super) seen: Vec<(u64, String)>,
    /// Streams that were opened.
    pub(super) streams: usize,
}

/// Waits. The threads of the test are all that runs here.
pub(super) fn wait(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::thread::park_timeout(time.saturating_sub(begun.elapsed()));
    }
}

/// Sends a request to any server until one accepts it.
fn insist(fleet: &Fleet, turns: &AtomicUsize, path: &str, body: &Value) -> Option<Value> {
    let mut answer = None;
    let came = eventually(TURN, || {
        let server = turns.fetch_add(1, Ordering::Relaxed) % fleet.count();
        answer = fleet
            .request(server, "POST", path, &body.to_string())
            .filter(|answer| (200..300).contains(&answer.status));
        if answer.is_none() {
            wait(Duration::from_millis(200));
        }
        answer.is_some()
    });
    came.then(|| answer.map(|answer| answer.json())).flatten()
}

/// Returns true if the turn of a message has ended, asked of any server.
fn has_ended(fleet: &Fleet, turns: &AtomicUsize, session: &str, message: &str) -> bool {
    let server = turns.fetch_add(1, Ordering::Relaxed) % fleet.count();
    let path = format!("/api/sessions/{session}/entries?limit=200");
    let Some(answer) = fleet
        .request(server, "GET", &path, "")
        .filter(|answer| answer.status == 200)
    else {
        return false;
    };
    let page = answer.json();
    let entries = page["entries"].as_array().cloned().unwrap_or_default();
    let begun = entries
        .iter()
        .position(|entry| entry["type"] == "message" && entry["message"]["id"] == message);
    let is_end = |entry: &Value| {
        ["final", "failed", "canceled"]
            .iter()
            .any(|kind| entry["type"] == *kind)
    };
    begun.is_some_and(|begun| entries[begun..].iter().any(is_end))
}

/// Begins a session, at any server.
pub(super) fn begin(fleet: &Fleet, number: usize) -> String {
    let turns = AtomicUsize::new(number);
    let Some(begun) = insist(fleet, &turns, "/api/sessions", &json!({})) else {
        panic!("client {number}: no server makes a session");
    };
    begun["session"]["id"].as_str().unwrap_or_default().to_owned()
}

/// Works until `stop`, turn after turn, while another thread reads the events.
pub(super) fn work(fleet: &Fleet, number: usize, stop: &AtomicBool) -> Log {
    let session = begin(fleet, number);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(fleet, &session, number, &is_over));
        let mut log = talk(fleet, &session, number, stop);
        is_over.store(true, Ordering::Relaxed);
        (log.seen, log.streams) = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        log
    })
}

fn talk(fleet: &Fleet, session: &str, number: usize, stop: &AtomicBool) -> Log {
    let turns = AtomicUsize::new(number);
    let mut log = Log {
        session: session.to_owned(),
        ..Log::default()
    };
    let path = format!("/api/sessions/{session}/messages");
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("0b9d6f0e-8f6c-4d0e-9a53-{number:04x}{turn:08x}");
        let body = json!({ "id": id, "text": format!("work c{number}t{turn}") });
        let begun = Instant::now();
        let sent = insist(fleet, &turns, &path, &body);
        assert!(sent.is_some(), "client {number}: no server takes message {turn}");
        log.acknowledged.push(id.clone());
        let ended = eventually(TURN, || {
            wait(Duration::from_millis(100));
            has_ended(fleet, &turns, session, &id)
        });
        assert!(ended, "client {number}: turn {turn} of {session} does not end");
        log.longest = log.longest.max(begun.elapsed());
    }
    log
}

/// Time after which a reader goes to another server.
const STREAM: Duration = Duration::from_secs(3);

/// Reads the events of a session until its record is read and `is_over`. Each stream begins after the last number of the
/// one before, on whichever server is next.
fn read(fleet: &Fleet, session: &str, number: usize, is_over: &AtomicBool) -> (Vec<(u64, String)>, usize) {
    let (mut seen, mut streams): (Vec<(u64, String)>, usize) = (Vec::new(), 0);
    let mut deadline = None;
    for turn in number.. {
        let server = turn % fleet.count();
        let after = seen.last().map_or(0, |(last, _)| *last);
        let Some(stream) = fleet.events(server, &format!("/api/events?session={session}&after={after}"))
        else {
            wait(Duration::from_millis(200));
            continue;
        };
        streams += 1;
        eventually(STREAM, || {
            stream.has_ended() || !fleet.is_up(server) || is_over.load(Ordering::Relaxed)
        });
        if is_over.load(Ordering::Relaxed) {
            let last = fleet.sql(&format!(
                "SELECT last_seq FROM windlass.session WHERE id = '{session}'"
            ));
            let last: u64 = last.parse().unwrap();
            let is_read = |states: &[(u64, String)]| states.last().is_some_and(|(number, _)| *number >= last);
            eventually(STREAM, || {
                stream.has_ended() || is_read(&stream.states()) || is_read(&seen)
            });
            seen.extend(stream.states());
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + TURN);
            if is_read(&seen) || Instant::now() > deadline {
                break;
            }
            continue;
        }
        seen.extend(stream.states());
    }
    (seen, streams)
}
