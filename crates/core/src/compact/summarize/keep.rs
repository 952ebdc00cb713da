//! CTX-15: what goes over into a summary as it is: the user's words, references, what stands open.

use std::ops::Range;
use std::sync::Arc;

use super::ask::clip;
use crate::compact::score::digest;
use crate::id::MessageId;
use crate::message::{Fragment, FragmentSource, Message, Part, Role};
use crate::tokens::Gauge;
use crate::tool::RECALL;

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
        "<left_out ref=\"{id}\">{messages} messages went here; {RECALL} {{\"ref\": \"{id}\"}} shows them word for word\
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
            *part = quote(&format!("[a picture that went: {name}]"));
        }
    }
}

/// Shows the longest texts by their ends until all fit, and says how many that are.
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
