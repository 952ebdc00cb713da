//! CTX-16: what the user wants kept of a conversation, whatever becomes of it.

use windlass_api::SessionId;
use windlass_core::log::{LogError, Preferences};

/// The name they are kept under.
const NAME: &str = "pinned";

/// Where the pins of a session are kept.
fn scope(session: &SessionId) -> String {
    format!("session:{session}")
}

/// The texts that were pinned, the first one first. None when they cannot be read.
pub(crate) async fn pinned(store: &(impl Preferences + ?Sized), session: &SessionId) -> Vec<String> {
    let value = store.preference(&scope(session), NAME).await;
    let value = value.ok().flatten().unwrap_or_default();
    serde_json::from_str(&value).unwrap_or_default()
}

/// Keeps these, and no others.
pub(crate) async fn keep(
    store: &(impl Preferences + ?Sized),
    session: &SessionId,
    pins: &[String],
) -> Result<(), LogError> {
    let value = serde_json::to_string(pins).map_err(|error| LogError::Failed(error.to_string()))?;
    store.set_preference(&scope(session), NAME, Some(&value)).await
}
