//! Reads programs that run the command in their arguments.

use windlass_core::tool::Category;

use super::builtins::joined;
use super::environment::split_assignment;
use super::options::{self, Given};
use super::reader::Reader;
use super::table::{Kind, LAUNCHERS, WRAPPERS, Wrapper};
use super::word::Word;

/// Reads a wrapper and the command it wraps; returns true if the program is a wrapper.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    if is_launcher(program) {
        for word in arguments {
            reader.foreign_code(word.prefix(), Category::Admin);
            if program == "parallel" && word.value().is_none() {
                reader.unknown_program(program);
            }
        }
        reader.raise(Category::Admin);
        return true;
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) else {
        return false;
    };
    reader.raise(wrapper.needs);
    match options::parse(wrapper.grammar, arguments) {
        Ok((given, rest)) => wrapped(reader, wrapper, &given, rest, via),
        Err(unclear) => reader.unknown_program(&format!("{program} {}", unclear.word())),
    }
    true
}

/// Returns true if a program runs a command in its arguments that is not read.
pub(super) fn is_launcher(program: &str) -> bool {
    LAUNCHERS.split_whitespace().any(|name| name == program)
}

/// Returns true if a program runs the command in its arguments.
pub(super) fn is_wrapper(program: &str) -> bool {
    is_launcher(program) || WRAPPERS.iter().any(|wrapper| wrapper.name == program)
}

fn option<'g>(given: &'g [Given], names: &[&str]) -> Option<&'g Given> {
    given
        .iter()
        .rev()
        .find(|given| names.contains(&given.name.as_str()))
}

fn wrapped(reader: &mut Reader<'_>, wrapper: &Wrapper, given: &[Given], rest: &[Word], via: &[String]) {
    let program = wrapper.name;
    if matches!(program, "env" | "sudo")
        && let Some(given) = option(given, &["C", "chdir", "D"])
    {
        reader
            .place
            .enters(given.value.as_ref().unwrap_or(&Word::unknown("?", false)));
    }
    if matches!(program, "time" | "gtime" | "strace")
        && let Some(path) = option(given, &["o", "output"]).and_then(|given| given.value.as_ref())
    {
        reader.raise(Category::Write);
        // strace passes the text after a bar or an exclamation mark to a shell.
        if path.value().is_none_or(|path| path.starts_with(['|', '!'])) {
            reader.unknown_program(path.source());
        } else if let Some(path) = path.value() {
            reader.writes_to(path);
        }
    }
    match wrapper.kind {
        Kind::Words => {
            let Some(words) = skip(reader, rest, wrapper.operands) else {
                return;
            };
            match words.first().and_then(Word::fixed) {
                Some("-c" | "--command") if program == "flock" => {
                    text(reader, words.get(1..).unwrap_or_default(), via);
                }
                _ => reader.simple(words.to_vec(), Vec::new(), via),
            }
        }
        Kind::Environment => environment(reader, program, given, rest, via),
        Kind::Arguments => more_arguments(reader, given, rest, via),
        Kind::Text => text(reader, rest, via),
        Kind::Option => {
            if let Some(value) = option(given, &["c", "command"]).and_then(|given| given.value.clone()) {
                text(reader, &[value], via);
            } else if program == "su" {
                for word in rest {
                    reader.foreign_code(word.prefix(), Category::Admin);
                }
                reader.unknown_program("su");
            } else {
                reader.unknown_program(program);
            }
        }
    }
}

/// Returns the words after some operands, which must not expand to options or to several words.
fn skip<'w>(reader: &mut Reader<'_>, rest: &'w [Word], operands: usize) -> Option<&'w [Word]> {
    let taken = rest.get(..operands.min(rest.len())).unwrap_or_default();
    if let Some(word) = taken
        .iter()
        .find(|word| word.fixed().is_none() && (word.may_be_option() || word.may_be_several()))
    {
        reader.unknown_program(word.source());
        return None;
    }
    rest.get(operands..).or(Some(&[]))
}

fn text(reader: &mut Reader<'_>, words: &[Word], via: &[String]) {
    match joined(words) {
        Ok(text) => reader.read(&text, via),
        Err(word) => reader.unknown_program(word.source()),
    }
}

fn environment(reader: &mut Reader<'_>, program: &str, given: &[Given], rest: &[Word], via: &[String]) {
    if program == "env" {
        cleared(reader, given);
    }
    if let Some(split) = option(given, &["S", "split-string"]).filter(|_| program == "env") {
        let parts = split.value.as_ref().and_then(Word::fixed);
        match parts.filter(|text| !text.contains(['\'', '"', '\\', '$', '#'])) {
            Some(text) => {
                let mut words: Vec<Word> = text.split_whitespace().map(Word::literal).collect();
                words.extend(rest.iter().cloned());
                read(reader, "env", &words, via);
            }
            None => reader.unknown_program("env -S"),
        }
        return;
    }
    let mut words = rest;
    let mut assignments = Vec::new();
    while let Some((word, after)) = words.split_first() {
        match word.prefix().split_once('=') {
            Some((name, _)) if !word.may_be_several() => {
                if split_assignment(word.prefix()).is_some() {
                    assignments.push(super::environment::assigned_text(word));
                } else {
                    reader.refuse(
                        "shell.environment",
                        format!("`{name}` is not a valid variable name."),
                    );
                }
                words = after;
            }
            _ => break,
        }
    }
    reader.simple(words.to_vec(), assignments, via);
}

/// Judges the options of `env` that take variables away, such as those that keep a read from starting other
/// programs.
fn cleared(reader: &mut Reader<'_>, given: &[Given]) {
    for option in given {
        match option.name.as_str() {
            "" | "i" | "ignore-environment" => reader.raise(Category::Write),
            "u" | "unset" => {
                let name = option.value.as_ref().and_then(Word::fixed).unwrap_or("?");
                reader.assigned(&format!("{name}=?"));
            }
            _ => {}
        }
    }
}

fn more_arguments(reader: &mut Reader<'_>, given: &[Given], rest: &[Word], via: &[String]) {
    if let Some(slot) = option(given, &["process-slot-var"]) {
        // The command gets a variable of this name.
        match slot.value.as_ref().and_then(Word::fixed) {
            Some(name) => reader.assigned(&format!("{name}=?")),
            None => reader.unknown_program("xargs --process-slot-var"),
        }
    }
    let replaced = option(given, &["I", "i", "replace"]).map(|given| match &given.value {
        Some(value) => value.fixed().unwrap_or_default().to_owned(),
        None => "{}".to_owned(),
    });
    let mut words: Vec<Word> = match &replaced {
        Some(marker) => rest.iter().map(|word| word.with_unknown(marker)).collect(),
        None => rest.to_vec(),
    };
    if words.is_empty() {
        return;
    }
    match replaced.as_deref() {
        Some("") => reader.unknown_program("xargs -I"),
        Some(_) => {}
        None => words.push(Word::unknown("…", true)),
    }
    reader.simple(words, Vec::new(), via);
}
