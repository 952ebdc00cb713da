//! Parameters: constraints on a value, described to the model in advance and checked as a whole afterwards.

use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use windlass_core::text::shorten;

/// Maximum memory of a compiled pattern.
const PATTERN_MEMORY: usize = 1 << 20;
/// Maximum number of characters of a value in a message.
const SHOWN: usize = 60;
/// Largest whole number that every JSON reader represents exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A parameter as declared.
#[derive(Debug, Serialize)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) kind: Kind,
    pub(super) optional: bool,
    pub(super) allow_leading_dash: bool,
    #[serde(skip)]
    pub(super) line: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Text {
        choices: Option<Vec<String>>,
        pattern: Option<Pattern>,
        /// Maximum number of characters.
        max_length: Option<usize>,
    },
    Integer(Bounds<i64>),
    Number(Bounds<f64>),
    Boolean,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Bounds<T> {
    pub(super) min: Option<T>,
    pub(super) max: Option<T>,
}

impl Parameter {
    pub(super) fn is_boolean(&self) -> bool {
        matches!(self.kind, Kind::Boolean)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Integer(_) | Kind::Number(_))
    }

    /// Returns true if the author listed all possible values.
    pub(super) fn is_closed(&self) -> bool {
        !matches!(self.kind, Kind::Text { choices: None, .. })
    }

    /// Returns true if a value may be an empty text.
    pub(super) fn may_be_empty(&self) -> bool {
        match &self.kind {
            Kind::Text { choices, .. } => choices
                .as_ref()
                .is_none_or(|all| all.iter().any(String::is_empty)),
            Kind::Integer(_) | Kind::Number(_) | Kind::Boolean => false,
        }
    }

    /// Returns true if the author allowed a leading dash, or wrote the values.
    pub(super) fn may_start_with_dash(&self) -> bool {
        let is_chosen = matches!(self.kind, Kind::Text { choices: Some(_), .. });
        self.allow_leading_dash || is_chosen
    }

    /// Checks a value and returns the text that fills templates.
    ///
    /// # Errors
    /// A message that says what is expected.
    pub(super) fn check(&self, value: &Value) -> Result<String, String> {
        match &self.kind {
            Kind::Text {
                choices,
                pattern,
                max_length,
            } => {
                let Value::String(text) = value else {
                    return Err(format!("must be a string, not {}", shown_json(value)));
                };
                check_text(text, choices.as_deref(), pattern.as_ref(), *max_length)?;
                Ok(text.clone())
            }
            Kind::Integer(bounds) => {
                let number = whole(value)
                    .ok_or_else(|| format!("must be a whole number, not {}", shown_json(value)))?;
                bounds.check(number, value)?;
                Ok(number.to_string())
            }
            Kind::Number(bounds) => match value {
                Value::Number(number) => {
                    let inexact = || format!("must be a number, not {number}");
                    bounds.check(number.as_f64().ok_or_else(inexact)?, value)?;
                    Ok(number.to_string())
                }
                other => Err(format!("must be a number, not {}", shown_json(other))),
            },
            Kind::Boolean => match value {
                Value::Bool(flag) => Ok(flag.to_string()),
                other => Err(format!("must be true or false, not {}", shown_json(other))),
            },
        }
    }

    /// Returns the JSON schema for the model.
    pub(super) fn schema(&self) -> Value {
        let mut schema = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema.insert(key.to_owned(), value);
            }
        };
        match &self.kind {
            Kind::Text {
                choices,
                pattern,
                max_length,
            } => {
                set("type", Some(json!("string")));
                set("description", self.description.clone().map(Value::String));
                set("enum", choices.as_ref().map(|choices| json!(choices)));
                set("pattern", pattern.as_ref().map(|pattern| json!(pattern.whole())));
                set("maxLength", max_length.map(|length| json!(length)));
            }
            Kind::Integer(bounds) => {
                set("type", Some(json!("integer")));
                set("description", self.description.clone().map(Value::String));
                set("minimum", bounds.min.map(|bound| json!(bound)));
                set("maximum", bounds.max.map(|bound| json!(bound)));
            }
            Kind::Number(bounds) => {
                set("type", Some(json!("number")));
                set("description", self.description.clone().map(Value::String));
                set("minimum", bounds.min.map(|bound| json!(bound)));
                set("maximum", bounds.max.map(|bound| json!(bound)));
            }
            Kind::Boolean => {
                set("type", Some(json!("boolean")));
                set("description", self.description.clone().map(Value::String));
            }
        }
        Value::Object(schema)
    }
}

fn check_text(
    text: &str,
    choices: Option<&[String]>,
    pattern: Option<&Pattern>,
    max_length: Option<usize>,
) -> Result<(), String> {
    if text.contains('\0') {
        return Err("must not contain a NUL character".to_owned());
    }
    if let Some(choices) = choices
        && !choices.iter().any(|choice| choice == text)
    {
        return Err(format!(
            "must be one of {}, not {}",
            choices.join(", "),
            shown(text)
        ));
    }
    if let Some(limit) = max_length
        && let length = text.chars().count()
        && length > limit
    {
        return Err(format!("must have at most {limit} characters, not {length}"));
    }
    match pattern {
        Some(pattern) if !pattern.regex.is_match(text) => Err(format!(
            "must match `{}` as a whole, not {}",
            pattern.source,
            shown(text)
        )),
        _ => Ok(()),
    }
}

/// Returns a whole number, also if it was written like `5.0`.
fn whole(value: &Value) -> Option<i64> {
    let exact = |number: f64| number.fract() == 0.0 && number.abs() < EXACT;
    // The range was checked, so nothing is lost.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "checked to be a whole number in range"
    )]
    let convert = |number: f64| exact(number).then_some(number as i64);
    value.as_i64().or_else(|| match value {
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(convert),
        _ => None,
    })
}

impl<T: PartialOrd + Copy + std::fmt::Display> Bounds<T> {
    fn check(&self, number: T, value: &Value) -> Result<(), String> {
        let is_low = self.min.is_some_and(|min| number < min);
        let is_high = self.max.is_some_and(|max| number > max);
        if !is_low && !is_high {
            return Ok(());
        }
        let expected = match (self.min, self.max) {
            (Some(min), Some(max)) => format!("from {min} to {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => return Ok(()),
        };
        Err(format!("must be {expected}, not {value}"))
    }

    pub(super) fn are_crossed(&self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if min > max)
    }
}

/// A pattern that a whole value must match. The engine takes linear time for any pattern and any value.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    regex: Regex,
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A message that says what is wrong with the pattern.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let compile = |pattern: &str| {
            RegexBuilder::new(pattern)
                .size_limit(PATTERN_MEMORY)
                .dfa_size_limit(PATTERN_MEMORY)
                .build()
                .map_err(|error| reason(&error))
        };
        // First on its own: `a)|(b` is not a valid pattern, but would become one between our parentheses.
        compile(source)?;
        Ok(Self {
            regex: compile(&format!(r"\A(?:{source})\z"))?,
            source: source.to_owned(),
        })
    }

    /// Returns the pattern for engines that search anywhere in a value.
    fn whole(&self) -> String {
        let source = &self.source;
        // `^a|b$` has both anchors but does not match as a whole.
        if source.starts_with('^') && source.ends_with('$') && !source.contains(['|', '\\']) {
            source.clone()
        } else {
            format!("^(?:{source})$")
        }
    }
}

/// Returns the engine's last line, which names the problem; the lines before it are an illustration.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim().strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Returns a value for messages, quoted and without control characters.
pub(super) fn shown(text: &str) -> String {
    match shorten(text, SHOWN) {
        (whole, 0) => format!("`{}`", whole.escape_debug()),
        (start, _) => format!("`{}…`", start.escape_debug()),
    }
}

/// Returns a value of any type for messages.
fn shown_json(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string {}", shown(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "parameter_tests.rs"]
mod tests;
