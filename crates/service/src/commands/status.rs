//! `/status`, `/tools`, `/permissions` and `/mode`: the state and the permissions of the session.

use std::fmt::Write;

use windlass_core::permission::{Mode, Policy, Rule};

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::environment::Granted;
use crate::format::{called, cut, one_line, standing};
use crate::goal::Goal;

/// Number of characters shown of the goal.
const GOAL: usize = 100;

pub(super) async fn status(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    let info = cx.stored_info().await?;
    let queue = cx.queue.messages().len();
    let goal = cx.pursuit.goal.followed(&cx.env.goals());
    let goal = goal.and_then(Goal::active).map(str::to_owned);
    let state = if cx.is_busy { "a turn runs" } else { "idle" };
    let mut rows = vec![
        ("session", format!("{}  {}", info.id, called(&info))),
        ("folder", info.place.clone()),
        ("state", format!("{}, {state}", standing(info.standing))),
    ];
    let env = &mut *cx.env;
    let around = env.surroundings();
    rows.extend(around.branch.map(|branch| ("branch", branch)));
    match env.models().active() {
        Ok((provider, model)) => {
            rows.push(("provider", provider));
            rows.push(("model", model));
        }
        Err(why) => rows.push(("model", why.lines().next().unwrap_or_default().to_owned())),
    }
    rows.push(("mode", env.permissions().policy().mode.name().to_owned()));
    let instructions = env.instructions().join(", ");
    rows.extend((!instructions.is_empty()).then_some(("instructions", instructions)));
    let totals = &info.totals;
    rows.push(("messages", totals.messages.to_string()));
    rows.push(("context", format!("{} tokens", totals.context_tokens)));
    let (read, wrote) = (totals.prompt_tokens, totals.completion_tokens);
    rows.push(("tokens", format!("{read} in, {wrote} out")));
    rows.push(("cost", totals.cost()));
    rows.push(("queue", format!("{queue} waiting")));
    rows.extend(goal.map(|goal| ("goal", cut(&goal, GOAL))));
    let work = super::goal::standing(cx);
    rows.extend(work.map(|work| ("goal work", work.lines().next().unwrap_or_default().to_owned())));
    let env = &mut *cx.env;
    if let Some(checkpoints) = env.checkpoints() {
        let count = match checkpoints.list().await {
            Ok(all) => all.len().to_string(),
            Err(error) => error.to_string(),
        };
        rows.push(("checkpoints", count));
    }
    let lines = rows
        .iter()
        .map(|(what, text)| format!("{what:<12} {}", one_line(text)));
    Ok(Said::text(lines.collect::<Vec<_>>().join("\n")))
}

pub(super) async fn tools(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    let tools = cx.env.permissions().tools();
    let lines = tools.iter().map(|tool| {
        let description = one_line(&tool.description);
        let first = description.split_inclusive(". ").next().unwrap_or_default();
        format!("{:<22} {:<9} {}", tool.name, tool.source, first.trim())
    });
    Ok(Said::text(lines.collect::<Vec<_>>().join("\n")))
}

pub(super) async fn permissions(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    let access = cx.env.permissions();
    let Policy {
        rules,
        mode,
        ask_for_writes,
        attended: _,
    } = access.policy();
    let mut text = format!("mode   {}: {}", mode.name(), mode.meaning());
    if ask_for_writes {
        text.push_str("\nwrites ask first, whatever the mode says");
    }
    for (word, rules) in [
        ("deny", &rules.deny),
        ("ask", &rules.ask),
        ("allow", &rules.allow),
    ] {
        for rule in rules {
            let rule: &Rule = rule;
            let _ = write!(text, "\n{word:<6} {rule}");
        }
    }
    let Granted { session, always } = access.granted();
    for granted in always {
        let _ = write!(text, "\nalways {granted}");
    }
    for granted in session {
        let _ = write!(text, "\nallow  {granted} (for this session)");
    }
    Ok(Said::text(text))
}

pub(super) async fn mode(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[])?;
    let Some(word) = words.get(0) else {
        let mode = cx.env.permissions().policy().mode;
        return Ok(Said::text(format!("{}: {}", mode.name(), mode.meaning())));
    };
    let mode = word.parse::<Mode>().map_err(|_| Stop::Usage)?;
    set(cx, mode)
}

/// Sets the mode. A running turn keeps the mode it started with.
pub(super) fn set(cx: &mut CommandContext<'_>, mode: Mode) -> Outcome {
    cx.env.permissions().set_mode(mode);
    Ok(Said::text(format!(
        "Mode {} from the next turn, until you quit: {}",
        mode.name(),
        mode.meaning()
    )))
}
