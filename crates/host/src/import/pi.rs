//! Sessions of pi: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`.
//!
//! The first line is a header. Entries form a tree by `parentId`, and the last one is the current position;
//! files of the first version have no ids and are read in order.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use windlass_api::Part;
use windlass_core::clock::Timestamp;

use super::conversation::{Content, Conversation, block, call, parts, thought, time};
use super::lines::Lines;

pub(super) fn read(lines: Lines) -> Conversation {
    let mut conversation = Conversation::new("pi", lines.damaged);
    let values: Vec<&Value> = lines.values.iter().map(|(_, value)| value).collect();
    let (path, undone) = path(&values);
    for _ in 0..undone {
        conversation.skip("undone");
    }
    let compaction = path.iter().rposition(|entry| entry["type"] == "compaction");
    if let Some(place) = compaction.and_then(|place| path.get(place)) {
        let summary = parts(&place["summary"]);
        conversation.user(summary, time(&place["timestamp"]));
    }
    let first = compaction.map(|place| {
        let kept = path
            .get(place)
            .map_or(&Value::Null, |entry| &entry["firstKeptEntryId"]);
        let first = path
            .iter()
            .position(|entry| entry["id"] == *kept && kept.is_string());
        first.unwrap_or(place + 1)
    });
    for (index, entry) in path.iter().enumerate() {
        let is_summarized = first.is_some_and(|first| index < first);
        take(&mut conversation, entry, is_summarized);
    }
    conversation
}

/// Returns the entries that lead to the last one, and the number of the others.
fn path<'a>(lines: &[&'a Value]) -> (Vec<&'a Value>, usize) {
    let has_ids = lines
        .iter()
        .any(|line| line["type"] == "message" && line["id"].is_string());
    if !has_ids {
        return (lines.to_vec(), 0);
    }
    let is_entry = |line: &Value| line["type"] != "session" && line["id"].is_string();
    let by_id: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_entry(line))
        .filter_map(|(index, line)| Some((line["id"].as_str()?, index)))
        .collect();
    let mut kept = HashSet::new();
    let mut next = lines.iter().rposition(|line| is_entry(line));
    while let Some(index) = next {
        // Stop at a cycle.
        if !kept.insert(index) {
            break;
        }
        let parent = lines.get(index).and_then(|line| line["parentId"].as_str());
        next = parent.and_then(|parent| by_id.get(parent)).copied();
    }
    let is_kept = |(index, line): &(usize, &&Value)| kept.contains(index) || !is_entry(line);
    let path: Vec<&Value> = lines
        .iter()
        .enumerate()
        .filter(is_kept)
        .map(|(_, line)| *line)
        .collect();
    let undone = lines.len() - path.len();
    (path, undone)
}

fn take(conversation: &mut Conversation, entry: &Value, is_summarized: bool) {
    let at = time(&entry["timestamp"]);
    match entry["type"].as_str().unwrap_or("?") {
        "session" => conversation.place = entry["cwd"].as_str().map(str::to_owned),
        "session_info" => conversation.title = entry["name"].as_str().map(str::to_owned),
        "model_change" => conversation.model = entry["modelId"].as_str().map(str::to_owned),
        "compaction" => {}
        "message" | "custom_message" | "branch_summary" if is_summarized => conversation.skip("summarized"),
        "message" => message(conversation, &entry["message"], at),
        "custom_message" => conversation.user(parts(&entry["content"]), at),
        "branch_summary" => conversation.user(parts(&entry["summary"]), at),
        other => conversation.skip(other),
    }
}

fn message(conversation: &mut Conversation, message: &Value, at: Timestamp) {
    let text = |key: &str| message[key].as_str().unwrap_or_default();
    match text("role") {
        "user" => conversation.user(parts(&message["content"]), at),
        "assistant" => {
            if let Some(model) = message["model"].as_str() {
                conversation.model = Some(model.to_owned());
            }
            let blocks = message["content"].as_array().into_iter().flatten();
            // Each line is a separate reply.
            let reply = format!("{}-{}", at.0, message["timestamp"]);
            conversation.assistant(blocks.filter_map(part).collect(), at, Some(&reply));
        }
        "toolResult" => {
            let is_error = message["isError"] == true;
            conversation.result(text("toolCallId"), Content::of(&message["content"]), is_error);
        }
        "bashExecution" if message["excludeFromContext"] != true => {
            let said = format!("Ran `{}`\n```\n{}\n```", text("command"), text("output"));
            conversation.user(vec![Part::text(said)], at);
        }
        other => conversation.skip(if other.is_empty() { "?" } else { other }),
    }
}

fn part(value: &Value) -> Option<Part> {
    match value["type"].as_str()? {
        "thinking" => thought(value["thinking"].as_str()?),
        "toolCall" => {
            let input = match &value["arguments"] {
                Value::Null => json!({}),
                input => input.clone(),
            };
            Some(call(
                value["id"].as_str()?,
                value["name"].as_str()?,
                input.to_string(),
            ))
        }
        _ => block(value),
    }
}
