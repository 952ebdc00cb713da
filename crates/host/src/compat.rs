//! UI-7: flags and input of other agents, in our terms.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use windlass_config::Problem;
use windlass_core::message::{Binary, Part};
use windlass_core::permission::Rule;
use windlass_core::text::json_problem;

use crate::agent_types::foreign;

/// Maximum size of an image, in bytes.
pub const MAX_IMAGE: u64 = 5 * 1024 * 1024;

/// Tools that Claude Code's rules for one tool cover here, beside the tool itself.
const COVERED: &[(&str, &[&str])] = &[
    ("edit_file", &["apply_patch"]),
    ("read_file", &["list_directory"]),
];

/// Returns our name of a reasoning effort.
pub fn effort(name: &str) -> Option<&'static str> {
    let known = foreign::EFFORTS.iter().find(|(other, _)| *other == name);
    known.map(|(_, own)| *own)
}

/// Returns the rules in the values of a flag: separated by commas or spaces, with the tool names of Claude Code
/// or ours.
///
/// # Errors
/// If a text is not a rule, or looks like a prompt that followed the flag.
pub fn rules(values: &[String], flag: &str) -> Result<Vec<String>, Problem> {
    let mut rules = Vec::new();
    for value in values {
        let texts = split(value);
        let is_prose = texts.len() > 1 && !texts.iter().any(|text| is_tool(text));
        if is_prose {
            return Err(Problem::usage(format!(
                "{flag}: `{value}` names no tool; if it is the prompt, put it before {flag}"
            )));
        }
        for text in texts {
            rules.extend(translated(&text).map_err(|error| Problem::usage(format!("{flag}: {error}")))?);
        }
    }
    Ok(rules)
}

/// Splits at commas and spaces outside parentheses.
fn split(value: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut depth = 0_usize;
    for letter in value.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            texts.push(String::new());
        } else if let Some(last) = texts.last_mut() {
            last.push(letter);
        }
    }
    texts.retain(|text| !text.is_empty());
    texts
}

/// Returns true if a text is recognizable as the name of a tool.
fn is_tool(text: &str) -> bool {
    let has_marks = text.contains(['(', '_', '*']);
    has_marks || text.starts_with(char::is_uppercase) || foreign::tool(text) != text || text == "bash"
}

/// Translates one rule of Claude Code, such as `Bash(git log:*)`.
fn translated(text: &str) -> Result<Vec<String>, String> {
    let (tool, pattern) = match text.split_once('(') {
        Some((tool, pattern)) => (tool, Some(pattern)),
        None => (text, None),
    };
    // The names of tools of MCP servers are kept: case matters there.
    let own = if tool.starts_with("mcp__") {
        tool.to_owned()
    } else {
        foreign::tool(tool)
    };
    let pattern = pattern.map(|pattern| match pattern.strip_suffix(":*)") {
        Some(start) => format!("({start} *)"),
        None => format!("({pattern}"),
    });
    let more = COVERED.iter().find(|(covering, _)| *covering == own);
    let more = more.map_or(&[][..], |(_, more)| more);
    let mut rules = Vec::new();
    for tool in std::iter::once(own.as_str()).chain(more.iter().copied()) {
        let rule = format!("{tool}{}", pattern.as_deref().unwrap_or_default());
        rule.parse::<Rule>().map_err(|error| error.to_string())?;
        rules.push(rule);
    }
    Ok(rules)
}

/// Reads an image file for a message.
///
/// # Errors
/// If the file cannot be read, is too large, or is not an image.
pub fn image(path: &Path) -> Result<Part, Problem> {
    let problem = |what: String| Problem::usage(format!("--image {}: {what}", path.display()));
    let data = windlass_sandbox::read_regular(path, MAX_IMAGE).map_err(|error| problem(error.to_string()))?;
    let mime = media_type(&data)
        .ok_or_else(|| problem("not an image that models read: PNG, JPEG, GIF or WebP".to_owned()))?;
    Ok(Part::Binary(Binary {
        path: path.display().to_string(),
        mime: mime.to_owned(),
        data: STANDARD.encode(data),
    }))
}

/// Detects the type of an image by its first bytes.
pub fn media_type(data: &[u8]) -> Option<&'static str> {
    match data {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[derive(Deserialize)]
struct InputLine {
    r#type: String,
    message: Option<InputMessage>,
}

#[derive(Deserialize)]
struct InputMessage {
    content: InputContent,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum InputContent {
    Text(String),
    Blocks(Vec<InputBlock>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputBlock {
    Text { text: String },
    Image { source: InputImage },
}

#[derive(Deserialize)]
struct InputImage {
    media_type: String,
    data: String,
}

/// Reads a line of `--input-format stream-json`: a user's message as Claude Code's SDK sends it.
///
/// # Errors
/// If the line is not such a message.
pub fn message(line: &str, number: usize) -> Result<Vec<Part>, Problem> {
    let problem = |what: String| {
        Problem::usage(format!(
            "standard input, line {number}: {what}; expected \
             {{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"…\"}}}}"
        ))
    };
    let line: InputLine = serde_json::from_str(line).map_err(|error| problem(json_problem(&error)))?;
    let message = match (line.r#type.as_str(), line.message) {
        ("user", Some(message)) => message,
        ("user", None) => return Err(problem("`message` is missing".to_owned())),
        (other, _) => return Err(problem(format!("type `{other}` is not supported"))),
    };
    let blocks = match message.content {
        InputContent::Text(text) => return Ok(vec![Part::text(text)]),
        InputContent::Blocks(blocks) => blocks,
    };
    let part = |block: InputBlock| match block {
        InputBlock::Text { text } => Part::text(text),
        InputBlock::Image { source } => Part::Binary(Binary {
            path: "image".to_owned(),
            mime: source.media_type,
            data: source.data,
        }),
    };
    Ok(blocks.into_iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-7: rules of Claude Code become ours, and a prompt after the flag is noticed.
    #[test]
    fn rules_of_others() {
        for (value, expected) in [
            ("Bash(git log:*)", &["bash(git log *)"][..]),
            ("Bash(git *),Edit", &["bash(git *)", "edit_file", "apply_patch"]),
            ("Read Write", &["read_file", "list_directory", "write_file"]),
            ("WebFetch(domain:example.com)", &["fetch(domain:example.com)"]),
            ("mcp__Files__get", &["mcp__Files__get"]),
            ("grep", &["grep"]),
        ] {
            assert_eq!(
                rules(&[value.to_owned()], "--allowed-tools").unwrap(),
                expected,
                "{value}"
            );
        }
        for wrong in ["fix the tests", "Bash(git", "bash()"] {
            assert!(rules(&[wrong.to_owned()], "--allowed-tools").is_err(), "{wrong}");
        }
    }
}
