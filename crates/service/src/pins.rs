//! CTX-16: texts that the user pinned, which survive every compaction.

use windlass_api::SessionId;
use windlass_core::log::{LogError, Preferences};

/// Preference name of the pins.
const NAME: &str = "pinned";

/// Preference scope of a session's pins.
fn scope(session: &SessionId) -> String {
    format!("session:{session}")
}

/// Returns the pinned texts, oldest first. Empty if they cannot be read.
pub(crate) async fn pinned(store: &(impl Preferences + ?Sized), session: &SessionId) -> Vec<String> {
    let value = store.preference(&scope(session), NAME).await;
    let value = value.ok().flatten().unwrap_or_default();
    serde_json::from_str(&value).unwrap_or_default()
}

/// Stores these pins, replacing all others.
pub(crate) async fn keep(
    store: &(impl Preferences + ?Sized),
    session: &SessionId,
    pins: &[String],
) -> Result<(), LogError> {
    let value = serde_json::to_string(pins).map_err(|error| LogError::Failed(error.to_string()))?;
    store.set_preference(&scope(session), NAME, Some(&value)).await
}
