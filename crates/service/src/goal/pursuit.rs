//! GOAL-3: the next step of the work towards a goal, and its time. The session's task asks between turns.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::{
    CallId, Event, FailureKind, GoalEvent, GoalState, GoalStop, Message, MessageId, Part, ProviderErrorKind,
    SessionEvent, Timestamp,
};
use windlass_core::clock::Clock;
use windlass_core::log::Entry;
use windlass_core::permission::{Approver, Denial, Grant, Proposal, Question};
use windlass_core::provider::Provider;
use windlass_core::turn::{Answered, Failure, Outcome};

use super::supervisor::{Judged, Supervision};
use super::{Autonomy, Goal, says, state};
use crate::environment::Goals;
use crate::handle::SessionHandle;
use crate::turn::PlannedTurn;

/// First wait after a rate limit that names no time; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// Longest wait after a rate limit that names no time.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// Words with which the model says that it needs the user.
const BLOCKED: &str = "BLOCKED:";

/// The goal of a session, and the work towards it.
pub(crate) struct Pursuit {
    pub(crate) goal: Goal,
    pub(crate) autonomy: Autonomy,
    pub(crate) supervision: Supervision,
    /// The model of the last turn, which judges if no other one does.
    pub(crate) provider: Option<Arc<dyn Provider>>,
    /// Steps of the plan that were not done after a turn, by id.
    failed_steps: HashMap<String, FailedStep>,
    /// Task for which the next input asks for a plan.
    planning: Option<String>,
    phase: Phase,
    answers: Streak,
    blockers: Streak,
    waits: u32,
    /// The turn without input that starts or runs.
    own_turn: Option<OwnTurn>,
    answered: UserAnswers,
}

/// Answers of the user in the running turn.
#[derive(Debug, Default)]
struct UserAnswers {
    /// Set when a request was not answered.
    unanswered: Arc<AtomicBool>,
    /// Input with which the session goes ahead with its plan.
    agreed: Option<MessageId>,
}

/// A step of the plan that was not done.
#[derive(Debug, Default)]
struct FailedStep {
    times: u32,
    excerpt: String,
}

/// A turn without input.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OwnTurn {
    /// US dollars that it may spend; `None` without a limit.
    left: Option<f64>,
}

/// Next step of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A turn ended: verify the goal. The model may have said that it is done.
    Review { says_done: bool },
    /// Wait for the supervisor.
    Judge,
    /// Start the next turn at this time of the monotonic clock.
    Next(Duration),
}

/// Reason the session's task continues the work.
#[derive(Debug)]
pub(crate) enum Due {
    /// The next step is due.
    Step(Phase),
    /// The supervisor answered.
    Judged(Judged),
    /// The user stopped the work.
    Stopped,
}

/// End of a turn without input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    /// The goal is verified next.
    Review,
    /// The next turn waits this long because of the provider.
    Wait(Duration, String),
    /// The next turn follows.
    Next,
    /// The user stopped the turn.
    Stopped,
    /// The work cannot continue.
    Stop(GoalStop, String),
}

/// Counts equal texts in a row.
#[derive(Debug, Default)]
struct Streak {
    last: Option<blake3::Hash>,
    count: u32,
}

impl Streak {
    fn note(&mut self, text: &str) -> u32 {
        let words: Vec<&str> = text.split_whitespace().collect();
        let digest = blake3::hash(words.join(" ").as_bytes());
        self.count = if self.last == Some(digest) {
            self.count + 1
        } else {
            1
        };
        self.last = Some(digest);
        self.count
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Pursuit {
    pub(crate) fn read(entries: &[Entry]) -> Self {
        Self {
            goal: Goal::read(entries),
            autonomy: Autonomy::read(entries),
            supervision: Supervision::default(),
            provider: None,
            failed_steps: HashMap::new(),
            planning: None,
            phase: Phase::Next(Duration::ZERO),
            answers: Streak::default(),
            blockers: Streak::default(),
            waits: 0,
            own_turn: None,
            answered: UserAnswers::default(),
        }
    }

    /// GOAL-9: pauses work whose process ended without saying so, and returns the event that records it.
    pub(crate) fn orphaned(&mut self, now: Timestamp) -> Option<Event> {
        let event = state(
            GoalState::Paused,
            Some(GoalStop::ProcessEnded),
            "the process ended",
            now,
        );
        self.is_active().then(|| {
            self.apply(&event);
            event
        })
    }

    /// Reads the goal again, after a rewind.
    pub(crate) fn reread(&mut self, entries: &[Entry]) {
        self.goal = Goal::read(entries);
        self.autonomy = Autonomy::read(entries);
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.goal.apply(event);
        self.autonomy.apply(event);
        if let Event::Session(SessionEvent::Work(GoalEvent::GoAhead { input })) = event {
            self.answered.agreed = Some(input.clone());
        }
    }

    /// Returns true if a turn without input will start, or runs.
    pub(crate) fn is_active(&self) -> bool {
        self.autonomy.is_active()
    }

    /// Returns true if the running turn has no input of the user.
    pub(crate) fn is_own_turn(&self) -> bool {
        self.own_turn.is_some()
    }

    /// Returns the id of the input with which the session goes ahead with its plan, once.
    pub(crate) fn take_agreement(&mut self) -> Option<MessageId> {
        self.answered.agreed.take()
    }

    /// Announces an input that asks for a plan.
    pub(crate) fn plan(&mut self, task: &str) {
        self.planning = Some(task.to_owned());
    }

    /// Returns the task of an input that asks for a plan.
    pub(crate) fn take_planning(&mut self, message: &Message) -> Option<String> {
        let said = |part: &Part| match part {
            Part::Text(text) => Some(text.text.trim().to_owned()),
            _ => None,
        };
        let planning = self.planning.take()?;
        let is_asked = message
            .parts
            .iter()
            .filter_map(said)
            .any(|text| text == planning.trim());
        is_asked.then_some(planning)
    }

    /// Announces a turn without input, which may spend `left` US dollars.
    pub(crate) fn announce(&mut self, left: Option<f64>) {
        self.own_turn = Some(OwnTurn { left });
    }

    /// Returns true if the work waits for the supervisor.
    pub(crate) fn is_judging(&self) -> bool {
        self.phase == Phase::Judge
    }

    /// Notes that a step was not done, and returns how often that happened.
    pub(crate) fn step_failed(&mut self, id: &str, excerpt: String) -> u32 {
        let failed = self.failed_steps.entry(id.to_owned()).or_default();
        failed.times += 1;
        failed.excerpt = excerpt;
        failed.times
    }

    /// Returns the reason a step was not done after its last attempt.
    pub(crate) fn failure_of(&self, id: &str) -> Option<&str> {
        self.failed_steps.get(id).map(|step| step.excerpt.as_str())
    }

    /// Starts over: the next turn is due now, and nothing counts against it.
    pub(crate) fn begin(&mut self) {
        self.answers.reset();
        self.blockers.reset();
        self.waits = 0;
        self.failed_steps.clear();
        self.supervision = Supervision::default();
        self.phase = Phase::Next(Duration::ZERO);
    }

    /// Sets the next step.
    pub(crate) fn then(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Returns true if the last answers were all the same.
    pub(crate) fn is_stuck(&self, most: u32) -> bool {
        self.answers.count >= most
    }

    /// Waits until the work continues; never returns while there is none. Can be dropped and called again. The
    /// user can stop the wait.
    pub(crate) async fn due(&mut self, handle: &SessionHandle, clock: &dyn Clock) -> Due {
        if !self.is_active() {
            return std::future::pending().await;
        }
        let stop = handle.begin();
        let phase = self.phase;
        let until = match phase {
            Phase::Review { .. } => Some(Duration::ZERO),
            Phase::Next(at) => Some(at),
            Phase::Judge => self.supervision.retry_at,
        };
        let wait = async {
            match until {
                Some(at) => clock.sleep(at.saturating_sub(clock.elapsed())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.token.cancelled() => Due::Stopped,
            judged = self.supervision.judged() => Due::Judged(judged),
            () = wait => Due::Step(phase),
        }
    }

    /// Prepares the announced turn: its cost is limited, and nobody is waited for without end. Does nothing for
    /// a turn with input.
    pub(crate) fn prepare(&mut self, turn: &mut PlannedTurn, patience: Duration) {
        let Some(OwnTurn { left }) = self.own_turn else {
            return;
        };
        self.answered.unanswered.store(false, Ordering::SeqCst);
        self.provider = Some(Arc::clone(&turn.ports.provider));
        let limit = &mut turn.config.limits.max_cost_usd;
        *limit = match (*limit, left) {
            (Some(limit), Some(left)) => Some(limit.min(left)),
            (limit, left) => limit.or(left),
        };
        turn.ports.approver = Arc::new(Patience {
            approver: Arc::clone(&turn.ports.approver),
            clock: Arc::clone(&turn.ports.clock),
            limit: patience,
            unanswered: Arc::clone(&self.answered.unanswered),
        });
    }

    /// Notes the end of a turn without input.
    pub(crate) fn ended(&mut self, outcome: Option<&Outcome>, goals: &Goals) -> After {
        self.own_turn = None;
        let most = goals.autonomy.max_stuck_count;
        let was_unanswered = self.answered.unanswered.swap(false, Ordering::SeqCst);
        match outcome {
            Some(Outcome::Canceled) => After::Stopped,
            _ if was_unanswered => After::Stop(
                GoalStop::Unanswered,
                "a question or a permission request was not answered".to_owned(),
            ),
            Some(Outcome::Failed(failure)) => self.failed(failure, most),
            None => self.blocked("the turn failed with an internal error", most),
            Some(Outcome::Answered(Answered { text, done, .. })) => {
                self.waits = 0;
                if let Some(why) = text.trim_start().strip_prefix(BLOCKED) {
                    return self.blocked(why.lines().next().unwrap_or_default().trim(), most);
                }
                self.blockers.reset();
                self.answers.note(text);
                self.phase = Phase::Review {
                    says_done: *done || says(text, &goals.completion_phrases),
                };
                After::Review
            }
        }
    }

    fn failed(&mut self, failure: &Failure, most: u32) -> After {
        let FailureKind::Provider(kind) = failure.kind else {
            return match failure.kind {
                FailureKind::CostLimit => After::Stop(GoalStop::Cost, failure.message.clone()),
                _ => self.blocked(&failure.message, most),
            };
        };
        let is_limit = matches!(kind, ProviderErrorKind::RateLimit | ProviderErrorKind::Overloaded);
        match failure.retry_after {
            Some(wait) if is_limit || kind == ProviderErrorKind::Quota => {
                After::Wait(wait, failure.message.clone())
            }
            None if is_limit => {
                let wait = FIRST_WAIT.saturating_mul(1 << self.waits.min(10));
                self.waits += 1;
                After::Wait(wait.min(LONGEST_WAIT), failure.message.clone())
            }
            _ => self.blocked(&failure.message, most),
        }
    }

    fn blocked(&mut self, why: &str, most: u32) -> After {
        if self.blockers.note(why) >= most {
            return After::Stop(GoalStop::SameBlocker, why.to_owned());
        }
        After::Next
    }
}

/// GOAL-9: asks the user, but not without end.
struct Patience {
    approver: Arc<dyn Approver>,
    clock: Arc<dyn Clock>,
    limit: Duration,
    unanswered: Arc<AtomicBool>,
}

#[async_trait]
impl Approver for Patience {
    fn granted(&self, proposal: &Proposal) -> bool {
        self.approver.granted(proposal)
    }

    fn session_grants(&self) -> Vec<Grant> {
        self.approver.session_grants()
    }

    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        tokio::select! {
            answer = self.approver.approve(proposal) => answer,
            () = self.clock.sleep(self.limit) => {
                self.unanswered.store(true, Ordering::SeqCst);
                Err(Denial {
                    reason: Some("nobody answered the permission request in time".to_owned()),
                    feedback: None,
                })
            }
        }
    }

    async fn answer(&self, call: &CallId, question: &Question) -> Option<String> {
        let answer = tokio::select! {
            answer = self.approver.answer(call, question) => answer,
            () = self.clock.sleep(self.limit) => None,
        };
        if answer.is_none() {
            self.unanswered.store(true, Ordering::SeqCst);
        }
        answer
    }
}

#[cfg(test)]
#[path = "pursuit_tests.rs"]
mod tests;
