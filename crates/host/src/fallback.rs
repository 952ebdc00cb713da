//! PROV-13: other models that answer when the first one cannot.
//!
//! A request goes to the first provider. If that fails after its retries because of a limit, an overload or an
//! outage, the same request goes to the next one, and the user is told. The first one is tried again after a pause.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use windlass_core::clock::Clock;
use windlass_core::model::Usage;
use windlass_core::provider::{Provider, ProviderError, ProviderErrorKind, Request};
use windlass_providers::{Relay, RelayOrder};

use crate::connect::Connection;

/// Puts other providers behind the first one. After a failure, it is tried again after `pause`.
pub fn fallback(
    first: Arc<dyn Provider>,
    others: Vec<Connection>,
    clock: Arc<dyn Clock>,
    pause: Duration,
) -> Relay {
    let rest: Vec<_> = others
        .iter()
        .map(|connection| Arc::clone(&connection.provider))
        .collect();
    let order = FallbackOrder {
        providers: std::iter::once(&first).chain(&rest).cloned().collect(),
        _connections: others,
        failed: Mutex::new(None),
        clock,
        pause,
    };
    Relay::new(first, rest, Box::new(order))
}

struct FallbackOrder {
    providers: Vec<Arc<dyn Provider>>,
    /// Keeps the other connections alive.
    _connections: Vec<Connection>,
    /// Time when the first one failed.
    failed: Mutex<Option<Duration>>,
    clock: Arc<dyn Clock>,
    pause: Duration,
}

impl RelayOrder for FallbackOrder {
    /// The first one, unless it failed a moment ago.
    fn start(&self, current: usize) -> usize {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_down = failed.is_some_and(|at| self.clock.elapsed() < at + self.pause);
        if is_down { current } else { 0 }
    }

    fn after(&self, failed: usize, error: &ProviderError, request: &Request) -> Option<(usize, String)> {
        let next = self.providers.get(failed + 1).filter(|_| is_outage(error.kind))?;
        if failed == 0 {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.elapsed());
        }
        let bytes = serde_json::to_vec(&request.messages).map_or(0, |text| text.len());
        let tokens = u64::try_from(bytes / 4).unwrap_or(u64::MAX);
        let mut line = format!(
            "{} cannot answer ({}): continuing with {}; nothing is cached there, about {tokens} tokens are sent in full",
            label(&*self.providers[failed]),
            error.message,
            label(&**next)
        );
        if let Some(price) = next.model().price {
            let usage = Usage {
                input: tokens,
                ..Usage::default()
            };
            line.push_str(&format!(" (${:.4})", price.cost(&usage)));
        }
        Some((failed + 1, line))
    }

    /// Returns a line if the first one answers again.
    fn answered(&self, index: usize) -> Option<String> {
        if index > 0 {
            return None;
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take()?;
        Some(format!("{} answers again", label(&*self.providers[0])))
    }
}

/// Returns provider and model as they are written in the settings.
fn label(provider: &dyn Provider) -> String {
    format!("{}/{}", provider.name(), provider.model().id)
}

/// Returns true for failures that another provider does not have.
fn is_outage(kind: ProviderErrorKind) -> bool {
    use ProviderErrorKind::{
        Auth, ContentPolicy, ContextOverflow, InvalidRequest, Network, Overloaded, Provider, Quota, RateLimit,
    };
    match kind {
        RateLimit | Quota | Overloaded | Network | Provider => true,
        Auth | InvalidRequest | ContextOverflow | ContentPolicy => false,
    }
}
