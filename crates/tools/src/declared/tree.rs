//! A YAML document as a tree whose nodes know their line.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use windlass_core::text::shorten;

/// Maximum number of characters of a value in a message.
const SHOWN: usize = 60;

/// A node and the line it starts on.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) data: Data,
}

#[derive(Debug)]
pub(super) enum Data {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// One key of a table.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u64,
    pub(super) value: Node,
}

impl Node {
    /// Parses a document. The parser limits nesting and aliases.
    pub(super) fn read(text: &str) -> Result<Self, serde_saphyr::Error> {
        // Otherwise `y`, `no` and `on` would be booleans, which is unexpected for a text.
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        serde_saphyr::from_str_with_options(text, options)
    }

    /// Describes the node, for messages.
    pub(super) fn describe(&self) -> String {
        match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Bool(flag) => format!("`{flag}`"),
            Data::Number(number) => format!("`{number}`"),
            Data::Text(text) => match shorten(text, SHOWN) {
                (whole, 0) => format!("`{}`", whole.escape_debug()),
                (start, _) => format!("`{}…`", start.escape_debug()),
            },
            Data::List(_) => "a list".to_owned(),
            Data::Table(_) => "a table".to_owned(),
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
            entries.push(Entry {
                line: key.referenced.line(),
                key: key.value,
                value: access.next_value()?,
            });
        }
        Ok(Data::Table(entries))
    }
}
