//! GOAL-3: turns without input, inside the session's own loop. [`Pursuit`](crate::goal::Pursuit) says what comes
//! next; this is how the session's task does it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinError;
use windlass_api::{
    CheckRun, Criterion, Event, GoalCompletion, GoalEvent, GoalRun, GoalState, GoalStop, Message, Part, Role,
    SessionEvent, Timestamp,
};
use windlass_core::log::{Durability, LogError, SpentBy};
use windlass_core::message::FragmentSource;
use windlass_core::permission::Mode;
use windlass_core::turn::Outcome;

use super::checking::{Check, Observation, Purpose};
use super::{Activity, SessionActor, Stay, not_stored};
use crate::environment::AutonomyLimits;
use crate::goal::supervisor::{Judged, Question, question};
use crate::goal::{After, Due, Phase, prompt, state, work};

/// Input with which a session goes ahead with its plan.
const GO_AHEAD: &str = "Go ahead.";
/// A day in milliseconds.
const DAY: u64 = 86_400_000;

impl SessionActor {
    /// Continues the work towards the goal.
    pub(super) async fn pursue(&mut self, due: Due) -> Activity {
        match due {
            Due::Stopped => self.stopped().await,
            Due::Judged(judged) => self.judged(judged).await,
            Due::Step(Phase::Review { says_done }) => return self.review(says_done).await,
            Due::Step(Phase::Judge) => self.ask_supervisor(),
            Due::Step(Phase::Next(_)) => return self.next_goal_turn().await,
        }
        Activity::Idle
    }

    /// Records events about the goal. If that fails, the session is closed, which is reported.
    pub(super) async fn note(&mut self, events: Vec<Event>) {
        if let Err(error) = self.sink.store(events.clone(), Durability::Disk).await {
            self.sink.tell_only(not_stored(&error));
            self.stay = Stay::Closing;
        }
        events.iter().for_each(|event| self.pursuit.apply(event));
    }

    /// GOAL-9: stops the work, for a reason that can be read later.
    pub(super) async fn halt(&mut self, stop: GoalStop, message: &str) {
        let to = match stop {
            GoalStop::Stuck | GoalStop::SameBlocker | GoalStop::Unanswered => GoalState::Blocked,
            _ => GoalState::Paused,
        };
        let now = self.inner.clock.now();
        self.note(vec![state(to, Some(stop), message, now)]).await;
    }

    /// Pauses the work because it was stopped: by the user, or with the program.
    async fn stopped(&mut self) {
        match self.stay == Stay::Closing || self.inner.closing.is_cancelled() {
            true => self.leave_goal().await,
            false => self.halt(GoalStop::User, "you stopped it").await,
        }
    }

    /// Pauses the work because the session's task ends.
    pub(super) async fn leave_goal(&mut self) {
        if self.pursuit.is_active() && !self.sink.is_broken() {
            self.halt(GoalStop::ProcessEnded, "the process ended").await;
        }
    }

    /// Completes the goal.
    async fn reach(&mut self, text: String, how: GoalCompletion) {
        let message = match how {
            GoalCompletion::Believed => "the supervisor believes that it is reached; nothing was checked",
            GoalCompletion::Plan => "every step of the plan is done",
            _ => "all checks passed",
        };
        let now = self.inner.clock.now();
        let done = Event::Session(SessionEvent::GoalCompleted { text, how });
        self.note(vec![done, state(GoalState::Completed, None, message, now)])
            .await;
    }

    /// Starts the next turn without input, unless a limit is reached.
    async fn next_goal_turn(&mut self) -> Activity {
        let Some((run, since)) = self
            .pursuit
            .autonomy
            .work()
            .map(|(run, standing)| (run.clone(), standing.since))
        else {
            return Activity::Idle;
        };
        let limits = self.env.goals().autonomy;
        let cost = match self.within_limits(&run, since, &limits).await {
            Ok(cost) => cost,
            Err((stop, message)) => {
                self.halt(stop, &message).await;
                return Activity::Idle;
            }
        };
        let (message, events) = match run.plan {
            true => match self.step_message().await {
                Some(next) => next,
                None => {
                    self.reach(run.text, GoalCompletion::Plan).await;
                    return Activity::Idle;
                }
            },
            false => (self.goal_message(&run), Vec::new()),
        };
        let number = self.pursuit.autonomy.turns() + 1;
        let begun = work(GoalEvent::GoalTurn { number });
        let stop = self.handle.begin();
        let events = events.into_iter().chain([begun]).collect();
        if let Err(error) = self.take(&message, events).await {
            self.sink.tell_only(not_stored(&error));
            self.stay = Stay::Closing;
            return Activity::Idle;
        }
        self.pursuit.announce(run.max_cost_usd.map(|most| most - cost));
        let activity = self.turn(&message, stop).await;
        if activity.is_idle() {
            self.goal_turn_ended(None).await;
        }
        activity
    }

    /// Returns the cost and the tokens of the work so far.
    async fn spent_since(&self, run: &GoalRun) -> Result<(f64, u64), LogError> {
        let rows = self.inner.store.spent(Some(&self.info.id), SpentBy::Day).await?;
        let (cost, tokens) = crate::goal::sum(&rows);
        Ok((cost - run.before_usd, tokens.saturating_sub(run.before_tokens)))
    }

    /// Returns the cost of the work so far. Fails with the limit that is reached and a message for people; a cost
    /// that cannot be read is no cost within a limit.
    async fn within_limits(
        &self,
        run: &GoalRun,
        since: Timestamp,
        limits: &AutonomyLimits,
    ) -> Result<f64, (GoalStop, String)> {
        let unknown = |error: LogError| (GoalStop::Cost, format!("the cost so far cannot be read: {error}"));
        let (cost, tokens) = self.spent_since(run).await.map_err(unknown)?;
        if self.pursuit.autonomy.turns() >= run.max_turns {
            let text = format!("the limit of {} turns is reached", run.max_turns);
            return Err((GoalStop::TurnLimit, text));
        }
        if let Some(most) = run.max_cost_usd.filter(|most| cost >= *most) {
            let text = format!("it has cost ${cost:.2}, and the limit is ${most:.2}");
            return Err((GoalStop::Cost, text));
        }
        if let Some(most) = limits.max_tokens.filter(|most| tokens >= *most) {
            let text = format!("it has used {tokens} tokens, and the limit is {most}");
            return Err((GoalStop::Tokens, text));
        }
        let now = self.inner.clock.now();
        let time = Duration::from_millis(now.0.saturating_sub(since.0));
        if time >= limits.max_time {
            let text = format!("it has taken {} minutes, which is the limit", time.as_secs() / 60);
            return Err((GoalStop::Time, text));
        }
        let Some(most) = limits.max_cost_per_day else {
            return Ok(cost);
        };
        let midnight = Timestamp(now.0 - now.0 % DAY);
        let today = self
            .inner
            .store
            .unattended_cost(midnight)
            .await
            .map_err(unknown)?;
        if today >= most {
            let text = format!(
                "work without input has cost ${today:.2} today, and autonomy.max_cost_per_day is ${most:.2}"
            );
            return Err((GoalStop::DailyCost, text));
        }
        Ok(cost)
    }

    /// Returns the input of the next turn. The first one contains the goal as the user's words.
    fn goal_message(&self, run: &GoalRun) -> Arc<Message> {
        let work = &self.pursuit.autonomy;
        let parts = match work.turns() {
            0 => vec![
                Part::text(run.text.clone()),
                Part::context(FragmentSource::Prompt, prompt::first(run)),
            ],
            _ => vec![Part::context(FragmentSource::Prompt, prompt::next(work, run))],
        };
        self.input(parts)
    }

    pub(super) fn input(&self, parts: Vec<Part>) -> Arc<Message> {
        let now = self.inner.clock.now();
        Arc::new(Message::new(&self.info.id, Role::User, parts, now))
    }

    /// Takes the end of a turn into account.
    pub(super) async fn goal_turn_ended(&mut self, outcome: Option<&Outcome>) {
        let goals = self.env.goals();
        if let Some(id) = self.pursuit.take_agreement() {
            self.env.permissions().set_mode(Mode::Auto);
            let now = self.inner.clock.now();
            let message = Message::user(&self.info.id, GO_AHEAD, now);
            self.queue.put_first(Message { id, ..message }, &self.sink).await;
        }
        let is_own = self.pursuit.is_own_turn();
        let after = match (is_own, outcome) {
            (true, outcome) => self.pursuit.ended(outcome, &goals),
            (false, Some(Outcome::Canceled)) => After::Stopped,
            (false, _) => After::Next,
        };
        if !self.pursuit.is_active() {
            return;
        }
        match after {
            After::Review => {}
            After::Next => self.pursuit.then(self.soon()),
            After::Stopped => self.stopped().await,
            After::Stop(stop, message) => self.halt(stop, &message).await,
            After::Wait(wait, why) => {
                let (now, wait_ms) = (self.inner.clock.now(), wait.as_millis());
                let until = Timestamp(now.0 + u64::try_from(wait_ms).unwrap_or_default());
                self.note(vec![work(GoalEvent::GoalState {
                    state: GoalState::Active,
                    reason: Some(GoalStop::RateLimit),
                    message: format!("waits {} s: {why}", wait.as_secs()),
                    at: now,
                    until: Some(until),
                })])
                .await;
                self.pursuit.then(Phase::Next(self.inner.clock.elapsed() + wait));
            }
        }
    }

    /// Returns the next turn, after the pause between turns.
    fn soon(&self) -> Phase {
        Phase::Next(self.inner.clock.elapsed() + self.env.goals().autonomy.turn_delay)
    }

    /// GOAL-8: verifies the goal after a turn.
    async fn review(&mut self, says_done: bool) -> Activity {
        let work = self.pursuit.autonomy.work();
        let Some((run, since)) = work.map(|(run, standing)| (run.clone(), standing.since)) else {
            return Activity::Idle;
        };
        self.pursuit.then(self.soon());
        if run.plan {
            return self.review_steps(since).await;
        }
        let interval = self.env.goals().autonomy.supervisor.interval;
        let is_due = self.pursuit.autonomy.turns().is_multiple_of(interval);
        let may_complete = says_done && run.criteria.is_empty();
        if (is_due || may_complete) && !self.pursuit.supervision.is_running() {
            self.ask_supervisor();
        }
        if !run.criteria.is_empty() {
            let checks = run.criteria.iter().map(|one| Check::of(one, &run.text)).collect();
            return self.check(checks, Purpose::Goal(run.criteria)).await;
        }
        match may_complete {
            true => self.pursuit.then(Phase::Judge),
            false => self.go_on().await,
        }
        Activity::Idle
    }

    /// Starts a judgement in the background.
    fn ask_supervisor(&mut self) {
        let Some((run, _)) = self.pursuit.autonomy.work() else {
            return;
        };
        let text = question(&self.pursuit.autonomy, run, &self.history);
        let question = Question {
            inner: Arc::clone(&self.inner),
            session: self.info.id.clone(),
            limits: self.env.goals().autonomy.supervisor,
            model: self.env.supervisor(),
            own: self.pursuit.provider.clone(),
            text,
            cancel: self.inner.closing.child_token(),
        };
        self.pursuit.supervision.start(question);
    }

    /// Takes an answer of the supervisor. It never counts against a check, and only a plain yes counts.
    async fn judged(&mut self, judged: Judged) {
        let now = self.inner.clock.elapsed();
        let judged = self.pursuit.supervision.note(judged, now);
        let limits = self.env.goals().autonomy.supervisor;
        let Some(run) = self.pursuit.autonomy.work().map(|(run, _)| run.clone()) else {
            return;
        };
        match judged {
            Judged::Deferred(wait) => {
                let text = format!("the supervisor's provider asks to wait {} s", wait.as_secs());
                self.warn(&[text]).await;
            }
            Judged::Failed(why) if self.pursuit.supervision.fails() >= limits.max_fails => {
                let text = format!("the supervisor failed {} times in a row: {why}", limits.max_fails);
                self.halt(GoalStop::Supervisor, &text).await;
            }
            Judged::Failed(why) => {
                let text =
                    format!("the supervisor could not judge, so the goal counts as not reached: {why}");
                self.warn(&[text]).await;
                self.go_on().await;
            }
            Judged::Verdict { achieved, reason } => {
                let turn = self.pursuit.autonomy.turns();
                self.note(vec![work(GoalEvent::GoalVerdict {
                    turn,
                    achieved,
                    reason,
                })])
                .await;
                match achieved && run.criteria.is_empty() && !run.plan {
                    true => self.reach(run.text, GoalCompletion::Believed).await,
                    false => self.go_on().await,
                }
            }
        }
    }

    /// Continues with the next turn, unless the model repeats itself.
    async fn go_on(&mut self) {
        let most = self.env.goals().autonomy.max_stuck_count;
        if self.pursuit.is_stuck(most) {
            let text = format!("{most} turns in a row had the same answer");
            return self.halt(GoalStop::Stuck, &text).await;
        }
        if self.pursuit.is_judging() {
            self.pursuit.then(self.soon());
        }
    }

    /// Takes the results of checks of the goal.
    pub(super) async fn goal_checked(&mut self, criteria: Vec<Criterion>, seen: Vec<Observation>) {
        let is_unanswered = seen.iter().any(|one| one.is_unanswered);
        let has_passed = seen.len() == criteria.len() && seen.iter().all(Observation::has_passed);
        let before = self.pursuit.autonomy.checks().to_vec();
        let events = criteria.into_iter().zip(seen).map(|(criterion, seen)| {
            work(GoalEvent::GoalCheck(CheckRun {
                criterion,
                passed: seen.has_passed(),
                evidence: seen.evidence,
                excerpt: seen.excerpt,
            }))
        });
        self.note(events.collect()).await;
        let text = self.pursuit.autonomy.work().map(|(run, _)| run.text.clone());
        match text {
            Some(text) if has_passed => self.reach(text, GoalCompletion::Verified).await,
            Some(_) if is_unanswered => {
                let text = "nobody was there to confirm that the goal is reached";
                self.halt(GoalStop::Unanswered, text).await;
            }
            _ => match CheckRun::never_passes(self.pursuit.autonomy.checks(), &before) {
                Some(text) => self.halt(GoalStop::SameBlocker, &text).await,
                None => self.go_on().await,
            },
        }
    }

    /// Records the end of checks.
    pub(super) async fn checked(
        &mut self,
        purpose: Purpose,
        was_stopped: bool,
        seen: Result<Vec<Observation>, JoinError>,
    ) {
        let seen = seen.unwrap_or_default();
        match purpose {
            Purpose::Claims(claims) => self.claims_checked(claims, seen, was_stopped).await,
            Purpose::Goal(_) | Purpose::Steps(_) if !self.pursuit.is_active() => {}
            Purpose::Goal(_) | Purpose::Steps(_) if was_stopped => self.stopped().await,
            Purpose::Goal(criteria) => self.goal_checked(criteria, seen).await,
            Purpose::Steps(review) => self.steps_checked(&review, &seen).await,
        }
    }
}
