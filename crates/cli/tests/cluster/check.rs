//! Checks of every record after a run.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use super::clients::Log;
use super::fleet::Fleet;

/// Figures of a run.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) turns: usize,
    /// Turns that ended because nothing could be written.
    pub(super) failed: usize,
    pub(super) moved: usize,
    pub(super) interrupted: usize,
    pub(super) effects: usize,
    /// Calls by step.
    calls: HashMap<String, usize>,
    /// Results of calls that ran to their end.
    completed: usize,
    /// Streams that clients opened.
    pub(super) streams: usize,
    /// Times until sessions were taken over, in milliseconds.
    pub(super) after_ms: Vec<u64>,
    /// Longest turn.
    pub(super) longest: Duration,
}

fn kind(entry: &Value) -> &str {
    entry["event"]["type"].as_str().unwrap_or_default()
}

/// Checks the record of a session: every acknowledged message once, numbers without a gap, fences that never fall, one
/// terminal event for each turn, one result for each call.
fn check_session(fleet: &Fleet, log: &Log, figures: &mut Figures) {
    let (session, entries) = (&log.session, fleet.entries(&log.session));
    let numbers: Vec<u64> = entries
        .iter()
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (1..=numbers.len() as u64).collect::<Vec<_>>(),
        "gap in {session}"
    );
    let fences: Vec<u64> = entries
        .iter()
        .map(|entry| entry["fence"].as_u64().unwrap())
        .collect();
    assert!(fences.is_sorted(), "a fence of {session} falls");
    for id in &log.acknowledged {
        let told = entries
            .iter()
            .filter(|entry| kind(entry) == "message" && entry["event"]["message"]["id"] == id.as_str());
        assert_eq!(told.count(), 1, "message {id} of {session}");
    }
    let (mut is_open, mut called, mut answered) = (false, HashSet::new(), HashSet::new());
    for entry in &entries {
        match kind(entry) {
            "final" | "failed" | "canceled" => {
                assert!(is_open, "{session}: two ends of a turn at {}", entry["seq"]);
                let is_full = kind(entry) == "failed" && entry["event"]["reason"] == "log";
                assert!(kind(entry) == "final" || is_full, "{session}: {entry}");
                is_open = false;
                figures.turns += 1;
                figures.failed += usize::from(is_full);
            }
            "moved" => {
                figures.moved += 1;
                figures.after_ms.extend(entry["event"]["after_ms"].as_u64());
            }
            "message" => match entry["event"]["message"]["role"].as_str() {
                Some("user") => {
                    let id = entry["event"]["message"]["id"].as_str().unwrap_or_default();
                    if log.acknowledged.iter().any(|own| own == id) {
                        assert!(!is_open, "{session}: a turn begins in a turn");
                        is_open = true;
                    }
                }
                Some("assistant") => {
                    called.extend(ids(entry, "tool_call", "id"));
                    for part in parts(entry, "tool_call") {
                        for (step, times) in steps(&part.to_string()) {
                            *figures.calls.entry(step).or_default() += times;
                        }
                    }
                }
                Some("tool") => {
                    for id in ids(entry, "tool_result", "call_id") {
                        assert!(answered.insert(id.clone()), "{session}: two results of {id}");
                    }
                    let results = parts(entry, "tool_result");
                    let is_done = |part: &&Value| part.to_string().contains("done-");
                    figures.completed += results.iter().filter(is_done).count();
                    figures.interrupted += entry.to_string().matches("look before you do it again").count();
                }
                _ => {}
            },
            _ => {}
        }
    }
    assert!(!is_open, "a turn of {session} is open");
    assert_eq!(called, answered, "{session}: calls and results");
    check_stream(log, &entries);
}

/// Checks the events that the client read from one server after the other: those of the record, each once, in order.
fn check_stream(log: &Log, entries: &[Value]) {
    let recorded = entries
        .iter()
        .map(|entry| (entry["seq"].as_u64().unwrap(), kind(entry).to_owned()));
    let recorded: Vec<(u64, String)> = recorded.collect();
    let differs =
        (0..recorded.len().max(log.seen.len())).find(|place| recorded.get(*place) != log.seen.get(*place));
    if let Some(place) = differs {
        panic!(
            "{}: event {} of the client's streams is {:?}, and the record has {:?}",
            log.session,
            place + 1,
            log.seen.get(place),
            recorded.get(place)
        );
    }
}

/// Returns the parts of one kind of a message.
fn parts(entry: &Value, kind: &str) -> Vec<Value> {
    let parts = entry["event"]["message"]["parts"].as_array();
    let parts = parts.into_iter().flatten().filter(|part| part["type"] == kind);
    parts.cloned().collect()
}

fn ids(entry: &Value, kind: &str, name: &str) -> Vec<String> {
    parts(entry, kind)
        .iter()
        .filter_map(|part| part["data"][name].as_str().map(str::to_owned))
        .collect()
}

/// Counts the steps of turns that a text names, such as `work c0t3 4`.
fn steps(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for rest in text.split("work c").skip(1) {
        let step: String = rest
            .chars()
            .take_while(|char| char.is_ascii_alphanumeric() || *char == ' ')
            .collect();
        *counts.entry(step.trim().to_owned()).or_default() += 1;
    }
    counts
}

/// Checks everything.
pub(super) fn check(fleet: &Fleet, logs: &[Log]) -> Figures {
    let mut figures = Figures::default();
    for log in logs {
        check_session(fleet, log, &mut figures);
        figures.streams += log.streams;
        figures.longest = figures.longest.max(log.longest);
    }
    let effects = steps(&fleet.effects());
    for (step, times) in &effects {
        let calls = figures.calls.get(step).copied().unwrap_or_default();
        assert!(
            *times <= calls,
            "{step} ran {times} times, and was called {calls} times"
        );
    }
    figures.effects = effects.values().sum();
    assert!(
        figures.completed <= figures.effects,
        "a result without its effect: {figures:?}"
    );
    figures.after_ms.sort_unstable();
    figures
}
