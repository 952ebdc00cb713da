//! URL and headers of requests.

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::{ConfigError, ProviderConfig};
use crate::key::{Secret, is_credential};
use crate::wire::{AuthStyle, Wire};

const ANTHROPIC_VERSION: &str = "2023-06-01";

/// URL and headers of a provider's requests.
pub(super) struct Endpoint {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Hint for the user when the key is refused.
    pub(super) key_hint: String,
}

impl Endpoint {
    pub(super) fn new(config: &ProviderConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            url: url(config)?,
            headers: headers(config)?,
            key_hint: config.key_hint.clone(),
        })
    }
}

/// Returns the URL without the parts that may be secret.
pub(super) fn shown_url(text: &str) -> String {
    let Ok(url) = Url::parse(text) else {
        return "(not an address)".to_owned();
    };
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Collects everything that must not appear in a text: the key, and headers that carry a credential.
pub(super) fn secrets(config: &ProviderConfig) -> Vec<Secret> {
    let headers = config.headers.iter();
    let headers = headers.filter(|(name, value)| is_credential(name, value));
    let headers = headers.map(|(_, value)| Secret::new(value.strip_prefix("Bearer ").unwrap_or(value)));
    let password = Url::parse(&config.base_url)
        .ok()
        .and_then(|url| url.password().map(Secret::new));
    config
        .key
        .iter()
        .cloned()
        .chain(headers)
        .chain(password)
        .collect()
}

/// Joins the base URL and the wire's path. The base may already contain the version or the whole path.
fn url(config: &ProviderConfig) -> Result<Url, ConfigError> {
    let bad = |reason: String| ConfigError::BadUrl {
        provider: config.name.clone(),
        url: shown_or_raw(&config.base_url),
        reason,
    };
    let mut url = Url::parse(config.base_url.trim()).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("the scheme is `{}`", url.scheme())));
    }
    let base = url.path().trim_end_matches('/').to_owned();
    let path = match config.wire {
        Wire::Anthropic if base.ends_with("/v1/messages") => base,
        Wire::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Wire::Anthropic => format!("{base}/v1/messages"),
        Wire::Chat => openai_path(base, "/chat/completions"),
        Wire::Responses => openai_path(base, "/responses"),
        Wire::Gemini => gemini_path(&base, &config.model.id),
    };
    url.set_path(&path);
    if config.wire == Wire::Gemini {
        url.set_query(Some("alt=sse"));
    }
    Ok(url)
}

/// Returns the path of a model's stream. The base may already contain the version.
fn gemini_path(base: &str, model: &str) -> String {
    let has_version = base.rsplit('/').next().is_some_and(|last| last.starts_with("v1"));
    let version = if has_version { "" } else { "/v1beta" };
    let model = model.trim_start_matches("models/");
    format!("{base}{version}/models/{model}:streamGenerateContent")
}

fn openai_path(base: String, end: &str) -> String {
    if base.ends_with(end) {
        base
    } else if base.is_empty() {
        format!("/v1{end}")
    } else {
        format!("{base}{end}")
    }
}

fn shown_or_raw(text: &str) -> String {
    if Url::parse(text).is_ok() {
        shown_url(text)
    } else {
        text.to_owned()
    }
}

fn headers(config: &ProviderConfig) -> Result<HeaderMap, ConfigError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if config.wire == Wire::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some(key) = &config.key {
        let (name, text) = match (config.quirks.auth, config.wire) {
            (AuthStyle::ApiKey, _) | (AuthStyle::Wire, Wire::Anthropic) => {
                (HeaderName::from_static("x-api-key"), key.expose().to_owned())
            }
            (AuthStyle::Wire, Wire::Gemini) => {
                (HeaderName::from_static("x-goog-api-key"), key.expose().to_owned())
            }
            (AuthStyle::Bearer, _) | (AuthStyle::Wire, Wire::Chat | Wire::Responses) => {
                (AUTHORIZATION, format!("Bearer {}", key.expose()))
            }
        };
        let bad = |_| ConfigError::BadKey {
            provider: config.name.clone(),
        };
        let mut value = HeaderValue::from_str(&text).map_err(bad)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &config.headers {
        let bad = || ConfigError::BadHeader {
            provider: config.name.clone(),
            header: name.clone(),
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
