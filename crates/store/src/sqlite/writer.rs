//! The only connection that writes. Work runs on the caller's thread if nobody else writes, because waking
//! another thread takes longer than a small write, and otherwise on a thread that writes it in groups.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use tokio::sync::oneshot;
use windlass_core::log::{Durability, LogError};

use super::connection::{PATIENCE, execute};
use super::failure::told;

/// Maximum number of writes in one transaction.
const GROUP: usize = 256;

/// Time that a deferred write waits for another transaction.
const DEFERRAL: Duration = Duration::from_millis(10);

/// Pages of the log after which it is checkpointed into the file.
const CHECKPOINT: usize = 1000;

/// A log of fewer bytes is left for the next process: reading it costs that process less than checkpointing
/// it costs us, and it saves creating a new log, which would have to be synced before anything is written.
const LITTLE: u64 = 1 << 20;

/// Runs work. Dropping the last handle ends the thread, closes the database and waits for both; SQLite then
/// checkpoints its log into the file if it has grown.
#[derive(Clone)]
pub(super) struct Writer(Arc<Thread>);

struct Thread {
    jobs: Option<Sender<Job>>,
    handle: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// The connection, shared by the thread and the callers that find it free.
#[derive(Default)]
struct Shared {
    /// `None` before the database is open.
    database: Mutex<Option<Database>>,
    /// Number of writes that were sent to the thread and are not done.
    queued: AtomicUsize,
    /// Writes that wait for the next transaction.
    deferred: Mutex<Vec<Write>>,
}

struct Database {
    connection: Connection,
    /// Durability of the writes that the connection is set to.
    synced: Durability,
    /// Pages in the log.
    pages: Arc<AtomicUsize>,
    /// The file as it was when it was opened.
    file: Option<FileMark>,
}

/// Tells a file from another one that takes its place.
#[derive(PartialEq, Eq)]
struct FileMark {
    device: u64,
    node: u64,
}

impl FileMark {
    fn of(connection: &Connection) -> Option<Self> {
        let data = std::fs::metadata(connection.path()?).ok()?;
        Some(Self {
            device: data.dev(),
            node: data.ino(),
        })
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

enum Job {
    Write(Write),
    /// Runs deferred writes soon.
    Deferred,
    /// Moves the log into the file. Nobody waits for it.
    Checkpoint,
    /// Writes the file anew, so that nothing deleted remains in it or in the log.
    Scrub(oneshot::Sender<Result<(), LogError>>),
}

struct Write {
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
        let shared = Arc::new(Shared::default());
        let (opened, writes) = (Arc::clone(&opening), Arc::clone(&shared));
        let work = move || {
            let database = open().and_then(Database::new);
            let result = database.as_ref().map(drop).map_err(Clone::clone);
            *writes.lock() = database.ok();
            let is_open = result.is_ok();
            opened.end(result);
            if is_open {
                writes.serve(&queue);
            }
            // Deferred work whose notice nobody read is refused: no more can follow once the queue is gone.
            drop(queue);
            writes.deferred().clear();
        };
        let handle = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(work)
            .map_err(|error| LogError::Failed(error.to_string()))?;
        let thread = Thread {
            jobs: Some(jobs),
            handle: Some(handle),
            shared,
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
        let (write, told) = Write::new(durability, work);
        let sent = match self.0.shared.try_now(write) {
            Ok(is_long) => {
                if is_long {
                    self.send(Job::Checkpoint);
                }
                true
            }
            Err(write) => {
                self.0.shared.queued.fetch_add(1, Ordering::AcqRel);
                self.send(Job::Write(write))
            }
        };
        told.wait(sent)
    }

    /// Like [`Self::run`], for work that nobody waits for: it becomes part of the next transaction if there is one
    /// soon, because a page that two writes change is written once then.
    pub(super) fn run_later<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> impl Future<Output = Result<T, LogError>> + Send + 'static {
        let (write, told) = Write::new(Durability::Process, work);
        let is_first = {
            let mut deferred = self.0.shared.deferred();
            deferred.push(write);
            deferred.len() == 1
        };
        let sent = !is_first || self.send(Job::Deferred);
        if !sent {
            self.0.shared.deferred().clear();
        }
        told.wait(sent)
    }

    /// Runs a short query at once if nobody uses the connection, and returns it otherwise.
    pub(super) fn try_read<T, Q>(&self, query: Q) -> Result<Result<T, LogError>, Q>
    where
        Q: FnOnce(&Connection) -> Result<T, LogError>,
    {
        let guard = match self.0.shared.database.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(query),
        };
        match guard.as_ref() {
            Some(database) => Ok(query(&database.connection)),
            None => Err(query),
        }
    }

    /// Writes the file anew, so that nothing deleted remains in it or in the log.
    pub(super) fn scrub(&self) -> impl Future<Output = Result<(), LogError>> + Send + 'static {
        let (sender, receiver) = oneshot::channel();
        let sent = self.send(Job::Scrub(sender));
        Told(receiver).wait(sent)
    }

    /// Sends a job to the thread. Returns false if the thread has ended.
    fn send(&self, job: Job) -> bool {
        self.0.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

/// The result of work, once it is committed.
struct Told<T>(oneshot::Receiver<Result<T, LogError>>);

impl<T: Send + 'static> Told<T> {
    /// Waits for the result if the work was sent to somebody.
    async fn wait(self, sent: bool) -> Result<T, LogError> {
        let gone = || LogError::Failed("the store has stopped".to_owned());
        if !sent {
            return Err(gone());
        }
        self.0.await.map_err(|_| gone())?
    }
}

impl Write {
    fn new<T: Send + 'static>(
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> (Self, Told<T>) {
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
        let write = Self {
            durability,
            work: Box::new(work),
        };
        (write, Told(receiver))
    }
}

/// Writes something small, so that everything before it reaches the disk.
pub(super) fn touch(connection: &Connection) -> Result<(), LogError> {
    connection
        .execute("UPDATE beat SET count = count + 1", [])
        .map(drop)
        .map_err(told)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deferred(&self) -> MutexGuard<'_, Vec<Write>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work at once if nobody writes or waits to write, in this process or another. Work that has to wait
    /// for the disk is left to the thread. Returns true if the log has become long.
    fn try_now(&self, write: Write) -> Result<bool, Write> {
        if write.durability != Durability::Process || self.queued.load(Ordering::Acquire) > 0 {
            return Err(write);
        }
        let mut guard = match self.database.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(write),
        };
        let Some(database) = guard.as_mut() else {
            return Err(write);
        };
        if database.set(Durability::Process).is_err() || database.begin(Duration::ZERO).is_err() {
            return Err(write);
        }
        let mut group = std::mem::take(&mut *self.deferred());
        group.push(write);
        database.transact(group);
        Ok(database.pages.load(Ordering::Relaxed) >= CHECKPOINT)
    }

    /// Does the jobs of a queue until it ends, and closes the database.
    fn serve(&self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let mut jobs = vec![first];
            if matches!(jobs.first(), Some(Job::Deferred)) {
                jobs.extend(queue.recv_timeout(DEFERRAL));
            }
            while jobs.len() < GROUP
                && let Ok(next) = queue.try_recv()
            {
                jobs.push(next);
            }
            let (mut group, mut scrubs) = (Vec::new(), Vec::new());
            for job in jobs {
                match job {
                    Job::Write(write) => group.push(write),
                    Job::Scrub(tell) => scrubs.push(tell),
                    Job::Deferred | Job::Checkpoint => {}
                }
            }
            let count = group.len();
            if let Some(database) = self.lock().as_mut() {
                group.splice(0..0, std::mem::take(&mut *self.deferred()));
                database.write_all(group);
                for tell in scrubs {
                    let _ = tell.send(database.scrub());
                }
                if database.pages.load(Ordering::Relaxed) >= CHECKPOINT {
                    database.checkpoint();
                }
            }
            self.queued.fetch_sub(count, Ordering::AcqRel);
        }
        if let Some(mut database) = self.lock().take() {
            database.write_all(std::mem::take(&mut *self.deferred()));
            database.close();
        }
    }
}

impl Database {
    fn new(mut connection: Connection) -> Result<Self, LogError> {
        let pages = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&pages);
        // Instead of SQLite's own checkpoints, which would delay the write that reaches the limit.
        let count = move |_: &mut Wal, pages| {
            counter.store(usize::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(count)).map_err(told)?;
        Ok(Self {
            file: FileMark::of(&connection),
            connection,
            synced: Durability::Process,
            pages,
        })
    }

    /// Sets the durability of the following transactions.
    fn set(&mut self, wanted: Durability) -> Result<(), LogError> {
        if wanted != self.synced {
            let word = match wanted {
                Durability::Disk => "FULL",
                Durability::Process => "NORMAL",
            };
            self.connection
                .pragma_update(None, "synchronous", word)
                .map_err(told)?;
            self.synced = wanted;
        }
        Ok(())
    }

    /// Begins a transaction, waiting this long for a writer in another process.
    fn begin(&self, patience: Duration) -> Result<(), LogError> {
        // SQLite keeps writing into a file that has no name any more.
        if FileMark::of(&self.connection) != self.file {
            return Err(LogError::ReadOnly(format!(
                "{} was removed or replaced while it was in use; nothing more of this session is saved; start Windlass again",
                self.connection.path().unwrap_or("the database")
            )));
        }
        self.connection.busy_timeout(patience).map_err(told)?;
        let begun = control(&self.connection, "BEGIN IMMEDIATE");
        self.connection.busy_timeout(PATIENCE).map_err(told)?;
        begun
    }

    fn write_all(&mut self, group: Vec<Write>) {
        if group.is_empty() {
            return;
        }
        let wanted = match group.iter().any(|write| write.durability == Durability::Disk) {
            true => Durability::Disk,
            false => Durability::Process,
        };
        // Without success the writes are as durable as the ones before.
        let _ = self.set(wanted);
        match self.begin(PATIENCE) {
            Ok(()) => self.transact(group),
            Err(error) => {
                for write in group {
                    ((write.work)(&self.connection, Scope::Alone).tell)(Err(error.clone()));
                }
            }
        }
    }

    /// Runs work in the transaction that has begun, and ends it.
    fn transact(&self, group: Vec<Write>) {
        let connection = &self.connection;
        let scope = match group.len() {
            1 => Scope::Alone,
            _ => Scope::Shared,
        };
        let done: Vec<Done> = group
            .into_iter()
            .map(|write| (write.work)(connection, scope))
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

    /// Moves as much of the log into the file as its readers allow.
    fn checkpoint(&self) {
        let moved = self
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        // After a failure the next write asks again.
        if moved.is_ok() {
            self.pages.store(0, Ordering::Relaxed);
        }
    }

    /// Writes the file anew without free space, and empties the log. Another process that reads at this moment makes
    /// it wait, and fail if that takes long.
    fn scrub(&self) -> Result<(), LogError> {
        self.connection
            .execute_batch("INSERT INTO said (said) VALUES ('optimize'); VACUUM;")
            .map_err(told)?;
        let is_blocked: bool = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(told)?;
        match is_blocked {
            true => Err(LogError::Locked(
                "the text was removed, but another process keeps an old copy of the file open; run the command again \
                 when it has ended"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn close(self) {
        let log = self.connection.path().map(|path| format!("{path}-wal"));
        let size = log
            .and_then(|log| std::fs::metadata(log).ok())
            .map(|data| data.len());
        if size.is_some_and(|size| size < LITTLE) {
            let _ = self
                .connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
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
    async fn the_cause_is_reported() {
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

    /// SES-5: deferred work is done with the next write or soon without one, and fails alone.
    #[tokio::test]
    async fn deferred_work_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("x.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = wal; CREATE TABLE beat (count INTEGER); INSERT INTO beat VALUES (0)",
            )
            .unwrap();
        let (writer, _) = Writer::start(|| Ok(connection)).unwrap();
        let count = |connection: &Connection| {
            connection
                .query_row("SELECT count FROM beat", [], |row| row.get::<_, i64>(0))
                .map_err(told)
        };
        let failing = |connection: &Connection| {
            touch(connection)?;
            Err::<(), _>(LogError::Failed("no".to_owned()))
        };
        assert_eq!(writer.run_later(touch).await, Ok(()));
        let (first, second) = (writer.run_later(touch), writer.run_later(failing));
        assert_eq!(writer.run(Durability::Process, count).await, Ok(2));
        assert_eq!(first.await, Ok(()));
        assert_eq!(second.await, Err(LogError::Failed("no".to_owned())));
        let last = writer.run_later(touch);
        drop(writer);
        assert_eq!(last.await, Ok(()));
    }

    /// SES-5: without a database, no caller waits forever.
    #[tokio::test]
    async fn work_is_refused_without_a_database() {
        let (writer, opening) = Writer::start(|| Err(LogError::Failed("no".to_owned()))).unwrap();
        opening.wait().unwrap_err();
        for _ in 0..3 {
            writer.run_later(touch).await.unwrap_err();
            writer.run(Durability::Process, touch).await.unwrap_err();
        }
    }
}
