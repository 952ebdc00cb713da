//! Parses a file into definitions, or into a list of all its mistakes.

mod parameters;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use windlass_core::tool::Category;
use windlass_yaml::{Data, Node, TableEntry};

use super::Source;
use super::check;
use super::definition::{Definition, Group, Variable, VariableValue};
use super::problem::{DeclarationError, DeclarationProblem};
use super::reader::{Reader, join};
use super::template::Argument;

const FILE_KEYS: &[&str] = &["tools"];
const TOOL_KEYS: &[&str] = &[
    "name",
    "description",
    "category",
    "cmd",
    "args",
    "optional_args",
    "parameters",
    "env",
    "timeout",
    "network",
];
const GROUP_KEYS: &[&str] = &["when", "args"];
const CATEGORIES: &[(&str, Category)] = &[
    ("read", Category::Read),
    ("write", Category::Write),
    ("admin", Category::Admin),
];
/// Maximum run time of a tool in seconds.
const MAX_TIMEOUT: i64 = 1800;

/// Parses the text of a file.
pub(super) fn read(text: &str, file: &str, source: Source) -> Result<Vec<Arc<Definition>>, DeclarationError> {
    let root = Node::read(text).map_err(|error| {
        let problem = DeclarationProblem {
            file: file.to_owned(),
            line: Some(error.line),
            message: error.to_string(),
        };
        DeclarationError::new(vec![problem])
    })?;
    let mut reader = Reader::new(file);
    let definitions = reader.tools(&root, source);
    let problems = reader.into_problems();
    if problems.is_empty() {
        Ok(definitions.into_iter().map(Arc::new).collect())
    } else {
        Err(DeclarationError::new(problems))
    }
}

impl Reader<'_> {
    fn tools(&mut self, root: &Node, source: Source) -> Vec<Definition> {
        if matches!(root.data, Data::Null) {
            return Vec::new();
        }
        let mut definitions = Vec::new();
        for entry in self.table("", root, FILE_KEYS).unwrap_or_default() {
            let items = self.list("tools", &entry.value, "a list of tools");
            for (index, node) in items.unwrap_or_default().iter().enumerate() {
                definitions.extend(self.tool(node, index, source));
            }
        }
        check::names(self, &definitions);
        definitions
    }

    fn tool(&mut self, node: &Node, index: usize, source: Source) -> Option<Definition> {
        // Identified by its position if it has no name.
        let name = match &node.data {
            Data::Table(entries) => entries.iter().find(|entry| entry.key == "name"),
            _ => None,
        };
        let field = match name.map(|entry| &entry.value.data) {
            Some(Data::Text(name)) if check::is_tool_name(name) => name.clone(),
            _ => format!("tools[{index}]"),
        };
        let entries: BTreeMap<&str, &TableEntry> = self
            .table(&field, node, TOOL_KEYS)?
            .into_iter()
            .map(|entry| (entry.key.as_str(), entry))
            .collect();
        let name = self.required(&field, node, &entries, "name");
        let description = self.required(&field, node, &entries, "description");
        let category = self.category(&field, node, &entries);
        let cmd = self.required(&field, node, &entries, "cmd");
        let below = |key: &str| join(&field, key);
        let value = |key: &str| entries.get(key).map(|entry| &entry.value);
        let definition = Definition {
            name: name.unwrap_or_default(),
            source,
            description: description.unwrap_or_default(),
            category: category.unwrap_or(Category::Admin),
            cmd: cmd.unwrap_or_default(),
            args: value("args").map_or_else(Vec::new, |node| self.arguments(&below("args"), node)),
            optional_args: value("optional_args")
                .map_or_else(Vec::new, |node| self.groups(&below("optional_args"), node)),
            parameters: value("parameters")
                .map_or_else(Vec::new, |node| self.parameters(&below("parameters"), node)),
            env: value("env").map_or_else(Vec::new, |node| self.env(&below("env"), node)),
            timeout: value("timeout").and_then(|node| self.timeout(&below("timeout"), node)),
            network: value("network").is_some_and(|node| self.flag(&below("network"), node) == Some(true)),
            line: node.line,
        };
        check::definition(self, &field, &definition, &|key| {
            entries.get(key).map_or(node.line, |entry| entry.line)
        });
        Some(definition)
    }

    /// Returns a text that must be present.
    fn required(
        &mut self,
        field: &str,
        node: &Node,
        entries: &BTreeMap<&str, &TableEntry>,
        key: &str,
    ) -> Option<String> {
        let field = join(field, key);
        let Some(entry) = entries.get(key) else {
            self.wrong(node.line, format!("`{field}` is missing; it must be a text"));
            return None;
        };
        let text = self.text(&field, &entry.value)?;
        if text.trim().is_empty() {
            self.must_be(&field, "a text that is not empty", &entry.value);
            return None;
        }
        Some(text.to_owned())
    }

    fn category(
        &mut self,
        field: &str,
        node: &Node,
        entries: &BTreeMap<&str, &TableEntry>,
    ) -> Option<Category> {
        let field = join(field, "category");
        let Some(entry) = entries.get("category") else {
            let message = format!("`{field}` is missing; it must be one of read, write, admin");
            self.wrong(node.line, message);
            return None;
        };
        self.choice(&field, &entry.value, CATEGORIES)
    }

    fn arguments(&mut self, field: &str, node: &Node) -> Vec<Argument> {
        let mut arguments: Vec<Argument> = Vec::new();
        let items = self.list(field, node, "a list of arguments").unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let field = format!("{field}[{index}]");
            let Some(text) = self.text(&field, item) else {
                continue;
            };
            match Argument::parse(text, item.line, arguments.last()) {
                Ok(argument) => arguments.push(argument),
                Err(why) => self.wrong(item.line, format!("`{field}` {why}")),
            }
        }
        arguments
    }

    /// Parses a list of groups, or a table from a parameter to the arguments that it adds.
    fn groups(&mut self, field: &str, node: &Node) -> Vec<Group> {
        if let Data::Table(entries) = &node.data {
            let group = |entry: &TableEntry| Group {
                when: vec![entry.key.clone()],
                args: self.arguments(&join(field, &entry.key), &entry.value),
                line: entry.line,
            };
            return entries.iter().map(group).collect();
        }
        let items = self.list(field, node, "a list of groups with when, args");
        let items = items.unwrap_or_default().iter().enumerate();
        items
            .filter_map(|(index, node)| self.group(&format!("{field}[{index}]"), node))
            .collect()
    }

    fn group(&mut self, field: &str, node: &Node) -> Option<Group> {
        let mut group = Group {
            when: Vec::new(),
            args: Vec::new(),
            line: node.line,
        };
        for entry in self.table(field, node, GROUP_KEYS)? {
            let field = join(field, &entry.key);
            if entry.key == "args" {
                group.args = self.arguments(&field, &entry.value);
                continue;
            }
            if let Data::Text(name) = &entry.value.data {
                group.when.push(name.clone());
                continue;
            }
            let names = self.list(&field, &entry.value, "a parameter or a list of parameters");
            for name in names.unwrap_or_default() {
                group.when.extend(self.text(&field, name).map(str::to_owned));
            }
        }
        Some(group)
    }

    fn env(&mut self, field: &str, node: &Node) -> Vec<Variable> {
        let entries = self
            .names(field, node, "a table of variables")
            .unwrap_or_default();
        let mut variables = Vec::new();
        for entry in entries {
            let field = join(field, &entry.key);
            if let Some(why) = check::variable_name(&entry.key) {
                self.wrong(entry.line, format!("`{field}` {why}"));
            }
            let Some(text) = self.text(&field, &entry.value) else {
                continue;
            };
            let host = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            let value = match host {
                Some(name) if check::is_parameter_name(name) => VariableValue::Host(name.to_owned()),
                _ if text.contains("${") => {
                    self.must_be(
                        &field,
                        "a plain text, or `${NAME}` and nothing else",
                        &entry.value,
                    );
                    continue;
                }
                _ => VariableValue::Text(text.to_owned()),
            };
            variables.push(Variable {
                name: entry.key.clone(),
                value,
            });
        }
        variables.sort_by(|left, right| left.name.cmp(&right.name));
        variables
    }

    fn timeout(&mut self, field: &str, node: &Node) -> Option<u64> {
        let seconds = self.whole(field, node)?;
        if !(1..=MAX_TIMEOUT).contains(&seconds) {
            self.must_be(field, &format!("seconds from 1 to {MAX_TIMEOUT}"), node);
        }
        u64::try_from(seconds).ok()
    }
}

/// Returns the name of the program without its folder.
pub(super) fn program_name(cmd: &str) -> &str {
    let name = Path::new(cmd).file_name().and_then(|name| name.to_str());
    name.unwrap_or(cmd)
}
