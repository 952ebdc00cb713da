//! Cuts messages into units.

use windlass_core::clock::Timestamp;
use windlass_core::log::{MemoryKind, NewUnit};
use windlass_core::message::{Message, Part, Role};
use windlass_core::text::boundary_before;

use crate::analysis::index_words;
use crate::secret::is_secret;

/// Maximum length of a unit in bytes.
pub const MAX_UNIT: usize = 1_200;

/// Maximum number of units of one message; the rest of a longer one is not kept.
const MAX_UNITS: usize = 40;

/// Returns the units of a message: the words of the user and of the model, without what tools returned and without
/// what the runtime added. Pieces that seem to contain a secret are left out.
pub fn units_of(message: &Message, seq: u64, time: Timestamp) -> Vec<NewUnit> {
    let speaker = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => return Vec::new(),
    };
    if message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Compaction(_)))
    {
        return Vec::new();
    }
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(part) => Some(part.text.as_str()),
        _ => None,
    });
    let pieces = texts.flat_map(pieces).take(MAX_UNITS);
    pieces
        .filter_map(|text| {
            let unit = said(text, speaker, seq, time);
            (!unit.words.is_empty() && !is_secret(text)).then_some(unit)
        })
        .collect()
}

/// Returns a unit of something that was said.
pub fn said(text: &str, speaker: &str, seq: u64, time: Timestamp) -> NewUnit {
    NewUnit {
        kind: MemoryKind::Said,
        speaker: speaker.to_owned(),
        seq,
        words: index_words(text),
        text: text.to_owned(),
        time,
        pinned: false,
        confirmed: false,
    }
}

/// Cuts a text into pieces of at most [`MAX_UNIT`] bytes, between paragraphs, then lines, then sentences, then words.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while rest.len() > MAX_UNIT {
        let most = boundary_before(rest, MAX_UNIT);
        let head = rest.get(..most).unwrap_or(rest);
        let cut = ["\n\n", "\n", ". ", " "]
            .iter()
            .find_map(|border| {
                head.rfind(border)
                    .filter(|at| *at > MAX_UNIT / 4)
                    .map(|at| at + border.len())
            })
            .unwrap_or(most);
        let (piece, more) = rest.split_at(cut.max(1));
        pieces.push(piece.trim());
        rest = more.trim_start();
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7: units are the text itself, cut at paragraphs, and none is longer than the limit.
    #[test]
    fn texts_are_cut_at_paragraphs() {
        let paragraph = "word ".repeat(150);
        let text = format!("{0}\n\n{0}\n\n{0}", paragraph.trim());
        let pieces = pieces(&text);
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|piece| *piece == paragraph.trim()));
        let odd = "ä".repeat(5_000);
        assert!(super::pieces(&odd).iter().all(|piece| piece.len() <= MAX_UNIT));
        assert_eq!(super::pieces(&odd).concat(), odd);
        assert!(super::pieces(" \n ").is_empty());
    }
}
