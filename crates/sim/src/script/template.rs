//! Templates in replies: `{{last_result}}`, `{{user}}`, `{{result:N}}` (from 1, oldest first) and
//! `{{last_quoted}}`, the last text in double quotes in the results, such as a reference for the next call.

use serde_json::Value;

use crate::seen::Seen;

/// Fills in a text. An unknown template stays unchanged, so that a mistake shows in the answer.
pub(super) fn fill(text: &str, seen: &Seen) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once("}}") else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        match value_of(name.trim(), seen) {
            Some(value) => out.push_str(value),
            None => {
                out.push_str("{{");
                out.push_str(name);
                out.push_str("}}");
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Fills in every string inside a value.
pub(super) fn fill_value(value: &Value, seen: &Seen) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, seen)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, seen)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (key.clone(), fill_value(item, seen)))
            .collect(),
        other => other.clone(),
    }
}

fn value_of<'seen>(name: &str, seen: &'seen Seen) -> Option<&'seen str> {
    match name {
        "last_result" => Some(
            seen.results()
                .next_back()
                .map_or("", |result| result.text.as_str()),
        ),
        "last_quoted" => {
            let quoted = seen.results().rev().find_map(|result| last_quoted(&result.text));
            Some(quoted.unwrap_or_default())
        }
        "user" => Some(seen.last_user_text().unwrap_or_default()),
        _ => {
            let number: usize = name.strip_prefix("result:")?.trim().parse().ok()?;
            let result = seen.results().nth(number.checked_sub(1)?);
            Some(result.map_or("", |result| result.text.as_str()))
        }
    }
}

fn last_quoted(text: &str) -> Option<&str> {
    let (before, _) = text.rsplit_once('"')?;
    Some(before.rsplit_once('"')?.1)
}
