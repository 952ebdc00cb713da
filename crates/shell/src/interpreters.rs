//! Shells and other interpreters, and the code on their command line.

use windlass_core::tool::Category;

use super::awk;
use super::builtins::is_stream;
use super::reader::{Input, Reader};
use super::word::{Word, base_name};

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh",
];

/// Substrings of code that indicate it starts other programs.
const STARTS: &[&str] = &[
    "system",
    "popen",
    "exec",
    "spawn",
    "subprocess",
    "child_process",
    "Command",
    "passthru",
    "proc_open",
    "`",
    "%x",
    "fork",
    "pty",
    "startfile",
    "eval",
    "Deno.run",
];

/// Reads an interpreter; returns true if the program is one.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    if SHELLS.contains(&program) {
        shell(reader, program, arguments, via);
        return true;
    }
    if is_awk(program) {
        awk::judge(reader, arguments);
        return true;
    }
    let Some(options) = code_options(program) else {
        return false;
    };
    if is_version(program, arguments) {
        return true;
    }
    reader.raise(Category::Write);
    runs_words(reader, program, arguments, via);
    let mut position = arguments.iter().peekable();
    let mut has_script = false;
    while let Some(word) = position.next() {
        let text = word.prefix();
        if !has_script && text.contains(['(', ';', '`', '\n']) {
            // A value such as that of perl's `-M`, and node's `--import`, may be code.
            code(reader, text);
        }
        let is_code = options.iter().any(|option| takes_code(text, option));
        has_script |= is_code || !text.starts_with('-');
        if is_code {
            code(reader, text);
            match position.peek() {
                Some(next) if next.value().is_none() => reader.raise(Category::Admin),
                Some(next) => code(reader, next.prefix()),
                None => {}
            }
        }
    }
    if !has_script {
        reader.takes_code_from(Input::Program);
    }
    true
}

/// Reads the subcommands of interpreters that run a command, or the code in the arguments of a module.
fn runs_words(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) {
    let [first, rest @ ..] = arguments else { return };
    match (stem(program), first.fixed()) {
        ("bun", Some("exec")) => match super::builtins::joined(rest) {
            Ok(text) => reader.read(&text, via),
            Err(word) => reader.unknown_program(word.source()),
        },
        ("bun", Some("x")) => reader.simple(rest.to_vec(), Vec::new(), via),
        ("deno", Some("eval")) => rest.iter().for_each(|word| code(reader, word.prefix())),
        ("R", Some("CMD")) => super::category::unknown(reader, rest),
        ("python" | "pypy" | "ipython", Some("-m" | "-mtimeit")) => {
            let has_code =
                first.fixed() == Some("-mtimeit") || rest.first().and_then(Word::fixed) == Some("timeit");
            rest.iter()
                .filter(|_| has_code)
                .for_each(|word| code(reader, word.prefix()));
        }
        _ => {}
    }
}

/// Returns true if a program is an interpreter.
pub(super) fn is_interpreter(program: &str) -> bool {
    SHELLS.contains(&program) || is_awk(program) || code_options(program).is_some()
}

fn is_awk(program: &str) -> bool {
    matches!(program, "awk" | "gawk" | "mawk" | "nawk" | "original-awk")
}

/// Returns true if an interpreter only prints its version. With other options of that look it goes on and
/// reads a program.
fn is_version(program: &str, arguments: &[Word]) -> bool {
    let [only] = arguments else { return false };
    match only.fixed() {
        Some("--version") => !matches!(stem(program), "tclsh" | "wish" | "lua" | "luajit" | "osascript"),
        Some("-V") => matches!(stem(program), "python" | "pypy" | "deno"),
        Some("-v") => matches!(
            stem(program),
            "node" | "nodejs" | "ruby" | "perl" | "php" | "julia"
        ),
        _ => false,
    }
}

fn stem(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns true if code may start other programs.
pub(super) fn starts_programs(code: &str) -> bool {
    STARTS.iter().any(|sign| code.contains(sign))
}

fn code(reader: &mut Reader<'_>, text: &str) {
    if starts_programs(text) {
        reader.foreign_code(text, Category::Admin);
    }
}

/// Returns true if an option, alone or at the end of a cluster, is followed by code.
fn takes_code(text: &str, option: &str) -> bool {
    match (option.strip_prefix("--"), option.chars().nth(1)) {
        (Some(_), _) => text == option || text.starts_with(&format!("{option}=")),
        (None, Some(letter)) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
        _ => false,
    }
}

fn code_options(program: &str) -> Option<&'static [&'static str]> {
    Some(match stem(program) {
        "python" | "pypy" | "ipython" => &["-c"],
        "perl" => &["-e", "-E"],
        "ruby" | "lua" | "luajit" | "osascript" | "R" | "Rscript" | "julia" | "groovy" | "scala" => &["-e"],
        "node" | "nodejs" | "bun" | "deno" => &["-e", "-p", "--eval", "--print", "eval"],
        "php" => &["-r", "-B", "-E", "-R"],
        "tclsh" | "wish" | "guile" | "ghci" | "irb" | "octave" | "sage" => &["-c", "-e", "--eval"],
        _ => return None,
    })
}

fn shell(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) {
    let mut words = arguments.iter();
    let mut wants_text = false;
    let refused = |reader: &mut Reader<'_>, what: &str| {
        let short: String = what.chars().take(60).collect();
        reader.refuse(
            "shell.hidden_code",
            format!(
                "the code that `{program}` would run ({short}) is only known at run time. Write the command out."
            ),
        );
    };
    let operand = loop {
        let Some(word) = words.next() else { break None };
        let Some(text) = word.fixed() else {
            break Some(word);
        };
        match text {
            "--version" | "--help" if !wants_text => return,
            "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O" => {
                if text.contains("file") || words.next().and_then(Word::fixed).is_none() {
                    return refused(reader, text);
                }
            }
            "--" | "-" => break words.next(),
            "--norc" | "--noprofile" | "--posix" | "--login" | "--verbose" | "--restricted" => {}
            _ if text.starts_with("--") => return refused(reader, text),
            _ if text.starts_with('-') || text.starts_with('+') => {
                wants_text |= text.contains('c');
                // These options read the code from standard input, or change how the rest is parsed.
                if text.contains(['s', 'i', 'o', 'O']) {
                    return refused(reader, text);
                }
            }
            _ => break Some(word),
        }
    };
    let Some(operand) = operand else {
        return refused(reader, "its input");
    };
    match operand.fixed() {
        Some(text) if wants_text && reads_as_bash(program, text) => {
            let shell = reader.place.shell.clone();
            reader.read(text, via);
            reader.place.shell = shell;
        }
        Some(text) if wants_text => refused(reader, text),
        Some(path) if !is_stream(path) => {
            // Without a slash, the script is also searched for in the program path.
            let arguments: Vec<Word> = words.cloned().collect();
            if let Some(entry) = reader.blocklist.hit(base_name(path), &arguments) {
                reader.blocked(&entry, path, super::blocked::targets(base_name(path), &arguments));
            }
            reader.raise(Category::Write);
        }
        _ => refused(reader, operand.source()),
    }
}

/// Returns true if another shell would parse a text as bash does. Some of them run as a command what bash
/// parses as a test or as arithmetic, and their strings end elsewhere.
fn reads_as_bash(program: &str, text: &str) -> bool {
    match program {
        "bash" | "rbash" => true,
        "sh" | "dash" | "ash" => {
            let bash_only = [
                "[[", "$'", "$\"", "&>", ">&", "<(", ">(", "|&", "<<<", "coproc", "function", "select",
            ];
            let text = text.replace("$((", "").replace("2>&1", "").replace(">&2", "");
            !text.contains("((") && !bash_only.iter().any(|sign| text.contains(sign))
        }
        _ => text
            .chars()
            .all(|c| c.is_alphanumeric() || " \n-_./|&;,'\"".contains(c)),
    }
}
