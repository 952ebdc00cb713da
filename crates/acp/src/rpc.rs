//! Errors and updates of this protocol.

use serde_json::{Value, json};
use windlass_jsonrpc::{Gone, Outbox, RpcError};

/// Notification that withdraws a request.
pub(crate) const WITHDRAW: &str = "$/cancel_request";

pub(crate) fn sign_in(message: impl Into<String>) -> RpcError {
    RpcError::new(-32000, message)
}

pub(crate) fn unknown_session(session: &str) -> RpcError {
    RpcError {
        data: Some(json!({ "sessionId": session })),
        ..RpcError::new(-32002, format!("there is no session {session}"))
    }
}

pub(crate) fn canceled() -> RpcError {
    RpcError::new(-32800, "the request was cancelled")
}

/// Sends a `session/update`.
pub(crate) async fn update(outbox: &Outbox, session: &str, update: Value) -> Result<(), Gone> {
    let params = json!({ "sessionId": session, "update": update });
    outbox.notify("session/update", params).await
}
