//! Readers of session files: exports of Windlass, and the files of other agents.
//!
//! Each format has a reader that turns a file into a `Conversation`, which matches calls with results.

mod claude_code;
mod codex;
mod conversation;
mod keep;
mod lines;
mod pi;
mod windlass;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_api::{Event, Label, SessionId};
use windlass_config::Problem;
use windlass_core::clock::Timestamp;

pub use self::keep::keep;
use self::lines::Lines;

/// Format of a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// An export of Windlass.
    Windlass,
    /// A file of Claude Code.
    ClaudeCode,
    /// A file of Codex.
    Codex,
    /// A file of pi.
    Pi,
}

/// Content of an imported file.
#[derive(Debug)]
pub struct Imported {
    /// Original id, if the session may keep it.
    pub id: Option<SessionId>,
    /// Title and name.
    pub label: Label,
    /// Folder of the session.
    pub place: Option<String>,
    /// Time of its creation.
    pub created_at: Option<Timestamp>,
    /// Events to store, with their times.
    pub events: Vec<(Timestamp, Event)>,
    /// Number of messages.
    pub messages: usize,
    /// Content that was skipped on purpose, with counts.
    pub skipped: BTreeMap<String, usize>,
    /// Content that could not be read: location and reason.
    pub damaged: Vec<String>,
}

/// Reads a file. `here` is the folder of a session whose own does not exist, `now` the time of messages without one.
///
/// # Errors
/// Fails if the file is not of this format.
pub fn read(
    from: ImportFormat,
    bytes: &[u8],
    name: &str,
    here: &Path,
    now: Timestamp,
) -> Result<Imported, Problem> {
    let conversation = match from {
        ImportFormat::Windlass => return windlass::read(bytes, name),
        ImportFormat::ClaudeCode => claude_code::read(Lines::read(bytes, name)),
        ImportFormat::Codex => codex::read(Lines::read(bytes, name)),
        ImportFormat::Pi => pi::read(Lines::read(bytes, name)),
    };
    let place = conversation.place.as_deref().map(PathBuf::from);
    let cwd = place.filter(|place| place.is_dir()).unwrap_or(here.to_owned());
    Ok(conversation.imported(&cwd, now))
}

/// Detects the format of a file by its first lines.
pub fn detect(bytes: &[u8]) -> Option<ImportFormat> {
    let head = bytes.get(..4096.min(bytes.len())).unwrap_or_default();
    if String::from_utf8_lossy(head).contains("\"windlass\"") && head.trim_ascii_start().starts_with(b"{\n") {
        return Some(ImportFormat::Windlass);
    }
    let lines = Lines::read(bytes, "");
    lines.values.iter().take(50).find_map(|(_, value)| whose(value))
}

fn whose(line: &Value) -> Option<ImportFormat> {
    let kind = line["type"].as_str().unwrap_or_default();
    let has = |key: &str| line.get(key).is_some();
    match kind {
        _ if has("windlass") && has("entries") => Some(ImportFormat::Windlass),
        "session" if has("id") => Some(ImportFormat::Pi),
        "session_meta" | "response_item" | "turn_context" if has("payload") => Some(ImportFormat::Codex),
        "" if has("id") && has("timestamp") && has("instructions") => Some(ImportFormat::Codex),
        "summary" if has("leafUuid") => Some(ImportFormat::ClaudeCode),
        "user" | "assistant" if has("message") && has("uuid") => Some(ImportFormat::ClaudeCode),
        _ => None,
    }
}
