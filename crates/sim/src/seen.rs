//! The content of a request, in one form for the four wires.

mod offered;
mod read;

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

pub(crate) use self::offered::offered;
use crate::wire::Protocol;

/// A normalised request: the same conversation gives the same value on every wire, except for what a wire
/// cannot express.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Requested model.
    pub model: String,
    /// All system and developer text, joined with line breaks.
    pub system: String,
    /// The conversation, with adjacent messages of the same role merged.
    pub turns: Vec<SeenTurn>,
    /// Number of turns of the request; set even when the log drops the turns themselves.
    pub turn_count: usize,
    /// Names of the offered tools, in order.
    pub tools: Vec<String>,
    /// `auto`, `any`/`required`, `none` or the name of the forced tool.
    pub tool_choice: Option<String>,
    /// True if the client asks for a stream.
    pub stream: bool,
    /// Output limit of the request.
    pub max_tokens: Option<u64>,
}

/// Author of a turn. Tool results belong to the user's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenRole {
    /// The user, or tool results.
    User,
    /// The model.
    Assistant,
}

/// One merged turn.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTurn {
    /// Author of the turn.
    pub role: SeenRole,
    /// All text of the turn, joined with line breaks.
    pub text: String,
    /// Thinking or reasoning parts, each as its readable text (empty when redacted).
    pub thinking: Vec<String>,
    /// Number of images.
    pub images: usize,
    /// Tool calls, in order.
    pub calls: Vec<SeenCall>,
    /// Tool results, in order.
    pub results: Vec<SeenResult>,
}

/// One tool call of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenCall {
    /// Id that links the call to its result.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments; a string if they are not valid JSON.
    pub args: Value,
}

/// One tool result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenResult {
    /// Id of the call this result answers.
    pub id: String,
    /// Text of the result.
    pub text: String,
    /// True if marked as an error. Only the Anthropic wire has such a mark.
    pub is_error: bool,
}

impl Seen {
    /// Reads a validated request. Parts that do not fit are left out; reporting them is up to the validator.
    #[must_use]
    pub fn read(wire: Protocol, body: &Value) -> Self {
        let mut seen = match wire {
            Protocol::Anthropic => read::anthropic(body),
            Protocol::Chat => read::chat(body),
            Protocol::Responses => read::responses(body),
            Protocol::Gemini => read::gemini(body),
        };
        seen.turn_count = seen.turns.len();
        seen
    }

    /// Returns the text of the last user turn that has any.
    #[must_use]
    pub fn last_user_text(&self) -> Option<&str> {
        self.turns
            .iter()
            .rev()
            .find(|turn| turn.role == SeenRole::User && !turn.text.trim().is_empty())
            .map(|turn| turn.text.as_str())
    }

    /// Returns all tool results, oldest first.
    pub fn results(&self) -> impl DoubleEndedIterator<Item = &SeenResult> {
        self.turns.iter().flat_map(|turn| turn.results.iter())
    }

    /// Returns the newest tool result, if the request ends with one.
    #[must_use]
    pub fn last_result(&self) -> Option<&SeenResult> {
        self.turns.last().and_then(|turn| turn.results.last())
    }

    /// Returns the tool of the newest result, if the request ends with one.
    #[must_use]
    pub fn last_tool(&self) -> Option<&str> {
        let id = &self.last_result()?.id;
        let calls = self.turns.iter().rev().flat_map(|turn| &turn.calls);
        calls
            .into_iter()
            .find(|call| call.id == *id)
            .map(|call| call.name.as_str())
    }

    /// Returns true if a tool of this name is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    /// Prints one line per item, for snapshots. Call ids are numbered by appearance, so the text does not
    /// depend on them.
    #[must_use]
    pub fn outline(&self) -> String {
        let mut out = String::new();
        let mut numbers = HashMap::new();
        let _ = write!(out, "model {}", self.model);
        if self.stream {
            out.push_str(" stream");
        }
        if let Some(limit) = self.max_tokens {
            let _ = write!(out, " max_tokens={limit}");
        }
        if let Some(choice) = &self.tool_choice {
            let _ = write!(out, " tool_choice={choice}");
        }
        out.push('\n');
        if !self.tools.is_empty() {
            let _ = writeln!(out, "tools {}", self.tools.join(" "));
        }
        if !self.system.is_empty() {
            let _ = writeln!(out, "system {}", excerpt(&self.system));
        }
        for turn in &self.turns {
            turn.outline(&mut out, &mut numbers);
        }
        out
    }

    /// Drops the conversation, for logs that must stay small.
    pub(crate) fn without_turns(self) -> Self {
        Self {
            system: String::new(),
            turns: Vec::new(),
            ..self
        }
    }
}

impl SeenTurn {
    pub(crate) const fn new(role: SeenRole) -> Self {
        Self {
            role,
            text: String::new(),
            thinking: Vec::new(),
            images: 0,
            calls: Vec::new(),
            results: Vec::new(),
        }
    }

    fn outline<'turn>(&'turn self, out: &mut String, numbers: &mut HashMap<&'turn str, usize>) {
        for result in &self.results {
            let number = number_of(numbers, &result.id);
            let mark = if result.is_error { " error" } else { "" };
            let _ = writeln!(out, "result #{number}{mark} {}", excerpt(&result.text));
        }
        for thought in &self.thinking {
            let _ = writeln!(out, "thinking {}", excerpt(thought));
        }
        let who = match self.role {
            SeenRole::User => "user",
            SeenRole::Assistant => "assistant",
        };
        if !self.text.is_empty() {
            let _ = writeln!(out, "{who} {}", excerpt(&self.text));
        }
        if self.images > 0 {
            let _ = writeln!(out, "{who} images={}", self.images);
        }
        for call in &self.calls {
            let number = number_of(numbers, &call.id);
            let _ = writeln!(
                out,
                "call #{number} {} {}",
                call.name,
                excerpt(&call.args.to_string())
            );
        }
    }
}

fn number_of<'id>(numbers: &mut HashMap<&'id str, usize>, id: &'id str) -> usize {
    let next = numbers.len() + 1;
    *numbers.entry(id).or_insert(next)
}

/// Puts a text on one line of at most 120 characters, and counts the rest.
fn excerpt(text: &str) -> String {
    const LIMIT: usize = 120;
    let total = text.chars().count();
    let mut line: String = text.chars().take(LIMIT).collect::<String>().replace('\n', "\\n");
    if total > LIMIT {
        let _ = write!(line, "… (+{} chars)", total - LIMIT);
    }
    line
}

#[cfg(test)]
#[path = "seen_tests.rs"]
mod tests;
