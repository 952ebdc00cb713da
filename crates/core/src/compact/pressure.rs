//! CTX-2: asks for a smaller context when it fills up.

use std::sync::Arc;

use async_trait::async_trait;

use super::Deferred;
use crate::middleware::{Depth, IterationView, Middleware, Shrink, Verdict};
use crate::tokens::Gauge;

/// Looks at how full the context is before every question. Over the soft share it asks for what is ready and costs nothing,
/// and only when something is; over the hard share for whatever it takes, down to the soft share.
///
/// Its cost grows with what is new: what was reported is not counted again, and far below the shares nothing is counted.
#[derive(Clone)]
pub struct Pressure {
    /// The share of the model's window above which ready summaries are applied.
    pub soft: f64,
    /// The share above which the context is compacted.
    pub hard: f64,
    /// What it counts with: the same as the compactor's.
    pub gauge: Arc<Gauge>,
    /// Where ready summaries are; `None` without any.
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
        if window == 0 || gauge.is_surely_below(soft, view.prefix, view.history) {
            return Verdict::proceed();
        }
        let fixed = gauge.prefix(view.prefix);
        if fixed > window && view.model.known {
            return Verdict::stop(format!(
                "Stopped: the system prompt and the tools are {fixed} tokens, more than the {window} that {} reads at all.",
                view.model.id
            ));
        }
        let used = gauge.request(view.prefix, view.history);
        let has_ready = || {
            self.deferred
                .as_ref()
                .is_some_and(|deferred| deferred.has_ready())
        };
        let depth = match used {
            used if used > hard => Depth::Hard,
            used if used > soft && has_ready() => Depth::Soft,
            _ => return Verdict::proceed(),
        };
        // What is not the conversation cannot be made smaller.
        let fixed = used.saturating_sub(gauge.tokens(view.history)).max(fixed);
        let shrink = Shrink {
            depth,
            target: Some(soft.saturating_sub(fixed)),
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
