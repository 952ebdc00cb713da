//! The direct carrier: HTTP from server to server.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, EventStream, SessionId};
use windlass_core::log::Holder;

use crate::lines::Lines;
use crate::port;
use crate::wire::{ClusterWire, OwnerQuery, WireError, WireHandler};

/// Maximum time for an answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Maximum time to connect.
const CONNECT: Duration = Duration::from_secs(1);
/// Time without a byte after which a stream counts as broken. Its server sends a blank line more often.
const SILENCE: Duration = Duration::from_secs(10);

/// Connects servers directly. They need to reach each other, and share a secret.
pub struct DirectWire {
    http: reqwest::Client,
    secret: Arc<str>,
    listener: Mutex<Option<TcpListener>>,
}

impl DirectWire {
    /// Creates the carrier. `listener` takes the requests of other servers; see [`crate::bind`].
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(secret: &str, listener: TcpListener) -> Result<Self, ClientError> {
        Self::asking(secret, Some(listener))
    }

    /// Creates the carrier of a program that may only ask.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn asking(secret: &str, listener: Option<TcpListener>) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build();
        Ok(Self {
            http: http.map_err(|error| ClientError::Setup(error.to_string()))?,
            secret: secret.into(),
            listener: Mutex::new(listener),
        })
    }
}

/// Returns the error with its cause.
fn failed(owner: &Holder, error: &reqwest::Error) -> WireError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    WireError {
        server: owner.owner.clone(),
        why: cause.to_string(),
    }
}

#[async_trait]
impl ClusterWire for DirectWire {
    async fn serve(&self, sessions: Arc<dyn WireHandler>, stop: CancellationToken) -> Result<(), WireError> {
        let Some(listener) = self.listener.lock().await.take() else {
            return Ok(());
        };
        port::serve(listener, Arc::clone(&self.secret), sessions, stop)
            .await
            .map_err(|error| WireError {
                server: "this one".to_owned(),
                why: error.to_string(),
            })
    }

    async fn listen(
        &self,
        owner: &Holder,
        session: &SessionId,
        after: u64,
    ) -> Result<EventStream, WireError> {
        let url = format!("http://{}/cluster/v1/events?after={after}", owner.address);
        let sent = self
            .http
            .get(url)
            .bearer_auth(&self.secret)
            .header("x-windlass-session", session.as_str())
            .send()
            .await;
        let response = sent.map_err(|error| failed(owner, &error))?;
        if !response.status().is_success() {
            return Err(WireError {
                server: owner.owner.clone(),
                why: format!("it answers {}", response.status()),
            });
        }
        let mut pieces = response.bytes_stream();
        let mut lines = Lines::default();
        let events = stream::poll_fn(move |cx| {
            loop {
                if let Some(envelope) = lines.next_event() {
                    return Poll::Ready(Some(envelope));
                }
                match futures_util::ready!(pieces.poll_next_unpin(cx)) {
                    Some(Ok(piece)) if lines.add(&piece) => {}
                    _ => return Poll::Ready(None),
                }
            }
        });
        Ok(EventStream::new(events))
    }

    async fn ask(&self, owner: &Holder, ask: &OwnerQuery) -> Result<Result<Value, ClientError>, WireError> {
        let url = format!("http://{}/cluster/v1/ask", owner.address);
        let body = serde_json::to_vec(ask).unwrap_or_default();
        let request = self
            .http
            .post(url)
            .bearer_auth(&self.secret)
            .timeout(ANSWER)
            .body(body);
        let response = request.send().await.map_err(|error| failed(owner, &error))?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| failed(owner, &error))?;
        if !status.is_success() {
            return Err(WireError {
                server: owner.owner.clone(),
                why: match status {
                    StatusCode::UNAUTHORIZED => {
                        "it has a different cluster secret; use the same one on all servers".to_owned()
                    }
                    StatusCode::BAD_REQUEST => {
                        "it does not know this request; it probably runs an older version".to_owned()
                    }
                    status => format!("it answers {status}"),
                },
            });
        }
        serde_json::from_slice::<port::Answer>(&bytes)
            .map(port::Answer::into_result)
            .map_err(|error| WireError {
                server: owner.owner.clone(),
                why: error.to_string(),
            })
    }
}
