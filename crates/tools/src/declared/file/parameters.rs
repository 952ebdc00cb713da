//! Parses the parameters of a tool.

use std::collections::BTreeMap;

use windlass_yaml::{Data, Node, TableEntry};

use super::super::check;
use super::super::parameter::{Bounds, Kind, Parameter, Pattern};
use super::super::reader::{Reader, join};

const COMMON_KEYS: &[&str] = &["type", "description", "optional"];
const TEXT_KEYS: &[&str] = &["enum", "pattern", "max_length", "maxLength", "allow_leading_dash"];
const NUMBER_KEYS: &[&str] = &["min", "max", "allow_leading_dash"];

#[derive(Clone, Copy)]
enum Type {
    Text,
    Integer,
    Number,
    Boolean,
}

const TYPES: &[(&str, Type)] = &[
    ("string", Type::Text),
    ("integer", Type::Integer),
    ("number", Type::Number),
    ("boolean", Type::Boolean),
];

impl Reader<'_> {
    pub(super) fn parameters(&mut self, field: &str, node: &Node) -> Vec<Parameter> {
        let entries = self
            .names(field, node, "a table of parameters")
            .unwrap_or_default();
        let mut parameters = Vec::new();
        for entry in entries {
            let field = join(field, &entry.key);
            if !check::is_parameter_name(&entry.key) {
                let message =
                    format!("`{field}` must be a name of letters, digits and _, not starting with a digit");
                self.wrong(entry.line, message);
            }
            // An invalid parameter still counts as declared, so that its uses are not reported as mistakes.
            parameters.push(self.parameter(&field, entry).unwrap_or_else(|| Parameter {
                name: entry.key.clone(),
                description: None,
                kind: Kind::Boolean,
                optional: false,
                allow_leading_dash: false,
                line: entry.line,
            }));
        }
        parameters
    }

    fn parameter(&mut self, field: &str, entry: &TableEntry) -> Option<Parameter> {
        let node = &entry.value;
        let all: Vec<&str> = [COMMON_KEYS, TEXT_KEYS, &["min", "max"]].concat();
        let declared = match &node.data {
            Data::Table(entries) => entries.iter().find(|entry| entry.key == "type"),
            _ => {
                self.table(field, node, &all);
                return None;
            }
        };
        let Some(declared) = declared else {
            let message =
                format!("`{field}.type` is missing; it must be one of string, integer, number, boolean");
            self.wrong(entry.line, message);
            return None;
        };
        let kind = self.choice(&join(field, "type"), &declared.value, TYPES)?;
        let keys = match kind {
            Type::Text => [COMMON_KEYS, TEXT_KEYS].concat(),
            Type::Integer | Type::Number => [COMMON_KEYS, NUMBER_KEYS].concat(),
            Type::Boolean => COMMON_KEYS.to_vec(),
        };
        let entries: BTreeMap<&str, &Node> = self
            .table(field, node, &keys)?
            .into_iter()
            .map(|entry| (entry.key.as_str(), &entry.value))
            .collect();
        let mut flag = |key| {
            let node = entries.get(key)?;
            self.flag(&join(field, key), node)
        };
        let optional = flag("optional").unwrap_or_default();
        let allow_leading_dash = flag("allow_leading_dash").unwrap_or_default();
        let description = entries
            .get("description")
            .and_then(|node| self.text(&join(field, "description"), node));
        Some(Parameter {
            name: entry.key.clone(),
            description: description.map(str::to_owned),
            kind: self.kind(field, kind, &entries)?,
            optional,
            allow_leading_dash,
            line: entry.line,
        })
    }

    fn kind(&mut self, field: &str, kind: Type, entries: &BTreeMap<&str, &Node>) -> Option<Kind> {
        let bound = |key: &str| Some((join(field, key), *entries.get(key)?));
        match kind {
            Type::Boolean => Some(Kind::Boolean),
            Type::Text => self.text_kind(field, entries),
            Type::Integer => {
                let mut bound = |key| bound(key).and_then(|(field, node)| self.whole(&field, node));
                let bounds = Bounds {
                    min: bound("min"),
                    max: bound("max"),
                };
                self.bounds(field, entries, bounds.are_crossed());
                Some(Kind::Integer(bounds))
            }
            Type::Number => {
                let mut bound = |key| bound(key).and_then(|(field, node)| self.number(&field, node));
                let bounds = Bounds {
                    min: bound("min"),
                    max: bound("max"),
                };
                self.bounds(field, entries, bounds.are_crossed());
                Some(Kind::Number(bounds))
            }
        }
    }

    fn bounds(&mut self, field: &str, entries: &BTreeMap<&str, &Node>, are_crossed: bool) {
        if let (true, Some(max)) = (are_crossed, entries.get("max")) {
            self.must_be(&join(field, "max"), "at least `min`", max);
        }
    }

    fn text_kind(&mut self, field: &str, entries: &BTreeMap<&str, &Node>) -> Option<Kind> {
        let choices = entries
            .get("enum")
            .and_then(|node| self.choices(&join(field, "enum"), node));
        let pattern = entries.get("pattern").and_then(|node| {
            let field = join(field, "pattern");
            let source = self.text(&field, node)?;
            let pattern = Pattern::new(source);
            if let Err(why) = &pattern {
                let message = format!("`{field}` must be a regular expression: {why}");
                self.wrong(node.line, message);
            }
            pattern.ok()
        });
        // The specification of the format uses the spelling of JSON Schema.
        let length = ["max_length", "maxLength"]
            .into_iter()
            .find_map(|key| Some((join(field, key), *entries.get(key)?)));
        let max_length = length.and_then(|(field, node)| {
            let length = self.whole(&field, node)?;
            let length = usize::try_from(length).ok().filter(|length| *length > 0);
            if length.is_none() {
                self.must_be(&field, "a number above 0", node);
            }
            length
        });
        Some(Kind::Text {
            choices,
            pattern,
            max_length,
        })
    }

    fn choices(&mut self, field: &str, node: &Node) -> Option<Vec<String>> {
        let items = self.list(field, node, "a list of texts")?;
        if items.is_empty() {
            self.must_be(field, "a list of at least one text", node);
        }
        let mut choices = Vec::new();
        for (index, item) in items.iter().enumerate() {
            choices.extend(self.text(&format!("{field}[{index}]"), item).map(str::to_owned));
        }
        Some(choices)
    }
}
