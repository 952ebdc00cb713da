//! CTX-16: the spans of the next request, and the reasons requests missed the provider's cache.

mod ledger;

use windlass_api::{ContextSpan, Message, Part, Role};
use windlass_core::clock::Timestamp;
use windlass_core::log::Exchange;
use windlass_core::model::Price;
use windlass_core::provider::{Layout, SpanOf};

pub use self::ledger::{Cause, Line, ledger};

/// Minimum lifetime of a provider's cache, in milliseconds.
const CACHED_FOR: u64 = 5 * 60 * 1000;

/// Returns the spans of a request as rows that cover all bytes. `last` is the previous exchange.
pub fn rows(
    layout: &Layout,
    messages: &[std::sync::Arc<Message>],
    last: Option<&Exchange>,
    price: Option<Price>,
    now: Timestamp,
) -> Vec<ContextSpan> {
    let cached = cached_bytes(layout, last, now);
    let row = |span: &windlass_core::provider::Span| {
        let message = match &span.of {
            SpanOf::Message(id) => messages.iter().find(|message| message.id == *id),
            _ => None,
        };
        let bytes = span.range.len();
        let tokens = (bytes as u64).div_ceil(4);
        let is_cached = span.range.end <= cached;
        ContextSpan {
            origin: (&span.of).into(),
            role: message.map(|message| message.role),
            message: message.map(|message| message.id.clone()),
            what: match (&span.of, message) {
                (_, Some(message)) => told(message),
                (SpanOf::Head, _) => "model, limits, options".to_owned(),
                (SpanOf::System, _) => "system prompt".to_owned(),
                (SpanOf::Tools, _) => "tools".to_owned(),
                (SpanOf::Message(_) | SpanOf::Frame, _) => "brackets".to_owned(),
            },
            bytes,
            tokens,
            age_ms: message.map(|message| now.0.saturating_sub(message.created_at.0)),
            is_cached,
            cost_usd: price.map(|price| cost(price, tokens, is_cached)),
        }
    };
    layout.spans.iter().map(row).collect()
}

/// Returns the number of leading bytes that the provider has seen recently.
fn cached_bytes(layout: &Layout, last: Option<&Exchange>, now: Timestamp) -> usize {
    let Some(last) =
        last.filter(|last| last.answer.status == Some(200) && now.0.saturating_sub(last.time.0) < CACHED_FOR)
    else {
        return 0;
    };
    ledger::common(&last.request, &layout.body)
}

#[allow(clippy::cast_precision_loss)]
fn cost(price: Price, tokens: u64, is_cached: bool) -> f64 {
    let per_million = if is_cached { price.cache_read } else { price.input };
    per_million * tokens as f64 / 1_000_000.0
}

/// Describes a message in a few words.
fn told(message: &Message) -> String {
    const LONGEST: usize = 48;
    let first = message.parts.iter().find_map(|part| match part {
        Part::Compaction(_) => Some("summary of what came before".to_owned()),
        Part::Text(text) => Some(text.text.clone()),
        Part::ToolCall(call) => Some(format!("calls {}", call.name)),
        Part::ToolResult(result) => Some(format!("{}: {}", result.name, result.content)),
        Part::Binary(file) => Some(file.path.clone()),
        _ => None,
    });
    // A message may consist of injected text alone.
    let injected = || {
        message
            .fragments()
            .next()
            .map(|fragment| fragment.text.trim_start().to_owned())
    };
    let first = first.or_else(injected).unwrap_or_default();
    let mut line: String = first
        .chars()
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .take(LONGEST)
        .collect();
    if first.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    let role = match message.role {
        Role::User => "you",
        Role::Assistant => "model",
        Role::Tool => "result",
        Role::System => "system",
    };
    format!("{role:<6} {}", line.trim())
}
