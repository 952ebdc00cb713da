//! `/context`: the content of the next request, and the reasons requests missed the cache.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use windlass_api::{ContextReport, ContextSpan, Event, Message, Part, Role, SessionEvent, SpanOrigin};
use windlass_core::clock::Timestamp;
use windlass_core::compact::{estimate_tokens, fidelity, without_outputs};
use windlass_core::context::prepare;
use windlass_core::log::{Durability, Frame, LogError};
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Request, SpanOf, ToolChoice};

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::context_report::{Cause, ledger, rows};
use crate::environment::TurnStart;
use crate::format::dollars;

/// Maximum number of rows listed one by one; those in the middle of a longer conversation are counted.
const SHOWN: usize = 60;

pub(super) async fn context(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(2, &["--all", "--yes"])?;
    match words.get(0) {
        None | Some("show") => show(cx, words.has("--all")).await,
        Some("ledger") => costs(cx).await,
        Some("pin") => pin(cx, number(words)?).await,
        Some("evict") => evict(cx, number(words)?, words.has("--yes")).await,
        Some(_) => Err(Stop::Usage),
    }
}

/// Parses the number of a row.
fn number(words: &Words<'_>) -> Result<usize, Stop> {
    let number = words.get(1).and_then(|word| word.parse::<usize>().ok());
    number.filter(|number| *number > 0).ok_or(Stop::Usage)
}

/// The next request, as far as it is known, and the parts it is built from.
struct Next {
    /// Notices for the user that the next turn would not repeat.
    notices: Vec<String>,
    layout: Layout,
    messages: Vec<Arc<Message>>,
    model: Model,
}

async fn next(cx: &mut CommandContext<'_>) -> Result<Next, Stop> {
    cx.wait_for_turn()?;
    let start = TurnStart::new(None, "", cx.history, &cx.pursuit.goal, cx.pins);
    let plan = cx.env.plan(&start).await;
    let plan = plan.map_err(|why| Stop::Failed(why.message))?;
    let session = cx.info.id.clone();
    let request = Request {
        prefix: plan.config.prefix,
        messages: prepare(cx.history),
        tool_choice: ToolChoice::Auto,
        max_output: plan.config.max_output,
        session,
        cancel: Default::default(),
    };
    let Some(layout) = plan.provider.layout(&request) else {
        return Err(Stop::Failed(
            "this provider does not say what it sends".to_owned(),
        ));
    };
    Ok(Next {
        notices: plan.notices,
        layout,
        messages: request.messages,
        model: plan.provider.model().clone(),
    })
}

/// Returns the text of a command, preceded by the notices.
fn said(notices: &[String], text: &str) -> Outcome {
    let notices: String = notices.iter().map(|notice| format!("{notice}\n")).collect();
    Ok(Said::text(format!("{notices}{text}")))
}

/// Returns the message of a row of `/context`.
fn at(next: &Next, number: usize) -> Result<Arc<Message>, Stop> {
    let id = match next.layout.spans.get(number - 1).map(|span| &span.of) {
        Some(SpanOf::Message(id)) => id,
        Some(_) => {
            let text = format!("row {number} is no message: it is in every request");
            return Err(Stop::Failed(text));
        }
        None => {
            let rows = next.layout.spans.len();
            return Err(Stop::Failed(format!(
                "there is no row {number}; /context has {rows}"
            )));
        }
    };
    let found = next.messages.iter().find(|message| message.id == *id);
    found
        .cloned()
        .ok_or_else(|| Stop::Failed(format!("row {number} was made for this request alone")))
}

/// Pins a message, so that it survives every compaction word for word.
async fn pin(cx: &mut CommandContext<'_>, number: usize) -> Outcome {
    let next = next(cx).await?;
    let message = at(&next, number)?;
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        Part::ToolResult(result) => Some(result.content.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return Err(Stop::Failed(format!("row {number} has no text to keep")));
    }
    let characters = text.chars().count();
    cx.pins.add(&*cx.inner.store, text).await?;
    let text = format!(
        "Row {number} is pinned: its {characters} characters go word for word into every summary from the next turn."
    );
    said(&next.notices, &text)
}

/// Removes the outputs of a row from the conversation; without confirmation, only reports the effect.
async fn evict(cx: &mut CommandContext<'_>, number: usize, is_sure: bool) -> Outcome {
    let next = next(cx).await?;
    let message = at(&next, number)?;
    let Some(masked) = without_outputs(&message) else {
        return Err(Stop::Failed(format!(
            "row {number} has no output worth evicting; messages of you and the model stay"
        )));
    };
    let start = next
        .layout
        .spans
        .get(number - 1)
        .map_or(0, |span| span.range.start);
    let behind = next.layout.body.len().saturating_sub(start) as u64 / 4;
    let tokens = |message: &Message| estimate_tokens(&[Arc::new(message.clone())]);
    let saved = tokens(&message).saturating_sub(tokens(&masked));
    let again = next.model.price.map_or(String::new(), |price| {
        #[allow(clippy::cast_precision_loss)]
        let cost = (price.input - price.cache_read) * behind as f64 / 1_000_000.0;
        format!(", {} once", dollars(cost))
    });
    let effect = format!(
        "{saved} tokens less in every request; about {behind} tokens from there on leave the provider's cache{again}. The \
         output can be read back with recall."
    );
    if !is_sure {
        let text =
            format!("Evicting row {number} would mean {effect}\n/context evict {number} --yes does it.");
        return said(&next.notices, &text);
    }
    replace(cx, masked).await?;
    said(&next.notices, &format!("Evicted row {number}: {effect}"))
}

/// Replaces a message by a new version; the old one stays in the record.
async fn replace(cx: &mut CommandContext<'_>, message: Message) -> Result<(), LogError> {
    let before = estimate_tokens(cx.history);
    let message = Arc::new(message);
    let mut history = cx.history.clone();
    if let Some(slot) = history.iter_mut().find(|known| known.id == message.id) {
        *slot = Arc::clone(&message);
    }
    let mut events = cx.queue.repeated(cx.sink);
    events.push(Event::Message { message });
    events.push(Event::Session(SessionEvent::Compaction {
        before,
        after: estimate_tokens(&history),
        history: history.iter().map(|message| message.id.clone()).collect(),
        fidelity: Some(fidelity(cx.history, &history)),
    }));
    cx.sink.store(events, Durability::Disk).await?;
    *cx.history = history;
    Ok(())
}

/// Returns the spans of the next request.
pub(super) async fn report(cx: &mut CommandContext<'_>) -> Result<ContextReport, Stop> {
    let Next {
        notices,
        layout,
        messages,
        model,
    } = next(cx).await?;
    let exchanges = cx.store().exchanges(&cx.info.id).await?;
    let now = cx.inner.clock.now();
    let spans = rows(&layout, &messages, exchanges.last(), model.price, now);
    Ok(ContextReport {
        model: model.id.clone(),
        window: model.context_window,
        used_tokens: cx.stored_info().await?.totals.context_tokens,
        bytes: layout.body.len(),
        tokens: spans.iter().map(|span| span.tokens).sum(),
        cost_usd: spans.iter().map(|span| span.cost_usd).sum(),
        spans,
        notices,
    })
}

async fn show(cx: &mut CommandContext<'_>, all: bool) -> Outcome {
    let report = report(cx).await?;
    let now = cx.inner.clock.now();
    let (rows, used, tokens) = (&report.spans, report.used_tokens, report.tokens);
    let share = |tokens: u64| match report.window {
        0 => String::new(),
        window => format!(", {} % of {window}", tokens * 100 / window),
    };
    let mut text = match used {
        0 => String::new(),
        used => format!("context {used} tokens{} after the last request\n", share(used)),
    };
    let _ = writeln!(
        text,
        "next request: {} bytes, about {tokens} tokens{}",
        report.bytes,
        share(tokens)
    );
    let _ = writeln!(text, "tokens by kind: {}", by_kind(rows));
    let _ = writeln!(
        text,
        "{:>4} {:>9} {:>8} {:>9} {:<6} {:>9}  what",
        "#", "bytes", "tokens", "age", "cache", "price"
    );
    let middle = if all || rows.len() <= SHOWN {
        0..0
    } else {
        SHOWN / 2..rows.len() - SHOWN / 2
    };
    for (index, row) in rows.iter().enumerate() {
        if middle.contains(&index) {
            if index == middle.start {
                let bytes: usize = rows
                    .get(middle.clone())
                    .unwrap_or_default()
                    .iter()
                    .map(|row| row.bytes)
                    .sum();
                let _ = writeln!(text, "   … {bytes:>9} in {} more; --all shows them", middle.len());
            }
            continue;
        }
        let age = row
            .age_ms
            .map_or(String::new(), |age| Timestamp(now.0.saturating_sub(age)).ago(now));
        let cache = if row.is_cached { "cached" } else { "" };
        let price = row.cost_usd.map_or(String::new(), small_dollars);
        let _ = writeln!(
            text,
            "{:>4} {:>9} {:>8} {age:>9} {cache:<6} {price:>9}  {}",
            index + 1,
            row.bytes,
            row.tokens,
            row.what
        );
    }
    if let Some(total) = report.cost_usd {
        let _ = write!(text, "sending it costs about {}", dollars(total));
    }
    said(&report.notices, text.trim_end())
}

/// Adds up the tokens of each kind of row, the largest first.
fn by_kind(rows: &[ContextSpan]) -> String {
    let kind = |row: &ContextSpan| match (row.origin, row.role) {
        (SpanOrigin::System, _) => "system prompt",
        (SpanOrigin::Tools, _) => "tools",
        (_, Some(Role::User)) => "you",
        (_, Some(Role::Assistant)) => "model",
        (_, Some(Role::Tool)) => "results",
        _ => "other",
    };
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for row in rows {
        let name = kind(row);
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, tokens)) => *tokens += row.tokens,
            None => kinds.push((name, row.tokens)),
        }
    }
    kinds.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let kinds = kinds.iter().map(|(name, tokens)| format!("{name} {tokens}"));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Formats the cost of a row; one that four digits cannot show is named as such.
fn small_dollars(cost: f64) -> String {
    match cost {
        cost if cost > 0.0 && cost < 0.000_05 => "<$0.0001".to_owned(),
        cost => dollars(cost),
    }
}

async fn costs(cx: &mut CommandContext<'_>) -> Outcome {
    let session = cx.info.id.clone();
    let exchanges = cx.store().exchanges(&session).await?;
    let mut frames: HashMap<String, Frame> = HashMap::new();
    for digest in exchanges.iter().filter_map(|exchange| exchange.frame.clone()) {
        if !frames.contains_key(&digest)
            && let Some(frame) = cx.store().frame(&digest).await?
        {
            frames.insert(digest, frame);
        }
    }
    let models = cx.env.models();
    let lines = ledger(
        &exchanges,
        |digest| frames.get(digest).cloned(),
        |model| models.price(model),
    );
    if lines.is_empty() {
        return Ok(Said::text("No request of this session was recorded."));
    }
    let mut text = format!(
        "{:>4} {:>9} {:>11} {:>8} {:>8}  cache\n",
        "#", "bytes", "changed at", "tokens", "cached"
    );
    let mut lost = 0.0;
    for line in &lines {
        let (all, cached) = line
            .tokens
            .map_or((String::new(), String::new()), |(all, cached)| {
                (all.to_string(), cached.to_string())
            });
        let said = match line.cause {
            None => "full cache hit".to_owned(),
            Some(Cause::First) => Cause::First.told().to_owned(),
            Some(cause) => {
                lost += line.lost_usd.unwrap_or(0.0);
                let price = line
                    .lost_usd
                    .map_or(String::new(), |lost| format!(", {}", dollars(lost)));
                format!("missed: {}{price}", cause.told())
            }
        };
        let _ = writeln!(
            text,
            "{:>4} {:>9} {:>11} {all:>8} {cached:>8}  {said}",
            line.number, line.bytes, line.changed_at
        );
    }
    let misses = lines
        .iter()
        .filter(|line| line.cause.is_some_and(|cause| cause != Cause::First))
        .count();
    let _ = write!(text, "{misses} of {} requests missed the cache", lines.len());
    if lost > 0.0 {
        let _ = write!(text, ", which cost {}", dollars(lost));
    }
    Ok(Said::text(text))
}
