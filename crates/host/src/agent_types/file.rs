//! One file of an agent type.

use std::path::Path;

use windlass_core::permission::Mode;
use windlass_service::{AgentTools, AgentType};
use windlass_yaml::{Data, Node, TableEntry, key_hint};

use super::foreign;

/// The keys.
const KEYS: [&str; 15] = [
    "name",
    "description",
    "tools",
    "disallowed_tools",
    "model",
    "effort",
    "max_turns",
    "max_cost",
    "isolation",
    "background",
    "permission_mode",
    "skills",
    "mcp",
    "memory",
    "color",
];

/// Keys of other agents that mean one of ours, or nothing here.
const OTHER_KEYS: &[(&str, &str)] = &[
    ("mcp_servers", "mcp"),
    ("developer_instructions", "prompt"),
    ("instructions", "prompt"),
    ("prompt", "prompt"),
    ("steps", "max_turns"),
    ("max_steps", "max_turns"),
    ("sandbox_mode", "permission_mode"),
    ("mode", "opencode_mode"),
    ("disable", "disable"),
    ("hidden", "color"),
    ("temperature", "color"),
    ("top_p", "color"),
    ("permission", "color"),
    ("hooks", "color"),
    ("model_reasoning_effort", "effort"),
];

/// Reads a file; `None` if it is no sub-agent. Warnings about keys without effect are added to `warnings`.
pub(super) fn parse(
    file: &Path,
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<AgentType>, String> {
    let shown = file.display();
    let stem = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_toml = file.extension().is_some_and(|end| end == "toml");
    let (head, body, offset) = if is_toml {
        (from_toml(text).map_err(|why| format!("{shown}: {why}"))?, "", 0)
    } else {
        split(text).map_err(|(line, why)| format!("{shown}:{line}: {why}"))?
    };
    let mut kind = AgentType::new(&stem, "", body.trim());
    kind.source = shown.to_string();
    let mut is_agent = true;
    for entry in head {
        let line = match is_toml {
            true => shown.to_string(),
            false => format!("{shown}:{}", entry.line + offset),
        };
        match set(&mut kind, &entry) {
            Ok(Set::Done) => {}
            Ok(Set::NoAgent) => is_agent = false,
            Ok(Set::NoEffect) => {
                warnings.push(format!("{line}: `{}` has no effect on agents here", entry.key));
            }
            Ok(Set::Unknown) => {
                let hint = key_hint(&entry.key, &KEYS);
                warnings.push(format!("{line}: unknown key `{}`; {hint}", entry.key));
            }
            Err(expected) => {
                let found = entry.value.describe();
                return Err(format!("{line}: `{}` is {found}, expected {expected}", entry.key));
            }
        }
    }
    if !is_agent {
        return Ok(None);
    }
    if kind.prompt.is_empty() {
        return Err(format!("{shown}: there are no instructions below the head"));
    }
    if kind.description.is_empty() {
        kind.description = kind
            .prompt
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(120)
            .collect();
    }
    Ok(Some(kind))
}

/// Effect of a key.
enum Set {
    Done,
    /// The file describes no sub-agent.
    NoAgent,
    NoEffect,
    Unknown,
}

fn set(kind: &mut AgentType, entry: &TableEntry) -> Result<Set, String> {
    let plain = snake(&entry.key);
    let other = OTHER_KEYS.iter().find(|(other, _)| *other == plain);
    let key = other.map_or(plain.as_str(), |(_, own)| own);
    let value = &entry.value;
    match key {
        "name" => kind.name = name(value)?,
        "description" => kind.description = one_line(value.text()?),
        "prompt" => kind.prompt = value.text()?.trim().to_owned(),
        "tools" => tools(kind, value)?,
        "disallowed_tools" => kind.disallowed_tools = names(value)?,
        "model" => kind.model.name = foreign::model(value.text()?.trim()),
        "max_turns" => {
            kind.max_turns = value
                .whole::<u32>()
                .ok()
                .filter(|most| *most > 0)
                .ok_or("a number from 1")?;
        }
        "max_cost" => {
            let most = value.number()?;
            kind.max_cost_usd = Some(most).filter(|most| *most > 0.0);
            kind.max_cost_usd.ok_or("an amount in US dollars above 0")?;
        }
        "isolation" => kind.isolated = value.choice(&[("worktree", true), ("none", false)])?,
        "background" => kind.background = value.flag()?,
        "permission_mode" => {
            let mode = Mode::from_permission_mode(value.text()?);
            kind.mode = Some(mode.map_err(|error| error.to_string())?);
        }
        "opencode_mode" => {
            if value.choice(&[("subagent", false), ("all", false), ("primary", true)])? {
                return Ok(Set::NoAgent);
            }
        }
        "disable" => {
            if value.flag()? {
                return Ok(Set::NoAgent);
            }
        }
        "color" => {}
        "effort" => kind.model.effort = Some(value.choice(&foreign::EFFORTS)?.to_owned()),
        "skills" | "mcp" | "memory" => return Ok(Set::NoEffect),
        _ => return Ok(Set::Unknown),
    }
    Ok(Set::Done)
}

/// Converts `maxTurns` and `max-turns` to `max_turns`.
fn snake(key: &str) -> String {
    let mut plain = String::new();
    for letter in key.chars() {
        match letter {
            '-' => plain.push('_'),
            upper if upper.is_ascii_uppercase() => {
                plain.push('_');
                plain.push(upper.to_ascii_lowercase());
            }
            other => plain.push(other),
        }
    }
    plain.trim_start_matches('_').to_owned()
}

fn name(value: &Node) -> Result<String, String> {
    let name = value.text()?.trim();
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    match !name.is_empty() && name.chars().count() <= 40 && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("a name of at most 40 letters, digits, `_`, `-` and `.`".to_owned()),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(300)
        .collect()
}

/// Reads `tools`: a list, names with commas between them, `*`, or OpenCode's table of switches.
fn tools(kind: &mut AgentType, value: &Node) -> Result<(), String> {
    if let Data::Table(entries) = &value.data {
        let mut named = Vec::new();
        for entry in entries {
            match entry.value.flag()? {
                true => named.push(foreign::tool(&entry.key)),
                false => kind.disallowed_tools.push(foreign::tool(&entry.key)),
            }
        }
        kind.tools = match named.is_empty() {
            true => AgentTools::All,
            false => AgentTools::Named(named),
        };
        return Ok(());
    }
    let named = names(value)?;
    kind.tools = match named.iter().any(|name| name == "*") {
        true => AgentTools::All,
        false => AgentTools::Named(named),
    };
    Ok(())
}

fn names(value: &Node) -> Result<Vec<String>, String> {
    let expected = "a list of tools, or their names with commas between them".to_owned();
    match &value.data {
        Data::Null => Ok(Vec::new()),
        Data::Text(text) => Ok(text
            .split(',')
            .filter(|name| !name.trim().is_empty())
            .map(foreign::tool)
            .collect()),
        Data::List(items) => items
            .iter()
            .map(|item| item.text().map(foreign::tool).map_err(|_| expected.clone()))
            .collect(),
        _ => Err(expected),
    }
}

/// Head of a file, its text, and the number of lines before the head.
type Split<'a> = (Vec<TableEntry>, &'a str, u64);

/// Splits a Markdown file into its head and its text, with the number of lines before the head.
fn split(text: &str) -> Result<Split<'_>, (u64, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Ok((Vec::new(), text, 0));
    };
    let begin = first.len();
    let mut end = begin;
    for line in lines {
        if !is_fence(line) {
            end += line.len();
            continue;
        }
        let head = text.get(begin..end).unwrap_or_default();
        let body = text.get(end + line.len()..).unwrap_or_default();
        if head.trim().is_empty() {
            return Ok((Vec::new(), body, 1));
        }
        let node = Node::read(head).map_err(|error| (error.line + 1, error.to_string()))?;
        let entries = node
            .table(&KEYS)
            .map_err(|why| (2, format!("the head is {}, expected {why}", node.describe())))?;
        return Ok((entries.to_vec(), body, 1));
    }
    Err((1, "the line `---` that ends its head is missing".to_owned()))
}

/// Reads a TOML file, as Codex has them.
fn from_toml(text: &str) -> Result<Vec<TableEntry>, String> {
    let document: toml_edit::DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| error.to_string())?;
    let entries = document.iter().map(|(key, item)| TableEntry {
        key: key.to_owned(),
        line: 1,
        value: Node {
            line: 1,
            data: toml_data(item),
        },
    });
    Ok(entries.collect())
}

fn toml_data(item: &toml_edit::Item) -> Data {
    if let Some(text) = item.as_str() {
        return Data::Text(text.to_owned());
    }
    if let Some(flag) = item.as_bool() {
        return Data::Bool(flag);
    }
    if let Some(number) = item.as_integer() {
        return Data::Number(number.into());
    }
    if let Some(number) = item.as_float().and_then(serde_json::Number::from_f64) {
        return Data::Number(number);
    }
    let texts = |array: &toml_edit::Array| {
        let items = array.iter().map(|value| Node {
            line: 1,
            data: value
                .as_str()
                .map_or(Data::Null, |text| Data::Text(text.to_owned())),
        });
        Data::List(items.collect())
    };
    item.as_array().map_or(Data::Table(Vec::new()), texts)
}
