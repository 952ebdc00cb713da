//! Arguments as the model wrote them: parsed strictly, never guessed.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};

use crate::json::MAX_DEPTH;

/// Parses JSON and refuses ambiguous input, such as duplicate keys and trailing text, and values nested deeper
/// than [`MAX_DEPTH`].
///
/// # Errors
/// The error describes the problem and its position.
pub fn parse_strict(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { levels: MAX_DEPTH }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Returns the arguments for an event: parsed, or `{"_raw": …}` if they are not JSON.
pub fn raw_arguments(text: &str) -> Value {
    parse_strict(if text.trim().is_empty() { "{}" } else { text }).unwrap_or_else(|_| json!({ "_raw": text }))
}

/// Parses a value of at most this many levels.
#[derive(Clone, Copy)]
struct Strict {
    levels: usize,
}

impl Strict {
    fn inner<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        levels
            .map(|levels| Self { levels })
            .ok_or_else(|| E::custom(format_args!("nested more than {MAX_DEPTH} levels deep")))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
