//! CTX-15: a comparison of the history before and after a compaction. No strategy reports on itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mask::is_short;
use crate::id::MessageId;
use crate::message::{FragmentSource, Message, Part, Role};

/// Effect of a compaction on the messages of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fidelity {
    /// Tokens before the compaction.
    pub tokens_before: u64,
    /// Tokens after the compaction.
    pub tokens_after: u64,
    /// Messages kept unchanged.
    pub kept: u64,
    /// Messages replaced by a summary.
    pub summarized: u64,
    /// Tool outputs replaced by a note or a summary, including those of earlier compactions.
    pub masked: u64,
    /// Texts written by the user.
    pub said: u64,
    /// Texts of the user that are still present verbatim.
    pub said_kept: u64,
    /// References with which removed content can be read back.
    pub references: u64,
}

/// Compares a history with its compacted version. The token counts are left at 0.
pub fn fidelity(old: &[Arc<Message>], new: &[Arc<Message>]) -> Fidelity {
    let by_id: HashMap<&MessageId, &Arc<Message>> =
        new.iter().map(|message| (&message.id, message)).collect();
    let mut report = Fidelity::default();
    for message in old {
        match by_id.get(&message.id) {
            Some(same) if Arc::ptr_eq(same, message) => report.kept += 1,
            Some(_) => {}
            None => report.summarized += 1,
        }
    }
    let results = || new.iter().flat_map(|message| message.results());
    report.masked = results().filter(|result| is_short(result)).count() as u64;
    report.references = report.masked + references(new);
    let after: HashSet<&str> = said(new).collect();
    for text in said(old).filter(|text| !text.trim().is_empty()) {
        report.said += 1;
        report.said_kept += u64::from(after.contains(text));
    }
    report
}

/// Returns the texts written by the user.
fn said(history: &[Arc<Message>]) -> impl Iterator<Item = &str> {
    let users = history.iter().filter(|message| message.role == Role::User);
    users.flat_map(|message| {
        message.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            Part::Context(fragment) if fragment.source == FragmentSource::Quote => {
                Some(fragment.text.as_str())
            }
            _ => None,
        })
    })
}

fn references(history: &[Arc<Message>]) -> u64 {
    let fragments = history.iter().flat_map(|message| message.fragments());
    fragments
        .filter(|fragment| fragment.source == FragmentSource::Reference)
        .count() as u64
}
