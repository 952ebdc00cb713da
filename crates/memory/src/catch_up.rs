//! Reads what was said in sessions since the last time, and keeps it.

use std::collections::HashSet;
use std::sync::Arc;

use windlass_core::event::Event;
use windlass_core::id::SessionId;
use windlass_core::log::{LogError, MemoryKind, MemorySource, NewUnit, Store};
use windlass_core::message::{Message, Part, Role};

use crate::embed::{EmbedError, EmbedPurpose, Embedder};
use crate::lesson::lesson;
use crate::secret::is_secret;
use crate::unit::units_of;

/// Number of entries read at a time. Other writes get their turn in between.
const PAGE: usize = 200;

/// Number of units whose vectors are made at a time.
const BATCH: usize = 8;

/// Number of units without a vector that are looked up at a time.
const FETCHED: usize = 256;

/// Result of reading sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatchUp {
    /// Number of units kept.
    pub units: usize,
    /// Lessons that were recognized.
    pub lessons: Vec<String>,
}

/// Reads the sessions of a folder that have new entries. Can be stopped at any time; the next call continues.
///
/// # Errors
/// Fails if the store does. A damaged entry ends the reading of its session only.
pub async fn catch_up(store: &dyn Store, place: &str) -> Result<CatchUp, LogError> {
    let mut done = CatchUp::default();
    for unread in store.unread(place).await? {
        let mut reader = Reader::new(place, &unread.session);
        reader.after_answer = unread.after > 0;
        let mut after = unread.after;
        while after < unread.last {
            let page = match store.entries(&unread.session, after, PAGE).await {
                Ok(page) => page,
                Err(LogError::Damaged { .. }) => {
                    store.keep_units(&reader.source, Vec::new(), unread.last).await?;
                    break;
                }
                Err(error) => return Err(error),
            };
            let Some(last) = page.last().map(|entry| entry.seq) else {
                break;
            };
            let mut units = Vec::new();
            for entry in &page {
                if let Event::Message { message } = &entry.event {
                    reader.read(message, entry.seq, &mut units);
                }
            }
            after = last;
            let kept = store.keep_units(&reader.source, units, last).await?;
            done.units += kept.len();
            tokio::task::yield_now().await;
        }
        done.lessons.append(&mut reader.lessons);
    }
    Ok(done)
}

/// Returns the units of a session's messages, as [`catch_up`] keeps them.
pub fn units_of_session(session: &SessionId, messages: &[Arc<Message>]) -> Vec<NewUnit> {
    let mut reader = Reader::new("", session);
    let mut units = Vec::new();
    for (seq, message) in (1..).zip(messages) {
        reader.read(message, seq, &mut units);
    }
    units
}

/// Reads the messages of one session in order.
struct Reader {
    source: MemorySource,
    seen: HashSet<String>,
    /// True if the last message was an answer.
    after_answer: bool,
    lessons: Vec<String>,
}

impl Reader {
    fn new(place: &str, session: &SessionId) -> Self {
        Self {
            source: MemorySource {
                scope: place.to_owned(),
                session: Some(session.clone()),
            },
            seen: HashSet::new(),
            after_answer: false,
            lessons: Vec::new(),
        }
    }

    fn read(&mut self, message: &Arc<Message>, seq: u64, units: &mut Vec<NewUnit>) {
        // A later version of a message replaces outputs, not what was said.
        if !self.seen.insert(message.id.as_str().to_owned()) {
            return;
        }
        let new = units_of(message, seq, message.created_at);
        let is_said = message.parts.iter().any(|part| matches!(part, Part::Text(_)));
        if message.role == Role::User && is_said {
            for unit in &new {
                if let Some(kind) = lesson(&unit.text, self.after_answer)
                    && !is_secret(&unit.text)
                {
                    self.lessons.push(unit.text.clone());
                    units.push(NewUnit { kind, ..unit.clone() });
                }
            }
        }
        if is_said {
            self.after_answer = message.role == Role::Assistant;
        }
        let kept: Vec<NewUnit> = new
            .into_iter()
            .filter(|unit| {
                !units
                    .iter()
                    .any(|known| known.kind != MemoryKind::Said && known.text == unit.text)
            })
            .collect();
        units.extend(kept);
    }
}

/// Makes vectors for units that have none, at most `most` of them. Returns the number made.
///
/// # Errors
/// Fails if the embedder or the store does.
pub async fn embed_missing(
    store: &dyn Store,
    embedder: &dyn Embedder,
    scopes: &[String],
    most: usize,
) -> Result<usize, EmbedError> {
    let mut made = 0;
    while made < most {
        let units = store.without_vector(embedder.model(), scopes, FETCHED).await?;
        if units.is_empty() {
            break;
        }
        for units in units.chunks(BATCH) {
            let texts: Vec<String> = units.iter().map(|unit| unit.text.clone()).collect();
            let vectors = embedder.embed(&texts, EmbedPurpose::Unit).await?;
            let vectors = units
                .iter()
                .zip(&vectors)
                .map(|(unit, vector)| crate::embed::pack(unit.id, vector))
                .collect();
            store.keep_vectors(embedder.model(), vectors).await?;
            made += units.len();
            if made >= most {
                break;
            }
        }
    }
    Ok(made)
}
