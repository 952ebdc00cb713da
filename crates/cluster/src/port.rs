//! The cluster port: the HTTP server for other servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, SessionId};

use crate::lines::line;
use crate::wire::{OwnerQuery, WireHandler};

/// Time between two blank lines of a stream.
const ALIVE: Duration = Duration::from_secs(3);

/// Binds the cluster port. Returns the listener and the address that other servers use.
///
/// # Errors
/// A sentence for the user if the address is not valid or taken.
pub async fn bind(address: &str) -> Result<(TcpListener, String), String> {
    let wrong =
        |why: &str| format!("the cluster address `{address}` {why}; use HOST:PORT, such as 10.0.0.5:7450");
    let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
    port.parse::<u16>().map_err(|_| wrong("has no valid port"))?;
    if host.is_empty() {
        return Err(wrong("has no host"));
    }
    let found = tokio::net::lookup_host(address).await;
    let found: Vec<SocketAddr> = found
        .map_err(|error| wrong(&format!("cannot be resolved: {error}")))?
        .collect();
    let listener = TcpListener::bind(found.as_slice()).await;
    let listener = listener.map_err(|error| wrong(&format!("cannot be used on this machine: {error}")))?;
    let bound = listener.local_addr().map_err(|error| wrong(&error.to_string()))?;
    Ok((listener, format!("{host}:{}", bound.port())))
}

/// Answer to a question.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The answer.
    Ok(Value),
    /// Refusal of the session.
    Err(ClientError),
}

impl Answer {
    pub(crate) fn of(result: Result<Value, ClientError>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(error) => Self::Err(error),
        }
    }

    pub(crate) fn into_result(self) -> Result<Value, ClientError> {
        match self {
            Self::Ok(value) => Ok(value),
            Self::Err(error) => Err(error),
        }
    }
}

#[derive(Clone)]
struct Port {
    secret: Arc<str>,
    sessions: Arc<dyn WireHandler>,
    stop: CancellationToken,
}

/// Serves other servers until `stop` is cancelled.
pub(crate) async fn serve(
    listener: TcpListener,
    secret: Arc<str>,
    sessions: Arc<dyn WireHandler>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let port = Port {
        secret,
        sessions,
        stop: stop.clone(),
    };
    let router = Router::new()
        .route("/cluster/v1/ask", post(ask))
        .route("/cluster/v1/events", get(events))
        .with_state(port);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

/// Compares digests, so that the time tells nothing about the secret.
fn is_admitted(headers: &HeaderMap, secret: &str) -> bool {
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    given.is_some_and(|given| {
        let (given, own) = (digest(given), digest(secret));
        let differences = given.as_ref().iter().zip(own.as_ref());
        differences.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    })
}

async fn ask(State(port): State<Port>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_admitted(&headers, &port.secret) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let ask: OwnerQuery = match serde_json::from_slice(&body) {
        Ok(ask) => ask,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let answer = Answer::of(port.sessions.answer(ask).await);
    serde_json::to_string(&answer).unwrap_or_default().into_response()
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn events(
    State(port): State<Port>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Response {
    if !is_admitted(&headers, &port.secret) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let session = headers
        .get("x-windlass-session")
        .and_then(|value| value.to_str().ok());
    let Some(session) = session.map(|id| SessionId::from(id.to_owned())) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let events = match port.sessions.events(&session, after).await {
        Ok(events) => events,
        Err(_) => return StatusCode::NOT_FOUND.into_response(),
    };
    let lines = events.map(|envelope| line(&envelope));
    let blank = stream::unfold(tokio::time::interval(ALIVE), async |mut interval| {
        interval.tick().await;
        Some((Bytes::from_static(b"\n"), interval))
    });
    // The stream ends with the events, not with the blank lines.
    let lines = lines.map(Some).chain(stream::once(async { None }));
    let both = stream::select(lines, blank.map(Some).boxed());
    let both = both.take_while(|line| std::future::ready(line.is_some()));
    let both = both
        .filter_map(std::future::ready)
        .take_until(port.stop.cancelled_owned());
    Body::from_stream(both.map(Ok::<_, std::convert::Infallible>)).into_response()
}
