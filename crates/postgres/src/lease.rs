//! Leases: the right to write to a session. Terms are measured with the clock of the database.

use deadpool_postgres::{GenericClient, Transaction};
use windlass_core::id::SessionId;
use windlass_core::log::{Lease, LogError, NewSession, Opened};

use super::Liveness;
use super::failure::Fault;
use super::find;
use super::sql::{NOW, clean, cleaned, row, run, signed};

/// Time after which a lease expires unless renewed, in milliseconds.
const TERM: i64 = 30_000;

/// Creates a session and takes its lease.
pub(super) async fn create(
    client: &Transaction<'_>,
    new: &NewSession,
    owner: &str,
    again: bool,
) -> Result<Opened, Fault> {
    let id = new.id.clone().unwrap_or_else(SessionId::generate);
    let label = &new.label;
    let made = again && {
        let sql = "SELECT 1 FROM session WHERE id = $1 AND owner = $2 AND fence = 1";
        row(client, sql, &[&id.as_str(), &owner]).await?.is_some()
    };
    if !made {
        let sql = format!(
            "INSERT INTO session (id, parent, title, name, key, place, created_at, updated_at, owner, fence, until, \
             user_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, 1, {NOW} + $9, \
             coalesce((SELECT user_name FROM session WHERE id = $2), $10))"
        );
        run(
            client,
            &sql,
            &[
                &id.as_str(),
                &new.parent.as_ref().map(SessionId::as_str),
                &cleaned(label.title.as_deref()),
                &cleaned(label.name.as_deref()),
                &cleaned(label.key.as_deref()),
                &clean(&new.place),
                &signed(new.time.0),
                &owner,
                &TERM,
                &new.user.as_str(),
            ],
        )
        .await?;
    }
    let info = find::get(client, &id).await?;
    Ok(Opened {
        lease: Lease {
            session: id.clone(),
            owner: owner.to_owned(),
            fence: 1,
        },
        info: info.ok_or(LogError::Unknown(id))?,
        entries: Vec::new(),
        draft: None,
    })
}

/// Takes a lease, unless a live owner holds it.
pub(super) async fn take(
    client: &Transaction<'_>,
    id: &SessionId,
    owner: &str,
    lives: Liveness,
) -> Result<Lease, Fault> {
    let sql = format!("SELECT owner, fence, until > {NOW} FROM session WHERE id = $1 FOR UPDATE");
    let held = row(client, &sql, &[&id.as_str()]).await?;
    let held = held.ok_or_else(|| LogError::Unknown(id.clone()))?;
    let (holder, fence, is_within_term): (Option<String>, i64, bool) =
        (held.get(0), held.get(1), held.get(2));
    if let Some(holder) = holder.filter(|holder| holder != owner)
        && lives(&holder, is_within_term)
    {
        return Err(Fault::Log(LogError::Busy {
            session: id.clone(),
            owner: holder,
        }));
    }
    let sql = format!("UPDATE session SET owner = $2, fence = $3, until = {NOW} + $4 WHERE id = $1");
    run(client, &sql, &[&id.as_str(), &owner, &(fence + 1), &TERM]).await?;
    Ok(Lease {
        session: id.clone(),
        owner: owner.to_owned(),
        fence: (fence + 1).unsigned_abs(),
    })
}

pub(super) async fn renew(client: &Transaction<'_>, lease: &Lease) -> Result<(), Fault> {
    let sql = format!("UPDATE session SET until = {NOW} + $4 WHERE id = $1 AND owner = $2 AND fence = $3");
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&lease.session.as_str(), &lease.owner, &signed(lease.fence), &TERM];
    match run(client, &sql, &values).await? {
        0 => Err(Fault::Log(LogError::Lost(lease.session.clone()))),
        _ => Ok(()),
    }
}

pub(super) async fn release(client: &Transaction<'_>, lease: &Lease) -> Result<(), Fault> {
    run(
        client,
        "UPDATE session SET owner = NULL, until = 0 WHERE id = $1 AND owner = $2 AND fence = $3",
        &[&lease.session.as_str(), &lease.owner, &signed(lease.fence)],
    )
    .await
    .map(drop)
}

/// Returns the live owner of the lease, if there is one.
pub(super) async fn holder(
    client: &impl GenericClient,
    id: &SessionId,
    lives: Liveness,
) -> Result<Option<String>, Fault> {
    let sql = format!("SELECT owner, until > {NOW} FROM session WHERE id = $1");
    let held = row(client, &sql, &[&id.as_str()]).await?;
    let owner = held.and_then(|held| {
        let owner: Option<String> = held.get(0);
        owner.filter(|owner| lives(owner, held.get(1)))
    });
    Ok(owner)
}
