//! GOAL-3: `windlass exec --goal`: works towards a goal over many turns, and reports how it ended.

use windlass_api::{
    ClaimStatus, Event, EventStream, GoalEvent, GoalRequest, GoalState, GoalStop, SessionEvent, command_line,
};
use windlass_config::Problem;

use super::Runner;
use crate::exit::Exit;
use crate::output::{Outcome, Trouble};
use windlass_args::ExecOptions;

/// Returns the request of `--goal`; `None` without it.
pub(super) fn request(words: &[String], options: &ExecOptions) -> Result<Option<GoalRequest>, Problem> {
    let goal = &options.goal;
    let Some(text) = &goal.goal else {
        return Ok(None);
    };
    if !words.is_empty() {
        let text = format!(
            "with --goal there is no prompt, but {:?} was given",
            words.join(" ")
        );
        return Err(Problem::usage(text));
    }
    let text = text.trim().to_owned();
    let goes_on = options.session.resume.is_some() || options.session.continue_last;
    if text.is_empty() && !goes_on {
        let text = "--goal needs a text, as in `windlass exec --goal \"make the tests pass\" --check \"make test\"`; without \
                    one, it continues the goal of the session that --resume or --continue names";
        return Err(Problem::usage(text));
    }
    if text.is_empty() && !(goal.check.is_empty() && goal.file.is_empty()) {
        let text = "a goal that is resumed keeps its checks: leave out --check and --file";
        return Err(Problem::usage(text));
    }
    if options.output.output_schema.is_some() {
        return Err(Problem::usage("--goal cannot be combined with --output-schema"));
    }
    Ok(Some(GoalRequest {
        text,
        checks: goal.check.clone(),
        files: goal.file.clone(),
        asks: goal.ask,
        turns: goal.turns,
        max_cost_usd: options.max_cost,
    }))
}

impl Runner<'_> {
    /// Prints the events that a command started.
    pub(super) async fn follow(&mut self, line: &str, events: EventStream) -> Outcome {
        match command_line(line).map(|line| line.name) {
            Some("goal" | "plan") => self.pursue(events).await,
            Some("verify") => self.verify(events).await,
            _ => self.outcome(events).await,
        }
    }

    /// Prints work towards a goal to its end. The answer is that of the last turn.
    async fn pursue(&mut self, mut events: EventStream) -> Outcome {
        let mut last = Outcome::answered(Exit::Ok, String::new());
        let mut end = None;
        while let Some(envelope) = self.next(&mut events).await {
            match &envelope.event {
                event if event.is_terminal() => last = Outcome::of(event, self.signals.exit()),
                Event::Session(SessionEvent::Work(GoalEvent::GoalState {
                    state,
                    reason,
                    message,
                    ..
                })) => end = Some((*state, *reason, message.clone())),
                _ => {}
            }
        }
        let (exit, kind, message) = match end {
            Some((GoalState::Completed, _, _)) => {
                return Outcome {
                    exit: self.exit(Exit::Ok),
                    problem: None,
                    ..last
                };
            }
            Some((_, Some(GoalStop::User | GoalStop::ProcessEnded), _)) if self.is_late => {
                (Exit::Failed, "timeout", "timed out (--timeout)".to_owned())
            }
            Some((_, Some(GoalStop::User | GoalStop::ProcessEnded), message)) => {
                (self.signals.exit(), "goal_paused", message)
            }
            Some((_, reason, message)) => {
                let (exit, kind) = ended(reason);
                (exit, kind, message)
            }
            None => (
                Exit::Failed,
                "lost",
                "the event stream ended before the goal was reached".to_owned(),
            ),
        };
        let message = format!("the goal is not reached: {message}");
        Outcome {
            exit: self.exit(exit),
            problem: Some(Trouble {
                kind: kind.to_owned(),
                message,
                hint: Some(format!(
                    "continue with: windlass exec --resume {} --goal",
                    self.session
                )),
            }),
            ..last
        }
    }
}

impl Runner<'_> {
    /// GOAL-7: prints the verification of claims to its end. A false claim counts more than a stale one.
    async fn verify(&mut self, mut events: EventStream) -> Outcome {
        let (mut has_false, mut has_stale) = (false, false);
        let mut outcome = Outcome::answered(Exit::Ok, String::new());
        while let Some(envelope) = self.next(&mut events).await {
            match &envelope.event {
                Event::Session(SessionEvent::Work(GoalEvent::Claim(claim))) => match claim.status {
                    ClaimStatus::Verified => {}
                    ClaimStatus::False => has_false = true,
                    ClaimStatus::Stale | ClaimStatus::Unproven => has_stale = true,
                },
                event if event.is_terminal() => outcome = Outcome::of(event, self.signals.exit()),
                _ => {}
            }
        }
        let exit = match outcome.exit {
            Exit::Ok if has_false => Exit::FalseClaim,
            Exit::Ok if has_stale => Exit::StaleClaim,
            exit => exit,
        };
        Outcome {
            exit: self.exit(exit),
            ..outcome
        }
    }
}

/// Returns the exit code and the kind of a goal that was not reached.
fn ended(reason: Option<GoalStop>) -> (Exit, &'static str) {
    match reason {
        Some(GoalStop::TurnLimit) => (Exit::GoalTurns, "goal_turn_limit"),
        Some(GoalStop::Cost | GoalStop::DailyCost | GoalStop::Tokens | GoalStop::Time) => {
            (Exit::GoalBudget, "goal_budget")
        }
        Some(GoalStop::Stuck | GoalStop::SameBlocker | GoalStop::Unanswered) => {
            (Exit::GoalBlocked, "goal_blocked")
        }
        _ => (Exit::GoalPaused, "goal_paused"),
    }
}
