//! JSON that was written by others: models, providers, tools, exported files.
//!
//! Syntactically valid JSON can still be unreadable for most programs: half of a surrogate pair, a number
//! beyond the range of a double, a thousand nested lists. The record keeps such text as it came
//! ([`RawValue`] accepts all of it); whatever has to be understood by another
//! program goes through [`repaired`] first.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum depth of a value that is parsed or sent. Parsers commonly stop at 128 levels, and a value is
/// stored and sent inside others.
pub const MAX_DEPTH: usize = 110;

/// Largest number that fits a double, as JSON.
const LARGEST: &str = "1.7976931348623157e308";

/// Numbers of fewer bytes than this without an exponent fit a double.
const LONG_NUMBER: usize = 300;

/// Returns JSON that every parser accepts, unchanged if it already is.
///
/// Half of a surrogate pair becomes U+FFFD, a number out of range becomes the nearest number in range, and a
/// value nested deeper than [`MAX_DEPTH`] becomes a string that contains it. `text` must be syntactically
/// valid; any other text is returned in a form that is no more valid than before.
pub fn repaired(text: &str) -> Cow<'_, str> {
    let mut repair = Repair::new(text);
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = repair.byte(at) {
        at = match byte {
            b'"' => repair.string(at),
            b'-' | b'0'..=b'9' => repair.number(at),
            b'[' | b'{' if depth == MAX_DEPTH => repair.nested(at),
            b'[' | b'{' => {
                depth += 1;
                at + 1
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                at + 1
            }
            _ => at + 1,
        };
    }
    repair.finish()
}

/// Returns the value with everything below [`MAX_DEPTH`] replaced by strings that contain it, so that it can
/// be read again after it was stored.
pub fn bounded(value: Value) -> Value {
    bounded_below(value, MAX_DEPTH)
}

fn bounded_below(value: Value, levels: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::String(value.to_string()),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| bounded_below(item, levels - 1));
            Value::Array(items.collect())
        }
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, field)| (name, bounded_below(field, levels - 1)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// Replaces the strings for which `change` returns another text. Everything else is kept as it is written.
/// `text` must be syntactically valid JSON.
pub fn map_strings(text: &str, change: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let mut repair = Repair::new(text);
    let mut at = 0;
    while let Some(byte) = repair.byte(at) {
        let start = at;
        at += 1;
        if byte != b'"' {
            continue;
        }
        at = repair.string_end(at);
        if let Value::String(decoded) = lenient(repair.slice(start, at))
            && let Some(changed) = change(&decoded)
        {
            repair.replace(start, at, &Value::String(changed).to_string());
        }
    }
    repair.finish()
}

/// Parses a value; one that cannot be parsed as it is gets repaired first.
pub fn lenient(text: &str) -> Value {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&repaired(text)))
        .unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Deserializes an optional value with [`lenient`].
///
/// # Errors
/// When the value is not JSON.
pub fn lenient_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.map(|raw| lenient(raw.get())))
}

/// A text, and its repaired copy as far as it was read.
struct Repair<'a> {
    text: &'a str,
    out: String,
    /// Everything before this position was copied or replaced.
    copied: usize,
}

impl<'a> Repair<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            out: String::new(),
            copied: 0,
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn replace(&mut self, from: usize, to: usize, with: &str) {
        self.out.push_str(self.slice(self.copied, from));
        self.out.push_str(with);
        self.copied = to;
    }

    /// Passes a string and returns the position after it.
    fn string(&mut self, start: usize) -> usize {
        let mut at = start + 1;
        while let Some(byte) = self.byte(at) {
            at = match byte {
                b'"' => return at + 1,
                b'\\' if self.byte(at + 1) == Some(b'u') => match self.unit(at) {
                    Some(0xD800..=0xDBFF) if matches!(self.unit(at + 6), Some(0xDC00..=0xDFFF)) => at + 12,
                    Some(0xD800..=0xDFFF) => {
                        self.replace(at, at + 6, "\\ufffd");
                        at + 6
                    }
                    _ => at + 2,
                },
                b'\\' => at + 2,
                _ => at + 1,
            };
        }
        at
    }

    /// Returns the UTF-16 unit of the escape at a position.
    fn unit(&self, at: usize) -> Option<u16> {
        let digits = self.slice(at, at + 6).strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    }

    /// Passes a number and returns the position after it.
    fn number(&mut self, start: usize) -> usize {
        let mut end = start;
        let mut has_exponent = false;
        while let Some(byte @ (b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) = self.byte(end) {
            has_exponent |= matches!(byte, b'e' | b'E');
            end += 1;
        }
        if has_exponent || end - start >= LONG_NUMBER {
            match self.slice(start, end).parse::<f64>() {
                Ok(number) if number == f64::INFINITY => self.replace(start, end, LARGEST),
                Ok(number) if number == f64::NEG_INFINITY => {
                    self.replace(start, end, &format!("-{LARGEST}"));
                }
                _ => {}
            }
        }
        end
    }

    /// Replaces the list or object at a position by its text, and returns the position after it.
    fn nested(&mut self, start: usize) -> usize {
        let mut depth = 0_usize;
        let mut at = start;
        while let Some(byte) = self.byte(at) {
            at += 1;
            match byte {
                b'"' => at = self.string_end(at),
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        let inner = Value::String(self.slice(start, at).to_owned()).to_string();
        self.replace(start, at, &inner);
        at
    }

    /// Returns the position after the string whose content begins at a position.
    fn string_end(&self, mut at: usize) -> usize {
        while let Some(byte) = self.byte(at) {
            at += match byte {
                b'"' => return at + 1,
                b'\\' => 2,
                _ => 1,
            };
        }
        at
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(self.slice(self.copied, self.text.len()));
        Cow::Owned(self.out)
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
