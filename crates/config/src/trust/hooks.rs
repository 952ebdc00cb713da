//! Hooks in a project's files, as far as trust needs to know them.

use std::path::Path;

use serde_json::{Map, Value};

/// Keys of a settings file that concern hooks.
const KEYS: [&str; 2] = ["hooks", "disableAllHooks"];

/// Returns the part of a settings file that concerns hooks; `None` if there is none. An invalid file is returned as it
/// is, so that its user hears of it.
pub(super) fn of_settings(bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(Value::Object(map)) = serde_json::from_slice::<Value>(bytes) else {
        return Some(bytes.to_vec());
    };
    map.get("hooks").filter(|hooks| !hooks.is_null())?;
    let part: Map<String, Value> = map
        .into_iter()
        .filter(|(name, _)| KEYS.contains(&name.as_str()))
        .collect();
    serde_json::to_vec_pretty(&Value::Object(part)).ok()
}

/// Returns the words of all commands, with the variable for the project's folder filled in.
pub(super) fn words(bytes: &[u8], root: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        collect(&value, &mut texts);
    }
    let root = root.display().to_string();
    let mut words = Vec::new();
    for text in texts {
        let text = text
            .replace("${CLAUDE_PROJECT_DIR}", &root)
            .replace("$CLAUDE_PROJECT_DIR", &root);
        // With quotes removed, and with a path that contains spaces as a whole.
        words.push(text.clone());
        let ends = |letter: char| letter.is_whitespace() || ";&|<>()".contains(letter);
        words.extend(text.replace(['"', '\''], "").split(ends).map(str::to_owned));
        words.extend(text.split(['"', '\'']).map(str::to_owned));
    }
    words.retain(|word| !word.is_empty() && word.len() < 4_096);
    words
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(text) if name == "command" => texts.push(text.clone()),
                    Value::Array(list) if name == "args" => {
                        texts.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    other => collect(other, texts),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, texts)),
        _ => {}
    }
}
