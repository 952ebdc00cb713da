//! Shell built-ins that run other commands or change how later ones run.

use windlass_core::tool::Category;

use super::options::{self, Grammar};
use super::reader::{Directory, Reader};
use super::word::Word;

/// Built-ins that only print, wait, or control their own shell.
const QUIET: &[&str] = &[
    ":",
    "true",
    "false",
    "echo",
    "pwd",
    "exit",
    "return",
    "break",
    "continue",
    "shift",
    "wait",
    "jobs",
    "umask",
    "times",
    "type",
    "test",
    "[",
    "dirs",
    "ulimit",
    "caller",
    "logout",
    "getopts",
    "disown",
    "fg",
    "bg",
    "set",
    "help",
    "let",
    "read",
    "printf",
    "unset",
    "local",
    "declare",
    "typeset",
    "export",
    "readonly",
    "mapfile",
    "readarray",
];

/// Built-ins that run or load code that is not visible in the command.
const HIDING: &[&str] = &[
    "alias", "unalias", "bind", "compgen", "complete", "compopt", "coproc", "enable", "fc", "history",
    "shopt",
];

/// Reads a built-in; returns true if the program is one.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    match program {
        "eval" => evaluate(reader, arguments, via),
        "source" | "." => source(reader, arguments),
        "exec" => executed(reader, arguments, "-c -l -a:", via),
        "builtin" => executed(reader, arguments, "", via),
        "command" if arguments.first().is_some_and(is_query) => {}
        "command" => executed(reader, arguments, "-p", via),
        "trap" => trap(reader, arguments, via),
        "cd" | "pushd" | "popd" => moves(reader, program, arguments),
        "hash"
            if arguments
                .iter()
                .any(|word| word.starts_with('-') || word.may_be_option()) =>
        {
            hides(reader, "hash");
        }
        "hash" => {}
        "kill" => reader.raise(Category::Admin),
        "shopt"
            if arguments
                .iter()
                .all(|word| word.fixed().is_some_and(is_harmless_shopt)) => {}
        _ if HIDING.contains(&program) => hides(reader, program),
        _ if QUIET.contains(&program) => quiet(reader, program, arguments),
        _ => return false,
    }
    true
}

fn is_query(word: &Word) -> bool {
    matches!(word.fixed(), Some("-v" | "-V" | "-pv" | "-vp"))
}

fn is_harmless_shopt(word: &str) -> bool {
    matches!(
        word,
        "-s" | "-u" | "-q" | "nullglob" | "globstar" | "dotglob" | "failglob" | "nocaseglob" | "lastpipe"
    )
}

fn hides(reader: &mut Reader<'_>, what: &str) {
    reader.refuse(
        "shell.hidden_code",
        format!("`{what}` changes the meaning of later commands, so they cannot be checked. Leave it out."),
    );
}

fn unseen(reader: &mut Reader<'_>, what: &str, source: &str) {
    let short: String = source.chars().take(60).collect();
    reader.refuse(
        "shell.hidden_code",
        format!(
            "the code that `{what}` would run in `{short}` is only known at run time. Write the command out."
        ),
    );
}

/// Joins known words into a text for the shell.
pub(super) fn joined(words: &[Word]) -> Result<String, &Word> {
    let mut parts = Vec::new();
    for word in words {
        parts.push(word.fixed().ok_or(word)?);
    }
    Ok(parts.join(" "))
}

fn evaluate(reader: &mut Reader<'_>, arguments: &[Word], via: &[String]) {
    let arguments = match arguments.first().and_then(Word::fixed) {
        Some("--") => arguments.get(1..).unwrap_or_default(),
        _ => arguments,
    };
    match joined(arguments) {
        Ok(text) => reader.read(&text, via),
        Err(word) => unseen(reader, "eval", word.source()),
    }
}

fn source(reader: &mut Reader<'_>, arguments: &[Word]) {
    let file = arguments.iter().find(|word| word.fixed() != Some("--"));
    match file.map(|word| (word.fixed(), word)) {
        Some((Some(path), _)) if !is_stream(path) => reader.raise(Category::Write),
        Some((_, word)) => unseen(reader, "source", word.source()),
        None => {}
    }
}

/// Returns true if a path is a stream, a device or a process file, whose content is not known.
pub(super) fn is_stream(path: &str) -> bool {
    path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")
}

fn executed(reader: &mut Reader<'_>, arguments: &[Word], options: &'static str, via: &[String]) {
    match options::parse(Grammar(options), arguments) {
        Ok((_, rest)) => reader.simple(rest.to_vec(), Vec::new(), via),
        Err(word) => reader.unknown_program(&word),
    }
}

fn trap(reader: &mut Reader<'_>, arguments: &[Word], via: &[String]) {
    let arguments = match arguments.first().and_then(Word::fixed) {
        Some("--") => arguments.get(1..).unwrap_or_default(),
        _ => arguments,
    };
    match arguments.first().map(|word| (word.fixed(), word)) {
        Some((Some("-" | "-l" | "-p" | ""), _)) | None => {}
        Some((Some(text), _)) => reader.read(text, via),
        Some((None, word)) => unseen(reader, "trap", word.source()),
    }
}

fn moves(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    let to = arguments
        .iter()
        .find(|word| !matches!(word.fixed(), Some("-P" | "-L" | "--" | "-e")));
    let known = match to {
        None if program == "cd" => Some("~"),
        Some(word) if program != "popd" => word.fixed().filter(|path| !path.starts_with(['-', '+'])),
        _ => None,
    };
    let below = program != "popd" && to.and_then(Word::value).is_some_and(is_below);
    let directory = if below {
        Directory::Below
    } else {
        Directory::Elsewhere
    };
    reader.moves(directory, known);
}

/// Returns true if a path stays below the directory, links aside.
pub(super) fn is_below(path: &str) -> bool {
    !path.starts_with(['/', '~', '-', '+']) && !path.is_empty() && path.split('/').all(|part| part != "..")
}

fn quiet(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    match program {
        "export" | "declare" | "typeset" | "readonly" | "local" => declare(reader, program, arguments),
        "read" | "getopts" | "unset" | "mapfile" | "readarray" => {
            // An index in a name is evaluated.
            reader.evaluates = true;
            for word in arguments {
                match word.fixed() {
                    Some(option) if option.starts_with("-C") => hides(reader, program),
                    Some(name) if !name.starts_with('-') => reader.assigned(&format!("{name}=?")),
                    Some(_) => {}
                    None => hides(reader, program),
                }
            }
        }
        "printf" => {
            let [first, rest @ ..] = arguments else { return };
            let text = first.prefix();
            if first.may_be_option() {
                reader.raise(Category::Write);
            }
            let Some(attached) = text.strip_prefix("-v") else {
                return;
            };
            let name = if attached.is_empty() {
                rest.first().and_then(Word::fixed)
            } else {
                Some(attached)
            };
            reader.evaluates = true;
            match name {
                Some(name) => reader.assigned(&format!("{name}=?")),
                None => hides(reader, program),
            }
        }
        "let" => reader.evaluates = true,
        "test" | "[" => {
            // `test` evaluates nothing except the index of `-v`.
            reader.evaluates |= arguments.iter().any(|word| word.fixed() == Some("-v"));
        }
        _ => {}
    }
}

fn declare(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    for word in arguments {
        let text = word.prefix();
        if let Some(options) = text.strip_prefix(['-', '+']) {
            // A reference is an alias of another name, and a number is evaluated.
            if options.contains('n') && program != "export" {
                hides(reader, &format!("{program} {text}"));
            }
            reader.evaluates |= options.contains(['i', 'a', 'A']);
        } else if text.is_empty() && word.value().is_none() {
            hides(reader, program);
        } else if text.contains('=') {
            reader.assigned(text);
        } else if word.value().is_none() {
            hides(reader, program);
        }
    }
}
