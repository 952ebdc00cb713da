//! Words of a text as they are kept and searched.

use std::collections::HashMap;

use windlass_core::words::{is_stop_word, query_words, related, stem, words};

use crate::entity::entities;

/// Starts the name of an entity among the words of a unit. No word starts with it.
pub(crate) const ENTITY: char = '=';

/// Returns the words under which a text can be found, with their number of occurrences: stems, without those that
/// mean nothing, and the names of files and things.
pub fn index_words(text: &str) -> Vec<(String, u32)> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    for word in words(text) {
        if !is_stop_word(&word) {
            *counts.entry(stem(&word)).or_default() += 1;
        }
    }
    for entity in entities(text) {
        counts.insert(format!("{ENTITY}{entity}"), 1);
    }
    let mut all: Vec<(String, u32)> = counts.into_iter().collect();
    all.sort();
    all
}

/// A word of a question with the words that belong to it; every one of them is as good as the others.
pub(crate) type Term = Vec<String>;

/// Returns the words of a question as stems, each with those that belong to it.
pub(crate) fn terms(question: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for word in query_words(question) {
        let stem = stem(&word);
        if !terms.iter().any(|term| term.contains(&stem)) {
            let others = related(&stem).iter().map(|word| windlass_core::words::stem(word));
            terms.push(std::iter::once(stem.clone()).chain(others).collect());
        }
    }
    terms
}
