//! Webhooks: signed requests to an address of the user's choice, and checks of signed requests from others.
//!
//! Signatures follow the Standard Webhooks specification, for which there are libraries in most languages: the
//! header `webhook-signature` is `v1,` and the base64 form of an HMAC-SHA256 over `<id>.<timestamp>.<body>`.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use windlass_core::clock::{Clock, Timestamp};

use crate::key::Secret;
use crate::transport::{Call, Transport, TransportLimits};

/// Name of the header by which a receiver recognizes a repeated request.
const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");
/// Header with the id of a request; the same when it is repeated.
pub const WEBHOOK_ID: &str = "webhook-id";
/// Header with the time of a request, in seconds since the Unix epoch.
pub const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";
/// Header with the signatures of a request.
pub const WEBHOOK_SIGNATURE: &str = "webhook-signature";
/// Start of a secret in base64.
const SECRET_PREFIX: &str = "whsec_";
/// Maximum difference between the time of a request and ours, in seconds.
const TOLERANCE: u64 = 300;
/// Maximum number of ids that are remembered. All of a flood beyond it is refused.
const MOST_IDS: usize = 100_000;

/// Posts JSON to a webhook, signed if there is a secret. Any answer but a success is an error. Redirects are
/// not followed.
///
/// # Errors
/// Fails with the reason, without the address, which may contain a secret.
pub async fn post_webhook(
    url: &str,
    body: Vec<u8>,
    id: &str,
    secret: Option<&Secret>,
    clock: &dyn Clock,
) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| format!("the address is not valid: {error}"))?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(IDEMPOTENCY, id.clone());
        headers.insert(WEBHOOK_ID, id);
    }
    if let Some(secret) = secret {
        let time = clock.now().0 / 1000;
        headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(time));
        if let Ok(signature) = HeaderValue::from_str(&sign(secret, id, time, &body)) {
            headers.insert(WEBHOOK_SIGNATURE, signature);
        }
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

/// Returns the signature of a request.
pub fn sign(secret: &Secret, id: &str, time: u64, body: &[u8]) -> String {
    let tag = hmac::sign(&key(secret), &signed(id, time, body));
    format!("v1,{}", STANDARD.encode(tag))
}

/// Reason a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedWebhook {
    /// A header is missing or malformed.
    #[error("the header {0} is missing or not valid")]
    Header(&'static str),
    /// The time of the request is too far from ours.
    #[error("the time in {WEBHOOK_TIMESTAMP} differs from ours by more than {TOLERANCE} seconds")]
    Time,
    /// No signature is right.
    #[error("the signature in {WEBHOOK_SIGNATURE} is wrong")]
    Signature,
    /// The request was received before.
    #[error("the request with this {WEBHOOK_ID} was received before")]
    Repeated,
    /// Too many requests within the time that ids are remembered.
    #[error("too many requests")]
    Flood,
}

/// Checks requests: signature, age, and that none is received twice.
#[derive(Debug)]
pub struct WebhookGuard {
    secret: Secret,
    /// Ids of accepted requests, and when they can be forgotten.
    seen: HashMap<String, u64>,
}

impl WebhookGuard {
    /// Accepts requests that were signed with this secret.
    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            seen: HashMap::new(),
        }
    }

    /// Accepts a request once. `header` returns the value of a header.
    ///
    /// # Errors
    /// Fails with the reason. Nothing about the content is trusted then.
    pub fn accept<'a>(
        &mut self,
        header: impl Fn(&'static str) -> Option<&'a str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), RefusedWebhook> {
        let text = |name| header(name).ok_or(RefusedWebhook::Header(name));
        let id = text(WEBHOOK_ID)?;
        let time = text(WEBHOOK_TIMESTAMP)?.parse::<u64>();
        let time = time.map_err(|_| RefusedWebhook::Header(WEBHOOK_TIMESTAMP))?;
        let signatures = text(WEBHOOK_SIGNATURE)?;
        let now = now.0 / 1000;
        if time.abs_diff(now) > TOLERANCE {
            return Err(RefusedWebhook::Time);
        }
        let (key, signed) = (key(&self.secret), signed(id, time, body));
        let is_right = |signature: &str| {
            let tag = signature
                .strip_prefix("v1,")
                .and_then(|text| STANDARD.decode(text).ok());
            tag.is_some_and(|tag| hmac::verify(&key, &signed, &tag).is_ok())
        };
        if !signatures.split(' ').take(8).any(is_right) {
            return Err(RefusedWebhook::Signature);
        }
        self.remember(id, time, now)
    }

    fn remember(&mut self, id: &str, time: u64, now: u64) -> Result<(), RefusedWebhook> {
        if self.seen.contains_key(id) {
            return Err(RefusedWebhook::Repeated);
        }
        if self.seen.len() >= MOST_IDS {
            self.seen.retain(|_, until| *until >= now);
        }
        if self.seen.len() >= MOST_IDS {
            return Err(RefusedWebhook::Flood);
        }
        // Until then, the same request would still be young enough.
        self.seen.insert(id.to_owned(), time.max(now) + TOLERANCE);
        Ok(())
    }
}

/// Returns the bytes that are signed.
fn signed(id: &str, time: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{id}.{time}.").into_bytes();
    bytes.extend(body);
    bytes
}

fn key(secret: &Secret) -> hmac::Key {
    let text = secret.expose();
    let decoded = text
        .strip_prefix(SECRET_PREFIX)
        .and_then(|text| STANDARD.decode(text).ok());
    let bytes = decoded.unwrap_or_else(|| text.as_bytes().to_vec());
    hmac::Key::new(hmac::HMAC_SHA256, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification's own libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: u64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    /// UI-6: signatures are those of the specification.
    #[test]
    fn signatures_follow_the_specification() {
        let signature = sign(&Secret::new(SECRET), ID, TIME, BODY);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    /// UI-6: a request is accepted once, if it is young and signed; any change to it is noticed.
    #[test]
    fn requests_are_accepted_once() {
        let right = sign(&Secret::new(SECRET), ID, TIME, BODY);
        let accept =
            |guard: &mut WebhookGuard, id: &str, time: &str, signature: &str, body: &[u8], now: u64| {
                let header = |name: &'static str| match name {
                    WEBHOOK_ID => Some(id),
                    WEBHOOK_TIMESTAMP => Some(time),
                    _ => Some(signature),
                };
                guard.accept(header, body, Timestamp(now * 1000))
            };
        let time = TIME.to_string();
        let other = sign(&Secret::new("whsec_AAAA"), ID, TIME, BODY);
        let cases = [
            (
                ID,
                time.as_str(),
                other.as_str(),
                BODY,
                TIME,
                RefusedWebhook::Signature,
            ),
            ("other", &time, &right, BODY, TIME, RefusedWebhook::Signature),
            (ID, "1614265331", &right, BODY, TIME, RefusedWebhook::Signature),
            (ID, &time, &right, b"{}", TIME, RefusedWebhook::Signature),
            (ID, &time, "", BODY, TIME, RefusedWebhook::Signature),
            (ID, &time, &right, BODY, TIME + 301, RefusedWebhook::Time),
            (ID, &time, &right, BODY, TIME - 301, RefusedWebhook::Time),
            (
                ID,
                "soon",
                &right,
                BODY,
                TIME,
                RefusedWebhook::Header(WEBHOOK_TIMESTAMP),
            ),
        ];
        let mut guard = WebhookGuard::new(Secret::new(SECRET));
        for (id, time, signature, body, now, expected) in cases {
            assert_eq!(accept(&mut guard, id, time, signature, body, now), Err(expected));
        }
        let rotated = format!("{other} {right}");
        assert_eq!(accept(&mut guard, ID, &time, &rotated, BODY, TIME + 10), Ok(()));
        let again = accept(&mut guard, ID, &time, &right, BODY, TIME + 20);
        assert_eq!(again, Err(RefusedWebhook::Repeated));
        let none = guard.accept(|_| None, BODY, Timestamp(TIME * 1000));
        assert_eq!(none, Err(RefusedWebhook::Header(WEBHOOK_ID)));
    }
}
