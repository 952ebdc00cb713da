//! CTX-16: what the user wants kept of a conversation, whatever becomes of it.

use windlass_api::SessionId;
use windlass_core::log::Preferences;

/// Where the pins of a session are kept.
pub(crate) fn pins_of(session: &SessionId) -> String {
    format!("session:{session}")
}

/// The texts that were pinned, the first one first. None when they cannot be read.
pub async fn pinned(store: &(impl Preferences + ?Sized), session: &SessionId) -> Vec<String> {
    let value = store.preference(&pins_of(session), "pinned").await;
    let value = value.ok().flatten().unwrap_or_default();
    serde_json::from_str(&value).unwrap_or_default()
}
