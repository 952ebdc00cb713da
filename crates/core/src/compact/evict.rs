//! CTX-7, CTX-8: takes out what serves no present subgoal.
//!
//! After HiAgent (arXiv 2408.09559) for the tiers, and after marginal information gain for what repeats something better.

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

/// Replaces outputs by notes, the least worth first, until the history is under its target; what is left over it is
/// summarized.
///
/// Invariants: what serves the active subgoal is neither masked nor summarized, whatever it scores; whole exchanges stay or
/// go; among equals what is forgotten soonest goes first; the registry follows by arithmetic.
#[derive(Clone)]
pub struct Evict {
    /// What is worked on.
    pub subgoals: Arc<Subgoals>,
    /// Whether an output is worth less for repeating a better one.
    pub weighs_repetition: bool,
    /// Makes the summary, and says how many of the newest messages stay.
    pub summarize: Summarize,
}

/// How much of an output is compared with others.
const COMPARED: usize = 4_000;
/// How many outputs are compared with each other; beyond that the pairs are too many.
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

/// An output that may go.
struct Candidate {
    place: Place,
    score: f64,
    retention: f64,
}

impl Evict {
    /// What may go, the least worth first.
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

/// By the tier, and among equals by the place.
#[allow(clippy::cast_precision_loss)]
fn relevance(tier: Tier, place: usize, count: usize) -> f64 {
    tier.relevance() + place as f64 / count as f64 * 0.05
}

/// The scores less what repeats something better. Comparing all pairs takes time, so it is done off the async threads.
async fn less_repetition(all: &[(Place, &ToolResult)], tiers: &[Tier], scores: Vec<f64>) -> Vec<f64> {
    let from = all.len().saturating_sub(MOST_COMPARED);
    let compared = all.iter().zip(tiers).zip(&scores).skip(from);
    let blocks: Vec<(String, f64, bool)> = compared
        .map(|(((_, result), tier), score)| {
            let text = super::summarize::clip(&result.content, COMPARED);
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

/// What a person would remember of an output.
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

/// What was read back, as it was asked for.
fn recalls(history: &[Arc<Message>]) -> Vec<&str> {
    let calls = history.iter().flat_map(|message| message.calls());
    calls
        .filter(|call| call.name == RECALL)
        .map(|call| call.input.as_str())
        .collect()
}

/// As many of them as it takes.
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
