//! Finds text within a session.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{CallId, Entry, Event, Role, SessionId, Timestamp};
use windlass_core::log::{counting, record};

use super::body::Query;
use crate::app::Shared;
use crate::problem::Problem;

/// Places returned if the request names no number, and at most.
const PLACES: usize = 30;
const MAX_PLACES: usize = 200;
/// Characters of an excerpt before the match, and in all.
const BEFORE: usize = 40;
const EXCERPT: usize = 160;

/// Words to find.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    q: String,
    limit: Option<usize>,
}

/// Places of a session where a text occurs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FoundPlaces {
    /// Newest first.
    found: Vec<FoundPlace>,
}

/// A place where the text occurs.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct FoundPlace {
    /// Number of the entry that shows it; of a call, the entry that began it.
    seq: u64,
    /// Time in milliseconds since 1970.
    time: Timestamp,
    /// Source of the text: `user`, `answer`, `reasoning` or `call`.
    kind: PlaceKind,
    /// Text around the match, in one line.
    excerpt: String,
}

/// Source of a found text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlaceKind {
    /// A message of the user.
    User,
    /// Text of the model.
    Answer,
    /// Reasoning of the model.
    Reasoning,
    /// Arguments or the result of a call.
    Call,
}

pub(crate) async fn search(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<FoundPlaces>, Problem> {
    let words = query.q.trim().to_lowercase();
    if words.is_empty() {
        return Err(Problem::field("q", "the text to find is missing"));
    }
    let limit = query.limit.unwrap_or(PLACES);
    if !(1..=MAX_PLACES).contains(&limit) {
        return Err(Problem::field(
            "limit",
            format!("a number from 1 to {MAX_PLACES}"),
        ));
    }
    app.info(&id).await?;
    let entries = record(&*app.ports.store, &id).await?;
    let found = find(&entries, &words, limit);
    Ok(Json(FoundPlaces { found }))
}

/// Finds a text in lower case in the conversation, newest first. A call is found once.
fn find(entries: &[Entry], words: &str, limit: usize) -> Vec<FoundPlace> {
    let entries = counting(entries);
    let mut begun: HashMap<&CallId, u64> = HashMap::new();
    for entry in &entries {
        if let Event::StepStart { call_id, .. } = &entry.event {
            begun.insert(call_id, entry.seq);
        }
    }
    let mut found: Vec<FoundPlace> = Vec::new();
    for entry in entries.iter().rev() {
        if found.len() >= limit {
            break;
        }
        let Some((kind, text)) = text_of(&entry.event) else {
            continue;
        };
        let Some(excerpt) = excerpt(&text, words) else {
            continue;
        };
        let seq = match &entry.event {
            Event::ToolCall { call_id, .. } | Event::ToolResult { call_id, .. } => {
                begun.get(call_id).copied().unwrap_or(entry.seq)
            }
            _ => entry.seq,
        };
        if found.iter().all(|place| place.seq != seq) {
            found.push(FoundPlace {
                seq,
                time: entry.time,
                kind,
                excerpt,
            });
        }
    }
    found
}

fn text_of(event: &Event) -> Option<(PlaceKind, String)> {
    match event {
        Event::Message { message } if message.role == Role::User => {
            Some((PlaceKind::User, message.user_text()))
        }
        Event::Text { text } | Event::Final { content: text, .. } => Some((PlaceKind::Answer, text.clone())),
        Event::Reasoning { text } => Some((PlaceKind::Reasoning, text.clone())),
        Event::ToolCall { args, .. } => Some((PlaceKind::Call, values(args))),
        Event::ToolResult { content, .. } => Some((PlaceKind::Call, content.clone())),
        _ => None,
    }
}

/// Returns the texts of a call's arguments, without their names and quotes.
fn values(args: &serde_json::Value) -> String {
    match args {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(fields) => fields.values().map(values).collect::<Vec<_>>().join(" "),
        serde_json::Value::Array(list) => list.iter().map(values).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn excerpt(text: &str, words: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find(words)?;
    // Lower case may have another length in bytes, hardly ever in characters.
    let before = lower.get(..at).map_or(0, |before| before.chars().count());
    let start = before.saturating_sub(BEFORE);
    let cut: String = text.chars().skip(start).take(EXCERPT).collect();
    let line = cut.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(if start > 0 { format!("…{line}") } else { line })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WEB-1: an excerpt is one line around the match, whatever its letters.
    #[test]
    fn an_excerpt_is_around_the_match() {
        assert_eq!(excerpt("one\n two", "two"), Some("one two".to_owned()));
        assert_eq!(excerpt("ÄÖÜ straße", "äöü"), Some("ÄÖÜ straße".to_owned()));
        assert_eq!(excerpt("none", "other"), None);
        let long = format!("{}needle{}", "ä".repeat(500), "z".repeat(500));
        let shown = excerpt(&long, "needle").unwrap();
        assert!(shown.starts_with('…') && shown.contains("needle"), "{shown}");
        assert_eq!(shown.chars().count(), EXCERPT + 1);
    }
}
