//! `/memory`.

use windlass_core::log::MemoryUnit;

use super::MemoryDesk;
use super::desk::unit_line;

/// Number of units that are listed.
const LISTED: usize = 30;

/// Number of units that a search shows.
const FOUND: usize = 10;

/// Runs the command and returns the text for the user. `recalled` are the units that this session started turns with.
pub(super) async fn run(
    desk: &MemoryDesk,
    arguments: &str,
    recalled: &[MemoryUnit],
) -> Result<String, String> {
    let (verb, rest) = arguments
        .split_once(char::is_whitespace)
        .unwrap_or((arguments, ""));
    let rest = rest.trim();
    match verb {
        "" | "list" => overview(desk, recalled).await,
        "search" if rest.is_empty() => Err("write what to look for: /memory search WORDS".to_owned()),
        "search" => {
            let hits = desk.search(rest, FOUND).await?;
            let lines: Vec<String> = hits.iter().map(|hit| unit_line(&hit.unit)).collect();
            Ok(or_nothing(&lines, desk.no_matches()))
        }
        "show" => {
            let unit = desk.unit(number(verb, rest)?).await?;
            Ok(format!("{}\n\n{}", unit_line(&unit), unit.text))
        }
        "save" => desk.save(rest, false).await.map(|id| format!("Saved as {id}.")),
        "confirm" => {
            let (id, for_user) = match rest.strip_suffix("--user") {
                Some(id) => (id.trim(), true),
                None => (rest, false),
            };
            let id = desk.confirm(number(verb, id)?, for_user).await?;
            let reach = if for_user { " for all projects" } else { "" };
            Ok(format!("Confirmed{reach} as {id}."))
        }
        "pin" | "unpin" => {
            let id = number(verb, rest)?;
            desk.pin(id, verb == "pin").await?;
            Ok(match verb {
                "pin" => format!("Pinned {id}: every session here starts with it."),
                _ => format!("Unpinned {id}."),
            })
        }
        "forget" => {
            let id = number(verb, rest)?;
            desk.forget(&[id]).await?;
            Ok(format!("Forgot {id}, and every copy of its text."))
        }
        other => Err(format!(
            "`{other}` is not a subcommand of /memory; use list, search, show, save, confirm, pin, unpin or forget"
        )),
    }
}

fn number(verb: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("write the number of a memory: /memory {verb} N; `/memory list` shows them"))
}

async fn overview(desk: &MemoryDesk, recalled: &[MemoryUnit]) -> Result<String, String> {
    let mut text = String::new();
    if !recalled.is_empty() {
        text.push_str("Recalled in this session:\n");
        for unit in recalled {
            text.push_str(&format!("  {}\n", unit_line(unit)));
        }
    }
    let kept = desk.list(false, LISTED).await?;
    if !kept.is_empty() {
        text.push_str("Notes, lessons and preferences:\n");
        for unit in &kept {
            text.push_str(&format!("  {}\n", unit_line(unit)));
        }
        if kept.iter().any(|unit| !unit.confirmed) {
            text.push_str("/memory confirm N keeps an unconfirmed lesson, with --user for all projects; /memory forget N removes it.\n");
        }
    }
    if text.is_empty() {
        text.push_str("No memories yet. /memory search WORDS searches the conversations of this folder.");
    }
    Ok(text.trim_end().to_owned())
}

fn or_nothing(lines: &[String], nothing: &str) -> String {
    match lines {
        [] => nothing.to_owned(),
        lines => lines.join("\n"),
    }
}
