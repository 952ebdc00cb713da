//! A provider over HTTP: a wire, a transport, and the retries around them.

mod attempt;
mod endpoint;
mod listing;
mod taping;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use reqwest::header::HeaderValue;
use serde_json::Value;
use windlass_core::clock::Clock;
use windlass_core::id::CallId;
use windlass_core::log::SharedRecorder;
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Provider, ProviderError, ProviderErrorKind, ProviderEvent, Request};
use windlass_core::tool::ToolSpec;

use self::attempt::attempt;
use self::endpoint::Endpoint;
use self::taping::{RecordingStream, Told};
use crate::key::{Secret, redact};
use crate::registry;
use crate::retry::{Jitter, RetryPolicy, Retrying, retrying};
use crate::transport::{Transport, TransportLimits};
use crate::wire::{Effort, Encoder, Quirks, Wire};

/// Configuration of an [`HttpProvider`].
#[derive(Clone)]
pub struct ProviderConfig {
    /// Configured name, such as `anthropic` or `my-server`.
    pub name: String,
    /// Wire format the provider speaks.
    pub wire: Wire,
    /// Base URL, with or without a trailing `/v1`.
    pub base_url: String,
    /// API key, if the provider needs one.
    pub key: Option<Secret>,
    /// Hint for the user when the key is refused, such as "set ANTHROPIC_API_KEY".
    pub key_hint: String,
    /// Additional headers. They override our own.
    pub headers: Vec<(String, String)>,
    /// Deviations from the wire's documentation.
    pub quirks: Quirks,
    /// Model to send requests to.
    pub model: Model,
    /// Requested reasoning effort; `None` leaves it to the provider.
    pub reasoning: Option<Effort>,
    /// Timeouts and size limits of the transport.
    pub limits: TransportLimits,
    /// Number and timing of retries.
    pub retry: RetryPolicy,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Header values and the user part of a URL may be secrets as well.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("base_url", &endpoint::shown_url(&self.base_url))
            .field("key", &self.key)
            .field("headers", &headers)
            .field("quirks", &self.quirks)
            .field("model", &self.model)
            .field("reasoning", &self.reasoning)
            .finish_non_exhaustive()
    }
}

/// Error returned when a provider cannot be created from its configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The base URL is not an HTTP address.
    #[error("base_url `{url}` of provider `{provider}` is not an http or https address: {reason}")]
    BadUrl {
        /// Name of the provider.
        provider: String,
        /// The rejected URL.
        url: String,
        /// Reason it was rejected.
        reason: String,
    },
    /// A header contains characters that HTTP does not allow.
    #[error("header `{header}` of provider `{provider}` has a name or value that HTTP does not allow")]
    BadHeader {
        /// Name of the provider.
        provider: String,
        /// Name of the header.
        header: String,
    },
    /// The key contains characters that HTTP does not allow.
    #[error("the key of provider `{provider}` has characters that HTTP does not allow")]
    BadKey {
        /// Name of the provider.
        provider: String,
    },
}

/// A provider over HTTP.
#[derive(Debug, Clone)]
pub struct HttpProvider(Arc<Shared>);

/// State shared by all attempts of a provider.
struct Shared {
    name: String,
    encoder: Encoder,
    quirks: Quirks,
    endpoint: Endpoint,
    model: Model,
    limits: TransportLimits,
    retry: RetryPolicy,
    secrets: Arc<[Secret]>,
    transport: Transport,
    clock: Arc<dyn Clock>,
    /// Set once the server has responded.
    reached: AtomicBool,
    /// Records the exchanges, if recording is on.
    tape: Option<Recording>,
}

/// A tape, and the state of the last body recorded on it.
struct Recording {
    tape: SharedRecorder,
    /// State of the last recorded body.
    last: Mutex<Option<Told>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("name", &self.name)
            .field("model", &self.model.id)
            .field("url", &endpoint::shown_url(self.endpoint.url.as_str()))
            .finish_non_exhaustive()
    }
}

impl HttpProvider {
    /// Creates a provider without connecting to anything.
    ///
    /// # Errors
    /// When the address, a header or the key cannot be used.
    pub fn new(
        config: ProviderConfig,
        transport: Transport,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(&config)?;
        let secrets = endpoint::secrets(&config).into();
        let ProviderConfig {
            name,
            wire,
            quirks,
            model,
            reasoning,
            limits,
            retry,
            ..
        } = config;
        let encoder = Encoder::new(wire, &name, model.clone(), quirks, reasoning);
        Ok(Self(Arc::new(Shared {
            name,
            encoder,
            quirks,
            endpoint,
            model,
            limits,
            retry,
            secrets,
            transport,
            clock,
            reached: AtomicBool::new(false),
            tape: None,
        })))
    }

    /// Records every exchange on `tape`. Call this before the provider is used or shared.
    #[must_use]
    pub fn recorded(mut self, tape: SharedRecorder) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.tape = Some(Recording {
                tape,
                last: Mutex::default(),
            });
        }
        self
    }

    /// Returns the body that `request` is sent with.
    pub fn request_body(&self, request: &Request) -> Bytes {
        self.0.encoder.body(request)
    }

    /// Builds the HTTP client ahead of the first request.
    pub fn warm(&self) {
        self.0
            .transport
            .warm(self.0.endpoint.url.as_str(), &self.0.limits);
    }
}

#[async_trait]
impl Provider for HttpProvider {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn model(&self) -> &Model {
        &self.0.model
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let (body, kept) = self.0.encoder.continued(&request);
        let shared = Arc::clone(&self.0);
        let Request {
            messages,
            cancel,
            session,
            ..
        } = request;
        // The same for every retry of this request, so that a proxy can take it once. Asking again is another request.
        let key = HeaderValue::from_str(&format!("{session}/{}", CallId::generate())).ok();
        let taping = RecordingStream::new(&shared, session, (&body, kept), messages.last());
        let messages = Arc::new(messages);
        let parts = Retrying {
            policy: shared.retry,
            clock: Arc::clone(&shared.clock),
            jitter: Jitter::random(),
            cancel: cancel.clone(),
        };
        let start = move || {
            attempt(
                Arc::clone(&shared),
                (body.clone(), key.clone()),
                Arc::clone(&messages),
                taping.clone(),
                cancel.clone(),
            )
        };
        retrying(parts, Box::new(start))
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.0.encoder.tools(tools)
    }

    fn layout(&self, request: &Request) -> Option<Layout> {
        Some(self.0.encoder.layout(request))
    }
}

impl Shared {
    /// Makes a connection failure retryable if the server has responded before: it may come back. A server
    /// that never responded is a wrong address.
    fn was_there(&self, mut error: ProviderError) -> ProviderError {
        if error.kind == ProviderErrorKind::Network && self.reached.load(Ordering::Relaxed) {
            error.retryable = true;
        }
        error
    }

    /// Prepares an error for the user: adds a hint and removes keys.
    fn tell(&self, mut error: ProviderError) -> ProviderError {
        if error.hint.is_none() {
            error.hint = self.hint(&error);
        }
        if let Some(status) = error.status {
            error.message = format!("{} (HTTP {status})", error.message);
        }
        error.message = redact(&error.message, &*self.secrets);
        error.hint = error.hint.map(|hint| redact(&hint, &*self.secrets));
        error
    }

    fn hint(&self, error: &ProviderError) -> Option<String> {
        let model = &self.model.id;
        match (error.kind, error.status) {
            (ProviderErrorKind::Auth, _) => {
                let hint = &self.endpoint.key_hint;
                (!hint.is_empty()).then(|| hint.clone())
            }
            (ProviderErrorKind::InvalidRequest, Some(404 | 405))
                if error.message.to_lowercase().contains("model") =>
            {
                let near = registry::similar(model);
                let near = if near.is_empty() {
                    String::new()
                } else {
                    format!("; known: {}", near.join(", "))
                };
                Some(format!("check the model name `{model}`{near}"))
            }
            (ProviderErrorKind::InvalidRequest, Some(404 | 405)) => {
                let url = endpoint::shown_url(self.endpoint.url.as_str());
                Some(format!(
                    "check base_url (the request went to {url}) and the model name `{model}`"
                ))
            }
            (ProviderErrorKind::Quota, _) => Some("check the plan and billing of the account".to_owned()),
            _ => None,
        }
    }
}
