//! Recorded exchanges with providers. Each request is stored as its difference from the one before.

use bytes::{Bytes, BytesMut};
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Exchange, Frame, LogError, NewExchange, RecordedAnswer};

use super::failure::{Fault, damaged};
use super::sql::{clean, cleaned, number, row, rows, run, signed, time};

/// Keeps an exchange, unless there is no room, or the one that it builds on is not there. Sent twice, it is kept once.
///
/// Nobody waits for it, and its commit does not wait for the disk: it holds the row of the session, and the appends of all
/// sessions in its group would wait with it. The next append flushes it as well. One that a crash loses is missed by the
/// next exchange, which is then not kept either, and the one after that is stored as a whole.
const KEEP: &str = "WITH up AS (UPDATE session s SET exchanges = s.exchanges + 1, exchange_bytes = s.exchange_bytes + $15::bigint, \
    exchanges_full = s.exchange_bytes + $15::bigint > $16::bigint WHERE s.id = $1::text AND NOT s.exchanges_full \
    AND NOT EXISTS (SELECT 1 FROM exchange e WHERE e.session = s.id AND e.number = s.exchanges AND e.digest = $9::text \
      AND e.time = $2::bigint) \
    AND ($7::bigint = 0 OR $14::text IS NULL OR EXISTS (SELECT 1 FROM exchange e WHERE e.session = s.id AND e.number = s.exchanges \
      AND e.digest IN ($9::text, $14::text))) \
    RETURNING s.exchanges AS number, s.exchanges_full AS is_full), \
  ins AS (INSERT INTO exchange (session, number, time, provider, model, frame, last, shared, request, digest, status, form, \
    answer, cut) SELECT $1::text, up.number, $2::bigint, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bytea, $9::text, \
    $10::bigint, $11::text, $12::bytea, $13::text FROM up WHERE NOT up.is_full RETURNING 1) \
  SELECT EXISTS (SELECT 1 FROM ins) OR EXISTS (SELECT 1 FROM exchange e WHERE e.session = s.id AND e.number = s.exchanges \
    AND e.digest = $9::text AND e.time = $2::bigint), set_config('synchronous_commit', 'off', true) FROM session s WHERE s.id = $1::text";

pub(super) async fn keep(
    client: &impl GenericClient,
    id: &SessionId,
    new: &NewExchange,
    limit: u64,
) -> Result<bool, Fault> {
    let NewExchange { exchange, shared } = new;
    let size = (exchange.request.len() + exchange.answer.body.len()) as u64;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 16] = [
        &id.as_str(),
        &signed(exchange.time.0),
        &clean(&exchange.provider),
        &clean(&exchange.model),
        &exchange.frame,
        &cleaned(exchange.last.as_ref().map(MessageId::as_str)),
        &signed(*shared),
        &&exchange.request[..],
        &exchange.digest,
        &exchange.answer.status.map(i64::from),
        &clean(&exchange.answer.form),
        &&exchange.answer.body[..],
        &cleaned(exchange.answer.cut.as_deref()),
        &exchange.before.as_ref().map(|(digest, _)| digest.as_str()),
        &signed(size),
        &signed(limit),
    ];
    let found = row(client, KEEP, &values).await?;
    let found = found.ok_or_else(|| LogError::Unknown(id.clone()))?;
    Ok(found.get(0))
}

pub(super) async fn all(client: &impl GenericClient, id: &SessionId) -> Result<Vec<Exchange>, Fault> {
    let sql = "SELECT time, provider, model, frame, last, shared, request, digest, status, form, answer, cut, number \
        FROM exchange WHERE session = $1 ORDER BY number";
    let mut all: Vec<Exchange> = Vec::new();
    for row in rows(client, sql, &[&id.as_str()]).await? {
        let exchange = one(&row);
        let before = all
            .last()
            .map(|before| before.request.clone())
            .unwrap_or_default();
        let shared = usize::try_from(number(&row, 5)).unwrap_or(usize::MAX);
        let Some(begin) = before.get(..shared) else {
            let what = format!("exchange {} of session {id}", number(&row, 12));
            return Err(damaged(what, "the exchange it builds on is missing").into());
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

fn one(row: &Row) -> Exchange {
    let status: Option<i64> = row.get(8);
    Exchange {
        time: time(row, 0),
        provider: row.get(1),
        model: row.get(2),
        frame: row.get(3),
        last: row.get::<_, Option<String>>(4).map(Into::into),
        request: Bytes::from(row.get::<_, Vec<u8>>(6)),
        digest: row.get(7),
        before: None,
        answer: RecordedAnswer {
            status: status.and_then(|status| u16::try_from(status).ok()),
            form: row.get(9),
            body: Bytes::from(row.get::<_, Vec<u8>>(10)),
            cut: row.get(11),
        },
    }
}

pub(super) async fn keep_frame(client: &impl GenericClient, frame: &Frame) -> Result<String, Fault> {
    let text = serde_json::to_string(frame).map_err(|error| damaged("a frame", error))?;
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    let sql = "INSERT INTO frame (digest, text) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    run(client, sql, &[&digest, &text]).await?;
    Ok(digest)
}

pub(super) async fn frame(client: &impl GenericClient, digest: &str) -> Result<Option<Frame>, Fault> {
    let found = row(
        client,
        "SELECT text FROM frame WHERE digest = $1",
        &[&clean(digest)],
    )
    .await?;
    let read = |text: &str| serde_json::from_str(text).map_err(|error| damaged("a frame", error));
    Ok(found.map(|row| read(row.get(0))).transpose()?)
}
