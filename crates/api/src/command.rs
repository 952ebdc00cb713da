//! What people type after a slash.

use std::borrow::Cow;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{CallId, ClientError, EventStream, MessageId, Part, SessionId, SessionInfo};

/// The commands that people type after a slash. None of them reaches a model by itself.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Every command there is now: the built-in ones, then those of the user and of the project.
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo>;

    /// The lines that `line` may become, each whole: a front end replaces what was typed with one of them. Empty when
    /// there is nothing to add.
    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String>;

    /// Carries out a command line, the slash included. Must not send anything to a model; what [`Follow`] asks for is
    /// for the front end to do.
    ///
    /// # Errors
    /// When there is no such command, it is used wrongly, or it has to wait for a running turn. Nothing was changed then.
    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError>;
}

/// A command as help and menus show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// Other names for the same.
    pub aliases: Vec<String>,
    /// What may follow it, such as `[list|show N]`; empty when nothing does.
    pub arguments: String,
    /// What it does, in a line.
    pub help: String,
    /// Who made it.
    pub source: CommandSource,
}

/// Who made a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandSource {
    /// Windlass.
    BuiltIn,
    /// The user, with a file.
    User,
    /// The project, with a file that the user trusts.
    Project,
}

/// What a command came to.
#[derive(Serialize, Deserialize)]
pub struct CommandReply {
    /// For people: plain text, or Markdown where it is long. It may carry foreign text, so a terminal must clean it.
    pub text: String,
    /// What the front end does next.
    pub follow: Follow,
}

/// What the front end does after a command.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Follow {
    /// Nothing.
    Nothing,
    /// It submits this as the user's input: the text of a command that a file defines.
    Submit(Vec<Part>),
    /// It goes on in this session.
    Session(Box<SessionInfo>),
    /// Something runs, and these are its events. In JSON it has no data: the events are sent separately, and a
    /// deserialized stream is empty.
    Watch(#[serde(skip)] EventStream),
    /// It ends.
    Leave,
}

/// A line that is a command. Can be deserialized only from text that lives as long, and without escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine<'a> {
    /// The name, without the slash.
    pub name: &'a str,
    /// What follows it, without the white space around it.
    pub arguments: &'a str,
}

/// Whether an input is a command, and which one. A command begins with a slash and a whole word of small letters,
/// digits, `_`, `-` and `:`; `/etc/hosts is odd`, `//x` and a line that begins with a space are text.
pub fn command_line(input: &str) -> Option<CommandLine<'_>> {
    let line = input.strip_prefix('/')?;
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let fits = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '_' | '-' | ':')
    };
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    (begins && name.chars().all(fits)).then(|| CommandLine {
        name,
        arguments: arguments.trim(),
    })
}

/// What somebody typed, as a command line: a command as it is, and what follows a `!` as a command for the shell. `None`
/// for what goes to a model.
pub fn typed_command(input: &str) -> Option<Cow<'_, str>> {
    if let Some(command) = input.strip_prefix('!') {
        let line = format!("/shell {}", command.trim());
        return Some(Cow::Owned(line.trim_end().to_owned()));
    }
    command_line(input).map(|_| Cow::Borrowed(input))
}

/// What the ids of such calls begin with.
const OWN: &str = "own-";

/// The call of a command that the user ran, by the message that tells the model of it.
pub fn own_call(message: &MessageId) -> CallId {
    CallId::from(format!("{OWN}{message}"))
}

/// Whether a call is a command that the user ran.
pub fn is_own_call(call: &CallId) -> bool {
    call.as_str().starts_with(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CMD-2: what is typed means the same wherever it is typed; a `!` is always a command of one's own.
    #[test]
    fn typed_text_means_the_same_everywhere() {
        let cases = [
            ("/help cost", Some("/help cost")),
            ("!ls -la", Some("/shell ls -la")),
            ("!  make test ", Some("/shell make test")),
            ("!", Some("/shell")),
            (" !ls", None),
            ("hello!", None),
        ];
        for (input, expected) in cases {
            assert_eq!(typed_command(input).as_deref(), expected, "{input:?}");
        }
    }

    /// CMD-2: what is a command is decided by whole words, in one place for every front end; all else is text.
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
            ("/Help", None),
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
