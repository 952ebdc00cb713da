//! Reads the parts of a request, with errors that name the field.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Time for a body to arrive.
const TIME: Duration = Duration::from_secs(30);

/// A JSON body. An empty one is an empty object.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let reading = tokio::time::timeout(TIME, Bytes::from_request(request, state)).await;
        let slow = |_| {
            let text = format!("the body did not arrive within {} seconds", TIME.as_secs());
            Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", text)
        };
        let bytes = reading.map_err(slow)?.map_err(|rejection| {
            let text = rejection.body_text();
            match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text)
                }
                status => Problem::new(status, "bad_body", text),
            }
        })?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        // A list would be read as the fields in their order.
        let found = match text.trim_ascii_start().first() {
            Some(b'[') => Some("a list"),
            Some(b'"') => Some("a string"),
            Some(b'n') => Some("null"),
            Some(b't' | b'f') => Some("a truth value"),
            Some(b'-' | b'0'..=b'9') => Some("a number"),
            _ => None,
        };
        if let Some(found) = found {
            let text = format!("expected a JSON object, found {found}");
            return Err(Problem::field("body", text));
        }
        let mut reader = serde_json::Deserializer::from_slice(text);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let why = error.into_inner().to_string();
            Problem::field(named(&path, &why), why)
        })?;
        reader
            .end()
            .map_err(|error| Problem::field("body", error.to_string()))?;
        Ok(Self(value))
    }
}

/// Returns the field that an error is about: the one at this path, or the one that is missing there.
fn named(path: &str, why: &str) -> String {
    let path = if matches!(path, "." | "?") { "" } else { path };
    let missing = why
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split_once('`'));
    match (path, missing) {
        ("", Some((name, _))) => name.to_owned(),
        ("", None) => "body".to_owned(),
        (path, Some((name, _))) => format!("{path}.{name}"),
        (path, None) => path.to_owned(),
    }
}

/// Returns the parameter that an error of a query is about, and the rest of its text.
pub(crate) fn parameter(text: &str) -> (String, String) {
    let why = text
        .strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(text);
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|sign| sign.is_alphanumeric() || sign == '_');
    match why.split_once(": ") {
        Some((name, why)) if is_name(name) => (name.to_owned(), why.to_owned()),
        _ => match named("", why).as_str() {
            "body" => ("query".to_owned(), why.to_owned()),
            name => (name.to_owned(), why.to_owned()),
        },
    }
}

/// Query parameters.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let axum::extract::Query(value) = axum::extract::Query::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}
