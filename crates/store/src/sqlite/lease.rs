//! Leases: the right to write to a session.

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Lease, LogError, NewSession, Opened};

use super::failure::told;
use super::find;

/// Time after which a lease expires unless renewed, in milliseconds.
const TERM: u64 = 30_000;

/// Creates a session and takes its lease.
pub(super) fn create(
    connection: &Connection,
    new: NewSession,
    owner: &str,
    now: Timestamp,
) -> Result<Opened, LogError> {
    let id = new.id.unwrap_or_else(SessionId::generate);
    let parent = new.parent.as_ref().map(SessionId::as_str);
    let label = &new.label;
    connection
        .prepare_cached(
            "INSERT INTO session (id, parent, title, name, key, place, created_at, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        )
        .and_then(|mut insert| {
            let time = signed(new.time.0);
            insert.execute(params![
                id.as_str(),
                parent,
                label.title,
                label.name,
                label.key,
                new.place,
                time
            ])
        })
        .map_err(told)?;
    let lease = give(connection, &id, (owner, 1), now)?;
    let info = find::get(connection, &id)?.ok_or(LogError::Unknown(id))?;
    Ok(Opened {
        lease,
        info,
        entries: Vec::new(),
        draft: None,
    })
}

/// Takes a lease, unless a live owner holds it.
pub(super) fn take(
    connection: &Connection,
    id: &SessionId,
    owner: &str,
    now: Timestamp,
) -> Result<Lease, LogError> {
    if find::get(connection, id)?.is_none() {
        return Err(LogError::Unknown(id.clone()));
    }
    let held: Option<(Option<String>, i64, i64)> = connection
        .prepare_cached("SELECT owner, fence, until FROM lease WHERE session = ?1")
        .and_then(|mut select| {
            select
                .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .map_err(told)?;
    let Some((holder, fence, until)) = held else {
        return give(connection, id, (owner, 1), now);
    };
    if let Some(holder) = holder.filter(|holder| holder != owner)
        && lives(&holder, until, now)
    {
        return Err(LogError::Busy {
            session: id.clone(),
            owner: holder,
        });
    }
    give(connection, id, (owner, fence.unsigned_abs() + 1), now)
}

fn give(
    connection: &Connection,
    id: &SessionId,
    (owner, fence): (&str, u64),
    now: Timestamp,
) -> Result<Lease, LogError> {
    connection
        .prepare_cached(
            "INSERT INTO lease (session, owner, fence, until) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (session) DO UPDATE SET owner = excluded.owner, fence = excluded.fence, until = excluded.until",
        )
        .and_then(|mut insert| {
            insert.execute(params![id.as_str(), owner, signed(fence), signed(now.0 + TERM)])
        })
        .map_err(told)?;
    Ok(Lease {
        session: id.clone(),
        owner: owner.to_owned(),
        fence,
    })
}

/// Refuses a writer whose lease was taken over by another owner.
pub(super) fn check(connection: &Connection, lease: &Lease) -> Result<(), LogError> {
    let holds: Option<i64> = connection
        .prepare_cached("SELECT 1 FROM lease WHERE session = ?1 AND owner = ?2 AND fence = ?3")
        .and_then(|mut select| {
            let key = params![lease.session.as_str(), lease.owner, signed(lease.fence)];
            select.query_row(key, |row| row.get(0)).optional()
        })
        .map_err(told)?;
    match holds {
        Some(_) => Ok(()),
        None => Err(LogError::Lost(lease.session.clone())),
    }
}

pub(super) fn renew(connection: &Connection, lease: &Lease, now: Timestamp) -> Result<(), LogError> {
    check(connection, lease)?;
    connection
        .execute(
            "UPDATE lease SET until = ?2 WHERE session = ?1",
            params![lease.session.as_str(), signed(now.0 + TERM)],
        )
        .map(drop)
        .map_err(told)
}

pub(super) fn release(connection: &Connection, lease: &Lease) -> Result<(), LogError> {
    let key = params![lease.session.as_str(), lease.owner, signed(lease.fence)];
    connection
        .execute(
            "UPDATE lease SET owner = NULL, until = 0 WHERE session = ?1 AND owner = ?2 AND fence = ?3",
            key,
        )
        .map(drop)
        .map_err(told)
}

/// Returns the live owner of the lease, if there is one.
pub(super) fn holder(
    connection: &Connection,
    id: &SessionId,
    now: Timestamp,
) -> Result<Option<String>, LogError> {
    let held: Option<(Option<String>, i64)> = connection
        .query_row(
            "SELECT owner, until FROM lease WHERE session = ?1",
            [id.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
        .map_err(told)?;
    Ok(held.and_then(|(owner, until)| owner.filter(|owner| lives(owner, until, now))))
}

/// Returns true if an owner is still alive: a running process on this machine, or one elsewhere whose term
/// has not ended.
///
/// An owner has the form `host/pid/start/id`; for any other form, only the term counts.
fn lives(owner: &str, until: i64, now: Timestamp) -> bool {
    let within_term = until > signed(now.0);
    let mut parts = owner.split('/');
    let (Some(host), Some(pid), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return within_term;
    };
    if host != hostname() {
        return within_term;
    }
    started(pid).is_some_and(|running| running == start)
}

/// Returns the start time of a process, in kernel ticks, or `None` if it does not exist.
fn started(pid: &str) -> Option<String> {
    let pid: u32 = pid.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    // A zombie writes nothing any more.
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().replace('/', "_")
}

/// Returns a name for this process as an owner of sessions. The owner counts as alive until the process ends.
/// Every call returns a different name.
pub fn owner() -> String {
    let pid = std::process::id();
    let start = started(&pid.to_string()).unwrap_or_default();
    format!("{}/{pid}/{start}/{}", hostname(), uuid::Uuid::new_v4().simple())
}

/// Converts to SQLite's signed integers. None of our numbers is too large.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
