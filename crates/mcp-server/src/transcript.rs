//! A session as text, for models and people.

use std::fmt::Write as _;

use windlass_api::{Entry, Event, user_messages};
use windlass_core::log::counting;
use windlass_core::text::shorten;

use crate::ask::visible;

/// Maximum length of the result of a tool in a transcript.
const MAX_RESULT: usize = 2_000;

/// Returns the conversation as Markdown: messages, tool calls with their results, answers.
pub(crate) fn transcript(entries: &[Entry]) -> String {
    let said = user_messages(entries);
    let mut text = String::new();
    let mut add = |heading: &str, body: &str| {
        let _ = write!(text, "## {heading}\n\n{}\n\n", visible(body.trim()));
    };
    for entry in counting(entries) {
        if let Some((_, message)) = said.iter().find(|(seq, _)| *seq == entry.seq) {
            add("User", &message.user_text());
            continue;
        }
        match &entry.event {
            Event::Text { text } => add("Agent", text),
            Event::ToolCall { name, args, .. } => add(&format!("Call of {name}"), &args.to_string()),
            Event::ToolResult {
                name,
                content,
                is_error,
                ..
            } => {
                let (shown, left_out) = shorten(content, MAX_RESULT);
                let heading = if *is_error { "Error of" } else { "Result of" };
                let more = if left_out > 0 {
                    format!("\n… ({left_out} more bytes)")
                } else {
                    String::new()
                };
                add(&format!("{heading} {name}"), &format!("{shown}{more}"));
            }
            Event::Final { content, .. } => add("Answer", content),
            Event::Failed { message, .. } => add("Failed", message),
            Event::Canceled { message } => add("Canceled", message),
            _ => {}
        }
    }
    text
}
