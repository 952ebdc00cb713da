//! CTX-15: content that is carried over into a summary unchanged: the user's messages, references, open
//! facts.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::compact::score::digest;
use crate::id::MessageId;
use crate::message::{Fragment, FragmentSource, Message, Part, Role};
use crate::text::{clip, count};
use crate::tokens::Gauge;
use crate::tool::RECALL;

/// A longer text is always kept by its ends; the whole can be read back.
const LONGEST_SAID: usize = 64_000;
/// Minimum length to which texts are cut.
const SHORTEST_SAID: usize = 250;
/// Limits of the number of references in a summary, which together get a quarter of the room. Older ones are in the span
/// that the oldest of these refers to.
const REFERENCES: (u64, u64) = (2, 40);
/// Tokens of a reference.
const REFERENCE_SIZE: u64 = 50;
/// Part of the window that the user's words get in any case.
const WORDS: u64 = 8;
/// Maximum number of the user's images that are kept.
const MOST_PICTURES: usize = 2;

/// Content of a summary message beside its text.
pub(super) struct Kept {
    pub(super) parts: Vec<Part>,
    pub(super) notice: Option<String>,
}

/// Collects the content of these messages that must survive in the message `id`. The user's messages and what was added
/// to them get about `room` tokens. Words that need more than that and more than a share of the window are left out, the
/// oldest first. Of equal additions, such as a prompt that the loop repeats, only the last is kept.
pub(super) fn kept(
    middle: &[Arc<Message>],
    id: &MessageId,
    (room, window): (u64, u64),
    gauge: &Gauge,
) -> Kept {
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
    let most = (room / 4 / REFERENCE_SIZE).clamp(REFERENCES.0, REFERENCES.1);
    let surplus = references
        .len()
        .saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
    let mut parts: Vec<Part> = references.split_off(surplus);
    few_pictures(&mut said);
    let mut known = HashSet::new();
    said.reverse();
    said.retain(|part| match part {
        Part::Context(fragment) if fragment.source != FragmentSource::Quote => {
            known.insert((fragment.source, fragment.text.clone()))
        }
        _ => true,
    });
    said.reverse();
    let cut = shortened(&mut said, room, gauge);
    let is_addition = |part: &Part| {
        matches!(part, Part::Context(fragment)
            if !matches!(fragment.source, FragmentSource::Quote | FragmentSource::Skill))
    };
    let additions = without_oldest(&mut said, room, gauge, is_addition);
    let words_room = match window {
        0 => u64::MAX,
        window => room.max(window / WORDS),
    };
    let words = without_oldest(
        &mut said,
        words_room,
        gauge,
        |part| matches!(part, Part::Context(fragment) if fragment.source == FragmentSource::Quote),
    );
    parts.append(&mut said);
    let told = [
        (cut, "long text", "cut short"),
        (additions, "older addition", "left out"),
        (words, "older message", "of the user left out"),
    ];
    let told: Vec<String> = told
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, what, done)| format!("{} {done}", count(number, what)))
        .collect();
    let notice = (!told.is_empty()).then(|| format!("to fit the window: {}", told.join(", ")));
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

/// Returns the tokens of a part that is carried over.
fn tokens(part: &Part, gauge: &Gauge) -> u64 {
    match part {
        Part::Context(fragment) => gauge.text(&fragment.encoded()),
        _ => 0,
    }
}

/// Cuts the longest texts to their start and end until all fit, and returns the number of cut texts. Skills are
/// instructions, which are kept as they are.
fn shortened(said: &mut [Part], room: u64, gauge: &Gauge) -> usize {
    let mut most = LONGEST_SAID;
    let mut sizes: Vec<u64> = said.iter().map(|part| tokens(part, gauge)).collect();
    let mut cut = HashSet::new();
    loop {
        for (place, part) in said.iter_mut().enumerate() {
            let Part::Context(fragment) = part else { continue };
            let is_long =
                fragment.source != FragmentSource::Skill && fragment.text.chars().count() > most + 3;
            if !is_long {
                continue;
            }
            fragment.text = clip(&fragment.text, most);
            if let Some(size) = sizes.get_mut(place) {
                *size = tokens(part, gauge);
            }
            cut.insert(place);
        }
        if most <= SHORTEST_SAID || sizes.iter().sum::<u64>() <= room {
            return cut.len();
        }
        most /= 2;
    }
}

/// Removes the oldest of the texts that may go until all fit, and returns their number.
fn without_oldest(said: &mut Vec<Part>, room: u64, gauge: &Gauge, may_go: impl Fn(&Part) -> bool) -> usize {
    let mut total: u64 = said.iter().map(|part| tokens(part, gauge)).sum();
    let before = said.len();
    said.retain(|part| {
        let goes = total > room && may_go(part);
        if goes {
            total = total.saturating_sub(tokens(part, gauge));
        }
        !goes
    });
    before - said.len()
}
