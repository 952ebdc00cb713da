//! One HTTP transport for all wires.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::provider::{ProviderError, ProviderErrorKind};

use crate::failure::{self, Answer};
use crate::sse;

/// What the transport puts up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportLimits {
    /// How long a connection may take to stand.
    pub connect: Duration,
    /// How long a request may stay silent, before its answer begins and between two pieces of it.
    pub stream_idle: Duration,
    /// The size of events and replies.
    pub stream: sse::Limits,
    /// How much of an error's body is read.
    pub error_body: usize,
}

impl Default for TransportLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            stream_idle: Duration::from_secs(120),
            stream: sse::Limits::default(),
            error_body: 64 * 1024,
        }
    }
}

/// Installs the TLS implementation. The first call does it, further calls do nothing.
pub fn install_tls() {
    // An error means that somebody was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A handle to the shared HTTP clients and their connections. Cheap to clone, free to make: a client is
/// built when the first request needs it, because loading root certificates takes its time.
#[derive(Debug, Clone, Default)]
pub struct Transport(Arc<Mutex<Vec<(ClientKind, Client)>>>);

/// Clients differ in what cannot be said per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClientKind {
    /// Plain HTTP to this machine: no certificates to load, no proxy to go through.
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

/// Why there is no answer to read.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: ProviderError,
    /// What came back, if something did: status and body.
    pub(crate) answer: Option<(u16, Vec<u8>)>,
}

impl From<ProviderError> for Failed {
    fn from(error: ProviderError) -> Self {
        Self { error, answer: None }
    }
}

impl Transport {
    /// A transport without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds the client for `base_url` ahead of the first request, so that this one need not.
    pub fn warm(&self, base_url: &str, limits: &TransportLimits) {
        if let Ok(url) = Url::parse(base_url) {
            // A client that cannot be built fails the first request, which can tell the user.
            let _ = self.client(&url, limits);
        }
    }

    /// Sends and waits for the head of the answer. Anything but a success is an error.
    pub(crate) async fn post(
        &self,
        call: Call,
        limits: &TransportLimits,
        clock: &dyn Clock,
    ) -> Result<Response, Failed> {
        let Call { url, headers, body } = call;
        let client = self.client(&url, limits)?;
        let request = client.post(url.clone()).headers(headers).body(body);
        answered(request, &url, limits, clock).await
    }

    /// Asks for what is at an address, and waits for the head of the answer. Anything but a success is an error.
    pub(crate) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        limits: &TransportLimits,
        clock: &dyn Clock,
    ) -> Result<Response, Failed> {
        let request = self.client(&url, limits)?.get(url.clone()).headers(headers);
        answered(request, &url, limits, clock).await
    }

    fn client(&self, url: &Url, limits: &TransportLimits) -> Result<Client, ProviderError> {
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
        clients.push((kind, client.clone()));
        Ok(client)
    }
}

/// The head of the answer to a request.
async fn answered(
    request: RequestBuilder,
    url: &Url,
    limits: &TransportLimits,
    clock: &dyn Clock,
) -> Result<Response, Failed> {
    let response = tokio::select! {
        response = request.send() => response.map_err(|error| network(&error, url))?,
        () = clock.sleep(limits.stream_idle) => return Err(silent(limits).into()),
    };
    if response.status().is_success() {
        return Ok(response);
    }
    Err(refusal(response, limits, clock).await)
}

/// The next piece of an answer; `None` at its end.
pub(crate) async fn next_chunk(
    response: &mut Response,
    limits: &TransportLimits,
    clock: &dyn Clock,
) -> Result<Option<Bytes>, ProviderError> {
    tokio::select! {
        biased;
        chunk = response.chunk() => chunk.map_err(|error| {
            ProviderError::new(ProviderErrorKind::Network, format!("the connection broke: {}", causes(&error)))
        }),
        () = clock.sleep(limits.stream_idle) => Err(silent(limits)),
    }
}

/// A whole body, up to `most` bytes.
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
        // Following it would hand the key to whoever the answer names.
        let message = format!("the server redirects to {location}, which is not followed");
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

/// How long the provider asks to wait: milliseconds, seconds or a date.
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
        // Nobody there is a wrong address more often than a pause; `attempt` knows when it was there before.
        refused.retryable = error.is_timeout();
        return refused;
    }
    let message = format!("the request to {origin} failed: {}", causes(error));
    ProviderError::new(ProviderErrorKind::Network, message)
}

/// The innermost causes say what happened; the outer ones only that something did, with the URL.
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
