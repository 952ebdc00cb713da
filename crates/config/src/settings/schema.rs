//! The table of keys as a JSON Schema, for editors.

use serde_json::{Map, Value as Json, json};

use super::keys::{self, Key, SECTIONS, is_pattern};
use super::kind::{Kind, TextRule, mode_names};
use super::value::Value;

/// CFG-1: the schema of a settings file. Loading rejects everything that the schema rejects.
pub fn schema() -> Json {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Windlass settings",
        "type": "object",
        "additionalProperties": false,
    });
    for key in keys::all() {
        let parts: Vec<&str> = key.parts().collect();
        insert(&mut root, &parts, entry(key));
    }
    for section in SECTIONS.iter().filter(|section| !section.name.is_empty()) {
        let table = section
            .name
            .split('.')
            .fold(&mut root, |table, part| child(table, part));
        if let Some(table) = table.as_object_mut() {
            table.insert("description".to_owned(), section.help.into());
        }
    }
    root
}

/// Inserts the schema of a key at its path, creating tables on the way.
fn insert(table: &mut Json, parts: &[&str], entry: Json) {
    let Some((first, rest)) = parts.split_first() else {
        return;
    };
    let next = child(table, first);
    if rest.is_empty() {
        *next = entry;
        return;
    }
    if next.is_null() {
        *next = json!({ "type": "object", "additionalProperties": false });
    }
    insert(next, rest, entry);
}

/// Returns the schema below a table for a name, or for any name.
fn child<'a>(table: &'a mut Json, part: &str) -> &'a mut Json {
    if !is_pattern(part) {
        return &mut table["properties"][part];
    }
    table["propertyNames"] = json!({ "minLength": 1 });
    let any = &mut table["additionalProperties"];
    if any.as_bool() == Some(false) {
        *any = Json::Null;
    }
    any
}

fn entry(key: &Key) -> Json {
    let mut entry = json!({ "description": format!("{} {}", key.help, key.effect) });
    if let Some(own) = entry.as_object_mut() {
        own.extend(shape(&key.kind));
        if let Some(default) = key.kind.default() {
            own.insert("default".to_owned(), json_value(&default));
        }
    }
    entry
}

fn shape(kind: &Kind) -> Map<String, Json> {
    let schema = match kind {
        Kind::Text { rule, .. } => text(*rule),
        Kind::Switch { .. } => json!({ "type": "boolean" }),
        Kind::Integer { min, max, .. } => {
            with_max(json!({ "type": "integer", "minimum": min }), max.map(Json::from))
        }
        Kind::Number { min, max, .. } => {
            with_max(json!({ "type": "number", "minimum": min }), max.map(Json::from))
        }
        Kind::Seconds { min, max, .. } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Choice { words, .. } => json!({ "type": "string", "enum": words() }),
        Kind::Network { .. } => json!({
            "oneOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }]
        }),
        Kind::Mode { .. } => json!({ "type": "string", "enum": mode_names() }),
        Kind::List { .. } => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Command { .. } => json!({
            "type": ["string", "array"],
            "items": { "type": "string" },
            "minItems": 1,
            "minLength": 1,
        }),
    };
    schema.as_object().cloned().unwrap_or_default()
}

fn text(rule: TextRule) -> Json {
    match rule {
        TextRule::Free | TextRule::Header => json!({ "type": "string" }),
        TextRule::Name => json!({ "type": "string", "minLength": 1 }),
        TextRule::Variable => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        TextRule::Socket => json!({ "type": "string", "pattern": ":[0-9]+$" }),
        TextRule::Ip => json!({ "type": "string", "pattern": "^[0-9a-fA-F:.]+$" }),
        TextRule::HeaderName => json!({ "type": "string", "pattern": "^[A-Za-z0-9-]+$" }),
        TextRule::Url => json!({ "type": "string", "pattern": "^https?://[^@/]" }),
    }
}

fn with_max(mut schema: Json, max: Option<Json>) -> Json {
    if let Some(max) = max {
        schema["maximum"] = max;
    }
    schema
}

fn json_value(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Switch(on) => (*on).into(),
        Value::Integer(integer) => (*integer).into(),
        Value::Number(number) => (*number).into(),
        Value::List(items) => items.clone().into(),
    }
}
