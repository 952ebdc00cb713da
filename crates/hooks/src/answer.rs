//! Answers of hooks.

use serde_json::{Map, Value};

use crate::occasion::Occasion;
use crate::process::{HookEnd, HookOutput};

/// Maximum number of characters of a text in an answer.
const MAX_TEXT: usize = 10_000;

/// The decision of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HookChoice {
    /// It has no opinion.
    #[default]
    None,
    /// Nobody needs to be asked.
    Allow,
    /// A person is asked.
    Ask,
    /// The action is refused: a call does not run, a prompt is not sent, a turn does not end.
    Deny,
}

impl HookChoice {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "-",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The answer of one hook.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookAnswer {
    /// Its decision.
    pub choice: HookChoice,
    /// Reason of the decision.
    pub reason: String,
    /// Other arguments for the call, in the fields of Claude Code.
    pub input: Option<Value>,
    /// Text for the model.
    pub context: Vec<String>,
    /// Text that takes the place of a call's output.
    pub output: Option<String>,
    /// Reason to end the turn.
    pub stop: Option<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
}

impl HookAnswer {
    /// Reads the answer of a run. `name` is the hook in messages.
    pub fn read(occasion: Occasion, name: &str, run: &HookOutput) -> Self {
        if let Some(why) = run.end.failure() {
            return Self::failed(occasion, &format!("the hook `{name}` gave no answer: {why}"));
        }
        let stdout = run.stdout.trim();
        let is_object = stdout.starts_with('{') && stdout.ends_with('}');
        let parsed = is_object.then(|| serde_json::from_str::<Map<String, Value>>(stdout));
        let code = match run.end {
            HookEnd::Exited(code) => code,
            _ => 0,
        };
        match parsed {
            Some(Ok(map)) => {
                let mut answer = Self::default();
                if code == 2 {
                    answer.deny(&error_text(run, name));
                }
                answer.object(occasion, &map);
                answer
            }
            // Text that looks like an answer and cannot be read must not count as a yes.
            _ if occasion.decides() && code != 2 && (run.is_cut || stdout.contains('{')) => Self::failed(
                occasion,
                &format!("the hook `{name}` gave an answer that is not valid JSON"),
            ),
            Some(Err(error)) if code != 2 => {
                Self::failed(occasion, &format!("the hook `{name}` gave invalid JSON: {error}"))
            }
            _ => Self::plain(occasion, name, code, run),
        }
    }

    /// Reads the answer of a run that printed no JSON.
    fn plain(occasion: Occasion, name: &str, code: i32, run: &HookOutput) -> Self {
        let mut answer = Self::default();
        match code {
            0 if occasion.takes_plain_text() && !run.stdout.trim().is_empty() => {
                answer.context.push(limited(run.stdout.trim()));
            }
            0 => {}
            2 => answer.deny(&error_text(run, name)),
            code => answer.messages.push(format!(
                "the hook `{name}` failed with exit code {code}{}",
                after_colon(run.stderr.trim())
            )),
        }
        answer
    }

    /// The answer of a hook that gave none.
    fn failed(occasion: Occasion, why: &str) -> Self {
        let mut answer = Self::default();
        if occasion.decides() {
            answer.choice = HookChoice::Ask;
            answer.reason = why.to_owned();
        } else {
            answer.messages.push(why.to_owned());
        }
        answer
    }

    fn deny(&mut self, reason: &str) {
        self.choice = HookChoice::Deny;
        self.reason = limited(reason);
    }

    fn object(&mut self, occasion: Occasion, map: &Map<String, Value>) {
        let text = |map: &Map<String, Value>, name: &str| {
            let text = map.get(name).and_then(Value::as_str);
            text.filter(|text| !text.trim().is_empty()).map(limited)
        };
        let reason = text(map, "reason");
        match map.get("decision").and_then(Value::as_str) {
            Some("block" | "deny") => self.deny(reason.as_deref().unwrap_or("a hook blocked it")),
            Some("approve" | "allow") if occasion.decides() => self.choose(HookChoice::Allow, reason),
            Some("ask") if occasion.decides() => self.choose(HookChoice::Ask, reason),
            Some("approve" | "allow" | "ask") => {}
            _ => self.unknown(occasion, map.get("decision")),
        }
        if map.get("continue") == Some(&Value::Bool(false)) {
            self.stop = Some(text(map, "stopReason").unwrap_or_else(|| "a hook stopped it".to_owned()));
        }
        self.messages.extend(text(map, "systemMessage"));
        let Some(specific) = map.get("hookSpecificOutput").and_then(Value::as_object) else {
            self.unknown(occasion, map.get("hookSpecificOutput"));
            return;
        };
        self.context.extend(text(specific, "additionalContext"));
        if occasion == Occasion::PreToolUse {
            let reason = text(specific, "permissionDecisionReason");
            match specific.get("permissionDecision").and_then(Value::as_str) {
                Some("deny") => self.deny(reason.as_deref().unwrap_or("a hook denied it")),
                Some("allow") => self.choose(HookChoice::Allow, reason),
                Some("ask" | "defer") => self.choose(HookChoice::Ask, reason),
                _ => self.unknown(occasion, specific.get("permissionDecision")),
            }
            self.input = specific
                .get("updatedInput")
                .filter(|input| !input.is_null())
                .cloned();
        }
        if occasion == Occasion::PermissionRequest
            && let Some(decision) = specific.get("decision").and_then(Value::as_object)
        {
            match decision.get("behavior").and_then(Value::as_str) {
                Some("allow") => self.choose(HookChoice::Allow, None),
                Some("deny") => {
                    let reason = text(decision, "message");
                    self.deny(reason.as_deref().unwrap_or("a hook denied it"));
                    if decision.get("interrupt") == Some(&Value::Bool(true)) {
                        self.stop = Some(self.reason.clone());
                    }
                }
                _ => {}
            }
        }
        if occasion == Occasion::PostToolUse {
            let output = specific
                .get("updatedToolOutput")
                .or_else(|| specific.get("updatedMCPToolOutput"));
            self.output = output
                .filter(|output| !output.is_null())
                .map(|output| match output {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
        }
    }

    /// Asks if a hook decided something that cannot be understood: it may have meant no.
    fn unknown(&mut self, occasion: Occasion, decision: Option<&Value>) {
        let Some(decision) = decision.filter(|decision| occasion.decides() && !decision.is_null()) else {
            return;
        };
        let shown = match decision {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let shown: String = shown.chars().take(60).collect();
        let reason = format!("a hook answered with the unknown decision `{shown}`");
        self.choose(HookChoice::Ask, Some(reason));
    }

    /// Takes a decision, unless the hook already made a stronger one.
    fn choose(&mut self, choice: HookChoice, reason: Option<String>) {
        if choice > self.choice {
            self.choice = choice;
            self.reason = reason.unwrap_or_default();
        }
    }
}

/// The answers of several hooks as one: deny beats ask, and ask beats allow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Combined {
    /// The strongest decision.
    pub choice: HookChoice,
    /// Reasons of the hooks that made it.
    pub reasons: Vec<String>,
    /// Other arguments of the call, from the last hook that changed them.
    pub input: Option<Value>,
    /// Texts for the model, each with the name of its hook.
    pub context: Vec<(String, String)>,
    /// Text that takes the place of a call's output.
    pub output: Option<String>,
    /// Reason to end the turn.
    pub stop: Option<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
}

impl Combined {
    /// Adds the answer of a hook.
    pub fn add(&mut self, name: &str, answer: HookAnswer) {
        if answer.choice > self.choice {
            self.choice = answer.choice;
            self.reasons.clear();
        }
        if answer.choice == self.choice && !answer.reason.is_empty() {
            self.reasons.push(answer.reason);
        }
        self.input = answer.input.or(self.input.take());
        let context = answer.context.into_iter();
        self.context.extend(context.map(|text| (name.to_owned(), text)));
        self.output = answer.output.or(self.output.take());
        self.stop = self.stop.take().or(answer.stop);
        self.messages.extend(answer.messages);
    }

    /// Returns the reasons as one text.
    pub fn reason(&self) -> String {
        self.reasons.join("; ")
    }
}

fn error_text(run: &HookOutput, name: &str) -> String {
    match run.stderr.trim() {
        "" => format!("the hook `{name}` blocked it"),
        text => limited(text),
    }
}

fn after_colon(text: &str) -> String {
    let text: String = text.chars().take(300).collect();
    if text.is_empty() {
        text
    } else {
        format!(": {text}")
    }
}

/// Cuts a long text.
fn limited(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n[cut]", text.get(..end).unwrap_or_default()),
    }
}
