//! SUB-8: the agents of a session as a table: state, time, place in the tree, task, and what each used.

use windlass_api::{AgentRow, Timestamp, dollars};
use windlass_core::log::AgentState;
use windlass_core::text::count;

use super::picker::Row;
use crate::text::{cut, one_line, width};
use crate::theme::{Theme, Tone};

/// Maximum width of a name in the tree.
const NAME: usize = 24;

/// Returns a line that sums up all agents, and a row for each.
pub(crate) fn fleet(found: &[AgentRow], now: Timestamp, theme: Theme) -> (String, Vec<Row>) {
    let names: Vec<String> = found.iter().map(|agent| name(agent, theme)).collect();
    let name_columns = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let facts: Vec<[String; 4]> = found.iter().map(|agent| facts(agent, now)).collect();
    let columns: [usize; 4] = std::array::from_fn(|column| {
        let cells = facts.iter().map(|cells| width(&cells[column]));
        cells.max().unwrap_or(0)
    });
    let row = |((agent, name), facts): ((&AgentRow, &String), &[String; 4])| {
        let (sign, tone) = sign(agent.status.state, theme);
        let state = agent.status.state.to_string();
        let waits = agent.status.waiting_on.as_deref().map(one_line);
        let waits = waits.map_or(String::new(), |on| format!("waits for {on}: "));
        let task = one_line(&agent.job.task);
        let cells = facts.iter().zip(columns).filter(|(_, columns)| *columns > 0);
        let cells: Vec<String> = cells.map(|(cell, columns)| right(cell, columns)).collect();
        let pad = " ".repeat(name_columns.saturating_sub(width(name)) + 2);
        Row {
            key: agent.session.to_string(),
            search: format!("{name} {state} {waits}{task}"),
            lead: vec![
                (format!("{sign} {state:<10}"), tone),
                (format!("{name}{pad}"), Tone::Text),
                (waits, Tone::Warn),
            ],
            text: task,
            detail: cells.join("  "),
        }
    };
    let rows = found.iter().zip(&names).zip(&facts).map(row).collect();
    (summary(found), rows)
}

/// Name in the tree, with a branch for an agent that another one started.
fn name(agent: &AgentRow, theme: Theme) -> String {
    let below = usize::from(agent.family.depth.saturating_sub(1));
    let branch = match below {
        0 => String::new(),
        _ => format!("{}{} ", "  ".repeat(below - 1), theme.sign("└", "`")),
    };
    cut(&format!("{branch}{}", one_line(&agent.title())), NAME)
}

/// Sign and colour of a state.
fn sign(state: AgentState, theme: Theme) -> (&'static str, Tone) {
    match state {
        AgentState::Queued => (theme.sign("○", "."), Tone::Dim),
        AgentState::Running => (theme.sign("●", "*"), Tone::Accent),
        AgentState::Waiting => (theme.sign("▲", "!"), Tone::Warn),
        AgentState::Done => (theme.sign("✓", "+"), Tone::Good),
        AgentState::Failed | AgentState::TimedOut | AgentState::Orphaned => (theme.sign("✗", "x"), Tone::Bad),
        AgentState::Canceled => (theme.sign("◌", "-"), Tone::Dim),
    }
}

/// Running time, tokens, cost, and tokens per minute of an agent that runs.
fn facts(agent: &AgentRow, now: Timestamp) -> [String; 4] {
    let until = agent.ended_at.unwrap_or(now).0;
    let milliseconds = until.saturating_sub(agent.created_at.0).max(1);
    let tokens = agent.spent.tokens.unwrap_or_default();
    // Without a price, nothing is known about the cost.
    let cost = agent.spent.cost_usd.filter(|cost| *cost > 0.0);
    let rate = match agent.status.state.is_active() {
        true => format!("{}/min", thousands(tokens.saturating_mul(60_000) / milliseconds)),
        false => String::new(),
    };
    [
        clock(milliseconds / 1000),
        format!("{} tokens", thousands(tokens)),
        cost.map(dollars).unwrap_or_default(),
        rate,
    ]
}

/// Sums up the agents: how many are in which state, their tokens and their cost.
fn summary(found: &[AgentRow]) -> String {
    let number =
        |is: &dyn Fn(AgentState) -> bool| found.iter().filter(|agent| is(agent.status.state)).count();
    let parts = [
        (number(&|state| state == AgentState::Waiting), "waiting for you"),
        (
            number(&|state| state.is_active() && state != AgentState::Waiting),
            "running",
        ),
        (number(&|state| state == AgentState::Done), "done"),
        (
            number(&|state| !state.is_active() && state != AgentState::Done),
            "not finished",
        ),
    ];
    let states = parts.iter().filter(|(number, _)| *number > 0);
    let mut words: Vec<String> = states.map(|(number, word)| format!("{number} {word}")).collect();
    let tokens = found
        .iter()
        .map(|agent| agent.spent.tokens.unwrap_or_default())
        .sum();
    words.push(format!("{} tokens", thousands(tokens)));
    let cost: f64 = found.iter().filter_map(|agent| agent.spent.cost_usd).sum();
    if cost > 0.0 {
        words.push(dollars(cost));
    }
    format!("{}: {}", count(found.len(), "agent"), words.join(" · "))
}

fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Formats a time in seconds as on a clock.
fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn thousands(number: u64) -> String {
    match number {
        0..=9_999 => number.to_string(),
        _ => format!("{}.{}k", number / 1000, number % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_short() {
        assert_eq!([0, 42, 61, 3_725].map(clock), ["0:00", "0:42", "1:01", "1:02:05"]);
        assert_eq!([0, 9_999, 12_345].map(thousands), ["0", "9999", "12.3k"]);
    }
}
