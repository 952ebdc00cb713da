//! Message history: stepping through it, and searching it.

use std::collections::VecDeque;
use std::ops::Range;

/// Maximum number of texts stored.
const KEPT: usize = 1_000;

/// Earlier texts, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    texts: VecDeque<String>,
    walk: Option<Walk>,
}

/// Position while stepping through the history.
#[derive(Debug)]
struct Walk {
    place: usize,
    /// Draft at the start.
    draft: String,
}

/// A backward search in the history.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) query: String,
    /// Index of the match in the history.
    found: Option<usize>,
}

impl History {
    pub(super) fn new(texts: Vec<String>) -> Self {
        let mut history = Self::default();
        texts.into_iter().for_each(|text| history.add(text));
        history
    }

    /// Adds the newest text, unless it is blank or a repetition, and stops stepping.
    pub(super) fn add(&mut self, text: String) {
        self.walk = None;
        if text.trim().is_empty() || self.texts.back() == Some(&text) {
            return;
        }
        if self.texts.len() == KEPT {
            self.texts.pop_front();
        }
        self.texts.push_back(text);
    }

    /// Stops stepping at the current text.
    pub(super) fn stay(&mut self) {
        self.walk = None;
    }

    /// Text the user has stepped to.
    pub(super) fn walking(&self) -> Option<&str> {
        let walk = self.walk.as_ref()?;
        self.texts.get(walk.place).map(String::as_str)
    }

    /// Returns the next older text. `current` is the text in the composer.
    pub(super) fn older(&mut self, current: &str) -> Option<String> {
        let newest = self.texts.len();
        let place = self.walk.as_ref().map_or(newest, |walk| walk.place);
        let older = self.texts.get(place.checked_sub(1)?)?.clone();
        let walk = self.walk.get_or_insert_with(|| Walk {
            place,
            draft: current.to_owned(),
        });
        walk.place = place - 1;
        Some(older)
    }

    /// Returns the next newer text; after the newest, the draft.
    pub(super) fn newer(&mut self) -> Option<String> {
        let mut walk = self.walk.take()?;
        walk.place += 1;
        let Some(newer) = self.texts.get(walk.place).cloned() else {
            return Some(walk.draft);
        };
        self.walk = Some(walk);
        Some(newer)
    }

    /// True if a text of the history contains this character.
    pub(super) fn mentions(&self, letter: char) -> bool {
        self.texts.iter().any(|text| text.contains(letter))
    }
}

impl Search {
    /// Text of the match.
    pub(super) fn text<'a>(&self, history: &'a History) -> Option<&'a str> {
        self.found
            .and_then(|place| history.texts.get(place))
            .map(String::as_str)
    }

    /// Text of the match, and the position of the query in it.
    pub(super) fn hit<'a>(&self, history: &'a History) -> Option<(&'a str, Range<usize>)> {
        let text = self.text(history)?;
        Some((text, find(text, &self.query)?))
    }

    /// Moves to the next older match that reads differently.
    pub(super) fn older(&mut self, history: &History) {
        let before = self.found.unwrap_or(history.texts.len());
        self.pick(history, (0..before).rev());
    }

    /// Moves to the next newer match that reads differently.
    pub(super) fn newer(&mut self, history: &History) {
        let after = self.found.map_or(history.texts.len(), |place| place + 1);
        self.pick(history, after..history.texts.len());
    }

    /// Restarts from the newest match after the query changed.
    pub(super) fn again(&mut self, history: &History) {
        self.found = None;
        if !self.query.is_empty() {
            self.older(history);
        }
    }

    fn pick(&mut self, history: &History, mut places: impl Iterator<Item = usize>) {
        let current = self.text(history);
        let is_next = |text: &String| Some(text.as_str()) != current && find(text, &self.query).is_some();
        let next = places.find(|place| history.texts.get(*place).is_some_and(is_next));
        self.found = next.or(self.found);
    }
}

/// Finds the query. Case matters only if the query has upper case.
fn find(text: &str, query: &str) -> Option<Range<usize>> {
    let start = if query.chars().any(char::is_uppercase) {
        text.find(query)?
    } else {
        // ASCII only, so that positions in the lowercased text are valid in the original.
        text.to_ascii_lowercase().find(query)?
    };
    Some(start..start + query.len())
}
