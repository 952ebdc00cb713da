//! Finds, lists and deletes sessions.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Label, LogError, SessionInfo, SessionQuery, SessionStatus, Totals, UserName};

use super::failure::Fault;
use super::sql::{clean, cleaned, limited, number, only, row, rows, run, session, time};
use super::{Liveness, folders, lease, memory};

/// Columns of a session. What sessions below it used is part of its totals.
const COLUMNS: &str = "id, parent, title, name, key, place, standing, provider, model, messages, \
    session.prompt_tokens + below.prompt_tokens, session.completion_tokens + below.completion_tokens, context_tokens, \
    session.cost_usd + below.cost_usd, summary, last_seq, created_at, updated_at, user_name, \
    CASE WHEN session.cost_usd = 0 THEN \
      EXISTS (SELECT 1 FROM booking WHERE booking.session = session.id AND booking.cost_usd IS NULL) ELSE false END, \
    home, CASE WHEN home IS NULL THEN NULL ELSE place_gone(home) END";

const TABLES: &str = "session CROSS JOIN LATERAL descendants(session.id) AS below";

pub(super) async fn get(client: &impl GenericClient, id: &SessionId) -> Result<Option<SessionInfo>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE id = $1");
    Ok(row(client, &sql, &[&id.as_str()]).await?.map(|row| info(&row)))
}

pub(super) async fn list(
    client: &impl GenericClient,
    query: &SessionQuery,
) -> Result<Vec<SessionInfo>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM (SELECT * FROM session WHERE ($1::text IS NULL OR place = $1) \
         AND ($2::text IS NULL OR name = $2 OR key = $2 OR starts_with(id, $2)) \
         AND ($3 OR parent IS NULL) AND (NOT $4 OR last_seq > 0 OR coalesce(name, key, title) IS NOT NULL) \
         AND ($6::text IS NULL OR user_name = $6) \
         ORDER BY updated_at DESC, id DESC LIMIT $5) AS session CROSS JOIN LATERAL descendants(session.id) AS below \
         ORDER BY updated_at DESC, id DESC"
    );
    let found = rows(
        client,
        &sql,
        &[
            &cleaned(query.place.as_deref()),
            &cleaned(query.called.as_deref()),
            &query.children,
            &query.used,
            &limited(query.limit),
            &query.user.as_ref().map(UserName::as_str),
        ],
    )
    .await?;
    Ok(found.iter().map(info).collect())
}

fn info(row: &Row) -> SessionInfo {
    let provider: Option<String> = row.get(7);
    let model: Option<String> = row.get(8);
    SessionInfo {
        id: session(row, 0),
        parent: row.get::<_, Option<String>>(1).map(SessionId::from),
        label: Label {
            title: row.get(2),
            name: row.get(3),
            key: row.get(4),
        },
        place: row.get(5),
        standing: match row.get::<_, &str>(6) {
            "working" => SessionStatus::Working,
            "answered" => SessionStatus::Answered,
            "canceled" => SessionStatus::Canceled,
            "failed" => SessionStatus::Failed,
            _ => SessionStatus::New,
        },
        model: provider.zip(model),
        totals: Totals {
            messages: number(row, 9),
            prompt_tokens: number(row, 10),
            completion_tokens: number(row, 11),
            context_tokens: number(row, 12),
            cost_usd: row.get(13),
            unpriced: row.get(19),
        },
        summary: row.get::<_, Option<String>>(14).map(MessageId::from),
        last_seq: number(row, 15),
        created_at: time(row, 16),
        updated_at: time(row, 17),
        user: UserName::stored(row.get::<_, String>(18)),
        waits: folders::waits(row.get(20), row.get(21)),
    }
}

pub(super) async fn label(client: &impl GenericClient, id: &SessionId, label: &Label) -> Result<(), Fault> {
    let changed = run(
        client,
        "UPDATE session SET title = coalesce($2, title), name = coalesce($3, name), key = coalesce($4, key) WHERE id = $1",
        &[
            &id.as_str(),
            &cleaned(label.title.as_deref()),
            &cleaned(label.name.as_deref()),
            &cleaned(label.key.as_deref()),
        ],
    )
    .await?;
    match changed {
        0 => Err(Fault::Log(LogError::Unknown(id.clone()))),
        _ => Ok(()),
    }
}

pub(super) async fn delete(
    client: &impl GenericClient,
    id: &SessionId,
    lives: Liveness,
) -> Result<(), Fault> {
    let locked = row(
        client,
        "SELECT 1 FROM session WHERE id = $1 FOR UPDATE",
        &[&id.as_str()],
    )
    .await?;
    if locked.is_none() {
        return Err(Fault::Log(LogError::Unknown(id.clone())));
    }
    if let Some(owner) = lease::holder(client, id, lives).await? {
        return Err(Fault::Log(LogError::Busy {
            session: id.clone(),
            owner,
        }));
    }
    memory::of_session(client, id).await?;
    let folder = folders::of_session(client, id).await?;
    // The money was spent all the same, so the bookings stay, and the session above keeps the sums.
    run(
        client,
        "UPDATE session AS above SET gone_prompt_tokens = above.gone_prompt_tokens + gone.prompt_tokens + below.prompt_tokens, \
         gone_completion_tokens = above.gone_completion_tokens + gone.completion_tokens + below.completion_tokens, \
         gone_cost_usd = above.gone_cost_usd + gone.cost_usd + below.cost_usd, \
         gone_turns = above.gone_turns + coalesce(agent.turns, 0) + below.turns, \
         gone_run_ms = above.gone_run_ms + coalesce(agent.run_ms, 0) + below.run_ms \
         FROM session AS gone LEFT JOIN agent ON agent.session = gone.id CROSS JOIN LATERAL descendants(gone.id) AS below \
         WHERE gone.id = $1 AND above.id = gone.parent",
        &[&id.as_str()],
    )
    .await?;
    for sql in [
        "DELETE FROM entry WHERE session = $1",
        "DELETE FROM session WHERE id = $1",
    ] {
        run(client, sql, &[&id.as_str()]).await?;
    }
    if let Some(folder) = folder {
        folders::forget(client, id, &folder).await?;
    }
    run(
        client,
        "DELETE FROM frame WHERE NOT EXISTS (SELECT 1 FROM exchange WHERE exchange.frame = frame.digest)",
        &[],
    )
    .await
    .map(drop)
}

pub(super) async fn preference(
    client: &impl GenericClient,
    scope: &str,
    name: &str,
) -> Result<Option<String>, Fault> {
    let sql = "SELECT value FROM preference WHERE scope = $1 AND name = $2";
    let found = row(client, sql, &[&clean(scope), &clean(name)]).await?;
    Ok(found.map(|row| row.get(0)))
}

pub(super) async fn preferences(
    client: &impl GenericClient,
    scope: &str,
) -> Result<Vec<(String, String)>, Fault> {
    let sql = "SELECT name, value FROM preference WHERE scope = $1 ORDER BY name";
    let found = rows(client, sql, &[&clean(scope)]).await?;
    Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
}

pub(super) async fn settle_preference(
    client: &impl GenericClient,
    scope: &str,
    name: &str,
    value: &str,
) -> Result<String, Fault> {
    // A row that another caller inserts at the same time is waited for, and returned.
    let sql = "INSERT INTO preference (scope, name, value) VALUES ($1, $2, $3) \
               ON CONFLICT (scope, name) DO UPDATE SET value = preference.value RETURNING value";
    let settled = only(client, sql, &[&clean(scope), &clean(name), &clean(value)]).await?;
    Ok(settled.get(0))
}

pub(super) async fn set_preference(
    client: &impl GenericClient,
    scope: &str,
    name: &str,
    value: Option<&str>,
) -> Result<(), Fault> {
    let (scope, name) = (clean(scope), clean(name));
    match value {
        Some(value) => {
            let sql = "INSERT INTO preference (scope, name, value) VALUES ($1, $2, $3) \
                       ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value";
            run(client, sql, &[&scope, &name, &clean(value)]).await?
        }
        None => {
            let sql = "DELETE FROM preference WHERE scope = $1 AND name = $2";
            run(client, sql, &[&scope, &name]).await?
        }
    };
    // Servers of a cluster hear it; nobody listens otherwise.
    run(client, "SELECT pg_notify('wl_all', 'preference')", &[]).await?;
    Ok(())
}

/// Returns the number of the first entry of a message.
pub(super) async fn place(
    client: &impl GenericClient,
    session: &SessionId,
    message: &MessageId,
) -> Result<Option<u64>, Fault> {
    let sql = "SELECT min(seq) FROM entry WHERE session = $1 AND message = $2";
    let found = row(client, sql, &[&session.as_str(), &clean(message.as_str())]).await?;
    Ok(found
        .and_then(|row| row.get::<_, Option<i64>>(0))
        .map(i64::unsigned_abs))
}
