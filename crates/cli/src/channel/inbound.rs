//! Messages from a bridge: one route, which accepts nothing that is not signed.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::json;
use windlass_api::SenderMessage;
use windlass_config::environment;
use windlass_core::log::SessionKey;
use windlass_providers::{RefusedWebhook, WebhookGuard};

use super::conversation::{Conversations, NotTaken};

/// Maximum size of a message in bytes.
const MOST_BYTES: usize = 1 << 20;

/// A message of a person.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inbound {
    /// The conversation, as the key of a session.
    key: String,
    /// The words.
    text: String,
    /// The person who wrote them. In a direct conversation, the key names the person.
    #[serde(default)]
    sender: Option<String>,
}

#[derive(Clone)]
struct Shared {
    conversations: Arc<Conversations>,
    guard: Arc<Mutex<WebhookGuard>>,
}

/// Returns the routes.
pub(super) fn router(conversations: Arc<Conversations>, guard: WebhookGuard) -> Router {
    Router::new()
        .route("/messages", post(receive))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(Shared {
            conversations,
            guard: Arc::new(Mutex::new(guard)),
        })
}

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &'static str| headers.get(name).and_then(|value| value.to_str().ok());
    let accepted = {
        let mut guard = shared.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.accept(header, &body, environment::clock().now())
    };
    match accepted {
        Ok(()) => {}
        // The bridge did not see our answer to the first one.
        Err(RefusedWebhook::Repeated) => return StatusCode::OK.into_response(),
        Err(error @ RefusedWebhook::Flood) => {
            return problem(StatusCode::TOO_MANY_REQUESTS, "", &error.to_string());
        }
        Err(error) => return problem(StatusCode::UNAUTHORIZED, "", &error.to_string()),
    }
    let Inbound { key, text, sender } = match serde_json::from_slice(&body) {
        Ok(inbound) => inbound,
        Err(error) => return problem(StatusCode::BAD_REQUEST, "", &error.to_string()),
    };
    let key = match key.parse::<SessionKey>() {
        Ok(key) => key,
        Err(error) => return problem(StatusCode::BAD_REQUEST, "key", &error.to_string()),
    };
    if text.trim().is_empty() {
        return problem(StatusCode::BAD_REQUEST, "text", "the message is empty");
    }
    if sender.as_ref().is_some_and(|sender| sender.trim().is_empty()) {
        return problem(
            StatusCode::BAD_REQUEST,
            "sender",
            "the sender has no name; leave the field out",
        );
    }
    let sender = sender.or_else(|| key.sender().map(str::to_owned));
    match shared
        .conversations
        .take(key, SenderMessage { text, sender })
        .await
    {
        Ok(session) => (StatusCode::ACCEPTED, json!({"session": session}).to_string()).into_response(),
        Err(NotTaken::Busy(why)) => problem(StatusCode::TOO_MANY_REQUESTS, "", &why),
        Err(NotTaken::Failed(why)) => problem(StatusCode::INTERNAL_SERVER_ERROR, "key", &why),
    }
}

/// Returns an error as JSON that names the field.
fn problem(status: StatusCode, field: &str, message: &str) -> Response {
    let body = json!({"error": message, "field": field}).to_string();
    (status, [("content-type", "application/json")], body).into_response()
}
