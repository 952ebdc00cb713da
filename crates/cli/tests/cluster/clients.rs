//! Clients: each works in a session of its own, through any server, and notes what was acknowledged.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_testkit::eventually;

use super::fleet::Fleet;

/// Time for a turn to end, whatever happens.
const TURN: Duration = Duration::from_secs(90);

/// Notes of a client.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) session: String,
    /// Ids of acknowledged messages.
    pub(super) acknowledged: Vec<String>,
    /// Longest turn.
    pub(super) longest: Duration,
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
            std::thread::park_timeout(Duration::from_millis(200));
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

/// Works until `stop`, turn after turn.
pub(super) fn work(fleet: &Fleet, number: usize, stop: &AtomicBool) -> Log {
    let turns = AtomicUsize::new(number);
    let mut log = Log::default();
    let Some(begun) = insist(fleet, &turns, "/api/sessions", &json!({})) else {
        panic!("client {number}: no server makes a session");
    };
    log.session = begun["session"]["id"].as_str().unwrap_or_default().to_owned();
    let path = format!("/api/sessions/{}/messages", log.session);
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("0b9d6f0e-8f6c-4d0e-9a53-{:04x}{:08x}", number, turn);
        let body = json!({ "id": id, "text": format!("work c{number}t{turn}") });
        let begun = Instant::now();
        let sent = insist(fleet, &turns, &path, &body);
        assert!(sent.is_some(), "client {number}: no server takes message {turn}");
        log.acknowledged.push(id.clone());
        let ended = eventually(TURN, || {
            std::thread::park_timeout(Duration::from_millis(100));
            has_ended(fleet, &turns, &log.session, &id)
        });
        assert!(
            ended,
            "client {number}: turn {turn} of {} does not end",
            log.session
        );
        log.longest = log.longest.max(begun.elapsed());
    }
    log
}
