//! CTX-2: requests compaction when the context fills up.

use std::sync::Arc;

use async_trait::async_trait;

use super::Deferred;
use crate::middleware::{Depth, IterationView, Middleware, Shrink, Verdict};
use crate::tokens::Gauge;

/// Checks how full the context is before every request. Above the soft share, it applies summaries that are
/// ready and cost nothing, if there are any. Above the hard share, it requests a full compaction, down to the
/// soft share, or to half of what the system prompt and the tools leave below the hard share, whichever is more.
///
/// Its cost grows with the new messages only: tokens that the provider reported are not counted again, and
/// far below the shares nothing is counted.
#[derive(Clone)]
pub struct Pressure {
    /// Share of the model's window above which ready summaries are applied.
    pub soft: f64,
    /// Share of the window above which the context is compacted.
    pub hard: f64,
    /// Gauge for counting, shared with the compactor.
    pub gauge: Arc<Gauge>,
    /// Ready summaries, or `None` if there are none to apply.
    pub deferred: Option<Arc<Deferred>>,
}

impl Default for Pressure {
    fn default() -> Self {
        Self {
            soft: 0.60,
            hard: 0.90,
            gauge: Arc::default(),
            deferred: None,
        }
    }
}

#[async_trait]
impl Middleware for Pressure {
    async fn before_iteration(&self, view: IterationView<'_>) -> Verdict {
        let (window, gauge) = (view.model.context_window, &self.gauge);
        gauge.meant_for(view.model);
        if let Some(usage) = view.last_usage {
            gauge.report(view.history, usage);
        }
        let hard = share(window, self.hard);
        let soft = share(window, self.soft).min(hard);
        let has_ready = self
            .deferred
            .as_ref()
            .is_some_and(|deferred| deferred.has_ready());
        // Without summaries nothing happens at the soft share, so nobody needs to know whether it is reached.
        let first = if has_ready { soft } else { hard };
        if window == 0 || gauge.is_surely_below(first, view.prefix, view.history) {
            return Verdict::proceed();
        }
        let fixed = gauge.prefix(view.prefix);
        if fixed > window && view.model.known {
            return Verdict::stop(format!(
                "Stopped: the system prompt and the tools take {fixed} tokens, but the context window of {} is {window}.",
                view.model.id
            ));
        }
        let used = gauge.request(view.prefix, view.history);
        let depth = match used {
            used if used > hard => Depth::Hard,
            used if used > soft && has_ready => Depth::Soft,
            _ => return Verdict::proceed(),
        };
        // Only the conversation can be compacted.
        let fixed = used.saturating_sub(gauge.tokens(view.history)).max(fixed);
        let least = match depth {
            Depth::Soft => 0,
            Depth::Hard | Depth::Full => hard.saturating_sub(fixed) / 2,
        };
        let shrink = Shrink {
            depth,
            target: Some(soft.saturating_sub(fixed).max(least)),
        };
        let mut verdict = Verdict::shrink(format!("the context holds {used} of {window} tokens"), shrink);
        verdict.metadata.insert("old_tokens".to_owned(), used.into());
        verdict
    }

    async fn after_iteration(&self, view: IterationView<'_>) -> Verdict {
        if let Some(usage) = view.last_usage {
            self.gauge.report(view.history, usage);
        }
        Verdict::proceed()
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn share(window: u64, share: f64) -> u64 {
    (window as f64 * share) as u64
}

#[cfg(test)]
#[path = "pressure_tests.rs"]
mod tests;
