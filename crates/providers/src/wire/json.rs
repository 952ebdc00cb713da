//! Small helpers for writing JSON piece by piece.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass_core::json::{lenient, repaired};
use windlass_core::tool::parse_strict;

/// Appends `value` as JSON.
pub(crate) fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Our values have string keys and serialize without errors, and a `Vec` accepts every byte.
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// Appends `value` as JSON, after a comma if it is not the first.
pub(crate) fn push<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    if !out.is_empty() {
        out.push(b',');
    }
    append(out, value);
}

/// Appends `"name":value,`.
pub(crate) fn field<T: Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) {
    append(out, name);
    out.push(b':');
    append(out, value);
    out.push(b',');
}

/// Appends one of the provider's own items, repaired where a parser would refuse it. Anything else of it is
/// sent as it came.
pub(crate) fn append_item(out: &mut Vec<u8>, item: &RawValue) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(repaired(item.get()).as_bytes());
}

/// Reads a value of a side matter, such as token counts, or nothing if it has another form: it must not cost the
/// reply around it.
pub(crate) fn if_readable<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// Returns the arguments of a call as text; some servers send the object itself.
pub(crate) fn argument_text(raw: &str) -> String {
    match raw.starts_with('"').then(|| lenient(raw)) {
        Some(Value::String(text)) => text,
        _ => raw.to_owned(),
    }
}

/// Reads a token count. Compatible servers also send fractions and numbers in quotes; anything that cannot be a
/// count is none.
pub(crate) fn token_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    const LARGEST: f64 = 1e12;
    let raw = <&RawValue>::deserialize(deserializer)?;
    let number: Option<f64> = raw.get().trim_matches('"').trim().parse().ok();
    let number = number.filter(|number| (0.0..=LARGEST).contains(number));
    // Exact: the number is whole, not negative, and below 2^53.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(number.map(|number| number.ceil() as u64))
}

/// Returns true if `text` is one complete JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Returns true if `text` is one complete JSON object that can be read without doubt.
pub(crate) fn is_sound_object(text: &str) -> bool {
    matches!(parse_strict(text), Ok(Value::Object(_)))
}

/// Returns a call's arguments as the text of a JSON object: unchanged if the model wrote an object that can be
/// read without doubt, otherwise the raw text under `_raw`.
pub(crate) fn object_text(input: &str) -> Cow<'_, str> {
    if input.trim().is_empty() {
        Cow::Borrowed("{}")
    } else if is_sound_object(input) {
        Cow::Borrowed(input.trim())
    } else {
        let mut wrapped = b"{\"_raw\":".to_vec();
        append(&mut wrapped, input);
        wrapped.push(b'}');
        Cow::Owned(String::from_utf8_lossy(&wrapped).into_owned())
    }
}

/// Returns a tool's name in a form that every wire accepts. Models make up names, and one that breaks the
/// pattern would make every later request invalid.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    const LONGEST: usize = 64;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() {
        Cow::Borrowed("unnamed")
    } else if name.len() <= LONGEST && name.chars().all(fits) {
        Cow::Borrowed(name)
    } else {
        let letters = name.chars().map(|letter| if fits(letter) { letter } else { '_' });
        Cow::Owned(letters.take(LONGEST).collect())
    }
}

/// Writes a JSON object with fields whose text must stay unchanged.
pub(crate) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self(b"{".to_vec())
    }

    pub(crate) fn field<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Self {
        field(&mut self.0, name, value);
        self
    }

    /// Adds all fields except those in `except`.
    pub(crate) fn fields(mut self, fields: &Fields, except: &[&str]) -> Self {
        for (name, value) in fields
            .0
            .iter()
            .filter(|(name, _)| !except.contains(&name.as_str()))
        {
            field(&mut self.0, name, value);
        }
        self
    }

    /// Adds a field whose value is already JSON text.
    pub(crate) fn raw(mut self, name: &str, json: &str) -> Self {
        append(&mut self.0, name);
        self.0.push(b':');
        self.0.extend_from_slice(json.as_bytes());
        self.0.push(b',');
        self
    }

    /// Returns the object, or `None` if a raw field was not JSON.
    pub(crate) fn finish(mut self) -> Option<Box<RawValue>> {
        if self.0.last() == Some(&b',') {
            self.0.pop();
        }
        self.0.push(b'}');
        String::from_utf8(self.0)
            .ok()
            .and_then(|text| RawValue::from_string(text).ok())
    }
}

/// Fields of a JSON object, in order and with their values as they came.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads an object; anything else has no fields.
    pub(crate) fn read(raw: &RawValue) -> Self {
        let read = serde_json::from_str(raw.get());
        read.or_else(|_| serde_json::from_str(&repaired(raw.get())))
            .unwrap_or_default()
    }

    /// Returns a field. Of several with one name the last counts, as in every parser.
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        let mut fields = self.0.iter().rev();
        fields.find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Returns a string field; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        match self.get(name).map(|value| lenient(value.get())) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        }
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let place = self.0.iter().rposition(|(known, _)| known == name)?;
        let (_, value) = self.0.remove(place);
        Some(value)
    }

    /// Removes the fields that are null.
    pub(crate) fn drop_null(&mut self) {
        self.0.retain(|(_, value)| value.get() != "null");
    }

    /// Adds the fields of another object. They replace those of the same name.
    pub(crate) fn extend(&mut self, other: Self) {
        for (name, value) in other.0 {
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.0.push((name, value)),
            }
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Borrows a string field of an object; empty if there is none.
pub(crate) fn text<'a>(map: &'a Map<String, Value>, name: &str) -> &'a str {
    map.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LOOP-16: a name the model made up does not make requests invalid.
    #[test]
    fn names_fit_the_pattern() {
        let long = "x".repeat(65);
        for (name, expected) in [
            ("read_file", "read_file"),
            ("functions.bash", "functions_bash"),
            ("", "unnamed"),
            ("ä b", "__b"),
        ] {
            assert_eq!(tool_name(name), expected);
        }
        assert_eq!(tool_name(&long).len(), 64);
    }

    /// LOOP-7: arguments that are not a JSON object travel under `_raw`, all others unchanged.
    #[test]
    fn arguments_become_an_object() {
        let cases = [
            ("", "{}"),
            ("  ", "{}"),
            ("{\"a\": 1.0e5}", "{\"a\": 1.0e5}"),
            ("{\"a\":", "{\"_raw\":\"{\\\"a\\\":\"}"),
            ("[1]", "{\"_raw\":\"[1]\"}"),
            ("null", "{\"_raw\":\"null\"}"),
            ("{} x", "{\"_raw\":\"{} x\"}"),
        ];
        for (input, expected) in cases {
            assert_eq!(object_text(input), expected);
        }
    }
}
