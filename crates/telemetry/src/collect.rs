//! Reads the spans of sessions from a store, and finds the span above each turn.

use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{AgentLedger, AgentRow, Entry, LogError, Preferences, SessionLog, Store};

use crate::derive::{Redact, TraceSubject, TurnTrace, caller, turn_context, turns};
use crate::span::{SpanContext, TraceSpan};

/// Name of the agent that is no sub-agent.
const MAIN_AGENT: &str = "windlass";
/// Scope of the stored spans above turns.
const SCOPE: &str = "telemetry";
/// Number of entries read at a time.
const PAGE: usize = 1000;
/// Maximum number of sessions above a sub-agent.
const DEPTH: usize = 32;

/// Reads spans from a store.
#[derive(Clone, Copy)]
pub struct Collector<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// True to include messages, arguments and results.
    pub content: bool,
    /// Masks keys in texts.
    pub redact: Redact,
}

/// The turns of a session that ended after an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// The spans, turn by turn.
    pub turns: Vec<Vec<TraceSpan>>,
    /// Number of the last entry that belongs to them.
    pub last_seq: u64,
}

impl Collector<'_> {
    /// Returns the spans of the turns of a session that ended after entry `after`, which must not be in the
    /// middle of a turn. `outside` is the span that started this process, for turns that it ran.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn session(
        &self,
        session: &SessionId,
        after: u64,
        outside: Option<SpanContext>,
    ) -> Result<Collected, LogError> {
        let Some(info) = self.store.get(session).await? else {
            return Err(LogError::Unknown(session.clone()));
        };
        let row = AgentLedger::agent(self.store, session).await?;
        let subject = TraceSubject {
            session: session.clone(),
            created_at: info.created_at,
            agent: row
                .as_ref()
                .map_or_else(|| MAIN_AGENT.to_owned(), |row| row.job.name.clone()),
            content: self.content,
            redact: self.redact,
        };
        let entries = self.entries(session, after).await?;
        let mut collected = Collected {
            turns: Vec::new(),
            last_seq: after,
        };
        for turn in turns(&subject, &entries) {
            collected.last_seq = turn.last_seq;
            collected
                .turns
                .push(self.placed(session, row.as_ref(), turn, outside).await?);
        }
        Ok(collected)
    }

    async fn placed(
        &self,
        session: &SessionId,
        row: Option<&AgentRow>,
        turn: TurnTrace,
        outside: Option<SpanContext>,
    ) -> Result<Vec<TraceSpan>, LogError> {
        let parent = match (row, outside) {
            (None, Some(outside)) => {
                self.keep_outside(session, &turn.message, outside).await?;
                Some(outside)
            }
            (row, _) => self.above(session, row, &turn.message).await?,
        };
        Ok(turn.placed(session, parent))
    }

    /// Returns the place of a turn's span.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn turn(
        &self,
        session: &SessionId,
        message: &MessageId,
        outside: Option<SpanContext>,
    ) -> Result<SpanContext, LogError> {
        let row = AgentLedger::agent(self.store, session).await?;
        let parent = match (&row, outside) {
            (None, Some(outside)) => {
                // Sub-agents of the turn need it before the turn ends.
                self.keep_outside(session, message, outside).await?;
                Some(outside)
            }
            _ => self.above(session, row.as_ref(), message).await?,
        };
        Ok(turn_context(session, message, parent))
    }

    /// Returns the span above a turn: the call that started the sub-agent, up to the top of its tree.
    async fn above(
        &self,
        session: &SessionId,
        row: Option<&AgentRow>,
        message: &MessageId,
    ) -> Result<Option<SpanContext>, LogError> {
        let (mut session, mut row, mut message) = (session.clone(), row.cloned(), message.clone());
        let mut first = None;
        for _ in 0..DEPTH {
            let Some(agent) = row else { break };
            let parent = agent.family.parent;
            let entries = self.entries(&parent, 0).await?;
            let call = agent.family.call.as_ref();
            let Some((turn, span)) = caller(&parent, &entries, call, agent.created_at) else {
                break;
            };
            first.get_or_insert(span);
            row = AgentLedger::agent(self.store, &parent).await?;
            (session, message) = (parent, turn);
        }
        let outside = self.outside(&session, &message).await?;
        Ok(match first {
            Some(span) => Some(SpanContext {
                trace: turn_context(&session, &message, outside).trace,
                span,
            }),
            None => outside,
        })
    }

    /// Stores the span outside that a turn belongs to, so that a later export gives the same trace.
    async fn keep_outside(
        &self,
        session: &SessionId,
        message: &MessageId,
        outside: SpanContext,
    ) -> Result<(), LogError> {
        let (name, value) = (outside_name(session, message), outside.to_string());
        Preferences::set_preference(self.store, SCOPE, &name, Some(&value)).await
    }

    async fn outside(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Result<Option<SpanContext>, LogError> {
        let name = outside_name(session, message);
        let stored = Preferences::preference(self.store, SCOPE, &name).await?;
        Ok(stored.and_then(|text| SpanContext::parse(&text)))
    }

    async fn entries(&self, session: &SessionId, after: u64) -> Result<Vec<Entry>, LogError> {
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let after = all.last().map_or(after, |entry| entry.seq);
            let page = SessionLog::entries(self.store, session, after, PAGE).await?;
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}

fn outside_name(session: &SessionId, message: &MessageId) -> String {
    format!("{session}/{message}")
}
