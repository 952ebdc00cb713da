//! GOAL-6: carries out a plan. One turn works on one step, or on several that do not depend on each other, each with
//! a sub-agent named after it.

use std::sync::Arc;

use windlass_api::{Event, GoalEvent, GoalStop, Message, Part, PlanStep, StepState, Timestamp};
use windlass_core::log::{AgentQuery, AgentRow, AgentState};
use windlass_core::message::FragmentSource;

use super::checking::{Check, Observation, Purpose};
use super::user_command::Author;
use super::{Activity, SessionActor};
use crate::Service;
use crate::goal::{plan, prompt, work};

/// Steps that a turn worked on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StepReview {
    /// Ids of the steps, each with the reason it is not done, if that is known without checks.
    steps: Vec<(String, Option<String>)>,
    /// For each check, the index of its step.
    checks: Vec<usize>,
}

impl SessionActor {
    /// Returns the input of the next turn, and the event that marks its steps; `None` if all are done.
    pub(super) async fn step_message(&self) -> Option<(Arc<Message>, Vec<Event>)> {
        let mut plan = self.pursuit.autonomy.plan.clone();
        let most = self.most_parallel_steps().await;
        let ids = plan::next(&plan, most, |id| self.pursuit.failure_of(id).is_some());
        for step in &mut plan.steps {
            match (step.status, ids.contains(&step.id)) {
                (StepState::Done, _) => {}
                (_, true) => step.status = StepState::Active,
                (_, false) => step.status = StepState::Open,
            }
        }
        let steps: Vec<&PlanStep> = plan.steps.iter().filter(|step| ids.contains(&step.id)).collect();
        let text = match steps.as_slice() {
            [] => return None,
            [step] => prompt::step(&plan, step, self.pursuit.failure_of(&step.id)),
            steps => prompt::steps(&plan, steps),
        };
        let parts = vec![Part::context(FragmentSource::Prompt, text)];
        Some((self.input(parts), vec![work(GoalEvent::Plan(plan))]))
    }

    /// Returns the number of steps that can run at the same time: that of sub-agents.
    async fn most_parallel_steps(&self) -> usize {
        let limits = self.inner.factory.agents(&self.info).await.limits;
        let depth = self.handle.family.row().map_or(0, |row| row.family.depth);
        match depth < limits.max_spawn_depth {
            true => usize::try_from(limits.max_children.min(limits.max_concurrent)).unwrap_or(1),
            false => 1,
        }
    }

    /// Verifies the steps of the last turn: merges the changes of their sub-agents, then runs their checks.
    pub(super) async fn review_steps(&mut self, since: Timestamp) -> Activity {
        let query = AgentQuery::Children(self.info.id.clone());
        let agents = self.inner.store.agents(&query).await.unwrap_or_default();
        let steps = &self.pursuit.autonomy.plan.steps;
        let steps: Vec<&PlanStep> = steps
            .iter()
            .filter(|step| step.status == StepState::Active)
            .collect();
        let (mut merges, mut checks, mut review) = (Vec::new(), Vec::new(), StepReview::default());
        for (index, step) in steps.iter().enumerate() {
            let mut own = agents.iter().rev().filter(|row| row.created_at >= since);
            let agent = own.find(|row| row.job.name == step.id);
            let problem = problem(step, agent, steps.len() > 1);
            let copies = Service::of(&self.inner).copies().ok();
            if let Some((row, copies)) = agent.filter(|row| has_changes(row)).zip(copies) {
                merges.push((index, Check::Merge(Box::new(row.clone()), copies)));
            }
            if let Some(check) = step.check.as_ref().filter(|_| problem.is_none()) {
                checks.push((index, Check::Command(check.clone(), Author::Model)));
            }
            review.steps.push((step.id.clone(), problem));
        }
        // A check may need the changes of all steps.
        let checks: Vec<Check> = merges
            .into_iter()
            .chain(checks)
            .map(|(index, check)| {
                review.checks.push(index);
                check
            })
            .collect();
        if !checks.is_empty() {
            return self.check(checks, Purpose::Steps(review)).await;
        }
        self.steps_checked(&review, &[]).await;
        Activity::Idle
    }

    /// Records which steps are done. The others are next, one by one.
    pub(super) async fn steps_checked(&mut self, review: &StepReview, seen: &[Observation]) {
        let most = self.env.goals().autonomy.max_stuck_count;
        let mut plan = self.pursuit.autonomy.plan.clone();
        let mut blocker = None;
        for (index, (id, problem)) in review.steps.iter().enumerate() {
            let failed = review.failure(index, problem.as_deref(), seen);
            if let Some(why) = failed {
                let is_stuck = self.pursuit.step_failed(id, why) >= most;
                blocker = blocker.or(is_stuck.then_some(id));
            } else if let Some(step) = plan.steps.iter_mut().find(|step| step.id == *id) {
                step.status = StepState::Done;
            }
        }
        self.note(vec![work(GoalEvent::Plan(plan))]).await;
        if let Some(id) = blocker {
            let text = format!("step `{id}` failed {most} times");
            self.halt(GoalStop::SameBlocker, &text).await;
        }
    }
}

impl StepReview {
    /// Returns the reason a step is not done, for the model.
    fn failure(&self, index: usize, problem: Option<&str>, seen: &[Observation]) -> Option<String> {
        if let Some(problem) = problem {
            return Some(problem.to_owned());
        }
        let mut own = self.checks.iter().enumerate().filter(|(_, step)| **step == index);
        own.find_map(|(place, _)| match seen.get(place) {
            Some(seen) if seen.has_passed() => None,
            Some(seen) => Some(seen.excerpt.clone()),
            None => Some("it could not be checked".to_owned()),
        })
    }
}

/// Returns the reason a step is not done, if that is known without its check.
fn problem(step: &PlanStep, agent: Option<&AgentRow>, is_one_of_many: bool) -> Option<String> {
    let Some(row) = agent else {
        let is_unknown = is_one_of_many && step.check.is_none();
        return is_unknown.then(|| {
            format!(
                "No agent named `{}` worked on it. If it is done, say so.",
                step.id
            )
        });
    };
    let title = row.title();
    match row.status.state {
        AgentState::Done => None,
        state if state.is_active() => Some(format!(
            "Agent {title} still works on it: call `agent_wait` first."
        )),
        // Its check decides.
        _ if step.check.is_some() => None,
        state => Some(format!("Agent {title} did not finish it: {state}.")),
    }
}

/// Returns true if a sub-agent has ended with an answer, and its changes are not merged.
fn has_changes(row: &AgentRow) -> bool {
    row.status.state == AgentState::Done && row.job.worktree.is_some()
}
