//! Handles requests that need one call: picks the call and reports its result.

use serde_json::{Value, json};

use super::intent::Intent;
use super::{Done, Move, Situation};
use crate::seen::SeenRole;

/// Maximum number of result lines to repeat in the answer.
const SHOWN_LINES: usize = 20;

const ABILITIES: &str = "I can list files, read a file, find files matching a pattern, search for a text, run a command \
    or the tests, create a file, replace a text in a file, and fix a failing test in a small project.";

const REAL_MODEL: &str = "To work with a real model, configure a provider and its API key.";

pub(super) fn next(situation: &Situation<'_>, intent: &Intent) -> Move {
    if let Some(done) = situation.done.last() {
        return Move::Say(report(intent, done));
    }
    match intent {
        Intent::Hello => say(&[
            "Hello. I am a simulation, not a language model.",
            ABILITIES,
            REAL_MODEL,
        ]),
        Intent::WhoAreYou => say(&[
            "I am a simulated model: a table of rules that runs inside this program, without a network.",
            ABILITIES,
            REAL_MODEL,
        ]),
        Intent::Summarise => Move::Say(summary(situation)),
        Intent::Title => Move::Exactly("Simulated session".to_owned()),
        other => match call(situation, other) {
            Some(call) => call,
            None if needs_tool(other) => say(&[
                "I understand, but this session does not offer the tool for it.",
                REAL_MODEL,
            ]),
            None => say(&[
                "I do not understand this; I only follow a few rules.",
                ABILITIES,
                REAL_MODEL,
            ]),
        },
    }
}

/// Guesses the command that runs the tests from the names in a listing.
pub(super) fn test_command(listing: &str) -> Option<&'static str> {
    [
        ("test.sh", "sh test.sh"),
        ("Makefile", "make test"),
        ("Cargo.toml", "cargo test"),
        ("package.json", "npm test"),
        ("go.mod", "go test ./..."),
        ("pyproject.toml", "python3 -m pytest"),
    ]
    .into_iter()
    .find(|(name, _)| listing.contains(name))
    .map(|(_, command)| command)
}

/// Lists a directory with any tool that is offered.
pub(super) fn list(situation: &Situation<'_>, path: &str) -> Option<Move> {
    first_offered(
        situation,
        [
            ("list_directory", json!({"path": path})),
            ("bash", json!({"command": format!("ls -a -- {}", quote(path))})),
        ],
    )
}

/// Reads a file with any tool that is offered.
pub(super) fn read(situation: &Situation<'_>, path: &str) -> Option<Move> {
    first_offered(
        situation,
        [
            ("read_file", json!({"path": path})),
            ("bash", json!({"command": format!("cat -- {}", quote(path))})),
        ],
    )
}

fn call(situation: &Situation<'_>, intent: &Intent) -> Option<Move> {
    match intent {
        Intent::List { path } => list(situation, path),
        Intent::Read { path } => read(situation, path),
        Intent::Find { pattern } => first_offered(
            situation,
            [
                ("glob", json!({"pattern": pattern})),
                (
                    "bash",
                    json!({"command": format!("find . -name {}", quote(pattern))}),
                ),
            ],
        ),
        Intent::Search { pattern, path } => {
            let place = path.as_deref().unwrap_or(".");
            let mut args = json!({"pattern": pattern});
            if let Some(path) = path {
                args["path"] = json!(path);
            }
            let command = format!("grep -rn -e {} -- {}", quote(pattern), quote(place));
            first_offered(situation, [("grep", args), ("bash", json!({"command": command}))])
        }
        Intent::Run { command } => first_offered(situation, [("bash", json!({"command": command}))]),
        Intent::RunTests => {
            let command = "if [ -f test.sh ]; then sh test.sh; elif [ -f Makefile ]; then make test; else cargo test; fi";
            first_offered(situation, [("bash", json!({"command": command}))])
        }
        Intent::Create { path, content } => {
            let content = format!("{}\n", content.trim_end_matches('\n'));
            first_offered(
                situation,
                [("write_file", json!({"path": path, "content": content}))],
            )
        }
        Intent::Replace { path, old, new } => first_offered(
            situation,
            [(
                "edit_file",
                json!({"path": path, "old_string": old, "new_string": new}),
            )],
        ),
        Intent::Hello
        | Intent::WhoAreYou
        | Intent::FixTest
        | Intent::Json(_)
        | Intent::Summarise
        | Intent::Title
        | Intent::Unknown => None,
    }
}

fn needs_tool(intent: &Intent) -> bool {
    !matches!(intent, Intent::Unknown)
}

fn first_offered<const N: usize>(
    situation: &Situation<'_>,
    candidates: [(&'static str, Value); N],
) -> Option<Move> {
    candidates
        .into_iter()
        .find(|(tool, _)| situation.offers(tool))
        .map(|(tool, args)| Move::Call(tool, args))
}

fn report(intent: &Intent, done: &Done<'_>) -> String {
    let text = done.text();
    let shown = excerpt(text);
    if done.failed() {
        return format!("`{}` failed:\n\n{shown}", done.call.name);
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let is_empty = text.starts_with('(') && text.ends_with(" is empty)");
    match intent {
        Intent::List { path } | Intent::Read { path } if is_empty => format!("`{path}` is empty."),
        Intent::List { path } if lines == 1 => format!("`{path}` has 1 entry:\n\n{shown}"),
        Intent::List { path } => format!("`{path}` has {lines} entries:\n\n{shown}"),
        Intent::Read { path } if lines == 1 => format!("`{path}` has 1 line of text:\n\n{shown}"),
        Intent::Read { path } => format!("`{path}` has {lines} lines of text:\n\n{shown}"),
        Intent::Find { pattern } if lines == 0 => format!("Nothing matches `{pattern}`."),
        Intent::Find { pattern } => format!("These match `{pattern}`:\n\n{shown}"),
        Intent::Search { pattern, .. } if lines == 0 => format!("`{pattern}` was not found."),
        Intent::Search { pattern, .. } => format!("I searched for `{pattern}`:\n\n{shown}"),
        Intent::Run { command } => format!("I ran `{command}`. It printed:\n\n{shown}"),
        Intent::RunTests => format!("I ran the tests. They printed:\n\n{shown}"),
        Intent::Create { path, .. } => format!("I wrote `{path}`."),
        Intent::Replace { path, .. } => format!("I changed `{path}`."),
        _ => format!("`{}` returned:\n\n{shown}", done.call.name),
    }
}

/// Returns the first lines of a result, and counts the rest.
pub(super) fn excerpt(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        return "(nothing)".to_owned();
    }
    let total = text.lines().count();
    let mut shown: Vec<&str> = text.lines().take(SHOWN_LINES).collect();
    let rest = format!("… and {} more lines", total.saturating_sub(SHOWN_LINES));
    if total > SHOWN_LINES {
        shown.push(&rest);
    }
    shown.join("\n")
}

/// Summarizes the conversation, for requests to compact it.
fn summary(situation: &Situation<'_>) -> String {
    let turns = &situation.seen.turns;
    let asks: Vec<String> = turns
        .iter()
        .filter(|turn| turn.role == SeenRole::User && !turn.text.trim().is_empty())
        .map(|turn| super::intent::without_fragments(&turn.text))
        .filter(|text| !text.is_empty() && *text != situation.ask)
        .map(|text| format!("- {}", text.lines().next().unwrap_or_default()))
        .collect();
    let calls: usize = turns.iter().map(|turn| turn.calls.len()).sum();
    format!(
        "Summary of the conversation so far. The user asked:\n{}\n{calls} tool calls were made.",
        asks.join("\n")
    )
}

fn say(sentences: &[&str]) -> Move {
    Move::Say(sentences.join(" "))
}

/// Quotes a word for the shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
