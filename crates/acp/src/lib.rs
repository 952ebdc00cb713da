//! The Agent Client Protocol, version 1, over standard input and output: `windlass acp`, for editors.
//!
//! [`serve`] reads JSON-RPC messages line by line and answers them through a [`Backend`]; nothing else is
//! written to the output. What runs outside of sessions is behind a [`Host`].
//!
//! Each open session has one task that turns its events into `session/update` notifications, in order
//! (`session.rs`, with `view.rs` and `card.rs` as the pure part). The answer to a prompt is sent when that task has
//! sent the last update of its turn. Permission requests and questions are requests to the client (`ask.rs`).
//!
//! Deliberately absent: the client's own file and terminal methods. Files and commands stay in our sandbox, with
//! undo; their output is shown through display terminals.

mod ask;
mod card;
mod client;
mod connection;
mod content;
mod diff;
mod options;
mod prompt;
mod rpc;
mod session;
mod view;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, SessionId};

use self::connection::Connection;

use self::rpc::WITHDRAW;
use windlass_jsonrpc::{Incoming, Outbox, read_messages};

/// Maximum number of requests at a time. Further ones wait.
const MAX_REQUESTS: usize = 256;
/// Maximum time that running requests have to end when the client is gone.
const ENDING: Duration = Duration::from_secs(5);

/// Everything around sessions that a connection needs.
#[async_trait]
pub trait Host: Send + Sync {
    /// Returns the folder to work in, if a session may work there.
    ///
    /// # Errors
    /// When it does not exist or is too wide, or when its settings name no usable model.
    fn admit(&self, place: &Path) -> Result<PathBuf, NotAdmitted>;

    /// Checks that a model is set up.
    ///
    /// # Errors
    /// With the way to set one up.
    fn ready(&self) -> Result<(), String>;

    /// ACP-2: attaches the editor's MCP servers to a session. Returns a line for each that cannot be used.
    fn attach(&self, session: &SessionId, servers: &[serde_json::Value]) -> Vec<String>;

    /// Leaves a session: it ends as soon as it is idle, and other processes can open it.
    fn leave(&self, session: &SessionId);

    /// Deletes a session. One that does not exist is deleted already.
    ///
    /// # Errors
    /// When another process uses it, or it cannot be deleted.
    async fn delete(&self, session: &SessionId) -> Result<(), String>;
}

/// Reason why a session cannot work in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdmitted {
    /// No model is set up.
    NoModel(String),
    /// The folder cannot be used.
    Place(String),
}

/// Serves one client until it closes its output, or until `stop` is canceled. Running turns are canceled then.
pub async fn serve(
    backend: Arc<dyn Backend>,
    host: Arc<dyn Host>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: CancellationToken,
) {
    let gone = stop.child_token();
    let (outbox, written) = Outbox::start(output, gone.clone(), WITHDRAW);
    let connection = Arc::new(Connection::new(backend, host, outbox));
    let mut incoming = read_messages(input);
    let mut requests = Requests::default();
    loop {
        let message = tokio::select! {
            biased;
            () = gone.cancelled() => break,
            message = incoming.recv() => message,
        };
        let Some(message) = message else { break };
        requests.take(&connection, message, &gone).await;
    }
    connection.end().await;
    let _ = tokio::time::timeout(ENDING, requests.ended()).await;
    drop((connection, requests));
    let _ = tokio::time::timeout(ENDING, written).await;
}

/// Requests of the client that are not answered yet.
#[derive(Default)]
struct Requests {
    tasks: JoinSet<()>,
    open: OpenRequests,
}

/// Tokens that cancel requests, by the id of the request as JSON.
#[derive(Clone, Default)]
struct OpenRequests(Arc<Mutex<HashMap<String, CancellationToken>>>);

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self, id: &Value) {
        if let Some(cancel) = self.lock().get(&id.to_string()) {
            cancel.cancel();
        }
    }
}

impl Requests {
    async fn take(&mut self, connection: &Arc<Connection>, message: Incoming, gone: &CancellationToken) {
        while self.tasks.try_join_next().is_some() {}
        match message {
            Incoming::Response { id, result } => connection.outbox.answered(&id, result),
            Incoming::Notification { method, params } if method == WITHDRAW => {
                self.open.cancel(params.get("requestId").unwrap_or(&Value::Null));
            }
            Incoming::Notification { method, params } => connection.notified(&method, params).await,
            Incoming::Invalid { id, error } => {
                self.make_room(gone).await;
                let outbox = connection.outbox.clone();
                self.tasks.spawn(async move {
                    let _ = outbox.answer(id, Err(error)).await;
                });
            }
            Incoming::Request { id, method, params } => {
                self.make_room(gone).await;
                self.request(connection, id, method, params).await;
            }
        }
    }

    /// Waits until another request may run.
    async fn make_room(&mut self, gone: &CancellationToken) {
        while self.tasks.len() >= MAX_REQUESTS {
            tokio::select! {
                () = gone.cancelled() => return,
                _ = self.tasks.join_next() => {}
            }
        }
    }

    async fn request(&mut self, connection: &Arc<Connection>, id: Value, method: String, params: Value) {
        let cancel = CancellationToken::new();
        let prepared = connection.prepare(&method, &params, &cancel);
        let (key, open) = (id.to_string(), self.open.clone());
        open.lock().insert(key.clone(), cancel.clone());
        // Nothing overtakes the first request.
        let is_first = method == "initialize";
        let connection = Arc::clone(connection);
        let task = async move {
            connection.requested(id, &method, params, prepared, cancel).await;
            open.lock().remove(&key);
        };
        if is_first {
            task.await;
        } else {
            self.tasks.spawn(task);
        }
    }

    async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}
