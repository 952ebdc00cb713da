//! Provider setup: the available providers, and their keys.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{ClientError, SessionId};

/// Providers that can be set up.
#[async_trait]
pub trait Connections: Send + Sync {
    /// Returns all providers that a session knows, usable ones first.
    fn offers(&self, session: &SessionId) -> Vec<Offer>;

    /// Tests a key, stores it where only this user can read it, and uses the provider from the next turn of the
    /// session on: a turn submitted after this returns uses it. `key` is empty for a provider that needs none.
    /// Returns a message for the user, which never contains the key.
    ///
    /// # Errors
    /// When there is no such provider or the key does not work. Then nothing was stored or changed.
    async fn connect(&self, session: &SessionId, provider: &str, key: &str) -> Result<String, ClientError>;
}

/// A provider that can be set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Name of the provider.
    pub name: String,
    /// Default model; empty if the user must name one.
    pub model: String,
    /// True if the provider needs a key.
    pub needs_key: bool,
    /// True if the provider can be used as it is.
    pub is_ready: bool,
    /// Source of the key, or how to get one, in one line.
    pub hint: String,
}

impl Offer {
    /// Formats offers as a table with one line each: name, state and hint.
    pub fn rows(offers: &[Self]) -> Vec<String> {
        let widths = offers.iter().map(|offer| offer.name.chars().count());
        let width = widths.max().unwrap_or_default();
        let row = |offer: &Self| {
            let state = if offer.is_ready { "ready" } else { "not set up" };
            format!("{:<width$}  {state:<10}  {}", offer.name, offer.hint)
        };
        offers.iter().map(row).collect()
    }
}
