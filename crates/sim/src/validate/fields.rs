//! Checks shared by the three wires: types, keys, names, text and image data.

use serde_json::{Map, Value};

use super::Violation;

pub(super) type Check = Result<(), Violation>;

/// The JSON type a key must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bool,
    Integer,
    Number,
    Object,
    Array,
    TextOrArray,
    TextOrObject,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Bool => value.is_boolean(),
            Self::Integer => value.is_u64() || value.is_i64(),
            Self::Number => value.is_number(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::TextOrArray => value.is_string() || value.is_array(),
            Self::TextOrObject => value.is_string() || value.is_object(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::TextOrArray => "a string or an array",
            Self::TextOrObject => "a string or an object",
        }
    }
}

/// Treatment of null for an optional key. The OpenAI services treat it as absent, the Anthropic service
/// refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Null {
    Absent,
    Refused,
}

pub(super) fn fail<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, Violation> {
    Err(Violation::new(path, message))
}

pub(super) fn object<'v>(path: &str, value: &'v Value) -> Result<&'v Map<String, Value>, Violation> {
    match value.as_object() {
        Some(map) => Ok(map),
        None => fail(path, "must be an object"),
    }
}

pub(super) fn array<'v>(path: &str, value: &'v Value) -> Result<&'v [Value], Violation> {
    match value.as_array() {
        Some(items) => Ok(items),
        None => fail(path, "must be an array"),
    }
}

/// Returns a required string that must not be empty.
pub(super) fn text<'v>(path: &str, map: &'v Map<String, Value>, key: &str) -> Result<&'v str, Violation> {
    match map.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) => fail(join(path, key), "must not be empty"),
        Some(_) => fail(join(path, key), "must be a string"),
        None => fail(join(path, key), "field required"),
    }
}

/// Refuses keys that are not in the table and values of the wrong type.
pub(super) fn keys(path: &str, map: &Map<String, Value>, known: &[(&str, Kind)], null: Null) -> Check {
    for (key, value) in map {
        let Some((_, kind)) = known.iter().find(|(name, _)| name == key) else {
            return fail(join(path, key), "extra inputs are not permitted");
        };
        let absent = value.is_null() && null == Null::Absent;
        if !absent && !kind.fits(value) {
            return fail(join(path, key), format!("must be {}", kind.name()));
        }
    }
    Ok(())
}

/// Checks that a number, if present, is in a range.
pub(super) fn range(map: &Map<String, Value>, key: &str, low: f64, high: f64) -> Check {
    match map.get(key).and_then(Value::as_f64) {
        Some(number) if number < low || number > high => {
            fail(key, format!("must be between {low} and {high}"))
        }
        _ => Ok(()),
    }
}

pub(super) fn not_blank(path: &str, text: &str) -> Check {
    if text.trim().is_empty() {
        return fail(path, "text must contain something other than white space");
    }
    Ok(())
}

/// Checks a tool name; the rule is the same on the three wires.
pub(super) fn tool_name(path: &str, name: &str) -> Check {
    if name.len() > 64 || !word(name) {
        return fail(path, "must match ^[a-zA-Z0-9_-]{1,64}$");
    }
    Ok(())
}

/// Returns true for one or more letters, digits, underscores and dashes.
pub(super) fn word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Returns true for strict base64 with padding.
pub(super) fn base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// Checks an image given as a `data:` URL or by address.
pub(super) fn image_url(path: &str, url: &str) -> Check {
    let Some(rest) = url.strip_prefix("data:") else {
        return if url.starts_with("https://") || url.starts_with("http://") {
            Ok(())
        } else {
            fail(path, "must be an http address or a data URL")
        };
    };
    match rest.split_once(";base64,") {
        Some((media_type, data)) => {
            media_type_known(path, media_type)?;
            if base64(data) {
                Ok(())
            } else {
                fail(path, "the data URL is not valid base64")
            }
        }
        None => fail(path, "a data URL must be base64"),
    }
}

pub(super) fn media_type_known(path: &str, media_type: &str) -> Check {
    const KNOWN: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    if KNOWN.contains(&media_type) {
        Ok(())
    } else {
        fail(path, format!("must be one of {}", KNOWN.join(", ")))
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Checks the parts of a message: each has one of the allowed types, and `check` knows the rules of that type.
pub(super) fn each_part(
    path: &str,
    parts: &Value,
    allowed: &[&str],
    check: impl Fn(&str, &str, &Map<String, Value>) -> Check,
) -> Check {
    let parts = array(path, parts)?;
    if parts.is_empty() {
        return fail(path, "must not be an empty array");
    }
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let part = object(&path, part)?;
        let kind = text(&path, part, "type")?;
        if !allowed.contains(&kind) {
            return fail(
                join(&path, "type"),
                format!("`{kind}` is not allowed here, only {}", allowed.join(", ")),
            );
        }
        check(&path, kind, part)?;
    }
    Ok(())
}

/// Returns the id of a call, which has a maximum length.
pub(super) fn call_id<'v>(
    path: &str,
    map: &'v Map<String, Value>,
    key: &str,
    longest: usize,
) -> Result<&'v str, Violation> {
    let id = text(path, map, key)?;
    if id.len() > longest {
        return fail(join(path, key), format!("is longer than {longest} characters"));
    }
    Ok(id)
}
