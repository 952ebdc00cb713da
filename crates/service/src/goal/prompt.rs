//! Texts for the model in turns without input. Each contains the goal and its criteria word for word, so that
//! they survive every compaction.

use std::fmt::Write;

use windlass_api::{Criterion, GoalRun, Plan, PlanStep};

use super::Autonomy;

const RULES: &str = "Work on the goal now with your tools. Nobody answers questions in between. When you believe \
the goal is reached, say so plainly and stop; Windlass then verifies it. If you cannot continue without the user, \
start your answer with `BLOCKED:` and the reason.";

/// Returns the instructions of the first turn, which go with the goal itself.
pub(crate) fn first(run: &GoalRun) -> String {
    format!(
        "This is a goal to be worked on without further input, in up to {} turns.\n{}{RULES}",
        run.max_turns,
        criteria(run)
    )
}

/// Returns the text of a later turn.
pub(crate) fn next(work: &Autonomy, run: &GoalRun) -> String {
    let mut text = format!(
        "Continue working toward the goal (turn {} of {}):\n\n{}\n\n{}",
        work.turns() + 1,
        run.max_turns,
        run.text,
        criteria(run)
    );
    for check in work.checks() {
        let outcome = match (check.passed, check.evidence.exit_code) {
            (true, _) => "passed".to_owned(),
            (false, Some(code)) => format!("failed with exit code {code}"),
            (false, None) => "failed".to_owned(),
        };
        let _ = writeln!(text, "After your last turn, {} {outcome}.", check.criterion);
        if !check.passed && !check.excerpt.is_empty() {
            let _ = writeln!(text, "{}", check.excerpt);
        }
    }
    if let Some((false, reason)) = work.verdict() {
        let _ = writeln!(text, "A reviewer says the goal is not reached yet: {reason}");
    }
    text.push_str(RULES);
    text
}

/// Returns the text for one step of a plan.
pub(crate) fn step(plan: &Plan, step: &PlanStep, failed: Option<&str>) -> String {
    let mut text = format!(
        "Carry out step `{}` of the plan, and only this step: {}\n",
        step.id, step.title
    );
    if let Some(check) = &step.check {
        let _ = writeln!(
            text,
            "It is done when `{check}` succeeds; Windlass runs it after your turn."
        );
    }
    if let Some(failed) = failed {
        let _ = writeln!(text, "After the last attempt it was not done:\n{failed}");
    }
    whole(&mut text, plan);
    text
}

/// Returns the text for several steps of a plan that do not depend on each other.
pub(crate) fn steps(plan: &Plan, steps: &[&PlanStep]) -> String {
    let mut text = "These steps of the plan are ready, and none depends on another. Carry out all of them now, and no \
                    other step, in parallel: start one agent for each, all in one reply, with the `agent` tool. Use the \
                    id of the step as the agent's `name`, and put everything that it must know into its `task`. An agent \
                    that changes files needs the type `coder`; Windlass merges its changes after your turn, so do not \
                    repeat them. Without agents, carry out the steps yourself.\n"
        .to_owned();
    for step in steps {
        let _ = write!(text, "- `{}`: {}", step.id, step.title);
        if let Some(check) = &step.check {
            let _ = write!(
                text,
                " (done when `{check}` succeeds; Windlass runs it after your turn)"
            );
        }
        text.push('\n');
    }
    whole(&mut text, plan);
    text
}

fn whole(text: &mut String, plan: &Plan) {
    let _ = writeln!(text, "\nThe whole plan, for \"{}\":", plan.goal);
    text.push_str(&super::plan::listing(plan));
}

fn criteria(run: &GoalRun) -> String {
    if run.criteria.is_empty() {
        return String::new();
    }
    let mut text =
        "It is reached when all of these hold, which Windlass checks after each turn:\n".to_owned();
    for criterion in &run.criteria {
        let line = match criterion {
            Criterion::Command { command } => format!("- `{command}` exits with 0"),
            Criterion::File { path } => format!("- the file {path} exists and is not empty"),
            Criterion::User => "- the user confirms it".to_owned(),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}
