//! `windlass sessions export`: a session as a file, for reading or for another machine.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use windlass_api::SessionInfo;
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::json::map_strings;
use windlass_core::log::{Entry, Store, recover};
use windlass_host::session_fixture;
use windlass_providers::key::mask_known_keys;
use windlass_service::past::{Exported, markdown};

use windlass_core::log::record;
use windlass_core::text::count;

use crate::exit::Exit;
use crate::print_text;
use crate::session_choice::{find, problem};
use crate::terminal::{plain, tell};
use windlass_args::{ExportFormat, ExportOptions};
use windlass_config::{Problem, ProblemKind};

/// Prints a session or writes it to a file.
pub(super) async fn export(store: &dyn Store, options: &ExportOptions) -> Result<Exit, Problem> {
    let mut info = find(store, &options.session).await?;
    let mut entries = record(store, &info.id).await.map_err(problem)?;
    if !options.secrets {
        mask(&mut info, &mut entries)?;
    }
    if let Some(folder) = &options.fixture {
        let turns = session_fixture::write(folder, &info, &entries)?;
        tell!(
            "wrote a test of {1} to {0}; run it with {0}/run.sh",
            folder.display(),
            count(turns, "turn")
        );
        return Ok(Exit::Ok);
    }
    let text = match options.format {
        ExportFormat::Json => json(info, entries)?,
        ExportFormat::Markdown => {
            // Close an interrupted turn the way the next turn would.
            if store.holder(&info.id).await.map_err(problem)?.is_none() {
                close(&mut entries);
            }
            // No control sequence in the text may reach a terminal.
            plain(&markdown(&info, &entries))
        }
    };
    let Some(path) = &options.output else {
        return print_text(&text);
    };
    write(path, &text, options.force)?;
    tell!("wrote {} to {}", count(text.len(), "byte"), path.display());
    Ok(Exit::Ok)
}

/// Masks keys of known formats. Everything else is kept as it is.
fn mask(info: &mut SessionInfo, entries: &mut [Entry]) -> Result<(), Problem> {
    let failed = |error: serde_json::Error| Problem::new(ProblemKind::Failed, error.to_string());
    for name in [&mut info.label.title, &mut info.label.name]
        .into_iter()
        .flatten()
    {
        if let Some(masked) = mask_known_keys(name) {
            *name = masked;
        }
    }
    let mut count = 0;
    for entry in entries {
        let text = serde_json::to_string(&entry).map_err(failed)?;
        if let Cow::Owned(masked) = map_strings(&text, mask_known_keys) {
            *entry = serde_json::from_str(&masked).map_err(failed)?;
            count += 1;
        }
    }
    if count > 0 {
        tell!("masked keys in {count} entries; --secrets keeps them");
    }
    Ok(())
}

fn json(session: SessionInfo, entries: Vec<Entry>) -> Result<String, Problem> {
    let text = serde_json::to_string_pretty(&Exported::new(session, entries));
    text.map(|text| text + "\n")
        .map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))
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

/// Writes a file that only its user can read. Overwrites a file only with `force`, and never with half a
/// file.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Problem> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Problem::usage(format!(
            "{}: already exists, nothing was written; --force overwrites it",
            path.display()
        )),
        _ => Problem::new(ProblemKind::Failed, format!("{}: {error}", path.display())),
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
        // The file is ours, and half of it is worthless.
        let _ = std::fs::remove_file(path);
    }
    written.map_err(failed)
}
