//! Calls in the names and fields of Claude Code, for which most hooks are written, and back.

use std::path::Path;

use serde_json::{Map, Value, json};
use windlass_core::permission::{Proposal, Rule, Subject};

/// A call as a hook sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaudeCall {
    /// Names that matchers are compared with. The first is the one that hooks see; our own name is the last.
    pub names: Vec<String>,
    /// The input.
    pub input: Value,
}

/// Our name, and the names of Claude Code; hooks see the first of these.
const TOOLS: &[(&str, &[&str])] = &[
    ("bash", &["Bash"]),
    ("read_file", &["Read"]),
    ("write_file", &["Write"]),
    ("edit_file", &["Edit", "MultiEdit"]),
    ("apply_patch", &["apply_patch", "Edit", "Write"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("list_directory", &["LS"]),
    ("fetch", &["WebFetch"]),
    ("todo", &["TodoWrite"]),
    ("agent", &["Agent", "Task"]),
    ("ask_user", &["AskUserQuestion"]),
    ("skill", &["Skill"]),
];

/// Fields with the same content under two names: tool, ours, Claude's.
const FIELDS: &[(&str, &str, &str)] = &[
    ("bash", "background", "run_in_background"),
    ("read_file", "path", "file_path"),
    ("write_file", "path", "file_path"),
    ("edit_file", "path", "file_path"),
    ("apply_patch", "patch", "command"),
    ("grep", "ignore_case", "-i"),
    ("grep", "context", "-C"),
    ("agent", "task", "prompt"),
    ("agent", "name", "description"),
    ("agent", "type", "subagent_type"),
    ("agent", "background", "run_in_background"),
];

/// Fields that we add for hooks and never take back.
const ADDED: &[(&str, &str)] = &[("apply_patch", "file_paths"), ("fetch", "prompt")];

/// Returns the names of a tool for matchers.
pub fn names(tool: &str) -> Vec<String> {
    let known = TOOLS.iter().find(|(name, _)| *name == tool);
    let mut names: Vec<String> = known.map_or(Vec::new(), |(_, names)| {
        names.iter().map(|name| (*name).to_owned()).collect()
    });
    if !names.iter().any(|name| name == tool) {
        names.push(tool.to_owned());
    }
    names
}

/// Returns our name for a tool of Claude Code.
pub fn own_name(name: &str) -> &str {
    let known = TOOLS.iter().find(|(_, names)| names.contains(&name));
    known.map_or(name, |(own, _)| own)
}

/// Translates a call for hooks.
pub fn call(proposal: &Proposal) -> ClaudeCall {
    let tool = proposal.tool.as_str();
    let mut input = Map::new();
    for (name, value) in proposal.arguments.as_object().into_iter().flatten() {
        let known = FIELDS.iter().find(|(of, own, _)| *of == tool && own == name);
        let name = known.map_or(name.as_str(), |(_, _, theirs)| theirs);
        input.insert(name.to_owned(), value.clone());
    }
    if let Some(Value::String(path)) = input.get_mut("file_path") {
        *path = absolute(&proposal.cwd, path);
    }
    match tool {
        "bash" => {
            if let Some(seconds) = input.remove("timeout_secs").as_ref().and_then(Value::as_u64) {
                input.insert("timeout".to_owned(), json!(seconds.saturating_mul(1_000)));
            }
        }
        "edit_file" => {
            let first = input
                .get("edits")
                .and_then(|edits| edits.get(0))
                .and_then(Value::as_object)
                .cloned();
            for (name, value) in first.into_iter().flatten() {
                input.insert(name, value);
            }
        }
        "apply_patch" => {
            let paths = proposal.parts().filter_map(|part| match part {
                Subject::Path(path) => Some(absolute(&proposal.cwd, path)),
                _ => None,
            });
            input.insert("file_paths".to_owned(), paths.collect());
        }
        "fetch" => {
            input.insert("prompt".to_owned(), json!(""));
        }
        "todo" => {
            let items = input.remove("items").unwrap_or_default();
            let todo = |item: &Value| json!({"content": item["text"], "status": item["status"], "activeForm": item["text"]});
            let todos: Vec<Value> = items.as_array().into_iter().flatten().map(todo).collect();
            input.insert("todos".to_owned(), Value::Array(todos));
        }
        _ => {}
    }
    ClaudeCall {
        names: names(tool),
        input: Value::Object(input),
    }
}

/// Translates the input that a hook wants instead back into our arguments.
///
/// # Errors
/// If it is not an object.
pub fn arguments(proposal: &Proposal, updated: &Value) -> Result<Value, String> {
    let tool = proposal.tool.as_str();
    let Some(updated) = updated.as_object() else {
        return Err("`updatedInput` is not an object".to_owned());
    };
    let shown = call(proposal).input;
    let mut arguments = Map::new();
    for (name, value) in updated {
        if ADDED.contains(&(tool, name)) {
            continue;
        }
        let known = FIELDS
            .iter()
            .find(|(of, _, theirs)| *of == tool && theirs == name);
        let own = known.map_or(name.as_str(), |(_, own, _)| own);
        // A value that the hook left alone stays as the model wrote it.
        let kept = (shown.get(name) == Some(value))
            .then(|| proposal.arguments.get(own))
            .flatten();
        arguments.insert(own.to_owned(), kept.unwrap_or(value).clone());
    }
    match tool {
        "bash" => {
            if let Some(time) = arguments.remove("timeout").as_ref().and_then(Value::as_u64) {
                arguments.insert("timeout_secs".to_owned(), json!(time.div_ceil(1_000)));
            }
        }
        "edit_file" => one_form(&mut arguments, updated, &shown),
        "todo" => {
            if let Some(Value::Array(todos)) = arguments.remove("todos") {
                let item = |todo: &Value| json!({"text": todo["content"], "status": todo["status"]});
                arguments.insert("items".to_owned(), todos.iter().map(item).collect());
            }
        }
        _ => {}
    }
    Ok(Value::Object(arguments))
}

/// Gives an edit either `edits`, or one edit in fields of its own: the form that the hook changed.
fn one_form(arguments: &mut Map<String, Value>, updated: &Map<String, Value>, shown: &Value) {
    const SINGLE: [&str; 3] = ["old_string", "new_string", "replace_all"];
    if !arguments.contains_key("edits") {
        return;
    }
    let changed = SINGLE.iter().any(|name| updated.get(*name) != shown.get(*name));
    let mut single = Map::new();
    for name in SINGLE {
        if let Some(value) = arguments.remove(name) {
            single.insert(name.to_owned(), value);
        }
    }
    if changed && let Some(first) = arguments.get_mut("edits").and_then(|edits| edits.get_mut(0)) {
        *first = Value::Object(single);
    }
}

/// Returns the result of a call in the fields that hooks read.
pub fn response(proposal: &Proposal, content: &str, is_failed: bool) -> Value {
    let shown = call(proposal).input;
    let path = shown.get("file_path").cloned().unwrap_or_default();
    match proposal.tool.as_str() {
        "bash" if is_failed => json!({"stdout": "", "stderr": content, "interrupted": false}),
        "bash" => json!({"stdout": content, "stderr": "", "interrupted": false, "isImage": false}),
        "read_file" => json!({"type": "text", "file": {"filePath": path, "content": content}}),
        "write_file" => json!({"type": "update", "filePath": path, "content": shown["content"]}),
        "edit_file" => json!({
            "filePath": path, "oldString": shown["old_string"], "newString": shown["new_string"],
            "replaceAll": shown["replace_all"].as_bool().unwrap_or_default(), "userModified": false,
        }),
        "glob" => json!({"filenames": content.lines().collect::<Vec<_>>(), "content": content}),
        _ => json!({"content": content}),
    }
}

/// Returns true if a call fits the rule in a hook's `if`. A rule that cannot be read fits every call, so that a guard
/// with a typo does not stop guarding.
pub fn fits(condition: &str, proposal: &Proposal) -> bool {
    let (name, pattern) = match condition.trim().split_once('(') {
        Some((name, pattern)) => (name.trim(), format!("({}", pattern.replace(":*)", " *)"))),
        None => (condition.trim(), String::new()),
    };
    if !names(&proposal.tool).iter().any(|known| known == name) {
        let pattern = name.contains('*').then(|| name.trim_end_matches('*'));
        return pattern
            .is_some_and(|start| names(&proposal.tool).iter().any(|known| known.starts_with(start)));
    }
    match format!("{}{pattern}", proposal.tool).parse::<Rule>() {
        Ok(rule) => rule.touches(proposal),
        Err(_) => true,
    }
}

fn absolute(cwd: &Path, path: &str) -> String {
    cwd.join(path).display().to_string()
}
