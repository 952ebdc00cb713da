//! Findings of the agent, as a block that is never summarized.

use std::sync::Arc;

use crate::compact::score::{Block, Words, marginal_gain};
use crate::message::{FragmentSource, Message};
use crate::text::clip;

/// Pieces of knowledge, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::compact) struct Knowledge {
    pieces: Vec<String>,
    /// Number of pieces ever added.
    count: usize,
}

/// Heading of the block in a summary.
const HEADING: &str = "knowledge";
const BEGIN: &str = "[knowledge]\n";
const PIECE: &str = "## Focus summary ";
/// Maximum length of the block in characters: 4,096 tokens.
const LONGEST: usize = 4_096 * 4;

impl Knowledge {
    /// Adds a finding and returns the text that represents it elsewhere. If the block is too long, the oldest
    /// pieces are dropped, but never the last one.
    pub(super) fn learn(&mut self, scope: &str, summary: &str) -> String {
        self.count += 1;
        let text = harmless(&format!("{PIECE}{}: {scope}\n{}", self.count, summary.trim()));
        let text = clip(&text, LONGEST - 100);
        self.pieces.push(text.clone());
        self.limit();
        text
    }

    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the block with its heading.
    pub(super) fn fact(&self) -> Option<(String, String)> {
        let block = format!("{BEGIN}{}", self.pieces.join("\n"));
        (!self.pieces.is_empty()).then(|| (HEADING.to_owned(), block))
    }

    /// Reads the block from the last summary in a history.
    pub(super) fn read(history: &[Arc<Message>]) -> Option<Self> {
        let mut newest_first = history.iter().rev();
        let block = newest_first.find_map(|message| {
            let mut facts = message.fragments();
            facts.find_map(|fragment| {
                let is_ours =
                    fragment.source == FragmentSource::Fact && fragment.label.as_deref() == Some(HEADING);
                fragment.text.strip_prefix(BEGIN).filter(|_| is_ours)
            })
        })?;
        let mut pieces: Vec<String> = Vec::new();
        for line in block.lines() {
            match pieces.last_mut().filter(|_| !line.starts_with(PIECE)) {
                Some(piece) => {
                    piece.push('\n');
                    piece.push_str(line);
                }
                None => pieces.push(line.to_owned()),
            }
        }
        let number = |piece: &String| piece.strip_prefix(PIECE)?.split(':').next()?.parse().ok();
        let count = pieces.iter().filter_map(number).max().unwrap_or(pieces.len());
        Some(Self { pieces, count })
    }

    /// Merges pieces that add nothing into those that say it better; newer pieces take precedence.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn consolidated(mut self) -> Self {
        let words: Vec<Words> = self.pieces.iter().map(|piece| Words::of(piece)).collect();
        let count = self.pieces.len().max(1) as f64;
        let block = |(place, words)| Block {
            words,
            relevance: (place + 1) as f64 / count * 0.5,
            is_protected: false,
        };
        let blocks: Vec<Block<'_>> = words.iter().enumerate().map(block).collect();
        let gains = marginal_gain(&blocks);
        let mut left: Vec<Option<String>> = self.pieces.into_iter().map(Some).collect();
        for (place, gain) in gains.into_iter().enumerate() {
            let Some(own) = words.get(place).filter(|_| gain <= 0.0) else {
                continue;
            };
            let newer = words.iter().enumerate().skip(place + 1);
            let nearest = newer.max_by(|a, b| own.similarity(a.1).total_cmp(&own.similarity(b.1)));
            let (Some((nearest, _)), Some(piece)) = (nearest, left.get_mut(place).and_then(Option::take))
            else {
                continue;
            };
            if let Some(Some(other)) = left.get_mut(nearest) {
                add_lines(other, &piece);
            }
        }
        self.pieces = left.into_iter().flatten().collect();
        self.limit();
        self
    }

    fn limit(&mut self) {
        while self.pieces.len() > 1
            && self.pieces.iter().map(|piece| piece.len() + 1).sum::<usize>() > LONGEST
        {
            self.pieces.remove(0);
        }
    }
}

/// Adds the lines of `from` that `to` does not contain, without the heading.
fn add_lines(to: &mut String, from: &str) {
    for line in from.lines().skip(1) {
        if !line.trim().is_empty() && !to.lines().any(|known| known.trim() == line.trim()) {
            to.push('\n');
            to.push_str(line);
        }
    }
}

/// Escapes a text so that it cannot be mistaken for the frame around it.
fn harmless(text: &str) -> String {
    let mut text: String = text
        .chars()
        .filter(|sign| !sign.is_control() || *sign == '\n' || *sign == '\t')
        .collect();
    for mark in [
        "<standing",
        "</standing",
        "<left_out",
        "</left_out",
        "<said_by",
        "</said_by",
    ] {
        text = text.replace(mark, &mark.replace('<', "< "));
    }
    text
}
