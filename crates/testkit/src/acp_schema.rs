//! The published schema of the Agent Client Protocol, version 1.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::must;

const SCHEMA: &str = include_str!("../data/acp-schema.json");

fn schema() -> &'static Value {
    static PARSED: OnceLock<Value> = OnceLock::new();
    PARSED.get_or_init(|| must(serde_json::from_str(SCHEMA), "read the schema"))
}

/// Returns what is wrong with a message of an agent. `method` is the method that a response answers.
pub(crate) fn complaints(message: &Value, method: Option<&str>) -> Vec<String> {
    if message["jsonrpc"] != "2.0" {
        return vec!["`jsonrpc` is not \"2.0\"".to_owned()];
    }
    let (side, ending, method, content) = match (message["method"].as_str(), method) {
        (Some("$/cancel_request"), _) => ("protocol", "Notification", "$/cancel_request", &message["params"]),
        (Some(called), _) if message.get("id").is_some() => ("client", "Request", called, &message["params"]),
        (Some(called), _) => ("client", "Notification", called, &message["params"]),
        (None, _) if message.get("error").is_some() => return error_complaints(message),
        (None, Some(method)) if method.starts_with('_') => return Vec::new(),
        (None, Some(method)) => ("agent", "Response", method, &message["result"]),
        (None, None) => return vec!["it answers nothing".to_owned()],
    };
    let Some(name) = definition(side, ending, method) else {
        return vec![format!("{ending} `{method}` is not part of the protocol")];
    };
    let mut found = invalid(name, content);
    found.extend(unknown_keys(name, content));
    if name == "SessionNotification" {
        let kind = content["update"]["sessionUpdate"].as_str().unwrap_or_default();
        found.extend(unknown_update_keys(kind, &content["update"]));
    }
    found
}

fn error_complaints(message: &Value) -> Vec<String> {
    let error = &message["error"];
    let mut found = invalid("Error", error);
    if message.get("result").is_some() {
        found.push("it has a result and an error".to_owned());
    }
    if error["message"].as_str().is_none_or(|text| text.contains('\n')) {
        found.push("its message is not one line".to_owned());
    }
    found
}

/// Returns the name of the definition of a method's request, response or notification.
fn definition(side: &str, ending: &str, method: &str) -> Option<&'static str> {
    let all = schema()["$defs"].as_object()?;
    all.iter()
        .find(|(name, part)| name.ends_with(ending) && part["x-method"] == method && part["x-side"] == side)
        .map(|(name, _)| name.as_str())
}

fn invalid(name: &str, content: &Value) -> Vec<String> {
    let wanted = json!({ "$ref": format!("#/$defs/{name}"), "$defs": schema()["$defs"] });
    let validator = must(jsonschema::validator_for(&wanted), "compile the schema");
    validator
        .iter_errors(content)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// SCHEMA-002: custom keys belong into `_meta`.
fn unknown_keys(name: &str, content: &Value) -> Vec<String> {
    let known = keys(&schema()["$defs"][name]);
    unknown(&known, content)
}

fn unknown_update_keys(kind: &str, update: &Value) -> Vec<String> {
    let variants = &schema()["$defs"]["SessionUpdate"];
    let all = ["oneOf", "anyOf"]
        .iter()
        .filter_map(|key| variants[*key].as_array());
    let variant = all
        .flatten()
        .find(|variant| variant["properties"]["sessionUpdate"]["const"] == kind);
    match variant {
        Some(variant) => unknown(&keys(variant), update),
        None => vec![format!("there is no update `{kind}`")],
    }
}

fn unknown(known: &BTreeSet<String>, content: &Value) -> Vec<String> {
    let keys = content.as_object().into_iter().flat_map(|map| map.keys());
    keys.filter(|key| !known.contains(*key))
        .map(|key| format!("`{key}` is not a key of the protocol"))
        .collect()
}

/// Returns the keys of an object type, with those that it includes.
fn keys(part: &Value) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = part["properties"]
        .as_object()
        .into_iter()
        .flat_map(|map| map.keys().cloned())
        .collect();
    if let Some(name) = part["$ref"]
        .as_str()
        .and_then(|path| path.strip_prefix("#/$defs/"))
    {
        found.extend(keys(&schema()["$defs"][name]));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for inner in part[key].as_array().into_iter().flatten() {
            found.extend(keys(inner));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check can fail: a wrong type, a wrong key, and a method of the other side are found.
    #[test]
    fn wrong_messages_are_found() {
        let message =
            |params: Value| json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let update = json!({ "sessionUpdate": "plan", "entries": [] });
        let good = message(json!({ "sessionId": "s", "update": update }));
        assert_eq!(complaints(&good, None), [""; 0]);
        let kind = message(json!({ "sessionId": "s", "update": { "sessionUpdate": "odd" } }));
        assert!(!complaints(&kind, None).is_empty());
        let extra = json!({ "sessionUpdate": "plan", "entries": [], "extra": 1 });
        let extra = message(json!({ "sessionId": "s", "update": extra }));
        assert_eq!(complaints(&extra, None), ["`extra` is not a key of the protocol"]);
        let other = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {} });
        assert_eq!(
            complaints(&other, None),
            ["Request `session/prompt` is not part of the protocol"]
        );
        let result = json!({ "jsonrpc": "2.0", "id": 1, "result": { "stopReason": "tired" } });
        assert!(!complaints(&result, Some("session/prompt")).is_empty());
    }
}
