//! `windlass sessions import`: reads Windlass exports, and the files of other agents.
//!
//! The readers of the formats are in `host`. Nothing is stored unless the whole file could be read, or the user accepts
//! the readable part.

use std::path::Path;

use windlass_api::{SessionId, UserName};
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::log::Store;
use windlass_core::text::count;

use super::line;
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::session_choice::problem;
use crate::terminal::{say, tell};
use windlass_args::{ImportFrom, ImportOptions};
use windlass_config::{Problem, ProblemKind};
use windlass_host::import::{Imported, detect, keep, read};
use windlass_sandbox::read_given;

/// Size of the largest file.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum number of damaged places listed.
const MAX_NAMED: usize = 10;

/// Reads a file and stores it as a session that can be resumed.
pub(super) async fn import(store: &dyn Store, options: &ImportOptions) -> Result<Exit, Problem> {
    let bytes = read_given(&options.file, MAX_BYTES)
        .map_err(|error| Problem::usage(format!("{}: {error}", options.file.display())))?;
    let here = working_directory(None)?;
    let name = options.file.display().to_string();
    let (from, imported) = parse(options.from, &bytes, (&name, &here), options.lenient)?;
    refuse_damage(&imported, options.lenient)?;
    let kept = keep(store, &imported, &here, UserName::default()).await;
    let id = kept.map_err(problem)?;
    report(&imported, from, &id);
    let info = store.get(&id).await.map_err(problem)?;
    let is_named = info.is_some_and(|info| info.label.name.is_some());
    if let Some(name) = imported.label.name.as_deref().filter(|_| !is_named) {
        let name = line(name);
        tell!(
            "imported without its name, because another session is called {name}; `windlass sessions rename` gives it one"
        );
    }
    Ok(Exit::Ok)
}

/// Reads the content of a file; its format is detected if none is given.
///
/// # Errors
/// If it has no known format, is not of the given one, or has no messages.
pub(crate) fn parse(
    from: Option<ImportFrom>,
    bytes: &[u8],
    (name, here): (&str, &Path),
    lenient: bool,
) -> Result<(ImportFrom, Imported), Problem> {
    let from = match from {
        Some(from) => from,
        None => detect(bytes).map(ImportFrom::of).ok_or_else(|| {
            Problem::usage(format!(
                "{name}: not a session of Windlass, Claude Code, Codex or pi; --from sets the format"
            ))
        })?,
    };
    let imported = read(from.format(), bytes, name, here, SystemClock::default().now())?;
    if imported.messages == 0 && (lenient || imported.damaged.is_empty()) {
        return Err(Problem::new(
            ProblemKind::Failed,
            format!("{name}: nothing to import"),
        ));
    }
    Ok((from, imported))
}

/// Rejects a damaged file, unless the user accepts the readable part.
fn refuse_damage(imported: &Imported, lenient: bool) -> Result<(), Problem> {
    let count = imported.damaged.len();
    if count == 0 {
        return Ok(());
    }
    let mut named: Vec<&str> = imported
        .damaged
        .iter()
        .take(MAX_NAMED)
        .map(String::as_str)
        .collect();
    if count > MAX_NAMED {
        named.push("…");
    }
    let named = named.join("\n");
    if lenient {
        tell!(
            "skipped damaged content ({count}):\n{}",
            crate::terminal::plain(&named)
        );
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::Failed,
        format!("{named}\nnothing was imported; --lenient imports whatever can be read"),
    ))
}

fn report(imported: &Imported, from: ImportFrom, id: &SessionId) {
    let whose = match from {
        ImportFrom::Windlass => "Windlass",
        ImportFrom::ClaudeCode => "Claude Code",
        ImportFrom::Codex => "Codex",
        ImportFrom::Pi => "pi",
    };
    let title = imported.label.title.as_deref().unwrap_or("untitled");
    say!("{id}");
    tell!(
        "imported {} from {whose}: {}",
        count(imported.messages, "message"),
        line(title)
    );
    if !imported.skipped.is_empty() {
        let skipped: Vec<String> = imported
            .skipped
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        tell!("skipped: {}", line(&skipped.join(", ")));
    }
    tell!("Resume with: windlass exec --resume {id} \"…\"");
}
