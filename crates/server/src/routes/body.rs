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
        let mut reader = serde_json::Deserializer::from_slice(text);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            let field = if field == "." { "body".to_owned() } else { field };
            Problem::field(field, error.into_inner().to_string())
        })?;
        reader
            .end()
            .map_err(|error| Problem::field("body", error.to_string()))?;
        Ok(Self(value))
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
