//! `windlass sessions import`: reads Windlass exports, and the files of other agents.
//!
//! The readers of the formats are in `host`. Nothing is stored unless the whole file could be read, or the user accepts
//! the readable part.

use std::path::Path;

use windlass_api::{Event, SessionId};
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::log::{Batch, Durability, Label, NewSession, Store, UserName};
use windlass_core::text::count;

use super::line;
use crate::args::{ImportFrom, ImportOptions};
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::session_choice::problem;
use crate::terminal::{say, tell};
use windlass_config::{Problem, ProblemKind};
use windlass_host::import::{Imported, detect, read};
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
    let (from, imported) = parse(options.from, &bytes, &name, &here)?;
    refuse_damage(&imported, options.lenient)?;
    let id = keep(store, (&UserName::default(), &imported), &here).await?;
    report(&imported, from, &id);
    Ok(Exit::Ok)
}

/// Reads the content of a file; its format is detected if none is given.
///
/// # Errors
/// If it has no known format, is not of the given one, or has no messages.
pub(crate) fn parse(
    from: Option<ImportFrom>,
    bytes: &[u8],
    name: &str,
    here: &Path,
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
    if imported.messages == 0 && imported.damaged.is_empty() {
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

/// Stores all events. If that fails, nothing is stored.
///
/// # Errors
/// If there are no messages, or the store fails.
pub(crate) async fn keep(
    store: &dyn Store,
    (user, imported): (&UserName, &Imported),
    here: &Path,
) -> Result<SessionId, Problem> {
    if imported.messages == 0 {
        return Err(Problem::new(
            ProblemKind::Failed,
            "nothing can be read".to_owned(),
        ));
    }
    let known = match &imported.id {
        Some(id) => store.get(id).await.map_err(problem)?.is_some(),
        None => false,
    };
    let id = imported
        .id
        .clone()
        .filter(|_| !known)
        .unwrap_or_else(SessionId::generate);
    let place = imported
        .place
        .as_deref()
        .filter(|place| Path::new(place).is_dir());
    let new = NewSession {
        id: Some(id.clone()),
        parent: None,
        label: Label {
            // The key of a session that was exported may be another user's here.
            key: imported.label.key.as_deref().map(|key| user.scoped(key)),
            ..imported.label.clone()
        },
        user: user.clone(),
        place: place.map_or_else(|| here.display().to_string(), str::to_owned),
        time: imported.created_at.unwrap_or_default(),
        ..NewSession::default()
    };
    let opened = store
        .create(new, &windlass_store::owner())
        .await
        .map_err(problem)?;
    let written = append(store, &opened.lease, imported, &id).await;
    store.release(&opened.lease).await.map_err(problem)?;
    if let Err(error) = written {
        store.delete(&id).await.map_err(problem)?;
        return Err(error);
    }
    Ok(id)
}

async fn append(
    store: &dyn Store,
    lease: &windlass_core::log::Lease,
    imported: &Imported,
    id: &SessionId,
) -> Result<(), Problem> {
    let mut first_seq = 1;
    // Events with the same time are written together.
    for group in imported.events.chunk_by(|one, next| one.0 == next.0) {
        let batch = Batch {
            first_seq,
            events: group.iter().map(|(_, event)| moved(event, id)).collect(),
            time: group.first().map(|(time, _)| *time).unwrap_or_default(),
            durability: Durability::Process,
            ..Batch::default()
        };
        first_seq += batch.events.len() as u64;
        store.append(lease, batch).await.map_err(problem)?;
    }
    store.sync().await.map_err(problem)
}

/// Converts the event to one of this session.
fn moved(event: &Event, session: &SessionId) -> Event {
    match event {
        Event::Message { message } => {
            let mut message = (**message).clone();
            message.session_id = session.clone();
            Event::Message {
                message: std::sync::Arc::new(message),
            }
        }
        other => other.clone(),
    }
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
