//! `tool_output`: reads what was too long to be shown.

mod matches;

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::tool::{Category, TOOL_OUTPUT, Tool, ToolContext, ToolError, ToolOutput};

use self::matches::{Found, Search};
use crate::arguments::null_is_default;
use crate::blocking;
use crate::outputs::OutputStore;
use crate::read_file::page::{MAX_LINE_BYTES, Total, count_rest, next_line, numbered};
use windlass_core::text::{count, size};

const DEFAULT_LINES: u64 = 500;
/// Below what a model is shown of one result, so that a page is never cut a second time.
const MAX_CHARS: usize = 30_000;
const MAX_CONTEXT: usize = 20;
/// Number of outputs that an error names.
const MAX_NAMED: usize = 10;
const BUFFER: usize = 64 * 1024;
/// Number of lines between two checks for cancellation.
const LINES_BETWEEN_LOOKS: u64 = 1024;

/// Reads a long output of a tool that was cut: a range of its lines, or the lines that match a pattern.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolOutputInput {
    #[serde(alias = "ref", alias = "ref_id", alias = "output_id")]
    id: String,
    /// The first line, from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// Lines or matches; 500 by default.
    #[serde(default)]
    limit: Option<u64>,
    /// A regular expression (Rust syntax).
    #[serde(default)]
    pattern: Option<String>,
    /// Lines around each match.
    #[serde(default, deserialize_with = "null_is_default")]
    context: usize,
}

/// The tool.
pub(crate) struct ToolOutputReader {
    pub(crate) store: Arc<OutputStore>,
}

impl Tool for ToolOutputReader {
    type Input = ToolOutputInput;
    const NAME: &'static str = TOOL_OUTPUT;

    fn category(&self, _: &ToolOutputInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: ToolOutputInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.limit == Some(0) {
            return Err(ToolError::Invalid("`limit` must be at least 1.".to_owned()));
        }
        let output = match self.store.open(&input.id).await {
            Ok(output) => output,
            Err(error) => return Err(missing(&self.store, &input.id, &error).await),
        };
        let cancel = cx.cancel.clone();
        blocking::look(&cx.cancel, move || {
            let answer = match input.pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
                Some(pattern) => search(output, pattern, &input, &cancel),
                None => page(output, &input, &cancel),
            };
            answer.map_err(|error| ToolError::Permanent(format!("{}: {error}", input.id)))?
        })
        .await
    }
}

type Answer = io::Result<Result<ToolOutput, ToolError>>;

fn canceled() -> Answer {
    Ok(Err(ToolError::Canceled(String::new())))
}

/// A range of lines.
fn page(output: Box<dyn Read>, input: &ToolOutputInput, cancel: &CancellationToken) -> Answer {
    let (first, limit) = (
        input.offset.unwrap_or(1).max(1),
        input.limit.unwrap_or(DEFAULT_LINES),
    );
    let mut reader = BufReader::with_capacity(BUFFER, output);
    let (mut number, mut shown, mut chars) = (1, 0, 0);
    let (mut line, mut content) = (Vec::new(), String::new());
    while shown < limit {
        if number % LINES_BETWEEN_LOOKS == 0 && cancel.is_cancelled() {
            return canceled();
        }
        let keep = if number < first { 0 } else { MAX_LINE_BYTES };
        let Some(length) = next_line(&mut reader, &mut line, keep)? else {
            break;
        };
        number += 1;
        if number <= first {
            continue;
        }
        let text = numbered(number - 1, &line, length);
        chars += text.chars().count();
        // The first line is shown whatever its length; it is cut already.
        if shown > 0 && chars > MAX_CHARS {
            break;
        }
        content.push_str(&text);
        shown += 1;
    }
    let Some(total) = count_rest(&mut reader, number - 1, &|| cancel.is_cancelled())? else {
        return canceled();
    };
    let last = (first + shown).saturating_sub(1);
    match total {
        Total::Exactly(total) if shown == 0 => {
            let lines = count(usize::try_from(total).unwrap_or(usize::MAX), "line");
            return Ok(Err(ToolError::Invalid(format!(
                "`offset` is {first}, but {} has only {lines}.",
                input.id
            ))));
        }
        Total::Exactly(total) if last == total => {
            content.push_str(&format!("[lines {first}-{last} of {total}; this is the end]"));
        }
        total => content.push_str(&format!(
            "[lines {first}-{last} of {total}; continue with offset={}]",
            last + 1
        )),
    }
    let details = json!({ "id": input.id, "first_line": first, "last_line": last });
    Ok(Ok(ToolOutput::text(content).with_details(details)))
}

/// The lines that match.
fn search(
    output: Box<dyn Read>,
    pattern: &str,
    input: &ToolOutputInput,
    cancel: &CancellationToken,
) -> Answer {
    let search = match Search::new(pattern, input.context.min(MAX_CONTEXT)) {
        Ok(search) => search,
        Err(error) => return Ok(Err(error)),
    };
    let first = input.offset.unwrap_or(1).max(1);
    let limit = input.limit.unwrap_or(DEFAULT_LINES);
    let reader = BufReader::with_capacity(BUFFER, output);
    let Some(found) = search.run(reader, first, limit, &|| cancel.is_cancelled())? else {
        return canceled();
    };
    let Found {
        mut content,
        matches,
        next,
    } = found;
    let from = if first > 1 {
        format!(" from line {first} on")
    } else {
        String::new()
    };
    match next {
        Some(next) => content.push_str(&format!(
            "[{} so far; continue with offset={next}, or narrow the pattern]",
            count(matches, "match")
        )),
        None if matches == 0 => content = format!("No match for {pattern} in {}{from}.", input.id),
        None => content.push_str(&format!("[{}{from}]", count(matches, "match"))),
    }
    let details = json!({ "id": input.id, "pattern": pattern, "matches": matches });
    Ok(Ok(ToolOutput::text(content).with_details(details)))
}

async fn missing(store: &OutputStore, id: &str, error: &io::Error) -> ToolError {
    if error.kind() != io::ErrorKind::NotFound {
        return ToolError::Permanent(format!("{id}: {error}"));
    }
    let kept = store.list().await;
    let mut text = format!("No output is kept under the id `{id}`.");
    if kept.is_empty() {
        text.push_str(" None was kept in this session.");
    } else {
        text.push_str(" Kept in this session, the newest first:");
    }
    for one in kept.iter().take(MAX_NAMED) {
        text.push_str(&format!("\n{} ({}, {})", one.id, one.tool(), size(one.bytes)));
    }
    if kept.len() > MAX_NAMED {
        text.push_str(&format!("\nand {} older", kept.len() - MAX_NAMED));
    }
    ToolError::Permanent(text)
}
