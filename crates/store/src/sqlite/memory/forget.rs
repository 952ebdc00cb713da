//! Removes units and every copy of their text.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::id::SessionId;
use windlass_core::log::{LogError, UserName};

use crate::sqlite::failure::told;
use crate::sqlite::lease::signed;

/// Stands where a forgotten text was.
const FORGOTTEN: &str = "[forgotten]";

/// Texts of fewer bytes are removed from memory only: the record contains them for other reasons as well.
const MIN_ERASED: usize = 12;

/// Units with their scopes.
const SCOPED: &str = "memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
    JOIN memory_scope ON memory_scope.id = memory_source.scope";

/// Removes units, and their texts from the record of all sessions of their user. Returns the number of units.
pub(super) fn forget(connection: &Connection, ids: &[u64]) -> Result<u64, LogError> {
    let mut gone = 0;
    for id in ids {
        let found: Option<(String, String)> = connection
            .query_row(
                &format!(
                    "SELECT memory_unit.text, memory_scope.place FROM {SCOPED} WHERE memory_unit.id = ?1"
                ),
                [signed(*id)],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(told)?;
        let Some((text, scope)) = found else { continue };
        let (user, _) = UserName::split(&scope);
        remove(connection, signed(*id))?;
        if text.len() >= MIN_ERASED {
            // The same words may have been kept more than once.
            let again: Vec<(i64, String)> = connection
                .prepare_cached(&format!(
                    "SELECT memory_unit.id, memory_scope.place FROM {SCOPED} WHERE instr(memory_unit.text, ?1) > 0"
                ))
                .and_then(|mut select| {
                    let rows = select.query_map([&text], |row| Ok((row.get(0)?, row.get(1)?)))?;
                    rows.collect()
                })
                .map_err(told)?;
            for (id, _) in again.iter().filter(|(_, scope)| UserName::split(scope).0 == user) {
                remove(connection, *id)?;
            }
            erase(connection, &text, &user)?;
        }
        gone += 1;
    }
    Ok(gone)
}

/// Removes what was said in a session that is deleted. Notes and lessons that came from it are the user's own, and
/// stay.
pub(in crate::sqlite) fn of_session(connection: &Connection, session: &SessionId) -> Result<(), LogError> {
    let ids: Vec<i64> = connection
        .prepare_cached(
            "SELECT memory_unit.id FROM memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
             WHERE memory_source.session = ?1 AND memory_unit.kind = 'said'",
        )
        .and_then(|mut select| select.query_map([session.as_str()], |row| row.get(0))?.collect())
        .map_err(told)?;
    for id in ids {
        remove(connection, id)?;
    }
    connection
        .execute("DELETE FROM memory_miss WHERE session = ?1", [session.as_str()])
        .map(drop)
        .map_err(told)
}

/// Removes a unit with its words and its vector.
fn remove(connection: &Connection, id: i64) -> Result<(), LogError> {
    let (words, length, scope): (Vec<u8>, i64, i64) = connection
        .query_row(
            "SELECT memory_unit.words, memory_unit.length, memory_source.scope FROM memory_unit \
             JOIN memory_source ON memory_source.id = memory_unit.source WHERE memory_unit.id = ?1",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(told)?;
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map(drop)
            .map_err(told)
    };
    for word in words.chunks_exact(8) {
        let word = i64::from_le_bytes(word.try_into().unwrap_or_default());
        run(
            "DELETE FROM memory_posting WHERE word = ?1 AND unit = ?2",
            params![word, id],
        )?;
        run(
            "UPDATE memory_word SET units = units - 1 WHERE id = ?1",
            params![word],
        )?;
        run(
            "DELETE FROM memory_word WHERE id = ?1 AND units <= 0",
            params![word],
        )?;
    }
    run("DELETE FROM memory_vector WHERE unit = ?1", params![id])?;
    run("DELETE FROM memory_unit WHERE id = ?1", params![id])?;
    run(
        "UPDATE memory_scope SET units = max(units - 1, 0), length = max(length - ?2, 0) WHERE id = ?1",
        params![scope, length],
    )
}

/// Removes a text from the record of a user's sessions: messages, drafts, titles, the index, recorded traffic.
fn erase(connection: &Connection, text: &str, user: &UserName) -> Result<(), LogError> {
    // The last value is the user.
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        let own = "session NOT IN (SELECT id FROM session WHERE user_name <> ?3)";
        let sql = sql.replace("{own}", own);
        connection.execute(&sql, values).map(drop).map_err(told)
    };
    let user = user.as_str();
    // Messages are stored as JSON, and the arguments of a call as JSON in JSON.
    let once = escaped(text);
    let twice = escaped(&once);
    let mut forms = vec![text.to_owned()];
    for form in [once, twice] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    for form in &forms {
        let values = params![form, FORGOTTEN, user];
        run(
            "UPDATE entry SET payload = replace(payload, ?1, ?2) WHERE instr(payload, ?1) > 0 AND {own}",
            values,
        )?;
        run(
            "UPDATE draft SET payload = replace(payload, ?1, ?2) WHERE instr(payload, ?1) > 0 AND {own}",
            values,
        )?;
        run(
            "UPDATE said SET text = replace(text, ?1, ?2) WHERE instr(text, ?1) > 0 AND {own}",
            values,
        )?;
        // A recorded request is compared by its digest, so it cannot be changed.
        run(
            "DELETE FROM exchange WHERE (instr(request, CAST(?1 AS BLOB)) > 0 OR instr(answer, CAST(?1 AS BLOB)) > ?2) AND {own}",
            params![form, 0, user],
        )?;
        run(
            "UPDATE agent SET task = replace(task, ?1, ?2) WHERE instr(task, ?1) > 0 AND {own}",
            values,
        )?;
        run(
            "UPDATE agent SET result = replace(result, ?1, ?2) WHERE instr(result, ?1) > 0 AND {own}",
            values,
        )?;
    }
    // A title is the start of the first message.
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    run(
        "UPDATE session SET title = ?2 WHERE length(title) >= 8 AND instr(?1, rtrim(title, '….')) > 0 \
         AND user_name = ?3",
        params![one_line, FORGOTTEN, user],
    )?;
    run(
        "DELETE FROM memory_miss WHERE (instr(query, ?1) > 0 OR instr(?1, query) > ?2) AND {own}",
        params![text, 0, user],
    )
}

fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}
