//! Cache misses: the reason a request did not hit the provider's cache as far as possible, and the cost.

use windlass_core::clock::Timestamp;
use windlass_core::log::{Exchange, Frame};
use windlass_core::model::Price;

use super::CACHED_FOR;

/// One request in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Number of the request, starting at 1.
    pub number: usize,
    /// Time at which the request ended.
    pub time: Timestamp,
    /// Size of the request in bytes.
    pub bytes: usize,
    /// Offset of the first byte that differs from the previous request.
    pub changed_at: usize,
    /// Tokens read, as reported by the provider: total, and from its cache.
    pub tokens: Option<(u64, u64)>,
    /// Reason repeated content did not come from the cache; `None` if it did.
    pub cause: Option<Cause>,
    /// Cost of the miss in US dollars.
    pub lost_usd: Option<f64>,
}

/// Reason a request missed the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is the first request.
    First,
    /// It used another provider or model.
    Model,
    /// The system prompt changed.
    System,
    /// The tools changed.
    Tools,
    /// Options of the request changed.
    Options,
    /// The middle of the conversation changed: it was compacted, trimmed or rewound.
    History,
    /// The provider's cache had expired.
    Expired,
    /// Nothing changed, but the provider did not use its cache.
    Provider,
}

impl Cause {
    /// Returns a short description.
    pub fn told(self) -> &'static str {
        match self {
            Self::First => "the first request",
            Self::Model => "another provider or model",
            Self::System => "the system prompt changed",
            Self::Tools => "the tool list changed",
            Self::Options => "the request options changed",
            Self::History => "the history was rewritten",
            Self::Expired => "the provider's cache timed out",
            Self::Provider => "the provider did not use its cache",
        }
    }
}

/// Returns the requests of a session. `frame` looks up the frame of an exchange, `price` the price of its
/// model.
pub fn ledger(
    exchanges: &[Exchange],
    frame: impl Fn(&str) -> Option<Frame>,
    price: impl Fn(&str) -> Option<Price>,
) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut before: Option<&Exchange> = None;
    let answered = exchanges
        .iter()
        .enumerate()
        .filter(|(_, exchange)| exchange.answer.status == Some(200));
    for (index, exchange) in answered {
        let changed_at = before.map_or(0, |before| common(&before.request, &exchange.request));
        let tokens = tokens(&exchange.answer.body);
        let cause = cause(before, exchange, changed_at, tokens, &frame);
        lines.push(Line {
            number: index + 1,
            time: exchange.time,
            bytes: exchange.request.len(),
            changed_at,
            tokens,
            cause,
            lost_usd: cause
                .filter(|cause| *cause != Cause::First)
                .and_then(|_| lost(before?, tokens?, price(&exchange.model)?)),
        });
        before = Some(exchange);
    }
    lines
}

/// Returns the offset at which a request differs from the previous one, ignoring cache markers: those move
/// with the conversation, and providers ignore them when comparing.
pub(super) fn common(before: &[u8], after: &[u8]) -> usize {
    const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
    let skip = |bytes: &[u8], mut at: usize| {
        while bytes.get(at..).is_some_and(|rest| rest.starts_with(MARK)) {
            at += MARK.len();
        }
        at
    };
    let (mut old, mut new) = (0, 0);
    loop {
        (old, new) = (skip(before, old), skip(after, new));
        match (before.get(old), after.get(new)) {
            (Some(was), Some(is)) if was == is => (old, new) = (old + 1, new + 1),
            _ => return new,
        }
    }
}

fn cause(
    before: Option<&Exchange>,
    exchange: &Exchange,
    changed_at: usize,
    tokens: Option<(u64, u64)>,
    frame: &impl Fn(&str) -> Option<Frame>,
) -> Option<Cause> {
    let Some(before) = before else {
        return Some(Cause::First);
    };
    if (&before.provider, &before.model) != (&exchange.provider, &exchange.model) {
        return Some(Cause::Model);
    }
    let frames = (
        before.frame.as_deref().and_then(frame),
        exchange.frame.as_deref().and_then(frame),
    );
    if let (Some(old), Some(new)) = &frames {
        if old.system != new.system {
            return Some(Cause::System);
        }
        if old.tools != new.tools {
            return Some(Cause::Tools);
        }
    }
    // A request ends in a few brackets, and contains markers that are ignored.
    let tail = 200;
    if changed_at + tail < before.request.len() {
        let is_early = changed_at < 200;
        return Some(if is_early { Cause::Options } else { Cause::History });
    }
    let (all, cached) = tokens?;
    // Providers cache in blocks, so a small part is always missing.
    let could = (before.request.len() as u64 / 6).saturating_sub(2_000);
    if all < 2_000 || cached >= could.min(all / 2) {
        return None;
    }
    let gap = exchange.time.0.saturating_sub(before.time.0);
    Some(if gap >= CACHED_FOR {
        Cause::Expired
    } else {
        Cause::Provider
    })
}

/// Returns the cost of missing the previous request: its share of the tokens at the full price.
#[allow(clippy::cast_precision_loss)]
fn lost(before: &Exchange, (all, cached): (u64, u64), price: Price) -> Option<f64> {
    let earlier = tokens(&before.answer.body).map_or(0, |(all, _)| all).min(all);
    let missed = earlier.saturating_sub(cached);
    Some((price.input - price.cache_read) * missed as f64 / 1_000_000.0)
}

/// Returns the tokens that an answer reports: total read, and from the cache. Each wire format
/// has its own field names.
fn tokens(answer: &[u8]) -> Option<(u64, u64)> {
    let text = String::from_utf8_lossy(answer);
    let last = |name: &str| -> Option<u64> {
        let mut found = None;
        for (at, _) in text.match_indices(name) {
            let rest = text.get(at + name.len()..).unwrap_or_default();
            let digits: String = rest
                .chars()
                .skip_while(|sign| " :\"".contains(*sign))
                .take_while(char::is_ascii_digit)
                .collect();
            found = digits.parse().ok().max(found);
        }
        found
    };
    if let Some(fresh) = last("\"input_tokens\"") {
        let (read, written) = (
            last("\"cache_read_input_tokens\""),
            last("\"cache_creation_input_tokens\""),
        );
        if read.is_some() || written.is_some() {
            let read = read.unwrap_or(0);
            return Some((fresh + read + written.unwrap_or(0), read));
        }
        return Some((fresh, last("\"cached_tokens\"").unwrap_or(0)));
    }
    let all = last("\"prompt_tokens\"")?;
    Some((all, last("\"cached_tokens\"").unwrap_or(0)))
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
