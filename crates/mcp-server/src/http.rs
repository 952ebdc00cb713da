//! Streamable HTTP at `/mcp`. A message is the body of a POST; the answer is JSON, or a stream of events if something
//! is sent before it. Behind [`Guarded`], which checks the token and where the request comes from.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_api::{Backend, UserName};
use windlass_core::log::Store;
use windlass_jsonrpc::{Incoming, OpenRequests, Outbox, RpcError};
use windlass_server::{Guarded, TokenHolder, UserBackend};

use crate::McpHost;
use crate::desk::Desk;
use crate::http_session::{HttpClient, HttpClients};
use crate::protocol::{Handshake, LEGACY, Request, header_mismatch, named_version, stateless};
use crate::stdio::CANCELLED;

/// Maximum size of a message.
const MAX_BODY: usize = 16 << 20;
/// Number of messages that wait for a client that reads slowly.
const WAITING: usize = 64;
/// Time to wait for a first message before the answer becomes a stream.
const FIRST: Duration = Duration::from_secs(2);
/// Time between two comments on a silent stream.
const ALIVE: Duration = Duration::from_secs(15);
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

struct Http {
    backend: Arc<dyn Backend>,
    store: Arc<dyn Store>,
    host: Arc<dyn McpHost>,
    stop: CancellationToken,
    /// The desk of each user's clients.
    desks: Mutex<HashMap<UserName, Arc<Desk>>>,
    clients: HttpClients,
}

/// Serves clients until `stop` is canceled.
pub async fn serve_http(
    backend: Arc<dyn Backend>,
    host: Arc<dyn McpHost>,
    server: Guarded,
    stop: CancellationToken,
) {
    let http = Http {
        backend,
        store: server.store(),
        host,
        stop: stop.child_token(),
        desks: Mutex::default(),
        clients: HttpClients::default(),
    };
    let http = Arc::new(http);
    let routes = Router::new()
        .route("/mcp", post(message).delete(end))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::clone(&http));
    server.run(routes, stop).await;
    let desks: Vec<Arc<Desk>> = http.desks().drain().map(|(_, desk)| desk).collect();
    for desk in desks {
        desk.end().await;
    }
}

type Shared = State<Arc<Http>>;

/// Ends the session of a client.
async fn end(State(http): Shared, Extension(holder): Extension<TokenHolder>, headers: HeaderMap) -> Response {
    match http.client(&headers, &holder) {
        Some(Ok(client)) => {
            http.clients.remove(&client);
            StatusCode::NO_CONTENT.into_response()
        }
        Some(Err(response)) => response,
        None => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

async fn message(
    State(http): Shared,
    Extension(holder): Extension<TokenHolder>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !accepts(&headers) {
        let text = "send `Accept: application/json, text/event-stream`";
        return failed(
            StatusCode::NOT_ACCEPTABLE,
            Value::Null,
            &RpcError::invalid_request(text),
        );
    }
    match Incoming::parse(&body) {
        Incoming::Invalid { id, error } => failed(StatusCode::BAD_REQUEST, id, &error),
        Incoming::Response { id, result } => match http.client(&headers, &holder) {
            Some(Ok(client)) => {
                client.asked.answered(&id, result);
                StatusCode::ACCEPTED.into_response()
            }
            Some(Err(response)) => response,
            None => {
                let text = "an answer belongs to a session";
                failed(
                    StatusCode::BAD_REQUEST,
                    Value::Null,
                    &RpcError::invalid_request(text),
                )
            }
        },
        Incoming::Notification { method, params } => match http.client(&headers, &holder) {
            Some(Err(response)) => response,
            client => {
                if let (Some(Ok(client)), CANCELLED) = (client, method.as_str()) {
                    client.open.cancel(&params);
                }
                StatusCode::ACCEPTED.into_response()
            }
        },
        Incoming::Request { id, method, params } => {
            let called = Called { id, method, params };
            http.request(&holder, &headers, called).await
        }
    }
}

struct Called {
    id: Value,
    method: String,
    params: Value,
}

impl Http {
    fn desks(&self) -> MutexGuard<'_, HashMap<UserName, Arc<Desk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// DIST-7: returns the desk of a user's clients, which reaches only sessions of that user.
    fn desk(&self, user: &UserName) -> Arc<Desk> {
        let mut desks = self.desks();
        let desk = desks.entry(user.clone()).or_insert_with(|| {
            let (backend, store) = (Arc::clone(&self.backend), Arc::clone(&self.store));
            let own = UserBackend::new(backend, store, user.clone());
            let (host, stop) = (Arc::clone(&self.host), self.stop.clone());
            Arc::new(Desk::new(Arc::new(own), host, stop))
        });
        Arc::clone(desk)
    }

    /// Finds the session that a request names. `None` if it names none.
    fn client(&self, headers: &HeaderMap, holder: &TokenHolder) -> Option<Result<HttpClient, Response>> {
        let id = headers.get(SESSION)?.to_str().unwrap_or_default();
        let unknown = || {
            let error = RpcError::invalid_request("this session has ended; send `initialize` again");
            failed(StatusCode::NOT_FOUND, Value::Null, &error)
        };
        Some(self.clients.find(id, &holder.id).ok_or_else(unknown))
    }

    async fn request(&self, holder: &TokenHolder, headers: &HeaderMap, called: Called) -> Response {
        let version = headers
            .get(VERSION)
            .map(|version| version.to_str().unwrap_or_default());
        let is_legacy = version.is_none_or(|version| LEGACY.contains(&version));
        match self.client(headers, holder) {
            Some(Err(response)) => response,
            Some(Ok(client)) if is_legacy => {
                let can_ask = client.handshake.can_ask && holder.can_approve;
                let open = (client.asked.clone(), Some(client));
                self.run((holder, called), false, can_ask, open).await
            }
            _ if is_legacy && named_version(&called.params).is_none() => self.shake_hands(holder, called),
            _ => match stateless_request(headers, version, &called) {
                Ok(can_ask) => {
                    let can_ask = can_ask && holder.can_approve;
                    self.run((holder, called), true, can_ask, (OpenRequests::default(), None))
                        .await
                }
                Err(error) => failed(status(&error), called.id, &error),
            },
        }
    }

    fn shake_hands(&self, holder: &TokenHolder, called: Called) -> Response {
        if called.method != "initialize" {
            let text = "send `initialize` first and then its `Mcp-Session-Id`, or a stateless request with \
                        `MCP-Protocol-Version`";
            return failed(
                StatusCode::BAD_REQUEST,
                called.id,
                &RpcError::invalid_request(text),
            );
        }
        match Handshake::read(&called.params) {
            Ok(handshake) => {
                let client = self.clients.add(&holder.id, handshake);
                let mut response = answer(StatusCode::OK, called.id, Ok(handshake.result()));
                if let Ok(id) = HeaderValue::from_str(&client.id) {
                    response.headers_mut().insert(SESSION, id);
                }
                response
            }
            Err(error) => failed(StatusCode::BAD_REQUEST, called.id, &error),
        }
    }

    /// Runs a request. The answer is JSON if it comes first, and else a stream.
    async fn run(
        &self,
        (holder, called): (&TokenHolder, Called),
        is_modern: bool,
        can_ask: bool,
        (asked, client): (OpenRequests, Option<HttpClient>),
    ) -> Response {
        let (lines, mut messages) = mpsc::channel(WAITING);
        let cancel = CancellationToken::new();
        let request = Request {
            id: called.id.clone(),
            outbox: Outbox::over(lines.clone(), asked, CANCELLED),
            is_modern,
            can_ask,
            cancel: cancel.clone(),
        };
        let desk = self.desk(&holder.user);
        let background = desk.turns.background.clone();
        let open = client.map(|client| client.open.add(&called.id, cancel.clone()));
        background.spawn(async move {
            let result = desk.answer(&request, &called.method, &called.params).await;
            drop(open);
            let _ = lines.send(envelope(&request.id, &result)).await;
        });
        // A stateless client that closes its stream withdraws the request; one with a session may just be away.
        let guard = is_modern.then(|| cancel.drop_guard());
        match tokio::time::timeout(FIRST, messages.recv()).await {
            Ok(None) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Ok(Some(first)) => {
                let parsed: Value = serde_json::from_str(&first).unwrap_or_default();
                if parsed.get("method").is_some() {
                    return events(Some(first), messages, guard);
                }
                let code = parsed.pointer("/error/code").and_then(Value::as_i64);
                let status = match code {
                    Some(code) if is_modern => status(&RpcError::new(code, "")),
                    _ => StatusCode::OK,
                };
                json_text(status, first)
            }
            Err(_) => events(None, messages, guard),
        }
    }
}

/// Checks the headers and `_meta` of a stateless request. Returns true if its client can be asked.
fn stateless_request(headers: &HeaderMap, version: Option<&str>, called: &Called) -> Result<bool, RpcError> {
    let Some(version) = version else {
        return Err(header_mismatch("the header `MCP-Protocol-Version` is missing"));
    };
    if let Some(named) = named_version(&called.params)
        && named != version
    {
        let text = format!("the header `MCP-Protocol-Version` says {version}, and `_meta` {named}");
        return Err(header_mismatch(text));
    }
    let can_ask = stateless(&called.params)?;
    let given = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(decoded)
    };
    if given("mcp-method").as_deref() != Some(called.method.as_str()) {
        return Err(header_mismatch(format!(
            "the header `Mcp-Method` must be {}",
            called.method
        )));
    }
    let field = match called.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(can_ask),
    };
    let name = called.params.get(field).and_then(Value::as_str);
    if given("mcp-name").as_deref() != name {
        return Err(header_mismatch(format!(
            "the header `Mcp-Name` must be the {field} of the body"
        )));
    }
    Ok(can_ask)
}

/// Returns the value of a header, which may be encoded as `=?base64?…?=`.
fn decoded(value: &str) -> String {
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let bytes = encoded.and_then(|encoded| BASE64_STANDARD.decode(encoded).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.unwrap_or_else(|| value.to_owned())
}

fn accepts(headers: &HeaderMap) -> bool {
    let Some(accept) = headers.get(header::ACCEPT) else {
        return true;
    };
    let accept = accept.to_str().unwrap_or_default();
    ["*/*", "application/json", "application/*", "text/event-stream"]
        .iter()
        .any(|kind| accept.contains(kind))
}

/// Returns the status of an error of a stateless request.
fn status(error: &RpcError) -> StatusCode {
    match error.code {
        -32601 => StatusCode::NOT_FOUND,
        -32603 => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn envelope(id: &Value, result: &Result<Value, RpcError>) -> String {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error.to_value() }),
    }
    .to_string()
}

fn failed(status: StatusCode, id: Value, error: &RpcError) -> Response {
    answer(status, id, Err(error.clone()))
}

fn answer(status: StatusCode, id: Value, result: Result<Value, RpcError>) -> Response {
    json_text(status, envelope(&id, &result))
}

fn json_text(status: StatusCode, text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, text).into_response()
}

/// Sends messages as events. Ends after the answer, which is the last one.
fn events(first: Option<String>, messages: mpsc::Receiver<String>, guard: Option<DropGuard>) -> Response {
    let begin = (first, messages, guard);
    let stream = stream::unfold(begin, |(first, mut messages, guard)| async move {
        let text = match first {
            Some(first) => event(&first),
            None => match tokio::time::timeout(ALIVE, messages.recv()).await {
                Ok(Some(message)) => event(&message),
                Ok(None) => {
                    // The answer is out: nothing is left to withdraw.
                    guard.map(DropGuard::disarm);
                    return None;
                }
                Err(_) => ": waiting\n\n".to_owned(),
            },
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), (None, messages, guard)))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (StatusCode::OK, kind, Body::from_stream(stream)).into_response()
}

fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}
