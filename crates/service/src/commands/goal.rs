//! `/goal` and `/done`: the goal of the session, and work towards it without input. Available at any time: a
//! running turn does not see the goal.

use std::fmt::Write;

use windlass_api::{
    CheckRun, Criterion, Event, GoalEvent, GoalRequest, GoalRun, GoalState, GoalStop, SessionEvent,
};
use windlass_core::log::{Durability, SpentBy};

use super::{CommandContext, Outcome, Said, Stop, Then, Words};
use crate::format::dollars;
use crate::goal::{Goal, LONGEST, state, sum, work};

pub(super) async fn goal(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    followed(cx)?;
    let raw = words.raw.trim();
    let (verb, rest) = raw.split_once(char::is_whitespace).unwrap_or((raw, ""));
    // GOAL-3: refused before anything else is checked.
    let has_flags = verb.starts_with("--") || (verb == "create" && rest.trim_start().starts_with("--"));
    let is_auto = has_flags || words.has("--auto") || words.has("--turns");
    if is_auto && verb != "resume" && !cx.env.goals().autonomy.enabled {
        let text = "working towards a goal unattended (--auto) is off: nothing was set. Set \
                    agent.goal.autonomous_enabled to allow it. Without --auto, /goal TEXT sets the goal of this session";
        return Err(Stop::Failed(text.to_owned()));
    }
    match (verb, rest.trim()) {
        ("" | "status", "") => show(cx),
        ("why", "") => why(cx).await,
        ("clear", "") => clear(cx).await,
        ("complete", "") => complete(cx).await,
        ("pause", "") => pause(cx).await,
        ("resume", rest) => resume(cx, rest).await,
        ("create", "") => Err(Stop::Usage),
        ("create", rest) if has_flags => create(cx, rest).await,
        ("create", rest) => set(cx, rest).await,
        _ if has_flags => create(cx, raw).await,
        _ => set(cx, raw).await,
    }
}

pub(super) async fn done(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    followed(cx)?;
    complete(cx).await
}

fn followed<'a>(cx: &'a mut CommandContext<'_>) -> Result<&'a Goal, Stop> {
    let off = || Stop::Failed("goals are off: agent.goal.enabled is false".to_owned());
    cx.pursuit.goal.followed(&cx.env.goals()).ok_or_else(off)
}

fn show(cx: &mut CommandContext<'_>) -> Outcome {
    let mut text = match followed(cx)? {
        Goal::Idle => "No goal. Your next message becomes the goal, or /goal TEXT.".to_owned(),
        Goal::Active { text, .. } => format!("Goal: {text}"),
        Goal::Completed(text) => {
            format!("Goal reached: {text}\nYour next message is a new one, or /goal TEXT.")
        }
    };
    if let Some(line) = standing(cx) {
        let _ = write!(text, "\n{line}");
    }
    Ok(Said::text(text))
}

/// Describes the work without input in one line; `None` if there is none.
pub(super) fn standing(cx: &CommandContext<'_>) -> Option<String> {
    let work = &cx.pursuit.autonomy;
    let (run, standing) = work.work()?;
    let word = match standing.state {
        GoalState::Active => "active",
        GoalState::Paused => "paused",
        GoalState::Blocked => "blocked",
        GoalState::Completed => "completed",
    };
    let mut line = format!("{word}, turn {} of {}", work.turns(), run.max_turns);
    if !standing.message.is_empty() {
        let _ = write!(line, ": {}", standing.message);
    }
    if matches!(standing.state, GoalState::Paused | GoalState::Blocked) {
        line.push_str("\n/goal resume continues, /goal why explains, /goal clear gives up.");
    }
    Some(line)
}

/// GOAL-9: explains the state of the work: the reason, each check with its last run, the supervisor, the cost.
async fn why(cx: &mut CommandContext<'_>) -> Outcome {
    let Some(line) = standing(cx) else {
        return show(cx);
    };
    let tree = match cx.env.checkpoints() {
        Some(files) => files.tree().await.ok().flatten(),
        None => None,
    };
    let (cost, tokens) = spent(cx).await?;
    let work = &cx.pursuit.autonomy;
    let Some((run, _)) = work.work() else {
        return Err(Stop::Usage);
    };
    let mut text = format!("Goal: {}\n{line}", run.text);
    for criterion in &run.criteria {
        let last = work.checks().iter().find(|check| check.criterion == *criterion);
        let _ = write!(text, "\ncheck      {criterion}: {}", told(last, tree.as_deref()));
    }
    if run.criteria.is_empty() && !run.plan {
        text.push_str("\ncheck      none: the supervisor decides, and its yes is only believed");
    }
    if let Some((achieved, reason)) = work.verdict() {
        let word = if achieved { "reached" } else { "not yet" };
        let _ = write!(text, "\nsupervisor {word}: {reason}");
    }
    let _ = write!(
        text,
        "\nspent      {} and {} tokens so far",
        dollars(cost - run.before_usd),
        tokens.saturating_sub(run.before_tokens)
    );
    if let Some(most) = run.max_cost_usd {
        let _ = write!(text, ", of at most {}", dollars(most));
    }
    Ok(Said::text(text))
}

/// Describes the last run of a check.
fn told(last: Option<&CheckRun>, tree: Option<&str>) -> String {
    let Some(check) = last else {
        return "not run yet".to_owned();
    };
    let is_stale = check.evidence.tree.as_deref() != tree && check.evidence.tree.is_some();
    let stale = if is_stale {
        " (stale: files changed since)"
    } else {
        ""
    };
    match (check.passed, check.evidence.exit_code) {
        (true, _) => format!("passed{stale}"),
        (false, Some(code)) => format!("failed with exit code {code}{stale}"),
        (false, None) => format!("failed{stale}"),
    }
}

async fn spent(cx: &CommandContext<'_>) -> Result<(f64, u64), Stop> {
    let rows = cx.store().spent(Some(&cx.info.id), SpentBy::Day).await?;
    Ok(sum(&rows))
}

/// Records events about the goal.
async fn record(cx: &mut CommandContext<'_>, events: Vec<Event>) -> Result<(), Stop> {
    cx.sink.store(events.clone(), Durability::Disk).await?;
    events.iter().for_each(|event| cx.pursuit.apply(event));
    Ok(())
}

/// Returns the event that ends active work, if there is any.
fn ended(cx: &CommandContext<'_>, message: &str) -> Option<Event> {
    let now = cx.inner.clock.now();
    let stopped = || state(GoalState::Paused, Some(GoalStop::User), message, now);
    cx.pursuit.is_active().then(stopped)
}

/// GOAL-3: starts to work on a goal without input.
async fn create(cx: &mut CommandContext<'_>, arguments: &str) -> Outcome {
    let request = GoalRequest::parse(arguments).map_err(Stop::Failed)?;
    if request.text.is_empty() {
        return Err(Stop::Usage);
    }
    checked(&request.text)?;
    if cx.pursuit.is_active() {
        let text = "the session already works on a goal; /goal pause or /goal clear stops it";
        return Err(Stop::Failed(text.to_owned()));
    }
    let limits = cx.env.goals().autonomy;
    let commands = request
        .checks
        .into_iter()
        .map(|command| Criterion::Command { command });
    let files = request.files.into_iter().map(|path| Criterion::File { path });
    let user = request.asks.then_some(Criterion::User);
    let (before_usd, before_tokens) = spent(cx).await?;
    let run = GoalRun {
        text: request.text,
        criteria: commands.chain(files).chain(user).collect(),
        plan: false,
        max_turns: request.turns.unwrap_or(limits.max_turns),
        max_cost_usd: request.max_cost_usd,
        before_usd,
        before_tokens,
    };
    begin(cx, run).await
}

/// Records a run and starts it.
pub(super) async fn begin(cx: &mut CommandContext<'_>, run: GoalRun) -> Outcome {
    let text = format!("Working on the goal unattended: {}", run.text);
    let goal = Event::Session(SessionEvent::Goal {
        text: Some(run.text.clone()),
        explicit: true,
    });
    let cleared = none();
    let now = cx.inner.clock.now();
    let active = state(GoalState::Active, None, "", now);
    // The same text again is a new goal, not more of the old one.
    let events = vec![cleared, goal, work(GoalEvent::GoalRun(run)), active];
    record(cx, events).await?;
    cx.pursuit.begin();
    Ok(Said {
        text,
        then: Then::Pursue,
    })
}

async fn pause(cx: &mut CommandContext<'_>) -> Outcome {
    let Some(event) = ended(cx, "you paused it") else {
        return Err(Stop::Failed("no goal is being worked on unattended".to_owned()));
    };
    record(cx, vec![event]).await?;
    let text = match cx.is_busy {
        true => "Paused: no further turn starts. The running one continues; Esc or Ctrl+C stops it.",
        false => "Paused. /goal resume continues.",
    };
    Ok(Said::text(text))
}

/// GOAL-9: continues paused or blocked work, with as many turns again.
async fn resume(cx: &mut CommandContext<'_>, arguments: &str) -> Outcome {
    let request = GoalRequest::parse(arguments).map_err(Stop::Failed)?;
    if !request.text.is_empty() || !request.checks.is_empty() || !request.files.is_empty() || request.asks {
        return Err(Stop::Usage);
    }
    let limits = cx.env.goals().autonomy;
    let (cost, _) = spent(cx).await?;
    let work_so_far = &cx.pursuit.autonomy;
    let Some((run, standing)) = work_so_far.work() else {
        return Err(Stop::Failed("there is no goal to resume".to_owned()));
    };
    match standing.state {
        GoalState::Active => return Err(Stop::Failed("the goal is being worked on".to_owned())),
        GoalState::Completed => return Err(Stop::Failed("the goal is reached".to_owned())),
        GoalState::Paused | GoalState::Blocked => {}
    }
    let mut run = run.clone();
    run.max_turns = work_so_far.turns() + request.turns.unwrap_or(limits.max_turns);
    run.max_cost_usd = request.max_cost_usd.or(run.max_cost_usd);
    if let Some(most) = run.max_cost_usd.filter(|most| cost - run.before_usd >= *most) {
        let text = format!(
            "its cost limit of {} is used up; /goal resume --max-cost USD sets another one",
            dollars(most)
        );
        return Err(Stop::Failed(text));
    }
    let text = format!("Resuming the goal: {}", run.text);
    let active = state(GoalState::Active, None, "", cx.inner.clock.now());
    record(cx, vec![work(GoalEvent::GoalRun(run)), active]).await?;
    cx.pursuit.begin();
    Ok(Said {
        text,
        then: Then::Pursue,
    })
}

async fn clear(cx: &mut CommandContext<'_>) -> Outcome {
    let stopped = ended(cx, "the goal was cleared");
    record(cx, stopped.into_iter().chain([none()]).collect()).await?;
    Ok(Said::text(
        "Goal cleared. Your next message is the next one, or /goal TEXT.",
    ))
}

/// Returns the event that clears the goal.
fn none() -> Event {
    Event::Session(SessionEvent::Goal {
        text: None,
        explicit: false,
    })
}

fn checked(text: &str) -> Result<(), Stop> {
    if text.chars().count() > LONGEST {
        return Err(Stop::Failed(format!("a goal has at most {LONGEST} characters")));
    }
    Ok(())
}

async fn set(cx: &mut CommandContext<'_>, text: &str) -> Outcome {
    checked(text)?;
    let stopped = ended(cx, "another goal was set");
    let goal = Event::Session(SessionEvent::Goal {
        text: Some(text.to_owned()),
        explicit: true,
    });
    record(cx, stopped.into_iter().chain([goal]).collect()).await?;
    Ok(Said::text(format!("Goal: {text}")))
}

async fn complete(cx: &mut CommandContext<'_>) -> Outcome {
    if cx.pursuit.goal.complete(cx.sink).await? {
        if cx.pursuit.is_active() {
            let now = cx.inner.clock.now();
            let done = state(GoalState::Completed, Some(GoalStop::User), "you said so", now);
            record(cx, vec![done]).await?;
        }
        // The event already reports the goal.
        Ok(Said::text(
            "Goal completed. Your next message is a new goal, or /goal TEXT.",
        ))
    } else {
        Err(Stop::Failed("there is no active goal".to_owned()))
    }
}
