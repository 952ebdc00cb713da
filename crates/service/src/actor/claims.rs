//! GOAL-7: hooks that follow goals, plans and claims in a turn, and running claims again.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_api::{
    CallId, ClaimCheck, ClaimStatus, ClientError, Event, FinishReason, GoalEvent, Message, SessionEvent,
};
use windlass_core::log::{AgentQuery, counting, record};
use windlass_core::permission::Mode;

use super::checking::{Check, Observation, Purpose};
use super::user_command::Author;
use super::{Activity, Begun, SessionActor, canceled};
use crate::goal::evidence::ClaimHook;
use crate::goal::go_ahead::GoAhead;
use crate::goal::plan::PlanHook;
use crate::goal::{GoalHook, work};
use crate::refused;
use crate::turn::PlannedTurn;

impl SessionActor {
    /// Adds the hooks of a turn that concern the goal.
    pub(super) fn goal_hooks(&mut self, turn: &mut PlannedTurn, message: &Message) {
        let goals = self.env.goals();
        if let Some(goal) = self.pursuit.take_planning(message) {
            // A plan is made by reading; the mode of the session stays as it is.
            turn.config.calls.policy.mode = Mode::Plan;
            turn.config.hooks.push(PlanHook { goal });
        } else if turn.config.calls.policy.mode == Mode::Plan && turn.config.calls.policy.attended {
            turn.config.hooks.push(GoAhead {
                id: CallId::from(format!("go-ahead-{}", message.id)),
                sink: Arc::clone(&self.sink),
                replies: self.handle.replies.clone(),
                cancel: turn.ports.cancel.clone(),
            });
        }
        turn.config.hooks.push(ClaimHook {
            input: message.id.clone(),
            files: self.env.checkpoints(),
        });
        self.pursuit.prepare(turn, goals.autonomy.answer_timeout);
        // A phrase alone never ends work without input.
        if !self.pursuit.is_active() {
            turn.config.hooks.push(GoalHook {
                goal: self.pursuit.goal.clone(),
                goals,
            });
        }
    }

    /// Runs the commands of all claims again.
    pub(super) async fn verify(&mut self, answer: oneshot::Sender<Begun>) -> Activity {
        let entries = match record(&*self.inner.store, &self.info.id).await {
            Ok(entries) => entries,
            Err(error) => {
                let _ = answer.send(Err(refused(error)));
                return Activity::Idle;
            }
        };
        // The last claim about a command counts.
        let mut claims: Vec<ClaimCheck> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for entry in counting(&entries) {
            let Event::Session(SessionEvent::Work(GoalEvent::Claim(claim))) = &entry.event else {
                continue;
            };
            match places
                .get(&claim.command)
                .and_then(|place| claims.get_mut(*place))
            {
                Some(known) => *known = claim.clone(),
                None => {
                    places.insert(claim.command.clone(), claims.len());
                    claims.push(claim.clone());
                }
            }
        }
        let below = AgentQuery::Below(self.info.id.clone());
        let below = self.inner.store.agents(&below).await.unwrap_or_default();
        let reports = below.iter().filter(|row| !row.status.claims.is_empty());
        // A copy that is not merged has its own files: its claims are verified in the sub-agent's session.
        for row in reports.clone().filter(|row| row.job.worktree.is_none()) {
            let new = row
                .status
                .claims
                .iter()
                .filter(|claim| !places.contains_key(&claim.command));
            claims.extend(new.map(|claim| ClaimCheck {
                text: format!("agent {}: {}", row.title(), claim.text),
                ..claim.clone()
            }));
        }
        if claims.is_empty() && reports.count() == 0 {
            let text = "there is nothing to verify: no answer in this session carries claims".to_owned();
            let _ = answer.send(Err(ClientError::Command(text)));
            return Activity::Idle;
        }
        let _ = answer.send(Ok(()));
        let checks = claims
            .iter()
            .map(|claim| Check::Command(claim.command.clone(), Author::Model));
        let checks = checks.collect();
        self.check(checks, Purpose::Claims(claims)).await
    }

    /// Records the result of running claims again.
    pub(super) async fn claims_checked(
        &mut self,
        claims: Vec<ClaimCheck>,
        seen: Vec<Observation>,
        was_stopped: bool,
    ) {
        if was_stopped {
            self.end(vec![canceled()]).await;
            return;
        }
        let mut content = String::new();
        let mut events = Vec::new();
        for (claim, seen) in claims.into_iter().zip(seen) {
            let status = status(&claim, &seen);
            let word = match status {
                ClaimStatus::Verified => "verified",
                ClaimStatus::False => "FALSE",
                ClaimStatus::Stale => "stale",
                ClaimStatus::Unproven => "not run",
            };
            let exit = seen.evidence.exit_code;
            let exit = exit.map_or_else(|| seen.excerpt.clone(), |code| format!("exit code {code}"));
            let _ = writeln!(content, "{word:<9} {} — `{}`: {exit}", claim.text, claim.command);
            events.push(work(GoalEvent::Claim(ClaimCheck {
                status,
                evidence: seen.evidence,
                ..claim
            })));
        }
        events.push(Event::Final {
            content: content.trim_end().to_owned(),
            finish: FinishReason::EndTurn,
        });
        self.end(events).await;
    }
}

/// Compares a claim with a new run of its command. A claim that does not hold any more is stale if files changed
/// since it was made.
fn status(claim: &ClaimCheck, seen: &Observation) -> ClaimStatus {
    let (before, now) = (&claim.evidence.tree, &seen.evidence.tree);
    match seen.evidence.exit_code {
        None => ClaimStatus::Unproven,
        Some(code) if code == claim.claimed_exit_code => ClaimStatus::Verified,
        Some(_) if before.is_some() && now.is_some() && before != now => ClaimStatus::Stale,
        Some(_) => ClaimStatus::False,
    }
}
