//! Builds a minimal value that fits a JSON schema.

use serde_json::{Map, Value, json};

/// Maximum depth. Deeper schemas are cut off, because they may refer to themselves.
const DEEPEST: usize = 16;

pub(super) fn instance(schema: &Value) -> Value {
    build(schema, schema, 0)
}

fn build(root: &Value, schema: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(target) = schema["$ref"].as_str() {
        let pointer = target.trim_start_matches('#');
        return match root.pointer(pointer) {
            Some(found) => build(root, found, depth + 1),
            None => Value::Null,
        };
    }
    for key in ["const", "default"] {
        if let Some(value) = schema.get(key) {
            return value.clone();
        }
    }
    if let Some(value) = schema["enum"].as_array().and_then(|values| values.first()) {
        return value.clone();
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(choice) = schema[key].as_array().and_then(|choices| choices.first()) {
            return build(root, choice, depth + 1);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("string") => string(schema),
        Some("integer" | "number") => number(schema),
        Some("boolean") => json!(false),
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0).min(64);
            (0..count)
                .map(|_| build(root, &schema["items"], depth + 1))
                .collect()
        }
        Some("null") => Value::Null,
        _ => object(root, schema, depth),
    }
}

fn object(root: &Value, schema: &Value, depth: usize) -> Value {
    let required = schema["required"].as_array();
    let wanted = |name: &str| required.is_none_or(|names| names.iter().any(|required| required == name));
    let properties = schema["properties"].as_object();
    let members: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| wanted(name))
        .map(|(name, inner)| (name.clone(), build(root, inner, depth + 1)))
        .collect();
    Value::Object(members)
}

fn string(schema: &Value) -> Value {
    let text = match schema["format"].as_str() {
        Some("date") => "2025-01-01",
        Some("date-time") => "2025-01-01T00:00:00Z",
        Some("email") => "someone@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "simulated",
    };
    let least = schema["minLength"].as_u64().unwrap_or(0).min(4096);
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    let padding = (text.len() as u64..least).map(|_| 'x');
    let full: String = text.chars().chain(padding).collect();
    let cut = usize::try_from(most).unwrap_or(usize::MAX);
    Value::String(full.chars().take(cut).collect())
}

fn number(schema: &Value) -> Value {
    match (&schema["minimum"], schema["exclusiveMinimum"].as_i64()) {
        (_, Some(least)) => json!(least + 1),
        (least @ Value::Number(_), None) => least.clone(),
        _ => match schema["maximum"].as_i64() {
            Some(most) if most < 0 => json!(most),
            _ => json!(0),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::instance;

    /// PROV-5: required members only, with values that fit.
    #[test]
    fn a_smallest_instance_fits() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 12},
                "age": {"type": "integer", "minimum": 3},
                "kind": {"enum": ["a", "b"]},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1},
                "extra": {"type": "boolean"},
            },
            "required": ["name", "age", "kind", "tags"],
            "$defs": {"tag": {"type": "string", "maxLength": 3}},
        });
        let expected = json!({"name": "simulatedxxx", "age": 3, "kind": "a", "tags": ["sim"]});
        assert_eq!(instance(&schema), expected);
    }

    /// PROV-5: a schema that refers to itself ends.
    #[test]
    fn a_recursive_schema_ends() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert!(instance(&schema).is_object());
    }
}
