//! The hooks as text for people.

use std::fmt::Write;

use crate::file::HookOrigin;
use crate::record::{HookRun, HookRuns};
use crate::set::HookSet;

/// Number of runs in a report.
const SHOWN: usize = 15;

/// Describes the files with their hooks, their problems, the last runs, and why hooks did not run.
pub fn report(set: &HookSet, runs: &HookRuns, untrusted: Option<&str>) -> String {
    let mut text = String::new();
    if set.files().is_empty() {
        text.push_str(
            "No hooks. Windlass reads ~/.claude/settings.json, ~/.codex/hooks.json, hooks.json in its own \
                       folder, and the same files of a trusted project.\n",
        );
    }
    for file in set.files() {
        let origin = match file.origin {
            HookOrigin::User => "yours",
            HookOrigin::Project => "project",
        };
        let _ = writeln!(text, "{} ({origin})", file.path.display());
        for handler in &file.handlers {
            let (event, matcher) = (handler.occasion.name(), handler.matcher.text());
            let condition = handler
                .condition
                .iter()
                .map(|rule| format!(" if {rule}"))
                .collect::<String>();
            let background = if handler.is_async { " (async)" } else { "" };
            let _ = writeln!(
                text,
                "  {event:<18} {matcher:<14} {}{condition}{background}",
                handler.program
            );
        }
        for problem in &file.problems {
            let _ = writeln!(text, "  ! {problem}");
        }
    }
    if let Some(notice) = untrusted {
        let _ = writeln!(text, "! {notice}");
    }
    let last: Vec<&HookRun> = runs.runs().collect();
    if !last.is_empty() {
        text.push_str("\nLast runs\n");
        for run in last.iter().skip(last.len().saturating_sub(SHOWN)) {
            let _ = writeln!(
                text,
                "  {:<18} {:<14} {:>5} ms  exit {:<12} {:<6} {}",
                run.event,
                about(run),
                run.ms,
                run.exit,
                run.decision,
                run.command
            );
        }
    }
    let skipped: Vec<&HookRun> = runs.skipped().collect();
    if !skipped.is_empty() {
        text.push_str("\nDid not run\n");
        for run in skipped {
            let why = run.skipped.as_deref().unwrap_or_default();
            let _ = writeln!(text, "  {:<18} {}: {why}", run.event, run.command);
        }
    }
    text.trim_end().to_owned()
}

/// The matcher that fit, and the subject that it fit.
fn about(run: &HookRun) -> String {
    match (run.matcher.as_str(), run.subject.as_str()) {
        (matcher, "") => matcher.to_owned(),
        ("*", subject) => subject.to_owned(),
        (matcher, subject) if matcher == subject => matcher.to_owned(),
        (matcher, subject) => format!("{subject} ({matcher})"),
    }
}
