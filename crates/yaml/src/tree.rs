//! A YAML document as a tree whose nodes know their line.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// Maximum number of characters of a value in a message.
const SHOWN: usize = 60;

/// A node and the line it starts on.
#[derive(Clone, Debug)]
pub struct Node {
    /// Line number, from 1.
    pub line: u64,
    /// The value.
    pub data: Data,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub enum Data {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`; `yes` and `on` are texts.
    Bool(bool),
    /// A finite number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Table(Vec<TableEntry>),
}

/// One key of a table.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// The key.
    pub key: String,
    /// Line of the key, from 1.
    pub line: u64,
    /// The value.
    pub value: Node,
}

/// The text is not YAML.
#[derive(Debug, thiserror::Error)]
#[error("not valid YAML: {message}")]
pub struct YamlError {
    /// Line number, from 1.
    pub line: u64,
    /// Message of the parser.
    pub message: String,
}

impl Node {
    /// Parses a document.
    ///
    /// # Errors
    /// Fails if the text is not YAML, or a number is not finite.
    pub fn read(text: &str) -> Result<Self, YamlError> {
        // Otherwise `y`, `no` and `on` would be booleans, which is unexpected for a text.
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| YamlError {
            line: error.location().map_or(1, |location| location.line()),
            // The parser's advice is for programmers.
            message: error
                .to_string()
                .replace(", set DuplicateKeyPolicy in Options if acceptable", ""),
        })
    }

    /// Describes the node, for messages.
    pub fn describe(&self) -> String {
        match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Bool(flag) => format!("`{flag}`"),
            Data::Number(number) => format!("`{number}`"),
            Data::Text(text) => match text.char_indices().nth(SHOWN) {
                None => format!("`{}`", text.escape_debug()),
                Some((end, _)) => format!("`{}…`", text.split_at(end).0.escape_debug()),
            },
            Data::List(_) => "a list".to_owned(),
            Data::Table(_) => "a table".to_owned(),
        }
    }

    /// Returns the text.
    ///
    /// # Errors
    /// Like each typed accessor below, fails with the words for what was expected.
    pub fn text(&self) -> Result<&str, String> {
        match &self.data {
            Data::Text(text) => Ok(text),
            _ => Err("a text (use quotes)".to_owned()),
        }
    }

    /// Returns the boolean.
    pub fn flag(&self) -> Result<bool, String> {
        match self.data {
            Data::Bool(flag) => Ok(flag),
            _ => Err("true or false".to_owned()),
        }
    }

    /// Returns the whole number, if it fits.
    pub fn whole<T: TryFrom<i128>>(&self) -> Result<T, String> {
        let number = match &self.data {
            Data::Number(number) => number.as_i128(),
            _ => None,
        };
        let number = number.and_then(|number| number.try_into().ok());
        number.ok_or_else(|| "a whole number".to_owned())
    }

    /// Returns the number.
    pub fn number(&self) -> Result<f64, String> {
        let number = match &self.data {
            Data::Number(number) => number.as_f64(),
            _ => None,
        };
        number.ok_or_else(|| "a number".to_owned())
    }

    /// Returns the value of the choice that the text names.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let found = match &self.data {
            Data::Text(text) => choices.iter().find(|(name, _)| name == text),
            _ => None,
        };
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            format!("one of {}", names.join(", "))
        })
    }

    /// Returns the items of a list.
    pub fn list(&self) -> Result<&[Self], String> {
        match &self.data {
            Data::List(items) => Ok(items),
            _ => Err("a list".to_owned()),
        }
    }

    /// Returns the entries of a table.
    pub fn table(&self, keys: &[&str]) -> Result<&[TableEntry], String> {
        match &self.data {
            Data::Table(entries) => Ok(entries),
            _ => Err(format!("a table with {}", keys.join(", "))),
        }
    }

    /// Returns the node as JSON.
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(flag) => Value::Bool(*flag),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Table(entries) => {
                let pairs = entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_json()));
                Value::Object(pairs.collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Data>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            data: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        Data::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Data, E> {
        serde_json::Number::from_f64(value)
            .map(Data::Number)
            .ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Data, E> {
        Ok(Data::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            entries.push(TableEntry {
                line: key.referenced.line(),
                key: key.value,
                value: access.next_value()?,
            });
        }
        Ok(Data::Table(entries))
    }
}
