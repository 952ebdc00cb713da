//! GOAL-3: the request to work towards a goal without input, as a command line.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use windlass_core::event::{ClaimCheck, ClaimStatus, GoalEvent, GoalState, StepState};

/// A goal to work on without input, with its criteria and limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GoalRequest {
    /// The goal; empty to resume the paused one.
    pub text: String,
    /// Commands that must succeed.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Files that must exist and have content.
    #[serde(default)]
    pub files: Vec<String>,
    /// True if the user must confirm that the goal is reached.
    #[serde(default)]
    pub asks: bool,
    /// Maximum number of turns; the setting if absent.
    #[serde(default)]
    pub turns: Option<u32>,
    /// Spending limit in US dollars.
    #[serde(default)]
    pub max_cost_usd: Option<f64>,
}

impl GoalRequest {
    /// Reads flags and the text behind them, as in `--turns 5 --check "make test" fix the build`.
    ///
    /// # Errors
    /// Names the flag that is unknown, or whose value is missing or wrong.
    pub fn parse(arguments: &str) -> Result<Self, String> {
        let mut request = Self::default();
        let mut rest = arguments.trim_start();
        while let Some(flag) = rest.strip_prefix("--") {
            let end = flag.find([' ', '\t', '\n', '=']).unwrap_or(flag.len());
            let (name, after) = flag.split_at(end);
            let after = after.strip_prefix('=').unwrap_or(after).trim_start();
            rest = match name {
                "auto" => after,
                "ask" => {
                    request.asks = true;
                    after
                }
                "check" | "file" | "turns" | "max-cost" => request.set(name, after)?,
                "" => {
                    rest = after;
                    break;
                }
                other => {
                    return Err(format!(
                        "--{other} is not known here; expected --auto, --turns, --check, --file, --ask or --max-cost"
                    ));
                }
            };
        }
        rest.trim().clone_into(&mut request.text);
        Ok(request)
    }

    /// Takes the value of a flag, and returns the rest.
    fn set<'a>(&mut self, name: &str, after: &'a str) -> Result<&'a str, String> {
        let (value, rest) = word(after).ok_or_else(|| format!("--{name} needs a value"))?;
        match name {
            "check" | "file" if value.trim().is_empty() => {
                let what = if name == "check" { "a command" } else { "a path" };
                return Err(format!("--{name} is empty: expected {what}"));
            }
            "check" => self.checks.push(value),
            "file" => self.files.push(value),
            "turns" => {
                let turns = value.parse().ok().filter(|turns| *turns > 0);
                let wrong = || format!("--turns {value}: expected a whole number, at least 1");
                self.turns = Some(turns.ok_or_else(wrong)?);
            }
            _ => {
                let cost = value
                    .parse()
                    .ok()
                    .filter(|cost: &f64| cost.is_finite() && *cost > 0.0);
                let wrong = || format!("--max-cost {value}: expected an amount in US dollars, such as 2.5");
                self.max_cost_usd = Some(cost.ok_or_else(wrong)?);
            }
        }
        Ok(rest)
    }

    /// Returns the command line that makes this request.
    pub fn line(&self) -> String {
        let verb = if self.text.is_empty() {
            "resume"
        } else {
            "create --auto"
        };
        let mut line = format!("/goal {verb}");
        for check in &self.checks {
            let _ = write!(line, " --check {}", quoted(check));
        }
        for file in &self.files {
            let _ = write!(line, " --file {}", quoted(file));
        }
        if self.asks {
            line.push_str(" --ask");
        }
        if let Some(turns) = self.turns {
            let _ = write!(line, " --turns {turns}");
        }
        if let Some(cost) = self.max_cost_usd {
            let _ = write!(line, " --max-cost {cost}");
        }
        if !self.text.is_empty() {
            let _ = write!(line, " -- {}", self.text);
        }
        line
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads one word: plain, or in single or double quotes. A backslash keeps the next character in double quotes.
/// Returns it with the rest; `None` if there is none, or a quote is not closed.
fn word(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    let Some(quote) = quote else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        return (!word.is_empty()).then(|| (word.to_owned(), rest.trim_start()));
    };
    let mut word = String::new();
    let mut signs = text.char_indices().skip(1);
    while let Some((place, sign)) = signs.next() {
        match sign {
            '\\' if quote == '"' => word.push(signs.next()?.1),
            sign if sign == quote => {
                let rest = text.get(place + 1..).unwrap_or_default();
                return Some((word, rest.trim_start()));
            }
            sign => word.push(sign),
        }
    }
    None
}

/// Meaning of a note about work towards a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Progress.
    Progress,
    /// Something succeeded.
    Good,
    /// Something failed, or needs the user.
    Bad,
}

/// Returns why a check has no exit code: the last line of its output, such as a note about its time.
fn ending(excerpt: &str) -> String {
    let last = excerpt.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or(String::new(), |line| {
        let line: String = line.trim_matches(['[', ']']).chars().take(120).collect();
        format!(" ({line})")
    })
}

/// Describes an event of work towards a goal for people; `None` if there is nothing to say. Only a new plan has more
/// than one line. The text
/// may contain untrusted text.
pub fn goal_note(event: &GoalEvent) -> Option<(NoteKind, String)> {
    match event {
        GoalEvent::GoalRun(_) | GoalEvent::GoAhead { .. } => None,
        GoalEvent::GoalTurn { number } => Some((NoteKind::Progress, format!("Goal: turn {number}"))),
        GoalEvent::GoalCheck(check) => Some(match (check.passed, check.evidence.exit_code) {
            (true, _) => (NoteKind::Good, format!("Check passed: {}", check.criterion)),
            (false, Some(code)) => (
                NoteKind::Bad,
                format!("Check failed: {} (exit code {code})", check.criterion),
            ),
            (false, None) => (
                NoteKind::Bad,
                format!("Check failed: {}{}", check.criterion, ending(&check.excerpt)),
            ),
        }),
        GoalEvent::GoalVerdict { achieved, reason, .. } => Some(match achieved {
            true => (NoteKind::Good, format!("Supervisor: reached. {reason}")),
            false => (NoteKind::Progress, format!("Supervisor: not yet. {reason}")),
        }),
        GoalEvent::GoalState { state, message, .. } => match state {
            GoalState::Active if message.is_empty() => None,
            GoalState::Active => Some((NoteKind::Progress, format!("Goal: {message}"))),
            GoalState::Paused => Some((NoteKind::Bad, format!("Goal paused: {message}"))),
            GoalState::Blocked => Some((NoteKind::Bad, format!("Goal blocked: {message}"))),
            GoalState::Completed => Some((NoteKind::Good, format!("Goal completed: {message}"))),
        },
        GoalEvent::Claim(claim) => Some(claim_note(claim)),
        GoalEvent::Plan(plan) if plan.steps.is_empty() => None,
        GoalEvent::Plan(plan) => {
            let done = plan
                .steps
                .iter()
                .filter(|step| step.status == StepState::Done)
                .count();
            let named = |state: StepState| {
                let steps = plan.steps.iter().filter(move |step| step.status == state);
                steps.map(|step| format!("{}: {}", step.id, step.title))
            };
            let active: Vec<String> = named(StepState::Active).collect();
            let mut text = format!("Plan: {done} of {} steps done", plan.steps.len());
            if !active.is_empty() {
                let _ = write!(text, "; now {}", active.join(" · "));
            } else if done == 0 {
                // A new plan, which the user reads.
                text = format!("Plan: {}", plan.goal.lines().next().unwrap_or_default());
                for (number, step) in (1..).zip(named(StepState::Open)) {
                    let _ = write!(text, "\n{number}. {step}");
                }
                text.push_str("\n/plan go carries it out, /plan edit changes it.");
            }
            Some((NoteKind::Progress, text))
        }
    }
}

fn claim_note(claim: &ClaimCheck) -> (NoteKind, String) {
    let kind = match claim.status {
        ClaimStatus::Verified => NoteKind::Good,
        ClaimStatus::False | ClaimStatus::Stale | ClaimStatus::Unproven => NoteKind::Bad,
    };
    (kind, claim.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GOAL-3: flags come before the text, which is kept as it is.
    #[test]
    fn flags_are_read() {
        let request = GoalRequest::parse(
            "--auto --turns 3 --check \"make \\\"a b\\\"\" --check 'x y' --file=out.txt --ask --max-cost 0.5 fix  it\nsoon",
        );
        let expected = GoalRequest {
            text: "fix  it\nsoon".into(),
            checks: vec!["make \"a b\"".into(), "x y".into()],
            files: vec!["out.txt".into()],
            asks: true,
            turns: Some(3),
            max_cost_usd: Some(0.5),
        };
        assert_eq!(request, Ok(expected.clone()));
        let arguments = expected.line();
        let arguments = arguments.strip_prefix("/goal create ").unwrap();
        assert_eq!(GoalRequest::parse(arguments), Ok(expected));
    }

    /// GOAL-3: wrong flags are named.
    #[test]
    fn wrong_flags_are_named() {
        for (line, words) in [
            ("--turns many x", "--turns many: expected a whole number"),
            ("--turns 0 x", "--turns 0: expected a whole number"),
            ("--max-cost -1 x", "--max-cost -1: expected an amount"),
            ("--max-cost nan x", "--max-cost nan: expected an amount"),
            ("--check", "--check needs a value"),
            ("--check \"open x", "--check needs a value"),
            ("--tunrs 3 x", "--tunrs is not known here"),
        ] {
            let error = GoalRequest::parse(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    /// GOAL-3: a text that starts with dashes can follow `--`.
    #[test]
    fn dashes_can_be_text() {
        let request = GoalRequest::parse("--auto -- --x is a flag").unwrap();
        assert_eq!(request.text, "--x is a flag");
        assert_eq!(GoalRequest::default().line(), "/goal resume");
    }
}
