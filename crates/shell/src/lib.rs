//! Analyses a shell command without running it: the programs it would start, the files it would write, and
//! whether it is refused.
//!
//! [`analyse`] walks the syntax tree of bash. It looks behind quoting, wrappers (`env`, `xargs`, `find
//! -exec`, `sh -c`) and substitutions, and errs on the side of refusing: a program whose name is only known
//! at run time, text that two parsers understand differently, and text too large to check are all refused
//! with a message that says what to write instead.
//!
//! ```
//! use windlass_core::tool::Category;
//! use windlass_shell::{Blocklist, analyse};
//!
//! let reading = analyse("git log | head -3", &Blocklist::default());
//! assert_eq!(reading.category, Category::Read);
//! assert_eq!(reading.pieces(), ["git log", "head -3"]);
//!
//! let hidden = analyse("ls | xargs env /bin/r\"m\" -rf", &Blocklist::default());
//! assert!(hidden.refusal.is_some());
//! ```
//!
//! The analysis helps the model and the person who reads an approval request. It is not the sandbox: an
//! allowed program may start others, and only the sandbox sees those.

mod awk;
mod blocked;
mod blocklist;
mod builtins;
mod category;
mod effects;
mod environment;
mod evaluation;
mod find;
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod git_settings;
mod git_table;
mod interpreters;
mod launchers;
mod local;
mod needs;
mod options;
mod packages;
mod place;
mod programs;
mod reader;
mod readers;
mod reasons;
mod regions;
mod sed;
mod source;
mod spelling;
mod table;
mod tree;
mod walk;
mod word;
mod wrappers;

use windlass_core::tool::Category;

pub use self::blocked::{ListedCommand, Target};
pub use self::blocklist::{BLOCKED_COMMANDS, Blocklist};
use self::reader::Reader;
pub use self::word::Word;

/// Effects of a command line, as far as they can be known without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, including those inside substitutions and behind wrappers, in the order of the
    /// text.
    pub commands: Vec<SimpleCommand>,
    /// Every redirection to or from a file.
    pub redirects: Vec<Redirect>,
    /// Permission category of the whole command. `Admin` when the command is refused.
    pub category: Category,
    /// Reason the command must not run.
    pub refusal: Option<Refusal>,
    /// The commands that the configuration lists, if they are the only reason for the refusal: a person may
    /// allow them.
    pub blocked: Vec<ListedCommand>,
    /// Folders that parts of the command run in, besides the one it starts in; `None` if only known at run time.
    pub folders: Vec<Option<String>>,
    write_targets: Vec<String>,
    foreign: Vec<String>,
    repositories: Vec<String>,
    leaves: bool,
    own_network: bool,
}

/// One program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Base name of the program; `None` if it is only known at run time.
    pub program: Option<String>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// The command in a canonical spelling, independent of its quoting. Rules match this text.
    pub text: String,
    /// Wrappers around the command, outermost first.
    pub via: Vec<String>,
    /// Assignments before the command, as `NAME=value`.
    pub assignments: Vec<String>,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Effect on the file.
    pub kind: RedirectKind,
    /// The file; `None` if it is only known at run time.
    pub target: Option<String>,
}

/// Effect of a redirection on its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>|`, `&>`, `<>`
    Write,
    /// `>>`, `&>>`
    Append,
}

/// Reason a command must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the rule, such as `security.blocked_commands` or `shell.unparsed`.
    pub rule: String,
    /// Message for the model.
    pub message: String,
}

impl Analysis {
    /// Returns the texts that permission rules must cover, each on its own: every simple command (the wrapped
    /// one as well as its wrapper), every assignment that could change the effect of a command, and every
    /// redirection that writes to a file.
    pub fn pieces(&self) -> Vec<String> {
        let mut pieces = Vec::new();
        for command in &self.commands {
            for assignment in &command.assignments {
                if !environment::is_harmless(assignment) {
                    pieces.push(assignment.clone());
                }
            }
            if !command.words.is_empty() {
                pieces.push(command.text.clone());
            }
        }
        for redirect in &self.redirects {
            let sign = match redirect.kind {
                RedirectKind::Read => continue,
                RedirectKind::Write => ">",
                RedirectKind::Append => ">>",
            };
            match &redirect.target {
                Some(target) if is_sink(target) => {}
                Some(target) => pieces.push(format!("{sign} {}", word::quoted(target))),
                None => pieces.push(format!("{sign} ?")),
            }
        }
        let mut seen = std::collections::HashSet::new();
        pieces.retain(|piece| seen.insert(piece.clone()));
        pieces
    }

    /// Returns the files that the command names as its output: targets of redirections and the path arguments
    /// of commands such as `cp`, `mv` or `tee`. A relative path is relative to the folder that the command starts
    /// in, unless it comes after a `cd` to a folder that is only known at run time.
    pub fn write_targets(&self) -> Vec<&str> {
        self.write_targets.iter().map(String::as_str).collect()
    }

    /// Returns the folders in which `git` reads a repository, relative to the directory of the command; an
    /// empty one is that directory. Reading runs the programs that the settings of the repository name, so
    /// the command is a read only if they name none.
    pub fn repositories(&self) -> &[String] {
        &self.repositories
    }
}

/// Analyses a command. Never fails: a command that cannot be parsed is refused.
pub fn analyse(command: &str, blocklist: &Blocklist) -> Analysis {
    let facts = SandboxFacts {
        holds: &|_| false,
        own_network: false,
    };
    analyse_in(command, blocklist, &facts)
}

/// Facts about the sandbox in which a command will run.
pub struct SandboxFacts<'s> {
    /// Returns true for a folder outside the one that the command starts in, if work there needs no more access. Its
    /// path is absolute, or relative to the folder that the command starts in.
    pub holds: &'s dyn Fn(&str) -> bool,
    /// True if commands have a network of their own, in which only they themselves listen.
    pub own_network: bool,
}

/// Analyses a command like [`analyse`], with facts about its sandbox.
pub fn analyse_in(command: &str, blocklist: &Blocklist, facts: &SandboxFacts<'_>) -> Analysis {
    let mut reader = Reader::new(blocklist, facts);
    reader.read(command, &[]);
    reader.finish()
}

/// Returns true for files that discard what is written to them, or are streams of the command.
fn is_sink(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr") || is_descriptor_file(path)
}

fn is_descriptor_file(path: &str) -> bool {
    path.strip_prefix("/dev/fd/")
        .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Returns true for devices other than the streams of the command and sources of bytes.
fn is_device(path: &str) -> bool {
    let plain = [
        "/dev/stdin",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/shm",
    ];
    // `//dev/tty` and `/./dev/tty` are the same file.
    let path = &*place::logical(path);
    path.starts_with("/dev/") && !is_sink(path) && !plain.contains(&path) && !path.starts_with("/dev/shm/")
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "read_tests.rs"]
mod read_tests;

#[cfg(test)]
#[path = "launcher_tests.rs"]
mod launcher_tests;

#[cfg(test)]
#[path = "expansion_tests.rs"]
mod expansion_tests;
