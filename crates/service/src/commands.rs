//! What people type after a slash: one table of commands that describe themselves, and the cx they are served at.
//!
//! A session's own task serves them ([`CommandContext`]), so that a command never meets a half-done turn: those that change the
//! session are refused while one runs, those that only look are served at any time. No command sends anything to a model.

mod checkpoint;
mod complete;
mod context;
mod cost;
mod defined;
mod goal;
mod help;
mod look;
mod model;
mod rewind;
mod session;
mod status;
mod table;
mod why;

use futures_util::future::BoxFuture;
use windlass_api::{Begin, Client, ClientError, CommandInfo, CommandSource, Part, SessionInfo, command_line};
use windlass_core::log::{LogError, Store};

use self::complete::Complete;
pub(crate) use self::look::Look;
use self::table::COMMANDS;
use crate::actor::SessionActor;
use crate::environment::{Defined, DefinedCommand};
use crate::{Service, refused};

/// What a command came to.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) then: Then,
}

/// What follows.
pub(crate) enum Then {
    Nothing,
    Submit(Vec<Part>),
    Session(Box<SessionInfo>),
    Summarize,
    Shell(String),
    Leave,
}

impl Said {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            then: Then::Nothing,
        }
    }
}

/// Why a command was not carried out.
enum Stop {
    /// It is not written so.
    Usage,
    /// It has to wait for the running turn.
    Busy,
    /// For people.
    Failed(String),
    /// Something else said no.
    Client(ClientError),
}

impl From<LogError> for Stop {
    fn from(error: LogError) -> Self {
        Self::Client(refused(error))
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

type Outcome = Result<Said, Stop>;

type Handler = for<'a, 'd> fn(&'a mut CommandContext<'d>, &'a Words<'a>) -> BoxFuture<'a, Outcome>;

/// A built-in command that describes itself.
struct Command {
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    complete: Complete,
    run: Handler,
}

impl Command {
    fn info(&self) -> CommandInfo {
        CommandInfo {
            name: self.name.to_owned(),
            aliases: self.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            arguments: self.arguments.to_owned(),
            help: self.help.to_owned(),
            source: CommandSource::BuiltIn,
        }
    }

    /// How it is written.
    fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// The built-in command of this name.
fn find(name: &str) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.name == name || command.aliases.contains(&name))
}

/// The built-in commands.
pub(crate) fn built_in() -> Vec<CommandInfo> {
    COMMANDS.iter().map(Command::info).collect()
}

/// What follows a built-in command on its line: words, and flags that begin with `--`.
struct Words<'a> {
    words: Vec<&'a str>,
    flags: Vec<&'a str>,
    /// All of it as it was typed, more lines included.
    raw: &'a str,
}

impl<'a> Words<'a> {
    fn of(arguments: &'a str) -> Self {
        let line = arguments.lines().next().unwrap_or_default();
        let (flags, words) = line
            .split_whitespace()
            .partition(|word| word.len() > 2 && word.starts_with("--"));
        Self {
            words,
            flags,
            raw: arguments,
        }
    }

    fn get(&self, index: usize) -> Option<&'a str> {
        self.words.get(index).copied()
    }

    /// The words from one on.
    fn rest(&self, from: usize) -> String {
        self.words.get(from..).unwrap_or_default().join(" ")
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Refuses more words than a command knows, and flags that it does not know.
    fn check(&self, most: usize, flags: &[&str]) -> Result<(), Stop> {
        let fits = self.words.len() <= most && self.flags.iter().all(|flag| flags.contains(flag));
        fits.then_some(()).ok_or(Stop::Usage)
    }
}

/// Where the commands of a live session are served.
pub(crate) struct CommandContext<'d> {
    session: &'d mut SessionActor,
    is_busy: bool,
}

impl<'d> CommandContext<'d> {
    /// The cx of a session that does nothing else.
    pub(crate) fn free(session: &'d mut SessionActor) -> Self {
        Self {
            session,
            is_busy: false,
        }
    }

    /// The cx of a session that runs a turn.
    pub(crate) fn busy(session: &'d mut SessionActor) -> Self {
        Self {
            session,
            is_busy: true,
        }
    }

    /// Lists the commands.
    pub(crate) fn catalog(&mut self) -> Vec<CommandInfo> {
        let defined = self.defined();
        let mut all = built_in();
        all.extend(defined.commands.iter().map(defined::info));
        all
    }

    /// The commands that files define and that can be called: a built-in name is not theirs, and that is said.
    fn defined(&mut self) -> Defined {
        let mut defined = self.session.env.defined();
        let Defined { commands, warnings } = &mut defined;
        let mut kept: Vec<DefinedCommand> = Vec::new();
        for command in commands.drain(..) {
            if find(&command.name).is_some() {
                warnings.push(format!(
                    "{}: not used, because /{} is a built-in command",
                    command.file, command.name
                ));
            } else if let Some(first) = kept.iter().find(|first| first.name == command.name) {
                warnings.push(format!(
                    "{}: not used, because {} defines /{} as well",
                    command.file, first.file, command.name
                ));
            } else {
                kept.push(command);
            }
        }
        *commands = kept;
        defined
    }

    pub(crate) async fn run(&mut self, line: &str) -> Result<Said, ClientError> {
        let Some(parsed) = command_line(line) else {
            let text = "this is not a command: one begins with a slash and a word, as in /help";
            return Err(ClientError::CommandUsage(text.to_owned()));
        };
        let Some(command) = find(parsed.name) else {
            let defined = self.defined().commands;
            return match defined.iter().find(|command| command.name == parsed.name) {
                Some(command) => Ok(defined::expand(command, parsed.arguments)),
                None => Err(ClientError::CommandUsage(unknown(parsed.name, &defined))),
            };
        };
        let words = Words::of(parsed.arguments);
        let outcome = (command.run)(self, &words).await;
        outcome.map_err(|stop| match stop {
            Stop::Usage => ClientError::CommandUsage(format!("write it as {}", command.usage())),
            Stop::Busy => ClientError::CommandBusy {
                session: self.session.info.id.clone(),
                command: command.name.to_owned(),
            },
            Stop::Failed(text) => ClientError::Command(text),
            Stop::Client(error) => error,
        })
    }

    /// Refuses to go on while a turn runs.
    fn wait_for_turn(&self) -> Result<(), Stop> {
        if self.is_busy { Err(Stop::Busy) } else { Ok(()) }
    }

    /// Begins another session, in which is gone on instead of in this one. Not while a turn runs here: nobody would see what
    /// it does, or what it asks.
    async fn instead(&self, begin: Begin) -> Result<SessionInfo, Stop> {
        self.wait_for_turn()?;
        let begin = Begin::Instead {
            of: self.session.info.id.clone(),
            begin: Box::new(begin),
        };
        Ok(self.service().begin(begin).await?)
    }

    fn service(&self) -> Service {
        Service::of(&self.session.inner)
    }

    fn store(&self) -> &dyn Store {
        &*self.session.inner.store
    }

    /// The session as it stands in the store.
    async fn info(&self) -> Result<SessionInfo, Stop> {
        let id = &self.session.info.id;
        let info = self.store().get(id).await?;
        info.ok_or_else(|| Stop::Client(ClientError::Unknown(id.clone())))
    }
}

/// That there is no such command, and which may be meant.
fn unknown(name: &str, defined: &[DefinedCommand]) -> String {
    let own = COMMANDS
        .iter()
        .flat_map(|command| std::iter::once(&command.name).chain(command.aliases));
    let all = own
        .copied()
        .chain(defined.iter().map(|command| command.name.as_str()));
    let hint = match nearest(name, all) {
        Some(near) => format!("did you mean /{near}? /help lists all"),
        None => "/help lists all".to_owned(),
    };
    format!("there is no command /{name}; {hint}")
}

/// The name that was meant, if one is near enough: begun and not ended, or mistyped.
fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = name.chars().count();
    let distance = |candidate: &str| {
        if letters >= 2 && candidate.starts_with(name) {
            return 0;
        }
        strsim::osa_distance(name, candidate)
    };
    let far = (letters / 3).clamp(1, 3);
    let near = all.map(|candidate| (distance(candidate), candidate));
    let near = near.filter(|(distance, _)| *distance <= far);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
