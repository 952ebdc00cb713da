//! Sends encoded spans and metrics to a collector over HTTP.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::clock::Clock;

use crate::config::ExportConfig;
use crate::metrics::MetricsSnapshot;
use crate::span::TraceSpan;

/// Delays between attempts; their number is the number of retries.
const DELAYS: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1500)];
/// Maximum number of spans per request.
const MOST_SPANS: usize = 500;

/// Sends to the addresses of a configuration.
pub struct Sender {
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
    config: Arc<ExportConfig>,
}

/// Reason nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The client could not be created.
    #[error("cannot connect: {0}")]
    Client(String),
    /// The collector could not be reached.
    #[error("{url}: {why}")]
    Unreachable {
        /// Address of the collector.
        url: String,
        /// Reason.
        why: String,
    },
    /// The collector refused.
    #[error("{url}: the collector answered with status {status}")]
    Refused {
        /// Address of the collector.
        url: String,
        /// HTTP status.
        status: u16,
    },
}

impl Sender {
    /// Creates a sender. Connects when it sends.
    ///
    /// # Errors
    /// Fails if the certificates of this machine cannot be read.
    pub async fn new(config: Arc<ExportConfig>, clock: Arc<dyn Clock>) -> Result<Self, SendError> {
        let urls = [&config.traces, &config.metrics];
        let is_plain = urls.into_iter().flatten().all(|url| url.starts_with("http:"));
        let timeout = config.timeout;
        let build = move || {
            let builder = reqwest::Client::builder()
                .timeout(timeout)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")));
            let builder = if is_plain {
                builder.tls_certs_only([])
            } else {
                builder
            };
            builder
                .build()
                .map_err(|error| SendError::Client(error.to_string()))
        };
        // Reading the certificates takes a while, during which turns continue.
        let client = match is_plain {
            true => build(),
            false => match tokio::task::spawn_blocking(build).await {
                Ok(client) => client,
                Err(error) => Err(SendError::Client(error.to_string())),
            },
        };
        Ok(Self {
            client: client?,
            clock,
            config,
        })
    }

    /// Sends spans.
    ///
    /// # Errors
    /// Fails with the last error after all attempts.
    pub async fn traces(&self, spans: &[TraceSpan]) -> Result<(), SendError> {
        let Some(url) = &self.config.traces else {
            return Ok(());
        };
        for part in spans.chunks(MOST_SPANS) {
            let body = self.config.encoding.traces(&self.config.resource, part);
            self.post(url, body).await?;
        }
        Ok(())
    }

    /// Sends metrics.
    ///
    /// # Errors
    /// Same as [`Self::traces`].
    pub async fn metrics(&self, metrics: &MetricsSnapshot) -> Result<(), SendError> {
        match &self.config.metrics {
            Some(url) if !metrics.histograms.is_empty() => {
                let body = self.config.encoding.metrics(&self.config.resource, metrics);
                self.post(url, body).await
            }
            _ => Ok(()),
        }
    }

    async fn post(&self, url: &str, body: Vec<u8>) -> Result<(), SendError> {
        let mut delays = DELAYS.into_iter();
        loop {
            let error = match self.attempt(url, body.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match delays.next().filter(|_| error.is_transient()) {
                Some(delay) => self.clock.sleep(delay).await,
                None => return Err(error),
            }
        }
    }

    async fn attempt(&self, url: &str, body: Vec<u8>) -> Result<(), SendError> {
        let mut request = self.client.post(url).body(body);
        request = request.header("content-type", self.config.encoding.content_type());
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(|error| SendError::Unreachable {
            url: url.to_owned(),
            why: error.without_url().to_string(),
        })?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            status => Err(SendError::Refused {
                url: url.to_owned(),
                status,
            }),
        }
    }
}

impl SendError {
    /// Returns true if another attempt may succeed, as the protocol defines it.
    fn is_transient(&self) -> bool {
        match self {
            Self::Client(_) => false,
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 502 | 503 | 504),
        }
    }
}
