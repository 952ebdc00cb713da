//! CTX-7, CTX-8: evicts outputs that do not serve the current subgoal.
//!
//! The tiers follow HiAgent (arXiv 2408.09559); outputs that repeat a better one are ranked by marginal
//! information gain.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::mask::{Place, note, outputs, with_results};
use super::score::{Block, Words, marginal_gain, retention};
use super::subgoal::{Registry, Tier};
use super::{CompactError, Compacted, Compactor, Job, Subgoals, Summarize, tail_start, whole};
use crate::message::{Message, ToolResult};
use crate::middleware::Depth;
use crate::tokens::Gauge;
use crate::tool::RECALL;

/// Replaces outputs with notes, lowest score first, until the history is below its target. If that is not
/// enough, the rest is summarized.
///
/// Invariants: messages of the active subgoal are neither masked nor summarized, whatever their score;
/// exchanges are kept or removed whole; among equal scores, the output with the lowest retention goes first;
/// the registry's spans are updated by arithmetic.
#[derive(Clone)]
pub struct Evict {
    /// Subgoals of the session.
    pub subgoals: Arc<Subgoals>,
    /// True if an output scores lower for repeating a better one.
    pub weighs_repetition: bool,
    /// Writes the summary and sets how many of the newest messages are kept.
    pub summarize: Summarize,
}

/// Maximum number of characters of an output that are compared with other outputs.
const COMPARED: usize = 4_000;
/// Maximum number of outputs compared with each other; above that there are too many pairs.
const MOST_COMPARED: usize = 400;

#[async_trait]
impl Compactor for Evict {
    async fn compact(&self, job: Job<'_>) -> Result<Compacted, CompactError> {
        if job.depth == Depth::Soft {
            return Err(CompactError::NothingToDo);
        }
        let gauge = &self.summarize.gauge;
        let registry = self.subgoals.at(job.history.len());
        let tail = tail_start(job.history, self.summarize.keep_recent);
        let order = self.order(&job, &registry, tail).await;
        let places = lowest(&job, order, gauge);
        let mut made = None;
        if !places.is_empty() {
            made = Some(Compacted::new(with_results(job.history, &places, |_, result| {
                note(result)
            })));
        }
        let now = made.as_ref().map_or(job.history, |made| made.history.as_slice());
        if gauge.tokens(now) <= job.target {
            return made.ok_or(CompactError::NothingToDo);
        }
        let cut = match registry.active() {
            Some(goal) => tail.min(whole(job.history, goal.span.start.max(1))),
            None => tail,
        };
        let rest = self.summarize.fold(&job.on(now), 1..cut).await;
        match (made, rest) {
            (made, Ok(rest)) if gauge.tokens(&rest.history) < gauge.tokens(job.history) => {
                self.subgoals.folded(cut);
                Ok(made.unwrap_or_default().then(rest))
            }
            (Some(made), _) => Ok(made),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => Err(CompactError::NoGain),
        }
    }

    fn gauge(&self) -> Option<&Gauge> {
        Some(&self.summarize.gauge)
    }
}

/// An output that may be evicted.
struct Candidate {
    place: Place,
    score: f64,
    retention: f64,
}

impl Evict {
    /// Returns the evictable outputs, lowest score first.
    async fn order(&self, job: &Job<'_>, registry: &Registry, tail: usize) -> Vec<Candidate> {
        let count = job.history.len().max(1);
        let recalled = recalls(job.history);
        let all: Vec<(Place, &ToolResult)> = outputs(job.history, 0..job.history.len()).collect();
        let tiers: Vec<Tier> = all.iter().map(|(place, _)| registry.tier(place.0)).collect();
        let mut scores: Vec<f64> = all
            .iter()
            .zip(&tiers)
            .map(|((place, _), tier)| relevance(*tier, place.0, count))
            .collect();
        if self.weighs_repetition {
            scores = less_repetition(&all, &tiers, scores).await;
        }
        let mut candidates: Vec<Candidate> = all
            .iter()
            .zip(tiers)
            .zip(scores)
            .filter(|(((place, _), tier), _)| *tier != Tier::Active && place.0 < tail)
            .map(|(((place, result), _), score)| Candidate {
                place: *place,
                score,
                retention: fading(job, place.0, result, &recalled),
            })
            .collect();
        candidates.sort_by(|a, b| {
            let score = a.score.total_cmp(&b.score);
            score
                .then(a.retention.total_cmp(&b.retention))
                .then(a.place.cmp(&b.place))
        });
        candidates
    }
}

/// Relevance by tier, and by position within a tier.
#[allow(clippy::cast_precision_loss)]
fn relevance(tier: Tier, place: usize, count: usize) -> f64 {
    tier.relevance() + place as f64 / count as f64 * 0.05
}

/// Reduces the scores of outputs that repeat a better one. Comparing all pairs takes time, so it runs off the
/// async threads.
async fn less_repetition(all: &[(Place, &ToolResult)], tiers: &[Tier], scores: Vec<f64>) -> Vec<f64> {
    let from = all.len().saturating_sub(MOST_COMPARED);
    let compared = all.iter().zip(tiers).zip(&scores).skip(from);
    let blocks: Vec<(String, f64, bool)> = compared
        .map(|(((_, result), tier), score)| {
            let text = crate::text::clip(&result.content, COMPARED);
            (text, *score, *tier == Tier::Active)
        })
        .collect();
    let work = tokio::task::spawn_blocking(move || {
        let words: Vec<Words> = blocks.iter().map(|(text, _, _)| Words::of(text)).collect();
        let blocks: Vec<Block<'_>> = blocks
            .iter()
            .zip(&words)
            .map(|((_, relevance, is_protected), words)| Block {
                words,
                relevance: *relevance,
                is_protected: *is_protected,
            })
            .collect();
        marginal_gain(&blocks)
    });
    let Ok(gains) = work.await else { return scores };
    scores.into_iter().take(from).chain(gains).collect()
}

/// Retention of an output by the forgetting curve.
fn fading(job: &Job<'_>, place: usize, result: &ToolResult, recalled: &[&str]) -> f64 {
    let since = job
        .history
        .get(place)
        .map_or(job.now.0, |message| message.updated_at.0);
    let uses = recalled
        .iter()
        .filter(|input| input.contains(result.call_id.as_str()))
        .count();
    retention(job.now.0.saturating_sub(since), uses as u64)
}

/// Returns the arguments of all `recall` calls.
fn recalls(history: &[Arc<Message>]) -> Vec<&str> {
    let calls = history.iter().flat_map(|message| message.calls());
    calls
        .filter(|call| call.name == RECALL)
        .map(|call| call.input.as_str())
        .collect()
}

/// Returns as many candidates as needed to reach the target.
fn lowest(job: &Job<'_>, order: Vec<Candidate>, gauge: &Gauge) -> HashSet<Place> {
    let mut tokens = gauge.tokens(job.history);
    let mut places = HashSet::new();
    for Candidate { place, .. } in order {
        if tokens <= job.target {
            break;
        }
        let Some(message) = job.history.get(place.0) else {
            continue;
        };
        let alone = std::slice::from_ref(message);
        let noted = with_results(alone, &HashSet::from([(0, place.1)]), |_, result| note(result));
        tokens = tokens.saturating_sub(gauge.tokens(alone).saturating_sub(gauge.tokens(&noted)));
        places.insert(place);
    }
    places
}

#[cfg(test)]
#[path = "evict_tests.rs"]
mod tests;
