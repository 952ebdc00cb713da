//! Steps of every compaction: apply ready summaries, run the strategy, then force the history to fit.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::mask::{Place, cut, outputs, with_results};
use super::summarize::LEAST_RECENT;
use super::{CompactError, Compacted, Compactor, Deferred, Job, ModelEviction, Subgoals, Summarize};
use crate::message::Message;
use crate::middleware::Depth;
use crate::tokens::Gauge;

/// A strategy with the steps before and after it.
///
/// Invariants: ready summaries are applied before a model is asked. If the strategy leaves more than fits,
/// outputs that are too large on their own are cut to their start and end, including the newest, and then a
/// plain summary is made. An output larger than the window, or a strategy that protects too much, therefore
/// results in a smaller context instead of a loop.
pub(super) struct Stepwise {
    pub(super) strategy: Arc<dyn Compactor>,
    pub(super) deferred: Option<Arc<Deferred>>,
    pub(super) subgoals: Arc<Subgoals>,
    /// Periodic eviction by a model, independent of the strategy.
    pub(super) side: ModelEviction,
    pub(super) last_resort: Summarize,
}

/// Minimum number of characters that a cut result keeps.
const SHORTEST: usize = 1_000;

#[async_trait]
impl Compactor for Stepwise {
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError> {
        let mut made = Made::new(&job, &self.last_resort.gauge);
        let ready = self
            .deferred
            .as_ref()
            .and_then(|deferred| deferred.apply(job.history));
        made.take(ready.map(Compacted::new));
        let problem = if job.depth == Depth::Soft {
            self.step(&self.side, &mut made).await
        } else if made.is_done_below(job.target) {
            None
        } else {
            let problem = self.step(&*self.strategy, &mut made).await;
            self.squeeze(&mut made).await;
            problem
        };
        made.done.ok_or(problem.unwrap_or(CompactError::NothingToDo))
    }

    fn gauge(&self) -> Option<&Gauge> {
        Some(&self.last_resort.gauge)
    }
}

impl Stepwise {
    async fn step(&self, compactor: &dyn Compactor, made: &mut Made<'_>) -> Option<CompactError> {
        let history = made.history().to_vec();
        match compactor.compact(made.job.on(&history)).await {
            Ok(smaller) => {
                made.take(Some(smaller));
                None
            }
            Err(error) => Some(error),
        }
    }

    /// Forces the history to fit: cuts outputs that are too large on their own, then summarizes, if need be all but the
    /// newest message, then cuts all long outputs.
    async fn squeeze(&self, made: &mut Made<'_>) {
        let most = made.job.target.saturating_add(made.job.target / 2);
        made.shorten(most, usize::try_from(most).unwrap_or(usize::MAX));
        for keep_recent in [self.last_resort.keep_recent, LEAST_RECENT] {
            if made.tokens() <= most {
                break;
            }
            let last_resort = Summarize {
                keep_recent,
                ..self.last_resort.clone()
            };
            let history = made.history().to_vec();
            if let Ok(smaller) = last_resort.compact(made.job.on(&history)).await
                && (made.job.depth == Depth::Full || made.gauge.tokens(&smaller.history) < made.tokens())
            {
                // The first message and the summary remain in place of the removed messages.
                self.subgoals.folded(history.len() + 2 - smaller.history.len());
                made.take(Some(smaller));
            }
        }
        made.shorten(most, SHORTEST);
    }
}

/// Result of the steps so far.
struct Made<'a> {
    job: &'a Job<'a>,
    gauge: &'a Gauge,
    done: Option<Compacted>,
}

impl<'a> Made<'a> {
    fn new(job: &'a Job<'a>, gauge: &'a Gauge) -> Self {
        Self {
            job,
            gauge,
            done: None,
        }
    }

    fn history(&self) -> &[Arc<Message>] {
        self.done.as_ref().map_or(self.job.history, |done| &done.history)
    }

    fn tokens(&self) -> u64 {
        self.gauge.tokens(self.history())
    }

    fn is_done_below(&self, target: u64) -> bool {
        self.done.is_some() && self.tokens() <= target
    }

    fn take(&mut self, next: Option<Compacted>) {
        let Some(next) = next else { return };
        self.done = Some(match self.done.take() {
            Some(before) => before.then(next),
            None => next,
        });
    }

    /// Cuts outputs to their start and end, down to `fewest` characters, while the history is too large.
    fn shorten(&mut self, most: u64, fewest: usize) {
        if self.tokens() <= most {
            return;
        }
        let fewest = fewest.max(SHORTEST);
        let notice = "long outputs were cut to their start and end, because nothing else could be removed";
        let shorter = shortened(self.history(), most, fewest, self.gauge).map(|history| Compacted {
            notice: Some(notice.to_owned()),
            ..Compacted::new(history)
        });
        self.take(shorter);
    }
}

/// Returns the history with its longest outputs cut to their start and end until it fits, or `None` if no
/// output is long.
fn shortened(history: &[Arc<Message>], most: u64, fewest: usize, gauge: &Gauge) -> Option<Vec<Arc<Message>>> {
    let all = || outputs(history, 0..history.len());
    let mut characters = all().map(|(_, result)| result.content.len()).max()? / 2;
    let mut made = None;
    while characters >= fewest {
        let long = all().filter(|(_, result)| result.content.len() > characters + 300);
        let places: HashSet<Place> = long.map(|(place, _)| place).collect();
        let shorter = with_results(history, &places, |_, result| cut(result, characters));
        let fits = gauge.tokens(&shorter) <= most;
        if !places.is_empty() {
            made = Some(shorter);
        }
        if fits {
            break;
        }
        characters /= 2;
    }
    made
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
