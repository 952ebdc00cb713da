//! Relations of a live session to the agents above and below it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_api::{
    ClaimCheck, Event, FailureKind, FinishReason, GoalEvent, Message, Role, SessionEvent, SessionId,
};
use windlass_core::event::AgentEvent;
use windlass_core::hook::Hooks;
use windlass_core::log::{AgentRow, AgentState, Durability};

/// Relations of a session. Outlives the session's task.
#[derive(Clone, Default)]
pub(crate) struct Family {
    relations: Arc<Mutex<Relations>>,
    /// Notified when a sub-agent ends.
    ends: Arc<Notify>,
}

#[derive(Default)]
struct Relations {
    /// The ledger's row of this session, as of its last opening, if it is a sub-agent.
    row: Option<AgentRow>,
    /// Answers of the current run's earlier turns.
    answers: Answers,
    /// State after the current run, if somebody stopped it for a reason.
    ending: Option<(AgentState, String)>,
    /// Sub-agents that run in this process.
    running: Vec<RunningChild>,
    /// True if the session started sub-agents here, or has results that are not delivered.
    has_children: bool,
    /// True if the ledger may contain results that are not delivered.
    expects_results: bool,
    /// True if a sub-agent ended that wakes this session.
    wakes: bool,
    /// Hooks of this session.
    hooks: Hooks,
}

/// A sub-agent that runs in this process.
#[derive(Clone)]
pub(crate) struct RunningChild {
    pub(crate) session: SessionId,
    /// Number, name and task.
    pub(crate) title: String,
    pub(crate) background: bool,
}

impl Family {
    fn lock(&self) -> MutexGuard<'_, Relations> {
        self.relations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the row of a session that becomes live.
    pub(crate) fn is_agent(&self, row: Option<AgentRow>) {
        let mut relations = self.lock();
        relations.row = row;
        relations.answers = Answers::default();
    }

    /// Returns the row of this session, if it is a sub-agent.
    pub(crate) fn row(&self) -> Option<AgentRow> {
        self.lock().row.clone()
    }

    /// Returns the durability of the end of a turn. Nobody is told that a sub-agent has ended before the session above
    /// has stored more, so its end need not be on the disk.
    pub(crate) fn durability(&self) -> Durability {
        match self.lock().row {
            Some(_) => Durability::Process,
            None => Durability::Disk,
        }
    }

    /// Sets the hooks of the session.
    pub(crate) fn set_hooks(&self, hooks: &Hooks) {
        self.lock().hooks = hooks.clone();
    }

    pub(crate) fn hooks(&self) -> Hooks {
        self.lock().hooks.clone()
    }

    /// Sets the state after the current run, before it is stopped.
    pub(crate) fn ends_as(&self, state: AgentState, reason: &str) {
        self.lock().ending = Some((state, reason.to_owned()));
    }

    /// Notes a sub-agent that starts.
    pub(crate) fn started(&self, child: RunningChild) {
        let mut relations = self.lock();
        relations.has_children = true;
        relations
            .running
            .retain(|running| running.session != child.session);
        relations.running.push(child);
    }

    /// Notes the end of a sub-agent, which is recorded.
    pub(crate) fn ended(&self, child: &SessionId, wakes: bool) {
        let mut relations = self.lock();
        relations.running.retain(|running| running.session != *child);
        relations.expects_results = true;
        relations.wakes |= wakes;
        drop(relations);
        self.ends.notify_waiters();
    }

    /// Waits until a sub-agent that has ended is no longer followed.
    pub(crate) async fn settled(&self, child: &SessionId) {
        loop {
            let next = self.ends.notified();
            tokio::pin!(next);
            // Registered before the list is read, so that no end is missed.
            next.as_mut().enable();
            if !self
                .lock()
                .running
                .iter()
                .any(|running| running.session == *child)
            {
                return;
            }
            next.await;
        }
    }

    /// Returns the signal that a sub-agent ended.
    pub(crate) fn ends(&self) -> Arc<Notify> {
        Arc::clone(&self.ends)
    }

    /// Notes that the ledger contains sub-agents of this session.
    pub(crate) fn has_children(&self) {
        self.lock().has_children = true;
    }

    /// A turn starts: results that its predecessor did not record are asked for again.
    pub(crate) fn begin_turn(&self) {
        let mut relations = self.lock();
        relations.expects_results |= relations.has_children;
    }

    /// Returns the sub-agents that run in this process.
    pub(crate) fn running(&self) -> Vec<RunningChild> {
        self.lock().running.clone()
    }

    /// Returns true if the ledger must be asked for results. No further request is necessary until another
    /// sub-agent ends.
    pub(crate) fn takes_results(&self) -> bool {
        let mut relations = self.lock();
        let expects = relations.expects_results;
        relations.expects_results = false;
        expects
    }

    /// Returns true once after a sub-agent ended that wakes this session.
    pub(crate) fn takes_wake(&self) -> bool {
        std::mem::take(&mut self.lock().wakes)
    }

    /// Adds the end of a sub-agent's run before the event that ends its turn. If the run continues with another turn, the
    /// answer of this one is kept for the result instead. Does nothing for any other session.
    pub(crate) fn close(&self, history: &[Arc<Message>], events: &mut Vec<Event>, goes_on: bool) {
        let mut relations = self.lock();
        if relations.row.is_none() {
            return;
        }
        let Some(place) = events.iter().rposition(Event::is_terminal) else {
            return;
        };
        let Some(end) = events.get(place) else { return };
        let claims = events.iter().filter_map(|event| match event {
            Event::Session(SessionEvent::Work(GoalEvent::Claim(claim))) => Some(claim.clone()),
            _ => None,
        });
        relations.answers.claims.extend(claims);
        if goes_on {
            if let Event::Final { content, .. } = end {
                relations.answers.texts.push(content.clone());
            }
            return;
        }
        let ending = relations.ending.take();
        let answers = std::mem::take(&mut relations.answers);
        let ended = ended(end, history, ending, answers);
        events.insert(place, ended.into_event());
    }
}

/// Answers of the turns of a run so far.
#[derive(Default)]
struct Answers {
    texts: Vec<String>,
    claims: Vec<ClaimCheck>,
}

/// Returns the end of a run that ended with this event.
fn ended(
    end: &Event,
    history: &[Arc<Message>],
    ending: Option<(AgentState, String)>,
    answers: Answers,
) -> AgentEvent {
    let so_far = || last_text(history);
    let (state, reason, last) = match end {
        // A limit is never success, even if the model had a last word.
        Event::Final {
            content,
            finish: FinishReason::MaxIterations,
        } => (AgentState::Failed, Some("max_turns".to_owned()), content.clone()),
        Event::Final {
            content,
            finish: FinishReason::MaxTokens,
        } => (AgentState::Failed, Some("max_tokens".to_owned()), content.clone()),
        Event::Final { content, .. } => (AgentState::Done, None, content.clone()),
        Event::Failed { reason, message, .. } => {
            let text = so_far();
            let text = if text.is_empty() {
                message.clone()
            } else {
                format!("{message}\n{text}")
            };
            (AgentState::Failed, Some(kind(*reason)), text)
        }
        _ => (AgentState::Canceled, None, so_far()),
    };
    // An answer that was there first is worth more than the reason to stop.
    let (state, reason) = match ending.filter(|_| state != AgentState::Done) {
        Some((state, reason)) => (state, Some(reason)),
        None => (state, reason),
    };
    let mut texts = answers.texts;
    // A turn without words of its own ends with those of the last one.
    if texts.last() != Some(&last) {
        texts.push(last);
    }
    AgentEvent::AgentEnded {
        state,
        reason,
        result: texts.join("\n\n"),
        claims: answers.claims,
    }
}

/// Returns the kind of a failure as one word.
fn kind(reason: FailureKind) -> String {
    let value = serde_json::to_value(reason).unwrap_or_default();
    match &value {
        serde_json::Value::String(word) => word.clone(),
        // `{"provider": "auth"}`
        serde_json::Value::Object(nested) => nested
            .iter()
            .map(|(outer, inner)| format!("{outer}_{}", inner.as_str().unwrap_or_default()))
            .collect(),
        _ => "failed".to_owned(),
    }
}

/// Returns the last text of the model.
pub(super) fn last_text(history: &[Arc<Message>]) -> String {
    let texts = history
        .iter()
        .rev()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text());
    texts
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}
