//! Comparison of vectors in the database, where its server has the extension pgvector.
//!
//! The vectors that are compared are a second copy beside those of `memory_vector`, which every server can keep. Rows go
//! with their units.

use deadpool_postgres::{GenericClient, Object};
use windlass_core::log::UnitVector;

use crate::failure::Fault;
use crate::schema::LOCK;
use crate::sql::{number, row, rows, run, signed};

/// Rows that are copied at a time from before the extension was there.
const PAGE: i64 = 500;

/// Maximum number of such pages at once; the rest follows the next time.
const MAX_PAGES: usize = 200;

/// Schema of the extension, quoted.
#[derive(Debug, Clone)]
pub(crate) struct Near(String);

impl Near {
    /// Returns the extension if the server has it and the user may use it. Creates it and its table where that is
    /// possible; everything works without.
    pub(crate) async fn prepare(client: &Object) -> Result<Option<Self>, Fault> {
        let sql = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace \
            WHERE extname = 'vector'";
        let mut found = client.query_opt(sql, &[]).await?;
        if found.is_none() {
            let is_there = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
            if client.query_opt(is_there, &[]).await?.is_none() {
                return Ok(None);
            }
            // Only some users may. Another process may be faster.
            let _ = client
                .batch_execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA windlass")
                .await;
            found = client.query_opt(sql, &[]).await?;
        }
        let Some(schema) = found.map(|row| row.get::<_, String>(0)) else {
            return Ok(None);
        };
        // A dropped extension took the column along. Other processes wait at the lock, and find the table made.
        let table = format!(
            "SELECT pg_advisory_xact_lock({LOCK}); \
             CREATE TABLE IF NOT EXISTS memory_near (unit bigint PRIMARY KEY REFERENCES memory_unit (id) ON DELETE CASCADE, \
             model text NOT NULL, scope bigint NOT NULL); \
             ALTER TABLE memory_near ADD COLUMN IF NOT EXISTS embedding {schema}.vector; \
             DELETE FROM memory_near WHERE embedding IS NULL; \
             CREATE INDEX IF NOT EXISTS memory_near_scope ON memory_near (scope, model)"
        );
        // The schema may be another user's.
        let is_usable = is_usable(client).await
            || (client.batch_execute(&table).await.is_ok() && is_usable(client).await);
        Ok(is_usable.then_some(Self(schema)))
    }

    /// Returns the units of the scopes whose vectors are nearest to a vector, the nearest first.
    pub(super) async fn nearest(
        &self,
        client: &impl GenericClient,
        (model, scopes): (&str, &[String]),
        vector: &[f32],
        most: i64,
    ) -> Result<Vec<u64>, Fault> {
        let schema = &self.0;
        // Vectors of another length cannot be compared, even under the same name.
        let sql = format!(
            "SELECT memory_near.unit FROM memory_near JOIN memory_scope ON memory_scope.id = memory_near.scope \
             WHERE memory_scope.place = ANY($1) AND memory_near.model = $2 AND {schema}.vector_dims(embedding) = $5 \
             ORDER BY CASE WHEN {schema}.vector_dims(embedding) = $5 \
             THEN embedding OPERATOR({schema}.<=>) $3::text::{schema}.vector END LIMIT $4"
        );
        let dimensions = i32::try_from(vector.len()).unwrap_or_default();
        let found = rows(
            client,
            &sql,
            &[&scopes, &model, &written(vector), &most, &dimensions],
        )
        .await?;
        Ok(found.iter().map(|row| number(row, 0)).collect())
    }

    /// Keeps vectors of units that exist.
    pub(super) async fn keep(
        &self,
        client: &impl GenericClient,
        model: &str,
        vectors: &[UnitVector],
    ) -> Result<(), Fault> {
        let schema = &self.0;
        let sql = format!(
            "INSERT INTO memory_near (unit, model, scope, embedding) SELECT memory_unit.id, $2, memory_source.scope, \
             $3::text::{schema}.vector FROM memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
             WHERE memory_unit.id = $1 ON CONFLICT (unit) DO UPDATE SET model = excluded.model, embedding = excluded.embedding"
        );
        for vector in vectors {
            let written = written(&components(&vector.vector));
            run(client, &sql, &[&signed(vector.unit), &model, &written]).await?;
        }
        Ok(())
    }

    /// Copies vectors that were made before the extension was there, or by a process that does not know it.
    pub(super) async fn copy_missing(&self, client: &impl GenericClient, model: &str) -> Result<(), Fault> {
        let sql = "SELECT memory_vector.unit, memory_vector.vector FROM memory_vector WHERE model = $1 AND NOT EXISTS \
            (SELECT 1 FROM memory_near WHERE memory_near.unit = memory_vector.unit AND memory_near.model = $1) LIMIT $2";
        for _ in 0..MAX_PAGES {
            let found = rows(client, sql, &[&model, &PAGE]).await?;
            let vectors: Vec<UnitVector> = found
                .iter()
                .map(|row| UnitVector {
                    unit: number(row, 0),
                    sketch: Vec::new(),
                    vector: row.get(1),
                })
                .collect();
            self.keep(client, model, &vectors).await?;
            if found.len() < usize::try_from(PAGE).unwrap_or_default() {
                break;
            }
        }
        Ok(())
    }
}

/// Returns true if the table is there with its column.
async fn is_usable(client: &Object) -> bool {
    let sql = "SELECT unit, model, scope, embedding FROM memory_near LIMIT 0";
    client.batch_execute(sql).await.is_ok()
}

/// Returns true if the table of the extension is there, whoever made it.
pub(super) async fn is_there(client: &impl GenericClient) -> Result<bool, Fault> {
    let found = row(client, "SELECT to_regclass('memory_near') IS NOT NULL", &[]).await?;
    Ok(found.is_some_and(|row| row.get(0)))
}

/// Returns the components of a stored vector; none if its bytes are damaged.
fn components(stored: &[u8]) -> Vec<f32> {
    let Some((scale, bytes)) = stored.split_first_chunk::<4>() else {
        return Vec::new();
    };
    let scale = f32::from_le_bytes(*scale);
    bytes
        .iter()
        .map(|byte| f32::from(byte.cast_signed()) * scale)
        .collect()
}

/// Writes a vector as the extension reads it.
fn written(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("[{}]", numbers.join(","))
}
