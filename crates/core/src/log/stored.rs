//! Facts about events that every store derives in the same way.

use std::fmt::Write;

use crate::event::Event;
use crate::message::{Message, Part, Role};

/// Maximum number of bytes of a message that can be searched.
const MAX_SAID: usize = 200_000;

/// Returns the kind of a serialized event: the word after `"type":`, which every event starts with.
pub fn event_kind(payload: &str) -> &str {
    let rest = payload.split_once("\"type\":\"").map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default()
}

/// Returns true if sessions are ordered by the time of this event: it begins or ends a turn.
pub fn is_milestone(event: &Event) -> bool {
    match event {
        Event::Message { message } => message.role == Role::User,
        event => event.is_terminal(),
    }
}

/// Returns the searchable text of a message: text and tool calls, without tool results.
pub fn searchable(message: &Message) -> String {
    let mut text = String::new();
    for part in &message.parts {
        let _ = match part {
            // Fragments are not among them: injected text is nobody's words.
            Part::Text(part) => writeln!(text, "{}", part.text),
            Part::ToolCall(call) => writeln!(text, "{} {}", call.name, call.input),
            _ => Ok(()),
        };
        if text.len() > MAX_SAID {
            let end = (0..=MAX_SAID).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            break;
        }
    }
    // Texts that the runtime adds on the user's behalf are the same in every session.
    if message.role == Role::Tool {
        String::new()
    } else {
        text
    }
}
