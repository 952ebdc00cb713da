//! Checks hooks without running them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::file::Handler;
use crate::set::{HookHost, HookSet};

/// Returns what is wrong with the hooks: parts of files that are not in effect, and programs that cannot run.
pub fn check(set: &HookSet, host: &HookHost) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in set.files() {
        let name = file.path.display();
        wrong.extend(file.problems.iter().map(|problem| format!("{name}: {problem}")));
        for handler in &file.handlers {
            if let Some(why) = program(handler, host) {
                wrong.push(format!(
                    "{name}: {} `{}`: {why}",
                    handler.occasion.name(),
                    handler.program
                ));
            }
        }
    }
    wrong
}

/// Returns the reason why a program cannot run. A command line that starts with anything but a plain program is left
/// to the shell.
fn program(handler: &Handler, host: &HookHost) -> Option<String> {
    let command = handler.program.command.trim();
    let word = match &handler.program.args {
        Some(_) => command.to_owned(),
        None => first_word(command, host)?,
    };
    let found = locate(&word, host);
    let Some(path) = found else {
        return Some(format!("the program `{word}` does not exist"));
    };
    let data = path.metadata().ok()?;
    if data.is_dir() {
        return Some(format!("{} is a folder", path.display()));
    }
    let can_run = data.permissions().mode() & 0o111 != 0;
    (!can_run).then(|| {
        format!(
            "{} is not executable; run: chmod +x {}",
            path.display(),
            path.display()
        )
    })
}

/// Returns the first word of a command line with the variables of hooks filled in.
fn first_word(command: &str, host: &HookHost) -> Option<String> {
    let word = match command.strip_prefix('"') {
        Some(rest) => {
            let (inside, after) = rest.split_once('"')?;
            format!(
                "{inside}{}",
                after
                    .split_whitespace()
                    .next()
                    .filter(|_| !after.starts_with(' '))
                    .unwrap_or_default()
            )
        }
        None => command.split_whitespace().next()?.to_owned(),
    };
    let mut word = word;
    for name in ["CLAUDE_PROJECT_DIR", "HOME"] {
        let value = host.env.get(name).map_or("", String::as_str);
        word = word
            .replace(&format!("${{{name}}}"), value)
            .replace(&format!("${name}"), value);
    }
    if let (Some(rest), Some(home)) = (word.strip_prefix("~/"), host.env.get("HOME")) {
        word = format!("{home}/{rest}");
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+".contains(letter);
    let is_word_of_shell = [
        "if", "for", "while", "case", "test", "cd", "exit", "echo", "printf", "read", "exec", "set",
        "export", "sleep", "true", "false",
    ]
    .contains(&word.as_str());
    (word.chars().all(is_plain) && !is_word_of_shell).then_some(word)
}

fn locate(word: &str, host: &HookHost) -> Option<PathBuf> {
    if word.contains('/') {
        let path = host.cwd.join(word);
        return path.exists().then_some(path);
    }
    let folders = host.env.get("PATH").map_or("/usr/bin:/bin", String::as_str);
    let mut paths = folders.split(':').map(|folder| Path::new(folder).join(word));
    paths.find(|path| path.is_file())
}
