//! GOAL-3, GOAL-9: work towards the goal without input, as the record tells it.

use windlass_api::{CheckRun, Event, GoalEvent, GoalRun, GoalState, GoalStop, Plan, SessionEvent, Timestamp};
use windlass_core::log::{Entry, counting};

/// Work towards a goal without input, and the plan of the session. A fold over its record.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Autonomy {
    run: Option<GoalRun>,
    standing: Option<Standing>,
    turns: u32,
    checks: Vec<CheckRun>,
    verdict: Option<(bool, String)>,
    pub(crate) plan: Plan,
}

/// State of the work since the last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) state: GoalState,
    pub(crate) reason: Option<GoalStop>,
    pub(crate) message: String,
    pub(crate) at: Timestamp,
    pub(crate) until: Option<Timestamp>,
    /// Start of the time in which it is active.
    pub(crate) since: Timestamp,
}

impl Autonomy {
    /// Reads the work from entries, without those that a rewind left behind.
    pub(crate) fn read<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut work = Self::default();
        for entry in counting(entries) {
            work.apply(&entry.event);
        }
        work
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        let Event::Session(event) = event else { return };
        match event {
            SessionEvent::Goal { text, .. } => {
                let is_same = self.run.as_ref().map(|run| &run.text) == text.as_ref();
                if !is_same {
                    self.forget();
                }
            }
            SessionEvent::GoalCompleted { text, .. } => self.reached(text),
            SessionEvent::Work(event) => self.progress(event),
            _ => {}
        }
    }

    /// Work that was stopped is over if the goal was reached in another way.
    fn reached(&mut self, text: &str) {
        let is_own = self.run.as_ref().is_some_and(|run| run.text == text);
        if let Some(standing) = self.standing.as_mut().filter(|_| is_own)
            && standing.state != GoalState::Active
        {
            standing.state = GoalState::Completed;
            standing.message.clear();
        }
    }

    fn forget(&mut self) {
        let plan = std::mem::take(&mut self.plan);
        *self = Self {
            plan,
            ..Self::default()
        };
    }

    fn progress(&mut self, event: &GoalEvent) {
        match event {
            GoalEvent::GoalRun(run) => {
                if self.run.as_ref().is_none_or(|old| old.text != run.text) {
                    self.forget();
                }
                self.run = Some(run.clone());
            }
            GoalEvent::GoalTurn { number } => self.turns = *number,
            GoalEvent::GoalCheck(check) => {
                self.checks.retain(|old| old.criterion != check.criterion);
                self.checks.push(check.clone());
            }
            GoalEvent::GoalVerdict { achieved, reason, .. } => {
                self.verdict = Some((*achieved, reason.clone()));
            }
            GoalEvent::GoalState {
                state,
                reason,
                message,
                at,
                until,
            } => {
                let was_active = self
                    .standing
                    .as_ref()
                    .filter(|old| old.state == GoalState::Active);
                let since = was_active.map_or(*at, |old| old.since);
                self.standing = Some(Standing {
                    state: *state,
                    reason: *reason,
                    message: message.clone(),
                    at: *at,
                    until: *until,
                    since,
                });
            }
            GoalEvent::Plan(plan) => self.plan = plan.clone(),
            GoalEvent::Claim(_) | GoalEvent::GoAhead { .. } => {}
        }
    }

    /// Returns true if turns run without input.
    pub(crate) fn is_active(&self) -> bool {
        self.state() == Some(GoalState::Active)
    }

    /// Returns the state of the work; `None` if there is none.
    pub(crate) fn state(&self) -> Option<GoalState> {
        self.run.as_ref()?;
        self.standing.as_ref().map(|standing| standing.state)
    }

    /// Returns the work, if there is any.
    pub(crate) fn work(&self) -> Option<(&GoalRun, &Standing)> {
        Some((self.run.as_ref()?, self.standing.as_ref()?))
    }

    /// Returns the number of turns so far.
    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    /// Returns the last result of each check.
    pub(crate) fn checks(&self) -> &[CheckRun] {
        &self.checks
    }

    /// Returns the last verdict of the supervisor, and its reason.
    pub(crate) fn verdict(&self) -> Option<(bool, &str)> {
        self.verdict
            .as_ref()
            .map(|(achieved, reason)| (*achieved, reason.as_str()))
    }
}

/// Wraps an event of the work.
pub(crate) fn work(event: GoalEvent) -> Event {
    Event::Session(SessionEvent::Work(event))
}

/// Returns the event for a change of state.
pub(crate) fn state(
    state: GoalState,
    reason: Option<GoalStop>,
    message: impl Into<String>,
    at: Timestamp,
) -> Event {
    work(GoalEvent::GoalState {
        state,
        reason,
        message: message.into(),
        at,
        until: None,
    })
}
