//! CTX-15: content that is carried over into a summary unchanged: the user's messages, references, open
//! facts.

use std::ops::Range;
use std::sync::Arc;

use super::ask::{clip, has_summary};
use crate::compact::score::digest;
use crate::id::MessageId;
use crate::message::{Message, Part, Role};
use crate::tokens::Gauge;
use crate::tool::RECALL;

/// Opening tag around a message of the user.
const SAID: &str = "<said_by_the_user>\n";
const SAID_END: &str = "\n</said_by_the_user>";
/// Start of a reference to removed messages.
const LEFT_OUT: &str = "<left_out ref=";
/// Start of an open fact.
const OPEN: &str = "<standing ";
/// Maximum length of a user text; a longer one is always cut to its start and end. The whole text can be read
/// back.
const LONGEST_SAID: usize = 64_000;
/// Minimum length to which texts of the user are cut.
const SHORTEST_SAID: usize = 1_000;
/// Maximum number of references in a summary. Older ones are in the span that the oldest of these refers to.
const MOST_REFERENCES: usize = 40;
/// Maximum number of the user's images that are kept.
const MOST_PICTURES: usize = 2;

/// Content of a summary message beside its text.
pub(super) struct Kept {
    pub(super) parts: Vec<Part>,
    pub(super) notice: Option<String>,
}

/// Collects the content of these messages that must survive in the message `id`. The user's messages get
/// about `room` tokens.
pub(super) fn kept(middle: &[Arc<Message>], id: &MessageId, room: u64, gauge: &Gauge) -> Kept {
    let mut references: Vec<Part> = Vec::new();
    let mut said: Vec<Part> = Vec::new();
    for message in middle.iter().filter(|message| message.role == Role::User) {
        for part in &message.parts {
            match part {
                Part::Text(text) if has_summary(message) && is_reference(&text.text) => {
                    references.push(part.clone());
                }
                Part::Text(text) if is_structure(message, &text.text) => {}
                Part::Text(text) if has_summary(message) && unwrapped(&text.text).is_some() => {
                    said.push(part.clone());
                }
                Part::Text(text) if text.text.trim().is_empty() => {}
                Part::Text(text) if text.is_surroundings() => said.push(part.clone()),
                Part::Text(text) => said.push(wrapped(&text.text)),
                Part::Binary(_) | Part::ImageUrl(_) => said.push(part.clone()),
                _ => {}
            }
        }
    }
    references.push(Part::text(reference(id, middle.len())));
    let surplus = references.len().saturating_sub(MOST_REFERENCES);
    let mut parts: Vec<Part> = references.split_off(surplus);
    few_pictures(&mut said);
    let cut = shortened(&mut said, room, gauge);
    parts.append(&mut said);
    let notice = (cut > 0).then(|| match cut {
        1 => "a long text of the user was cut to its start and end".to_owned(),
        many => format!("{many} long texts of the user were cut to their start and end"),
    });
    Kept { parts, notice }
}

/// Derives the id of the message that replaces these. It depends only on their content and position, so that
/// a replay of the session gets the same id: the model reads it.
pub(super) fn name(length: usize, range: &Range<usize>, middle: &[Arc<Message>]) -> MessageId {
    let place = format!("{length} {range:?}");
    let said = middle.iter().flat_map(|message| &message.parts);
    let texts = said.flat_map(|part| match part {
        Part::Text(text) => [text.text.as_str(), ""],
        Part::ToolCall(call) => [call.id.as_str(), &call.input],
        Part::ToolResult(result) => [result.call_id.as_str(), &result.content],
        Part::Compaction(compaction) => [&compaction.summary, ""],
        _ => ["", ""],
    });
    let digest = digest(std::iter::once(place.as_str()).chain(texts));
    MessageId::from(format!("summary-{digest:016x}"))
}

/// Formats an open fact.
pub(super) fn standing(heading: &str, text: &str) -> Part {
    Part::text(format!("{OPEN}what=\"{heading}\">\n{text}\n</standing>"))
}

/// Returns true if a text of a summary message was generated, and is not the user's.
pub(in crate::compact) fn is_structure(message: &Message, text: &str) -> bool {
    has_summary(message) && (is_reference(text) || text.starts_with(OPEN))
}

/// Returns true if a text refers to removed messages.
pub(in crate::compact) fn is_reference(text: &str) -> bool {
    text.starts_with(LEFT_OUT)
}

/// Returns the user's text from its tags in a summary.
pub(in crate::compact) fn unwrapped(text: &str) -> Option<&str> {
    text.strip_prefix(SAID)?.strip_suffix(SAID_END)
}

fn wrapped(text: &str) -> Part {
    Part::text(format!("{SAID}{text}{SAID_END}"))
}

fn reference(id: &MessageId, messages: usize) -> String {
    format!(
        "{LEFT_OUT}\"{id}\">{messages} messages went here; {RECALL} {{\"ref\": \"{id}\"}} shows them word for word\
         </left_out>"
    )
}

/// Replaces all but the newest images with their names.
fn few_pictures(said: &mut [Part]) {
    let mut left = MOST_PICTURES;
    for part in said.iter_mut().rev() {
        let name = match part {
            Part::Binary(picture) => picture.path.clone(),
            Part::ImageUrl(picture) => clip(&picture.url, 200),
            _ => continue,
        };
        if left > 0 {
            left -= 1;
        } else {
            *part = wrapped(&format!("[a picture that went: {name}]"));
        }
    }
}

/// Cuts the longest texts to their start and end until all fit, and returns the number of cut texts.
fn shortened(said: &mut [Part], room: u64, gauge: &Gauge) -> usize {
    let mut most = LONGEST_SAID;
    let tokens = |part: &Part| match part {
        Part::Text(text) => gauge.text(&text.text),
        _ => 0,
    };
    let mut sizes: Vec<u64> = said.iter().map(tokens).collect();
    let mut cut = std::collections::HashSet::new();
    loop {
        for (place, part) in said.iter_mut().enumerate() {
            let Part::Text(text) = part else { continue };
            let Some(words) = unwrapped(&text.text).filter(|words| words.chars().count() > most + 3) else {
                continue;
            };
            *part = wrapped(&clip(words, most));
            if let Some(size) = sizes.get_mut(place) {
                *size = tokens(part);
            }
            cut.insert(place);
        }
        if most <= SHORTEST_SAID || sizes.iter().sum::<u64>() <= room {
            return cut.len();
        }
        most /= 2;
    }
}
