//! `/goal` and `/done`: the goal of the session. Available at any time: a running turn does not see the goal.

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::goal::{Goal, LONGEST};

pub(super) async fn goal(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    followed(cx)?;
    // GOAL-3: refused before anything else is checked.
    if words.has("--auto") || words.has("--turns") {
        let text = "working towards a goal unattended (--auto) is off: nothing was set. Without it, /goal TEXT \
                    sets the goal of this session";
        return Err(Stop::Failed(text.to_owned()));
    }
    let raw = words.raw.trim();
    match (
        raw,
        raw.strip_prefix("create")
            .filter(|rest| rest.starts_with(char::is_whitespace)),
    ) {
        ("" | "status", _) => show(cx),
        ("clear", _) => {
            cx.goal.set(None, cx.sink).await?;
            Ok(Said::text(
                "Goal cleared. Your next message is the next one, or /goal TEXT.",
            ))
        }
        ("complete", _) => complete(cx).await,
        ("create", _) => Err(Stop::Usage),
        (_, Some(text)) => set(cx, text.trim()).await,
        (text, None) => set(cx, text).await,
    }
}

pub(super) async fn done(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    followed(cx)?;
    complete(cx).await
}

fn followed<'a>(cx: &'a mut CommandContext<'_>) -> Result<&'a Goal, Stop> {
    let off = || Stop::Failed("goals are off: agent.goal.enabled is false".to_owned());
    cx.goal.followed(&cx.env.goals()).ok_or_else(off)
}

fn show(cx: &mut CommandContext<'_>) -> Outcome {
    Ok(Said::text(match followed(cx)? {
        Goal::Idle => "No goal. Your next message becomes the goal, or /goal TEXT.".to_owned(),
        Goal::Active(text) => format!("Goal: {text}"),
        Goal::Completed(text) => {
            format!("Goal reached: {text}\nYour next message is a new one, or /goal TEXT.")
        }
    }))
}

async fn set(cx: &mut CommandContext<'_>, text: &str) -> Outcome {
    if text.chars().count() > LONGEST {
        return Err(Stop::Failed(format!("a goal has at most {LONGEST} characters")));
    }
    cx.goal.set(Some(text.to_owned()), cx.sink).await?;
    Ok(Said::text(format!("Goal: {text}")))
}

async fn complete(cx: &mut CommandContext<'_>) -> Outcome {
    if cx.goal.complete(cx.sink).await? {
        // The event already reports the goal.
        Ok(Said::text(
            "Goal completed. Your next message is a new goal, or /goal TEXT.",
        ))
    } else {
        Err(Stop::Failed("there is no active goal".to_owned()))
    }
}
