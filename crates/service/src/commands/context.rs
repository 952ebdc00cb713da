//! `/context`: what is in the next request, and why requests missed the cache.

use std::collections::HashMap;
use std::fmt::Write;

use windlass_core::clock::Timestamp;
use windlass_core::context::prepare;
use windlass_core::log::Frame;
use windlass_core::provider::{Request, ToolChoice};

use super::{Desk, Outcome, Said, Stop, Words};
use crate::telling::{ago, dollars};
use crate::workshop::TurnStart;
use crate::xray::{Cause, ledger, rows};

/// How many rows are listed one by one; those in the middle of a longer conversation are counted.
const SHOWN: usize = 60;

pub(super) async fn context(desk: &mut Desk<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &["--all"])?;
    match words.get(0) {
        None | Some("show") => show(desk, words.has("--all")).await,
        Some("ledger") => costs(desk).await,
        Some(_) => Err(Stop::Usage),
    }
}

async fn show(desk: &mut Desk<'_>, all: bool) -> Outcome {
    desk.wait_for_turn()?;
    let start = TurnStart {
        message: None,
        prompt: String::new(),
        history: desk.live.history.clone(),
    };
    let setup = desk.live.bench.setup(&start).await;
    let setup = setup.map_err(|why| Stop::Failed(why.message))?;
    let session = desk.live.info.id.clone();
    let request = Request {
        prefix: setup.prefix,
        messages: prepare(&desk.live.history),
        tool_choice: ToolChoice::Auto,
        max_output: setup.max_output,
        session: session.clone(),
        cancel: Default::default(),
    };
    let Some(layout) = setup.provider.layout(&request) else {
        return Err(Stop::Failed(
            "this provider does not say what it sends".to_owned(),
        ));
    };
    let exchanges = desk.store().exchanges(&session).await?;
    let now = desk.live.inner.clock.now();
    let model = setup.provider.model();
    let rows = rows(&layout, &request.messages, exchanges.last(), model.price, now);
    let tokens: u64 = rows.iter().map(|row| row.tokens).sum();
    let window = model.context_window;
    let share = match window {
        0 => String::new(),
        window => format!(", {} % of {window}", tokens * 100 / window.max(1)),
    };
    let mut text = format!("{} bytes, about {tokens} tokens{share}\n", layout.body.len());
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
        let age = row.age.map_or(String::new(), |age| {
            ago(now, Timestamp(now.0.saturating_sub(age)))
        });
        let cache = if row.is_cached { "cached" } else { "" };
        let price = row.cost_usd.map_or(String::new(), dollars);
        let _ = writeln!(
            text,
            "{:>4} {:>9} {:>8} {age:>9} {cache:<6} {price:>9}  {}",
            index + 1,
            row.bytes,
            row.tokens,
            row.what
        );
    }
    let total: Option<f64> = rows.iter().map(|row| row.cost_usd).sum();
    if let Some(total) = total {
        let _ = write!(text, "sending it costs about {}", dollars(total));
    }
    Ok(Said::text(text.trim_end()))
}

async fn costs(desk: &mut Desk<'_>) -> Outcome {
    let session = desk.live.info.id.clone();
    let exchanges = desk.store().exchanges(&session).await?;
    let mut frames: HashMap<String, Frame> = HashMap::new();
    for digest in exchanges.iter().filter_map(|exchange| exchange.frame.clone()) {
        if !frames.contains_key(&digest)
            && let Some(frame) = desk.store().frame(&digest).await?
        {
            frames.insert(digest, frame);
        }
    }
    let models = desk.live.bench.models();
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
            None => "as good as it can be".to_owned(),
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
