//! Properties of a model: limits, prices, abilities, and the cost of a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model as the registry knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Id that is sent to the provider.
    pub id: String,
    /// Maximum number of tokens of a request and its reply together.
    pub context_window: u64,
    /// Maximum number of tokens of a reply.
    pub max_output: u64,
    /// Prices, if known.
    pub price: Option<Price>,
    /// True if the model reads images.
    pub images: bool,
    /// True if the model supports reasoning.
    pub reasoning: bool,
    /// False if the registry has no entry and safe defaults are used.
    pub known: bool,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Price {
    /// Uncached input.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from the provider's cache.
    pub cache_read: f64,
    /// Input written to the provider's cache.
    pub cache_write: f64,
}

/// Tokens of one model call. The first four counts do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// Part of the output that is reasoning; 0 if the provider does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
    /// Number of pieces that the output arrived in; 0 in totals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chunks: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Returns the total number of input tokens.
    pub fn total_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Adds the tokens of another call.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

impl Price {
    /// Returns the cost of `usage` in US dollars.
    #[allow(clippy::cast_precision_loss)]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let dollars = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1_000_000.0;
        dollars(usage.input, self.input)
            + dollars(usage.output, self.output)
            + dollars(usage.cache_read, self.cache_read)
            + dollars(usage.cache_write, self.cache_write)
    }
}

/// An embedder's source of model properties.
pub trait ModelRegistry: Send + Sync {
    /// Returns the entry for a model id, if there is one.
    fn lookup(&self, id: &str) -> Option<Model>;
}

/// Formats a cost in dollars of which a part may have no known price. A price that is not known is never shown as a
/// number.
pub fn dollars_or_more(cost: f64, is_unpriced: bool) -> String {
    match (is_unpriced, cost == 0.0) {
        (false, _) => dollars(cost),
        (true, true) => "?".to_owned(),
        (true, false) => format!("{}+", dollars(cost)),
    }
}

/// Formats a cost in dollars, with more digits for small amounts.
pub fn dollars(cost: f64) -> String {
    if cost == 0.0 {
        "$0".to_owned()
    } else if cost < 1.0 {
        format!("${cost:.4}")
    } else {
        format!("${cost:.2}")
    }
}
