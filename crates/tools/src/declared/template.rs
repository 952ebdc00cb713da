//! Arguments with templates: each stays one argument, whatever its values are.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::definition::{Definition, Group};
use super::parameter::Parameter;

/// Ends the options of a program; operands follow.
const END_OF_OPTIONS: &str = "--";

/// Values of the given parameters, by name. A parameter that was left out has no entry.
pub(super) type Values = BTreeMap<String, String>;

/// One argument.
#[derive(Debug)]
pub(super) struct Argument {
    /// Text as written.
    text: String,
    pieces: Vec<Piece>,
    /// True if the argument is a single template directly after an option. It may be the option's value, or the
    /// option may be a switch without one, so only a number may start with a dash here.
    is_option_value: bool,
    pub(super) line: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Value(String),
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl Argument {
    /// Parses an argument that follows `previous` in its list.
    pub(super) fn parse(text: &str, line: u64, previous: Option<&Self>) -> Result<Self, String> {
        let pieces = pieces(text)?;
        let is_template = matches!(pieces.as_slice(), [Piece::Value(_)]);
        Ok(Self {
            text: text.to_owned(),
            is_option_value: is_template && previous.is_some_and(Self::is_option),
            pieces,
            line,
        })
    }

    /// Returns the text as in the file.
    pub(super) fn as_written(&self) -> &str {
        &self.text
    }

    /// Returns the names of its parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(name) => Some(name.as_str()),
            Piece::Literal(_) => None,
        })
    }

    /// Returns the text if it has no templates.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the parameters whose values determine, at least in part, the name of an option: `-{{x}}`,
    /// `--no-{{x}}`. After the dash of a short option the first value decides, unless it `may_be_empty`; the
    /// name of a long option ends at its `=`.
    pub(super) fn names_option(&self, may_be_empty: impl Fn(&str) -> bool) -> Vec<&str> {
        let Some((Piece::Literal(start), rest)) = self.pieces.split_first() else {
            return Vec::new();
        };
        let is_long = start.starts_with("--") && !start.contains('=');
        let mut names = Vec::new();
        if start != "-" && !is_long {
            return names;
        }
        for piece in rest {
            match piece {
                Piece::Literal(text) if is_long && !text.contains('=') => {}
                Piece::Literal(_) => break,
                Piece::Value(name) => {
                    names.push(name.as_str());
                    if !is_long && !may_be_empty(name) {
                        break;
                    }
                }
            }
        }
        names
    }

    /// Returns true for a literal option that may take the next argument as its value.
    fn is_option(&self) -> bool {
        self.literal()
            .is_some_and(|text| text.starts_with('-') && !["-", "--"].contains(&text) && !text.contains('='))
    }

    fn is_end_of_options(&self) -> bool {
        self.literal() == Some(END_OF_OPTIONS)
    }

    fn fill(&self, values: &Values) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::Value(name) => values.get(name).cloned().unwrap_or_default(),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// Returns the parameter that makes the argument start with a dash, or with one more dash than is
    /// written.
    fn dash_from(&self, values: &Values) -> Option<&str> {
        let mut empty = None;
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) if empty.is_some() && text.starts_with('-') => return empty,
                Piece::Literal(text) if text.chars().all(|letter| letter == '-') => {}
                Piece::Literal(_) => return None,
                Piece::Value(name) => {
                    let value = values.get(name).map_or("", String::as_str);
                    if value.starts_with('-') {
                        return Some(name);
                    }
                    if !value.is_empty() {
                        return None;
                    }
                    empty = empty.or(Some(name.as_str()));
                }
            }
        }
        None
    }
}

/// Splits a text at its templates. `{{{{` and `}}}}` are escaped braces.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{{{{") {
            literal.push_str("{{");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}}}") {
            literal.push_str("}}");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{{") {
            let (name, after) = after
                .split_once("}}")
                .ok_or_else(|| "has `{{` without `}}`; write `{{{{` for literal braces".to_owned())?;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Value(name.trim().to_owned()));
            rest = after;
        } else {
            literal.push(letter);
            rest = rest.strip_prefix(letter).unwrap_or_default();
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// Returns the arguments of a call. Values must have passed their checks.
///
/// Groups follow the plain arguments in order; those that start with an option go before a `--`, because they
/// would be operands after it.
///
/// # Errors
/// The parameters whose values would be options, with the reasons.
pub(super) fn fill(definition: &Definition, values: &Values) -> Result<Vec<String>, Vec<String>> {
    let mut filled = Vec::new();
    let mut refused = Vec::new();
    let mut are_operands = false;
    for argument in sequence(definition, values) {
        let text = argument.fill(values);
        if !are_operands {
            let is_allowed = |parameter: &Parameter| {
                parameter.may_start_with_dash() || (argument.is_option_value && parameter.is_number())
            };
            let culprit = argument
                .dash_from(values)
                .filter(|name| !definition.parameter(name).is_some_and(is_allowed));
            refused.extend(culprit.map(|name| {
                let shown = super::parameter::shown(&text);
                format!("`{name}`: must not make {shown} of an argument, which the program would treat as an option")
            }));
        }
        are_operands |= argument.is_end_of_options();
        filled.push(text);
    }
    if refused.is_empty() {
        Ok(filled)
    } else {
        Err(refused)
    }
}

fn sequence<'a>(definition: &'a Definition, values: &Values) -> Vec<&'a Argument> {
    let args = &definition.args;
    let end = args.iter().position(Argument::is_end_of_options);
    let (before, after) = args.split_at(end.unwrap_or(args.len()));
    let begins_with_option = |group: &&Group| {
        let first = group.args.first();
        first.is_some_and(|first| first.text.starts_with('-') && !first.is_end_of_options())
    };
    let active: Vec<&Group> = definition
        .optional_args
        .iter()
        .filter(|group| is_active(group, definition, values))
        .collect();
    let has_end = |group: &&Group| group.args.iter().any(Argument::is_end_of_options);
    let ends = end.is_some() || active.iter().any(has_end);
    let (options, operands): (Vec<&Group>, Vec<&Group>) = active
        .into_iter()
        .partition(|group| ends && begins_with_option(group));
    let of = |groups: Vec<&'a Group>| groups.into_iter().flat_map(|group| &group.args);
    before
        .iter()
        .chain(of(options))
        .chain(after)
        .chain(of(operands))
        .collect()
}

fn is_active(group: &Group, definition: &Definition, values: &Values) -> bool {
    let holds = |name: &String| {
        let is_flag = definition.parameter(name).is_some_and(|one| one.is_boolean());
        values.get(name).is_some_and(|value| !is_flag || value == "true")
    };
    let is_given = |name: &str| values.contains_key(name);
    group.when.iter().all(holds) && group.args.iter().flat_map(Argument::parameters).all(is_given)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
