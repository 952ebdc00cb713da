//! Scores of units for a question. Each part is scaled to the best unit of the question and has a weight of its own.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use windlass_core::log::MemoryPostings;

/// Saturation of repeated words, and influence of the length, in BM25.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Weights of the parts of a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weights {
    /// Words of the unit.
    pub(crate) alone: f32,
    /// Words of the unit and its neighbours.
    pub(crate) around: f32,
    /// Words of the question in the passage around the unit.
    pub(crate) passage: f32,
    /// Vector of the unit.
    pub(crate) vector: f32,
    /// Vectors of the unit and its neighbours.
    pub(crate) smooth: f32,
    /// The question names the speaker.
    pub(crate) speaker: f32,
}

/// Weights of the parts; `bench/RESULTS.md` has the evidence they find on a public benchmark.
pub(crate) const WEIGHTS: Weights = Weights {
    alone: 0.3,
    around: 0.5,
    passage: 0.4,
    vector: 0.3,
    smooth: 0.4,
    speaker: 0.2,
};

/// A map from units, with a hash that costs one multiplication.
pub(crate) type UnitMap<T> = HashMap<u64, T, BuildHasherDefault<UnitHasher>>;

/// Hashes the numbers of units.
#[derive(Default)]
pub(crate) struct UnitHasher(u64);

impl Hasher for UnitHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
}

/// Scores of a unit by its words.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Lexical {
    /// BM25 of the unit.
    pub(crate) alone: f32,
    /// BM25 of the unit together with its neighbours.
    pub(crate) around: f32,
    /// Sum of the weights of the words that occur in the unit or beside it.
    pub(crate) found: f32,
}

/// Number of units on each side that belong to the passage around a unit.
const PASSAGE: u64 = 8;

/// Scores of all units with a word of the question.
#[derive(Default)]
pub(crate) struct Scored {
    pub(crate) units: UnitMap<Lexical>,
    /// Weight of each word, and the units that have it, in order.
    words: Vec<(f32, Vec<u64>)>,
    /// Sum of the weights of the question's most telling words.
    pub(crate) telling: f32,
}

impl Scored {
    /// Returns the largest share of the question's telling words that a unit has.
    pub(crate) fn trust(&self) -> f32 {
        let found = self.units.values().map(|score| score.found).fold(0.0, f32::max);
        (found / self.telling.max(f32::MIN_POSITIVE)).min(1.0)
    }

    /// Returns the weights of the question's words that occur in the passage around a unit. A unit that stands alone,
    /// like a note, is a passage of its own.
    pub(crate) fn passage(&self, unit: u64, stands_alone: bool) -> f32 {
        let reach = if stands_alone { 0 } else { PASSAGE };
        let (first, last) = (unit.saturating_sub(reach), unit.saturating_add(reach));
        let occurs = |places: &[u64]| {
            let next = places.partition_point(|place| *place < first);
            places.get(next).is_some_and(|place| *place <= last)
        };
        let words = self.words.iter().filter(|(_, places)| occurs(places));
        words.map(|(weight, _)| weight).sum()
    }
}

/// Number of words of a question that a unit is expected to contain at most.
const TELLING: usize = 5;

/// Scores units by the words of a question. `asked` is the number of words, including those that occur nowhere.
pub(crate) fn lexical(postings: &MemoryPostings, asked: usize, scored: &mut Scored) {
    let count = postings.units.max(1) as f32;
    let average = (postings.length as f32 / count).max(1.0);
    let mut weights: Vec<f32> = Vec::with_capacity(asked);
    for word in &postings.words {
        let weight = idf(count, word.units as f32);
        weights.push(weight);
        add(&mut scored.units, &word.places, weight, average);
        let places = word.places.iter().map(|place| place.0).collect();
        scored.words.push((weight, places));
    }
    // A word that occurs nowhere tells as much as one that occurs once.
    weights.resize(asked.max(weights.len()), idf(count, 1.0));
    weights.sort_by(f32::total_cmp);
    let telling: f32 = weights.iter().rev().take(TELLING).sum();
    scored.telling = scored.telling.max(telling);
}

fn idf(count: f32, units: f32) -> f32 {
    (1.0 + (count - units + 0.5).max(0.0) / (units + 0.5)).ln()
}

/// Adds the scores of one word. The places are in the order of the units.
fn add(units: &mut UnitMap<Lexical>, places: &[(u64, u32, u32)], weight: f32, average: f32) {
    let bm25 = |times: f32, length: f32, average: f32| {
        weight * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length / average))
    };
    let at = |index: Option<usize>, unit: u64| -> f32 {
        let place = index.and_then(|index| places.get(index));
        place
            .filter(|place| place.0 == unit)
            .map_or(0.0, |place| place.1 as f32)
    };
    // Lengths of the neighbours are not known here; the average stands for them.
    let around = |times: f32, length: f32| bm25(times, length + 2.0 * average, 3.0 * average);
    for (index, (unit, times, length)) in places.iter().enumerate() {
        let (before, after) = (
            at(index.checked_sub(1), unit.wrapping_sub(1)),
            at(Some(index + 1), unit + 1),
        );
        let times = *times as f32;
        let score = units.entry(*unit).or_default();
        score.alone += bm25(times, *length as f32, average);
        score.around += around(before + times + after, *length as f32);
        score.found += weight;
        if before == 0.0 && *unit > 0 {
            // The unit below has the word only beside it, possibly on both sides.
            let further = index.checked_sub(1);
            let twice = at(further, unit.wrapping_sub(2));
            let score = units.entry(unit - 1).or_default();
            score.around += around(times + twice, average);
            score.found += weight * 0.5;
        }
        let is_shared = places.get(index + 1).is_some_and(|next| next.0 == unit + 2);
        if after == 0.0 && !is_shared {
            let score = units.entry(unit + 1).or_default();
            score.around += around(times, average);
            score.found += weight * 0.5;
        }
    }
}

/// Returns the units with the best sum of their scaled scores, the best first.
pub(crate) fn best(scored: &Scored, most: usize) -> Vec<(u64, f32)> {
    let (alone, around) = maxima(scored);
    let mut all: Vec<(u64, f32)> = scored
        .units
        .iter()
        .map(|(unit, score)| {
            let sum = WEIGHTS.alone * score.alone / alone + WEIGHTS.around * score.around / around;
            (*unit, sum)
        })
        .collect();
    let order = |a: &(u64, f32), b: &(u64, f32)| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0));
    if all.len() > most && most > 0 {
        all.select_nth_unstable_by(most - 1, order);
        all.truncate(most);
    }
    all.sort_by(order);
    all
}

/// Returns the best scores of the question, never 0.
pub(crate) fn maxima(scored: &Scored) -> (f32, f32) {
    let most = |part: fn(&Lexical) -> f32| scored.units.values().map(part).fold(f32::MIN_POSITIVE, f32::max);
    (most(|score| score.alone), most(|score| score.around))
}

#[cfg(test)]
mod tests {
    use windlass_core::log::WordPostings;

    use super::*;

    /// MEM-7: a unit next to the word counts, one that has it counts more, and rare words count more than common ones.
    #[test]
    fn neighbours_share_words() {
        let word = |word: &str, units: &[u64]| WordPostings {
            word: word.to_owned(),
            units: units.len() as u64,
            places: units.iter().map(|unit| (*unit, 1, 5)).collect(),
        };
        let postings = MemoryPostings {
            units: 100,
            length: 500,
            words: vec![word("rare", &[10]), word("common", &[11, 20, 30, 40, 50])],
        };
        let mut scored = Scored::default();
        lexical(&postings, 2, &mut scored);
        let order: Vec<u64> = best(&scored, 3).iter().map(|(unit, _)| *unit).collect();
        assert_eq!(order.first(), Some(&10));
        assert!(order.contains(&11));
        let score = |unit: u64| scored.units.get(&unit).copied().unwrap_or_default();
        assert!(score(9).around > 0.0 && score(9).alone == 0.0);
        assert!(score(10).around > score(9).around);
        assert!(score(10).alone > score(20).alone);
        // The passage around 25 has only the common word, that around 2 only the rare one, that around 15 both.
        assert!(scored.passage(2, false) > scored.passage(25, false));
        assert!(scored.passage(15, false) > scored.passage(2, false));
        assert!(scored.trust() > 0.7, "{}", scored.trust());
        let mut unknown = Scored::default();
        lexical(&postings, 9, &mut unknown);
        assert!(unknown.trust() < 0.6, "{}", unknown.trust());
        assert_eq!(scored.passage(15, true), 0.0);
        assert!(scored.passage(10, true) > 0.0);
    }
}
