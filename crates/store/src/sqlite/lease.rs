//! Leases: the right to write to a session.

use std::sync::OnceLock;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Lease, LogError, NewSession, Opened};

use super::failure::told;
use super::find;
use super::process::{self, Process};

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
            "INSERT INTO session (id, parent, title, name, key, place, created_at, updated_at, user_name) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, coalesce((SELECT user_name FROM session WHERE id = ?2), ?8))",
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
                time,
                new.user.as_str()
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
pub(super) fn lives(owner: &str, until: i64, now: Timestamp) -> bool {
    is_alive(owner, until > signed(now.0))
}

/// Returns true if an owner is alive: a running process on this machine, or one elsewhere that is within its term.
///
/// An owner has the form `host/pid/start/id`; for any other form, only the term counts.
fn is_alive(owner: &str, within_term: bool) -> bool {
    let mut parts = owner.split('/');
    let (Some(host), Some(pid), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return within_term;
    };
    if host != hostname() {
        return within_term;
    }
    match pid.parse().ok().and_then(Process::find) {
        None => false,
        Some(Process { started: Some(time) }) => time == start,
        // Its number may belong to another process by now, so it is treated like one elsewhere: it renews its
        // term while it lives. If it was only suspended, the fence keeps it from writing later.
        Some(Process { started: None }) => within_term,
    }
}

/// Returns true if an owner of sessions in a shared database is alive.
///
/// Machines and containers may have the same name, so a process is looked for only if its owner's mark says that it
/// belongs to this one. For any other owner, only the term counts.
pub(crate) fn is_alive_anywhere(owner: &str, within_term: bool) -> bool {
    match owner.rsplit_once('.') {
        Some((_, mark)) if mark == machine() => is_alive(owner, within_term),
        _ => within_term,
    }
}

/// Returns a mark of this machine since its last start, and of the container whose processes are seen.
fn machine() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&process::machine()).update(hostname().as_bytes());
        hasher.finalize().to_hex().chars().take(12).collect()
    })
}

fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().replace('/', "_")
}

/// Returns a name for this process as an owner of sessions. The owner counts as alive until the process ends.
/// Every call returns a different name.
pub fn owner() -> String {
    let pid = std::process::id();
    let own = i32::try_from(pid).ok().and_then(Process::find);
    let start = own.and_then(|own| own.started).unwrap_or_default();
    let id = uuid::Uuid::new_v4();
    format!("{}/{pid}/{start}/{}.{}", hostname(), id.simple(), machine())
}

/// Converts to SQLite's signed integers. None of our numbers is too large.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-2, LIB-2: the term of an owner on this machine counts only where the system does not tell one process from the
    /// next with the same number; a process that has ended never holds a lease.
    #[test]
    fn the_term_counts_where_start_times_are_unknown() {
        let own = owner();
        let (soon, late) = (Timestamp(1_000), Timestamp(3_000));
        let has_times = i32::try_from(std::process::id())
            .ok()
            .and_then(Process::find)
            .is_some_and(|own| own.started.is_some());
        assert!(lives(&own, 2_000, soon));
        assert_eq!(lives(&own, 2_000, late), has_times);
        let reused = format!("{}/{}/1/x", hostname(), std::process::id());
        assert_eq!(lives(&reused, 2_000, soon), !has_times);
        assert!(!lives(&reused, 2_000, late));
        let ended = format!("{}/{}/1/x", hostname(), i32::MAX);
        assert!(!lives(&ended, 2_000, soon));
        assert!(lives("elsewhere/1/1/x", 2_000, soon));
        assert!(!lives("elsewhere/1/1/x", 2_000, late));
        // A machine of the same name has another mark.
        let mark = machine();
        assert!(is_alive_anywhere(&format!("{ended}.other"), true));
        assert!(!is_alive_anywhere(&format!("{ended}.other"), false));
        assert!(!is_alive_anywhere(&format!("{ended}.{mark}"), true));
    }
}
