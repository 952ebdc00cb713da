//! Sessions of Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`.
//!
//! Lines form a tree by `parentUuid`, which still contains undone messages. A reply is written as one line
//! per block, and the results of parallel calls have different lines of it as parents.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use windlass_api::Part;

use super::conversation::{Content, Conversation, block, call, parts, thought, time};
use super::lines::Lines;

pub(super) fn read(lines: Lines) -> Conversation {
    let mut conversation = Conversation::new("claude-code", lines.damaged);
    let values: Vec<&Value> = lines.values.iter().map(|(_, value)| value).collect();
    let kept = kept(&values);
    for (index, line) in values.iter().enumerate() {
        let kind = line["type"].as_str().unwrap_or("?");
        match kind {
            "summary" => conversation.title = line["summary"].as_str().map(str::to_owned),
            "custom-title" => conversation.title = line["customTitle"].as_str().map(str::to_owned),
            "ai-title" if conversation.title.is_none() => {
                conversation.title = line["aiTitle"].as_str().map(str::to_owned);
            }
            "user" | "assistant" if is_said(line) => {
                if !kept.contains(&index) {
                    let why = if line["isSidechain"] == true {
                        "sub-agent's"
                    } else {
                        "undone"
                    };
                    conversation.skip(why);
                    continue;
                }
                if let Some(place) = line["cwd"].as_str() {
                    conversation.place.get_or_insert_with(|| place.to_owned());
                }
                match kind {
                    "user" => user(&mut conversation, line),
                    _ => assistant(&mut conversation, line),
                }
            }
            _ => conversation.skip(kind),
        }
    }
    conversation
}

/// Returns true if the line is part of the conversation, and not a remark of the program.
fn is_said(line: &Value) -> bool {
    line["isMeta"] != true && line["isApiErrorMessage"] != true && line["message"].is_object()
}

/// Returns the lines that lead to the last one, with the results and blocks that belong to them.
fn kept(lines: &[&Value]) -> HashSet<usize> {
    let mut kept = chain(lines);
    let ids = |kept: &HashSet<usize>, of: &dyn Fn(&Value) -> Vec<String>| -> HashSet<String> {
        let on = kept.iter().filter_map(|index| lines.get(*index));
        on.flat_map(|line| of(line)).collect()
    };
    let replies = ids(&kept, &|line| {
        line["message"]["id"]
            .as_str()
            .map(str::to_owned)
            .into_iter()
            .collect()
    });
    let is_of_reply = |line: &Value| {
        line["message"]["id"]
            .as_str()
            .is_some_and(|id| replies.contains(id))
    };
    kept.extend(places(lines, is_of_reply));
    let calls = ids(&kept, &|line| {
        let calls = blocks(line).filter(|block| block["type"] == "tool_use");
        calls
            .filter_map(|block| block["id"].as_str().map(str::to_owned))
            .collect()
    });
    let is_answer = |line: &Value| {
        let mut ids = blocks(line).filter_map(|block| block["tool_use_id"].as_str());
        line["type"] == "user" && ids.any(|id| calls.contains(id))
    };
    kept.extend(places(lines, is_answer));
    kept
}

fn places(lines: &[&Value], fits: impl Fn(&Value) -> bool) -> Vec<usize> {
    let fitting = lines.iter().enumerate().filter(|(_, line)| fits(line));
    fitting.map(|(index, _)| index).collect()
}

/// Follows the parents from the last line to the first.
fn chain(lines: &[&Value]) -> HashSet<usize> {
    let by_id: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((line["uuid"].as_str()?, index)))
        .collect();
    let is_main = |line: &Value| {
        let kind = line["type"].as_str().unwrap_or_default();
        ["user", "assistant"].contains(&kind) && line["isSidechain"] != true && line["uuid"].is_string()
    };
    let mut chain = HashSet::new();
    let mut next = lines.iter().rposition(|line| is_main(line));
    while let Some(index) = next {
        // Stop at a cycle.
        if !chain.insert(index) {
            break;
        }
        let parent = lines.get(index).and_then(|line| line["parentUuid"].as_str());
        next = parent.and_then(|parent| by_id.get(parent)).copied();
    }
    chain
}

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

fn user(conversation: &mut Conversation, line: &Value) {
    for block in blocks(line).filter(|block| block["type"] == "tool_result") {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        conversation.result(id, Content::of(&block["content"]), block["is_error"] == true);
    }
    let parts = parts(&line["message"]["content"]);
    conversation.user(parts, time(&line["timestamp"]));
}

fn assistant(conversation: &mut Conversation, line: &Value) {
    let message = &line["message"];
    if let Some(model) = message["model"].as_str() {
        conversation.model = Some(model.to_owned());
    }
    let said: Vec<Part> = match message["content"].as_array() {
        Some(blocks) => blocks.iter().filter_map(part).collect(),
        None => parts(&message["content"]),
    };
    conversation.assistant(said, time(&line["timestamp"]), message["id"].as_str());
}

fn part(value: &Value) -> Option<Part> {
    match value["type"].as_str()? {
        "thinking" => thought(value["thinking"].as_str()?),
        "tool_use" => Some(call(
            value["id"].as_str()?,
            value["name"].as_str()?,
            value["input"].to_string(),
        )),
        _ => block(value),
    }
}
