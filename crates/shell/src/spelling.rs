//! Other spellings of a command, which rules that deny or ask must also see.

use super::Analysis;
use super::word::{Word, quoted};
use super::wrappers::is_wrapper;

/// Maximum number of words before a subcommand that are examined.
const MAX_LEADING: usize = 24;

/// Maximum number of pieces of code that are examined.
const MAX_PIECES: usize = 256;

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
            for rest in starts(program, arguments) {
                found.push(joined(program, rest));
            }
            if program == "git" {
                found.extend(aliased(arguments));
            }
            if is_wrapper(program) {
                let rests = (0..arguments.len().min(MAX_LEADING)).filter_map(|start| arguments.get(start..));
                found.extend(rests.filter_map(|rest| Some(joined(rest.first()?.fixed()?, rest.get(1..)?))));
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

/// Returns the commands that may be written in code of another language: `git push` for `os.system("git push")` and for
/// `run git push`.
fn in_code(code: &str) -> Vec<String> {
    let pieces = code.split(['"', '\'', '`', ';', '|', '&', '(', ')', '{', '}', '!', '=', '\n']);
    let mut found = Vec::new();
    for piece in pieces.take(MAX_PIECES) {
        let words: Vec<&str> = piece.split_whitespace().collect();
        let starts = 0..words.len().min(MAX_LEADING);
        found.extend(starts.filter_map(|start| Some(words.get(start..)?.join(" "))));
    }
    found.truncate(MAX_PIECES);
    found
}

/// Returns the arguments from each word that may be the subcommand, if options come first.
fn starts<'w>(program: &str, arguments: &'w [Word]) -> Vec<&'w [Word]> {
    let mut found = Vec::new();
    let mut rest = arguments;
    for _ in 0..MAX_LEADING {
        let Some((option, after)) = rest.split_first() else {
            break;
        };
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
    let mut found = Vec::new();
    for (name, meaning) in settings.chain(attached).filter_map(|text| text.split_once('=')) {
        let Some(name) = name
            .to_ascii_lowercase()
            .strip_prefix("alias.")
            .map(str::to_owned)
        else {
            continue;
        };
        let called = arguments.iter().position(|word| word.value() == Some(&name));
        if let Some(rest) = called.and_then(|at| arguments.get(at + 1..)) {
            found.push(joined(&format!("git {meaning}"), rest));
        }
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
        ];
        for (command, spelling) in cases {
            let found = analyse(command, &Blocklist::default()).spellings();
            assert!(
                found.iter().any(|found| found == spelling),
                "{command}: {found:?}"
            );
        }
        for command in [
            "git push",
            "git log -p push",
            "git --no-pager log push",
            "ls -la",
            "git commit -m 'git push'",
        ] {
            let found = analyse(command, &Blocklist::default()).spellings();
            assert!(
                !found.iter().any(|found| found == "git push"),
                "{command}: {found:?}"
            );
        }
    }
}
