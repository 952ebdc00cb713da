//! Memory across sessions: units, the words in them, their vectors, and searches that found nothing.
//!
//! The number of a unit is the number of its source and its place in it, so its neighbours are one below and one
//! above. Words belong to a scope: a search in one scope cannot meet the words of another.

mod forget;
mod vectors;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    Durability, LogError, MemoryChange, MemoryIndex, MemoryKind, MemoryLedger, MemoryMiss, MemoryPostings,
    MemoryQuery, MemorySource, MemoryStats, MemoryUnit, MemoryUnits, NewUnit, UnitVector, Unread, UserName,
    WordPostings,
};

use super::SqliteStore;
use super::connection::at_once;
use super::failure::told;
use super::lease::signed;

pub(super) use self::forget::of_session;

/// Bits of a unit's number that are its place in the source.
const PLACE_BITS: u32 = 20;

/// Maximum number of searches that are recorded.
const MAX_MISSES: i64 = 1_000;

/// Number of units below which a search takes less time than waking the thread that would do it.
const FEW: i64 = 1_000;

const COLUMNS: &str = "memory_unit.id, memory_scope.place, memory_unit.kind, memory_unit.speaker, \
    memory_source.session, memory_unit.seq, memory_unit.text, memory_unit.length, memory_unit.time, \
    memory_unit.pinned, memory_unit.confirmed";

const TABLES: &str = "memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
    JOIN memory_scope ON memory_scope.id = memory_source.scope";

#[async_trait]
impl MemoryUnits for SqliteStore {
    async fn keep_units(
        &self,
        source: &MemorySource,
        units: Vec<NewUnit>,
        read_to: u64,
    ) -> Result<Vec<u64>, LogError> {
        let source = source.clone();
        let work = move |connection: &Connection| keep(connection, &source, &units, read_to);
        self.writer.run(Durability::Process, work).await
    }

    async fn unread(&self, scope: &str) -> Result<Vec<Unread>, LogError> {
        let scope = scope.to_owned();
        self.readers
            .run(move |connection| unread(connection, &scope))
            .await
    }

    async fn units(&self, ids: &[u64]) -> Result<Vec<MemoryUnit>, LogError> {
        let ids = ids.to_vec();
        self.read_memory(move |connection| units(connection, &ids)).await
    }

    async fn list_units(&self, query: &MemoryQuery) -> Result<Vec<MemoryUnit>, LogError> {
        let query = query.clone();
        self.read_memory(move |connection| list(connection, &query)).await
    }

    async fn change_unit(&self, id: u64, change: MemoryChange) -> Result<bool, LogError> {
        let work = move |connection: &Connection| {
            connection
                .execute(
                    "UPDATE memory_unit SET pinned = coalesce(?2, pinned), confirmed = coalesce(?3, confirmed) WHERE id = ?1",
                    params![signed(id), change.pinned, change.confirmed],
                )
                .map(|changed| changed > 0)
                .map_err(told)
        };
        self.writer.run(Durability::Process, work).await
    }

    async fn forget_units(&self, ids: &[u64]) -> Result<u64, LogError> {
        let ids = ids.to_vec();
        let work = move |connection: &Connection| forget::forget(connection, &ids);
        let gone = self.writer.run(Durability::Disk, work).await?;
        if gone > 0 {
            self.writer.scrub().await?;
        }
        Ok(gone)
    }
}

#[async_trait]
impl MemoryIndex for SqliteStore {
    async fn postings(&self, scope: &str, words: &[String], most: usize) -> Result<MemoryPostings, LogError> {
        let (scope, words) = (scope.to_owned(), words.to_vec());
        self.read_memory(move |connection| postings(connection, &scope, &words, most))
            .await
    }

    async fn vectors(&self, model: &str, ids: &[u64]) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
        let (model, ids) = (model.to_owned(), ids.to_vec());
        self.readers
            .run(move |connection| vectors::get(connection, &model, &ids))
            .await
    }

    async fn sketches(
        &self,
        model: &str,
        scope: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, LogError> {
        let (model, scope) = (model.to_owned(), scope.to_owned());
        self.readers
            .run(move |connection| vectors::sketches(connection, (&model, &scope), after, limit))
            .await
    }

    async fn keep_vectors(&self, model: &str, vectors: Vec<UnitVector>) -> Result<(), LogError> {
        let model = model.to_owned();
        let work = move |connection: &Connection| vectors::keep(connection, &model, &vectors);
        self.writer.run(Durability::Process, work).await
    }

    async fn without_vector(
        &self,
        model: &str,
        scopes: &[String],
        limit: usize,
    ) -> Result<Vec<MemoryUnit>, LogError> {
        let (model, scopes) = (model.to_owned(), scopes.to_vec());
        self.readers
            .run(move |connection| vectors::missing(connection, &model, &scopes, limit))
            .await
    }
}

#[async_trait]
impl MemoryLedger for SqliteStore {
    async fn keep_miss(&self, miss: MemoryMiss) -> Result<(), LogError> {
        let work = move |connection: &Connection| {
            let MemoryMiss {
                query,
                strategy,
                error,
                session_id,
                ts,
                ..
            } = &miss;
            connection
                .execute(
                    "INSERT INTO memory_miss (query, strategy, error, session, time) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![query, strategy, error, session_id, signed(*ts)],
                )
                .and_then(|_| {
                    connection.execute(
                        "DELETE FROM memory_miss WHERE id <= (SELECT max(id) FROM memory_miss) - ?1",
                        [MAX_MISSES],
                    )
                })
                .map(drop)
                .map_err(told)
        };
        self.writer.run_later(work).await
    }

    async fn misses(&self, limit: usize) -> Result<Vec<MemoryMiss>, LogError> {
        self.readers
            .run(move |connection| misses(connection, limit))
            .await
    }

    async fn memory_stats(&self) -> Result<MemoryStats, LogError> {
        self.readers.run(stats).await
    }
}

impl SqliteStore {
    /// Runs a query whose cost grows with the number of units, and which finds nothing without any.
    async fn read_memory<T: Default + Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let query = move |connection: &Connection| at_once(connection, query);
        match self.writer.try_read(count) {
            Ok(Ok(0)) => Ok(T::default()),
            Ok(Ok(..FEW)) => self.read_little(query).await,
            _ => self.readers.run(query).await,
        }
    }
}

/// Returns the number of units, at most [`FEW`].
fn count(connection: &Connection) -> Result<i64, LogError> {
    connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM memory_unit LIMIT ?1)")
        .and_then(|mut count| count.query_row([FEW], |row| row.get(0)))
        .map_err(told)
}

fn misses(connection: &Connection, limit: usize) -> Result<Vec<MemoryMiss>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT query, strategy, error, session, time FROM memory_miss ORDER BY id DESC LIMIT ?1",
        )
        .map_err(told)?;
    let rows = select
        .query_map([limited(limit)], |row| {
            Ok(MemoryMiss {
                outcome_type: "memory_miss".to_owned(),
                query: row.get(0)?,
                strategy: row.get(1)?,
                error: row.get(2)?,
                session_id: row.get(3)?,
                ts: row.get::<_, i64>(4)?.unsigned_abs(),
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

fn stats(connection: &Connection) -> Result<MemoryStats, LogError> {
    let number = |sql: &str| -> Result<u64, LogError> {
        let number: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(told)?;
        Ok(number.unsigned_abs())
    };
    let mut select = connection
        .prepare(&format!(
            "SELECT memory_scope.place, memory_unit.kind, count(*) FROM {TABLES} GROUP BY 1, 2 ORDER BY 1, 2"
        ))
        .map_err(told)?;
    let rows = select
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.unsigned_abs()))
        })
        .map_err(told)?;
    let units = rows.collect::<Result<_, _>>().map_err(told)?;
    let mut select = connection
        .prepare("SELECT model, count(*) FROM memory_vector GROUP BY 1 ORDER BY 1")
        .map_err(told)?;
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))
        .map_err(told)?;
    Ok(MemoryStats {
        units,
        vectors: rows.collect::<Result<_, _>>().map_err(told)?,
        text_bytes: number("SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM memory_unit")?,
        misses: number("SELECT count(*) FROM memory_miss")?,
    })
}

/// Keeps units of a source, and their words.
fn keep(
    connection: &Connection,
    source: &MemorySource,
    units: &[NewUnit],
    read_to: u64,
) -> Result<Vec<u64>, LogError> {
    let scope = row_id(
        connection,
        (
            "INSERT OR IGNORE INTO memory_scope (place) VALUES (?1)",
            "SELECT id FROM memory_scope WHERE place = ?1",
        ),
        params![source.scope],
    )?;
    let session = source.session.as_ref().map_or("", SessionId::as_str);
    let id = row_id(
        connection,
        (
            "INSERT OR IGNORE INTO memory_source (scope, session) VALUES (?1, ?2)",
            "SELECT id FROM memory_source WHERE scope = ?1 AND session = ?2",
        ),
        params![scope, session],
    )?;
    let (mut next, already): (i64, i64) = connection
        .query_row(
            "SELECT next, read_to FROM memory_source WHERE id = ?1",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(told)?;
    // Another process read the same entries.
    if source.session.is_some() && read_to > 0 && signed(read_to) <= already {
        return Ok(Vec::new());
    }
    let mut numbers = Vec::with_capacity(units.len());
    for unit in units {
        if next >> PLACE_BITS > 0 {
            break;
        }
        let number = (id << PLACE_BITS) | next;
        insert(connection, scope, (id, number), unit)?;
        numbers.push(number.unsigned_abs());
        // Notes have nothing to do with the ones before them.
        next += if source.session.is_some() { 1 } else { 2 };
    }
    connection
        .execute(
            "UPDATE memory_source SET next = ?2, read_to = max(read_to, ?3) WHERE id = ?1",
            params![id, next, signed(read_to)],
        )
        .map_err(told)?;
    Ok(numbers)
}

fn row_id(
    connection: &Connection,
    (insert, select): (&str, &str),
    key: &[&dyn rusqlite::ToSql],
) -> Result<i64, LogError> {
    let found = |connection: &Connection| {
        connection
            .prepare_cached(select)
            .and_then(|mut select| select.query_row(key, |row| row.get(0)).optional())
    };
    if let Some(id) = found(connection).map_err(told)? {
        return Ok(id);
    }
    connection
        .prepare_cached(insert)
        .and_then(|mut insert| insert.execute(key))
        .map_err(told)?;
    let id = found(connection).map_err(told)?;
    id.ok_or_else(|| LogError::Failed("a row of memory is gone".to_owned()))
}

fn insert(
    connection: &Connection,
    scope: i64,
    (source, number): (i64, i64),
    unit: &NewUnit,
) -> Result<(), LogError> {
    let length: u32 = unit.words.iter().map(|(_, count)| *count).sum();
    let mut ids: Vec<u8> = Vec::with_capacity(unit.words.len() * 8);
    for (word, count) in &unit.words {
        let id: i64 = connection
            .prepare_cached(
                "INSERT INTO memory_word (scope, word, units) VALUES (?1, ?2, 1) \
                 ON CONFLICT (scope, word) DO UPDATE SET units = units + 1 RETURNING id",
            )
            .and_then(|mut insert| insert.query_row(params![scope, word], |row| row.get(0)))
            .map_err(told)?;
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO memory_posting (word, unit, count, length) VALUES (?1, ?2, ?3, ?4)",
            )
            .and_then(|mut insert| insert.execute(params![id, number, count, length]))
            .map_err(told)?;
        ids.extend(id.to_le_bytes());
    }
    connection
        .prepare_cached(
            "INSERT INTO memory_unit (id, source, kind, speaker, seq, text, length, time, pinned, confirmed, words) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                number,
                source,
                unit.kind.name(),
                unit.speaker,
                signed(unit.seq),
                unit.text,
                length,
                signed(unit.time.0),
                unit.pinned,
                unit.confirmed,
                ids
            ])
        })
        .map_err(told)?;
    connection
        .prepare_cached("UPDATE memory_scope SET units = units + 1, length = length + ?2 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![scope, length]))
        .map(drop)
        .map_err(told)
}

fn unread(connection: &Connection, scope: &str) -> Result<Vec<Unread>, LogError> {
    let (user, place) = UserName::split(scope);
    let mut select = connection
        .prepare_cached(
            "SELECT session.id, coalesce(source.read_to, 0), session.last_seq FROM session \
             LEFT JOIN (SELECT memory_source.session, max(memory_source.read_to) AS read_to FROM memory_source \
             JOIN memory_scope ON memory_scope.id = memory_source.scope WHERE memory_scope.place = ?1 GROUP BY 1) \
             AS source ON source.session = session.id \
             WHERE session.place = ?2 AND session.user_name = ?3 AND session.parent IS NULL AND session.last_seq > coalesce(source.read_to, 0) \
             ORDER BY session.created_at LIMIT 1000",
        )
        .map_err(told)?;
    let rows = select
        .query_map([scope, place, user.as_str()], |row| {
            Ok(Unread {
                session: SessionId::from(row.get::<_, String>(0)?),
                after: row.get::<_, i64>(1)?.unsigned_abs(),
                last: row.get::<_, i64>(2)?.unsigned_abs(),
            })
        })
        .map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

fn units(connection: &Connection, ids: &[u64]) -> Result<Vec<MemoryUnit>, LogError> {
    let mut select = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE memory_unit.id = ?1"
        ))
        .map_err(told)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let unit = select.query_row([signed(*id)], unit).optional().map_err(told)?;
        found.extend(unit);
    }
    Ok(found)
}

fn list(connection: &Connection, query: &MemoryQuery) -> Result<Vec<MemoryUnit>, LogError> {
    let any = |name: &str, count: usize| match count {
        0 => "1".to_owned(),
        count => format!("{name} IN ({})", vec!["?"; count].join(", ")),
    };
    // Most units are of the kind `said`, which the index by kind leaves out.
    let is_kept = !query.kinds.is_empty() && !query.kinds.contains(&MemoryKind::Said);
    let kept = if is_kept {
        "memory_unit.kind <> 'said'"
    } else {
        "1"
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE {} AND {} AND {kept} AND (NOT ? OR memory_unit.pinned) \
         ORDER BY memory_unit.time DESC, memory_unit.id DESC LIMIT ?",
        any("memory_scope.place", query.scopes.len()),
        any("memory_unit.kind", query.kinds.len()),
    );
    let kinds: Vec<&str> = query.kinds.iter().map(|kind| kind.name()).collect();
    let limit = limited(query.limit);
    let mut values: Vec<&dyn rusqlite::ToSql> = Vec::new();
    values.extend(query.scopes.iter().map(|scope| scope as &dyn rusqlite::ToSql));
    values.extend(kinds.iter().map(|kind| kind as &dyn rusqlite::ToSql));
    values.push(&query.pinned);
    values.push(&limit);
    let mut select = connection.prepare_cached(&sql).map_err(told)?;
    let rows = select.query_map(&*values, unit).map_err(told)?;
    rows.map(|row| row.map_err(told)).collect()
}

fn unit(row: &Row<'_>) -> rusqlite::Result<MemoryUnit> {
    let session: String = row.get(4)?;
    Ok(MemoryUnit {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        scope: row.get(1)?,
        kind: MemoryKind::named(&row.get::<_, String>(2)?).unwrap_or(MemoryKind::Said),
        speaker: row.get(3)?,
        session: (!session.is_empty()).then(|| SessionId::from(session)),
        seq: row.get::<_, i64>(5)?.unsigned_abs(),
        text: row.get(6)?,
        length: row.get(7)?,
        time: Timestamp(row.get::<_, i64>(8)?.unsigned_abs()),
        pinned: row.get(9)?,
        confirmed: row.get(10)?,
    })
}

fn postings(
    connection: &Connection,
    scope: &str,
    words: &[String],
    most: usize,
) -> Result<MemoryPostings, LogError> {
    let scope: Option<(i64, i64, i64)> = connection
        .prepare_cached("SELECT id, units, length FROM memory_scope WHERE place = ?1")
        .and_then(|mut select| {
            select
                .query_row([scope], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .map_err(told)?;
    let Some((scope, units, length)) = scope else {
        return Ok(MemoryPostings::default());
    };
    let mut known: Vec<(i64, WordPostings)> = Vec::new();
    let mut select = connection
        .prepare_cached("SELECT id, units FROM memory_word WHERE scope = ?1 AND word = ?2")
        .map_err(told)?;
    for word in words {
        let found: Option<(i64, i64)> = select
            .query_row(params![scope, word], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(told)?;
        if let Some((id, units)) = found {
            let word = WordPostings {
                word: word.clone(),
                units: units.unsigned_abs(),
                places: Vec::new(),
            };
            known.push((id, word));
        }
    }
    known.sort_by_key(|(_, word)| word.units);
    let mut left = most;
    let mut select = connection
        .prepare_cached("SELECT unit, count, length FROM memory_posting WHERE word = ?1 ORDER BY unit")
        .map_err(told)?;
    for (place, (id, word)) in known.iter_mut().enumerate() {
        let count = usize::try_from(word.units).unwrap_or(usize::MAX);
        // The rarest word is always read.
        if count > left && place > 0 {
            break;
        }
        left = left.saturating_sub(count);
        let rows = select
            .query_map([*id], |row| {
                Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?, row.get(2)?))
            })
            .map_err(told)?;
        word.places = rows.take(most).collect::<Result<_, _>>().map_err(told)?;
    }
    Ok(MemoryPostings {
        units: units.unsigned_abs(),
        length: length.unsigned_abs(),
        words: known.into_iter().map(|(_, word)| word).collect(),
    })
}

fn limited(limit: usize) -> i64 {
    match limit {
        0 => i64::MAX,
        limit => i64::try_from(limit).unwrap_or(i64::MAX),
    }
}
