//! Programs that only read, with every option that is known to have no effect. Anything that is not declared
//! here is not a read.

mod files;
mod system;

use super::options::Grammar;

/// A program that only reads when it is given nothing but these options and operands.
pub(super) struct ReadProgram {
    pub(super) name: &'static str,
    pub(super) options: Grammar,
    pub(super) operands: Operands,
    pub(super) otherwise: Otherwise,
}

/// Operands with which a program only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Any,
    /// At most this many; a further one is an output file or a new setting.
    Most(usize),
    /// None that starts with this character.
    Without(char),
    /// Only those that start with this character.
    Only(char),
}

/// Judgement of arguments that are not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// No option of the program has an effect, so that words that are only known at run time are harmless.
    /// An option that is not declared makes the command a write.
    Harmless,
    /// Some option writes.
    Writes,
    /// Some option runs a command.
    Runs,
}

const fn row(
    name: &'static str,
    options: &'static str,
    operands: Operands,
    otherwise: Otherwise,
) -> ReadProgram {
    ReadProgram {
        name,
        options: Grammar(options),
        operands,
        otherwise,
    }
}

/// Returns the declaration of a program.
pub(super) fn find(program: &str) -> Option<&'static ReadProgram> {
    let program = ALIASES
        .iter()
        .find(|(alias, _)| *alias == program)
        .map_or(program, |(_, name)| *name);
    let mut rows = files::PROGRAMS.iter().chain(system::PROGRAMS);
    rows.find(|row| row.name == program)
}

/// Returns the names of all declared programs.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let rows = files::PROGRAMS.iter().chain(system::PROGRAMS);
    rows.map(|row| row.name)
        .chain(ALIASES.iter().map(|(alias, _)| *alias))
}

/// Programs with the options of another one.
const ALIASES: &[(&str, &str)] = &[
    ("dir", "ls"),
    ("vdir", "ls"),
    ("gls", "ls"),
    ("egrep", "grep"),
    ("fgrep", "grep"),
    ("ggrep", "grep"),
    ("zgrep", "grep"),
    ("fdfind", "fd"),
    ("batcat", "bat"),
    ("sha1sum", "sha256sum"),
    ("sha224sum", "sha256sum"),
    ("sha384sum", "sha256sum"),
    ("sha512sum", "sha256sum"),
    ("md5sum", "sha256sum"),
    ("b2sum", "sha256sum"),
    ("sum", "cksum"),
    ("bzcat", "zcat"),
    ("xzcat", "zcat"),
    ("base32", "base64"),
    ("whatis", "apropos"),
    ("false", "true"),
    ("users", "tty"),
    ("arch", "tty"),
    ("logname", "tty"),
    ("whoami", "tty"),
    ("tsort", "tty"),
    ("lsmod", "tty"),
    ("groups", "tty"),
    ("gstat", "stat"),
    ("expand", "unexpand"),
];
