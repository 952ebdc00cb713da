//! Sub-agents as text, for models and for people.

use std::time::Duration;

use windlass_core::clock::{Timestamp, span};
use windlass_core::event::GoalState;
use windlass_core::log::{AgentBudget, AgentRow, AgentState, GoalInfo, Verification};
use windlass_core::text::count;

use crate::Service;
use crate::format::{cut, short_id};

/// Maximum number of characters of a task in a list.
const TASK: usize = 80;

/// Maximum number of claims in a report.
const CLAIMS: usize = 20;

/// Maximum number of goals in a list.
const GOALS: usize = 10;

/// Returns the result of a sub-agent for the model above it.
pub(super) fn report(row: &AgentRow) -> String {
    let result = row.status.result.as_deref().unwrap_or_default().trim();
    let mut line = format!("[agent {}: {}]", row.title(), standing(row));
    for claim in row.status.claims.iter().take(CLAIMS) {
        line.push_str(&format!("\n[{}]", claim.line()));
    }
    match (row.status.state, result) {
        (AgentState::Done, "") => format!("It ended without a text.\n{line}"),
        (AgentState::Done, result) => format!("{result}\n{line}"),
        (_, "") => format!("{line}\n{}", advice(row)),
        (_, result) => format!("{line}\n{}\nIts text so far:\n{result}", advice(row)),
    }
}

/// Explains an end that is not an answer.
fn advice(row: &AgentRow) -> String {
    let again = format!("agent_send to {} continues it", row.family.number);
    match row.status.state {
        AgentState::Orphaned => {
            format!("Windlass was stopped while it worked. Its work so far may have taken effect; {again}.")
        }
        AgentState::TimedOut => format!("It was stopped at its deadline; {again}."),
        AgentState::Canceled => format!("It was stopped; {again}."),
        AgentState::Failed => format!("It did not finish the task; {again}."),
        _ => String::new(),
    }
}

/// Returns the state with its reason, and the amounts used.
fn standing(row: &AgentRow) -> String {
    let reason = match (&row.status.reason, &row.status.waiting_on) {
        (Some(reason), _) => format!(" ({reason})"),
        (None, Some(what)) => format!(" for {what}"),
        (None, None) => String::new(),
    };
    let AgentBudget {
        tokens,
        cost_usd,
        turns,
        ..
    } = row.spent;
    let turns = usize::try_from(turns.unwrap_or_default()).unwrap_or(usize::MAX);
    format!(
        "{}{reason}, {}, {} tokens, ${:.4}",
        row.status.state,
        count(turns, "turn"),
        tokens.unwrap_or_default(),
        cost_usd.unwrap_or_default()
    )
}

/// Formats a sub-agent on one line for people.
pub fn agent_line(row: &AgentRow, now: Timestamp) -> String {
    let from = row.created_at.0;
    let until = row.ended_at.unwrap_or(now).0;
    let time = span(Duration::from_millis(until.saturating_sub(from)));
    let indent = "  ".repeat(usize::from(row.family.depth.saturating_sub(1)));
    let kind = match row.job.kind == row.job.name {
        true => String::new(),
        false => format!(" ({})", row.job.kind),
    };
    let copy = if row.job.worktree.is_some() {
        " · own copy"
    } else {
        ""
    };
    let server = row.server.as_ref().map(|server| format!(" · on {server}"));
    let server = server
        .filter(|_| row.status.state.is_active())
        .unwrap_or_default();
    let waits = match (row.status.state.is_active(), row.status.delivered) {
        (false, false) => " · not delivered yet",
        _ => "",
    };
    format!(
        "{indent}{}{kind}: {} · {time}{}{copy}{server}{waits} · {}",
        row.title(),
        standing(row),
        burn(row, until.saturating_sub(from)),
        cut(&row.job.task, TASK)
    )
}

/// Returns the tokens per minute of a running sub-agent.
fn burn(row: &AgentRow, milliseconds: u64) -> String {
    let tokens = row.spent.tokens.unwrap_or_default();
    if !row.status.state.is_active() || tokens == 0 || milliseconds == 0 {
        return String::new();
    }
    let rate = tokens.saturating_mul(60_000) / milliseconds;
    format!(" · {rate} tokens/min")
}

/// Formats sub-agents for people, one per line, with their sum.
pub fn agent_lines(rows: &[AgentRow], now: Timestamp) -> String {
    let mut lines: Vec<String> = rows.iter().map(|row| agent_line(row, now)).collect();
    let tokens: u64 = rows.iter().filter_map(|row| row.spent.tokens).sum();
    let cost: f64 = rows.iter().filter_map(|row| row.spent.cost_usd).sum();
    let active = rows.iter().filter(|row| row.status.state.is_active()).count();
    lines.push(format!(
        "{}, {active} running · {tokens} tokens · ${cost:.4}",
        count(rows.len(), "agent")
    ));
    lines.join("\n")
}

/// GOAL-5: formats the work of sessions towards goals without input, one per line; `None` if there is none.
pub fn goal_lines(goals: &[GoalInfo]) -> Option<String> {
    let line = |goal: &GoalInfo| {
        let state = match goal.state {
            _ if goal.is_orphaned() => "orphaned",
            GoalState::Active => "active",
            GoalState::Paused => "paused",
            GoalState::Blocked => "blocked",
            GoalState::Completed => "completed",
        };
        let verified = match goal.verification {
            None => "not verified yet",
            Some(Verification::NotYet) => "not reached when last verified",
            Some(Verification::Reached(_)) => "reached",
        };
        format!(
            "goal of {}: {state}, turn {} of {}, {verified} · {}",
            short_id(&goal.session),
            goal.turns,
            goal.max_turns,
            goal.text.lines().next().unwrap_or_default()
        )
    };
    let lines: Vec<String> = goals.iter().take(GOALS).map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the changes in a sub-agent's own copy of the files, for the model above it; empty if it has none.
pub(super) async fn changes(service: &Service, row: &AgentRow) -> String {
    if row.job.worktree.is_none() {
        return String::new();
    }
    let changes = match service.copies() {
        Ok(copies) => copies.changes(&row.session).await,
        Err(why) => Err(why),
    };
    match changes {
        Ok(text) if text.is_empty() => "It changed no files.\n".to_owned(),
        Ok(text) => format!(
            "Changes in its copy of the files (the user merges them with /agents merge {}):\n{text}\n",
            row.family.number
        ),
        Err(why) => format!("Its changes cannot be listed: {why}\n"),
    }
}
