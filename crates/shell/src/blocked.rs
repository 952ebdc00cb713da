//! Commands that the configuration lists, and the files they would act on.

use super::Analysis;
use super::category::is_standard_path;
use super::word::{Word, base_name};

/// A command that the configuration lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCommand {
    /// Entry of the list, such as `rm`.
    pub entry: String,
    /// Files that it would act on.
    pub targets: Vec<Target>,
}

/// A file that a listed command would act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path as written. A leading `~` is a home folder.
    Path(String),
    /// A path that is only known at run time.
    Unknown,
}

/// Returns the files that a command names. Every argument may be one, except where the program is known.
pub(super) fn targets(program: &str, arguments: &[Word]) -> Vec<Target> {
    let operands = operands(arguments);
    match program {
        "dd" => arguments
            .iter()
            .filter(|word| word.prefix().is_empty() || word.starts_with('o'))
            .map(|word| match word.value() {
                Some(text) => Target::Path(text.strip_prefix("of=").unwrap_or(text).to_owned()),
                None => Target::Unknown,
            })
            .collect(),
        "chmod" => operands.into_iter().skip(1).map(target).collect(),
        _ => {
            let attached = arguments.iter().filter_map(|word| {
                let (_, value) = word
                    .value()
                    .filter(|text| text.starts_with('-'))?
                    .split_once('=')?;
                Some(Target::Path(value.to_owned()))
            });
            operands.into_iter().map(target).chain(attached).collect()
        }
    }
}

fn operands(arguments: &[Word]) -> Vec<&Word> {
    let mut only_operands = false;
    let mut found = Vec::new();
    for word in arguments {
        if !only_operands && word.fixed() == Some("--") {
            only_operands = true;
        } else if only_operands || !word.starts_with('-') {
            found.push(word);
        }
    }
    found
}

fn target(word: &Word) -> Target {
    match word.value() {
        Some(value) => Target::Path(value.to_owned()),
        None => from_variable(word.source()).map_or(Target::Unknown, Target::Path),
    }
}

/// Returns the path that a word with `$HOME` or `$PWD` at its start names.
fn from_variable(source: &str) -> Option<String> {
    let plain: String = source.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    let start = |names: [&str; 2]| names.into_iter().find_map(|name| plain.strip_prefix(name));
    let (place, rest) = match (start(["$HOME", "${HOME}"]), start(["$PWD", "${PWD}"])) {
        (Some(rest), _) => ("~", rest),
        (None, Some(rest)) => (".", rest),
        (None, None) => return None,
    };
    match rest {
        "" => Some(place.to_owned()),
        _ if !rest.starts_with('/') => None,
        _ if rest.contains(['$', '`']) && place == "~" => Some(place.to_owned()),
        _ if rest.contains(['$', '`']) => None,
        _ => Some(format!("{place}{rest}")),
    }
}

impl Analysis {
    /// Returns every path outside the folder that some part of the command mentions, in arguments as well as in
    /// code for other programs. Where a command acts on files that are only known at run time, they may be among
    /// these.
    pub fn mentioned_paths(&self) -> Vec<String> {
        let words = self
            .commands
            .iter()
            .flat_map(|command| command.words.iter().skip(1));
        let texts = words.map(|word| word.value().unwrap_or(word.source()));
        texts.flat_map(paths_in).collect()
    }
}

fn paths_in(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_alphanumeric() || "_./~+-@%*?${}".contains(c);
    text.split(move |c| !is_part(c)).filter_map(|token| {
        if let Some(path) = from_variable(token) {
            return Some(path);
        }
        let leads_out = token.starts_with(['/', '~']) || token.split('/').any(|part| part == "..");
        let is_program = is_standard_path(token, base_name(token)) || token == "/dev/null";
        (leads_out && !is_program).then(|| token.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Blocklist, analyse};
    use super::*;

    /// SAFE-2: the files that a listed command acts on are known wherever the text shows them.
    #[test]
    fn targets_of_listed_commands() {
        let cases: &[(&str, &[&str])] = &[
            ("rm -rf a ./b", &["a", "./b"]),
            ("rm -- -x", &["-x"]),
            ("rm {a,/}", &["a", "/"]),
            ("rm -rf ~ ~/x '/'", &["~", "~/x", "/"]),
            ("rm -rf \"$HOME\"/x ${HOME} $PWD/y", &["~/x", "~", "./y"]),
            ("rm \"$HOME/$X\" $X", &["~", "?"]),
            ("echo x | xargs rm", &["?"]),
            ("dd if=/dev/zero of=/dev/sda", &["/dev/sda"]),
            ("dd if=/dev/zero bs=1", &[]),
            ("chmod -R 777 x", &["x"]),
            ("sh -c 'rm /x'", &["/x"]),
            ("python3 -c 'import os; os.system(\"rm -rf /x\")'", &["?"]),
            ("reboot", &[]),
        ];
        for (command, expected) in cases {
            let analysis = analyse(command, &Blocklist::default());
            let found: Vec<&str> = analysis
                .blocked
                .iter()
                .flat_map(|blocked| &blocked.targets)
                .map(|target| match target {
                    Target::Path(path) => path.as_str(),
                    Target::Unknown => "?",
                })
                .collect();
            assert_eq!(found, *expected, "{command}");
            assert!(!analysis.blocked.is_empty(), "{command}");
        }
        let unreadable = analyse("rm x; $y", &Blocklist::default());
        assert!(unreadable.blocked.is_empty() && unreadable.refusal.is_some());
    }

    /// SAFE-2: paths that lead out are found in arguments and in code.
    #[test]
    fn paths_are_found_where_targets_are_not_known() {
        let cases: &[(&str, &[&str])] = &[
            ("find / -name x -exec rm {} +", &["/"]),
            ("ls ../x | xargs /bin/rm", &["../x"]),
            ("ls a/b | xargs rm", &[]),
            ("python3 -c 'os.system(\"rm -rf ~/x\")'", &["~/x"]),
            ("env /bin/rm $X 2>/dev/null", &[]),
        ];
        for (command, expected) in cases {
            let found = analyse(command, &Blocklist::default()).mentioned_paths();
            assert_eq!(found, *expected, "{command}");
        }
    }
}
