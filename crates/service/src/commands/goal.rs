//! `/goal` and `/done`: what the session is to reach. Served at any time: a running turn does not know of it.

use super::{Desk, Outcome, Said, Stop, Words};
use crate::goal::{Goal, LONGEST};

pub(super) async fn goal(desk: &mut Desk<'_>, words: &Words<'_>) -> Outcome {
    followed(desk)?;
    // GOAL-3: refused before anything else is looked at.
    if words.has("--auto") || words.has("--turns") {
        let text = "working towards a goal without you (--auto) is off: nothing was set. Without it, /goal TEXT says what \
                    this session is to reach";
        return Err(Stop::Failed(text.to_owned()));
    }
    let raw = words.raw.trim();
    match (
        raw,
        raw.strip_prefix("create")
            .filter(|rest| rest.starts_with(char::is_whitespace)),
    ) {
        ("" | "status", _) => show(desk),
        ("clear", _) => {
            desk.live.set_goal(None).await?;
            Ok(Said::text(
                "There is no goal now. Your next message is one, or /goal TEXT.",
            ))
        }
        ("complete", _) => complete(desk).await,
        ("create", _) => Err(Stop::Usage),
        (_, Some(text)) => set(desk, text.trim()).await,
        (text, None) => set(desk, text).await,
    }
}

pub(super) async fn done(desk: &mut Desk<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    followed(desk)?;
    complete(desk).await
}

fn followed<'a>(desk: &'a mut Desk<'_>) -> Result<&'a Goal, Stop> {
    let off = || Stop::Failed("goals are off: agent.goal.enabled is false".to_owned());
    desk.live.followed_goal().ok_or_else(off)
}

fn show(desk: &mut Desk<'_>) -> Outcome {
    Ok(Said::text(match followed(desk)? {
        Goal::Idle => "No goal. Your next message is one, or /goal TEXT.".to_owned(),
        Goal::Active(text) => format!("Goal: {text}"),
        Goal::Completed(text) => {
            format!("Goal reached: {text}\nYour next message is a new one, or /goal TEXT.")
        }
    }))
}

async fn set(desk: &mut Desk<'_>, text: &str) -> Outcome {
    if text.chars().count() > LONGEST {
        return Err(Stop::Failed(format!("a goal has at most {LONGEST} characters")));
    }
    desk.live.set_goal(Some(text.to_owned())).await?;
    Ok(Said::text(format!("Goal: {text}")))
}

async fn complete(desk: &mut Desk<'_>) -> Outcome {
    match desk.live.complete_goal().await? {
        // What it was is told by its event.
        Some(_) => Ok(Said::text(
            "That is done. Your next message is a new goal, or /goal TEXT.",
        )),
        None => Err(Stop::Failed("there is no goal to be reached".to_owned())),
    }
}
