//! Reads a shell command without running it: which programs it would start, what it would write, and whether that is
//! refused.
//!
//! [`analyse`] walks the syntax tree of bash. It looks behind quoting, wrappers (`env`, `xargs`, `find -exec`,
//! `sh -c`) and substitutions, and errs on the side of refusing: a program whose name is only known when the command
//! runs, text that two readings understand differently, and whatever is too large to check are all refused with a
//! text that says what to write instead.
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
//! It is a courtesy to the model and to whoever reads an approval, not the wall: a program that was allowed may start
//! others, and only the sandbox sees those.

mod blocklist;
mod builtins;
mod category;
mod environment;
mod find;
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod interpreters;
mod needs;
mod options;
mod programs;
mod reader;
mod source;
mod table;
mod tree;
mod walk;
mod word;
mod wrappers;

use windlass_core::tool::Category;

pub use self::blocklist::{BLOCKED_COMMANDS, Blocklist};
use self::reader::Reader;
pub use self::word::Word;

/// What a command line would do, as far as reading it can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, also the ones inside substitutions and behind wrappers, in the order of the text.
    pub commands: Vec<SimpleCommand>,
    /// Every redirection to or from a file.
    pub redirects: Vec<Redirect>,
    /// What the whole needs permission for. `Admin` when it is refused.
    pub category: Category,
    /// Why it must not run.
    pub refusal: Option<Refusal>,
    write_arguments: Vec<String>,
    changes_directory: bool,
}

/// One program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The base name of the program; `None` when only running the command would tell.
    pub program: Option<String>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// The command in one spelling, however it was quoted: what rules match.
    pub text: String,
    /// The wrappers it was found behind, outermost first.
    pub via: Vec<String>,
    /// The assignments in front of it, as `NAME=value`.
    pub assignments: Vec<String>,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// What happens to the file.
    pub kind: RedirectKind,
    /// The file; `None` when only running the command would tell.
    pub target: Option<String>,
}

/// What a redirection does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>|`, `&>`, `<>`
    Write,
    /// `>>`, `&>>`
    Append,
}

/// Why a command must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule, as `security.blocked_commands` or `shell.unparsed`.
    pub rule: String,
    /// What to tell the model.
    pub message: String,
}

impl Analysis {
    /// The texts that permission rules must cover, each on its own: every simple command, what is behind a wrapper as
    /// well as the wrapper, every assignment that could change what a command does, and every redirection that writes
    /// to a file.
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

    /// The files the command says it writes to: targets of redirections and the path arguments of commands such as
    /// `cp`, `mv` or `tee`. As written; a relative one is relative to wherever the command is by then, see
    /// [`Self::changes_directory`].
    pub fn write_targets(&self) -> Vec<&str> {
        let redirected = self.redirects.iter().filter_map(|redirect| {
            let target = redirect.target.as_deref()?;
            (redirect.kind != RedirectKind::Read && !is_sink(target)).then_some(target)
        });
        redirected
            .chain(self.write_arguments.iter().map(String::as_str))
            .collect()
    }

    /// Whether some of it may run in another directory than the one it starts in, so that its relative paths say
    /// little.
    pub fn changes_directory(&self) -> bool {
        self.changes_directory
    }
}

/// Reads a command. Never fails: what cannot be read is refused.
pub fn analyse(command: &str, blocklist: &Blocklist) -> Analysis {
    let mut reader = Reader::new(blocklist);
    reader.read(command, &[]);
    reader.finish()
}

/// Files that take what is written to them and keep nothing.
fn is_sink(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
