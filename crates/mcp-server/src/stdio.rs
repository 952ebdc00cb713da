//! One client over standard input and output.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_api::Backend;
use windlass_jsonrpc::{Incoming, Outbox, RpcError, read_messages};

use crate::McpHost;
use crate::desk::Desk;
use crate::protocol::{Handshake, Request, named_version, stateless};

/// Maximum number of requests at a time. Further ones wait.
const MAX_REQUESTS: usize = 256;
/// Maximum time that running requests have to end when the client is gone.
const ENDING: Duration = Duration::from_secs(5);
/// Notification that withdraws a request.
pub(crate) const CANCELLED: &str = "notifications/cancelled";

/// Serves one client until it closes its output, or until `stop` is canceled. Its requests are withdrawn then, which
/// cancels the turns that they wait for.
pub async fn serve(
    backend: Arc<dyn Backend>,
    host: Arc<dyn McpHost>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: CancellationToken,
) {
    let gone = stop.child_token();
    let (outbox, written) = Outbox::start(output, gone.clone(), CANCELLED);
    let mut line = Line {
        desk: Arc::new(Desk::new(backend, host, gone.child_token())),
        outbox,
        handshake: None,
        open: OpenCalls::default(),
        tasks: JoinSet::new(),
    };
    let mut incoming = read_messages(input);
    loop {
        let message = tokio::select! {
            biased;
            () = gone.cancelled() => break,
            message = incoming.recv() => message,
        };
        let Some(message) = message else { break };
        line.take(message, &gone).await;
    }
    line.open.cancel_all();
    let ended = async { while line.tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(ENDING, ended).await;
    let _ = tokio::time::timeout(ENDING, line.desk.end()).await;
    drop(line);
    let _ = tokio::time::timeout(ENDING, written).await;
}

/// Tokens that withdraw requests, by the id of the request as JSON.
#[derive(Clone, Default)]
pub(crate) struct OpenCalls(Arc<Mutex<HashMap<String, CancellationToken>>>);

impl OpenCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request until the returned value is dropped.
    pub(crate) fn add(&self, id: &Value, cancel: CancellationToken) -> OpenCall {
        let key = id.to_string();
        self.lock().insert(key.clone(), cancel);
        OpenCall {
            open: self.clone(),
            key,
        }
    }

    /// Withdraws the request that a notification names.
    pub(crate) fn cancel(&self, params: &Value) {
        let id = params.get("requestId").unwrap_or(&Value::Null);
        if let Some(cancel) = self.lock().get(&id.to_string()) {
            cancel.cancel();
        }
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().values().for_each(CancellationToken::cancel);
    }
}

/// A request that is not answered yet.
pub(crate) struct OpenCall {
    open: OpenCalls,
    key: String,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.open.lock().remove(&self.key);
    }
}

struct Line {
    desk: Arc<Desk>,
    outbox: Outbox,
    handshake: Option<Handshake>,
    open: OpenCalls,
    tasks: JoinSet<()>,
}

impl Line {
    async fn take(&mut self, message: Incoming, gone: &CancellationToken) {
        while self.tasks.try_join_next().is_some() {}
        match message {
            Incoming::Response { id, result } => self.outbox.answered(&id, result),
            Incoming::Notification { method, params } if method == CANCELLED => self.open.cancel(&params),
            Incoming::Notification { .. } => {}
            Incoming::Invalid { id, error } => {
                self.make_room(gone).await;
                self.say(id, Err(error));
            }
            Incoming::Request { id, method, params } => {
                self.make_room(gone).await;
                match self.admit(&id, &method, &params) {
                    Ok(Some(request)) => self.run(request, method, params),
                    Ok(None) => {}
                    Err(error) => self.say(id, Err(error)),
                }
            }
        }
    }

    /// Decides the era of a request. `None` if it is answered already.
    fn admit(&mut self, id: &Value, method: &str, params: &Value) -> Result<Option<Request>, RpcError> {
        let is_modern = named_version(params).is_some() || method == "server/discover";
        let can_ask = match self.handshake {
            _ if is_modern => stateless(params)?,
            _ if method == "initialize" => {
                let handshake = Handshake::read(params)?;
                self.handshake = Some(handshake);
                self.say(id.clone(), Ok(handshake.result()));
                return Ok(None);
            }
            Some(handshake) => handshake.can_ask,
            None if method == "ping" => false,
            None => {
                let text = "send `initialize` first, or name the protocol's revision in `_meta`";
                return Err(RpcError::invalid_request(text));
            }
        };
        Ok(Some(Request {
            id: id.clone(),
            outbox: self.outbox.clone(),
            is_modern,
            can_ask,
            cancel: CancellationToken::new(),
        }))
    }

    fn run(&mut self, request: Request, method: String, params: Value) {
        let open = self.open.add(&request.id, request.cancel.clone());
        let desk = Arc::clone(&self.desk);
        self.tasks.spawn(async move {
            let answer = desk.answer(&request, &method, &params).await;
            drop(open);
            // A withdrawn request has no answer.
            if !request.cancel.is_cancelled() {
                let _ = request.outbox.answer(request.id, answer).await;
            }
        });
    }

    fn say(&mut self, id: Value, answer: Result<Value, RpcError>) {
        let outbox = self.outbox.clone();
        self.tasks.spawn(async move {
            let _ = outbox.answer(id, answer).await;
        });
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
}
