//! Slash commands.

use std::borrow::Cow;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, ClientError, EventStream, MessageId, Part, SessionId, SessionInfo};

/// Slash commands. None of them reaches a model.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Returns all commands: the built-in ones, then the user's and the project's.
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo>;

    /// Returns the completions of `line`, each a whole line that replaces it. Empty if there are none.
    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String>;

    /// Runs a command line, including the slash. Must not send anything to a model; the front end does what
    /// [`Follow`] asks for.
    ///
    /// # Errors
    /// When there is no such command, its arguments are wrong, or a turn runs. Then nothing was changed.
    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError>;
}

/// Description of a command for help and menus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// Other names of the command.
    pub aliases: Vec<String>,
    /// Syntax of the arguments, such as `[list|show N]`; empty if there are none.
    pub arguments: String,
    /// Description in one line.
    pub help: String,
    /// Origin of the command.
    pub source: CommandSource,
}

/// Origin of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandSource {
    /// Built into Windlass.
    BuiltIn,
    /// Defined by a file of the user.
    User,
    /// Defined by a file of the project, which the user trusts.
    Project,
}

/// Result of a command.
#[derive(Serialize, Deserialize)]
pub struct CommandReply {
    /// Plain text, or Markdown if it is long. It may contain untrusted text, so a terminal must sanitize it.
    pub text: String,
    /// Next action of the front end.
    pub follow: Follow,
}

/// Action of the front end after a command.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Follow {
    /// Do nothing.
    Nothing,
    /// Submit this as the user's input: the text of a command that a file defines.
    Submit(Vec<Part>),
    /// Continue in this session.
    Session(Box<SessionInfo>),
    /// Show these events of a running operation. In JSON it has no data: the events are sent separately, and
    /// a deserialized stream is empty.
    Watch(#[serde(skip)] EventStream),
    /// Let the user edit a text, and send it after the command. A front end that cannot do so shows the text.
    Edit {
        /// Command that takes the edited text.
        command: String,
        /// The text as it is now.
        text: String,
    },
    /// Exit.
    Leave,
}

/// A parsed command line. Can be deserialized only from text that lives as long, and without escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine<'a> {
    /// Name without the slash.
    pub name: &'a str,
    /// Arguments, trimmed.
    pub arguments: &'a str,
}

/// Parses a command line. A command starts with a slash and a whole word of letters, digits, `_`, `-` and `:`;
/// `/etc/hosts is odd`, `//x` and a line that starts with a space are text. Case does not matter.
pub fn command_line(input: &str) -> Option<CommandLine<'_>> {
    let line = input.strip_prefix('/')?;
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ':');
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    (begins && name.chars().all(fits)).then(|| CommandLine {
        name,
        arguments: arguments.trim(),
    })
}

/// Returns the command line of an input: a command unchanged, text after a `!` as a shell command, and a bare
/// `exit` or `quit` as `/exit`. `None` for input that goes to a model.
pub fn typed_command(input: &str) -> Option<Cow<'_, str>> {
    if let Some(command) = input.strip_prefix('!') {
        let line = format!("/shell {}", command.trim());
        return Some(Cow::Owned(line.trim_end().to_owned()));
    }
    if ["exit", "quit"]
        .iter()
        .any(|word| input.trim().eq_ignore_ascii_case(word))
    {
        return Some(Cow::Borrowed("/exit"));
    }
    command_line(input).map(|_| Cow::Borrowed(input))
}

/// Prefix of the ids of user commands.
const OWN: &str = "own-";

/// Returns the call id of a command that the user ran, derived from the message that reports it to the model.
pub fn own_call(message: &MessageId) -> CallId {
    CallId::from(format!("{OWN}{message}"))
}

/// Returns true if a call is a command that the user ran.
pub fn is_own_call(call: &CallId) -> bool {
    call.as_str().starts_with(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CMD-2: an input means the same in every front end; a `!` is always a command of the user.
    #[test]
    fn typed_text_means_the_same_everywhere() {
        let cases = [
            ("/help cost", Some("/help cost")),
            ("!ls -la", Some("/shell ls -la")),
            ("!  make test ", Some("/shell make test")),
            ("!", Some("/shell")),
            (" !ls", None),
            ("hello!", None),
            ("/Help", Some("/Help")),
            ("exit", Some("/exit")),
            ("Quit ", Some("/exit")),
            ("exit the loop", None),
        ];
        for (input, expected) in cases {
            assert_eq!(typed_command(input).as_deref(), expected, "{input:?}");
        }
    }

    /// CMD-2: whole words decide what is a command, in one place for every front end; everything else is
    /// text.
    #[test]
    fn commands_are_told_from_text() {
        let cases = [
            ("/help", Some(("help", ""))),
            ("/help  cost ", Some(("help", "cost"))),
            ("/git:commit a  b", Some(("git:commit", "a  b"))),
            ("/do_it-2\nmore\nlines", Some(("do_it-2", "more\nlines"))),
            ("/etc/hosts is odd", None),
            ("//x", None),
            (" /help", None),
            ("/", None),
            ("/ help", None),
            ("/2fast", None),
            ("/Help", Some(("Help", ""))),
            ("/help, please", None),
            ("help", None),
            ("", None),
        ];
        for (input, expected) in cases {
            let found = command_line(input).map(|line| (line.name, line.arguments));
            assert_eq!(found, expected, "{input:?}");
        }
    }
}
