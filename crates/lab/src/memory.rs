//! Memory across sessions: the same sessions, one after the other, with recall and without.
//!
//! A fact is a word with a digit, a slash or an underscore that a reply contains although nothing before it in the
//! session does, and that was said in an earlier session. A model can only know it from memory, or find it out again.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use windlass_api::{Message, Part, Role, Usage};
use windlass_core::compact::Strategy;
use windlass_core::message::{Fragment, FragmentSource};
use windlass_core::text::grouped;

use super::recorded::words;
use super::report::cost;
use super::{Experiment, Session, simulate};

/// The memory that is examined. Sessions come in the order in which they took place.
#[async_trait]
pub trait Recall: Send + Sync {
    /// Returns the fragment that a turn starts with. The last message of the history is the user's.
    async fn before_turn(&self, session: &Session, history: &[Arc<Message>]) -> Option<Fragment>;

    /// Keeps what was said in a session that is over.
    ///
    /// # Errors
    /// Fails with the reason.
    async fn keep(&self, session: &Session) -> Result<(), String>;
}

/// Results of sessions with recall and without.
#[derive(Debug, Clone, Serialize)]
pub struct MemoryReport {
    /// Names of the sessions.
    pub sessions: Vec<String>,
    /// Number of messages of the user.
    pub turns: u64,
    /// Model whose prices apply.
    pub model: String,
    /// Way in which memory is searched.
    pub search: String,
    /// Without recall.
    pub without: MemoryRow,
    /// With recall.
    pub with: MemoryRow,
}

/// Result of all sessions in one way.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemoryRow {
    /// Tokens of all requests.
    pub input_tokens: u64,
    /// Cost in US dollars; `None` for a model without prices.
    pub cost_usd: Option<f64>,
    /// Number of turns that something was recalled for.
    pub recalled_turns: u64,
    /// Bytes of recalled text.
    pub recalled_bytes: u64,
    /// Number of facts that a reply needed from an earlier session.
    pub facts: u64,
    /// Of those, facts that were in the request.
    pub known: u64,
    #[serde(skip)]
    usage: Usage,
}

impl MemoryReport {
    /// Runs sessions with recall and without. `search` describes how memory is searched.
    ///
    /// # Errors
    /// Fails if memory cannot keep a session.
    pub async fn new(
        sessions: &[Session],
        recall: &dyn Recall,
        search: &str,
        setup: &Experiment,
    ) -> Result<Self, String> {
        let (mut without, mut with) = (MemoryRow::default(), MemoryRow::default());
        let mut said: HashSet<String> = HashSet::new();
        let mut turns = 0;
        for session in sessions {
            let plain = without_recall(session);
            let (recalled, count) = with_recall(&plain, recall, &mut with).await;
            turns += count;
            let needs = needs(&plain, &said);
            for (row, session) in [(&mut without, &plain), (&mut with, &recalled)] {
                row.add(session, &needs, setup).await;
            }
            said.extend(plain.messages.iter().flat_map(|message| said_words(message)));
            recall.keep(&plain).await?;
        }
        for row in [&mut without, &mut with] {
            row.input_tokens = row.usage.total_input();
            row.cost_usd = setup.model.price.map(|price| cost(&price, &row.usage));
        }
        Ok(Self {
            sessions: sessions.iter().map(|session| session.name.clone()).collect(),
            turns,
            model: setup.model.id.clone(),
            search: search.to_owned(),
            without,
            with,
        })
    }

    /// Formats the report as a table for people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} sessions, {} turns; memory searched {}; prices of {}\n\n",
            self.sessions.len(),
            grouped(self.turns),
            self.search,
            self.model
        );
        text.push_str(
            "           input tokens      cost   facts known   turns with recall   bytes recalled\n",
        );
        for (name, row) in [("without", &self.without), ("with", &self.with)] {
            let cost = row
                .cost_usd
                .map_or_else(|| "?".to_owned(), |cost| format!("${cost:.4}"));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name:<10} {:>12} {cost:>9} {:>13} {:>19} {:>16}",
                grouped(row.input_tokens),
                format!("{} of {}", row.known, row.facts),
                grouped(row.recalled_turns),
                grouped(row.recalled_bytes),
            );
        }
        text
    }
}

impl MemoryRow {
    async fn add(&mut self, session: &Session, needs: &[(usize, String)], setup: &Experiment) {
        let outcome = simulate(session, Strategy::None, setup).await;
        self.usage.add(&outcome.usage);
        for (at, fact) in needs {
            let before = session.messages.iter().take(*at);
            let recalled = before.flat_map(|message| fragments(message));
            self.facts += 1;
            self.known += u64::from(recalled.into_iter().any(|fragment| fragment.text.contains(fact)));
        }
    }
}

/// Returns a session without what was recalled when it took place.
fn without_recall(session: &Session) -> Session {
    let plain = |message: &Arc<Message>| {
        if fragments(message).next().is_none() {
            return Arc::clone(message);
        }
        let mut message = Message::clone(message);
        message.parts.retain(|part| !is_recalled(part));
        Arc::new(message)
    };
    Session {
        messages: session.messages.iter().map(plain).collect(),
        ..session.clone()
    }
}

/// Returns a session with what memory recalls now, and the number of its turns.
async fn with_recall(session: &Session, recall: &dyn Recall, row: &mut MemoryRow) -> (Session, u64) {
    let mut messages: Vec<Arc<Message>> = Vec::with_capacity(session.messages.len());
    let mut turns = 0;
    for message in &session.messages {
        messages.push(Arc::clone(message));
        let is_prompt = message.role == Role::User && !message.user_text().trim().is_empty();
        if !is_prompt {
            continue;
        }
        turns += 1;
        if let Some(fragment) = recall.before_turn(session, &messages).await {
            row.recalled_turns += 1;
            row.recalled_bytes += fragment.text.len() as u64;
            let mut with = Message::clone(message);
            with.parts.push(Part::Context(fragment));
            messages.pop();
            messages.push(Arc::new(with));
        }
    }
    let with = Session {
        messages,
        ..session.clone()
    };
    (with, turns)
}

/// Returns facts that replies contain for the first time in a session and that were said before, with the place of the
/// reply.
fn needs(session: &Session, said: &HashSet<String>) -> Vec<(usize, String)> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut needs = Vec::new();
    for (at, message) in session.messages.iter().enumerate() {
        for part in &message.parts {
            let text = match part {
                Part::Text(text) => &text.text,
                Part::ToolCall(call) => &call.input,
                Part::ToolResult(result) => &result.content,
                _ => continue,
            };
            for word in words(text) {
                let is_first = seen.insert(word.to_owned(), at).is_none();
                if is_first && message.role == Role::Assistant && said.contains(word) {
                    needs.push((at, word.to_owned()));
                }
            }
        }
    }
    needs
}

/// Returns the words that memory keeps of a message: those of the user and of the model.
fn said_words(message: &Message) -> Vec<String> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let is_said = matches!(message.role, Role::User | Role::Assistant);
    texts
        .filter(|_| is_said)
        .flat_map(words)
        .map(str::to_owned)
        .collect()
}

fn fragments(message: &Message) -> impl Iterator<Item = &Fragment> {
    message.parts.iter().filter_map(|part| match part {
        Part::Context(fragment) if fragment.source == FragmentSource::Memory => Some(fragment),
        _ => None,
    })
}

fn is_recalled(part: &Part) -> bool {
    matches!(part, Part::Context(fragment) if fragment.source == FragmentSource::Memory)
}
