//! Tool calls as cards in the editor: kind, title, places, diffs, and the output of commands.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use windlass_core::text::with_signs;

use crate::client::TerminalKey;
use crate::content::{fence, text_block};
use crate::diff;

/// Maximum length of a running command's output in a card, from its end, where there is no display terminal.
const MAX_OUTPUT: usize = 16 << 10;
/// Maximum length of a result in a card. The editor keeps every card of a session.
const MAX_RESULT: usize = 64 << 10;
/// Maximum number of files whose changes are shown.
const MAX_FILES: usize = 100;
/// Keys of details that are shown as diffs.
const DIFF_KEYS: [&str; 3] = ["diff", "files", "changed"];

/// A tool call.
#[derive(Debug)]
pub(crate) struct Card {
    id: String,
    name: String,
    args: Value,
    title: String,
    /// Sub-agent that makes the call.
    agent: Option<String>,
    place: PathBuf,
    terminal: Option<TerminalKey>,
    /// Output so far, from its end.
    output: String,
    /// Bytes of output since the last update, and the length of the output in that update.
    fresh: usize,
    sent: usize,
    has_output: bool,
}

impl Card {
    pub(crate) fn new(id: &str, name: &str, args: Value, place: &Path) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            title: title(name, &args),
            args,
            agent: None,
            place: place.to_owned(),
            terminal: None,
            output: String::new(),
            fresh: 0,
            sent: 1,
            has_output: false,
        }
    }

    /// Marks the call as one of a sub-agent, which its title names.
    pub(crate) fn of_agent(mut self, agent: String) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Shows the output of a command as a terminal.
    pub(crate) fn on_terminal(mut self, terminal: Option<TerminalKey>) -> Self {
        self.terminal = terminal.filter(|_| self.name == "bash");
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Takes the title that the tool has for people. A command keeps its whole text.
    pub(crate) fn set_title(&mut self, title: &str) {
        if self.name != "bash" && !title.is_empty() {
            self.title = title.to_owned();
        }
    }

    /// Returns the title without the name of an agent.
    pub(crate) fn own_title(&self) -> String {
        self.title.clone()
    }

    pub(crate) fn set_args(&mut self, args: Value) {
        if self.name == "bash" {
            self.title = title(&self.name, &args);
        }
        self.args = args;
    }

    fn title(&self) -> String {
        with_signs(&match &self.agent {
            Some(agent) => format!("agent {agent}: {}", self.title),
            None => self.title.clone(),
        })
    }

    /// Returns the fields that describe the call, with the given status.
    pub(crate) fn fields(&self, status: &str) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut set = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
        set("toolCallId", json!(self.id));
        set("title", json!(self.title()));
        set("name", json!(self.name));
        set("kind", json!(kind(&self.name)));
        set("status", json!(status));
        set("rawInput", self.args.clone());
        let places = self.named_places();
        if !places.is_empty() {
            set("locations", Value::Array(places));
        }
        if let Some(agent) = &self.agent {
            set("_meta", json!({ "windlass": { "agent": agent } }));
        }
        fields
    }

    /// Returns the fields of a call that a person is asked about. A command is shown whole, in the title as well:
    /// some editors show nothing else.
    pub(crate) fn asked(&self, preview: Option<&str>, subjects: &[String]) -> Map<String, Value> {
        let mut fields = self.fields("pending");
        let is_unknown = self.args.as_object().is_none_or(Map::is_empty);
        let title = match (self.name.as_str(), preview) {
            ("bash", Some(command)) if is_unknown => command.strip_prefix("$ ").unwrap_or(command).to_owned(),
            _ if is_unknown && !subjects.is_empty() => format!("{} {}", self.name, subjects.join(", ")),
            _ => self.title.clone(),
        };
        let title = match &self.agent {
            Some(agent) => format!("agent {agent}: {title}"),
            None => title,
        };
        fields.insert("title".to_owned(), json!(with_signs(&title)));
        if is_unknown {
            fields.insert("rawInput".to_owned(), json!({ "subjects": subjects }));
        }
        fields
    }

    /// Returns the update that announces the call.
    pub(crate) fn announced(&self, status: &str) -> Value {
        let mut update = self.update("tool_call", status);
        self.add_terminal(&mut update);
        Value::Object(update)
    }

    /// Returns the update that the call runs.
    pub(crate) fn running(&self) -> Value {
        Value::Object(self.update("tool_call_update", "in_progress"))
    }

    fn update(&self, kind: &str, status: &str) -> Map<String, Value> {
        let mut update = Map::new();
        update.insert("sessionUpdate".to_owned(), json!(kind));
        update.extend(self.fields(status));
        update
    }

    fn add_terminal(&self, update: &mut Map<String, Value>) {
        if self.terminal.is_none() {
            return;
        }
        let content = json!([{ "type": "terminal", "terminalId": self.id }]);
        update.insert("content".to_owned(), content);
        let mut meta = json!({ "terminal_info": { "terminal_id": self.id } });
        if let (Some(map), Some(Value::Object(old))) = (meta.as_object_mut(), update.remove("_meta")) {
            map.extend(old);
        }
        update.insert("_meta".to_owned(), meta);
    }

    /// Adds output of the running call. Returns an update if one is due: without a terminal, each one repeats the
    /// output so far, so they become rarer as it grows.
    pub(crate) fn add_output(&mut self, text: &str) -> Option<Value> {
        self.has_output = true;
        if let Some(key) = self.terminal {
            return Some(self.terminal_output(key, text));
        }
        self.output.push_str(text);
        self.fresh += text.len();
        if self.output.len() > 2 * MAX_OUTPUT {
            let cut = boundary_after(&self.output, self.output.len() - MAX_OUTPUT);
            self.output.drain(..cut);
        }
        if self.fresh < self.sent {
            return None;
        }
        (self.fresh, self.sent) = (0, self.output.len());
        Some(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": self.id,
            "content": [text_content(&fenced(&self.output))],
        }))
    }

    fn terminal_output(&self, key: TerminalKey, text: &str) -> Value {
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": self.id,
            "_meta": { key.name(): { "terminal_id": self.id, "data": text } },
        })
    }

    /// Returns the updates that end the call.
    pub(crate) fn ended(&self, text: &str, is_error: bool, details: Option<&Value>) -> Vec<Value> {
        let status = if is_error { "failed" } else { "completed" };
        let (mut content, places) = self.changes(details);
        let mut updates = Vec::new();
        let mut update = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": self.id,
            "status": status,
        });
        let Some(fields) = update.as_object_mut() else {
            return updates;
        };
        if let Some(key) = self.terminal {
            if !self.has_output && !text.is_empty() {
                updates.push(self.terminal_output(key, text));
            }
            let code = details.and_then(|details| details.get("exit_code")).cloned();
            let exit = json!({ "terminal_id": self.id, "exit_code": code, "signal": null });
            fields.insert("_meta".to_owned(), json!({ "terminal_exit": exit }));
            content.insert(0, json!({ "type": "terminal", "terminalId": self.id }));
        } else if content.is_empty() || is_error || self.name == "bash" {
            content.insert(0, text_content(&self.shown(text)));
        }
        fields.insert("content".to_owned(), Value::Array(content));
        if !places.is_empty() {
            fields.insert("locations".to_owned(), Value::Array(places));
        }
        if let Some(raw) = raw_output(details) {
            fields.insert("rawOutput".to_owned(), raw);
        }
        updates.push(update);
        updates
    }

    /// Returns the result as Markdown: output and file contents must not be read as markup.
    fn shown(&self, text: &str) -> String {
        let text = cut(text);
        match kind(&self.name) {
            "execute" | "read" | "search" | "edit" if !text.trim().is_empty() => fenced(&text),
            _ => text.into_owned(),
        }
    }

    /// Returns the diffs in the details of a result, and the places of the changes.
    fn changes(&self, details: Option<&Value>) -> (Vec<Value>, Vec<Value>) {
        let mut all = (Vec::new(), Vec::new());
        let Some(details) = details else { return all };
        let listed = |key: &str| details.get(key).and_then(Value::as_array);
        let several = listed("files").or_else(|| listed("changed"));
        let files = several.map_or_else(|| std::slice::from_ref(details), Vec::as_slice);
        for file in files.iter().take(MAX_FILES) {
            let text = |key: &str| file.get(key).and_then(Value::as_str);
            let (Some(path), diff) = (text("path"), text("diff")) else {
                continue;
            };
            if several.is_none() && diff.is_none() {
                continue;
            }
            let path = self.place.join(path);
            let (diffs, line) = diff::contents(&path, diff.unwrap_or_default());
            all.0.extend(diffs);
            all.1.push(place(&path, line));
        }
        all
    }

    /// Returns the places that the arguments name.
    fn named_places(&self) -> Vec<Value> {
        let Some(path) = self.args.get("path").and_then(Value::as_str) else {
            return Vec::new();
        };
        let line = self.args.get("offset").and_then(Value::as_u64);
        vec![place(&self.place.join(path), line.map(|line| line.max(1)))]
    }

    /// Returns the contents that a person decides about: the whole command, or the diff.
    pub(crate) fn preview(&self, preview: Option<&str>, reasons: &[String]) -> Vec<Value> {
        let mut contents = Vec::new();
        if let Some(preview) = preview {
            let path = self.args.get("path").and_then(Value::as_str);
            let diffs = path.map(|path| diff::contents(&self.place.join(path), preview).0);
            match diffs {
                Some(diffs) if !diffs.is_empty() => contents.extend(diffs),
                _ => contents.push(text_content(&fenced(&with_signs(preview)))),
            }
        }
        if !reasons.is_empty() {
            contents.push(text_content(&with_signs(&reasons.join("\n"))));
        }
        contents
    }
}

/// Returns the kind of a tool.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "bash" | "bash_job" => "execute",
        "read_file" | "list_directory" | "tool_output" => "read",
        "glob" | "grep" => "search",
        "write_file" | "edit_file" | "apply_patch" => "edit",
        "fetch" => "fetch",
        "todo" => "think",
        _ => "other",
    }
}

/// Returns a title from the arguments: the whole command, or the tool and its subject.
fn title(tool: &str, args: &Value) -> String {
    let text = |key: &str| {
        args.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    if let ("bash", Some(command)) = (tool, text("command")) {
        return command.to_owned();
    }
    let keys = ["path", "pattern", "url", "question", "command", "task", "id"];
    match keys.iter().find_map(|key| text(key)) {
        Some(subject) => format!("{tool} {subject}"),
        None => tool.to_owned(),
    }
}

fn place(path: &Path, line: Option<u64>) -> Value {
    match line {
        Some(line) => json!({ "path": path, "line": line }),
        None => json!({ "path": path }),
    }
}

fn raw_output(details: Option<&Value>) -> Option<Value> {
    let mut details = details?.as_object()?.clone();
    details.retain(|key, _| !DIFF_KEYS.contains(&key.as_str()));
    (!details.is_empty()).then_some(Value::Object(details))
}

pub(crate) fn text_content(text: &str) -> Value {
    json!({ "type": "content", "content": text_block(text) })
}

fn fenced(text: &str) -> String {
    let fence = fence(text);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= MAX_RESULT {
        return text.into();
    }
    let end = windlass_core::text::boundary_before(text, MAX_RESULT);
    let (shown, _) = text.split_at(end);
    format!("{shown}\n[… {} more bytes …]", text.len() - end).into()
}

fn boundary_after(text: &str, from: usize) -> usize {
    (from..=text.len())
        .find(|index| text.is_char_boundary(*index))
        .unwrap_or(text.len())
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;
