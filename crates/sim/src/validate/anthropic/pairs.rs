//! Checks that every call has one result in the next turn, and every result has its call in the previous one.

use std::collections::HashSet;

use serde_json::Value;

use crate::validate::fields::{Check, fail};

/// A block with its position. Plain string content has no block but still has a position.
struct Placed<'v> {
    message: usize,
    index: usize,
    block: Option<&'v Value>,
}

/// Adjacent messages of one role, which the service merges.
struct Turn<'v> {
    assistant: bool,
    blocks: Vec<Placed<'v>>,
}

pub(super) fn check(messages: &[Value]) -> Check {
    let turns = merge(messages);
    unique_ids(&turns)?;
    let mut open: Vec<&str> = Vec::new();
    for turn in &turns {
        if turn.assistant {
            open = calls(turn).map(|(_, id)| id).collect();
        } else {
            answered(turn, &open)?;
            open.clear();
        }
    }
    match open.first() {
        Some(id) => unanswered(id),
        None => Ok(()),
    }
}

fn merge(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (message, value) in messages.iter().enumerate() {
        let assistant = value["role"] == "assistant";
        if turns.last().is_none_or(|turn| turn.assistant != assistant) {
            turns.push(Turn {
                assistant,
                blocks: Vec::new(),
            });
        }
        let Some(turn) = turns.last_mut() else {
            continue;
        };
        match value["content"].as_array() {
            Some(blocks) => turn
                .blocks
                .extend(blocks.iter().enumerate().map(|(index, block)| Placed {
                    message,
                    index,
                    block: Some(block),
                })),
            None => turn.blocks.push(Placed {
                message,
                index: 0,
                block: None,
            }),
        }
    }
    turns
}

fn unique_ids(turns: &[Turn<'_>]) -> Check {
    let mut ids = HashSet::new();
    for (placed, id) in turns.iter().flat_map(calls) {
        if !ids.insert(id) {
            return fail(
                format!("messages.{}.content.{}.id", placed.message, placed.index),
                format!("tool_use ids must be unique, `{id}` is used twice"),
            );
        }
    }
    Ok(())
}

fn calls<'t, 'v>(turn: &'t Turn<'v>) -> impl Iterator<Item = (&'t Placed<'v>, &'v str)> {
    turn.blocks.iter().filter_map(|placed| {
        let block = placed.block?;
        (block["type"] == "tool_use").then(|| Some((placed, block["id"].as_str()?)))?
    })
}

fn answered(turn: &Turn<'_>, open: &[&str]) -> Check {
    let mut done: Vec<&str> = Vec::new();
    let mut other_seen = false;
    for placed in &turn.blocks {
        let result = placed.block.filter(|block| block["type"] == "tool_result");
        let Some(result) = result else {
            other_seen = true;
            continue;
        };
        let path = format!("messages.{}.content.{}", placed.message, placed.index);
        let id = result["tool_use_id"].as_str().unwrap_or_default();
        if !open.contains(&id) {
            return fail(
                path,
                format!(
                    "unexpected tool_use_id `{id}`: a tool_result needs its tool_use in the previous message"
                ),
            );
        }
        if done.contains(&id) {
            return fail(path, format!("`{id}` has more than one tool_result"));
        }
        if other_seen {
            return fail(path, "tool_result blocks must come first in the message");
        }
        done.push(id);
    }
    match open.iter().find(|id| !done.contains(id)) {
        Some(id) => unanswered(id),
        None => Ok(()),
    }
}

fn unanswered(id: &str) -> Check {
    fail(
        "messages",
        format!("tool_use `{id}` has no tool_result in the next message"),
    )
}
