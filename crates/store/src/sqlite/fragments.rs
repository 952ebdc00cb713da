//! Converts messages of the first format, in which injected text was recognized by its beginning.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};
use windlass_core::event::Event;
use windlass_core::log::LogError;
use windlass_core::message::{Message, Part, upgrade};

use super::failure::{damaged, told};

/// Rewrites every stored message that contains injected text. Part of a migration, inside its transaction.
pub(super) fn convert(connection: &Connection) -> Result<(), LogError> {
    let mut found = connection
        .prepare(
            "SELECT rowid, session, payload FROM entry WHERE kind = 'message' AND
             (payload LIKE '%\"text\":\"<environment>%' OR payload LIKE '%\"text\":\"<reminder>%'
              OR payload LIKE '%\"type\":\"compaction\"%')",
        )
        .map_err(told)?;
    let rows = found
        .query_map([], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
            ))
        })
        .map_err(told)?;
    let mut converted = Vec::new();
    let mut unindexed = BTreeSet::new();
    for row in rows {
        let (rowid, session, payload) = row.map_err(told)?;
        // A damaged entry stays as it is; reading it reports the damage.
        let Ok(Event::Message { message }) = serde_json::from_str::<Event>(&payload) else {
            continue;
        };
        let mut message = Message::clone(&message);
        let has_changed = upgrade(&mut message);
        if message.parts.iter().any(looked_injected) {
            unindexed.insert(session);
        }
        if has_changed {
            let event = Event::Message {
                message: message.into(),
            };
            let text = serde_json::to_string(&event).map_err(|error| damaged("a message", error))?;
            converted.push((rowid, text));
        }
    }
    for (rowid, payload) in converted {
        connection
            .execute(
                "UPDATE entry SET payload = ?2 WHERE rowid = ?1",
                params![rowid, payload],
            )
            .map_err(told)?;
    }
    // Words of the user that looked like injected text were not searchable.
    for session in unindexed {
        connection
            .execute("DELETE FROM said WHERE session = ?1", [&session])
            .and_then(|_| connection.execute("UPDATE session SET searched_seq = 0 WHERE id = ?1", [&session]))
            .map_err(told)?;
        super::entries::index(connection, &session.into())?;
    }
    Ok(())
}

fn looked_injected(part: &Part) -> bool {
    let starts = |text: &str| text.starts_with("<environment>") || text.starts_with("<reminder>");
    matches!(part, Part::Text(text) if starts(&text.text))
}
