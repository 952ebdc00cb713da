//! Ranking: BM25 of files, of their chunks, paths and definitions, combined by weights.
//!
//! The weights come from the issues of SWE-bench Lite; `bench/README.md` describes the measurement. Every signal is
//! divided by its maximum, so that the weights mean the same in every workspace.

use std::collections::HashMap;

use crate::index::Index;
use crate::language::FileRole;
use crate::record::Bag;
use crate::words;

/// Maximum length of a query in bytes; the rest is ignored.
const MAX_QUERY: usize = 20_000;
/// Maximum number of different words of a query.
const MAX_WORDS: usize = 1_000;

/// Factor of the words in the first line of a longer query: the title of an issue.
const TITLE_FACTOR: f64 = 3.0;
/// Factor of identifiers that have several parts, as they are written.
const COMPOUND_FACTOR: f64 = 2.0;

const K1: f64 = 1.2;
const CHUNK_WEIGHT: f64 = 2.0;
const PATH_WEIGHT: f64 = 0.6;
const NAMES_WEIGHT: f64 = 0.2;
const NAMED_WEIGHT: f64 = 1.0;
const EXACT_WEIGHT: f64 = 0.2;
/// Begins the list of calls that led to an error, in Python.
const TRACEBACK: &str = "Traceback (most recent call last)";
/// Score of a file in that list that is not the last, compared with the last.
const CALLER_SHARE: f64 = 0.3;
/// Shares of a file's best three chunks.
const CHUNK_SHARES: [f64; 3] = [1.0, 0.5, 0.25];
/// Factors of files that are not code.
const TEST_FACTOR: f64 = 0.55;
const PROSE_FACTOR: f64 = 0.5;
const DATA_FACTOR: f64 = 0.5;

/// A file that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundFile {
    /// Path below the workspace.
    pub path: String,
    /// Score; higher is better.
    pub score: f64,
    /// First and last lines of its best chunks, the best first.
    pub chunks: Vec<(u32, u32)>,
}

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundFiles {
    /// Files, the best first.
    pub files: Vec<FoundFile>,
    /// Number of files that match at all.
    pub total: usize,
    /// Weights of the query's words that occur, by hash.
    pub(crate) weights: HashMap<u32, f64>,
    /// Number of the query's words that at most a fifth of the files have.
    pub(crate) rare_words: usize,
    /// True if a file is named in the query, or a definition is.
    pub(crate) is_pointed: bool,
}

/// Words of a query, and a filter that rejects most other words at once.
struct Query {
    /// Number of a word by its hash.
    slots: HashMap<u32, usize>,
    /// Weight of each word by the number of its occurrences in the query.
    counts: Vec<f64>,
    bits: Vec<u64>,
}

impl Query {
    fn new(text: &str) -> Self {
        let mut query = Self {
            slots: HashMap::new(),
            counts: Vec::new(),
            bits: vec![0; 1_024],
        };
        let mut counts: Vec<u32> = Vec::new();
        words::hashes(text.as_bytes(), |hash| {
            let next = query.slots.len();
            if let Some(slot) = query.slots.get(&hash) {
                if let Some(count) = counts.get_mut(*slot) {
                    *count += 1;
                }
            } else if next < MAX_WORDS {
                query.slots.insert(hash, next);
                counts.push(1);
                let bit = hash >> 16;
                if let Some(word) = query.bits.get_mut((bit >> 6) as usize) {
                    *word |= 1 << (bit & 63);
                }
            }
        });
        query.counts = counts
            .iter()
            .map(|count| f64::from((*count).min(3)).sqrt())
            .collect();
        query.emphasize(text);
        query
    }

    /// Raises the weights of the title and of compound identifiers.
    fn emphasize(&mut self, text: &str) {
        let mut raised: HashMap<u32, f64> = HashMap::new();
        let title = text.trim_start().split_once('\n').map(|(title, _)| title);
        for hash in title.map(words::hashes_of).unwrap_or_default() {
            raised.insert(hash, TITLE_FACTOR);
        }
        let mut compound: Vec<u32> = Vec::new();
        words::identifiers(text.as_bytes(), |word| {
            if words::is_compound(word) {
                compound.push(words::hash(word));
            }
        });
        compound.sort_unstable();
        compound.dedup();
        for hash in compound {
            *raised.entry(hash).or_insert(1.0) *= COMPOUND_FACTOR;
        }
        for (hash, factor) in raised {
            let slot = self.slots.get(&hash).and_then(|slot| self.counts.get_mut(*slot));
            if let Some(count) = slot {
                *count *= factor;
            }
        }
    }

    fn slot(&self, hash: u32) -> Option<usize> {
        let bit = hash >> 16;
        let word = self.bits.get((bit >> 6) as usize)?;
        (word >> (bit & 63) & 1 == 1)
            .then(|| self.slots.get(&hash).copied())
            .flatten()
    }
}

/// One kind of document: whole files, chunks, paths or lists of names.
struct Field {
    /// Weight of a document's length.
    b: f64,
    /// Length of each document.
    lengths: Vec<f64>,
    /// Document, word, count.
    postings: Vec<(usize, usize, f64)>,
    /// Number of documents with each word.
    frequencies: Vec<u32>,
}

impl Field {
    fn new(b: f64, words: usize) -> Self {
        Self {
            b,
            lengths: Vec::new(),
            postings: Vec::new(),
            frequencies: vec![0; words],
        }
    }

    fn add(&mut self, length: f64, counts: impl Iterator<Item = (usize, f64)>) {
        let document = self.lengths.len();
        self.lengths.push(length);
        for (slot, count) in counts {
            self.postings.push((document, slot, count));
            if let Some(frequency) = self.frequencies.get_mut(slot) {
                *frequency += 1;
            }
        }
    }

    fn add_bag(&mut self, query: &Query, bag: &Bag<'_>, more: f64) {
        let mut found = Vec::new();
        bag.each(|hash, count| found.extend(query.slot(hash).map(|slot| (slot, f64::from(count)))));
        self.add(f64::from(bag.length) + more, found.into_iter());
    }

    fn idf(&self, slot: usize) -> f64 {
        let total = self.lengths.len() as f64;
        let having = f64::from(self.frequencies.get(slot).copied().unwrap_or_default());
        (1.0 + (total - having + 0.5) / (having + 0.5)).ln()
    }

    /// Returns the score of each document.
    fn scores(&self, query: &Query) -> Vec<f64> {
        let total = self.lengths.len().max(1) as f64;
        let average = (self.lengths.iter().sum::<f64>() / total).max(1e-9);
        let weights: Vec<f64> = query
            .counts
            .iter()
            .enumerate()
            .map(|(slot, count)| self.idf(slot) * count)
            .collect();
        let mut scores = vec![0.0; self.lengths.len()];
        for (document, slot, count) in &self.postings {
            let length = self.lengths.get(*document).copied().unwrap_or_default() / average;
            let weight = weights.get(*slot).copied().unwrap_or_default();
            let damped = count * (K1 + 1.0) / (count + K1 * (1.0 - self.b + self.b * length));
            if let Some(score) = scores.get_mut(*document) {
                *score += weight * damped;
            }
        }
        scores
    }
}

/// Restricts a search.
#[derive(Default)]
pub struct SearchScope<'a> {
    /// Decides about a path; all files if `None`.
    pub wanted: Option<&'a (dyn Fn(&str) -> bool + Sync)>,
    /// True to leave out everything but source code.
    pub code_only: bool,
}

impl Index {
    /// Finds the files that fit a question, an issue or a few words best.
    pub fn search(&self, text: &str, limit: usize, scope: &SearchScope<'_>) -> FoundFiles {
        let end = text.len().min(MAX_QUERY);
        let text = text
            .get(..windlass_core::text::boundary_before(text, end))
            .unwrap_or(text);
        let query = Query::new(text);
        if query.slots.is_empty() {
            return FoundFiles::default();
        }
        let wanted: Vec<usize> = (0..self.records.len())
            .filter(|number| self.is_wanted(*number, scope))
            .collect();
        Ranking::new(self, &query, &wanted).found(text, limit)
    }

    fn is_wanted(&self, number: usize, scope: &SearchScope<'_>) -> bool {
        let Some(record) = self.records.get(number) else {
            return false;
        };
        let is_code = !scope.code_only || FileRole::of(&record.path) == FileRole::Code;
        is_code && scope.wanted.is_none_or(|wanted| wanted(&record.path))
    }
}

struct Ranking<'a> {
    index: &'a Index,
    query: &'a Query,
    /// Numbers of the records.
    files: &'a [usize],
    body: Field,
    chunks: Field,
    paths: Field,
    names: Field,
    /// File, first and last line of each chunk.
    places: Vec<(usize, u32, u32)>,
}

impl<'a> Ranking<'a> {
    fn new(index: &'a Index, query: &'a Query, files: &'a [usize]) -> Self {
        let words = query.counts.len();
        let mut ranking = Self {
            index,
            query,
            files,
            body: Field::new(0.75, words),
            chunks: Field::new(0.75, words),
            paths: Field::new(0.3, words),
            names: Field::new(0.5, words),
            places: Vec::new(),
        };
        let mut sums = vec![0.0; words];
        for (file, number) in files.iter().enumerate() {
            ranking.add(file, *number, &mut sums);
        }
        ranking
    }

    fn add(&mut self, file: usize, number: usize, sums: &mut [f64]) {
        let Some(parts) = self.index.records.get(number).and_then(|record| record.unpack()) else {
            let none = || std::iter::empty();
            self.body.add(0.0, none());
            self.paths.add(0.0, none());
            self.names.add(0.0, none());
            return;
        };
        self.paths.add_bag(self.query, &parts.path, 0.0);
        self.names.add_bag(self.query, &parts.names, 1.0);
        let mut length = 0.0;
        for chunk in &parts.chunks {
            let from = self.chunks.postings.len();
            self.chunks.add_bag(self.query, &chunk.bag, 0.0);
            self.places.push((file, chunk.first, chunk.last));
            length += f64::from(chunk.bag.length);
            for (_, slot, count) in self.chunks.postings.iter().skip(from) {
                if let Some(sum) = sums.get_mut(*slot) {
                    *sum += count;
                }
            }
        }
        let found = sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0);
        let found: Vec<(usize, f64)> = found.map(|(slot, sum)| (slot, *sum)).collect();
        self.body.add(length, found.into_iter());
        sums.fill(0.0);
    }

    fn found(&self, text: &str, limit: usize) -> FoundFiles {
        let count = self.files.len();
        let best = self.best_chunks(count);
        let chunk_scores = best.iter().map(|chunks| {
            let shares = chunks.iter().zip(CHUNK_SHARES);
            shares.map(|((score, _, _), share)| score * share).sum()
        });
        let (named, exact) = (self.named(text), self.exact(text));
        let is_pointed = named.iter().chain(&exact).any(|score| *score > 0.0);
        let signals: [(f64, Vec<f64>); 6] = [
            (1.0, self.body.scores(self.query)),
            (CHUNK_WEIGHT, chunk_scores.collect()),
            (PATH_WEIGHT, self.paths.scores(self.query)),
            (NAMES_WEIGHT, self.names.scores(self.query)),
            (NAMED_WEIGHT, named),
            (EXACT_WEIGHT, exact),
        ];
        let mut totals = vec![0.0; count];
        for (weight, scores) in &signals {
            let most = scores.iter().copied().fold(0.0, f64::max);
            if most > 0.0 {
                for (total, score) in totals.iter_mut().zip(scores) {
                    *total += weight * score / most;
                }
            }
        }
        let mut ranked: Vec<(usize, f64)> = totals
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .map(|(file, score)| (file, score * self.factor(file)))
            .collect();
        let total = ranked.len();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked.truncate(limit);
        let files = ranked.into_iter().map(|(file, score)| FoundFile {
            path: self.path(file).to_owned(),
            score,
            chunks: best
                .get(file)
                .into_iter()
                .flatten()
                .map(|(_, first, last)| (*first, *last))
                .collect(),
        });
        FoundFiles {
            files: files.collect(),
            total,
            weights: self.weights(),
            rare_words: self.rare_words(),
            is_pointed,
        }
    }

    fn path(&self, file: usize) -> &str {
        let record = self
            .files
            .get(file)
            .and_then(|number| self.index.records.get(*number));
        record.map_or("", |record| &*record.path)
    }

    fn factor(&self, file: usize) -> f64 {
        match FileRole::of(self.path(file)) {
            FileRole::Code => 1.0,
            FileRole::Test => TEST_FACTOR,
            FileRole::Prose => PROSE_FACTOR,
            FileRole::Data => DATA_FACTOR,
        }
    }

    /// Returns score, first and last line of the best three chunks of each file.
    fn best_chunks(&self, count: usize) -> Vec<Vec<(f64, u32, u32)>> {
        let mut best: Vec<Vec<(f64, u32, u32)>> = vec![Vec::new(); count];
        for (score, (file, first, last)) in self.chunks.scores(self.query).into_iter().zip(&self.places) {
            if score > 0.0
                && let Some(chunks) = best.get_mut(*file)
            {
                chunks.push((score, *first, *last));
                chunks.sort_by(|one, other| other.0.total_cmp(&one.0));
                chunks.truncate(CHUNK_SHARES.len());
            }
        }
        best
    }

    /// Scores files whose path, or the module that it stands for, is written in the query. Of a Python traceback, the last
    /// file is where the error was raised; those before it only led there.
    fn named(&self, text: &str) -> Vec<f64> {
        let places: Vec<Option<usize>> = (0..self.files.len())
            .map(|file| last_named(text, self.path(file)))
            .collect();
        let raised = places.iter().flatten().max().filter(|_| text.contains(TRACEBACK));
        let score = |place: &Option<usize>| match (place, raised) {
            (None, _) => 0.0,
            (Some(place), Some(raised)) if place < raised => CALLER_SHARE,
            (Some(_), _) => 1.0,
        };
        places.iter().map(score).collect()
    }

    /// Scores files that define an identifier of the query; one that is defined in many places says less.
    fn exact(&self, text: &str) -> Vec<f64> {
        let mut asked: HashMap<&[u8], u32> = HashMap::new();
        words::identifiers(text.as_bytes(), |word| {
            if word.len() > 3 && asked.len() < MAX_WORDS {
                asked.insert(word, 0);
            }
        });
        let mut hits: Vec<Vec<Vec<u8>>> = Vec::with_capacity(self.files.len());
        for number in self.files {
            let mut names: Vec<Vec<u8>> = Vec::new();
            if let Some(record) = self.index.records.get(*number) {
                record.names(|name| {
                    if asked.contains_key(name) && !names.iter().any(|known| known == name) {
                        names.push(name.to_vec());
                    }
                });
            }
            for name in &names {
                if let Some(count) = asked.get_mut(name.as_slice()) {
                    *count += 1;
                }
            }
            hits.push(names);
        }
        let weight = |name: &Vec<u8>| {
            let count = asked.get(name.as_slice()).copied().unwrap_or_default();
            1.0 / f64::from(count + 1).sqrt()
        };
        hits.iter().map(|names| names.iter().map(weight).sum()).collect()
    }

    fn weights(&self) -> HashMap<u32, f64> {
        let known = self.query.slots.iter();
        let known =
            known.filter(|(_, slot)| self.body.frequencies.get(**slot).is_some_and(|count| *count > 0));
        known
            .map(|(hash, slot)| (*hash, self.chunks.idf(*slot)))
            .collect()
    }

    fn rare_words(&self) -> usize {
        let most = (self.files.len() / 5).max(3);
        let is_rare = |count: &&u32| **count > 0 && **count as usize <= most;
        self.body.frequencies.iter().filter(is_rare).count()
    }
}

/// Returns the last place where a text names a path, its module in dotted form, or the last parts of either.
fn last_named(text: &str, path: &str) -> Option<usize> {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
    let parts: Vec<&str> = stem.split('/').collect();
    // A single name says too little: `utils`, `app`.
    let named = (0..parts.len().saturating_sub(1)).filter_map(|from| {
        let parts = parts.get(from..).unwrap_or_default();
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let module = last_whole(text, &parts.join("."));
        module.max(last_whole(text, &format!("{}.{ending}", parts.join("/"))))
    });
    named.max().max(text.rfind(path))
}

/// Returns the last place where a text contains a name that is not part of a longer one.
fn last_whole(text: &str, name: &str) -> Option<usize> {
    let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
    let is_whole = |at: usize| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    };
    text.rmatch_indices(name)
        .map(|(at, _)| at)
        .find(|at| is_whole(*at))
}
