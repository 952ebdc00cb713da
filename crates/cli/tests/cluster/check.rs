//! Checks of every record after a run.

use std::collections::HashSet;

use serde_json::Value;

use super::clients::Log;
use super::fleet::Fleet;

/// Figures of a run.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) turns: usize,
    pub(super) moved: usize,
    pub(super) interrupted: usize,
    pub(super) effects: usize,
    /// Times until sessions were taken over, in milliseconds.
    pub(super) after_ms: Vec<u64>,
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
                assert_eq!(kind(entry), "final", "{session}: {entry}");
                is_open = false;
                figures.turns += 1;
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
                Some("assistant") => called.extend(ids(entry, "tool_call", "id")),
                Some("tool") => {
                    for id in ids(entry, "tool_result", "call_id") {
                        assert!(answered.insert(id.clone()), "{session}: two results of {id}");
                    }
                    figures.interrupted += entry.to_string().matches("look before you do it again").count();
                }
                _ => {}
            },
            _ => {}
        }
    }
    assert!(!is_open, "a turn of {session} is open");
    assert_eq!(called, answered, "{session}: calls and results");
}

fn ids(entry: &Value, kind: &str, name: &str) -> Vec<String> {
    let parts = entry["event"]["message"]["parts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let parts = parts.iter().filter(|part| part["type"] == kind);
    parts
        .filter_map(|part| part["data"][name].as_str().map(str::to_owned))
        .collect()
}

/// Checks everything.
pub(super) fn check(fleet: &Fleet, logs: &[Log]) -> Figures {
    let mut figures = Figures::default();
    for log in logs {
        check_session(fleet, log, &mut figures);
    }
    let effects = fleet.effects();
    let marks: HashSet<&str> = effects
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(marks.len(), effects.len(), "a call ran twice");
    figures.effects = effects.len();
    figures.after_ms.sort_unstable();
    figures
}
