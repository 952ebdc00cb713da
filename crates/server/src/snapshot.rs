//! The state of a session in one answer: a page draws from this alone, and follows the events after it.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_api::{ClientError, Entry, Event, Overview, SessionId, SessionInfo, Timestamp, Wait};

use crate::app::App;
use crate::hub::Partial;
use crate::problem::Problem;
use crate::questions::{OpenQuestion, TAIL, open_questions, without_refused};

/// Entries of a snapshot.
const ENTRIES: usize = 200;

/// The state of a session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Snapshot {
    /// The session.
    pub(crate) session: SessionInfo,
    /// Number of the last state event in this snapshot: follow the events after it.
    pub(crate) seq: u64,
    /// Identifies the run of the server that the number belongs to.
    pub(crate) epoch: String,
    /// Model, mode, queue and goal; absent if another process works in the session.
    pub(crate) overview: Option<Overview>,
    /// Reason the session cannot be used here, if it cannot.
    pub(crate) problem: Option<String>,
    /// The last entries, oldest first.
    pub(crate) entries: Vec<Entry>,
    /// True if there are older entries.
    pub(crate) has_more: bool,
    /// Questions and permission requests without an answer.
    pub(crate) questions: Vec<OpenQuestion>,
    /// Calls that run.
    pub(crate) running: Vec<RunningStep>,
    /// What is being written right now.
    pub(crate) live: Partial,
    /// What the turn waits for, outermost first.
    pub(crate) why: Vec<Wait>,
    /// Time of the snapshot, in milliseconds since 1970.
    pub(crate) now: Timestamp,
}

/// A call that runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RunningStep {
    /// Id of the call.
    pub(crate) call: String,
    /// Description for people.
    pub(crate) title: String,
    /// Time so far, in milliseconds.
    pub(crate) elapsed_ms: u64,
}

/// Returns the calls that have started and not ended.
pub(crate) fn running(entries: &[Entry], now: Timestamp) -> Vec<RunningStep> {
    let mut running: Vec<RunningStep> = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::StepStart { call_id, title, .. } => running.push(RunningStep {
                call: call_id.to_string(),
                title: title.clone(),
                elapsed_ms: now.0.saturating_sub(entry.time.0),
            }),
            Event::StepComplete { call_id, .. } => running.retain(|step| step.call != call_id.as_str()),
            event if event.is_terminal() => running.clear(),
            _ => {}
        }
    }
    running
}

/// Reads the state of a session.
pub(crate) async fn snapshot(app: &App, session: &SessionId) -> Result<Snapshot, Problem> {
    let backend = &app.ports.backend;
    // Opening completes a record that a killed process left, so it goes first.
    let (overview, problem) = match backend.overview(session).await {
        Ok(overview) => (Some(overview), None),
        Err(error @ ClientError::Unknown(_)) => return Err(error.into()),
        Err(error) => (None, Some(error.to_string())),
    };
    let hub = app.hubs.hub(session).await?;
    // The number is read before the entries: an event in between comes twice, and none is missing.
    let (seq, live) = hub.now();
    let info = match &overview {
        Some(overview) => overview.info.clone(),
        None => app.info(session).await?,
    };
    let tail = backend.tail(session, None, TAIL).await?;
    let now = app.ports.clock.now();
    let questions = without_refused(&*app.ports.store, session, open_questions(&tail)).await;
    let running = running(&tail, now);
    let skip = tail.len().saturating_sub(ENTRIES);
    let entries: Vec<Entry> = tail.into_iter().skip(skip).collect();
    let has_more = entries.first().is_some_and(|entry| entry.seq > 1);
    Ok(Snapshot {
        session: info,
        seq: seq.min(entries.last().map_or(seq, |entry| entry.seq)),
        epoch: app.epoch.clone(),
        overview,
        problem,
        has_more,
        questions,
        running,
        live,
        why: backend.why(session).await,
        now,
        entries,
    })
}

impl App {
    /// Returns a stored session.
    pub(crate) async fn info(&self, session: &SessionId) -> Result<SessionInfo, Problem> {
        let info = self.ports.store.get(session).await?;
        info.ok_or_else(|| Problem::not_found(format!("there is no session {session}")))
    }
}
