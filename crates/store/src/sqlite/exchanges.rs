//! Recorded exchanges with providers. Each request is stored as its difference from the one before.

use bytes::{Bytes, BytesMut};
use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Exchange, Frame, LogError, NewExchange, RecordedAnswer};

use super::failure::{damaged, told};
use super::lease::signed;

pub(super) fn keep(
    connection: &Connection,
    id: &SessionId,
    new: &NewExchange,
    limit: u64,
) -> Result<bool, LogError> {
    let NewExchange { exchange, shared } = new;
    let (number, kept, is_full): (i64, i64, bool) = connection
        .prepare_cached("SELECT exchanges, exchange_bytes, exchanges_full FROM session WHERE id = ?1")
        .and_then(|mut select| {
            select.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        })
        .optional()
        .map_err(told)?
        .ok_or_else(|| LogError::Unknown(id.clone()))?;
    if is_full {
        return Ok(false);
    }
    let size = (exchange.request.len() + exchange.answer.body.len()) as u64;
    let kept = unsigned(kept).saturating_add(size);
    let fits = kept <= limit;
    connection
        .prepare_cached(
            "UPDATE session SET exchanges = ?2, exchange_bytes = ?3, exchanges_full = ?4 WHERE id = ?1",
        )
        .and_then(|mut update| update.execute(params![id.as_str(), number + 1, signed(kept), !fits]))
        .map_err(told)?;
    if !fits {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO exchange (session, number, time, provider, model, frame, last, shared, request, digest, \
             status, form, answer, cut) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                id.as_str(),
                number + 1,
                signed(exchange.time.0),
                exchange.provider,
                exchange.model,
                exchange.frame,
                exchange.last.as_ref().map(windlass_core::id::MessageId::as_str),
                signed(*shared),
                &exchange.request[..],
                exchange.digest,
                exchange.answer.status,
                exchange.answer.form,
                &exchange.answer.body[..],
                exchange.answer.cut,
            ])
        })
        .map_err(told)?;
    Ok(true)
}

pub(super) fn all(connection: &Connection, id: &SessionId) -> Result<Vec<Exchange>, LogError> {
    let mut select = connection
        .prepare_cached(
            "SELECT time, provider, model, frame, last, shared, request, digest, status, form, answer, cut, number \
             FROM exchange WHERE session = ?1 ORDER BY number",
        )
        .map_err(told)?;
    let mut rows = select.query([id.as_str()]).map_err(told)?;
    let mut all: Vec<Exchange> = Vec::new();
    while let Some(row) = rows.next().map_err(told)? {
        let (exchange, shared, number) = one(row).map_err(told)?;
        let before = all
            .last()
            .map(|before| before.request.clone())
            .unwrap_or_default();
        let shared = usize::try_from(shared).unwrap_or(usize::MAX);
        let Some(begin) = before.get(..shared) else {
            let what = format!("exchange {number} of session {id}");
            return Err(damaged(what, "the exchange it builds on is missing"));
        };
        let mut request = BytesMut::with_capacity(begin.len() + exchange.request.len());
        request.extend_from_slice(begin);
        request.extend_from_slice(&exchange.request);
        all.push(Exchange {
            request: request.freeze(),
            ..exchange
        });
    }
    Ok(all)
}

fn one(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Exchange, u64, i64)> {
    let exchange = Exchange {
        time: Timestamp(unsigned(row.get(0)?)),
        provider: row.get(1)?,
        model: row.get(2)?,
        frame: row.get(3)?,
        last: row.get::<_, Option<String>>(4)?.map(Into::into),
        request: Bytes::from(row.get::<_, Vec<u8>>(6)?),
        digest: row.get(7)?,
        before: None,
        answer: RecordedAnswer {
            status: row.get(8)?,
            form: row.get(9)?,
            body: Bytes::from(row.get::<_, Vec<u8>>(10)?),
            cut: row.get(11)?,
        },
    };
    Ok((exchange, unsigned(row.get(5)?), row.get(12)?))
}

pub(super) fn keep_frame(connection: &Connection, frame: &Frame) -> Result<String, LogError> {
    let text = serde_json::to_string(frame).map_err(|error| damaged("a frame", error))?;
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    connection
        .prepare_cached("INSERT OR IGNORE INTO frame (digest, text) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute([&digest, &text]))
        .map_err(told)?;
    Ok(digest)
}

pub(super) fn frame(connection: &Connection, digest: &str) -> Result<Option<Frame>, LogError> {
    let text: Option<String> = connection
        .query_row("SELECT text FROM frame WHERE digest = ?1", [digest], |row| {
            row.get(0)
        })
        .optional()
        .map_err(told)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| damaged("a frame", error)))
        .transpose()
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
