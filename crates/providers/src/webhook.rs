//! Posts a report to an address of the user's choice.

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use windlass_core::clock::Clock;

use crate::transport::{Call, Transport, TransportLimits};

/// Name of the header by which a receiver recognizes a repeated request.
const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");

/// Posts JSON to a webhook. Any answer but a success is an error. Redirects are not followed.
///
/// # Errors
/// Fails with the reason, without the address, which may contain a secret.
pub async fn post_webhook(url: &str, body: Vec<u8>, key: &str, clock: &dyn Clock) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| format!("the address is not valid: {error}"))?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(key) = HeaderValue::from_str(key) {
        headers.insert(IDEMPOTENCY, key);
    }
    let call = Call {
        url,
        headers,
        body: Bytes::from(body),
    };
    let answered = Transport::new()
        .post(call, &TransportLimits::default(), clock)
        .await;
    answered.map(drop).map_err(|failed| match failed.answer {
        Some((status, _)) => format!("the receiver answered with status {status}"),
        None => failed.error.to_string(),
    })
}
