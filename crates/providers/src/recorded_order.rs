//! Providers of a recorded session behind one: each request goes to the provider that it went to before.

use std::sync::Arc;

use windlass_core::provider::{Provider, ProviderError, Request};

use crate::relay::{Relay, RelayOrder};

/// Returns provider and model of the next recorded request.
pub type NextRecorded = Arc<dyn Fn() -> Option<(String, String)> + Send + Sync>;

/// The order in which the model of a recorded turn, and those that stood in for it (PROV-13), answered.
pub struct RecordedOrder {
    /// Names of the providers and their models.
    names: Vec<(String, String)>,
    next: NextRecorded,
}

impl RecordedOrder {
    /// Puts other providers beside the first one.
    pub fn relay(first: Arc<dyn Provider>, others: Vec<Arc<dyn Provider>>, next: NextRecorded) -> Relay {
        let all = std::iter::once(&first).chain(&others);
        let names = all.map(|provider| (provider.name().to_owned(), provider.model().id.clone()));
        let order = Self {
            names: names.collect(),
            next,
        };
        Relay::new(first, others, Box::new(order))
    }
}

impl RelayOrder for RecordedOrder {
    fn start(&self, current: usize) -> usize {
        let recorded = (self.next)();
        let position = recorded.and_then(|wanted| self.names.iter().position(|name| *name == wanted));
        position.unwrap_or(current)
    }

    fn after(&self, failed: usize, _error: &ProviderError, _request: &Request) -> Option<(usize, String)> {
        let next = self.start(failed);
        (next != failed).then(|| (next, "another model stood in here".to_owned()))
    }
}
