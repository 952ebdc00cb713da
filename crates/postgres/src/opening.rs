//! Opens a session: reads only what a turn needs from a log that may be very long.

use deadpool_postgres::GenericClient;
use windlass_core::event::{Event, SessionEvent};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Entry, Lease, LogError, Opened};

use super::entries::Raw;
use super::failure::Fault;
use super::find;
use super::sql::{row, rows};

/// Reads what a turn needs of a session whose lease is taken.
pub(super) async fn opened(
    client: &impl GenericClient,
    id: &SessionId,
    lease: Lease,
) -> Result<Opened, Fault> {
    let info = find::get(client, id).await?;
    let info = info.ok_or_else(|| LogError::Unknown(id.clone()))?;
    let sql = "SELECT session.base_seq, draft.payload FROM session LEFT JOIN draft ON draft.session = session.id WHERE id = $1";
    let found = row(client, sql, &[&id.as_str()]).await?;
    let found = found.ok_or_else(|| LogError::Unknown(id.clone()))?;
    let (base, draft): (i64, Option<String>) = (found.get(0), found.get(1));
    let draft = draft.map(|text| serde_json::from_str(&text)).transpose();
    Ok(Opened {
        lease,
        info,
        entries: history(client, id, base).await?,
        // Half a reply that cannot be read is worth less than the session.
        draft: draft.unwrap_or_default(),
        dropped: None,
    })
}

/// Reads the entries that make up the history: the messages that count, and everything of an unfinished turn.
async fn history(client: &impl GenericClient, id: &SessionId, base: i64) -> Result<Vec<Entry>, Fault> {
    let since = since(client, id, base).await?;
    let mut entries = match since.first() {
        Some(first) => before(client, id, base, &first.event).await?,
        None => Vec::new(),
    };
    entries.extend(since);
    Ok(entries)
}

/// Reads the entries that count from `base` on. Once a turn has ended, tool results are part of messages.
async fn since(client: &impl GenericClient, id: &SessionId, base: i64) -> Result<Vec<Entry>, Fault> {
    let sql = "SELECT seq, time, payload FROM entry WHERE session = $1 AND seq >= $2 \
        AND kind IN ('message', 'compaction', 'rewind', 'goal', 'goal_completed', 'goal_run', 'goal_turn', \
        'goal_check', 'goal_verdict', 'goal_state', 'plan', 'queue', 'tool_result', 'final', 'canceled', 'failed', \
        'permission_request', 'permission_answer', 'question') \
        AND (kind NOT IN ('tool_result', 'permission_request', 'permission_answer', 'question') OR seq > coalesce((SELECT seq FROM entry WHERE session = $1 \
        AND kind IN ('final', 'canceled', 'failed') ORDER BY seq DESC LIMIT 1), 0)) ORDER BY seq";
    read(id, &rows(client, sql, &[&id.as_str(), &base]).await?)
}

fn read(id: &SessionId, rows: &[tokio_postgres::Row]) -> Result<Vec<Entry>, Fault> {
    let entries = rows.iter().map(|row| Raw::read(row).entry(id));
    Ok(entries.collect::<Result<_, LogError>>()?)
}

/// Reads the entries that count from before a compaction: the messages it lists, including the very first
/// one, the goals, and the queue at that time. Empty if the history does not start with a compaction.
async fn before(
    client: &impl GenericClient,
    id: &SessionId,
    base: i64,
    first: &Event,
) -> Result<Vec<Entry>, Fault> {
    let Event::Session(SessionEvent::Compaction { history, .. }) = first else {
        return Ok(Vec::new());
    };
    let messages: Vec<&str> = history.iter().map(MessageId::as_str).collect();
    let sql = "SELECT seq, time, payload FROM entry WHERE session = $1 AND seq < $2 AND message = ANY($3)";
    let mut entries = read(id, &rows(client, sql, &[&id.as_str(), &base, &messages]).await?)?;
    // Rewinds decide which version of a message and which goal counts.
    let few = [
        "SELECT seq, time, payload FROM entry WHERE session = $1 AND kind = 'rewind' AND seq < $2",
        "SELECT seq, time, payload FROM entry WHERE session = $1 AND kind IN ('goal', 'goal_completed', 'goal_run', \
         'goal_turn', 'goal_check', 'goal_verdict', 'goal_state', 'plan') AND seq < $2",
    ];
    for sql in few {
        entries.extend(read(id, &rows(client, sql, &[&id.as_str(), &base]).await?)?);
    }
    entries.extend(queue(client, id, base).await?);
    entries.sort_by_key(|entry| entry.seq);
    Ok(entries)
}

/// Reads the queue at the time of a compaction. Every turn starts by writing the queue again, so only the
/// turn of the compaction is searched.
async fn queue(client: &impl GenericClient, id: &SessionId, base: i64) -> Result<Option<Entry>, Fault> {
    let sql = "SELECT seq, time, payload, kind FROM entry WHERE session = $1 AND seq < $2 \
        AND kind IN ('queue', 'final', 'canceled', 'failed') ORDER BY seq DESC LIMIT 1";
    let found = row(client, sql, &[&id.as_str(), &base]).await?;
    match found.filter(|row| row.get::<_, &str>(3) == "queue") {
        Some(row) => Ok(Some(Raw::read(&row).entry(id)?)),
        None => Ok(None),
    }
}
