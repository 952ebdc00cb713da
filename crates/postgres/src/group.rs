//! Appends of many sessions, committed together.
//!
//! Appends that arrive while others are on their way share the next transaction. Two connections take turns, so that
//! one group travels while another is flushed to disk. A session has at most one batch under way.
//!
//! After a large group, the next one waits for a moment: the sessions that were told about the first will append again, and
//! a statement costs about as much for thirty of them as for three. A few sessions never wait for each other.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::sync::{Notify, oneshot};
use windlass_core::log::LogError;

use super::append::{self, Prepared};
use super::context::{Context, Patience};
use super::failure::Fault;
use super::sql::row;

/// Maximum number of batches in one transaction.
const GROUP: usize = 256;

/// Number of connections that append.
const WRITERS: usize = 2;

/// Maximum time that a group waits for more batches.
const LINGER: Duration = Duration::from_millis(1);

/// Result of an append.
type Outcome = Result<(), LogError>;

/// Batches that wait.
#[derive(Default)]
pub(super) struct Appends {
    queue: VecDeque<Pending>,
    /// Sessions with a batch under way.
    busy: HashSet<String>,
    writers: usize,
    /// Number of batches that a writer waits for; `None` if no writer waits.
    wanted: Option<usize>,
    /// Notified when that many wait.
    enough: Rc<Notify>,
}

struct Pending {
    batch: Prepared,
    done: oneshot::Sender<Outcome>,
}

impl Appends {
    /// Takes the batches of the next group: the first of each session that has none under way.
    fn take(&mut self) -> Vec<Pending> {
        let (mut group, mut rest) = (Vec::new(), VecDeque::new());
        let mut passed: HashSet<String> = HashSet::new();
        for pending in self.queue.drain(..) {
            let session = pending.batch.lease.session.as_str();
            if group.len() < GROUP && !passed.contains(session) && self.busy.insert(session.to_owned()) {
                group.push(pending);
            } else {
                passed.insert(session.to_owned());
                rest.push_back(pending);
            }
        }
        self.queue = rest;
        group
    }
}

/// Appends a batch, with those of other sessions that wait.
pub(super) async fn append(context: Rc<Context>, batch: Prepared) -> Result<(), LogError> {
    context.opened()?;
    let (done, ended) = oneshot::channel();
    {
        let mut appends = context.appends.borrow_mut();
        appends.queue.push_back(Pending { batch, done });
        match appends.wanted {
            Some(wanted) if appends.queue.len() >= wanted => appends.enough.notify_one(),
            None if appends.writers < WRITERS => {
                appends.writers += 1;
                tokio::task::spawn_local(write(Rc::clone(&context)));
            }
            _ => {}
        }
    }
    ended
        .await
        .map_err(|_| LogError::Failed("the store is closed".to_owned()))?
}

/// Writes groups until none waits.
async fn write(context: Rc<Context>) {
    // Beside a large group, a second one is worth its statement if it is not much smaller.
    let mut wanted = context.appends.borrow().busy.len() / 2;
    loop {
        gather(&context, wanted).await;
        let group = context.appends.borrow_mut().take();
        if group.is_empty() {
            context.appends.borrow_mut().writers -= 1;
            return;
        }
        let (batches, waiting): (Vec<Prepared>, Vec<_>) = group
            .into_iter()
            .map(|pending| (pending.batch, pending.done))
            .unzip();
        wanted = batches.len() / 4 * 3;
        let outcomes = store(&context, &batches).await;
        {
            let mut appends = context.appends.borrow_mut();
            for batch in &batches {
                appends.busy.remove(batch.lease.session.as_str());
            }
        }
        for (done, outcome) in waiting.into_iter().zip(outcomes) {
            // Nobody may wait any more.
            let _ = done.send(outcome);
        }
    }
}

/// Waits for a moment until there are as many batches as wanted.
async fn gather(context: &Context, wanted: usize) {
    let enough = {
        let mut appends = context.appends.borrow_mut();
        // Another writer waits for them already.
        if appends.queue.len() >= wanted || appends.wanted.is_some() {
            return;
        }
        appends.wanted = Some(wanted);
        Rc::clone(&appends.enough)
    };
    let _ = tokio::time::timeout(LINGER, enough.notified()).await;
    context.appends.borrow_mut().wanted = None;
}

/// Stores a group. One that fails as a whole is stored batch by batch, so that a bad one harms no other.
async fn store(context: &Context, batches: &[Prepared]) -> Vec<Outcome> {
    let all: Vec<&Prepared> = batches.iter().collect();
    match attempt(context, &all).await {
        Ok(outcomes) => outcomes,
        Err(error) if batches.len() == 1 => vec![Err(error)],
        Err(_) => {
            let mut outcomes = Vec::with_capacity(batches.len());
            for batch in batches {
                let one = attempt(context, &[batch]).await;
                outcomes.push(one.and_then(|mut one| one.pop().unwrap_or(Ok(()))));
            }
            outcomes
        }
    }
}

/// Sends a group until its outcome is known. After a lost connection the database is asked what it has; a batch that it
/// has is never sent again.
async fn attempt(context: &Context, batches: &[&Prepared]) -> Result<Vec<Outcome>, LogError> {
    let mut outcomes: Vec<Option<Outcome>> = batches.iter().map(|_| None).collect();
    let mut patience = context.patience();
    let mut is_ambiguous = false;
    loop {
        if is_ambiguous {
            look_again(context, (batches, &mut outcomes), &mut patience).await?;
        }
        let open: Vec<usize> = (0..batches.len())
            .filter(|place| outcomes[*place].is_none())
            .collect();
        if open.is_empty() {
            return Ok(outcomes
                .into_iter()
                .map(|outcome| outcome.unwrap_or(Ok(())))
                .collect());
        }
        let sent: Vec<&Prepared> = open.iter().map(|place| batches[*place]).collect();
        let done = async {
            let mut client = context.client().await?;
            context.times.sent();
            let stored = append::send(&mut client, &sent).await?;
            refusals(&client, &sent, stored).await
        };
        match done.await {
            Ok(told) => {
                for (place, outcome) in open.into_iter().zip(told) {
                    outcomes[place] = Some(outcome);
                }
            }
            Err(fault) if fault.is_lost() => {
                is_ambiguous = true;
                patience.wait(fault).await?;
            }
            // Undone by the database; the same group may succeed.
            Err(fault) if fault.is_conflict() && batches.len() == 1 => patience.wait(fault).await?,
            Err(fault) => return Err(fault.told()),
        }
    }
}

/// Finds out why batches were left out.
async fn refusals(
    client: &Object,
    sent: &[&Prepared],
    stored: HashSet<String>,
) -> Result<Vec<Outcome>, Fault> {
    let mut outcomes = Vec::with_capacity(sent.len());
    for batch in sent {
        let session = &batch.lease.session;
        if stored.contains(session.as_str()) {
            outcomes.push(Ok(()));
            continue;
        }
        outcomes.push(Err(match standing(client, batch).await? {
            Standing::Gone => LogError::Unknown(session.clone()),
            Standing::Lost => LogError::Lost(session.clone()),
            Standing::Last(last) => misplaced(batch, last),
        }));
    }
    Ok(outcomes)
}

/// State of a session as its writer sees it.
enum Standing {
    Gone,
    Lost,
    /// Its last entry.
    Last(u64),
}

async fn standing(client: &Object, batch: &Prepared) -> Result<Standing, Fault> {
    let lease = &batch.lease;
    let sql = "SELECT owner, fence, last_seq FROM session WHERE id = $1";
    let Some(found) = row(client, sql, &[&lease.session.as_str()]).await? else {
        return Ok(Standing::Gone);
    };
    let (owner, fence, last): (Option<String>, i64, i64) = (found.get(0), found.get(1), found.get(2));
    if owner.as_deref() != Some(lease.owner.as_str()) || fence.unsigned_abs() != lease.fence {
        return Ok(Standing::Lost);
    }
    Ok(Standing::Last(last.unsigned_abs()))
}

/// Finds out what became of batches that were under way when the connection was lost. Those that the database does not
/// have keep no outcome.
async fn look_again(
    context: &Context,
    (batches, outcomes): (&[&Prepared], &mut [Option<Outcome>]),
    patience: &mut Patience<'_>,
) -> Result<(), LogError> {
    for (batch, outcome) in batches.iter().zip(outcomes) {
        while outcome.is_none() {
            let looked = async {
                let client = context.client().await?;
                look(&client, batch).await
            };
            match looked.await {
                Ok(found) => {
                    *outcome = found;
                    break;
                }
                Err(fault) if fault.is_lost() => patience.wait(fault).await?,
                Err(fault) => return Err(fault.told()),
            }
        }
    }
    Ok(())
}

async fn look(client: &Object, batch: &Prepared) -> Result<Option<Outcome>, Fault> {
    let session = &batch.lease.session;
    let last = match standing(client, batch).await? {
        Standing::Gone => return Ok(Some(Err(LogError::Unknown(session.clone())))),
        Standing::Lost => return Ok(Some(Err(LogError::Lost(session.clone())))),
        Standing::Last(last) => last,
    };
    if batch.is_without_entries() {
        let sql = "SELECT 1 FROM booking WHERE id = $1";
        let known = match batch.booking_id() {
            Some(id) => row(client, sql, &[&id]).await?.is_some(),
            // A draft may be written twice.
            None => false,
        };
        return Ok(known.then_some(Ok(())));
    }
    let (before, after) = (batch.first().saturating_sub(1), batch.last());
    Ok(match last {
        last if last == after => Some(Ok(())),
        last if last == before => None,
        last => Some(Err(misplaced(batch, last))),
    })
}

/// Explains why a batch does not fit after the last entry that the database has.
fn misplaced(batch: &Prepared, last: u64) -> LogError {
    let (session, before) = (&batch.lease.session, batch.first().saturating_sub(1));
    if last >= before {
        return LogError::Failed(format!(
            "entry {} of session {session} cannot follow entry {last}; nothing was written",
            batch.first()
        ));
    }
    LogError::Damaged {
        what: format!("session {session}"),
        why: format!(
            "the database went back in time: its last entry is {last}, and {before} was acknowledged. Probably a backup \
             or a standby took its place; start the session again to continue from entry {last}"
        ),
    }
}
