//! Other spellings of a command, which rules that deny or ask must also see.

use std::collections::HashMap;

use super::Analysis;
use super::category::is_known;
use super::word::{Word, base_name, quoted};
use super::wrappers::is_wrapper;

/// Number of words at the start of a text from which a command is taken to its end, and number of words that are taken
/// from later ones: a long text stays cheap.
const MAX_LEADING: usize = 24;

/// Maximum number of aliases of git that lead to each other.
const MAX_ALIASES: usize = 10;

/// Options of `git` before its subcommand whose value is the next word.
const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

impl Analysis {
    /// Returns the commands that start with options, without these options: `git push` for `git -C . push`. For
    /// programs whose options are not known, the word after an option counts as its value and as the subcommand.
    pub fn spellings(&self) -> Vec<String> {
        let mut found = Vec::new();
        for command in &self.commands {
            let (Some(program), [_, arguments @ ..]) = (&command.program, command.words.as_slice()) else {
                continue;
            };
            found.extend(after_options(program, arguments));
            if program == "git" {
                found.extend(aliased(arguments));
            }
            // A program that is not known may run its arguments.
            if is_wrapper(program) || !is_known(program) {
                found.extend(wrapped(arguments));
            }
            // A program outside the system's folders has its path in the text.
            if command.text != joined(program, arguments) {
                found.push(joined(program, arguments));
            }
        }
        found.extend(self.foreign.iter().flat_map(|code| in_code(code)));
        found.sort();
        found.dedup();
        found
    }
}

/// Returns the commands that may start at each of some words.
fn wrapped(words: &[Word]) -> Vec<String> {
    // `parallel` takes the rest of the command after such a mark.
    let is_mark = |word: &&Word| word.value().is_some_and(|text| text.starts_with(":::"));
    let unmarked: Vec<Word> = words.iter().filter(|word| !is_mark(word)).cloned().collect();
    let lists = [words, unmarked.as_slice()];
    lists.iter().flat_map(|words| within(words)).collect()
}

/// Returns the commands that may start at each word. The first ones reach to the end, as written.
fn within(words: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for start in 0..words.len() {
        let end = match start < MAX_LEADING {
            true => words.len(),
            false => (start + MAX_LEADING).min(words.len()),
        };
        found.extend(words.get(start..end).map(spelled).unwrap_or_default());
    }
    found
}

/// Returns a command by the name of its program, and without the options before its subcommand.
fn spelled(words: &[Word]) -> Vec<String> {
    let Some((program, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let program = base_name(program.fixed().unwrap_or_default());
    if program.is_empty() {
        return Vec::new();
    }
    let mut found = vec![joined(program, arguments)];
    if let Some(subcommand) = program.strip_prefix("git-") {
        found.push(joined(&format!("git {subcommand}"), arguments));
    }
    found.extend(after_options(program, arguments));
    found
}

fn after_options(program: &str, arguments: &[Word]) -> Vec<String> {
    let rests = starts(program, arguments).into_iter().enumerate();
    let command = |(place, rest): (usize, &[Word])| {
        let end = if place < MAX_LEADING {
            rest.len()
        } else {
            MAX_LEADING
        };
        joined(program, rest.get(..end).unwrap_or(rest))
    };
    rests.map(command).collect()
}

/// Returns the commands that may be written in code of another language: `git push` for `os.system("git push")`, for
/// `run git push` and for `subprocess.run(["git", "push"])`.
fn in_code(code: &str) -> Vec<String> {
    let texts = code.split(['"', '\'', '`', ';', '|', '&', '(', ')', '{', '}', '!', '=', '\n']);
    // The words of a list are in quotes of their own.
    let lists = code.split(['`', ';', '|', '&', ')', ']', '{', '}', '!', '=', '\n']);
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '(' | '[' | '\\');
    let pieces = texts
        .map(|piece| piece.split_whitespace().collect::<Vec<_>>())
        .chain(lists.map(|piece| piece.split(is_between).filter(|word| !word.is_empty()).collect()));
    let literal = |piece: Vec<&str>| -> Vec<Word> { piece.into_iter().map(Word::literal).collect() };
    pieces.flat_map(|piece| within(&literal(piece))).collect()
}

/// Returns the arguments from each word that may be the subcommand, if options come first.
fn starts<'w>(program: &str, arguments: &'w [Word]) -> Vec<&'w [Word]> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some((option, after)) = rest.split_first() {
        if !is_option(option) {
            break;
        }
        let has_value = option.prefix().contains('=');
        match after.split_first() {
            None => break,
            Some((next, beyond)) if !has_value && !is_option(next) => {
                let takes_value =
                    program != "git" || option.value().is_some_and(|text| GIT_VALUES.contains(&text));
                if takes_value {
                    // With or without a value.
                    found.push(after);
                    rest = beyond;
                    if beyond.first().is_some_and(|word| !is_option(word)) {
                        found.push(beyond);
                    }
                } else {
                    found.push(after);
                    break;
                }
            }
            Some((next, _)) => {
                if !is_option(next) {
                    found.push(after);
                }
                rest = after;
            }
        }
    }
    found
}

/// `git -c alias.p=push p` runs `git push`.
fn aliased(arguments: &[Word]) -> Vec<String> {
    let settings = arguments.windows(2).filter_map(|pair| match pair {
        [option, value] if option.value() == Some("-c") => value.value(),
        _ => None,
    });
    let attached = arguments
        .iter()
        .filter_map(|word| word.value()?.strip_prefix("-c"));
    let mut aliases: HashMap<String, &str> = HashMap::new();
    for (name, meaning) in settings.chain(attached).filter_map(|text| text.split_once('=')) {
        if let Some(name) = name.to_ascii_lowercase().strip_prefix("alias.") {
            aliases.insert(name.to_owned(), meaning);
        }
    }
    let mut found = Vec::new();
    for name in aliases.keys() {
        let called = arguments
            .iter()
            .position(|word| word.value().is_some_and(|text| text.eq_ignore_ascii_case(name)));
        if let Some(rest) = called.and_then(|at| arguments.get(at + 1..)) {
            found.extend(followed(&aliases, name, rest));
        }
    }
    found
}

/// Returns the commands that an alias stands for, which may be an alias again.
fn followed(aliases: &HashMap<String, &str>, name: &str, rest: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = vec![Word::literal(name)];
    words.extend(rest.iter().cloned());
    for _ in 0..MAX_ALIASES {
        let first = words.first().and_then(Word::value).unwrap_or_default();
        let Some(meaning) = aliases.get(&first.to_ascii_lowercase()) else {
            break;
        };
        let text = meaning.trim_start_matches('!').replace(['"', '\''], "");
        let mut next: Vec<Word> = text.split_whitespace().map(Word::literal).collect();
        next.extend(words.drain(..).skip(1));
        words = next;
        found.push(joined("git", &words));
        found.extend(after_options("git", &words));
        found.extend(spelled(&words));
    }
    found
}

fn is_option(word: &Word) -> bool {
    word.starts_with('-') || word.starts_with('+')
}

fn joined(program: &str, words: &[Word]) -> String {
    let words = words.iter().map(|word| match word.value() {
        Some(value) if !word.is_glob() => quoted(value),
        _ => word.source().to_owned(),
    });
    std::iter::once(program.to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::{Blocklist, analyse};

    /// SAFE-6: options before a subcommand do not hide it from a rule.
    #[test]
    fn options_hide_no_subcommand() {
        let cases = [
            ("git -C . push", "git push"),
            ("git --git-dir=.git --work-tree . push -f", "git push -f"),
            ("git -c user.name=x --no-pager push", "git push"),
            ("git -calias.p=push p origin", "git push origin"),
            ("git -c alias.Publish='push --force' publish", "git push --force"),
            ("true; env X=1 git -C \"$PWD\" 'push' x", "git push x"),
            ("npm --prefix web publish", "npm publish"),
            ("npm --silent publish", "npm publish"),
            ("cargo +nightly publish", "cargo publish"),
            ("docker -H tcp://x --debug run y", "docker run y"),
            ("tools/git push", "git push"),
            ("taskset 1 git push", "git push"),
            ("chrt -r 5 git push origin", "git push origin"),
            ("parallel git ::: push", "git ::: push"),
            ("git -c alias.p='!git push' p", "git push"),
            ("git rebase -x 'git push' HEAD~1", "git push HEAD~1"),
            ("git bisect run git push", "git push"),
            ("git submodule foreach 'git push'", "git push"),
            ("python3 -c 'import os; os.system(\"git push\")'", "git push"),
            ("awk 'BEGIN { system(\"git push\") }'", "git push"),
            ("tmux new 'git push'", "git push"),
            ("taskset 1 /usr/bin/git push", "git push"),
            ("setpriv --reuid 1 /usr/bin/git -C . push", "git push"),
            ("git rebase -x '/usr/bin/git push' HEAD", "git push HEAD"),
            (
                "python3 -c 'import os; os.system(\"/usr/bin/git push\")'",
                "git push",
            ),
            ("python3 -c 'import os; os.system(\"git -C . push\")'", "git push"),
            (
                "python3 -c 'import subprocess; subprocess.run([\"git\",\"push\"],check=True)'",
                "git push",
            ),
            ("perl -e 'exec \"git\",\"push\"'", "git push"),
            ("ruby -e 'system(%w[git push])'", "git push"),
            (
                "node -e 'require(\"child_process\").spawnSync(\"git\", [\"push\"])'",
                "git push",
            ),
            ("git -c alias.q=p -c alias.p=push q origin", "git push origin"),
            ("git -c alias.p='-C . push' p", "git push"),
            ("git -c alias.p='!/usr/bin/git push' p", "git push"),
            ("parallel git ::: push", "git push"),
            ("parallel /usr/bin/git ::: push", "git push"),
            ("unknown-tool /usr/bin/git push", "git push"),
            ("taskset 1 /usr/lib/git-core/git-push", "git push"),
        ];
        for (command, spelling) in cases {
            let found = analyse(command, &Blocklist::default()).spellings();
            assert!(
                found.iter().any(|found| found == spelling),
                "{command}: {found:?}"
            );
        }
        // Neither many words or options nor a long text before it hide a command.
        let words = "x ".repeat(3_000);
        let padded = [
            format!("git {} push", "-c a=b ".repeat(1_000)),
            format!("git {} push", "--no-pager ".repeat(1_000)),
            format!("unknown-tool {words} git push"),
            format!("python3 -c '# {words}\nimport os; os.system(\"git push\")'"),
            format!(
                "python3 -c 'x = [{}]; os.system(\"git push\")'",
                "(1), ".repeat(3_000)
            ),
        ];
        let many: String = (0..100).map(|n| format!("python3 -c 'print({n})'; ")).collect();
        for command in padded
            .into_iter()
            .chain([many + "perl -e 'system(\"git push\")'"])
        {
            let found = analyse(&command, &Blocklist::default()).spellings();
            assert!(
                found.iter().any(|found| found == "git push"),
                "{}",
                command.get(..80).unwrap_or_default()
            );
        }
        for command in [
            "git push",
            "git log -p push",
            "git --no-pager log push",
            "ls -la",
            "git commit -m 'git push'",
            "echo git push",
            "grep -r git push",
            "git -c alias.p=pull -c alias.q=push p",
        ] {
            let found = analyse(command, &Blocklist::default()).spellings();
            assert!(
                !found.iter().any(|found| found == "git push"),
                "{command}: {found:?}"
            );
        }
    }
}
