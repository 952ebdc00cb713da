//! Vectors of units. Those of different models are never mixed.

use deadpool_postgres::GenericClient;
use windlass_core::log::{MemoryUnit, UnitVector};

use super::{COLUMNS, TABLES, unit};
use crate::failure::Fault;
use crate::sql::{clean, limited, number, rows, run, signed};

pub(super) async fn get(
    client: &impl GenericClient,
    model: &str,
    ids: &[i64],
) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let sql = "SELECT memory_vector.unit, vector FROM unnest($2::bigint[]) WITH ORDINALITY AS wanted(id, place) \
        JOIN memory_vector ON memory_vector.unit = wanted.id AND memory_vector.model = $1 ORDER BY wanted.place";
    let found = rows(client, sql, &[&model, &ids]).await?;
    Ok(found.iter().map(|row| (number(row, 0), row.get(1))).collect())
}

pub(super) async fn sketches(
    client: &impl GenericClient,
    (model, scope): (&str, &str),
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let sql = "SELECT memory_vector.unit, memory_vector.sketch FROM memory_vector \
        JOIN memory_source ON memory_source.id = memory_vector.unit >> 20 \
        JOIN memory_scope ON memory_scope.id = memory_source.scope \
        WHERE memory_vector.unit > $3 AND memory_vector.model = $1 AND memory_scope.place = $2 \
        ORDER BY memory_vector.unit LIMIT $4";
    let found = rows(client, sql, &[&model, &scope, &signed(after), &limited(limit)]).await?;
    Ok(found.iter().map(|row| (number(row, 0), row.get(1))).collect())
}

pub(super) async fn keep(
    client: &impl GenericClient,
    model: &str,
    vectors: &[UnitVector],
) -> Result<(), Fault> {
    for UnitVector { unit, sketch, vector } in vectors {
        let sql = "INSERT INTO memory_vector (unit, model, sketch, vector) SELECT $1, $2, $3, $4 \
            WHERE EXISTS (SELECT 1 FROM memory_unit WHERE id = $1) \
            ON CONFLICT (unit) DO UPDATE SET model = excluded.model, sketch = excluded.sketch, vector = excluded.vector";
        run(client, sql, &[&signed(*unit), &model, sketch, vector]).await?;
    }
    Ok(())
}

pub(super) async fn missing(
    client: &impl GenericClient,
    model: &str,
    scopes: &[String],
    limit: usize,
) -> Result<Vec<MemoryUnit>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE memory_scope.place = $1 AND NOT EXISTS (SELECT 1 FROM memory_vector \
         WHERE memory_vector.unit = memory_unit.id AND memory_vector.model = $2) ORDER BY memory_unit.id DESC LIMIT $3"
    );
    let mut found = Vec::new();
    for scope in scopes {
        let left = limit.saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let more = rows(client, &sql, &[&clean(scope), &model, &limited(left)]).await?;
        found.extend(more.iter().map(unit));
    }
    Ok(found)
}
