//! Scores of units for a question. Each part is scaled to the best unit of the question and has a weight of its own.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use windlass_core::log::{MemoryPostings, WordPostings};

use crate::analysis::Term;

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
    /// The question names the time.
    pub(crate) period: f32,
}

/// Weights of the parts; `bench/RESULTS.md` has the evidence they find on a public benchmark.
pub(crate) const WEIGHTS: Weights = Weights {
    alone: 0.3,
    around: 0.5,
    passage: 0.4,
    vector: 0.3,
    smooth: 0.4,
    speaker: 0.2,
    period: 0.4,
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

/// Unit, number of occurrences, and number of words of the unit.
type Place = (u64, u32, u32);

/// Number of units on each side that belong to the passage around a unit.
const PASSAGE: u64 = 8;

/// Scores of all units with a word of the question or beside one.
#[derive(Default)]
pub(crate) struct Scored {
    /// Sorted by unit.
    units: Vec<(u64, Lexical)>,
    /// Largest value of each score.
    most: Lexical,
    /// Weight of each word, and its places in order.
    words: Vec<(f32, Vec<Place>)>,
    /// Sum of the weights of the question's most telling words.
    pub(crate) telling: f32,
}

impl Scored {
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns the scores of a unit; those of other units are 0.
    pub(crate) fn of(&self, unit: u64) -> Lexical {
        let found = self.units.binary_search_by_key(&unit, |(known, _)| *known);
        let found = found.ok().and_then(|place| self.units.get(place));
        found.map(|(_, score)| *score).unwrap_or_default()
    }

    /// Returns the largest scores of a unit alone and of one with its neighbours, never 0.
    pub(crate) fn maxima(&self) -> (f32, f32) {
        let Lexical { alone, around, .. } = self.most;
        (alone.max(f32::MIN_POSITIVE), around.max(f32::MIN_POSITIVE))
    }

    /// Returns the largest share of the question's telling words that a unit has.
    pub(crate) fn trust(&self) -> f32 {
        (self.most.found / self.telling.max(f32::MIN_POSITIVE)).min(1.0)
    }

    /// Returns the weights of the question's words that occur in the passage around a unit. A unit that stands alone,
    /// like a note, is a passage of its own.
    pub(crate) fn passage(&self, unit: u64, stands_alone: bool) -> f32 {
        let reach = if stands_alone { 0 } else { PASSAGE };
        let (first, last) = (unit.saturating_sub(reach), unit.saturating_add(reach));
        let occurs = |places: &[Place]| {
            let next = places.partition_point(|place| place.0 < first);
            places.get(next).is_some_and(|place| place.0 <= last)
        };
        let words = self.words.iter().filter(|(_, places)| occurs(places));
        words.map(|(weight, _)| weight).sum()
    }

    /// Returns the units with the best sum of their scaled scores, the best first.
    pub(crate) fn best(&self, most: usize) -> Vec<u64> {
        let (alone, around) = self.maxima();
        let (alone, around) = (WEIGHTS.alone / alone, WEIGHTS.around / around);
        let sums = self.units.iter();
        let sums = sums.map(|(unit, score)| (*unit, score.alone * alone + score.around * around));
        let mut all: Vec<(u64, f32)> = sums.collect();
        let order = |a: &(u64, f32), b: &(u64, f32)| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0));
        if all.len() > most && most > 0 {
            all.select_nth_unstable_by(most - 1, order);
            all.truncate(most);
        }
        all.sort_unstable_by(order);
        all.into_iter().map(|(unit, _)| unit).collect()
    }
}

/// Number of words of a question that a unit is expected to contain at most.
const TELLING: usize = 5;

/// Scores the units of a scope by the words of a question.
pub(crate) fn lexical(postings: MemoryPostings, asked: &[Term], scored: &mut Scored) {
    let count = postings.units.max(1) as f32;
    let average = (postings.length as f32 / count).max(1.0);
    let mut known = postings.words;
    let found = asked.iter().filter_map(|term| merged(term, &mut known));
    let words: Vec<(f32, Vec<Place>)> = found
        .map(|(units, places)| (idf(count, units as f32), places))
        .collect();
    // A word that occurs nowhere tells as much as one that occurs once.
    let mut weights: Vec<f32> = words.iter().map(|(weight, _)| *weight).collect();
    weights.resize(asked.len().max(weights.len()), idf(count, 1.0));
    weights.sort_by(f32::total_cmp);
    let telling: f32 = weights.iter().rev().take(TELLING).sum();
    scored.telling = scored.telling.max(telling);
    sweep(&words, average, scored);
    scored.words.extend(words);
}

/// Takes the occurrences of a term, with the number of units that have it; `None` if it occurs nowhere.
fn merged(term: &Term, known: &mut Vec<WordPostings>) -> Option<(u64, Vec<Place>)> {
    let (mine, others) = std::mem::take(known)
        .into_iter()
        .partition::<Vec<_>, _>(|word| term.contains(&word.word));
    *known = others;
    let is_one = mine.len() == 1;
    let units = mine.iter().map(|word| word.units).sum();
    let mut places: Vec<Place> = mine.into_iter().flat_map(|word| word.places).collect();
    if !is_one {
        places.sort_by_key(|place| place.0);
        places.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
    }
    (units > 0).then_some((units, places))
}

/// One word in one unit.
struct Occurrence {
    unit: u64,
    word: usize,
    count: f32,
    length: f32,
}

/// Sums of one unit while it is scored.
struct Tally {
    /// Occurrences of each word in the unit, and in it and beside it.
    own: Vec<f32>,
    near: Vec<f32>,
    /// Words that occur.
    touched: Vec<usize>,
}

/// Scores every unit that has a word, and those beside it, in the order of their numbers.
fn sweep(words: &[(f32, Vec<Place>)], average: f32, scored: &mut Scored) {
    let mut all: Vec<Occurrence> = Vec::with_capacity(words.iter().map(|(_, places)| places.len()).sum());
    for (word, (_, places)) in words.iter().enumerate() {
        all.extend(places.iter().map(|(unit, count, length)| Occurrence {
            unit: *unit,
            word,
            count: *count as f32,
            length: *length as f32,
        }));
    }
    // Stable sorting is fast for a few sorted runs.
    all.sort_by_key(|occurrence| occurrence.unit);
    let mut tally = Tally {
        own: vec![0.0; words.len()],
        near: vec![0.0; words.len()],
        touched: Vec::with_capacity(words.len()),
    };
    let mut units = std::mem::take(&mut scored.units);
    let is_first = units.is_empty();
    let (mut from, mut next) = (0, 0);
    for occurrence in &all {
        for unit in [
            occurrence.unit.saturating_sub(1),
            occurrence.unit,
            occurrence.unit + 1,
        ] {
            if unit < next {
                continue;
            }
            next = unit + 1;
            while all.get(from).is_some_and(|early| early.unit + 1 < unit) {
                from += 1;
            }
            let near = all.iter().skip(from).take_while(|near| near.unit <= unit + 1);
            let score = tally.score(unit, near, words, average);
            scored.most.alone = scored.most.alone.max(score.alone);
            scored.most.around = scored.most.around.max(score.around);
            scored.most.found = scored.most.found.max(score.found);
            units.push((unit, score));
        }
    }
    if !is_first {
        units.sort_by_key(|(unit, _)| *unit);
    }
    scored.units = units;
}

impl Tally {
    /// Returns the scores of a unit from the occurrences in it and beside it.
    fn score<'a>(
        &mut self,
        unit: u64,
        near: impl Iterator<Item = &'a Occurrence>,
        words: &[(f32, Vec<Place>)],
        average: f32,
    ) -> Lexical {
        // The length of a unit without any of the words is not known here.
        let mut length = average;
        for occurrence in near {
            let Occurrence { word, count, .. } = *occurrence;
            let (Some(own), Some(near)) = (self.own.get_mut(word), self.near.get_mut(word)) else {
                continue;
            };
            if *near == 0.0 {
                self.touched.push(word);
            }
            *near += count;
            if occurrence.unit == unit {
                *own += count;
                length = occurrence.length;
            }
        }
        let damp = |length: f32| K1 * (1.0 - B + B * length);
        let (alone, around) = (
            damp(length / average),
            damp((length + 2.0 * average) / (3.0 * average)),
        );
        let mut score = Lexical::default();
        for word in self.touched.drain(..) {
            let weight = words.get(word).map(|(weight, _)| *weight).unwrap_or_default();
            let own = self.own.get_mut(word).map(std::mem::take).unwrap_or_default();
            let near = self.near.get_mut(word).map(std::mem::take).unwrap_or_default();
            score.around += weight * near * (K1 + 1.0) / (near + around);
            score.alone += weight * own * (K1 + 1.0) / (own + alone);
            score.found += if own > 0.0 { weight } else { weight * 0.5 };
        }
        score
    }
}

fn idf(count: f32, units: f32) -> f32 {
    (1.0 + (count - units + 0.5).max(0.0) / (units + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str, units: &[u64]) -> WordPostings {
        WordPostings {
            word: word.to_owned(),
            units: units.len() as u64,
            places: units.iter().map(|unit| (*unit, 1, 5)).collect(),
        }
    }

    fn scored(words: Vec<WordPostings>, asked: &[&[&str]]) -> Scored {
        let postings = MemoryPostings {
            units: 100,
            length: 500,
            words,
        };
        let term = |words: &&[&str]| -> Term { words.iter().map(|word| (*word).to_owned()).collect() };
        let asked: Vec<Term> = asked.iter().map(term).collect();
        let mut scored = Scored::default();
        lexical(postings, &asked, &mut scored);
        scored
    }

    /// MEM-7: a unit next to the word counts, one that has it counts more, and rare words count more than common ones.
    #[test]
    fn neighbours_share_words() {
        let words = || vec![word("rare", &[10]), word("common", &[11, 20, 30, 40, 50])];
        let scored = scored(words(), &[&["rare"], &["common"]]);
        let order = scored.best(3);
        assert_eq!(order.first(), Some(&10));
        assert!(order.contains(&11));
        assert!(scored.of(9).around > 0.0 && scored.of(9).alone == 0.0);
        assert!(scored.of(10).around > scored.of(9).around);
        assert!(scored.of(10).alone > scored.of(20).alone);
        assert_eq!(scored.of(13), Lexical::default());
        // The passage around 25 has only the common word, that around 2 only the rare one, that around 15 both.
        assert!(scored.passage(2, false) > scored.passage(25, false));
        assert!(scored.passage(15, false) > scored.passage(2, false));
        assert!(scored.trust() > 0.7, "{}", scored.trust());
        assert_eq!(scored.passage(15, true), 0.0);
        assert!(scored.passage(10, true) > 0.0);
        let more: [&[&str]; 9] = [
            &["rare"],
            &["common"],
            &["a"],
            &["b"],
            &["c"],
            &["d"],
            &["e"],
            &["f"],
            &["g"],
        ];
        let unknown = super::tests::scored(words(), &more);
        assert!(unknown.trust() < 0.6, "{}", unknown.trust());
    }

    /// MEM-7: words that belong together count as one.
    #[test]
    fn related_words_are_one() {
        let both = scored(
            vec![word("bought", &[3, 8]), word("buy", &[3])],
            &[&["buy", "bought"]],
        );
        let plain = WordPostings {
            places: vec![(3, 2, 5), (8, 1, 5)],
            units: 3,
            ..word("buy", &[])
        };
        let one = scored(vec![plain], &[&["buy"]]);
        for unit in [2, 3, 4, 7, 8, 9] {
            assert_eq!(both.of(unit), one.of(unit), "{unit}");
        }
        assert!(both.of(3).alone > both.of(8).alone);
    }
}
