//! The HTTP transport shared by all wires.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::provider::{ProviderError, ProviderErrorKind};
use windlass_core::text::in_plain_words;

use crate::failure::{self, Answer};
use crate::sse;

/// Replaces a sentence of the HTTP library.
const CLOSED: &str = "the server closed the connection without an answer";

/// Timeouts and size limits of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportLimits {
    /// Maximum time to establish a connection.
    pub connect: Duration,
    /// Maximum time without data, before the response starts and between two pieces of it.
    pub stream_idle: Duration,
    /// Maximum size of events and replies.
    pub stream: sse::StreamLimits,
    /// Maximum number of bytes to read of an error body.
    pub error_body: usize,
}

impl Default for TransportLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            stream_idle: Duration::from_secs(120),
            stream: sse::StreamLimits::default(),
            error_body: 64 * 1024,
        }
    }
}

/// Installs the TLS implementation. Only the first call has an effect.
pub fn install_tls() {
    // An error means that another implementation is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A handle to the shared HTTP clients and their connections. Cheap to clone and to create: a client is built
/// when the first request needs it, because loading root certificates takes time.
#[derive(Debug, Clone, Default)]
pub struct Transport(Arc<Mutex<Vec<(ClientKind, Pooled)>>>);

/// A client and its connections.
#[derive(Debug, Clone)]
struct Pooled {
    client: Client,
    /// True once a server has answered, so that the next request may use a connection that it has closed meanwhile.
    has_answered: Arc<AtomicBool>,
}

/// Options that reqwest sets per client, not per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClientKind {
    /// True for plain HTTP to this machine: no certificates to load, no proxy to go through.
    local: bool,
    connect: Duration,
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Error without a readable response.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: ProviderError,
    /// Status and body of the response, if there was one.
    pub(crate) answer: Option<(u16, Vec<u8>)>,
}

impl From<ProviderError> for Failed {
    fn from(error: ProviderError) -> Self {
        Self { error, answer: None }
    }
}

impl Transport {
    /// Creates a transport without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds the client for `base_url` ahead of the first request.
    pub fn warm(&self, base_url: &str, limits: &TransportLimits) {
        if let Ok(url) = Url::parse(base_url) {
            // If the client cannot be built, the first request fails and reports it to the user.
            let _ = self.client(&url, limits);
        }
    }

    /// Sends a POST request and waits for the head of the response. Anything but a success is an error.
    pub(crate) async fn post(
        &self,
        call: Call,
        limits: &TransportLimits,
        clock: &dyn Clock,
    ) -> Result<Response, Failed> {
        let Call { url, headers, body } = call;
        let pooled = self.client(&url, limits)?;
        let request = pooled.client.post(url.clone()).headers(headers).body(body);
        pooled.answered(request, &url, limits, clock).await
    }

    /// Sends a GET request and waits for the head of the response. Anything but a success is an error.
    pub(crate) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        limits: &TransportLimits,
        clock: &dyn Clock,
    ) -> Result<Response, Failed> {
        let pooled = self.client(&url, limits)?;
        let request = pooled.client.get(url.clone()).headers(headers);
        pooled.answered(request, &url, limits, clock).await
    }

    fn client(&self, url: &Url, limits: &TransportLimits) -> Result<Pooled, ProviderError> {
        let kind = ClientKind {
            local: url.scheme() == "http" && is_loopback(url),
            connect: limits.connect,
        };
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == kind) {
            return Ok(client.clone());
        }
        install_tls();
        let mut builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(kind.connect)
            .tcp_nodelay(true)
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")));
        if kind.local {
            builder = builder.tls_certs_only([]).no_proxy();
        }
        let client = builder.build().map_err(|error| {
            let mut error = ProviderError::new(
                ProviderErrorKind::Network,
                format!("cannot set up HTTP: {}", causes(&error)),
            );
            error.retryable = false;
            error
        })?;
        let pooled = Pooled {
            client,
            has_answered: Arc::default(),
        };
        clients.push((kind, pooled.clone()));
        Ok(pooled)
    }
}

impl Pooled {
    /// Waits for the head of the response to a request.
    async fn answered(
        &self,
        request: RequestBuilder,
        url: &Url,
        limits: &TransportLimits,
        clock: &dyn Clock,
    ) -> Result<Response, Failed> {
        let response = tokio::select! {
            response = self.send(request) => response.map_err(|error| network(&error, url))?,
            () = clock.sleep(limits.stream_idle) => return Err(silent(limits).into()),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refusal(response, limits, clock).await)
    }

    /// Sends a request, and once more if the server closed the connection instead of answering: some servers close
    /// after each response without saying so, and a request that is sent at that moment is lost.
    async fn send(&self, request: RequestBuilder) -> Result<Response, reqwest::Error> {
        let again = request.try_clone();
        match (request.send().await, again) {
            (Err(error), Some(again)) if self.has_answered.load(Ordering::Relaxed) && is_closed(&error) => {
                again.send().await
            }
            (response, _) => response,
        }
    }
}

/// Returns true if the connection was closed before any byte of a response.
fn is_closed(error: &reqwest::Error) -> bool {
    error.is_request() && causes(error).contains(CLOSED)
}

/// Returns the next piece of a response, or `None` at its end.
pub(crate) async fn next_chunk(
    response: &mut Response,
    limits: &TransportLimits,
    clock: &dyn Clock,
) -> Result<Option<Bytes>, ProviderError> {
    tokio::select! {
        biased;
        chunk = response.chunk() => chunk.map_err(|error| {
            ProviderError::new(ProviderErrorKind::Network, format!("the connection failed: {}", causes(&error)))
        }),
        () = clock.sleep(limits.stream_idle) => Err(silent(limits)),
    }
}

/// Reads a whole body, up to `most` bytes.
pub(crate) async fn read_body(
    response: &mut Response,
    most: usize,
    limits: &TransportLimits,
    clock: &dyn Clock,
) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(chunk) = next_chunk(response, limits, clock).await? {
        if body.len().saturating_add(chunk.len()) > most {
            return Err(failure::from_sse(sse::SseError::ReplyTooLong(most)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn refusal(mut response: Response, limits: &TransportLimits, clock: &dyn Clock) -> Failed {
    let status = response.status().as_u16();
    if response.status().is_redirection() {
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok());
        let location = location.unwrap_or("nowhere").to_owned();
        // Following the redirect would send the key to any server the response names.
        let message = format!("the server redirects to {location}; redirects are not followed");
        let mut error = ProviderError::new(ProviderErrorKind::InvalidRequest, message);
        error.status = Some(status);
        return error.with_hint("set base_url to the final address").into();
    }
    let headers = response.headers();
    let answer = Answer {
        status,
        retry_after: retry_after(headers, clock.now()),
        final_word: headers
            .get("x-should-retry")
            .is_some_and(|value| value == "false"),
    };
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = next_chunk(&mut response, limits, clock).await {
        let room = limits.error_body.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if body.len() >= limits.error_body {
            break;
        }
    }
    Failed {
        error: failure::from_answer(answer, &String::from_utf8_lossy(&body)),
        answer: Some((status, body)),
    }
}

/// Returns the delay the provider asks for, given in milliseconds, in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(wait / 1000.0).ok();
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    let date = u64::try_from(date.as_millisecond()).ok()?;
    Some(Duration::from_millis(date.saturating_sub(now.0)))
}

fn silent(limits: &TransportLimits) -> ProviderError {
    let seconds = limits.stream_idle.as_secs_f64();
    ProviderError::new(
        ProviderErrorKind::Network,
        format!("the provider was silent for {seconds} s"),
    )
}

fn network(error: &reqwest::Error, url: &Url) -> ProviderError {
    let origin = url.origin().ascii_serialization();
    if error.is_connect() {
        let message = format!("cannot connect to {origin}: {}", causes(error));
        let mut refused = ProviderError::new(ProviderErrorKind::Network, message)
            .with_hint("check base_url, the network, and that the server is running");
        // A refused connection is more often a wrong address than a pause; `attempt` knows whether the server
        // was there before.
        refused.retryable = error.is_timeout();
        return refused;
    }
    let message = format!("the request to {origin} failed: {}", causes(error));
    ProviderError::new(ProviderErrorKind::Network, message)
}

/// Joins the innermost causes, which say what happened. The outer ones only say that something failed, with
/// the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut texts: Vec<String> = Vec::new();
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    let start = texts.len().saturating_sub(2);
    let told = texts.split_off(start).join(": ");
    let told = told.replace("connection closed before message completed", CLOSED);
    let told = in_plain_words(&told.replace("client error (SendRequest): ", ""));
    if told.is_empty() {
        "no reason given".to_owned()
    } else {
        told
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
