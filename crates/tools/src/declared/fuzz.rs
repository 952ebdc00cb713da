//! Invariants of any file and any call, for fuzzing.
//!
//! Each call is filled in twice: with its values, and with a mark in place of each value. Both must give the
//! same arguments except for the marks, which cannot be options; a value that turns an argument into an
//! option must be allowed to.

use std::sync::Arc;

use serde_json::Value;
use windlass_core::tool::AnyTool;

use super::definition::Definition;
use super::parameter::Parameter;
use super::template::{self, Values};
use super::tool::DeclaredTool;
use super::{Declarations, Source};
use crate::ToolsConfig;

/// Delimiters around the number of a parameter: characters that no input contains.
const OPEN: char = '\u{E0FE}';
const CLOSE: char = '\u{E0FF}';

/// Parses a file and fills in a call of each of its tools.
pub(crate) fn fuzz(text: &str, call: &str) {
    let declarations = match Declarations::parse(text, "tools.yaml", Source::Project) {
        Ok(declarations) => declarations,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a refusal gives a reason");
            return;
        }
    };
    let again = Declarations::parse(text, "tools.yaml", Source::Project);
    let again = again.map(|again| again.fingerprint());
    assert_eq!(
        again.ok(),
        Some(declarations.fingerprint()),
        "parsing is deterministic"
    );
    let _ = declarations.outlines();
    for definition in &declarations.definitions {
        let config = ToolsConfig::default();
        let tool = Arc::new(DeclaredTool::new(Arc::clone(definition), &config, &|_| None));
        if let Ok(Value::Object(map)) = serde_json::from_str(call)
            && let Ok(values) = tool.values(&map)
        {
            check(definition, &values);
        }
        let _ = tool.prepare(call);
    }
}

fn check(definition: &Definition, values: &Values) {
    let is_marked = |text: &String| text.contains([OPEN, CLOSE]);
    let mut written = definition
        .args
        .iter()
        .chain(definition.optional_args.iter().flat_map(|group| &group.args));
    if values.values().any(is_marked) || written.any(|argument| argument.as_written().contains([OPEN, CLOSE]))
    {
        return;
    }
    let Ok(filled) = template::fill(definition, values) else {
        return;
    };
    let marked = template::fill(definition, &marks(definition, values));
    let marked = marked.unwrap_or_default();
    assert_eq!(filled.len(), marked.len(), "each stays one argument");
    let mut before: Option<&str> = None;
    let mut are_operands = false;
    for (text, mark) in filled.iter().zip(&marked) {
        let shape = Shape::of(definition, values, mark);
        assert_eq!(*text, shape.text(), "a value stays inside its argument");
        let is_option_value = matches!(shape.0.as_slice(), [Part::Value(parameter, _)] if parameter.is_number())
            && before.is_some_and(is_option);
        if !are_operands && !is_option_value {
            shape.assert_harmless(text);
        }
        are_operands |= mark == "--";
        before = Some(mark);
    }
}

/// Returns the values with marks instead of texts. Booleans stay, because they select the groups.
fn marks(definition: &Definition, values: &Values) -> Values {
    let mark = |(index, parameter): (usize, &Parameter)| {
        let value = values.get(&parameter.name)?;
        let text = if parameter.is_boolean() {
            value.clone()
        } else {
            format!("{OPEN}{index}{CLOSE}")
        };
        Some((parameter.name.clone(), text))
    };
    definition
        .parameters
        .iter()
        .enumerate()
        .filter_map(mark)
        .collect()
}

/// Returns true for a fixed option that may take the next argument as its value.
fn is_option(mark: &str) -> bool {
    mark.starts_with('-') && !["-", "--"].contains(&mark) && !mark.contains(['=', OPEN])
}

enum Part<'a> {
    Fixed(&'a str),
    Value(&'a Parameter, &'a str),
}

/// An argument as a sequence of fixed and variable parts.
struct Shape<'a>(Vec<Part<'a>>);

impl<'a> Shape<'a> {
    fn of(definition: &'a Definition, values: &'a Values, mark: &'a str) -> Self {
        let mut parts = Vec::new();
        for piece in mark.split_inclusive(CLOSE) {
            let (fixed, number) = piece.split_once(OPEN).unwrap_or((piece, ""));
            if !fixed.is_empty() {
                parts.push(Part::Fixed(fixed));
            }
            let number = number.trim_end_matches(CLOSE).parse::<usize>();
            let parameter = number.ok().and_then(|number| definition.parameters.get(number));
            if let Some(parameter) = parameter {
                let value = values.get(&parameter.name).map_or("", String::as_str);
                parts.push(Part::Value(parameter, value));
            }
        }
        Self(parts)
    }

    fn text(&self) -> String {
        let text = |part: &Part<'a>| match part {
            Part::Fixed(text) | Part::Value(_, text) => *text,
        };
        self.0.iter().map(text).collect()
    }

    /// Asserts that no value turns the argument into an option, or selects one, without being allowed to.
    fn assert_harmless(&self, text: &str) {
        let told = |parameter: &Parameter| format!("`{}` makes the option {text:?}", parameter.name);
        match self.0.as_slice() {
            _ if !text.starts_with('-') => {}
            [Part::Fixed(start), rest @ ..] => {
                let is_long = start.starts_with("--") && !start.contains('=');
                if *start == "-" || is_long {
                    assert_chosen(rest, is_long, told);
                }
            }
            parts => {
                let makes = |part: &&Part<'_>| matches!(part, Part::Value(_, value) if !value.is_empty());
                let start = parts.iter().take_while(|part| matches!(part, Part::Value(..)));
                let culprit = start.clone().find(makes).or_else(|| start.clone().next());
                if let Some(Part::Value(parameter, _)) = culprit {
                    assert!(parameter.may_start_with_dash(), "{}", told(parameter));
                }
            }
        }
    }
}

/// Asserts that the text after the dashes of an option has a closed set of values up to the start of the
/// option's value: after `=`, or after the one letter of a short option.
fn assert_chosen(parts: &[Part<'_>], is_long: bool, told: impl Fn(&Parameter) -> String) {
    for part in parts {
        let text = match part {
            Part::Fixed(text) => text,
            Part::Value(parameter, value) => {
                let allowed =
                    parameter.may_start_with_dash() || parameter.is_closed() && !value.starts_with('-');
                assert!(allowed, "{}", told(parameter));
                value
            }
        };
        if text.contains('=') || !is_long && !text.is_empty() {
            return;
        }
    }
}
