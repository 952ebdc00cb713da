//! CTX-15: what goes over into a summary as it is: the user's words, references, what stands open.

use std::ops::Range;
use std::sync::Arc;

use super::ask::{clip, has_summary};
use crate::compact::score::digest;
use crate::id::MessageId;
use crate::message::{Message, Part, Role};
use crate::tokens::Gauge;
use crate::tool::RECALL;

/// What the user said begins and ends with this.
const SAID: &str = "<said_by_the_user>\n";
const SAID_END: &str = "\n</said_by_the_user>";
/// A reference to what went begins with this.
const LEFT_OUT: &str = "<left_out ref=";
/// What stands open begins with this.
const OPEN: &str = "<standing ";
/// A longer text of the user is always kept by its ends; the whole can be read back.
const LONGEST_SAID: usize = 64_000;
/// Texts of the user are never cut below this.
const SHORTEST_SAID: usize = 1_000;
/// How many references a summary carries. Older ones are in the span that the oldest of these refers to.
const MOST_REFERENCES: usize = 40;
/// How many of the user's pictures stay.
const MOST_PICTURES: usize = 2;

/// What a summary carries beside its text.
pub(super) struct Kept {
    pub(super) parts: Vec<Part>,
    pub(super) notice: Option<String>,
}

/// What must survive of these messages in the message `id`. The user's words have about `room` tokens.
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
        1 => "a long text of the user is shown by its ends".to_owned(),
        many => format!("{many} long texts of the user are shown by their ends"),
    });
    Kept { parts, notice }
}

/// The id of the message that stands for these: the same whenever the same session is driven again, because the model reads
/// it. What is said decides, and where it was.
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

/// A fact about what stands open.
pub(super) fn standing(heading: &str, text: &str) -> Part {
    Part::text(format!("{OPEN}what=\"{heading}\">\n{text}\n</standing>"))
}

/// Whether a text of a summary's message was put there by us, and not by the user.
pub(in crate::compact) fn is_structure(message: &Message, text: &str) -> bool {
    has_summary(message) && (is_reference(text) || text.starts_with(OPEN))
}

/// Whether a text refers to messages that went.
pub(in crate::compact) fn is_reference(text: &str) -> bool {
    text.starts_with(LEFT_OUT)
}

/// What the user said, where a summary carries it.
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

/// Puts the names of all but the newest pictures in their place.
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

/// Shows the longest texts by their ends until all fit, and says how many that are.
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
