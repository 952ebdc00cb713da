//! What was written before: walked through, and searched.

use std::collections::VecDeque;
use std::ops::Range;

/// How many texts are kept.
const KEPT: usize = 1_000;

/// Earlier texts, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    texts: VecDeque<String>,
    walk: Option<Walk>,
}

/// A walk through the history.
#[derive(Debug)]
struct Walk {
    place: usize,
    /// What was being written when the walk began.
    draft: String,
}

/// A search in the history, backwards.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) query: String,
    /// The text that was found, and where in the history it is.
    found: Option<usize>,
}

impl History {
    pub(super) fn new(texts: Vec<String>) -> Self {
        let mut history = Self::default();
        texts.into_iter().for_each(|text| history.add(text));
        history
    }

    /// Adds the newest text, unless it says nothing or nothing new, and ends a walk.
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

    /// Ends a walk where it is.
    pub(super) fn stay(&mut self) {
        self.walk = None;
    }

    /// The text that the walk is at.
    pub(super) fn walking(&self) -> Option<&str> {
        let walk = self.walk.as_ref()?;
        self.texts.get(walk.place).map(String::as_str)
    }

    /// The next older text. `current` is what the composer shows.
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

    /// The next newer text; after the newest, what was being written.
    pub(super) fn newer(&mut self) -> Option<String> {
        let mut walk = self.walk.take()?;
        walk.place += 1;
        let Some(newer) = self.texts.get(walk.place).cloned() else {
            return Some(walk.draft);
        };
        self.walk = Some(walk);
        Some(newer)
    }

    /// Whether a text of the history has this character.
    pub(super) fn mentions(&self, letter: char) -> bool {
        self.texts.iter().any(|text| text.contains(letter))
    }
}

impl Search {
    /// The text that was found.
    pub(super) fn text<'a>(&self, history: &'a History) -> Option<&'a str> {
        self.found
            .and_then(|place| history.texts.get(place))
            .map(String::as_str)
    }

    /// The text that was found, and where in it the query is.
    pub(super) fn hit<'a>(&self, history: &'a History) -> Option<(&'a str, Range<usize>)> {
        let text = self.text(history)?;
        Some((text, find(text, &self.query)?))
    }

    /// Goes to the next older text that has the query and reads differently.
    pub(super) fn older(&mut self, history: &History) {
        let before = self.found.unwrap_or(history.texts.len());
        self.pick(history, (0..before).rev());
    }

    /// Goes to the next newer text that has the query and reads differently.
    pub(super) fn newer(&mut self, history: &History) {
        let after = self.found.map_or(history.texts.len(), |place| place + 1);
        self.pick(history, after..history.texts.len());
    }

    /// The query became longer or shorter: the newest text that has it counts.
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

/// Where the query is. Upper and lower case differ only if the query has upper case.
fn find(text: &str, query: &str) -> Option<Range<usize>> {
    let start = if query.chars().any(char::is_uppercase) {
        text.find(query)?
    } else {
        // ASCII only, so that positions in the changed text are those in the text.
        text.to_ascii_lowercase().find(query)?
    };
    Some(start..start + query.len())
}
