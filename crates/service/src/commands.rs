//! Slash commands: one table of commands that describe themselves, and the context they run in.
//!
//! A session's own task runs them ([`CommandContext`]), so that a command never sees a half-finished turn:
//! commands that change the session are refused while a turn runs, read-only ones run at any time. No command
//! sends anything to a model.

mod agents;
mod checkpoint;
mod complete;
mod context;
mod cost;
mod cron;
mod defined;
mod extension;
mod goal;
mod help;
mod look;
mod model;
mod plan;
mod rewind;
mod session;
mod status;
mod table;
mod why;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use windlass_api::{
    Begin, Client, ClientError, CommandInfo, CommandSource, Event, Message, Part, SessionEvent, SessionInfo,
    command_line,
};
use windlass_core::log::{Durability, History, LogError, Store};

use self::complete::Complete;
pub(crate) use self::look::Look;
use self::table::COMMANDS;
use crate::environment::{Defined, DefinedCommand, FolderFiles, SessionEnv};
use crate::goal::Pursuit;
use crate::pins::Pins;
use crate::queue::Queue;
use crate::sink::Sink;
use crate::{Inner, Service, refused};

/// Result of a command.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) then: Then,
}

/// Follow-up action of a command.
pub(crate) enum Then {
    Nothing,
    Submit(Vec<Part>),
    Session(Box<SessionInfo>),
    Summarize,
    Shell(String),
    /// Let the user edit the text of a command.
    Edit {
        command: String,
        text: String,
    },
    /// Show the work towards the goal.
    Pursue,
    /// Run the commands of all claims again.
    Verify,
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

/// Reason a command was not carried out.
enum Stop {
    /// The syntax is wrong.
    Usage,
    /// The command has to wait for the running turn.
    Busy,
    /// A message for the user.
    Failed(String),
    /// Another part of the service refused.
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
    /// A command without arguments.
    #[rustfmt::skip]
    const fn plain(name: &'static str, help: &'static str, run: Handler) -> Self {
        let (aliases, arguments, complete): (&[&str], _, _) = (&[], "", Complete::Nothing);
        Self { name, aliases, arguments, help, complete, run }
    }

    /// A command that the subsystem of the same name carries out.
    #[rustfmt::skip]
    const fn of_extension(
        name: &'static str, aliases: &'static [&'static str], arguments: &'static str, help: &'static str,
        complete: &'static [&'static str],
    ) -> Self {
        let run: Handler = |cx, words| Box::pin(extension::extension(cx, words));
        Self { name, aliases, arguments, help, complete: Complete::Words(complete), run }
    }

    fn info(&self) -> CommandInfo {
        CommandInfo {
            name: self.name.to_owned(),
            aliases: self.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            arguments: self.arguments.to_owned(),
            help: self.help.to_owned(),
            source: CommandSource::BuiltIn,
        }
    }

    /// Returns the syntax of the command.
    fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// Returns the built-in command of this name.
fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| {
        std::iter::once(&command.name)
            .chain(command.aliases)
            .any(|own| own.eq_ignore_ascii_case(name))
    })
}

/// Returns the built-in commands.
pub(crate) fn built_in() -> Vec<CommandInfo> {
    COMMANDS.iter().map(Command::info).collect()
}

/// Arguments of a built-in command: words, and flags that start with `--`.
struct Words<'a> {
    /// Name of the command.
    command: &'static str,
    words: Vec<&'a str>,
    flags: Vec<&'a str>,
    /// The arguments as they were typed, including further lines.
    raw: &'a str,
}

impl<'a> Words<'a> {
    fn of(command: &'static str, arguments: &'a str) -> Self {
        let line = arguments.lines().next().unwrap_or_default();
        let (flags, words) = line
            .split_whitespace()
            .partition(|word| word.len() > 2 && word.starts_with("--"));
        Self {
            command,
            words,
            flags,
            raw: arguments,
        }
    }

    fn get(&self, index: usize) -> Option<&'a str> {
        self.words.get(index).copied()
    }

    /// Joins the words from this index on.
    fn rest(&self, from: usize) -> String {
        self.words.get(from..).unwrap_or_default().join(" ")
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Refuses more words than a command accepts, and unknown flags.
    fn check(&self, most: usize, flags: &[&str]) -> Result<(), Stop> {
        let fits = self.words.len() <= most && self.flags.iter().all(|flag| flags.contains(flag));
        fits.then_some(()).ok_or(Stop::Usage)
    }
}

/// Context in which the commands of a live session run: the values of the session that commands read and
/// change. The work of its task is out of reach.
pub(crate) struct CommandContext<'d> {
    pub(crate) inner: &'d Arc<Inner>,
    pub(crate) info: &'d mut SessionInfo,
    pub(crate) history: &'d mut Vec<Arc<Message>>,
    pub(crate) pursuit: &'d mut Pursuit,
    pub(crate) queue: &'d mut Queue,
    pub(crate) pins: &'d mut Pins,
    pub(crate) env: &'d mut dyn SessionEnv,
    pub(crate) sink: &'d Sink,
    /// True while a turn, a command of the user or a compaction runs.
    pub(crate) is_busy: bool,
}

impl CommandContext<'_> {
    /// Returns the files of the session's folder.
    fn files(&self) -> Result<Arc<dyn FolderFiles>, Stop> {
        let files = self.env.files();
        files.ok_or_else(|| Stop::Failed("the folder of this session is not here".to_owned()))
    }

    /// Lists the commands.
    pub(crate) fn catalog(&mut self) -> Vec<CommandInfo> {
        let defined = self.defined();
        let mut all = built_in();
        all.extend(defined.commands.iter().map(defined::info));
        all
    }

    /// Returns the usable commands that files define. Built-in names take precedence, which is reported.
    fn defined(&mut self) -> Defined {
        let mut defined = self.env.defined();
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
            let text = "this is not a command: commands start with a slash and a word, as in /help";
            return Err(ClientError::CommandUsage(text.to_owned()));
        };
        let Some(command) = find(parsed.name) else {
            let defined = self.defined().commands;
            return match defined
                .iter()
                .find(|command| command.name.eq_ignore_ascii_case(parsed.name))
            {
                Some(DefinedCommand {
                    runs_in: Some(subsystem),
                    name,
                    ..
                }) => {
                    let arguments = format!("/{name} {}", parsed.arguments);
                    let outcome = extension::extension(self, &Words::of(subsystem, &arguments)).await;
                    outcome.map_err(|stop| self.refusal(stop, name, name))
                }
                Some(command) => Ok(defined::expand(command, parsed.arguments)),
                None if parsed.name.contains(':') => {
                    // MCP-6: `/server:prompt` is a prompt of an MCP server.
                    let words = format!("prompt {} {}", parsed.name, parsed.arguments);
                    let outcome = extension::extension(self, &Words::of("mcp", &words)).await;
                    outcome.map_err(|stop| match stop {
                        Stop::Failed(text) if text.starts_with("MCP server") => ClientError::Command(text),
                        _ => ClientError::CommandUsage(unknown(parsed.name, &defined)),
                    })
                }
                None => Err(ClientError::CommandUsage(unknown(parsed.name, &defined))),
            };
        };
        let words = Words::of(command.name, parsed.arguments);
        let outcome = (command.run)(self, &words).await;
        outcome.map_err(|stop| self.refusal(stop, command.name, &command.usage()))
    }

    fn refusal(&self, stop: Stop, command: &str, usage: &str) -> ClientError {
        match stop {
            Stop::Usage => ClientError::CommandUsage(format!("write it as {usage}")),
            Stop::Busy => ClientError::CommandBusy {
                session: self.info.id.clone(),
                command: command.to_owned(),
            },
            Stop::Failed(text) => ClientError::Command(text),
            Stop::Client(error) => error,
        }
    }

    /// Refuses to continue while a turn runs.
    fn wait_for_turn(&self) -> Result<(), Stop> {
        if self.is_busy { Err(Stop::Busy) } else { Ok(()) }
    }

    /// Starts a new session and switches to it. Refused while a turn runs: nobody would see its output or its
    /// permission requests.
    async fn instead(&self, begin: Begin) -> Result<SessionInfo, Stop> {
        self.wait_for_turn()?;
        let begin = Begin::Instead {
            of: self.info.id.clone(),
            begin: Box::new(Begin::As {
                user: self.info.user.clone(),
                begin: Box::new(begin),
            }),
        };
        Ok(self.service().begin(begin).await?)
    }

    fn service(&self) -> Service {
        Service::of(self.inner)
    }

    fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Returns the session as it is in the store.
    async fn stored_info(&self) -> Result<SessionInfo, Stop> {
        let id = &self.info.id;
        let info = self.store().get(id).await?;
        info.ok_or_else(|| Stop::Client(ClientError::Unknown(id.clone())))
    }

    /// Moves the conversation back, or forward again, to its state after an entry.
    async fn rewind(&mut self, to: u64) -> Result<(), LogError> {
        let event = Event::Session(SessionEvent::Rewind { to });
        self.sink.store(vec![event], Durability::Disk).await?;
        let entries = self.store().entries(&self.info.id, 0, usize::MAX).await?;
        *self.history = History::read(&entries).into_messages();
        self.pursuit.reread(&entries);
        Ok(())
    }
}

/// Returns the error for an unknown command, with the nearest name.
fn unknown(name: &str, defined: &[DefinedCommand]) -> String {
    let own = COMMANDS
        .iter()
        .flat_map(|command| std::iter::once(&command.name).chain(command.aliases));
    let all = own
        .copied()
        .chain(defined.iter().map(|command| command.name.as_str()));
    let hint = match nearest(name, all) {
        Some(near) => format!("did you mean /{near}? /help lists all"),
        None if name == "config" => "`windlass config show` prints the settings; /help lists all".to_owned(),
        None => "/help lists all".to_owned(),
    };
    format!("there is no command /{name}; {hint}")
}

/// Returns the intended name, if one is close enough: an incomplete or a mistyped one.
fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = &*name.to_ascii_lowercase();
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
