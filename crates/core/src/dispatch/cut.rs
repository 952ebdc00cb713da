//! Long results: the start goes to the model, the whole output is stored where it can be read.

use std::sync::Arc;
use std::time::Duration;

use super::Calls;
use super::settle::Settlement;
use crate::message::ToolCall;
use crate::text::grouped;
use crate::tool::{Kept, TOOL_OUTPUT};

/// Timeout of a store. The next step must not wait longer for a slow disk.
const KEEP_TIME: Duration = Duration::from_secs(5);
/// Timeout of a store after a cancel, when the session must become idle promptly.
const KEEP_TIME_CANCELED: Duration = Duration::from_millis(50);

/// TOOL-3: truncates the text for the model, and adds a notice for the user.
pub(super) async fn cut(deps: &Calls<'_>, call: &ToolCall, mut settlement: Settlement) -> Settlement {
    let Some(most) = deps.config.max_result_chars else {
        return settlement;
    };
    let content = &settlement.result.content;
    let Some(total) = excess(content, most) else {
        return settlement;
    };
    let shown: String = content.chars().take(most).collect();
    let content = std::mem::take(&mut settlement.result.content);
    let kept = match settlement.kept.take() {
        Some(kept) => Some(kept),
        None => keep(deps, call, content, total).await,
    };
    // The tool may have truncated its output already.
    let total = kept.as_ref().map_or(total, |kept| kept.characters.max(total));
    settlement.warning = Some(format!(
        "the output of {} was cut for the model: {} of {} characters",
        call.name,
        grouped(most),
        grouped(total)
    ));
    settlement.result.content = shortened(shown, most, total, &call.name, kept.as_ref());
    settlement
}

/// Returns the number of characters if it exceeds `most`.
fn excess(content: &str, most: usize) -> Option<usize> {
    // A text is never longer in characters than in bytes, so the common case needs no count.
    if content.len() <= most {
        return None;
    }
    Some(content.chars().count()).filter(|total| *total > most)
}

async fn keep(deps: &Calls<'_>, call: &ToolCall, content: String, characters: usize) -> Option<Kept> {
    let outputs = Arc::clone(deps.outputs.as_ref()?);
    if call.name == TOOL_OUTPUT {
        return None;
    }
    let (call_id, tool) = (call.id.clone(), call.name.clone());
    // A task of its own, so that what has begun ends even if nobody waits for it any more.
    let keeping = tokio::spawn(async move { outputs.keep(&call_id, &tool, &content).await });
    let patience = if deps.cancel.is_cancelled() {
        KEEP_TIME_CANCELED
    } else {
        KEEP_TIME
    };
    let id = tokio::select! {
        biased;
        id = keeping => id.ok().flatten(),
        () = deps.clock.sleep(patience) => None,
    };
    id.map(|id| Kept {
        id,
        characters,
        whole: true,
    })
}

/// Adds the notice, always as the last line.
pub(super) fn shortened(shown: String, most: usize, total: usize, tool: &str, kept: Option<&Kept>) -> String {
    let what = |kept: &Kept| {
        if kept.whole {
            "whole output"
        } else {
            "beginning of the output"
        }
    };
    let place = kept.map(|kept| {
        format!(
            "[The {} is kept; read it with {TOOL_OUTPUT}, id \"{}\"]\n",
            what(kept),
            kept.id
        )
    });
    format!(
        "{shown}\n\n{}[OUTPUT TRUNCATED: Showing {} of {} characters from {tool}]",
        place.unwrap_or_default(),
        grouped(most),
        grouped(total)
    )
}
