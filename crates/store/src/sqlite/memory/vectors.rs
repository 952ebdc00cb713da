//! Vectors of units. Those of different models are never mixed.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::log::{LogError, MemoryUnit, UnitVector};

use super::{COLUMNS, TABLES, limited, unit};
use crate::sqlite::failure::told;
use crate::sqlite::lease::signed;

pub(super) fn get(
    connection: &Connection,
    model: &str,
    ids: &[u64],
) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
    let mut select = connection
        .prepare_cached("SELECT vector FROM memory_vector WHERE unit = ?1 AND model = ?2")
        .map_err(told)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let vector = select
            .query_row(params![signed(*id), model], |row| row.get(0))
            .optional()
            .map_err(told)?;
        found.extend(vector.map(|vector| (*id, vector)));
    }
    Ok(found)
}

pub(super) fn sketches(
    connection: &Connection,
    (model, scope): (&str, &str),
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT memory_vector.unit, memory_vector.sketch FROM memory_vector \
             JOIN memory_source ON memory_source.id = memory_vector.unit >> 20 \
             JOIN memory_scope ON memory_scope.id = memory_source.scope \
             WHERE memory_vector.unit > ?3 AND memory_vector.model = ?1 AND memory_scope.place = ?2 \
             ORDER BY memory_vector.unit LIMIT ?4",
        )
        .map_err(told)?;
    let rows = select
        .query_map(params![model, scope, signed(after), limited(limit)], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

pub(super) fn keep(connection: &Connection, model: &str, vectors: &[UnitVector]) -> Result<(), LogError> {
    for UnitVector { unit, sketch, vector } in vectors {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO memory_vector (unit, model, sketch, vector) SELECT ?1, ?2, ?3, ?4 \
                 WHERE EXISTS (SELECT 1 FROM memory_unit WHERE id = ?1)",
            )
            .and_then(|mut insert| insert.execute(params![signed(*unit), model, sketch, vector]))
            .map_err(told)?;
    }
    Ok(())
}

pub(super) fn missing(
    connection: &Connection,
    model: &str,
    scopes: &[String],
    limit: usize,
) -> Result<Vec<MemoryUnit>, LogError> {
    let mut select = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE memory_scope.place = ?1 AND NOT EXISTS (SELECT 1 FROM memory_vector \
             WHERE memory_vector.unit = memory_unit.id AND memory_vector.model = ?2) ORDER BY memory_unit.id DESC LIMIT ?3"
        ))
        .map_err(told)?;
    let mut found = Vec::new();
    for scope in scopes {
        let left = limit.saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let rows = select
            .query_map(params![scope, model, limited(left)], unit)
            .map_err(told)?;
        for row in rows {
            found.push(row.map_err(told)?);
        }
    }
    Ok(found)
}
