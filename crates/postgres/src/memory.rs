//! Memory across sessions: units, the words in them, their vectors, and searches that found nothing.
//!
//! The number of a unit is the number of its source and its place in it, so its neighbours are one below and one
//! above. Words belong to a scope: a search in one scope cannot meet the words of another.

mod forget;
mod near;
mod vectors;

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use windlass_core::id::SessionId;
use windlass_core::log::{
    LogError, MemoryChange, MemoryIndex, MemoryKind, MemoryLedger, MemoryMiss, MemoryPostings, MemoryQuery,
    MemorySource, MemoryStats, MemoryUnit, MemoryUnits, NewUnit, UnitVector, Unread, UserName, WordPostings,
};

pub(super) use self::forget::of_session;
pub(super) use self::near::Near;
use super::PostgresStore;
use super::failure::Fault;
use super::sql::{clean, limited, number, only, row, rows, run, session, signed, small, time};

/// Bits of a unit's number that are its place in the source.
const PLACE_BITS: u32 = 20;

/// Maximum number of searches that are recorded.
const MAX_MISSES: i64 = 1_000;

const COLUMNS: &str = "memory_unit.id, memory_scope.place, memory_unit.kind, memory_unit.speaker, \
    memory_source.session, memory_unit.seq, memory_unit.text, memory_unit.length, memory_unit.time, \
    memory_unit.pinned, memory_unit.confirmed";

const TABLES: &str = "memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
    JOIN memory_scope ON memory_scope.id = memory_source.scope";

#[async_trait]
impl MemoryUnits for PostgresStore {
    async fn keep_units(
        &self,
        source: &MemorySource,
        units: Vec<NewUnit>,
        read_to: u64,
    ) -> Result<Vec<u64>, LogError> {
        let source = source.clone();
        self.write(async move |transaction, again| keep(transaction, &source, &units, (read_to, again)).await)
            .await
    }

    async fn unread(&self, scope: &str) -> Result<Vec<Unread>, LogError> {
        let scope = clean(scope);
        self.read(async move |client| unread(client, &scope).await).await
    }

    async fn units(&self, ids: &[u64]) -> Result<Vec<MemoryUnit>, LogError> {
        let ids: Vec<i64> = ids.iter().map(|id| signed(*id)).collect();
        self.read(async move |client| {
            let sql = format!(
                "SELECT {COLUMNS} FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted(id, place) \
                 JOIN memory_unit ON memory_unit.id = wanted.id JOIN memory_source ON memory_source.id = memory_unit.source \
                 JOIN memory_scope ON memory_scope.id = memory_source.scope ORDER BY wanted.place"
            );
            let found = rows(client, &sql, &[&ids]).await?;
            Ok(found.iter().map(unit).collect())
        })
        .await
    }

    async fn list_units(&self, query: &MemoryQuery) -> Result<Vec<MemoryUnit>, LogError> {
        let query = query.clone();
        self.read(async move |client| list(client, &query).await).await
    }

    async fn change_unit(&self, id: u64, change: MemoryChange) -> Result<bool, LogError> {
        self.write(async move |transaction, _| {
            let sql = "UPDATE memory_unit SET pinned = coalesce($2, pinned), confirmed = coalesce($3, confirmed) WHERE id = $1";
            let changed = run(transaction, sql, &[&signed(id), &change.pinned, &change.confirmed]).await?;
            Ok(changed > 0)
        })
        .await
    }

    async fn forget_units(&self, ids: &[u64]) -> Result<u64, LogError> {
        let ids = ids.to_vec();
        let gone = self
            .write(async move |transaction, _| forget::forget(transaction, &ids).await)
            .await?;
        if gone > 0 {
            // Outside a transaction: the old versions of the rows are removed from the files.
            self.read(async move |client| forget::scrub(client).await).await?;
        }
        Ok(gone)
    }
}

#[async_trait]
impl MemoryIndex for PostgresStore {
    async fn postings(&self, scope: &str, words: &[String], most: usize) -> Result<MemoryPostings, LogError> {
        let scope = clean(scope);
        let words: Vec<String> = words.iter().map(|word| clean(word)).collect();
        self.read(async move |client| postings(client, &scope, &words, most).await)
            .await
    }

    async fn vectors(&self, model: &str, ids: &[u64]) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
        let (model, ids) = (
            clean(model),
            ids.iter().map(|id| signed(*id)).collect::<Vec<i64>>(),
        );
        self.read(async move |client| vectors::get(client, &model, &ids).await)
            .await
    }

    async fn sketches(
        &self,
        model: &str,
        scope: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
        let (model, scope) = (clean(model), clean(scope));
        self.read(async move |client| vectors::sketches(client, (&model, &scope), after, limit).await)
            .await
    }

    async fn nearest(
        &self,
        model: &str,
        scopes: &[String],
        vector: &[f32],
        most: usize,
    ) -> Result<Option<Vec<u64>>, LogError> {
        let Some(near) = self.near().await? else {
            return Ok(None);
        };
        if most == 0 {
            return Ok(Some(Vec::new()));
        }
        let scopes: Vec<String> = scopes.iter().map(|scope| clean(scope)).collect();
        let (model, vector) = (clean(model), vector.to_vec());
        self.read(async move |client| {
            let found = near
                .nearest(client, (&model, &scopes), &vector, limited(most))
                .await;
            // The extension may have been dropped in the meantime.
            Ok(found.ok())
        })
        .await
    }

    async fn keep_vectors(&self, model: &str, vectors: Vec<UnitVector>) -> Result<(), LogError> {
        let (model, near) = (clean(model), self.near().await?);
        self.write(async move |transaction, _| {
            vectors::keep(transaction, &model, &vectors).await?;
            match &near {
                Some(near) => near.keep(transaction, &model, &vectors).await,
                None => Ok(()),
            }
        })
        .await
    }

    async fn without_vector(
        &self,
        model: &str,
        scopes: &[String],
        limit: usize,
    ) -> Result<Vec<MemoryUnit>, LogError> {
        let (model, scopes, near) = (clean(model), scopes.to_vec(), self.near().await?);
        self.read(async move |client| {
            if let Some(near) = &near {
                near.copy_missing(client, &model).await?;
            }
            vectors::missing(client, &model, &scopes, limit).await
        })
        .await
    }
}

impl PostgresStore {
    /// Returns the extension that compares vectors, if the server has it.
    async fn near(&self) -> Result<Option<Near>, LogError> {
        self.thread
            .run(async move |context| Ok(context.near.clone()))
            .await
    }
}

#[async_trait]
impl MemoryLedger for PostgresStore {
    async fn keep_miss(&self, miss: MemoryMiss) -> Result<(), LogError> {
        self.write(async move |transaction, _| {
            let sql =
                "INSERT INTO memory_miss (query, strategy, error, session, time) VALUES ($1, $2, $3, $4, $5)";
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
                &clean(&miss.query),
                &clean(&miss.strategy),
                &clean(&miss.error),
                &clean(&miss.session_id),
                &signed(miss.ts),
            ];
            run(transaction, sql, &values).await?;
            let sql = "DELETE FROM memory_miss WHERE id <= (SELECT max(id) FROM memory_miss) - $1";
            run(transaction, sql, &[&MAX_MISSES]).await.map(drop)
        })
        .await
    }

    async fn misses(&self, limit: usize) -> Result<Vec<MemoryMiss>, LogError> {
        self.read(async move |client| {
            let sql =
                "SELECT query, strategy, error, session, time FROM memory_miss ORDER BY id DESC LIMIT $1";
            let found = rows(client, sql, &[&limited(limit)]).await?;
            let miss = |row: &Row| MemoryMiss {
                outcome_type: "memory_miss".to_owned(),
                query: row.get(0),
                strategy: row.get(1),
                error: row.get(2),
                session_id: row.get(3),
                ts: number(row, 4),
            };
            Ok(found.iter().map(miss).collect())
        })
        .await
    }

    async fn memory_stats(&self) -> Result<MemoryStats, LogError> {
        self.read(async move |client| stats(client).await).await
    }
}

async fn stats(client: &impl GenericClient) -> Result<MemoryStats, Fault> {
    let sql = format!(
        "SELECT memory_scope.place, memory_unit.kind, count(*) FROM {TABLES} GROUP BY 1, 2 ORDER BY 1, 2"
    );
    let units = rows(client, &sql, &[]).await?;
    let sql = "SELECT model, count(*) FROM memory_vector GROUP BY 1 ORDER BY 1";
    let vectors = rows(client, sql, &[]).await?;
    let sql = "SELECT (SELECT coalesce(sum(octet_length(text)), 0)::bigint FROM memory_unit), (SELECT count(*) FROM memory_miss)";
    let sums = only(client, sql, &[]).await?;
    Ok(MemoryStats {
        units: units
            .iter()
            .map(|row| (row.get(0), row.get(1), number(row, 2)))
            .collect(),
        vectors: vectors.iter().map(|row| (row.get(0), number(row, 1))).collect(),
        text_bytes: number(&sums, 0),
        misses: number(&sums, 1),
    })
}

/// Keeps units of a source, and their words.
async fn keep(
    client: &Transaction<'_>,
    source: &MemorySource,
    units: &[NewUnit],
    (read_to, again): (u64, bool),
) -> Result<Vec<u64>, Fault> {
    // The update locks the row, so that two processes number their units one after the other.
    let sql = "INSERT INTO memory_scope (place) VALUES ($1) ON CONFLICT (place) DO UPDATE SET place = excluded.place RETURNING id";
    let scope: i64 = only(client, sql, &[&clean(&source.scope)]).await?.get(0);
    let session = source.session.as_ref().map_or("", SessionId::as_str);
    let sql = "INSERT INTO memory_source (scope, session) VALUES ($1, $2) \
        ON CONFLICT (scope, session) DO UPDATE SET session = excluded.session RETURNING id, next, read_to";
    let known = only(client, sql, &[&scope, &session]).await?;
    let (id, mut next, already): (i64, i64, i64) = (known.get(0), known.get(1), known.get(2));
    // Another process read the same entries.
    if source.session.is_some() && read_to > 0 && signed(read_to) <= already {
        return Ok(Vec::new());
    }
    if again && let Some(kept) = kept_before(client, id, units).await? {
        return Ok(kept);
    }
    let mut numbers = Vec::with_capacity(units.len());
    for unit in units {
        if next >> PLACE_BITS > 0 {
            break;
        }
        let number = (id << PLACE_BITS) | next;
        insert(client, scope, (id, number), unit).await?;
        numbers.push(number.unsigned_abs());
        // Notes have nothing to do with the ones before them.
        next += if source.session.is_some() { 1 } else { 2 };
    }
    let sql = "UPDATE memory_source SET next = $2, read_to = greatest(read_to, $3) WHERE id = $1";
    run(client, sql, &[&id, &next, &signed(read_to)]).await?;
    Ok(numbers)
}

/// Returns the numbers that an earlier attempt gave to the units, if it was committed.
async fn kept_before(
    client: &Transaction<'_>,
    source: i64,
    units: &[NewUnit],
) -> Result<Option<Vec<u64>>, Fault> {
    let mut numbers = Vec::with_capacity(units.len());
    for unit in units {
        let sql = "SELECT id FROM memory_unit WHERE source = $1 AND time = $2 AND text = $3 ORDER BY id DESC LIMIT 1";
        match row(client, sql, &[&source, &signed(unit.time.0), &clean(&unit.text)]).await? {
            Some(found) => numbers.push(number(&found, 0)),
            None => return Ok(None),
        }
    }
    Ok(Some(numbers))
}

async fn insert(
    client: &Transaction<'_>,
    scope: i64,
    (source, number): (i64, i64),
    unit: &NewUnit,
) -> Result<(), Fault> {
    let length: i64 = unit.words.iter().map(|(_, count)| i64::from(*count)).sum();
    // In one order everywhere, so that two processes do not wait for each other.
    let mut counted: Vec<(String, i64)> = unit
        .words
        .iter()
        .map(|(word, count)| (clean(word), i64::from(*count)))
        .collect();
    counted.sort();
    counted.dedup_by(|left, right| left.0 == right.0);
    let (words, counts): (Vec<String>, Vec<i64>) = counted.into_iter().unzip();
    let sql = "WITH new AS (SELECT * FROM unnest($2::text[], $3::bigint[]) AS new(word, count)), \
        kept AS (INSERT INTO memory_word (scope, word, units) SELECT $1, word, 1 FROM new \
        ON CONFLICT (scope, word) DO UPDATE SET units = memory_word.units + 1 RETURNING id, word) \
        INSERT INTO memory_posting (word, unit, count, length) SELECT kept.id, $4, new.count, $5 FROM kept \
        JOIN new ON new.word = kept.word";
    run(client, sql, &[&scope, &words, &counts, &number, &length]).await?;
    let sql = "INSERT INTO memory_unit (id, source, kind, speaker, seq, text, length, time, pinned, confirmed) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    run(
        client,
        sql,
        &[
            &number,
            &source,
            &unit.kind.name(),
            &clean(&unit.speaker),
            &signed(unit.seq),
            &clean(&unit.text),
            &length,
            &signed(unit.time.0),
            &unit.pinned,
            &unit.confirmed,
        ],
    )
    .await?;
    let sql = "UPDATE memory_scope SET units = units + 1, length = length + $2 WHERE id = $1";
    run(client, sql, &[&scope, &length]).await.map(drop)
}

async fn unread(client: &impl GenericClient, scope: &str) -> Result<Vec<Unread>, Fault> {
    let sql = "SELECT session.id, coalesce(source.read_to, 0), session.last_seq FROM session \
        LEFT JOIN (SELECT memory_source.session, max(memory_source.read_to) AS read_to FROM memory_source \
        JOIN memory_scope ON memory_scope.id = memory_source.scope WHERE memory_scope.place = $3 GROUP BY 1) \
        AS source ON source.session = session.id \
        WHERE session.place = $1 AND session.user_name = $2 AND session.parent IS NULL AND session.last_seq > coalesce(source.read_to, 0) \
        ORDER BY session.created_at, session.id LIMIT 1000";
    let (user, place) = UserName::split(scope);
    let found = rows(client, sql, &[&place, &user.as_str(), &scope]).await?;
    let unread = |row: &Row| Unread {
        session: session(row, 0),
        after: number(row, 1),
        last: number(row, 2),
    };
    Ok(found.iter().map(unread).collect())
}

async fn list(client: &impl GenericClient, query: &MemoryQuery) -> Result<Vec<MemoryUnit>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE (cardinality($1::text[]) = 0 OR memory_scope.place = ANY($1)) \
         AND (cardinality($2::text[]) = 0 OR memory_unit.kind = ANY($2)) AND (NOT $3 OR memory_unit.pinned) \
         ORDER BY memory_unit.time DESC, memory_unit.id DESC LIMIT $4"
    );
    let scopes: Vec<String> = query.scopes.iter().map(|scope| clean(scope)).collect();
    let kinds: Vec<&str> = query.kinds.iter().map(|kind| kind.name()).collect();
    let found = rows(
        client,
        &sql,
        &[&scopes, &kinds, &query.pinned, &limited(query.limit)],
    )
    .await?;
    Ok(found.iter().map(unit).collect())
}

fn unit(row: &Row) -> MemoryUnit {
    let session: String = row.get(4);
    MemoryUnit {
        id: number(row, 0),
        scope: row.get(1),
        kind: MemoryKind::named(row.get(2)).unwrap_or(MemoryKind::Said),
        speaker: row.get(3),
        session: (!session.is_empty()).then(|| SessionId::from(session)),
        seq: number(row, 5),
        text: row.get(6),
        length: small(row, 7),
        time: time(row, 8),
        pinned: row.get(9),
        confirmed: row.get(10),
    }
}

async fn postings(
    client: &impl GenericClient,
    scope: &str,
    words: &[String],
    most: usize,
) -> Result<MemoryPostings, Fault> {
    let sql = "SELECT id, units, length FROM memory_scope WHERE place = $1";
    let Some(found) = row(client, sql, &[&scope]).await? else {
        return Ok(MemoryPostings::default());
    };
    let sql = "SELECT memory_word.id, memory_word.units, memory_word.word FROM unnest($2::text[]) WITH ORDINALITY \
        AS asked(word, place) JOIN memory_word ON memory_word.scope = $1 AND memory_word.word = asked.word ORDER BY asked.place";
    let mut known: Vec<(i64, WordPostings)> = rows(client, sql, &[&found.get::<_, i64>(0), &words])
        .await?
        .iter()
        .map(|row| {
            let word = WordPostings {
                word: row.get(2),
                units: number(row, 1),
                places: Vec::new(),
            };
            (row.get(0), word)
        })
        .collect();
    known.sort_by_key(|(_, word)| word.units);
    let mut left = most;
    for (place, (id, word)) in known.iter_mut().enumerate() {
        let count = usize::try_from(word.units).unwrap_or(usize::MAX);
        // The rarest word is always read.
        if count > left && place > 0 {
            break;
        }
        left = left.saturating_sub(count);
        let sql = "SELECT unit, count, length FROM memory_posting WHERE word = $1 ORDER BY unit LIMIT $2";
        let found = rows(client, sql, &[&*id, &signed(most as u64)]).await?;
        let places = found
            .iter()
            .map(|row| (number(row, 0), small(row, 1), small(row, 2)));
        word.places = places.collect();
    }
    Ok(MemoryPostings {
        units: number(&found, 1),
        length: number(&found, 2),
        words: known.into_iter().map(|(_, word)| word).collect(),
    })
}
