//! Sessions from the store.

use std::collections::HashMap;

use windlass_api::{Event, Message, MessageId, Part, Role, SessionEvent};
use windlass_core::log::{Entry, History};
use windlass_core::provider::Prefix;

use super::{Need, Session};

/// Number of messages without a mention after which a fact counts as needed.
const LONG_AGO: usize = 20;
/// Minimum length of a word that counts as a fact.
const SHORTEST: usize = 6;

/// Reads a session in its original form, before any compaction.
///
/// Recorded sessions have no planted facts, so facts are detected: a word with a digit, a slash or an
/// underscore that the model writes into a call and that last appeared, from the user or a tool, long before.
pub fn recorded(name: &str, entries: &[Entry], prefix: Prefix) -> Session {
    let messages = History::read(&as_said(entries)).into_messages();
    let needs = needs(&messages);
    Session {
        name: name.to_owned(),
        prefix: prefix.into(),
        messages,
        needs,
        stretches: Vec::new(),
    }
}

/// Returns the entries without the effects of compactions. A message changes soon after it was added, or
/// because it was compacted.
fn as_said(entries: &[Entry]) -> Vec<Entry> {
    let mut last: Option<&MessageId> = None;
    let mut known: HashMap<&MessageId, ()> = HashMap::new();
    let mut kept = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::Session(SessionEvent::Compaction { .. }) => continue,
            Event::Message { message } => {
                let is_late = known.insert(&message.id, ()).is_some() && last != Some(&message.id);
                if is_late || is_summary(message) {
                    continue;
                }
                last = Some(&message.id);
            }
            _ => {}
        }
        kept.push(entry.clone());
    }
    kept
}

fn is_summary(message: &Message) -> bool {
    message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Compaction(_)))
}

fn needs(messages: &[std::sync::Arc<Message>]) -> Vec<Need> {
    // Last position of each word, and whether the user ever wrote it.
    let mut seen: HashMap<String, (usize, bool)> = HashMap::new();
    let mut needs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::Assistant {
            for call in message.calls() {
                for word in words(&call.input) {
                    let old = seen.get(word).filter(|(last, _)| at - last >= LONG_AGO);
                    let is_new = |need: &Need| need.at != at || need.text != word;
                    if let (Some((_, is_said)), true) = (old, needs.iter().all(is_new)) {
                        needs.push(Need {
                            at,
                            text: word.to_owned(),
                            key: word.to_owned(),
                            is_said: *is_said,
                        });
                    }
                }
            }
        }
        for part in &message.parts {
            let text = match part {
                Part::Text(text) => &text.text,
                Part::ToolCall(call) => &call.input,
                Part::ToolResult(result) => &result.content,
                _ => continue,
            };
            for word in words(text) {
                let entry = seen.entry(word.to_owned()).or_default();
                *entry = (at, entry.1 || message.role == Role::User);
            }
        }
    }
    needs
}

/// Returns the words that can be facts.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_inside = |sign: char| sign.is_alphanumeric() || "_-./:".contains(sign);
    let words = text.split(move |sign: char| !is_inside(sign));
    let trimmed = words.map(|word| word.trim_matches(|sign: char| !sign.is_alphanumeric() && sign != '/'));
    trimmed.filter(|word| {
        let has = |wanted: &dyn Fn(char) -> bool| word.chars().any(wanted);
        word.len() >= SHORTEST
            && has(&|sign| sign.is_alphabetic() || sign == '.')
            && has(&|sign| sign.is_ascii_digit() || sign == '/' || sign == '_')
    })
}
