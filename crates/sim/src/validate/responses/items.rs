//! The rules for input items and their order.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::seal;
use crate::validate::fields::{
    Check, Kind, Null, array, call_id, each_part, fail, image_url, join, keys, not_blank, object, text,
    tool_name,
};
use crate::validate::tools;

/// Maximum length of a call id.
const LONGEST_ID: usize = 64;

/// State while checking the items.
#[derive(Default)]
struct Walk<'v> {
    /// Calls without an output yet.
    open: Vec<&'v str>,
    /// Set once outputs have started: no new call may come before all outputs are there.
    answering: bool,
    ids: HashSet<&'v str>,
    started: bool,
    /// Index of a reasoning item that still lacks the item it belongs to.
    reasoning: Option<usize>,
}

pub(super) fn check(items: &[Value], stored: bool) -> Check {
    if items.is_empty() {
        return fail("input", "must not be an empty array");
    }
    let mut walk = Walk::default();
    for (index, item) in items.iter().enumerate() {
        let path = format!("input[{index}]");
        let map = object(&path, item)?;
        let kind = match map.get("type") {
            None => "message",
            Some(_) => text(&path, map, "type")?,
        };
        match kind {
            "message" => message(&path, map, &mut walk)?,
            "reasoning" => {
                walk.model_speaks(&path)?;
                reasoning(&path, map, stored)?;
                walk.reasoning = Some(index);
            }
            "function_call" => call(&path, map, &mut walk, "arguments")?,
            "custom_tool_call" => call(&path, map, &mut walk, "input")?,
            "function_call_output" | "custom_tool_call_output" => output(&path, map, &mut walk)?,
            "additional_tools" => additional_tools(&path, map)?,
            other => {
                return fail(
                    join(&path, "type"),
                    format!("`{other}` items are not supported by the simulated model"),
                );
            }
        }
    }
    walk.reasoning_done()?;
    walk.all_answered("input")?;
    if walk.started {
        Ok(())
    } else {
        fail("input", "there is no user message")
    }
}

impl Walk<'_> {
    fn all_answered(&self, path: &str) -> Check {
        match self.open.first() {
            Some(id) => fail(path, format!("no tool output found for function call `{id}`")),
            None => Ok(()),
        }
    }

    fn reasoning_done(&self) -> Check {
        match self.reasoning {
            Some(index) => fail(
                format!("input[{index}]"),
                "a reasoning item was provided without its required following item",
            ),
            None => Ok(()),
        }
    }

    /// Checks that outputs are complete, if any have started, before the model's next item.
    fn model_speaks(&mut self, path: &str) -> Check {
        if !self.started {
            return fail(path, "the first message must have the role user");
        }
        if self.answering {
            self.all_answered(path)?;
            self.answering = false;
        }
        Ok(())
    }
}

fn message(path: &str, map: &Map<String, Value>, walk: &mut Walk<'_>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("role", Kind::Text),
        ("content", Kind::TextOrArray),
        ("id", Kind::Text),
        ("status", Kind::Text),
        ("phase", Kind::Text),
    ];
    keys(path, map, &known, Null::Absent)?;
    item_id(path, map, "msg")?;
    let role = text(path, map, "role")?;
    match role {
        "assistant" => {
            walk.model_speaks(path)?;
            walk.reasoning = None;
            content(path, map, &["output_text", "refusal"])
        }
        "user" | "system" | "developer" => {
            walk.reasoning_done()?;
            walk.all_answered(path)?;
            walk.answering = false;
            walk.started |= role == "user";
            content(path, map, &["input_text", "input_image", "input_file"])
        }
        _ => fail(join(path, "role"), "must be user, assistant, system or developer"),
    }
}

/// Checks an item that adds tools from here on.
fn additional_tools(path: &str, map: &Map<String, Value>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("id", Kind::Text),
        ("role", Kind::Text),
        ("tools", Kind::Array),
        ("status", Kind::Text),
    ];
    keys(path, map, &known, Null::Absent)?;
    let path = join(path, "tools");
    match map.get("tools") {
        Some(added) => tools::added(&path, array(&path, added)?),
        None => fail(path, "field required"),
    }
}

fn reasoning(path: &str, map: &Map<String, Value>, stored: bool) -> Check {
    let known = [
        ("type", Kind::Text),
        ("id", Kind::Text),
        ("summary", Kind::Array),
        ("content", Kind::Array),
        ("encrypted_content", Kind::Text),
        ("status", Kind::Text),
    ];
    keys(path, map, &known, Null::Absent)?;
    text(path, map, "id")?;
    item_id(path, map, "rs")?;
    if !map.get("summary").is_some_and(Value::is_array) {
        return fail(join(path, "summary"), "field required");
    }
    match map.get("encrypted_content").and_then(Value::as_str) {
        Some(content) if seal::unwrap(content).is_none() => fail(
            join(path, "encrypted_content"),
            "the encrypted content could not be verified",
        ),
        None if !stored => fail(
            path,
            "items are not persisted when store is false; send encrypted_content with the item",
        ),
        _ => Ok(()),
    }
}

/// Checks a call whose arguments are under `arguments`.
fn call<'v>(path: &str, map: &'v Map<String, Value>, walk: &mut Walk<'v>, arguments: &str) -> Check {
    let known = [
        ("type", Kind::Text),
        ("id", Kind::Text),
        ("call_id", Kind::Text),
        ("name", Kind::Text),
        (arguments, Kind::Text),
        ("status", Kind::Text),
        ("namespace", Kind::Text),
    ];
    keys(path, map, &known, Null::Absent)?;
    walk.model_speaks(path)?;
    walk.reasoning = None;
    let prefix = if arguments == "input" { "ctc" } else { "fc" };
    item_id(path, map, prefix)?;
    let id = call_id(path, map, "call_id", LONGEST_ID)?;
    tool_name(&join(path, "name"), text(path, map, "name")?)?;
    if !map.get(arguments).is_some_and(Value::is_string) {
        return fail(join(path, arguments), "field required");
    }
    if !walk.ids.insert(id) {
        return fail(join(path, "call_id"), format!("`{id}` is used twice"));
    }
    walk.open.push(id);
    Ok(())
}

fn output<'v>(path: &str, map: &'v Map<String, Value>, walk: &mut Walk<'v>) -> Check {
    let known = [
        ("type", Kind::Text),
        ("id", Kind::Text),
        ("call_id", Kind::Text),
        ("output", Kind::TextOrArray),
        ("status", Kind::Text),
    ];
    keys(path, map, &known, Null::Absent)?;
    walk.reasoning_done()?;
    let id = call_id(path, map, "call_id", LONGEST_ID)?;
    let Some(position) = walk.open.iter().position(|open| *open == id) else {
        return fail(
            path,
            format!("no open function call found for function call output `{id}`"),
        );
    };
    walk.open.remove(position);
    walk.answering = true;
    match map.get("output") {
        None | Some(Value::Null) => fail(join(path, "output"), "field required"),
        // A tool may print nothing.
        Some(Value::String(_)) => Ok(()),
        Some(parts) => check_parts(
            &join(path, "output"),
            parts,
            &["input_text", "input_image", "input_file"],
        ),
    }
}

/// Checks that the id of an item, if given, has the prefix of its kind.
fn item_id(path: &str, map: &Map<String, Value>, prefix: &str) -> Check {
    match map.get("id").and_then(Value::as_str) {
        Some(id) if !id.starts_with(prefix) => fail(
            join(path, "id"),
            format!("expected an id that begins with `{prefix}`, found `{id}`"),
        ),
        _ => Ok(()),
    }
}

fn content(path: &str, map: &Map<String, Value>, allowed: &[&str]) -> Check {
    let path = join(path, "content");
    match map.get("content") {
        None | Some(Value::Null) => fail(path, "field required"),
        Some(Value::String(text)) => not_blank(&path, text),
        Some(parts) => check_parts(&path, parts, allowed),
    }
}

fn check_parts(path: &str, parts: &Value, allowed: &[&str]) -> Check {
    each_part(path, parts, allowed, |path, kind, part| match kind {
        "input_text" | "output_text" => not_blank(&join(path, "text"), text(path, part, "text")?),
        "refusal" => not_blank(&join(path, "refusal"), text(path, part, "refusal")?),
        "input_image" if part.get("file_id").is_none() => {
            image_url(&join(path, "image_url"), text(path, part, "image_url")?)
        }
        _ => Ok(()),
    })
}
