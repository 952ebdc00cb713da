//! Usage and cost of model calls.

use deadpool_postgres::GenericClient;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Booking, Spent, SpentBy, UserName};
use windlass_core::model::Usage;

use super::failure::Fault;
use super::sql::{Values, clean, number, rows, run, signed};

/// Books a call under an id, once, and adds it to its session. The rows of the sessions above it are not written.
pub(super) async fn book(
    client: &impl GenericClient,
    id: &SessionId,
    booking_id: &str,
    booking: &Booking,
) -> Result<(), Fault> {
    let usage = &booking.usage;
    let sql = "WITH booked AS (INSERT INTO booking (id, session, time, provider, model, cause, input, output, cache_read, \
        cache_write, cost_usd) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING RETURNING 1), \
        summed AS (UPDATE session SET prompt_tokens = prompt_tokens + $7 + $9 + $10, completion_tokens = completion_tokens + $8, \
        cost_usd = cost_usd + coalesce($11, 0) FROM booked WHERE id = $2) \
        UPDATE agent SET tokens = tokens + $7 + $8 + $9 + $10, cost_usd = cost_usd + coalesce($11, 0), \
        turns = turns + ($6 = 'turn')::int FROM booked WHERE session = $2";
    run(
        client,
        sql,
        &[
            &booking_id,
            &id.as_str(),
            &signed(booking.time.0),
            &clean(&booking.provider),
            &clean(&booking.model),
            &clean(&booking.cause),
            &signed(usage.input),
            &signed(usage.output),
            &signed(usage.cache_read),
            &signed(usage.cache_write),
            &booking.cost_usd,
        ],
    )
    .await
    .map(drop)
}

/// Returns the cost of one session and its descendants, or of all sessions.
pub(super) async fn spent(
    client: &impl GenericClient,
    session: Option<&SessionId>,
    by: SpentBy,
) -> Result<Vec<Spent>, Fault> {
    let condition = "$1::text IS NULL OR booking.session IN (SELECT id FROM below)";
    grouped(client, by, condition, &[&session.map(SessionId::as_str)]).await
}

/// DIST-7: returns the cost of a user's sessions since a time.
pub(super) async fn spent_by(
    client: &impl GenericClient,
    user: &UserName,
    since: Timestamp,
    by: SpentBy,
) -> Result<Vec<Spent>, Fault> {
    let condition = "booking.user_name = $2 AND booking.time >= $3";
    let none: Option<&str> = None;
    grouped(client, by, condition, &[&none, &user.as_str(), &signed(since.0)]).await
}

async fn grouped(
    client: &impl GenericClient,
    by: SpentBy,
    condition: &str,
    values: &Values<'_>,
) -> Result<Vec<Spent>, Fault> {
    let (of, order) = match by {
        SpentBy::Session => ("booking.session", "sum(cost_usd) DESC NULLS LAST, 1"),
        SpentBy::Model => ("provider || '/' || model", "sum(cost_usd) DESC NULLS LAST, 1"),
        SpentBy::Cause => ("cause", "sum(cost_usd) DESC NULLS LAST, 1"),
        SpentBy::Day => (
            "to_char(to_timestamp(time / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
            "1",
        ),
        SpentBy::User => (
            "coalesce(nullif(booking.user_name, ''), 'local')",
            "sum(cost_usd) DESC NULLS LAST, 1",
        ),
    };
    let sql = format!(
        "WITH RECURSIVE below (id) AS (SELECT $1::text COLLATE \"C\" UNION SELECT session.id FROM session JOIN below \
         ON session.parent = below.id) \
         SELECT {of}, count(*), sum(input)::bigint, sum(output)::bigint, sum(cache_read)::bigint, sum(cache_write)::bigint, \
         coalesce(sum(cost_usd), 0), count(*) FILTER (WHERE cost_usd IS NULL) FROM booking WHERE {condition} \
         GROUP BY 1 ORDER BY {order}"
    );
    let found = rows(client, &sql, values).await?;
    let spent = |row: &tokio_postgres::Row| Spent {
        of: row.get(0),
        calls: number(row, 1),
        usage: Usage {
            input: number(row, 2),
            output: number(row, 3),
            cache_read: number(row, 4),
            cache_write: number(row, 5),
            ..Usage::default()
        },
        cost_usd: row.get(6),
        unpriced: number(row, 7),
    };
    Ok(found.iter().map(spent).collect())
}
