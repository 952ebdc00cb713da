//! GOAL-6: plans. A model proposes a task graph, the user edits it, and the session carries it out step by step.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use windlass_api::{Event, GoalEvent, Message, Plan, PlanStep, StepState};
use windlass_core::hook::{AnswerAction, Hook, TurnAction, TurnEnd, TurnHook};
use windlass_core::message::{Fragment, FragmentSource};
use windlass_core::turn::{Answered, Outcome};

use super::{plan_file, work};

/// Maximum number of steps.
const MOST_STEPS: usize = 20;
/// Maximum length of a title, in characters.
const LONGEST_TITLE: usize = 500;
/// Maximum length of a step's name, in characters.
const LONGEST_ID: usize = 40;

/// Instructions for the model that proposes a plan.
const PROPOSE: &str = "Propose a plan for this task, and do not start with it. Look around with reading tools \
first if you need to. Then answer with one JSON object in a ```json block, and nothing after it: {\"steps\": [{\"id\": \
\"short-name\", \"title\": \"what is to be done\", \"depends_on\": [\"ids of steps that come first\"], \"check\": \
\"command that succeeds once the step is done, or leave it out\"}]}. Use at most 20 steps; leave `depends_on` empty where \
steps are independent of each other.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proposal {
    #[serde(default)]
    goal: Option<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    id: String,
    title: String,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    check: Option<String>,
    #[serde(default)]
    status: StepState,
}

/// Reads a plan that a person wrote: a checklist, or a JSON object.
///
/// # Errors
/// Says what is wrong, and in which line.
pub(crate) fn read_edited(text: &str, goal: &str) -> Result<Plan, String> {
    match text.trim_start().starts_with(['{', '`']) {
        true => read(text, goal),
        false => plan_file::read(text, goal),
    }
}

/// Reads a plan from an answer: the JSON object in it.
///
/// # Errors
/// Says what is wrong: no object, an unknown field, no or too many steps, a repeated or unknown id, a cycle.
pub(crate) fn read(text: &str, goal: &str) -> Result<Plan, String> {
    let begin = text.find('{').ok_or("there is no JSON object with `steps`")?;
    let end = text.rfind('}').map_or(begin, |end| end + 1);
    let object = text.get(begin..end).unwrap_or_default();
    let proposal: Proposal =
        serde_json::from_str(object).map_err(|error| format!("the plan is not valid: {error}"))?;
    let steps = proposal.steps.into_iter().map(|step| PlanStep {
        id: step.id.trim().to_owned(),
        title: step.title.trim().to_owned(),
        depends_on: step.depends_on,
        check: step.check.filter(|check| !check.trim().is_empty()),
        status: step.status,
    });
    let plan = Plan {
        goal: proposal.goal.unwrap_or_else(|| goal.to_owned()),
        steps: steps.collect(),
    };
    validate(&plan).map_err(|flaw| flaw.text)?;
    Ok(plan)
}

/// Reason a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Index of the step that is wrong, if it is one step.
    pub(super) step: Option<usize>,
    /// Message for the user and the model.
    pub(super) text: String,
}

/// Checks the graph.
pub(super) fn validate(plan: &Plan) -> Result<(), Flaw> {
    let flaw = |step: Option<usize>, text: String| Err(Flaw { step, text });
    if plan.steps.is_empty() {
        return flaw(None, "the plan has no steps".to_owned());
    }
    if plan.steps.len() > MOST_STEPS {
        let count = plan.steps.len();
        let text = format!("the plan has {count} steps; at most {MOST_STEPS} are possible");
        return flaw(None, text);
    }
    let mut ids = HashSet::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let is_sign = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_' | '.');
        let is_name = !step.id.is_empty() && step.id.chars().all(is_sign);
        if !is_name || step.id.chars().count() > LONGEST_ID {
            let text = format!(
                "`{}` is not a step id; use up to {LONGEST_ID} letters, digits, `-`, `_` and `.`",
                step.id
            );
            return flaw(Some(index), text);
        }
        if step.title.is_empty() || step.title.chars().count() > LONGEST_TITLE {
            let text = format!(
                "step `{}` needs a title of at most {LONGEST_TITLE} characters",
                step.id
            );
            return flaw(Some(index), text);
        }
        if !ids.insert(step.id.as_str()) {
            return flaw(Some(index), format!("two steps have the id `{}`", step.id));
        }
    }
    for (index, step) in plan.steps.iter().enumerate() {
        if let Some(unknown) = step.depends_on.iter().find(|id| !ids.contains(id.as_str())) {
            let text = format!("step `{}` depends on `{unknown}`, which does not exist", step.id);
            return flaw(Some(index), text);
        }
    }
    let Some(path) = cycle(plan) else {
        return Ok(());
    };
    let index = plan
        .steps
        .iter()
        .position(|step| path.contains(&step.id.as_str()));
    let text = format!("the steps depend on each other in a circle: {}", path.join(" → "));
    flaw(index, text)
}

/// Returns the ids of a cycle, if there is one.
fn cycle(plan: &Plan) -> Option<Vec<&str>> {
    let mut left: HashMap<&str, &PlanStep> = plan.steps.iter().map(|step| (step.id.as_str(), step)).collect();
    // Steps whose dependencies are gone are removed until none can be.
    loop {
        let free: Vec<&str> = left
            .values()
            .filter(|step| !step.depends_on.iter().any(|id| left.contains_key(id.as_str())))
            .map(|step| step.id.as_str())
            .collect();
        if free.is_empty() {
            break;
        }
        for id in free {
            left.remove(id);
        }
    }
    // Every step that is left depends on another one that is left.
    let mut path: Vec<&str> = Vec::new();
    let mut step = *left.values().min_by_key(|step| &step.id)?;
    loop {
        if let Some(begin) = path.iter().position(|id| *id == step.id) {
            let mut path = path.split_off(begin);
            path.push(&step.id);
            return Some(path);
        }
        path.push(&step.id);
        step = step.depends_on.iter().find_map(|id| left.get(id.as_str()))?;
    }
}

/// Returns the steps that can be worked on now: the started ones first. None if all are done.
pub(crate) fn ready(plan: &Plan) -> Vec<&PlanStep> {
    let is_done = |id: &String| {
        let mut steps = plan.steps.iter();
        steps.any(|step| step.id == *id && step.status == StepState::Done)
    };
    let can_start = |step: &&PlanStep| step.status != StepState::Done && step.depends_on.iter().all(is_done);
    let mut ready: Vec<&PlanStep> = plan.steps.iter().filter(can_start).collect();
    ready.sort_by_key(|step| step.status != StepState::Active);
    ready
}

/// Returns the ids of the steps that the next turn works on: one, or up to `most` that are ready and did not fail
/// before. None if all are done.
pub(crate) fn next(plan: &Plan, most: usize, has_failed: impl Fn(&str) -> bool) -> Vec<String> {
    let ready = ready(plan);
    let fresh: Vec<&PlanStep> = ready
        .iter()
        .copied()
        .filter(|step| !has_failed(&step.id))
        .collect();
    let steps = match fresh.len().min(most) {
        0 | 1 => ready.into_iter().take(1).collect(),
        many => fresh.into_iter().take(many).collect::<Vec<_>>(),
    };
    steps.into_iter().map(|step| step.id.clone()).collect()
}

/// Lists the steps, one per line.
pub(crate) fn listing(plan: &Plan) -> String {
    let mut text = String::new();
    for (number, step) in (1..).zip(&plan.steps) {
        let mark = plan_file::mark(step.status);
        let _ = write!(text, "{number}. [{mark}] {}: {}", step.id, step.title);
        if !step.depends_on.is_empty() {
            let _ = write!(text, " (after {})", step.depends_on.join(", "));
        }
        if let Some(check) = &step.check {
            let _ = write!(text, " — check: `{check}`");
        }
        text.push('\n');
    }
    text
}

/// Removes a step by its number or id. Steps that depended on it depend on what it depended on.
///
/// # Errors
/// Fails if there is no such step.
pub(crate) fn without(plan: &Plan, which: &str) -> Result<Plan, String> {
    let place = match which.parse::<usize>() {
        Ok(number) => number.checked_sub(1).filter(|place| *place < plan.steps.len()),
        Err(_) => plan.steps.iter().position(|step| step.id == which),
    };
    let place = place.ok_or_else(|| format!("the plan has no step {which}"))?;
    let mut plan = plan.clone();
    let gone = plan.steps.remove(place);
    for step in &mut plan.steps {
        if step.depends_on.contains(&gone.id) {
            step.depends_on.retain(|id| *id != gone.id);
            let own = &mut step.depends_on;
            own.extend(gone.depends_on.iter().cloned());
            let mut seen = HashSet::new();
            own.retain(|id| seen.insert(id.clone()));
        }
    }
    Ok(plan)
}

/// Takes the plan from the answer of a turn that was asked for one. An answer that is not a plan goes back to the
/// model with the reason.
pub(crate) struct PlanHook {
    pub(crate) goal: String,
}

impl Hook for PlanHook {
    fn name(&self) -> &str {
        "plan"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for PlanHook {
    async fn before_turn(&self, _: &[Arc<Message>]) -> TurnAction {
        TurnAction::Start(vec![Fragment::new(FragmentSource::Prompt, PROPOSE)])
    }

    async fn before_answer(&self, answer: &str) -> AnswerAction {
        match read(answer, &self.goal) {
            Ok(_) => AnswerAction::Accept,
            Err(why) => AnswerAction::Continue(format!("{why}. Answer with the whole plan again.")),
        }
    }

    async fn turn_ended(&self, end: &TurnEnd<'_>) -> Vec<Event> {
        let Outcome::Answered(Answered { text, .. }) = end.outcome else {
            return Vec::new();
        };
        match read(text, &self.goal) {
            Ok(plan) => vec![work(GoalEvent::Plan(plan))],
            Err(why) => {
                let message = format!("the answer is not a plan: {why}");
                vec![Event::Warning { message }]
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
