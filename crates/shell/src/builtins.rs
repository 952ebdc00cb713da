//! Shell built-ins that run other commands or change how later ones run.

use windlass_core::tool::Category;

use super::options::{self, Grammar};
use super::reader::Reader;
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

/// Built-ins that are read below.
const READ: &[&str] = &[
    "eval", "source", ".", "exec", "builtin", "command", "trap", "cd", "pushd", "popd", "hash", "kill",
    "shopt",
];

/// Options of `set` that do not change how later commands are parsed or run.
const PLAIN_SET: &[&str] = &[
    "errexit",
    "nounset",
    "pipefail",
    "xtrace",
    "verbose",
    "noglob",
    "noclobber",
    "errtrace",
    "functrace",
    "monitor",
    "notify",
];

/// Returns true if a name is a built-in.
pub(super) fn is_builtin(name: &str) -> bool {
    QUIET.contains(&name) || HIDING.contains(&name) || READ.contains(&name)
}

/// Reads a built-in; returns true if the program is one.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    match program {
        "eval" => evaluate(reader, arguments, via),
        "source" | "." => source(reader, arguments),
        "exec" => {
            // `exec -c` takes every variable away.
            let mut options = arguments.iter().take_while(|word| word.starts_with('-'));
            if options.any(|word| super::git::cluster(word, 'c')) {
                reader.raise(Category::Write);
            }
            executed(reader, arguments, "-c -l -a:", via);
        }
        "builtin" => executed(reader, arguments, "", via),
        "command" if arguments.first().is_some_and(is_query) => {}
        "command" => executed(reader, arguments, "-p", via),
        "trap" => trap(reader, arguments, via),
        "cd" | "pushd" | "popd" => moves(reader, program, arguments),
        "hash" => plain_options(reader, program, arguments, "-r -l -t -d"),
        "set" => set(reader, arguments),
        "wait" => plain_options(reader, program, arguments, "-n -f"),
        "jobs" => jobs(reader, arguments, via),
        "kill" if ends_own_jobs(reader, arguments) => reader.raise(Category::Write),
        "kill" => reader.raise(Category::Admin),
        "shopt"
            if arguments
                .iter()
                .all(|word| word.fixed().is_some_and(is_harmless_shopt)) => {}
        // Without options, it only prints.
        "history" if arguments.iter().all(is_number) => {}
        _ if HIDING.contains(&program) => hides(reader, program),
        _ if QUIET.contains(&program) => quiet(reader, program, arguments),
        _ => return false,
    }
    true
}

fn is_number(word: &Word) -> bool {
    word.fixed()
        .is_some_and(|text| text.chars().all(|c| c.is_ascii_digit()))
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
        Err(unclear) => reader.unknown_program(unclear.word()),
    }
}

/// Refuses a built-in with options that are not declared.
fn plain_options(reader: &mut Reader<'_>, program: &str, arguments: &[Word], options: &'static str) {
    if options::parse_all(Grammar(options), arguments, true).is_err() {
        hides(reader, program);
    }
}

/// `jobs -x` runs its operands.
fn jobs(reader: &mut Reader<'_>, arguments: &[Word], via: &[String]) {
    match options::parse(Grammar("-l -n -p -r -s -x"), arguments) {
        Ok((given, rest)) if given.iter().any(|option| option.name == "x") => {
            reader.simple(rest.to_vec(), Vec::new(), via);
        }
        Ok(_) => {}
        Err(_) => hides(reader, "jobs"),
    }
}

/// `set -k`, `set -o posix` and others change how later commands are read.
fn set(reader: &mut Reader<'_>, arguments: &[Word]) {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.fixed() else {
            if word.may_be_option() || word.is_glob() {
                hides(reader, "set");
            }
            return;
        };
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            return;
        };
        if matches!(text, "--" | "-") {
            return;
        }
        let named = letters.ends_with('o');
        let plain = letters
            .trim_end_matches('o')
            .chars()
            .all(|c| "euxvfCETmb".contains(c));
        let name = named.then(|| {
            words
                .next()
                .map_or("pipefail", |word| word.fixed().unwrap_or_default())
        });
        if !plain || name.is_some_and(|name| !PLAIN_SET.contains(&name)) {
            return hides(reader, &format!("set {text}"));
        }
    }
}

/// Returns true if `kill` only ends jobs that this command line started, asks whether a process is there, or lists
/// signals.
pub(super) fn ends_own_jobs(reader: &Reader<'_>, arguments: &[Word]) -> bool {
    if arguments
        .iter()
        .any(|word| matches!(word.fixed(), Some("-0" | "-l" | "-L")))
    {
        return true;
    }
    let (signals, jobs): (Vec<&Word>, Vec<&Word>) = arguments.iter().partition(|word| word.starts_with('-'));
    let is_signal = |word: &&Word| {
        let name = word.fixed().unwrap_or_default().trim_start_matches('-');
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()) && !matches!(name, "s" | "n")
    };
    let is_own = |word: &&Word| {
        let source = word.source().trim_matches('"');
        let name = source
            .trim_start_matches("${")
            .trim_start_matches('$')
            .trim_end_matches('}');
        word.fixed().is_some_and(|job| job.starts_with('%'))
            || source == "$!"
            || source.starts_with('$') && reader.is_own_process(name)
    };
    signals.iter().all(is_signal) && !jobs.is_empty() && jobs.iter().all(is_own)
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
    let is_option = |word: &&Word| matches!(word.fixed(), Some("-P" | "-L" | "--" | "-e"));
    let physical = arguments.iter().any(|word| word.fixed() == Some("-P"));
    let to = arguments.iter().find(|word| !is_option(word));
    match (program, to) {
        ("popd", None) => reader.place.pops(),
        ("cd", Some(to)) if to.fixed() == Some("-") => reader.place.returns(),
        ("cd", None) => reader.place.changes(&Word::literal("~"), physical, false),
        ("cd" | "pushd", Some(to)) => reader.place.changes(to, physical, program == "pushd"),
        _ => reader.place.changes(&Word::unknown("?", false), physical, false),
    }
}

/// Returns true if a path stays below the directory, links aside.
pub(super) fn is_below(path: &str) -> bool {
    !path.starts_with(['/', '~', '-', '+']) && !path.is_empty() && path.split('/').all(|part| part != "..")
}

fn quiet(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    match program {
        "export" | "declare" | "typeset" | "readonly" | "local" => declare(reader, program, arguments),
        "read" => names(
            reader,
            program,
            arguments,
            "-r -s -e -a: -d: -i: -n: -N: -p: -t: -u:",
        ),
        "mapfile" | "readarray" => names(reader, program, arguments, "-t -d: -n: -O: -s: -u: -c:"),
        "unset" => names(reader, program, arguments, "-f -v -n"),
        "getopts" => names(reader, program, arguments, ""),
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
            reader.evaluation.evaluates = true;
            match name {
                Some(name) => reader.assigned(&format!("{name}=?")),
                None => hides(reader, program),
            }
        }
        "let" => reader.evaluation.evaluates = true,
        "test" | "[" => {
            // `test` evaluates nothing except the index of `-v`.
            reader.evaluation.evaluates |= arguments.iter().any(|word| word.fixed() == Some("-v"));
            reader.evaluation.may_evaluate |= arguments.iter().any(|word| word.fixed().is_none());
        }
        _ => {}
    }
}

/// Reads a built-in that assigns to the names in its operands.
fn names(reader: &mut Reader<'_>, program: &str, arguments: &[Word], options: &'static str) {
    let Ok(parsed) = options::parse_all(Grammar(options), arguments, false) else {
        return hides(reader, program);
    };
    let array = parsed.option(&["a"]).and_then(|given| given.value.as_ref());
    for word in parsed.operands.iter().chain(array) {
        match word.fixed() {
            Some(name) => {
                // An index in a name is evaluated.
                reader.evaluation.evaluates |= name.contains('[');
                reader.assigned(&format!("{name}=?"));
            }
            None => hides(reader, program),
        }
    }
}

fn declare(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    let options = |sign: char| {
        let words = arguments.iter().map(Word::prefix);
        words
            .filter(move |text| text.starts_with(sign))
            .collect::<String>()
    };
    // Without its mark, a variable is no longer passed on, as if it were unset; in a function, a name alone hides the
    // variable outside.
    let prints = options('-').contains(['p', 'f', 'F']);
    let takes_away = match program {
        "export" => options('-').contains('n'),
        "readonly" => false,
        "local" => true,
        _ => !prints,
    };
    for word in arguments {
        let text = word.prefix();
        if let Some(options) = text.strip_prefix(['-', '+']) {
            // A reference is an alias of another name, and a number is evaluated.
            if word.value().is_none() || options.contains('n') && program != "export" {
                hides(reader, &format!("{program} {text}"));
            }
            reader.evaluation.evaluates |= options.contains(['i', 'a', 'A']);
        } else if text.is_empty() && word.value().is_none() {
            hides(reader, program);
        } else if text.contains('=') {
            declared(reader, word, text);
        } else if word.value().is_none() {
            hides(reader, program);
        } else {
            reader.evaluation.evaluates |= super::walk::is_computed(text);
            if takes_away {
                reader.assigned(&format!("{text}=?"));
            }
        }
    }
}

/// Reads an operand of `declare` with a value. The text of an array is read again, and its substitutions run.
fn declared(reader: &mut Reader<'_>, word: &Word, text: &str) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let is_list = value.trim_start().starts_with('(');
    reader.evaluation.evaluates |= super::walk::is_computed(name) || is_list;
    if is_list {
        reader.evaluation.note_assigned(text);
    }
    let written = super::environment::assigned_text(word);
    let is_readable = super::environment::split_assignment(&written).is_some();
    reader.assigned(if is_readable { &written } else { text });
}
