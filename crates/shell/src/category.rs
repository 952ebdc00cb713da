//! Permission category of a program that hides no other command.

use windlass_core::tool::Category;

use super::git;
use super::programs::{ADMIN, READ, READ_UNLESS, STARTING, WRITE};
use super::reader::Reader;
use super::word::Word;

/// Directories of system programs.
const STANDARD: &[&str] = &[
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
];

/// Returns true if a name belongs to a program or built-in that a function must not shadow.
pub(super) fn is_known(name: &str) -> bool {
    READ.contains(&name)
        || WRITE.contains(&name)
        || ADMIN.contains(&name)
        || READ_UNLESS.iter().any(|(program, _)| *program == name)
        || [
            "find", "env", "xargs", "sh", "bash", "eval", "exec", "command", "source", "export", "cd",
        ]
        .contains(&name)
}

/// Returns true if a path is the system's location of the program, so that its name is enough.
pub(super) fn is_standard_path(path: &str, program: &str) -> bool {
    path.strip_suffix(program)
        .is_some_and(|folder| STANDARD.contains(&folder))
}

/// Records the permission that a program needs.
pub(super) fn judge(reader: &mut Reader<'_>, path: &str, program: &str, arguments: &[Word]) {
    // A file with that name in the workspace may be anything.
    if path.contains('/') && !is_standard_path(path, program) {
        unknown(reader, arguments);
        return;
    }
    written_paths(reader, program, arguments);
    match program {
        "git" => git::judge(reader, arguments),
        "sed" | "gsed" => sed(reader, arguments),
        "tar" | "bsdtar" => tar(reader, arguments),
        "ssh" | "scp" | "rsync" | "curl" | "wget" | "ftp" | "nc" | "socat" => {
            for word in arguments {
                reader.foreign_code(word.prefix(), Category::Admin);
            }
            reader.raise(Category::Admin);
        }
        _ => reader.raise(category(program, arguments)),
    }
    if !is_known(program) {
        unknown(reader, arguments);
    }
}

/// An unknown program. It may be another launcher, so none of its arguments may be a blocked command.
fn unknown(reader: &mut Reader<'_>, arguments: &[Word]) {
    reader.raise(Category::Write);
    for (index, word) in arguments.iter().enumerate() {
        let Some(value) = word.value() else { continue };
        let name = super::word::base_name(value);
        let after = arguments.get(index + 1..).unwrap_or_default();
        if let Some(entry) = reader.blocklist.hit(name, after) {
            reader.blocked(&entry, value, super::blocked::targets(name, after));
        }
    }
}

fn category(program: &str, arguments: &[Word]) -> Category {
    if matches!(arguments, [only] if matches!(only.fixed(), Some("--version" | "--help" | "-V")))
        && WRITE.contains(&program)
    {
        return Category::Read;
    }
    if let Some((_, options)) = READ_UNLESS.iter().find(|(name, _)| *name == program) {
        return match (has_option(arguments, options), may_have_option(arguments)) {
            (false, false) => Category::Read,
            _ if STARTING.contains(&program) => Category::Admin,
            _ => Category::Write,
        };
    }
    let operands = || arguments.iter().filter(|word| !word.starts_with('-'));
    let first = arguments.first().and_then(Word::fixed).unwrap_or_default();
    let has = |wanted: &[&str]| {
        arguments
            .iter()
            .filter_map(Word::value)
            .any(|value| wanted.contains(&value))
    };
    match program {
        // The second operand is an output file.
        "uniq" if operands().count() <= 1 && !may_have_option(arguments) => Category::Read,
        "chmod" if recursive(arguments) && operands().skip(1).any(leads_out) => Category::Admin,
        "cargo"
            if matches!(
                first,
                "metadata" | "tree" | "--list" | "search" | "locate-project" | "pkgid" | "version"
            ) =>
        {
            Category::Read
        }
        "cargo"
            if matches!(
                first,
                "publish" | "login" | "logout" | "yank" | "owner" | "install" | "uninstall"
            ) =>
        {
            Category::Admin
        }
        "npm" | "yarn" | "pnpm"
            if has(&[
                "-g",
                "--global",
                "global",
                "publish",
                "login",
                "unpublish",
                "adduser",
            ]) =>
        {
            Category::Admin
        }
        "npm" if matches!(first, "ls" | "list" | "view" | "outdated" | "root" | "prefix") => Category::Read,
        "pip" | "pip3" if matches!(first, "list" | "show" | "freeze" | "check") => Category::Read,
        "pip" | "pip3" => Category::Admin,
        "gem" if has(&["install", "push", "uninstall"]) => Category::Admin,
        "rustup" | "go" if has(&["default", "update", "install", "self", "toolchain"]) => Category::Admin,
        "rustc" | "go" | "java" if matches!(first, "--version" | "version" | "-version" | "env") => {
            Category::Read
        }
        _ if READ.contains(&program) => Category::Read,
        _ if ADMIN.contains(&program) || program.starts_with("mkfs") => Category::Admin,
        _ => Category::Write,
    }
}

fn recursive(arguments: &[Word]) -> bool {
    has_option(arguments, &["-R", "-r", "--recursive"])
}

/// Returns true if a path may lead out of the directory.
fn leads_out(word: &Word) -> bool {
    word.value().is_none_or(|path| !super::builtins::is_below(path))
}

/// Returns true if one of these options is given: alone, in a cluster, with a value or shortened.
fn has_option(arguments: &[Word], options: &[&str]) -> bool {
    let given = arguments.iter().take_while(|word| word.value() != Some("--"));
    given.map(Word::prefix).any(|text| {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        options.iter().any(|option| match option.strip_prefix('-') {
            Some(long) if long.starts_with('-') => name.len() > 2 && option.starts_with(name),
            Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
            None => text.starts_with(option),
        })
    })
}

fn may_have_option(arguments: &[Word]) -> bool {
    arguments
        .iter()
        .take_while(|word| word.value() != Some("--"))
        .any(Word::may_be_option)
}

/// Records the paths that a program names as its output.
fn written_paths(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    let operands: Vec<&str> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .filter_map(Word::value)
        .collect();
    let option = |letter: &str| {
        let at = arguments.iter().position(|word| word.fixed() == Some(letter))?;
        arguments.get(at + 1).and_then(Word::value)
    };
    let written: Vec<&str> = match program {
        "cp" | "ln" | "install" | "scp" | "rsync" => {
            let into = arguments
                .iter()
                .filter_map(Word::value)
                .find_map(|word| word.strip_prefix("--target-directory="));
            option("-t")
                .or(into)
                .or(operands.last().copied())
                .into_iter()
                .collect()
        }
        "mv" | "tee" | "touch" | "mkdir" | "rm" | "rmdir" | "shred" | "truncate" | "unlink" | "mkfifo" => {
            operands
        }
        "chmod" | "chown" | "chgrp" => operands.get(1..).unwrap_or_default().to_vec(),
        "sort" | "curl" | "gcc" | "cc" | "clang" | "rustc" => option("-o").into_iter().collect(),
        "wget" => option("-O").into_iter().collect(),
        "uniq" => operands.get(1).copied().into_iter().collect(),
        "dd" => operands
            .iter()
            .filter_map(|word| word.strip_prefix("of="))
            .collect(),
        _ => Vec::new(),
    };
    for path in written {
        reader.writes_to(path);
    }
}

/// `sed` reads, unless its script writes or runs something. Scripts are terse, so every command in them is
/// checked.
fn sed(reader: &mut Reader<'_>, arguments: &[Word]) {
    let in_place = has_option(arguments, &["-i", "--in-place"]);
    let from_file = has_option(arguments, &["-f", "--file"]);
    let unknown = arguments
        .iter()
        .any(|word| word.may_be_option() || word.value().is_none());
    let scripts = sed_scripts(arguments);
    if in_place {
        reader.raise(Category::Write);
        let mut operands = arguments
            .iter()
            .filter(|word| !word.starts_with('-'))
            .filter_map(Word::value);
        if !has_option(arguments, &["-e", "--expression"]) && !from_file {
            operands.next();
        }
        for path in operands.map(str::to_owned).collect::<Vec<_>>() {
            reader.writes_to(&path);
        }
    }
    if from_file || unknown {
        reader.raise(Category::Admin);
    }
    for script in scripts {
        if !is_harmless_sed(&script) {
            reader.foreign_code(&script, Category::Admin);
        }
    }
}

fn sed_scripts(arguments: &[Word]) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.prefix();
        if matches!(text, "-e" | "--expression")
            || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('e'))
        {
            scripts.extend(words.next().map(|word| word.prefix().to_owned()));
        } else if let Some(script) = text.strip_prefix("--expression=").or(text.strip_prefix("-e")) {
            scripts.push(script.to_owned());
        }
    }
    if scripts.is_empty() {
        let script = arguments.iter().find(|word| !word.starts_with('-'));
        scripts.extend(script.map(|word| word.prefix().to_owned()));
    }
    scripts
}

/// Returns true if a script consists only of addresses with `p`, `d`, `q`, `=` or `n`, or of one substitution
/// with harmless flags.
fn is_harmless_sed(script: &str) -> bool {
    script.split([';', '\n']).all(|command| {
        let command = command.trim();
        let plain = command
            .chars()
            .all(|c| c.is_ascii_digit() || ",$!pdqn= ~+".contains(c));
        plain || is_harmless_substitution(command) || is_harmless_address(command)
    })
}

fn is_harmless_substitution(command: &str) -> bool {
    let mut chars = command.chars();
    if chars.next() != Some('s') {
        return false;
    }
    let Some(separator @ ('/' | '|' | '#' | ',' | ':' | '@' | '!' | '%')) = chars.next() else {
        return false;
    };
    let parts: Vec<&str> = chars.as_str().split(separator).collect();
    match parts.as_slice() {
        [left, right, flags] => {
            !left.ends_with('\\')
                && !right.ends_with('\\')
                && flags.chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c))
        }
        _ => false,
    }
}

/// Returns true for `/text/p` and `/text/d`, and for the range `/one/,/two/p`.
fn is_harmless_address(command: &str) -> bool {
    let parts: Vec<&str> = command.split('/').collect();
    match parts.as_slice() {
        ["", pattern, last] => {
            !pattern.ends_with('\\') && matches!(*last, "p" | "d" | "!d" | "!p" | "q" | "=" | "")
        }
        ["", one, ",", two, last] => {
            !one.ends_with('\\') && !two.ends_with('\\') && matches!(*last, "p" | "d" | "!d" | "!p")
        }
        _ => false,
    }
}

fn tar(reader: &mut Reader<'_>, arguments: &[Word]) {
    let running = [
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "--rmt-command",
        "-I",
        "-F",
    ];
    if has_option(arguments, &running) || may_have_option(arguments) {
        for word in arguments {
            reader.foreign_code(word.prefix(), Category::Admin);
        }
    }
    let first = arguments.first().map_or("", |word| word.prefix());
    let lists = first.trim_start_matches('-').starts_with('t') || first == "--list";
    reader.raise(if lists { Category::Read } else { Category::Write });
}
