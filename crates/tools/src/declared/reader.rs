//! Typed access to a YAML tree that collects mistakes instead of stopping at the first.

use windlass_yaml::{Data, Node, TableEntry, key_hint};

use super::problem::DeclarationProblem;

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
    ) -> Option<Vec<&'node TableEntry>> {
        let entries = self.typed(field, node, node.table(keys))?;
        let is_known = |entry: &&TableEntry| keys.contains(&entry.key.as_str());
        let (known, unknown): (Vec<_>, Vec<_>) = entries.iter().partition(is_known);
        for entry in unknown {
            let path = join(field, &entry.key);
            let hint = key_hint(&entry.key, keys);
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
    ) -> Option<&'node [TableEntry]> {
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
        let text = node.text().and_then(|text| match text.contains('\0') {
            true => Err("without NUL characters".to_owned()),
            false => Ok(text),
        });
        self.typed(field, node, text)
    }

    pub(super) fn flag(&mut self, field: &str, node: &Node) -> Option<bool> {
        self.typed(field, node, node.flag())
    }

    pub(super) fn whole(&mut self, field: &str, node: &Node) -> Option<i64> {
        self.typed(field, node, node.whole())
    }

    pub(super) fn number(&mut self, field: &str, node: &Node) -> Option<f64> {
        self.typed(field, node, node.number())
    }

    pub(super) fn choice<T: Copy>(&mut self, field: &str, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        self.typed(field, node, node.choice(choices))
    }

    /// Returns the value, or records what was expected instead of it.
    fn typed<T>(&mut self, field: &str, node: &Node, value: Result<T, String>) -> Option<T> {
        value
            .map_err(|expected| self.must_be(field, &expected, node))
            .ok()
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
