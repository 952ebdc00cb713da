//! Setting up a model: which providers there are, and the key for one.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::ClientError;

/// The providers that can be set up.
#[async_trait]
pub trait Connections: Send + Sync {
    /// Every provider that is known, those that can be used first.
    fn offers(&self) -> Vec<Offer>;

    /// Tests a key, keeps it where only this user can read it, and has the provider asked from the next turn on. `key` is
    /// empty for one that needs none. Says what was done, for people; the key is never part of it.
    ///
    /// # Errors
    /// When there is no such provider or the key does not work. Then nothing was kept and nothing changed.
    async fn connect(&self, provider: &str, key: &str) -> Result<String, ClientError>;
}

/// A provider that can be set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// The model it would ask; empty when one has to be named.
    pub model: String,
    /// Whether it needs a key.
    pub needs_key: bool,
    /// Whether it can be used as it is.
    pub is_ready: bool,
    /// Where its key comes from, or how to get one; in a line.
    pub hint: String,
}

impl Offer {
    /// A table of offers, a line each: the name, whether it can be used, and the hint.
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
