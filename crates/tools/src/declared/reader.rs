//! Typed access to a YAML tree that collects mistakes instead of stopping at the first.

use super::problem::DeclarationProblem;
use super::tree::{Data, Entry, Node};

/// Reads the nodes of one file.
pub(super) struct Reader<'file> {
    file: &'file str,
    problems: Vec<DeclarationProblem>,
}

impl<'file> Reader<'file> {
    pub(super) fn new(file: &'file str) -> Self {
        Self {
            file,
            problems: Vec::new(),
        }
    }

    pub(super) fn into_problems(self) -> Vec<DeclarationProblem> {
        self.problems
    }

    /// Records a mistake. The message names the field.
    pub(super) fn wrong(&mut self, line: u64, message: String) {
        self.problems.push(DeclarationProblem {
            file: self.file.to_owned(),
            line: Some(line),
            message,
        });
    }

    /// Records that a field has the wrong type or value.
    pub(super) fn must_be(&mut self, field: &str, expected: &str, node: &Node) {
        let found = node.describe();
        let field = if field.is_empty() {
            "the file".to_owned()
        } else {
            format!("`{field}`")
        };
        self.wrong(node.line, format!("{field} must be {expected}, not {found}"));
    }

    /// Returns the entries of a table with known keys. Unknown keys are recorded as mistakes.
    pub(super) fn table<'node>(
        &mut self,
        field: &str,
        node: &'node Node,
        keys: &[&str],
    ) -> Option<Vec<&'node Entry>> {
        let Data::Table(entries) = &node.data else {
            self.must_be(field, &format!("a table with {}", keys.join(", ")), node);
            return None;
        };
        let is_known = |entry: &&Entry| keys.contains(&entry.key.as_str());
        let (known, unknown): (Vec<_>, Vec<_>) = entries.iter().partition(is_known);
        for entry in unknown {
            let path = join(field, &entry.key);
            let hint = match nearest(&entry.key, keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("valid keys are {}", keys.join(", ")),
            };
            self.wrong(entry.line, format!("unknown key `{path}`; {hint}"));
        }
        Some(known)
    }

    /// Returns the entries of a table whose keys the author chooses.
    pub(super) fn names<'node>(
        &mut self,
        field: &str,
        node: &'node Node,
        expected: &str,
    ) -> Option<&'node [Entry]> {
        match &node.data {
            Data::Table(entries) => Some(entries),
            Data::Null => Some(&[]),
            _ => {
                self.must_be(field, expected, node);
                None
            }
        }
    }

    pub(super) fn list<'node>(
        &mut self,
        field: &str,
        node: &'node Node,
        expected: &str,
    ) -> Option<&'node [Node]> {
        match &node.data {
            Data::List(items) => Some(items),
            Data::Null => Some(&[]),
            _ => {
                self.must_be(field, expected, node);
                None
            }
        }
    }

    /// Returns a text, which may be empty. NUL is refused, because no argument, name or variable can contain
    /// it.
    pub(super) fn text<'node>(&mut self, field: &str, node: &'node Node) -> Option<&'node str> {
        match &node.data {
            Data::Text(text) if text.contains('\0') => {
                self.must_be(field, "without NUL characters", node);
                None
            }
            Data::Text(text) => Some(text),
            _ => {
                self.must_be(field, "a text (use quotes)", node);
                None
            }
        }
    }

    pub(super) fn flag(&mut self, field: &str, node: &Node) -> Option<bool> {
        match node.data {
            Data::Bool(flag) => Some(flag),
            _ => {
                self.must_be(field, "true or false", node);
                None
            }
        }
    }

    pub(super) fn whole(&mut self, field: &str, node: &Node) -> Option<i64> {
        let found = match &node.data {
            Data::Number(number) => number.as_i64(),
            _ => None,
        };
        if found.is_none() {
            self.must_be(field, "a whole number", node);
        }
        found
    }

    pub(super) fn number(&mut self, field: &str, node: &Node) -> Option<f64> {
        let found = match &node.data {
            Data::Number(number) => number.as_f64(),
            _ => None,
        };
        if found.is_none() {
            self.must_be(field, "a number", node);
        }
        found
    }

    pub(super) fn choice<T: Copy>(&mut self, field: &str, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let found = match &node.data {
            Data::Text(text) => choices.iter().find(|(name, _)| name == text),
            _ => None,
        };
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.must_be(field, &format!("one of {}", names.join(", ")), node);
        }
        found.map(|(_, value)| *value)
    }
}

/// Returns the path of a key below a field.
pub(super) fn join(field: &str, key: &str) -> String {
    let key = key.escape_debug();
    if field.is_empty() {
        key.to_string()
    } else {
        format!("{field}.{key}")
    }
}

/// Returns the name that was probably intended.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Misspelled names are never longer than this, and comparison takes quadratic time.
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let limit = (name.chars().count() / 3).clamp(1, 4);
    known
        .map(|known| (strsim::damerau_levenshtein(&plain(name), &plain(known)), known))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
