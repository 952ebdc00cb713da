//! DIST-5: folders of sessions, described so that another server can rebuild them, and sessions that go to another place.

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Transaction};
use windlass_core::id::SessionId;
use windlass_core::log::{FolderRecord, KeptFor, LogError, PlaceWait, Relocation, SharedFolders, event_kind};

use super::blobs::{keep_bytes, lock, sweep};
use super::cluster::is_within_term;
use super::failure::{Fault, damaged};
use super::sql::{NOW, clean, row, rows, run, signed};
use super::{Liveness, PostgresStore};

/// Returns the name for which a content is kept.
fn scope(kept: &KeptFor) -> String {
    match kept {
        KeptFor::Session(session) => scope_of_session(session),
        KeptFor::Folder(_, folder) => scope_of_folder(folder),
    }
}

fn scope_of_session(session: &SessionId) -> String {
    format!("session {session}")
}

fn scope_of_folder(folder: &str) -> String {
    format!("folder {}", clean(folder))
}

/// Returns the wait for a place, from the result of `place_gone`.
pub(super) fn waits(place: Option<String>, gone: Option<i64>) -> Option<PlaceWait> {
    let (place, gone) = place.zip(gone)?;
    let since = u64::try_from(gone).ok().filter(|gone| *gone > 0);
    Some(PlaceWait {
        place,
        since: since.map(windlass_core::clock::Timestamp),
    })
}

#[async_trait]
impl SharedFolders for PostgresStore {
    async fn keep(&self, kept: &KeptFor, addresses: &[String]) -> Result<Vec<String>, LogError> {
        let (kept, addresses) = (kept.clone(), addresses.to_vec());
        self.write(async move |transaction, _| {
            lock(transaction).await?;
            begin(transaction, &kept).await?;
            let sql = "INSERT INTO kept (scope, address) SELECT $1::text, a FROM unnest($2::text[]) a \
                       WHERE EXISTS (SELECT 1 FROM blob WHERE blob.address = a) ON CONFLICT DO NOTHING";
            run(transaction, sql, &[&scope(&kept), &addresses]).await?;
            let sql = "SELECT a FROM unnest($1::text[]) a WHERE NOT EXISTS (SELECT 1 FROM blob WHERE blob.address = a)";
            let missing = rows(transaction, sql, &[&addresses]).await?;
            Ok(missing.iter().map(|row| row.get(0)).collect())
        })
        .await
    }

    async fn put(&self, kept: &KeptFor, contents: Vec<(String, Vec<u8>)>) -> Result<(), LogError> {
        let kept = kept.clone();
        self.write(async move |transaction, _| {
            lock(transaction).await?;
            begin(transaction, &kept).await?;
            for (address, content) in &contents {
                keep_bytes(transaction, address, content).await?;
            }
            let addresses: Vec<&str> = contents.iter().map(|(address, _)| address.as_str()).collect();
            let sql = "INSERT INTO kept (scope, address) SELECT DISTINCT $1::text, a FROM unnest($2::text[]) a \
                       ON CONFLICT DO NOTHING";
            run(transaction, sql, &[&scope(&kept), &addresses]).await?;
            Ok(())
        })
        .await
    }

    async fn describe(&self, record: FolderRecord) -> Result<(), LogError> {
        self.write(async move |transaction, _| describe(transaction, &record).await)
            .await
    }

    async fn description(&self, session: &SessionId) -> Result<Option<String>, LogError> {
        let session = session.clone();
        self.read(async move |client| {
            let sql = "SELECT document FROM folder WHERE session = $1 AND document IS NOT NULL";
            let found = row(client, sql, &[&session.as_str()]).await?;
            Ok(found.map(|found| found.get(0)))
        })
        .await
    }

    async fn contents(&self, addresses: &[String]) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let addresses = addresses.to_vec();
        self.read(async move |client| {
            let sql = "SELECT address, content FROM blob WHERE address = ANY($1) ORDER BY address, piece";
            let mut contents: Vec<(String, Vec<u8>)> = Vec::new();
            for found in rows(client, sql, &[&addresses]).await? {
                let (address, piece): (String, &[u8]) = (found.get(0), found.get(1));
                match contents.last_mut() {
                    Some((last, content)) if *last == address => content.extend_from_slice(piece),
                    _ => contents.push((address, piece.to_vec())),
                }
            }
            Ok(contents)
        })
        .await
    }

    async fn relocate(&self, relocation: Relocation) -> Result<(), LogError> {
        let payload = serde_json::to_string(&relocation.event).map_err(|error| damaged("an event", error))?;
        self.thread
            .run(async move |context| {
                let lives = context.lives;
                context
                    .write(async |transaction, again| {
                        relocate(transaction, (&relocation, &payload), lives, again).await
                    })
                    .await
            })
            .await
    }
}

/// Remembers that contents of a folder are in use before the first description of it.
async fn begin(client: &Transaction<'_>, kept: &KeptFor) -> Result<(), Fault> {
    if let KeptFor::Folder(session, folder) = kept {
        let sql = "INSERT INTO folder (session, path) SELECT id, $2 FROM session WHERE id = $1 \
                   ON CONFLICT (session) DO NOTHING";
        run(client, sql, &[&session.as_str(), &clean(folder)]).await?;
    }
    Ok(())
}

async fn describe(client: &Transaction<'_>, record: &FolderRecord) -> Result<(), Fault> {
    lock(client).await?;
    let id = record.session.as_str();
    let sql = "SELECT folder.path FROM session LEFT JOIN folder ON folder.session = session.id WHERE session.id = $1 \
               AND (owner = $2 OR owner IS NULL AND left_by = $2) FOR UPDATE OF session";
    let Some(found) = row(client, sql, &[&id, &record.owner]).await? else {
        return Err(LogError::Lost(record.session.clone()).into());
    };
    let before: Option<String> = found.get(0);
    let sql = format!(
        "INSERT INTO folder (session, path, document, time) VALUES ($1, $2, $3, {NOW}) ON CONFLICT (session) DO UPDATE \
         SET path = excluded.path, document = excluded.document, time = excluded.time"
    );
    run(
        client,
        &sql,
        &[&id, &clean(&record.folder), &clean(&record.document)],
    )
    .await?;
    let sql = "DELETE FROM kept WHERE scope = $1 AND address <> ALL($2::text[]) RETURNING address";
    let replaced = rows(client, sql, &[&scope_of_session(&record.session), &record.parts]).await?;
    let mut gone: Vec<String> = replaced.iter().map(|row| row.get(0)).collect();
    if let Some(before) = before {
        gone.extend(unused(client, &before).await?);
    }
    sweep(client, &gone).await
}

/// Lets go of the contents of a folder, if no session is in it. Returns their addresses.
async fn unused(client: &impl GenericClient, folder: &str) -> Result<Vec<String>, Fault> {
    let sql = "DELETE FROM kept WHERE scope = $1 AND NOT EXISTS (SELECT 1 FROM folder WHERE path = $2) RETURNING address";
    let gone = rows(client, sql, &[&scope_of_folder(folder), &folder]).await?;
    Ok(gone.iter().map(|row| row.get(0)).collect())
}

/// Returns the folder whose contents a session uses.
pub(super) async fn of_session(client: &impl GenericClient, id: &SessionId) -> Result<Option<String>, Fault> {
    let sql = "SELECT path FROM folder WHERE session = $1";
    let found = row(client, sql, &[&id.as_str()]).await?;
    Ok(found.map(|found| found.get(0)))
}

/// Removes what was kept for a session that was deleted.
pub(super) async fn forget(client: &impl GenericClient, id: &SessionId, folder: &str) -> Result<(), Fault> {
    let sql = "DELETE FROM kept WHERE scope = $1 RETURNING address";
    let parts = rows(client, sql, &[&scope_of_session(id)]).await?;
    let mut gone: Vec<String> = parts.iter().map(|row| row.get(0)).collect();
    gone.extend(unused(client, folder).await?);
    sweep(client, &gone).await
}

async fn relocate(
    client: &Transaction<'_>,
    (relocation, payload): (&Relocation, &str),
    lives: Liveness,
    again: bool,
) -> Result<(), Fault> {
    let id = relocation.session.as_str();
    let sql = format!(
        "SELECT owner, fence, last_seq, {}, home, place FROM session WHERE id = $1 FOR UPDATE",
        is_within_term()
    );
    let found = row(client, &sql, &[&id]).await?;
    let found = found.ok_or_else(|| LogError::Unknown(relocation.session.clone()))?;
    let next = signed(relocation.last_seq + 1);
    if again {
        let sql = "SELECT 1 FROM entry WHERE session = $1 AND seq = $2 AND payload = $3";
        if row(client, sql, &[&id, &next, &payload]).await?.is_some() {
            return Ok(());
        }
    }
    if let Some(owner) = found.get::<_, Option<String>>(0)
        && lives(&owner, found.get(3))
    {
        return Err(Fault::Log(LogError::Busy {
            session: relocation.session.clone(),
            owner,
        }));
    }
    let before: (i64, i64) = (found.get(1), found.get(2));
    if before != (signed(relocation.fence), signed(relocation.last_seq)) {
        return Err(Fault::Log(LogError::Lost(relocation.session.clone())));
    }
    let (home, place): (Option<String>, String) = (found.get(4), found.get(5));
    let to: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&id, &relocation.place, &relocation.folder, &home, &place];
    // Sessions below it that work in the same folder.
    let sql = "WITH RECURSIVE below AS (SELECT id FROM session WHERE parent = $1 UNION ALL \
                 SELECT session.id FROM session JOIN below ON session.parent = below.id) \
               UPDATE session SET home = $2, place = $3 WHERE id IN (SELECT id FROM below) \
                 AND home IS NOT DISTINCT FROM $4 AND place = $5";
    run(client, sql, &to).await?;
    let sql = format!(
        "UPDATE session SET home = $2, place = $3, last_seq = $4, fence = fence + 1, until = 0, owner = NULL, \
         left_by = coalesce(owner, left_by), moved_at = {NOW}, updated_at = greatest(updated_at, {NOW}), \
         left_at = coalesce((SELECT v.until FROM server v WHERE v.id = session.owner), left_at) WHERE id = $1"
    );
    run(client, &sql, &[&id, &relocation.place, &relocation.folder, &next]).await?;
    let sql = format!(
        "WITH put AS (INSERT INTO entry (session, seq, fence, kind, message, payload, time) \
           SELECT id, last_seq, fence, $2, NULL, $3, {NOW} FROM session WHERE id = $1 RETURNING 1) \
         SELECT (SELECT count(*) FROM put), pg_notify('wl_all', 'moved ' || $1)::text, pg_notify('wl_all', 'work')::text"
    );
    rows(client, &sql, &[&id, &event_kind(payload), &payload])
        .await
        .map(drop)
}
