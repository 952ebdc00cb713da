//! Text that the runtime adds to a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Message, Part, Role, Text};
use crate::text::boundary_before;

/// Maximum length of a fragment in bytes; the rest is cut.
pub const MAX_FRAGMENT: usize = 256 * 1024;

/// Marks the place where a fragment was cut.
const CUT: &str = "\n[cut]";

/// Text that the runtime adds to a conversation, with its source.
///
/// The variant of the part identifies the author of a text: the user's words are [`Part::Text`], whatever
/// they start with, and everything injected is a fragment. A model reads it in the form of
/// [`Fragment::encoded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fragment {
    /// Origin of the text.
    pub source: FragmentSource,
    /// Name that the source gives it: the heading of a fact, the name of a skill or a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The text, without the tags that enclose it in a request.
    pub text: String,
}

/// Origin of a [`Fragment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FragmentSource {
    /// The folder and the platform that the session works on.
    Environment,
    /// A reminder of the loop, such as open todos.
    Reminder,
    /// A prompt of the loop, sent without tags.
    Prompt,
    /// Output of a command that the user ran with `!`, sent without tags.
    UserCommand,
    /// The user's own words, carried over by a compaction.
    Quote,
    /// A note that names messages which a compaction removed, sent without tags.
    Reference,
    /// A fact that a compaction keeps: the goal, open todos, running processes.
    Fact,
    /// Recalled memory.
    Memory,
    /// The body of a skill.
    Skill,
    /// Output of a hook.
    Hook,
    /// The result of a sub-agent.
    Child,
    /// A resource of an MCP server that the user named.
    Resource,
}

impl Fragment {
    /// Creates a fragment. A text longer than [`MAX_FRAGMENT`] is cut and marked as such.
    pub fn new(source: FragmentSource, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > MAX_FRAGMENT {
            text.truncate(boundary_before(&text, MAX_FRAGMENT - CUT.len()));
            text.push_str(CUT);
        }
        Self {
            source,
            label: None,
            text,
        }
    }

    /// Sets the label.
    #[must_use]
    pub fn labeled(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Returns the text as a model reads it.
    pub fn encoded(&self) -> String {
        let Self { label, text, .. } = self;
        let named = |tag: &str| match label {
            Some(label) => format!("<{tag} name=\"{label}\">\n{text}\n</{tag}>"),
            None => format!("<{tag}>\n{text}\n</{tag}>"),
        };
        match self.source {
            FragmentSource::Environment => format!("<environment>\n{text}\n</environment>"),
            FragmentSource::Reminder => format!("<reminder>\n{text}\n</reminder>"),
            FragmentSource::Quote => format!("{QUOTE}{text}{QUOTE_END}"),
            FragmentSource::Fact => {
                let label = label.as_deref().unwrap_or_default();
                format!("{FACT}{label}\">\n{text}{FACT_END}")
            }
            FragmentSource::Prompt | FragmentSource::UserCommand | FragmentSource::Reference => text.clone(),
            FragmentSource::Memory => named("memory"),
            FragmentSource::Skill => named("skill"),
            FragmentSource::Hook => named("hook"),
            FragmentSource::Child => named("agent"),
            FragmentSource::Resource => named("resource"),
        }
    }
}

const QUOTE: &str = "<said_by_the_user>\n";
const QUOTE_END: &str = "\n</said_by_the_user>";
const FACT: &str = "<standing what=\"";
const FACT_END: &str = "\n</standing>";
const REFERENCE: &str = "<left_out ref=";

/// Converts a message of the first storage format, in which injected text was a text part recognized by its
/// start.
///
/// Only texts of exactly the form that the runtime wrote are converted, and only in the places where it put
/// them, so that words of the user that merely start alike become visible again. Returns true if anything
/// changed.
pub fn upgrade(message: &mut Message) -> bool {
    if message.role != Role::User {
        return false;
    }
    let is_summary = message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Compaction(_)));
    let is_alone = message.parts.len() == 1;
    let mut changed = false;
    for (place, part) in message.parts.iter_mut().enumerate() {
        let Part::Text(Text { text }) = part else { continue };
        let fragment = match () {
            () if is_summary => of_summary(text).or_else(|| environment(text)),
            () if place == 0 => environment(text).or_else(|| is_alone.then(|| reminder(text)).flatten()),
            () => None,
        };
        if let Some(fragment) = fragment {
            *part = Part::Context(fragment);
            changed = true;
        }
    }
    changed
}

fn environment(text: &str) -> Option<Fragment> {
    let inner = text
        .strip_prefix("<environment>\n")?
        .strip_suffix("\n</environment>")?;
    inner
        .starts_with("working directory: ")
        .then(|| Fragment::new(FragmentSource::Environment, inner))
}

fn reminder(text: &str) -> Option<Fragment> {
    let inner = text.strip_prefix("<reminder>\n")?.strip_suffix("\n</reminder>")?;
    Some(Fragment::new(FragmentSource::Reminder, inner))
}

/// Converts a text of a message that a compaction wrote. All of its texts were written by the runtime.
fn of_summary(text: &str) -> Option<Fragment> {
    if text.starts_with(REFERENCE) {
        return Some(Fragment::new(FragmentSource::Reference, text));
    }
    if let Some(words) = text
        .strip_prefix(QUOTE)
        .and_then(|rest| rest.strip_suffix(QUOTE_END))
    {
        return Some(Fragment::new(FragmentSource::Quote, words));
    }
    let (label, rest) = text.strip_prefix(FACT)?.split_once("\">\n")?;
    let inner = rest.strip_suffix(FACT_END)?;
    Some(Fragment::new(FragmentSource::Fact, inner).labeled(label))
}

#[cfg(test)]
#[path = "fragment_tests.rs"]
mod tests;
