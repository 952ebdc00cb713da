//! The HTTP server.

mod handle;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::brain::{Brain, Mind};
use crate::log::{Logged, RequestLog};
use crate::usage::PromptCache;

/// Maximum time a stop waits for connections before it drops them.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Port on the loopback address; 0 picks a free one.
    pub port: u16,
    /// Decides the answers.
    pub brain: Brain,
    /// Key required in `x-api-key` or as a bearer token; `None` accepts any.
    pub api_key: Option<String>,
    /// True if the log keeps whole bodies. Benchmarks turn it off.
    pub keep_bodies: bool,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            port: 0,
            brain: Brain::rules(),
            api_key: None,
            keep_bodies: true,
        }
    }
}

/// Error while starting a server.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The address could not be bound.
    #[error("cannot listen on {addr}: {source}")]
    Bind {
        /// Address of the server.
        addr: SocketAddr,
        /// Cause of the failure.
        source: std::io::Error,
    },
}

/// State shared by the handlers.
#[derive(Debug)]
pub(crate) struct Shared {
    mind: Mind,
    api_key: Option<String>,
    keep_bodies: bool,
    cache: Mutex<PromptCache>,
    log: RequestLog,
    stop: CancellationToken,
}

/// Starts servers.
#[derive(Debug)]
pub struct Sim;

impl Sim {
    /// Binds the loopback address and serves until the handle is stopped or dropped.
    ///
    /// # Errors
    ///
    /// When the port is taken.
    pub async fn start(config: SimConfig) -> Result<SimHandle, SimError> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, config.port));
        let bind_error = |source| SimError::Bind { addr: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(bind_error)?;
        let addr = listener.local_addr().map_err(bind_error)?;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            mind: Mind::new(config.brain),
            api_key: config.api_key,
            keep_bodies: config.keep_bodies,
            cache: Mutex::default(),
            log: RequestLog::default(),
            stop: stop.clone(),
        });
        // Small writes must leave at once, or TCP would undo the chunking faults.
        let listener = listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        let router = handle::router(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            // Serving never ends with an error: axum retries accept errors.
            let _ = axum::serve(listener, router)
                .with_graceful_shutdown(stop.cancelled_owned())
                .await;
        });
        Ok(SimHandle {
            addr,
            shared,
            task: Some(task),
        })
    }
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct SimHandle {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
}

impl SimHandle {
    /// Returns the address the server listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the base URL, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns all requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Logged> {
        self.shared.log.all()
    }

    /// Returns the reasons requests were refused, oldest first; empty if every request was valid.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared.log.violations()
    }

    /// Ends open streams and waits for the connections to close, at most a few seconds.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        if let Some(mut task) = self.task.take()
            && tokio::time::timeout(STOP_GRACE, &mut task).await.is_err()
        {
            task.abort();
        }
    }

    /// Waits until the server ends, which it does only when something stops the runtime.
    pub async fn wait(mut self) {
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
