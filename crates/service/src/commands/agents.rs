//! SUB-8: `/agents`, the sub-agents of this session. Available at any time.

use windlass_core::log::{AgentQuery, AgentRow};

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::agents::{agent_line, agent_lines, find, goal_lines, resume, steer, stop};

/// Text with which a sub-agent continues unless the user gives another.
const GO_ON: &str = "Continue with your task from where you were.";

pub(super) async fn agents(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    match (words.get(0), words.get(1)) {
        (None | Some("list"), None) => list(cx).await,
        (Some("types"), None) => types(cx).await,
        (Some("show"), Some(named)) => show(cx, named).await,
        (Some("send"), Some(named)) => send(cx, named, &after(words.raw, 2)).await,
        (Some("stop"), Some(named)) => stopped(cx, named).await,
        (Some("resume"), Some(named)) => resumed(cx, named, &after(words.raw, 2)).await,
        (Some("merge"), Some(named)) => merge(cx, named).await,
        (Some("discard"), Some(named)) => discard(cx, named).await,
        _ => Err(Stop::Usage),
    }
}

/// Returns the text after a number of words, with its lines.
fn after(raw: &str, words: usize) -> String {
    let mut rest = raw.trim_start();
    for _ in 0..words {
        rest = rest
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest.trim_start());
    }
    rest.trim_end().to_owned()
}

async fn rows(cx: &CommandContext<'_>) -> Result<Vec<AgentRow>, Stop> {
    let query = AgentQuery::Below(cx.info.id.clone());
    Ok(cx.store().agents(&query).await?)
}

async fn named(cx: &CommandContext<'_>, named: &str) -> Result<AgentRow, Stop> {
    let rows = rows(cx).await?;
    let found = find(&rows, named).cloned();
    found.ok_or_else(|| {
        Stop::Failed(format!(
            "there is no agent `{named}` below this session; /agents lists them"
        ))
    })
}

async fn list(cx: &CommandContext<'_>) -> Outcome {
    let rows = rows(cx).await?;
    let agents = match rows.is_empty() {
        true => "This session has no agents. /agents types lists the types.".to_owned(),
        false => agent_lines(&rows, cx.inner.clock.now()),
    };
    let goals = goal_lines(&cx.store().goals(false).await?);
    let lines: Vec<String> = [agents].into_iter().chain(goals).collect();
    Ok(Said::text(lines.join("\n")))
}

async fn types(cx: &CommandContext<'_>) -> Outcome {
    let catalog = cx.inner.factory.agents(cx.info).await;
    let line = |kind: &crate::AgentType| match kind.description.as_str() {
        "" => format!("{} ({})", kind.name, kind.source),
        text => format!("{}: {text} ({})", kind.name, kind.source),
    };
    let mut lines: Vec<String> = catalog.types.iter().map(line).collect();
    lines.extend(
        catalog
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}")),
    );
    Ok(Said::text(lines.join("\n")))
}

async fn show(cx: &CommandContext<'_>, name: &str) -> Outcome {
    let row = named(cx, name).await?;
    let mut text = agent_line(&row, cx.inner.clock.now());
    let mut add = |label: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("\n{label}: {value}"));
        }
    };
    add("session", row.session.as_str());
    add("folder", &row.job.place);
    add("budget", &row.budget.to_string());
    add("task", &row.job.task);
    add("result", row.status.result.as_deref().unwrap_or_default());
    for claim in &row.status.claims {
        add("claim", &claim.line());
    }
    if row.job.worktree.is_some() {
        let changes = match cx.service().copies() {
            Ok(copies) => copies.changes(&row.session).await,
            Err(why) => Err(why),
        };
        add("changes", &changes.unwrap_or_else(|why| why));
    }
    Ok(Said::text(text))
}

async fn send(cx: &CommandContext<'_>, name: &str, text: &str) -> Outcome {
    if text.is_empty() {
        return Err(Stop::Usage);
    }
    let row = named(cx, name).await?;
    if steer(&cx.service(), &row, text).await.map_err(Stop::Failed)? {
        return Ok(Said::text(format!("Sent to agent {}.", row.title())));
    }
    resumed(cx, name, text).await
}

async fn stopped(cx: &CommandContext<'_>, name: &str) -> Outcome {
    let row = named(cx, name).await?;
    match stop(&cx.service(), &row).await {
        true => Ok(Said::text(format!("Agent {} is being stopped.", row.title()))),
        false => Err(Stop::Failed(format!(
            "agent {} does not run here: it is {}",
            row.title(),
            row.status.state
        ))),
    }
}

async fn resumed(cx: &CommandContext<'_>, name: &str, text: &str) -> Outcome {
    let row = named(cx, name).await?;
    if row.status.state.is_active() {
        return Err(Stop::Failed(format!(
            "agent {} is {}",
            row.title(),
            row.status.state
        )));
    }
    let text = if text.is_empty() { GO_ON } else { text };
    let wake = row.job.wake;
    resume(&cx.service(), &row, text, wake)
        .await
        .map_err(Stop::Failed)?;
    Ok(Said::text(format!(
        "Agent {} continues in the background.",
        row.title()
    )))
}

/// SUB-6: applies the changes of a sub-agent's copy to the files of this session, as one checkpoint.
async fn merge(cx: &mut CommandContext<'_>, name: &str) -> Outcome {
    cx.wait_for_turn()?;
    let row = named(cx, name).await?;
    ended_copy(&row)?;
    let copies = cx.service().copies().map_err(Stop::Failed)?;
    let parent = cx.store().get(&row.family.parent).await?;
    let parent = parent.unwrap_or_else(|| cx.info.clone());
    let merged = copies.merge(&row.session, &parent).await.map_err(Stop::Failed)?;
    if merged.is_complete {
        let _ = copies.discard(&row.session).await;
        cx.store().set_worktree(&row.session, None).await?;
    }
    Ok(Said::text(merged.text))
}

/// Removes a sub-agent's copy of the files.
async fn discard(cx: &CommandContext<'_>, name: &str) -> Outcome {
    let row = named(cx, name).await?;
    ended_copy(&row)?;
    let copies = cx.service().copies().map_err(Stop::Failed)?;
    copies.discard(&row.session).await.map_err(Stop::Failed)?;
    cx.store().set_worktree(&row.session, None).await?;
    Ok(Said::text(format!("The copy of agent {} is gone.", row.title())))
}

fn ended_copy(row: &AgentRow) -> Result<(), Stop> {
    let title = row.title();
    match (&row.job.worktree, row.status.state.is_active()) {
        (None, _) => Err(Stop::Failed(format!("agent {title} has no copy of the files"))),
        (Some(_), true) => Err(Stop::Failed(format!("agent {title} still works in its copy"))),
        (Some(_), false) => Ok(()),
    }
}
