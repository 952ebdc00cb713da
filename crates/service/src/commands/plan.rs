//! `/plan`: a task graph that the model proposes, the user edits, and the session carries out. Without arguments it
//! allows only reads.

use windlass_api::{GoalEvent, GoalRun, Part, Plan, PlanStep, StepState};
use windlass_core::log::{Durability, SpentBy};
use windlass_core::permission::Mode;

use super::goal::begin;
use super::{CommandContext, Outcome, Said, Stop, Then, Words, status};
use crate::goal::{plan, plan_file, sum, work};

/// File of a plan whose name is not given.
const FILE: &str = "PLAN.md";
/// Maximum size of a plan's file, in bytes.
const LARGEST: u64 = 256 * 1024;
/// Turns that one step may take on average.
const TURNS_PER_STEP: u32 = 3;

pub(super) async fn plan(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    let raw = words.raw.trim();
    let (verb, rest) = raw.split_once(char::is_whitespace).unwrap_or((raw, ""));
    match (verb, rest.trim()) {
        ("", _) => status::set(cx, Mode::Plan),
        ("show", "") => show(cx),
        ("clear", "") => keep(cx, Plan::default(), "The plan was dropped.").await,
        ("go", "") => go(cx).await,
        ("edit", "") => edit(cx),
        ("drop", step) if !step.is_empty() => {
            let left = plan::without(existing(cx)?, step).map_err(Stop::Failed)?;
            edited(cx, left).await
        }
        ("set", text) if !text.is_empty() => {
            let goal = cx.pursuit.autonomy.plan.goal.clone();
            let read = plan::read_edited(text, &goal).map_err(Stop::Failed)?;
            edited(cx, read).await
        }
        ("import", path) if !path.is_empty() => {
            let read = import(cx, path)?;
            edited(cx, read).await
        }
        ("export", path) => export(cx, if path.is_empty() { FILE } else { path }),
        ("drop" | "set" | "import", _) => Err(Stop::Usage),
        (flag, _) if flag.starts_with("--") => Err(Stop::Usage),
        _ => {
            cx.wait_for_turn()?;
            cx.pursuit.plan(raw);
            Ok(Said {
                text: "Asking for a plan; /plan show shows it.".to_owned(),
                then: Then::Submit(vec![Part::text(raw)]),
            })
        }
    }
}

fn existing<'a>(cx: &'a CommandContext<'_>) -> Result<&'a Plan, Stop> {
    let none = || Stop::Failed("there is no plan; /plan TEXT has the model propose one".to_owned());
    let plan = &cx.pursuit.autonomy.plan;
    (!plan.steps.is_empty()).then_some(plan).ok_or_else(none)
}

fn show(cx: &CommandContext<'_>) -> Outcome {
    let plan = existing(cx)?;
    Ok(Said::text(described(plan)))
}

fn described(plan: &Plan) -> String {
    let is_done = |step: &&PlanStep| step.status == StepState::Done;
    let done = plan.steps.iter().filter(is_done).count();
    format!(
        "Plan: {}\n{}{done} of {} done. /plan go carries it out, /plan edit changes it, /plan export FILE writes it to a \
         file.",
        plan.goal,
        plan::listing(plan),
        plan.steps.len()
    )
}

/// Hands the plan to the user as a text that `/plan set` takes.
fn edit(cx: &CommandContext<'_>) -> Outcome {
    Ok(Said {
        text: String::new(),
        then: Then::Edit {
            command: "/plan set".to_owned(),
            text: plan_file::write(existing(cx)?),
        },
    })
}

/// Writes the plan to a file. A file with other content is not replaced.
fn export(cx: &CommandContext<'_>, path: &str) -> Outcome {
    let text = plan_file::write(existing(cx)?);
    let failed = |why: String| Stop::Failed(format!("{path}: {why}"));
    let there = cx.files()?.read(path, LARGEST);
    if there
        .as_ref()
        .is_ok_and(|there| plan::read_edited(there, "").is_err())
    {
        return Err(failed("exists and is not a plan; name another file".to_owned()));
    }
    cx.files()?.write(path, &text, there.is_err()).map_err(failed)?;
    Ok(Said::text(format!(
        "The plan is in {path}. Edit it, then /plan import {path} reads it."
    )))
}

fn import(cx: &CommandContext<'_>, path: &str) -> Result<Plan, Stop> {
    let failed = |why: String| Stop::Failed(format!("{path}: {why}"));
    let text = cx.files()?.read(path, LARGEST).map_err(failed)?;
    plan::read_edited(&text, &cx.pursuit.autonomy.plan.goal).map_err(failed)
}

async fn edited(cx: &mut CommandContext<'_>, plan: Plan) -> Outcome {
    let text = described(&plan);
    keep(cx, plan, &text).await
}

/// Records the plan. A plan that is being carried out stays as it is until the work is paused.
async fn keep(cx: &mut CommandContext<'_>, plan: Plan, text: &str) -> Outcome {
    let is_running = cx.pursuit.autonomy.work().is_some_and(|(run, _)| run.plan) && cx.pursuit.is_active();
    if is_running {
        let text = "the plan is being carried out; /goal pause stops it first";
        return Err(Stop::Failed(text.to_owned()));
    }
    let event = work(GoalEvent::Plan(plan));
    cx.sink.store(vec![event.clone()], Durability::Disk).await?;
    cx.pursuit.apply(&event);
    Ok(Said::text(text))
}

/// Carries out the plan. The user who types this has seen the plan, and each step asks for approval as usual.
async fn go(cx: &mut CommandContext<'_>) -> Outcome {
    cx.wait_for_turn()?;
    let plan = existing(cx)?.clone();
    if cx.pursuit.is_active() {
        return Err(Stop::Failed(
            "the session already works on a goal; /goal pause stops it".to_owned(),
        ));
    }
    if plan::ready(&plan).is_empty() {
        return Err(Stop::Failed("every step of the plan is done".to_owned()));
    }
    let rows = cx.store().spent(Some(&cx.info.id), SpentBy::Day).await?;
    let (before_usd, before_tokens) = sum(&rows);
    let steps = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
    let text = match plan.goal.trim() {
        "" => "carry out the plan".to_owned(),
        goal => goal.to_owned(),
    };
    let run = GoalRun {
        text,
        criteria: Vec::new(),
        plan: true,
        max_turns: steps.saturating_mul(TURNS_PER_STEP),
        max_cost_usd: None,
        before_usd,
        before_tokens,
    };
    begin(cx, run).await
}
