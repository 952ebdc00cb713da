//! CTX-15: content that is carried over into a summary unchanged: the user's messages, references, open
//! facts.

use std::ops::Range;
use std::sync::Arc;

use super::ask::clip;
use crate::compact::score::digest;
use crate::id::MessageId;
use crate::message::{Fragment, FragmentSource, Message, Part, Role};
use crate::text::count;
use crate::tokens::Gauge;
use crate::tool::RECALL;

/// A longer text of the user is always kept by its ends; the whole can be read back.
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
                Part::Context(fragment) => match fragment.source {
                    FragmentSource::Reference => references.push(part.clone()),
                    FragmentSource::Fact => {}
                    _ => said.push(part.clone()),
                },
                Part::Text(text) if text.text.trim().is_empty() => {}
                Part::Text(text) => said.push(quote(&text.text)),
                Part::Binary(_) | Part::ImageUrl(_) => said.push(part.clone()),
                _ => {}
            }
        }
    }
    let note = reference(id, middle.len());
    references.push(Part::context(FragmentSource::Reference, note));
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
        Part::Context(fragment) => [fragment.text.as_str(), ""],
        Part::ToolCall(call) => [call.id.as_str(), &call.input],
        Part::ToolResult(result) => [result.call_id.as_str(), &result.content],
        Part::Compaction(compaction) => [&compaction.summary, ""],
        _ => ["", ""],
    });
    let digest = digest(std::iter::once(place.as_str()).chain(texts));
    MessageId::from(format!("summary-{digest:016x}"))
}

/// Returns a fact that survives a compaction.
pub(super) fn fact(heading: &str, text: &str) -> Part {
    Part::Context(Fragment::new(FragmentSource::Fact, text).labeled(heading))
}

/// Returns the user's words as a summary carries them.
fn quote(text: &str) -> Part {
    Part::context(FragmentSource::Quote, text)
}

fn reference(id: &MessageId, messages: usize) -> String {
    format!(
        "<left_out ref=\"{id}\">{} went here; {RECALL} {{\"ref\": \"{id}\"}} shows them word for word</left_out>",
        count(messages, "message")
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
            *part = quote(&format!("[a picture that went: {name}]"));
        }
    }
}

/// Cuts the longest texts to their start and end until all fit, and returns the number of cut texts.
fn shortened(said: &mut [Part], room: u64, gauge: &Gauge) -> usize {
    let mut most = LONGEST_SAID;
    let tokens = |part: &Part| match part {
        Part::Context(fragment) => gauge.text(&fragment.encoded()),
        _ => 0,
    };
    let mut sizes: Vec<u64> = said.iter().map(tokens).collect();
    let mut cut = std::collections::HashSet::new();
    loop {
        for (place, part) in said.iter_mut().enumerate() {
            let Part::Context(fragment) = part else { continue };
            let is_long =
                fragment.source == FragmentSource::Quote && fragment.text.chars().count() > most + 3;
            if !is_long {
                continue;
            }
            fragment.text = clip(&fragment.text, most);
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
