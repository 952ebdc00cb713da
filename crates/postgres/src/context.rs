//! The thread of a store: its connections, and the work that is sent to them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use deadpool::managed::QueueMode;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Transaction};
use futures_util::future::LocalBoxFuture;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::LocalSet;
use windlass_core::clock::Clock;
use windlass_core::id::SessionId;
use windlass_core::log::LogError;

use super::address::Address;
use super::failure::{Fault, described};
use super::group::Appends;
use super::memory::Near;
use super::times::AppendTimes;
use super::{Liveness, schema, tls};

/// Maximum number of connections of one store.
const CONNECTIONS: usize = 8;

/// Time for which work waits for a server that went away.
const PATIENCE: Duration = Duration::from_secs(20);

/// First and longest pause between attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Maximum number of attempts of work that the database undid because of other work.
const CONFLICTS: u32 = 8;

/// Everything that work needs. Lives on the thread of the store.
pub(super) struct Context {
    pool: Result<Pool, LogError>,
    /// The extension that compares vectors, if the server has it.
    pub(super) near: Option<Near>,
    address: Address,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) lives: Liveness,
    pub(super) appends: RefCell<Appends>,
    pub(super) times: Arc<AppendTimes>,
    /// Sessions whose last turn is not indexed yet.
    pub(super) indexing: RefCell<HashSet<SessionId>>,
    pub(super) indexed: Notify,
}

/// Parts of a store that its thread shares.
type Parts = (Arc<dyn Clock>, Liveness, Arc<AppendTimes>);

type Job = Box<dyn FnOnce(Rc<Context>) -> LocalBoxFuture<'static, ()> + Send>;

/// The thread. Dropping the last handle waits until all work is done.
pub(super) struct Thread {
    jobs: Option<mpsc::UnboundedSender<Job>>,
    handle: Option<JoinHandle<()>>,
    opening: Arc<Opening>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// State of a database that is being opened.
#[derive(Default)]
struct Opening {
    ended: Mutex<Option<Result<(), LogError>>>,
    is_over: Condvar,
}

impl Thread {
    /// Starts the thread, which connects first.
    pub(super) fn start(address: Address, parts: Parts) -> Result<Self, LogError> {
        let (jobs, queue) = mpsc::unbounded_channel();
        let opening = Arc::new(Opening::default());
        let ended = Arc::clone(&opening);
        let handle = std::thread::Builder::new()
            .name("windlass-postgres".to_owned())
            .spawn(move || work(address, parts, queue, &ended))
            .map_err(|error| LogError::Failed(error.to_string()))?;
        Ok(Self {
            jobs: Some(jobs),
            handle: Some(handle),
            opening,
        })
    }

    /// Waits until the database is open. Blocks the thread.
    pub(super) fn wait(&self) -> Result<(), LogError> {
        let mut ended = self.opening.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*ended {
                Some(opened) => return opened.clone(),
                None => {
                    let waited = self.opening.is_over.wait(ended);
                    ended = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Runs work on the thread. It continues if the caller stops waiting.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Context>) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let closed = || LogError::Failed("the store is closed".to_owned());
        let (done, ended) = oneshot::channel();
        let job: Job = Box::new(move |context| {
            Box::pin(async move {
                // Nobody may wait any more.
                let _ = done.send(work(context).await);
            })
        });
        let jobs = self.jobs.as_ref().ok_or_else(closed)?;
        jobs.send(job).map_err(|_| closed())?;
        ended.await.map_err(|_| closed())?
    }
}

fn work(
    address: Address,
    (clock, lives, times): Parts,
    mut queue: mpsc::UnboundedReceiver<Job>,
    opening: &Opening,
) {
    let end = |opened: Result<(), LogError>| {
        *opening.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        opening.is_over.notify_all();
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(LogError::Failed(error.to_string()))),
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let opened = open(&address).await;
        end(opened.as_ref().map(drop).map_err(Clone::clone));
        let (pool, near) = match opened {
            Ok((pool, near)) => (Ok(pool), near),
            Err(error) => (Err(error), None),
        };
        let context = Rc::new(Context {
            pool,
            near,
            address,
            clock,
            lives,
            appends: RefCell::default(),
            times,
            indexing: RefCell::default(),
            indexed: Notify::new(),
        });
        while let Some(job) = queue.recv().await {
            tokio::task::spawn_local(job(Rc::clone(&context)));
        }
    });
    // What was asked for before the last handle was dropped.
    runtime.block_on(local);
}

/// Connects, and makes the tables.
async fn open(address: &Address) -> Result<(Pool, Option<Near>), LogError> {
    let manager = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(address.config.clone(), tls::connector(&address.trust)?, manager);
    let pool = Pool::builder(manager)
        .max_size(CONNECTIONS)
        // The connection used last has the statements and tables in its caches.
        .queue_mode(QueueMode::Lifo)
        .build()
        .map_err(|error| LogError::Failed(error.to_string()))?;
    let prepared = async {
        let mut client = pool.get().await?;
        schema::prepare(&mut client).await?;
        Near::prepare(&client).await
    };
    let near = prepared.await.map_err(|fault: Fault| refused(address, fault))?;
    Ok((pool, near))
}

/// Explains why a database cannot be opened, and what to do.
fn refused(address: &Address, fault: Fault) -> LogError {
    let Fault::Database(error) = fault else {
        return fault.told();
    };
    let (why, user, name) = (described(&error), address.user(), address.database());
    let Some(code) = error.code() else {
        return LogError::Failed(format!(
            "Postgres at {address} cannot be used: {why}; check the host, the port and `sslmode` in the store URL, and \
             that the server runs"
        ));
    };
    match code.code() {
        "28P01" | "28000" => LogError::Failed(format!(
            "Postgres at {address} refused the user: {why}; check the user and the password in the store URL"
        )),
        "3D000" => LogError::Failed(format!(
            "Postgres at {address} has no such database: {why}; create it with `createdb {name}`"
        )),
        "42501" => LogError::ReadOnly(format!(
            "the user `{user}` may not make the tables in {address}: {why}; run `GRANT CREATE ON DATABASE \"{name}\" TO \
             \"{user}\"` as its owner. If the tables belong to another user, use that user in the store URL"
        )),
        "53300" => LogError::Failed(format!(
            "Postgres at {address} has no connection left: {why}; raise `max_connections`, or end other programs"
        )),
        _ => match Fault::Database(error).told() {
            LogError::Failed(why) => LogError::Failed(format!("Postgres at {address}: {why}")),
            other => other,
        },
    }
}

/// Waits between attempts to connect, and gives up.
pub(super) struct Patience<'a> {
    context: &'a Context,
    since: Option<Duration>,
    pause: Duration,
}

impl Patience<'_> {
    /// Waits before another attempt. Fails if the server has been away for too long.
    pub(super) async fn wait(&mut self, fault: Fault) -> Result<(), LogError> {
        let clock = &self.context.clock;
        let since = *self.since.get_or_insert_with(|| clock.elapsed());
        if clock.elapsed().saturating_sub(since) >= PATIENCE {
            let why = match &fault {
                Fault::Database(error) => described(error),
                _ => fault.told().to_string(),
            };
            return Err(LogError::Failed(format!(
                "the connection to Postgres at {} was lost, and could not be made again within {} s: {why}; everything \
                 acknowledged before is stored",
                self.context.address,
                PATIENCE.as_secs()
            )));
        }
        clock.sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        Ok(())
    }
}

impl Context {
    pub(super) fn patience(&self) -> Patience<'_> {
        Patience {
            context: self,
            since: None,
            pause: PAUSES.0,
        }
    }

    /// Returns why the database could not be opened.
    pub(super) fn opened(&self) -> Result<(), LogError> {
        self.pool.as_ref().map(drop).map_err(Clone::clone)
    }

    /// Returns what a connection outside the pool needs.
    pub(super) fn listener(&self) -> (&tokio_postgres::Config, &super::address::Trust) {
        (&self.address.config, &self.address.trust)
    }

    /// Returns a connection.
    pub(super) async fn client(&self) -> Result<Object, Fault> {
        let pool = self.pool.as_ref().map_err(Clone::clone)?;
        Ok(pool.get().await?)
    }

    /// Runs work that changes nothing, again if the connection is lost.
    pub(super) async fn read<T>(
        &self,
        work: impl AsyncFn(&Object) -> Result<T, Fault>,
    ) -> Result<T, LogError> {
        let mut patience = self.patience();
        loop {
            let read = async {
                let client = self.client().await?;
                work(&client).await
            };
            match read.await {
                Ok(read) => return Ok(read),
                Err(fault) if fault.is_lost() => patience.wait(fault).await?,
                Err(fault) => return Err(fault.told()),
            }
        }
    }

    /// Runs work in a transaction. If the connection is lost, the work runs again, and is told that the first attempt
    /// may have been committed: it then looks before it changes anything.
    pub(super) async fn write<T>(
        &self,
        work: impl AsyncFn(&Transaction<'_>, bool) -> Result<T, Fault>,
    ) -> Result<T, LogError> {
        let (mut patience, mut again, mut conflicts) = (self.patience(), false, 0);
        loop {
            match self.transaction(&work, again).await {
                Ok(done) => return Ok(done),
                Err(fault) if fault.is_lost() => {
                    again = true;
                    patience.wait(fault).await?;
                }
                Err(fault) if fault.is_conflict() && conflicts < CONFLICTS => conflicts += 1,
                Err(fault) => return Err(fault.told()),
            }
        }
    }

    async fn transaction<T>(
        &self,
        work: &impl AsyncFn(&Transaction<'_>, bool) -> Result<T, Fault>,
        again: bool,
    ) -> Result<T, Fault> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        match work(&transaction, again).await {
            Ok(done) => {
                transaction.commit().await?;
                Ok(done)
            }
            Err(fault) => {
                // The connection may be gone as well; the first error counts.
                let _ = transaction.rollback().await;
                Err(fault)
            }
        }
    }
}
