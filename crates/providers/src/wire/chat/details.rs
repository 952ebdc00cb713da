//! Reasoning details: blocks of a vendor's own form that go back with the message.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use windlass_core::json::lenient;

use crate::wire::json::{Fields, ObjectWriter};

/// The details of one reply. They arrive token by token; pieces of one block are joined again.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Detail>);

#[derive(Debug)]
struct Detail {
    /// The detail as it came, if it came in one piece.
    whole: Option<Box<RawValue>>,
    fields: Fields,
    /// Texts that came in pieces, by field.
    joined: BTreeMap<String, String>,
}

impl Details {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, raw: Box<RawValue>) {
        let fields = Fields::read(&raw);
        match self.0.last_mut().filter(|last| last.continues_with(&fields)) {
            Some(last) => last.join(fields),
            None => self.0.push(Detail {
                whole: Some(raw),
                fields,
                joined: BTreeMap::new(),
            }),
        }
    }

    pub(super) fn items(&self) -> Vec<Box<RawValue>> {
        self.0.iter().filter_map(Detail::item).collect()
    }
}

impl Detail {
    fn continues_with(&self, next: &Fields) -> bool {
        let same = |name: &str| self.fields.get(name).map(RawValue::get) == next.get(name).map(RawValue::get);
        same("type") && same("index")
    }

    fn join(&mut self, mut next: Fields) {
        self.whole = None;
        for name in ["text", "summary", "data"] {
            let Some(Value::String(piece)) = next.get(name).map(|piece| lenient(piece.get())) else {
                continue;
            };
            let Some(Value::String(start)) = self.fields.get(name).map(|start| lenient(start.get())) else {
                continue;
            };
            next.take(name);
            self.joined
                .entry(name.to_owned())
                .or_insert(start)
                .push_str(&piece);
        }
        next.drop_null();
        self.fields.extend(next);
    }

    fn item(&self) -> Option<Box<RawValue>> {
        if let Some(whole) = &self.whole {
            return Some(whole.clone());
        }
        let texts: Vec<&str> = self.joined.keys().map(String::as_str).collect();
        let object = ObjectWriter::new().fields(&self.fields, &texts);
        let joined = self.joined.iter();
        joined
            .fold(object, |object, (name, text)| object.field(name, text))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    /// MSG-4, MSG-7: a detail in one piece keeps every byte, and pieces of one block are joined.
    #[test]
    fn details_keep_their_form() {
        let whole = r#"{"type":"reasoning.encrypted", "n":1.10,"data":"\u00e9\ud83d","deep":1e400}"#;
        let mut details = Details::default();
        details.add(raw(whole));
        for piece in ["a", "b\\n", "c"] {
            let format = format!(
                r#"{{"type":"reasoning.text","index":1,"text":"{piece}","signature":null,"n":1.50}}"#
            );
            details.add(raw(&format));
        }
        details.add(raw(r#"{"type":"reasoning.text","index":1,"signature":"s"}"#));
        let items = details.items();
        let texts: Vec<&str> = items.iter().map(|item| item.get()).collect();
        let joined = r#"{"type":"reasoning.text","index":1,"signature":"s","n":1.50,"text":"ab\nc"}"#;
        assert_eq!(texts, [whole, joined]);
    }
}
