//! Typed access to a YAML tree, with errors that name the line.

use super::ScriptError;
use super::tree::{Data, Entry, Node};

pub(super) type Parsed<T> = Result<T, ScriptError>;

/// Reads the nodes of one file.
pub(super) struct Reader<'name> {
    pub(super) name: &'name str,
}

impl Reader<'_> {
    /// Returns the entries of a table after checking that their keys are known.
    pub(super) fn table<'node>(
        &self,
        node: &'node Node,
        key: &str,
        place: &'static str,
        keys: &[&str],
    ) -> Parsed<&'node [Entry]> {
        let Data::Table(entries) = &node.data else {
            return Err(ScriptError::BadValue {
                name: self.name.to_owned(),
                line: node.line,
                key: key.to_owned(),
                expected: format!("a table with {}", keys.join(", ")),
                found: node.describe(),
            });
        };
        match entries.iter().find(|entry| !keys.contains(&entry.key.as_str())) {
            Some(entry) => Err(self.unknown(&entry.key, entry.line, place, keys)),
            None => Ok(entries),
        }
    }

    pub(super) fn each<T>(&self, entry: &Entry, read: impl Fn(&Node) -> Parsed<T>) -> Parsed<Vec<T>> {
        match &entry.value.data {
            Data::List(items) => items.iter().map(read).collect(),
            _ => Err(self.bad(entry, "a list")),
        }
    }

    pub(super) fn text(&self, entry: &Entry) -> Parsed<String> {
        match &entry.value.data {
            Data::Text(text) => Ok(text.clone()),
            _ => Err(self.bad(entry, "a text (use quotes)")),
        }
    }

    pub(super) fn flag(&self, entry: &Entry) -> Parsed<bool> {
        match &entry.value.data {
            Data::Bool(flag) => Ok(*flag),
            _ => Err(self.bad(entry, "true or false")),
        }
    }

    pub(super) fn number(&self, entry: &Entry) -> Parsed<u64> {
        match &entry.value.data {
            Data::Number(number) => number.as_u64(),
            _ => None,
        }
        .ok_or_else(|| self.bad(entry, "a whole number"))
    }

    pub(super) fn size(&self, entry: &Entry) -> Parsed<usize> {
        usize::try_from(self.number(entry)?).map_err(|_| self.bad(entry, "a smaller number"))
    }

    pub(super) fn count(&self, entry: &Entry) -> Parsed<usize> {
        match self.size(entry)? {
            0 => Err(self.bad(entry, "a number above 0")),
            count => Ok(count),
        }
    }

    pub(super) fn choice<T: Copy>(&self, entry: &Entry, choices: &[(&str, T)]) -> Parsed<T> {
        let found = match &entry.value.data {
            Data::Text(text) => choices.iter().find(|(name, _)| name == text),
            _ => None,
        };
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.bad(entry, &format!("one of {}", names.join(", ")))
        })
    }

    pub(super) fn bad(&self, entry: &Entry, expected: &str) -> ScriptError {
        ScriptError::BadValue {
            name: self.name.to_owned(),
            line: entry.line,
            key: entry.key.clone(),
            expected: expected.to_owned(),
            found: entry.value.describe(),
        }
    }

    pub(super) fn unknown(&self, key: &str, line: u64, place: &'static str, keys: &[&str]) -> ScriptError {
        let nearest = keys
            .iter()
            .map(|known| (distance(key, known), *known))
            .min()
            .filter(|(distance, known)| *distance <= 1 + known.len() / 3);
        ScriptError::UnknownKey {
            name: self.name.to_owned(),
            line,
            key: key.to_owned(),
            place,
            hint: match nearest {
                Some((_, known)) => format!("did you mean `{known}`?"),
                None => format!("valid keys are {}", keys.join(", ")),
            },
        }
    }
}

/// Returns the number of single-character edits between two words.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
