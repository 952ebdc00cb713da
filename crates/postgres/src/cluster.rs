//! Servers that share the database: their leases, the sessions of lost servers, and the inbox.

mod inbox;
mod listen;

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use windlass_core::id::SessionId;
use windlass_core::log::{Beat, Holder, LogError, ServerInfo, ServerRow, Servers, Whereabouts};

use super::failure::Fault;
use super::sql::{NOW, clean, maybe, number, row, rows, run, session, signed, small, time};
use super::{Liveness, PostgresStore, folders};

/// Sessions with unfinished work.
const WORK: &str = "SELECT id FROM session WHERE wants_turn OR queued \
    UNION SELECT session FROM inbox WHERE taken IS NULL UNION SELECT session FROM goal WHERE state = 'active'";

/// Time that the row of a server stays after its lease ended, in milliseconds.
const KEPT: i64 = 3_600_000;

/// Remembers when the servers in `gone` were there.
const SEEN: &str = "INSERT INTO place (name, seen) SELECT name, max(until) FROM gone, unnest(places) AS name GROUP BY name \
    ON CONFLICT (name) DO UPDATE SET seen = greatest(place.seen, excluded.seen)";
/// Returns the condition for a session that can move. A sub-agent with a copy of the files cannot: the copy is on the disk
/// of its server, and the session above gives it its end.
fn can_move(id: &str) -> String {
    format!("NOT EXISTS (SELECT 1 FROM agent WHERE agent.session = {id} AND worktree IS NOT NULL)")
}

/// Condition for a session `s` whose owner is gone, at one of the places `$1`.
fn claimable() -> String {
    format!(
        "s.id IN ({WORK}) AND s.home = ANY($1::text[]) AND {} \
         AND (s.owner IS NULL OR EXISTS (SELECT 1 FROM server v WHERE v.id = s.owner AND v.until < {NOW}))",
        can_move("s.id")
    )
}

/// Returns the SQL for the term of the owner of a session: that of its server, or its own.
pub(super) fn is_within_term() -> String {
    format!("coalesce((SELECT v.until FROM server v WHERE v.id = session.owner), session.until) > {NOW}")
}

/// Records who opens a session, if it is a server of a cluster, and returns the work that its last owner left. `left` is
/// the owner before.
pub(super) async fn opened(
    client: &Transaction<'_>,
    id: &SessionId,
    server: &ServerInfo,
    left: Option<&str>,
) -> Result<Option<windlass_core::log::Dropped>, Fault> {
    let sql = format!(
        "WITH before AS (SELECT s.id, coalesce(s.left_by, $3) AS left_by, s.wants_turn, s.queued, \
           coalesce(s.left_at, (SELECT least(v.until, {NOW}) FROM server v WHERE v.id = $3), {NOW}) AS left_at, \
           EXISTS (SELECT 1 FROM goal WHERE goal.session = s.id AND goal.state = 'active') AS pursues \
           FROM session s WHERE s.id = $1) \
         UPDATE session SET home = coalesce(home, $2), moved_at = {NOW}, left_by = NULL, left_at = NULL FROM before \
         WHERE session.id = before.id RETURNING before.left_by, greatest({NOW} - before.left_at, 0), before.wants_turn, \
           before.queued, before.pursues, (SELECT pg_notify('wl_all', 'moved ' || $1))::text"
    );
    let home = server.places.first().map(String::as_str);
    let found = row(client, &sql, &[&id.as_str(), &home, &left]).await?;
    Ok(found.and_then(|found| {
        let (wants, queued, pursues): (bool, bool, bool) = (found.get(2), found.get(3), found.get(4));
        (wants || queued || pursues).then(|| windlass_core::log::Dropped {
            from: found.get::<_, Option<String>>(0).unwrap_or_default(),
            after_ms: number(&found, 1),
            is_queued: queued,
        })
    }))
}

#[async_trait]
impl Servers for PostgresStore {
    async fn beat(&self, server: &ServerInfo, lease: Duration, since: u64) -> Result<Beat, LogError> {
        // A store that already serves another server keeps its name.
        let _ = self.server.set(server.clone());
        let server = server.clone();
        let lease = signed(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        self.thread
            .run(async move |context| {
                let beaten = async { beat(&context.client().await?, &server, (lease, signed(since))).await };
                beaten.await.map_err(Fault::told)
            })
            .await
    }

    async fn claim(&self, server: &ServerInfo, limit: usize) -> Result<Vec<SessionId>, LogError> {
        let server = server.clone();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.write(async move |transaction, _| {
            let sql = format!(
                "WITH picked AS (SELECT s.id, s.owner, coalesce((SELECT v.until FROM server v WHERE v.id = s.owner), s.left_at) \
                   AS left_at FROM session s WHERE {} ORDER BY s.owner IS NULL, s.updated_at LIMIT $3 FOR UPDATE OF s SKIP LOCKED) \
                 UPDATE session SET owner = $2, fence = fence + 1, left_by = coalesce(picked.owner, left_by), \
                   left_at = picked.left_at FROM picked WHERE session.id = picked.id RETURNING session.id",
                claimable()
            );
            let claimed = rows(transaction, &sql, &[&server.places, &server.id, &limit]).await?;
            Ok(claimed.iter().map(|row| session(row, 0)).collect())
        })
        .await
    }

    async fn unfinished(&self, owner: Option<&str>) -> Result<Vec<SessionId>, LogError> {
        let owner = owner.map(str::to_owned);
        self.read(async move |client| {
            let sql = format!(
                "SELECT id FROM session WHERE id IN ({WORK}) AND home IS NOT NULL AND (owner = $1 OR $1 IS NULL AND NOT \
                 (owner IS NOT NULL AND {})) AND {}",
                is_within_term(),
                can_move("session.id")
            );
            let found = rows(client, &sql, &[&owner]).await?;
            Ok(found.iter().map(|row| session(row, 0)).collect())
        })
        .await
    }

    async fn give_back(&self, owner: &str, session: Option<&SessionId>) -> Result<(), LogError> {
        let (owner, session) = (owner.to_owned(), session.cloned());
        self.write(async move |transaction, _| {
            let id = session.as_ref().map(SessionId::as_str);
            let sql = format!(
                "UPDATE session SET owner = NULL, until = 0, fence = fence + 1, moved_at = {NOW}, left_by = owner, \
                 left_at = {NOW} WHERE owner = $1 AND ($2::text IS NULL OR id = $2)"
            );
            run(transaction, &sql, &[&owner, &id]).await?;
            if id.is_none() {
                let gone = format!(
                    "WITH gone AS (DELETE FROM server WHERE id = $1 RETURNING places, least(until, {NOW}) AS until) {SEEN}"
                );
                run(transaction, &gone, &[&owner]).await?;
            }
            run(transaction, "SELECT pg_notify('wl_all', 'work')", &[]).await?;
            Ok(())
        })
        .await
    }

    async fn servers(&self) -> Result<Vec<ServerRow>, LogError> {
        self.read(async move |client| {
            let sql = format!(
                "SELECT id, address, version, places, slots, until > {NOW}, abs(until - {NOW}), \
                 (SELECT count(*) FROM session WHERE session.owner = server.id), \
                 (SELECT count(*) FROM session WHERE session.owner = server.id AND wants_turn) FROM server ORDER BY started, id"
            );
            let found = rows(client, &sql, &[]).await?;
            let server = |row: &tokio_postgres::Row| ServerRow {
                info: ServerInfo {
                    id: row.get(0),
                    address: row.get(1),
                    version: row.get(2),
                    places: row.get(3),
                    slots: small(row, 4),
                },
                is_alive: row.get(5),
                lease_ms: number(row, 6),
                sessions: number(row, 7),
                working: number(row, 8),
            };
            Ok(found.iter().map(server).collect())
        })
        .await
    }

    async fn whereabouts(&self, session: &SessionId) -> Result<Option<Whereabouts>, LogError> {
        let id = session.clone();
        self.thread
            .run(async move |context| {
                let lives = context.lives;
                context
                    .read(async |client| whereabouts(client, &id, lives).await)
                    .await
            })
            .await
    }
}

async fn whereabouts(
    client: &deadpool_postgres::Object,
    id: &SessionId,
    lives: Liveness,
) -> Result<Option<Whereabouts>, Fault> {
    let sql = format!(
        "SELECT owner, {}, (SELECT v.address FROM server v WHERE v.id = session.owner), home, \
         wants_turn OR queued OR EXISTS (SELECT 1 FROM inbox WHERE inbox.session = session.id AND taken IS NULL), last_seq, \
         fence, CASE WHEN home IS NULL THEN NULL ELSE place_gone(home) END FROM session WHERE id = $1",
        is_within_term()
    );
    let found = row(client, &sql, &[&id.as_str()]).await?;
    Ok(found.map(|found| {
        let owner: Option<String> = found.get(0);
        let owner = owner.filter(|owner| lives(owner, found.get(1)));
        Whereabouts {
            holder: owner.map(|owner| Holder {
                owner,
                address: found.get::<_, Option<String>>(2).unwrap_or_default(),
            }),
            home: found.get(3),
            waits: folders::waits(found.get(3), found.get(7)),
            fence: number(&found, 6),
            is_unfinished: found.get(4),
            last_seq: number(&found, 5),
        }
    }))
}

async fn beat(
    client: &deadpool_postgres::Object,
    server: &ServerInfo,
    (lease, since): (i64, i64),
) -> Result<Beat, Fault> {
    let sql = format!(
        "WITH own AS (INSERT INTO server (id, address, version, places, slots, started, until) \
           VALUES ($2, $3, $4, $1, $5, {NOW}, {NOW} + $6) ON CONFLICT (id) DO UPDATE SET until = excluded.until, \
           address = excluded.address, places = excluded.places, slots = excluded.slots RETURNING 1), \
         gone AS (DELETE FROM server WHERE until < {NOW} - {KEPT} AND NOT EXISTS \
           (SELECT 1 FROM session WHERE session.owner = server.id) RETURNING places, until), \
         seen AS ({SEEN}) \
         SELECT {NOW}, EXISTS (SELECT 1 FROM session s WHERE {}), \
           EXISTS (SELECT 1 FROM session s WHERE s.owner = $2 AND s.id IN ({WORK})), \
           ARRAY(SELECT DISTINCT i.session FROM inbox i JOIN session s ON s.id = i.session WHERE i.taken IS NULL AND s.owner = $2), \
           ARRAY(SELECT id FROM session WHERE moved_at > $7 AND $7 > 0 ORDER BY moved_at LIMIT 10000), \
           (SELECT min(v.until) - {NOW} FROM server v WHERE v.until > {NOW} AND v.id <> $2), \
           EXISTS (SELECT 1 FROM server v WHERE v.until < {NOW} AND v.listen_pid IS NOT NULL), \
           (SELECT count(*) FROM own), (SELECT count(*) FROM gone)",
        claimable()
    );
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] = [
        &server.places,
        &server.id,
        &clean(&server.address),
        &clean(&server.version),
        &i64::from(server.slots),
        &lease,
        &since,
    ];
    let found = super::sql::only(client, &sql, &values).await?;
    let sessions = |index: usize| {
        let ids: Vec<String> = found.get(index);
        ids.into_iter().map(SessionId::from).collect()
    };
    if found.get(6) {
        // Listeners that are stuck harm everybody, but not this server's lease.
        let _ = end_listeners(client).await;
    }
    Ok(Beat {
        mark: number(&found, 0),
        time: time(&found, 0),
        has_work: found.get(1),
        has_own: found.get(2),
        inbox: sessions(3),
        moved: sessions(4),
        ends_ms: maybe(&found, 5),
    })
}

/// Ends the connections on which servers listened whose lease has ended. One that is stopped does not read, and the
/// notifications for everybody pile up behind it. The name of the connection tells it from a later one with its number.
async fn end_listeners(client: &deadpool_postgres::Object) -> Result<(), Fault> {
    let sql = format!(
        "WITH lost AS (UPDATE server v SET listen_pid = NULL FROM server o WHERE o.id = v.id AND v.until < {NOW} \
           AND v.listen_pid IS NOT NULL RETURNING o.listen_pid, v.id) \
         SELECT count(pg_terminate_backend(a.pid)) FROM lost JOIN pg_stat_activity a ON a.pid = lost.listen_pid \
           AND a.application_name = 'windlass wl_' || md5(lost.id) AND a.usename = current_user"
    );
    row(client, &sql, &[]).await.map(drop)
}
