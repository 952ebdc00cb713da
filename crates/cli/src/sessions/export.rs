//! A session as a file: for people, or for another machine.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use windlass_api::{Event, SessionInfo};
use windlass_core::clock::{Clock, SystemClock, Timestamp};
use windlass_core::log::{Entry, Sessions, recover};
use windlass_store::SqliteStore;

use super::markdown::markdown;
use super::record::record;
use crate::args::{ExportFormat, ExportOptions};
use crate::exit::{Exit, Problem};
use crate::keeping::{find, problem};
use crate::print_text;
use crate::terminal::tell;

/// The version of the file. It changes when a reader of the old form would misread the new one.
pub(super) const VERSION: u32 = 1;

/// A session with everything in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exported {
    /// [`VERSION`].
    pub(super) windlass: u32,
    pub(super) session: SessionInfo,
    pub(super) entries: Vec<Stored>,
}

/// One entry: the event with its number and its time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    #[serde(flatten)]
    pub(super) event: Event,
}

/// Prints a session or writes it to a file.
pub(super) async fn export(store: &SqliteStore, options: &ExportOptions) -> Result<Exit, Problem> {
    let info = find(store, &options.session).await?;
    let mut entries = record(store, &info.id).await?;
    let text = match options.format {
        ExportFormat::Json => json(info, entries)?,
        ExportFormat::Markdown => {
            // What a stopped process left open is told as the next turn would tell it.
            if store.holder(&info.id).await.map_err(problem)?.is_none() {
                close(&mut entries);
            }
            markdown(&info, &entries)
        }
    };
    let Some(path) = &options.output else {
        return print_text(&text);
    };
    write(path, &text, options.force)?;
    tell!("wrote {} bytes to {}", text.len(), path.display());
    Ok(Exit::Ok)
}

fn json(session: SessionInfo, entries: Vec<Entry>) -> Result<String, Problem> {
    let stored = |entry: Entry| Stored {
        seq: entry.seq,
        time: entry.time,
        event: entry.event,
    };
    let exported = Exported {
        windlass: VERSION,
        session,
        entries: entries.into_iter().map(stored).collect(),
    };
    let text = serde_json::to_string_pretty(&exported);
    text.map(|text| text + "\n")
        .map_err(|error| Problem::new(Exit::Failed, error.to_string()))
}

fn close(entries: &mut Vec<Entry>) {
    let now = SystemClock::default().now();
    let last = entries.last().map_or(0, |entry| entry.seq);
    let added = recover(entries, None, now);
    entries.extend((last + 1..).zip(added).map(|(seq, event)| Entry {
        seq,
        time: now,
        event,
    }));
}

/// Writes a file that only its user can read. Nothing is overwritten unless that is wished, and never by half a file.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Problem> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Problem::usage(format!(
            "{}: there is such a file already, and nothing was written; --force replaces it",
            path.display()
        )),
        _ => Problem::new(Exit::Failed, format!("{}: {error}", path.display())),
    };
    if force {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        return file.persist(path).map(drop).map_err(|error| failed(error.error));
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // It is ours, and half of it is worth nothing.
        let _ = std::fs::remove_file(path);
    }
    written.map_err(failed)
}
