//! Remaining value of a piece of a conversation: pure functions over words, ages and uses.

use std::collections::HashMap;

/// Stop words, which carry no meaning on their own.
const COMMON: [&str; 24] = [
    "the", "and", "for", "with", "that", "this", "from", "not", "are", "was", "has", "have", "but", "you",
    "all", "can", "its", "let", "use", "new", "will", "into", "then", "than",
];

/// A text as a bag of words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    counts: HashMap<u64, u32>,
    total: u64,
}

impl Words {
    /// Collects the words of a text: three letters or more, case-insensitive, without the most common ones.
    pub fn of(text: &str) -> Self {
        let mut words = Self::default();
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        for word in text.split(|letter: char| !is_letter(letter)) {
            if word.chars().nth(2).is_none() {
                continue;
            }
            let word = word.to_lowercase();
            if COMMON.contains(&word.as_str()) {
                continue;
            }
            *words.counts.entry(hash(&word)).or_default() += 1;
            words.total += 1;
        }
        words
    }

    /// Returns the share of words the two texts have in common, from 0 to 1.
    #[allow(clippy::cast_precision_loss)]
    pub fn similarity(&self, other: &Self) -> f64 {
        let (few, many) = if self.counts.len() <= other.counts.len() {
            (self, other)
        } else {
            (other, self)
        };
        let shared = |(word, count): (&u64, &u32)| {
            many.counts
                .get(word)
                .map_or(0, |other| u64::from(*count.min(other)))
        };
        let shared: u64 = few.counts.iter().map(shared).sum();
        let all = self.total + other.total - shared;
        if all == 0 { 0.0 } else { shared as f64 / all as f64 }
    }
}

/// FNV-1a: the same in every process, so that tests can rely on it.
fn hash(word: &str) -> u64 {
    digest([word])
}

/// Hashes several texts.
pub(super) fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = texts.into_iter().flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// CTX-8: marginal information gain. The score of a block is its relevance minus its highest similarity to
/// any more relevant block. Of two equally relevant blocks, the earlier one ranks higher.
///
/// A block with `is_protected` loses nothing.
pub fn marginal_gain(blocks: &[Block<'_>]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by(|a, b| {
        let relevance = |index: &usize| blocks.get(*index).map_or(0.0, |block| block.relevance);
        relevance(b).total_cmp(&relevance(a))
    });
    let mut scores = vec![0.0; blocks.len()];
    for (rank, index) in order.iter().enumerate() {
        let Some(block) = blocks.get(*index) else { continue };
        let higher = order.iter().take(rank).filter_map(|other| blocks.get(*other));
        let repeated = higher
            .map(|other| block.words.similarity(other.words))
            .fold(0.0, f64::max);
        let score = if block.is_protected {
            block.relevance
        } else {
            block.relevance - repeated
        };
        if let Some(slot) = scores.get_mut(*index) {
            *slot = score;
        }
    }
    scores
}

/// A block that is scored beside others.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Words of the block.
    pub words: &'a Words,
    /// Relevance of the block on its own.
    pub relevance: f64,
    /// True if the block must not lose score by repeating others.
    pub is_protected: bool,
}

/// CTX-5: retention after `age` milliseconds and `uses` uses: e^(−t/(S·ln(2+n))), with S = one day.
#[allow(clippy::cast_precision_loss)]
pub fn retention(age: u64, uses: u64) -> f64 {
    const DAY: f64 = 86_400_000.0;
    (-(age as f64) / (DAY * (2.0 + uses as f64).ln())).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// CTX-8: the similarity of texts is the share of words they have in common.
    #[test]
    fn similarity_is_shared_words() {
        for (a, b, expected) in [
            ("", "", 0.0),
            ("error in parser", "", 0.0),
            ("error in parser", "Parser ERROR", 1.0),
            ("alpha beta", "alpha gamma", 1.0 / 3.0),
            ("the and for", "the and for", 0.0),
            ("run run run", "run", 1.0 / 3.0),
        ] {
            let (a, b) = (Words::of(a), Words::of(b));
            assert!(
                near(a.similarity(&b), expected),
                "{a:?} {b:?} {}",
                a.similarity(&b)
            );
            assert!(near(a.similarity(&b), b.similarity(&a)));
        }
    }

    /// CTX-8: a block that repeats a more relevant one scores lower by its similarity; protected blocks lose
    /// nothing.
    #[test]
    fn gain_is_relevance_less_redundancy() {
        let words: Vec<Words> = ["alpha beta", "alpha beta", "gamma delta", "alpha gamma"]
            .into_iter()
            .map(Words::of)
            .collect();
        let block = |index: usize, relevance, is_protected| Block {
            words: &words[index],
            relevance,
            is_protected,
        };
        let scores = marginal_gain(&[
            block(0, 0.3, false),
            block(1, 0.9, false),
            block(2, 0.5, false),
            block(3, 0.1, false),
        ]);
        let expected = [0.3 - 1.0, 0.9, 0.5, 0.1 - 1.0 / 3.0];
        assert!(
            scores.iter().zip(expected).all(|(a, b)| near(*a, b)),
            "{scores:?}"
        );
        let scores = marginal_gain(&[block(0, 1.0, true), block(1, 1.0, true)]);
        assert_eq!(scores, [1.0, 1.0]);
        assert!(marginal_gain(&[]).is_empty());
    }

    /// CTX-5: retention drops with age, more slowly for used memories.
    #[test]
    fn memories_fade() {
        const DAY: u64 = 86_400_000;
        assert!(near(retention(0, 0), 1.0));
        assert!(near(retention(DAY, 0), (-1.0 / 2.0_f64.ln()).exp()));
        assert!(retention(DAY, 5) > retention(DAY, 0));
        assert!(retention(2 * DAY, 0) < retention(DAY, 0));
    }
}
