//! Finds lists in places where a tool takes an object.

use serde_json::Value;

/// Returns the place of the first value that is a list although the schema describes an object. Serde would
/// read such a list field by field, and run a call that the model did not mean.
pub(super) fn misplaced_list(value: &Value, schema: &Value) -> Option<String> {
    let is_object = |schema: &Value| {
        let kind = &schema["type"];
        let allows = |name: &str| {
            kind == name
                || kind
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
        };
        (allows("object") || schema.get("properties").is_some()) && !allows("array")
    };
    match value {
        Value::Array(_) if is_object(schema) => Some(String::new()),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| Some(format!("[{index}]{}", misplaced_list(item, schema)?)))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let schema = schema.get("properties")?.get(name)?;
            Some(format!(".{name}{}", misplaced_list(field, schema)?))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// TOOL-1: a list in place of an object is found at any depth, and nothing else is.
    #[test]
    fn lists_are_found() {
        let item = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {
            "items": {"type": "array", "items": item},
            "maybe": {"type": ["object", "null"], "properties": {}},
            "any": {},
        }});
        let cases = [
            (json!([1]), Some("")),
            (json!({"items": [{"text": "a"}, ["a"]]}), Some(".items[1]")),
            (json!({"maybe": []}), Some(".maybe")),
            (
                json!({"items": [{"text": ["a"]}], "maybe": null, "any": [[]], "other": []}),
                None,
            ),
        ];
        for (value, place) in cases {
            assert_eq!(misplaced_list(&value, &schema).as_deref(), place, "{value}");
        }
    }
}
