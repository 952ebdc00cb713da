//! Detects a model that repeats the same calls.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Planned;
use crate::message::{ToolCall, ToolResult};

/// Number of times each call of the last iteration was made in a row with the same result.
///
/// *In a row* counts iterations: a call that is missing from one iteration starts again at zero, and a call
/// made twice in one iteration counts once. A model that alternates between two calls inside each iteration
/// is therefore detected as well.
#[derive(Debug, Default)]
pub(super) struct Repeats(HashMap<(String, String), Streak>);

#[derive(Debug, Clone, Copy)]
struct Streak {
    result: u64,
    times: u32,
}

impl Repeats {
    /// Returns the text to answer instead of running `call`, once it was made `limit` times in a row.
    pub(super) fn note(&self, call: &ToolCall, limit: u32) -> Option<String> {
        let streak = self.0.get(&key(call)).filter(|streak| streak.times >= limit)?;
        Some(format!(
            "Not run: the same call with the same arguments gave the same result {} times in a row. \
             Use that result, change the arguments, or try another way.",
            streak.times.min(limit)
        ))
    }

    /// Takes the results of an iteration.
    pub(super) fn observe(&mut self, calls: &[Planned], results: &[ToolResult]) {
        let mut now = HashMap::with_capacity(calls.len());
        for (planned, result) in calls.iter().zip(results) {
            let key = key(&planned.call);
            let before = self.0.get(&key);
            let streak = match (before, &planned.refusal) {
                (Some(before), Some(_)) => Streak {
                    times: before.times + 1,
                    ..*before
                },
                (before, _) => {
                    let result = fingerprint(result);
                    let times = before
                        .filter(|before| before.result == result)
                        .map_or(0, |before| before.times);
                    Streak {
                        result,
                        times: times + 1,
                    }
                }
            };
            now.entry(key).or_insert(streak);
        }
        self.0 = now;
    }

    /// Returns the tool with the longest streak, and its length.
    pub(super) fn worst(&self) -> Option<(&str, u32)> {
        self.0
            .iter()
            .map(|((tool, _), streak)| (tool.as_str(), streak.times))
            .max_by_key(|(_, times)| *times)
    }
}

fn key(call: &ToolCall) -> (String, String) {
    (call.name.clone(), call.input.trim().to_owned())
}

fn fingerprint(result: &ToolResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    result.content.hash(&mut hasher);
    result.is_error.hash(&mut hasher);
    for image in &result.images {
        image.data.hash(&mut hasher);
    }
    hasher.finish()
}
