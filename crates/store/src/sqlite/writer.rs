//! The only thread that writes.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::oneshot;
use windlass_core::log::{Durability, LogError};

use super::connection::execute;
use super::failure::told;

/// Maximum number of writes in one transaction.
const GROUP: usize = 256;

/// A log of fewer bytes is left for the next process: reading it costs that process less than checkpointing
/// it costs us, and it saves creating a new log, which would have to be synced before anything is written.
const LITTLE: u64 = 1 << 20;

/// Sends work to the thread. Dropping the last handle ends the thread, closes the database and waits for
/// both; SQLite then checkpoints its log into the file if it has grown.
#[derive(Clone)]
pub(super) struct Writer(Arc<Thread>);

struct Thread {
    jobs: Option<Sender<Job>>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// State of a database that is being opened, for callers that must wait for it.
#[derive(Default)]
pub(super) struct Opening {
    ended: Mutex<Option<Result<(), LogError>>>,
    is_over: Condvar,
}

impl Opening {
    fn end(&self, opened: Result<(), LogError>) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        self.is_over.notify_all();
    }

    /// Waits until the database is open. Returns the cause if it cannot be opened.
    pub(super) fn wait(&self) -> Result<(), LogError> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*ended {
                Some(opened) => return opened.clone(),
                None => ended = self.is_over.wait(ended).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

struct Job {
    durability: Durability,
    work: Work,
}

/// Work to be done in a transaction.
type Work = Box<dyn FnOnce(&Connection, Scope) -> Done + Send>;

/// Work that is done, but not committed.
struct Done {
    succeeded: bool,
    tell: Tell,
}

/// Reports the result to the caller once it is known whether the transaction was committed.
type Tell = Box<dyn FnOnce(Result<(), LogError>) + Send>;

impl Writer {
    /// Starts the thread, which opens the database first. Work waits for that, and is refused if it fails.
    pub(super) fn start(
        open: impl FnOnce() -> Result<Connection, LogError> + Send + 'static,
    ) -> Result<(Self, Arc<Opening>), LogError> {
        let (jobs, queue) = channel();
        let opening = Arc::new(Opening::default());
        let opened = Arc::clone(&opening);
        let work = move || {
            let connection = open();
            opened.end(connection.as_ref().map(drop).map_err(Clone::clone));
            if let Ok(connection) = connection {
                write(&connection, &queue);
            }
        };
        let handle = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(work)
            .map_err(|error| LogError::Failed(error.to_string()))?;
        let thread = Thread {
            jobs: Some(jobs),
            handle: Some(handle),
        };
        Ok((Self(Arc::new(thread)), opening))
    }

    /// Runs work in a transaction, possibly together with other work; each piece fails alone. Queued work is
    /// done in order, even if its caller no longer waits.
    pub(super) fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> impl Future<Output = Result<T, LogError>> + Send + 'static {
        let (sender, receiver) = oneshot::channel();
        let work = move |connection: &Connection, scope: Scope| -> Done {
            // Without a transaction nothing may be written; the reason there is none is reported below.
            let done = (!connection.is_autocommit()).then(|| scope.run(connection, work));
            let succeeded = matches!(done, Some(Ok(_)));
            let tell = move |committed: Result<(), LogError>| {
                let told = match (done, committed) {
                    (Some(Err(error)), _) | (_, Err(error)) => Err(error),
                    (Some(Ok(value)), Ok(())) => Ok(value),
                    (None, Ok(())) => Err(LogError::Failed("no transaction".to_owned())),
                };
                let _ = sender.send(told);
            };
            Done {
                succeeded,
                tell: Box::new(tell),
            }
        };
        let job = Job {
            durability,
            work: Box::new(work),
        };
        let sent = self.0.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        async move {
            let gone = || LogError::Failed("the store has stopped".to_owned());
            if !sent {
                return Err(gone());
            }
            receiver.await.map_err(|_| gone())?
        }
    }
}

/// Writes something small, so that everything before it reaches the disk.
pub(super) fn touch(connection: &Connection) -> Result<(), LogError> {
    connection
        .execute("UPDATE beat SET count = count + 1", [])
        .map(drop)
        .map_err(told)
}

fn write(connection: &Connection, queue: &Receiver<Job>) {
    let mut synced = Durability::Process;
    while let Ok(first) = queue.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        let wanted = match group.iter().any(|job| job.durability == Durability::Disk) {
            true => Durability::Disk,
            false => Durability::Process,
        };
        if wanted != synced {
            let word = if wanted == Durability::Disk {
                "FULL"
            } else {
                "NORMAL"
            };
            if connection.pragma_update(None, "synchronous", word).is_ok() {
                synced = wanted;
            }
        }
        transact(connection, group);
    }
    let log = connection.path().map(|path| format!("{path}-wal"));
    let size = log
        .and_then(|log| std::fs::metadata(log).ok())
        .map(|data| data.len());
    if size.is_some_and(|size| size < LITTLE) {
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}

fn transact(connection: &Connection, group: Vec<Job>) {
    if let Err(error) = control(connection, "BEGIN IMMEDIATE") {
        for job in group {
            ((job.work)(connection, Scope::Alone).tell)(Err(error.clone()));
        }
        return;
    }
    let scope = match group.len() {
        1 => Scope::Alone,
        _ => Scope::Shared,
    };
    let done: Vec<Done> = group
        .into_iter()
        .map(|job| (job.work)(connection, scope))
        .collect();
    // Work that is alone has no savepoint to go back to.
    let is_void = matches!(scope, Scope::Alone) && done.iter().any(|done| !done.succeeded);
    let committed = match is_void {
        true => Ok(()),
        false => control(connection, "COMMIT"),
    };
    if is_void || committed.is_err() {
        let _ = control(connection, "ROLLBACK");
    }
    for done in done {
        (done.tell)(committed.clone());
    }
}

/// Other work in the same transaction.
#[derive(Clone, Copy)]
enum Scope {
    /// There is none: if the work fails, the transaction is rolled back.
    Alone,
    /// There is some: work runs in a savepoint.
    Shared,
}

impl Scope {
    /// Runs work. In a shared transaction it leaves nothing behind if it fails.
    fn run<T>(
        self,
        connection: &Connection,
        work: impl FnOnce(&Connection) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if matches!(self, Self::Alone) {
            return work(connection);
        }
        control(connection, "SAVEPOINT one")?;
        let done = work(connection);
        let ended = match done {
            Ok(_) => Ok(()),
            Err(_) => control(connection, "ROLLBACK TO one"),
        };
        let ended = ended.and_then(|()| control(connection, "RELEASE one"));
        // A full disk ends the whole transaction, so there is no savepoint to roll back to: the first error is
        // the cause.
        done.and_then(|value| ended.map(|()| value))
    }
}

/// Runs a statement that begins or ends a transaction or a part of one.
fn control(connection: &Connection, statement: &str) -> Result<(), LogError> {
    execute(connection, statement, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-5: a failed write reports its cause, not that there was no transaction.
    #[tokio::test]
    async fn the_cause_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let other = Connection::open(&path).unwrap();
        other
            .execute_batch("CREATE TABLE beat (count INTEGER); BEGIN IMMEDIATE")
            .unwrap();
        let impatient = Connection::open(&path).unwrap();
        impatient.busy_timeout(std::time::Duration::ZERO).unwrap();
        let (writer, _) = Writer::start(|| Ok(impatient)).unwrap();
        let refused = writer.run(Durability::Process, touch).await;
        assert!(matches!(refused, Err(LogError::Locked(_))), "{refused:?}");
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(writer.run(Durability::Process, touch).await, Ok(()));
    }
}
