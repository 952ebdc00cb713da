//! Recorded exchanges with providers. Each request is stored as its difference from the one before.

use bytes::{Bytes, BytesMut};
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Exchange, Frame, LogError, NewExchange, RecordedAnswer};

use super::failure::{Fault, damaged};
use super::sql::{clean, cleaned, number, row, rows, run, signed, time};

pub(super) async fn keep(
    client: &impl GenericClient,
    id: &SessionId,
    new: &NewExchange,
    (limit, again): (u64, bool),
) -> Result<bool, Fault> {
    let NewExchange { exchange, shared } = new;
    let sql = "SELECT exchanges, exchange_bytes, exchanges_full FROM session WHERE id = $1 FOR UPDATE";
    let found = row(client, sql, &[&id.as_str()]).await?;
    let found = found.ok_or_else(|| LogError::Unknown(id.clone()))?;
    let (last, kept, is_full): (i64, u64, bool) = (found.get(0), number(&found, 1), found.get(2));
    let is_stored = again && {
        let sql = "SELECT 1 FROM exchange WHERE session = $1 AND number = $2 AND digest = $3 AND time = $4";
        let key: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&id.as_str(), &last, &exchange.digest, &signed(exchange.time.0)];
        row(client, sql, &key).await?.is_some()
    };
    if is_full || is_stored {
        return Ok(is_stored);
    }
    let size = (exchange.request.len() + exchange.answer.body.len()) as u64;
    let kept = kept.saturating_add(size);
    let fits = kept <= limit;
    let sql = "UPDATE session SET exchanges = $2, exchange_bytes = $3, exchanges_full = $4 WHERE id = $1";
    run(client, sql, &[&id.as_str(), &(last + 1), &signed(kept), &!fits]).await?;
    if !fits {
        return Ok(false);
    }
    let sql = "INSERT INTO exchange (session, number, time, provider, model, frame, last, shared, request, digest, \
        status, form, answer, cut) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    run(
        client,
        sql,
        &[
            &id.as_str(),
            &(last + 1),
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
        ],
    )
    .await?;
    Ok(true)
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
