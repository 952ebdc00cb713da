//! Windlass's own exports.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_api::{Event, Label, Message, SessionInfo};
use windlass_core::log::Entry;
use windlass_core::message::upgrade;
use windlass_core::text::json_problem;
use windlass_service::past::{EXPORT_VERSION, messages};

use super::Imported;
use windlass_config::{Problem, ProblemKind};

/// The file, with entries that are parsed one by one.
#[derive(Deserialize)]
struct File {
    windlass: u32,
    session: SessionInfo,
    entries: Vec<Box<RawValue>>,
}

pub(super) fn read(bytes: &[u8], name: &str) -> Result<Imported, Problem> {
    let failed = |why: String| {
        Problem::new(
            ProblemKind::Failed,
            format!("{name}: {why}; nothing was imported"),
        )
    };
    let file: File = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        failed(format!("line {line}, column {column}: {}", json_problem(&error)))
    })?;
    if file.windlass > EXPORT_VERSION {
        let version = file.windlass;
        return Err(failed(format!(
            "the file has version {version}, which needs a newer Windlass"
        )));
    }
    // The id is printed, and shown in commands to copy.
    if !file.session.id.is_uuid() {
        let id = file.session.id.as_str();
        return Err(failed(format!("the id of the session is {id:?}, not a UUID")));
    }
    let mut imported = Imported {
        id: Some(file.session.id),
        label: Label {
            key: None,
            ..file.session.label
        },
        place: Some(file.session.place),
        created_at: Some(file.session.created_at),
        events: Vec::new(),
        messages: 0,
        skipped: BTreeMap::new(),
        damaged: Vec::new(),
    };
    for (number, raw) in (1..).zip(file.entries) {
        match serde_json::from_str::<Entry>(raw.get()) {
            Ok(entry) if entry.event.is_live() => {
                *imported.skipped.entry("live event".to_owned()).or_default() += 1;
            }
            Ok(entry) if file.windlass == 1 => imported.events.push((entry.time, upgraded(entry.event))),
            Ok(entry) => imported.events.push((entry.time, entry.event)),
            Err(error) => {
                let why = json_problem(&error);
                imported.damaged.push(format!("{name}: entry {number}: {why}"));
            }
        }
    }
    let events = imported.events.iter().map(|(_, event)| event);
    imported.messages = messages(events).len();
    Ok(imported)
}

/// Converts an event of the first version, in which injected text was recognized by its beginning.
fn upgraded(event: Event) -> Event {
    match event {
        Event::Message { message } => {
            let mut message = Message::clone(&message);
            upgrade(&mut message);
            Event::Message {
                message: message.into(),
            }
        }
        other => other,
    }
}
