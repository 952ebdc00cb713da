//! Typed access to a YAML tree, with errors that name the line.

use windlass_yaml::{Node, TableEntry, key_hint};

use super::ScriptError;

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
    ) -> Parsed<&'node [TableEntry]> {
        let entries = node.table(keys).map_err(|expected| ScriptError::BadValue {
            name: self.name.to_owned(),
            line: node.line,
            key: key.to_owned(),
            expected,
            found: node.describe(),
        })?;
        match entries.iter().find(|entry| !keys.contains(&entry.key.as_str())) {
            Some(entry) => Err(self.unknown(&entry.key, entry.line, place, keys)),
            None => Ok(entries),
        }
    }

    pub(super) fn each<T>(&self, entry: &TableEntry, read: impl Fn(&Node) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.typed(entry, entry.value.list())?.iter().map(read).collect()
    }

    pub(super) fn text(&self, entry: &TableEntry) -> Parsed<String> {
        self.typed(entry, entry.value.text()).map(str::to_owned)
    }

    pub(super) fn flag(&self, entry: &TableEntry) -> Parsed<bool> {
        self.typed(entry, entry.value.flag())
    }

    pub(super) fn number<T: TryFrom<i128>>(&self, entry: &TableEntry) -> Parsed<T> {
        self.typed(entry, entry.value.whole())
    }

    pub(super) fn count(&self, entry: &TableEntry) -> Parsed<usize> {
        match self.number(entry)? {
            0 => Err(self.bad(entry, "a number above 0")),
            count => Ok(count),
        }
    }

    pub(super) fn choice<T: Copy>(&self, entry: &TableEntry, choices: &[(&str, T)]) -> Parsed<T> {
        self.typed(entry, entry.value.choice(choices))
    }

    fn typed<T>(&self, entry: &TableEntry, value: Result<T, String>) -> Parsed<T> {
        value.map_err(|expected| self.bad(entry, &expected))
    }

    pub(super) fn bad(&self, entry: &TableEntry, expected: &str) -> ScriptError {
        ScriptError::BadValue {
            name: self.name.to_owned(),
            line: entry.line,
            key: entry.key.clone(),
            expected: expected.to_owned(),
            found: entry.value.describe(),
        }
    }

    pub(super) fn unknown(&self, key: &str, line: u64, place: &'static str, keys: &[&str]) -> ScriptError {
        ScriptError::UnknownKey {
            name: self.name.to_owned(),
            line,
            key: key.to_owned(),
            place,
            hint: key_hint(key, keys),
        }
    }
}
