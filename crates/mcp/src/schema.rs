//! Bounds for the schemas of a server's tools.

use serde_json::{Map, Value};

/// Maximum size of a schema, in bytes.
const MAX_BYTES: usize = 32_000;
/// Maximum depth of a schema.
const MAX_DEPTH: usize = 24;
/// Maximum number of values in a schema.
const MAX_VALUES: usize = 4_000;

/// Returns the schema for the model, or the reason why the tool cannot be offered.
///
/// A reference to another document is never followed: it becomes a schema that allows anything.
pub(crate) fn bounded(schema: &Map<String, Value>) -> Result<Value, String> {
    let mut budget = MAX_VALUES;
    let mut value = Value::Object(copy(schema, 0, &mut budget)?);
    if let Value::Object(map) = &mut value {
        map.shift_remove("$schema");
        match map.get("type") {
            None => {
                map.insert("type".to_owned(), Value::String("object".to_owned()));
            }
            Some(Value::String(kind)) if kind == "object" => {}
            Some(other) => return Err(format!("its schema is of type {other}, not \"object\"")),
        }
        match map.get("properties") {
            Some(Value::Object(_)) => {}
            None => {
                map.insert("properties".to_owned(), Value::Object(Map::new()));
            }
            Some(_) => return Err("the `properties` of its schema are not an object".to_owned()),
        }
    }
    let size = value.to_string().len();
    match size > MAX_BYTES {
        true => Err(format!(
            "its schema has {size} bytes, and at most {MAX_BYTES} are allowed"
        )),
        false => Ok(value),
    }
}

fn copy(map: &Map<String, Value>, depth: usize, budget: &mut usize) -> Result<Map<String, Value>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("its schema is nested more than {MAX_DEPTH} levels deep"));
    }
    let mut out = Map::new();
    for (key, value) in map {
        *budget = budget
            .checked_sub(1)
            .ok_or_else(|| format!("its schema has more than {MAX_VALUES} parts"))?;
        if key == "$ref" && !value.as_str().is_some_and(|target| target.starts_with('#')) {
            continue;
        }
        // Identifiers change what a reference means, and none is resolved here.
        if key == "$id" || key == "$anchor" {
            continue;
        }
        out.insert(key.clone(), copy_value(value, depth + 1, budget)?);
    }
    Ok(out)
}

fn copy_value(value: &Value, depth: usize, budget: &mut usize) -> Result<Value, String> {
    match value {
        Value::Object(map) => copy(map, depth, budget).map(Value::Object),
        Value::Array(list) => {
            if depth > MAX_DEPTH {
                return Err(format!("its schema is nested more than {MAX_DEPTH} levels deep"));
            }
            let mut out = Vec::new();
            for value in list {
                *budget = budget
                    .checked_sub(1)
                    .ok_or_else(|| format!("its schema has more than {MAX_VALUES} parts"))?;
                out.push(copy_value(value, depth + 1, budget)?);
            }
            Ok(Value::Array(out))
        }
        Value::String(text) => Ok(Value::String(crate::content::plain(text, 4_000))),
        other => Ok(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value) -> Result<Value, String> {
        bounded(schema.as_object().expect("an object"))
    }

    /// MCP-4: a reference to the network is dropped, one inside the schema stays.
    #[test]
    fn no_reference_leaves_the_schema() {
        let schema = json!({ "properties": {
            "a": { "$ref": "https://example.org/schema.json" },
            "b": { "$ref": "#/$defs/b" },
        }, "$id": "http://example.org", "$defs": { "b": { "type": "string" } } });
        let text = of(&schema).expect("a schema").to_string();
        assert!(!text.contains("example.org"), "{text}");
        assert!(text.contains("#/$defs/b"), "{text}");
    }

    /// MCP-4: a schema that is too deep, too large or of another type is refused with the reason.
    #[test]
    fn schemas_are_bounded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "items": deep });
        }
        let wide: Map<String, Value> = (0..5_000).map(|n| (format!("p{n}"), json!({}))).collect();
        for (schema, reason) in [
            (deep, "levels deep"),
            (json!({ "properties": wide }), "parts"),
            (
                json!({ "description": "x".repeat(3_900), "enum": vec!["y".repeat(3_900); 10] }),
                "bytes",
            ),
            (json!({ "type": "array" }), "not \"object\""),
            (json!({ "properties": [] }), "not an object"),
        ] {
            let why = of(&schema).expect_err(reason);
            assert!(why.contains(reason), "{why}");
        }
    }
}
