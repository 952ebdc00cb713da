//! Messages to the client: answers, notifications, and requests of ours.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::message::RpcError;

/// Number of lines that wait for a client that reads slowly. Whoever writes more waits too.
const WAITING: usize = 256;

/// Writes to the client. Cheap to clone.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    lines: mpsc::Sender<String>,
    open: OpenRequests,
    /// Notification that withdraws a request of ours.
    withdraw: &'static str,
}

/// Requests of ours without an answer yet. Cheap to clone.
#[derive(Clone, Default)]
pub struct OpenRequests(Arc<Numbered>);

#[derive(Default)]
struct Numbered {
    open: Mutex<HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>>,
    last: AtomicU64,
}

impl OpenRequests {
    /// Passes on an answer of the client. An answer that nobody waits for is ignored.
    pub fn answered(&self, id: &Value, result: Result<Value, RpcError>) {
        let waiting = id.as_u64().and_then(|id| self.lock().remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(result);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line could not be written: the client is gone.
#[derive(Debug)]
pub struct Gone;

impl Outbox {
    /// Starts the thread that writes. `gone` is canceled when the client does not read any more. The second value
    /// completes when everything is written. `withdraw` is the notification that withdraws a request of ours.
    pub fn start(
        output: impl Write + Send + 'static,
        gone: CancellationToken,
        withdraw: &'static str,
    ) -> (Self, oneshot::Receiver<()>) {
        let (lines, waiting) = mpsc::channel(WAITING);
        let (done, is_done) = oneshot::channel();
        std::thread::spawn(move || {
            if write_lines(output, waiting).is_err() {
                gone.cancel();
            }
            let _ = done.send(());
        });
        (Self::over(lines, OpenRequests::default(), withdraw), is_done)
    }

    /// Writes to a channel. Several outboxes can share their open requests, so that an answer may arrive anywhere.
    pub fn over(lines: mpsc::Sender<String>, open: OpenRequests, withdraw: &'static str) -> Self {
        let shared = Shared {
            lines,
            open,
            withdraw,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    async fn send(&self, message: &Value) -> Result<(), Gone> {
        self.shared
            .lines
            .send(message.to_string())
            .await
            .map_err(|_| Gone)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the client is gone.
    pub async fn answer(&self, id: Value, result: Result<Value, RpcError>) -> Result<(), Gone> {
        let message = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error.to_value() }),
        };
        self.send(&message).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the client is gone.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), Gone> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await
    }

    /// Sends a request and waits for its answer. If the caller stops waiting, the client is told so.
    ///
    /// # Errors
    /// When the client is gone, or answers with an error.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.shared.open.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        self.shared.open.lock().insert(id, answer);
        let _waiting = Waiting { outbox: self, id };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let gone = || RpcError::internal("the client is gone");
        self.send(&message).await.map_err(|Gone| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Passes on an answer of the client.
    pub fn answered(&self, id: &Value, result: Result<Value, RpcError>) {
        self.shared.open.answered(id, result);
    }
}

/// A request that waits for its answer.
struct Waiting<'a> {
    outbox: &'a Outbox,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.outbox.shared.open.lock().remove(&self.id).is_none() {
            return;
        }
        let message = json!({
            "jsonrpc": "2.0",
            "method": self.outbox.shared.withdraw,
            "params": { "requestId": self.id },
        });
        // A client that does not read needs no notice either.
        let _ = self.outbox.shared.lines.try_send(message.to_string());
    }
}

/// Writes lines until all senders are gone. Flushes when no line waits.
fn write_lines(mut output: impl Write, mut lines: mpsc::Receiver<String>) -> std::io::Result<()> {
    let mut batch = Vec::new();
    while let Some(line) = lines.blocking_recv() {
        batch.extend_from_slice(line.as_bytes());
        batch.push(b'\n');
        while batch.len() < 1 << 16
            && let Ok(line) = lines.try_recv()
        {
            batch.extend_from_slice(line.as_bytes());
            batch.push(b'\n');
        }
        output.write_all(&batch)?;
        output.flush()?;
        batch.clear();
    }
    Ok(())
}
