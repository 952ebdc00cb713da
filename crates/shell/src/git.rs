//! `git`, whose subcommands range from reading to rewriting history on a server.

use windlass_core::tool::Category;

use super::git_table::{ADMIN, GitOperands, GitRead, READ, RUNNING, WRITE};
use super::options::{self, Parsed, Unclear};
use super::reader::Reader;
use super::word::Word;

/// Global options without an effect on what a subcommand does.
const PLAIN: &[&str] = &[
    "--no-pager",
    "-P",
    "--no-optional-locks",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-advice",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
];
/// Global options that print something and end.
const PRINTING: &[&str] = &[
    "--version",
    "-v",
    "--help",
    "-h",
    "--html-path",
    "--man-path",
    "--info-path",
    "--exec-path",
];
/// Settings that change only how a command prints, or the name of an author.
const PLAIN_SETTINGS: &[&str] = &[
    "color.",
    "column.",
    "advice.",
    "core.quotepath",
    "core.abbrev",
    "log.date",
    "log.decorate",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "status.",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "merge.conflictstyle",
    "pull.rebase",
    "pull.ff",
];

/// Records the permission that a `git` command needs, and the commands hidden in it.
pub(super) fn judge(reader: &mut Reader<'_>, arguments: &[Word]) {
    let mut words = arguments.iter();
    let subcommand = loop {
        let Some(word) = words.next() else { return };
        let Some(text) = word.fixed() else { break None };
        match text {
            "-C" => match words.next() {
                // The words after the folder may be a subcommand.
                Some(folder) if folder.may_be_several() || folder.is_glob() => break None,
                Some(folder) => reader.place.enters(folder),
                None => return,
            },
            "-c" => setting(reader, words.next().map_or("", |word| word.prefix())),
            "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--super-prefix"
            | "--attr-source" => {
                reader.foreign_code(words.next().map_or("", |word| word.prefix()), Category::Admin);
            }
            "-p" | "--paginate" => reader.raise(Category::Write),
            "--help" | "-h" if !words.as_slice().is_empty() => {
                // `git --help log` shows a manual page with a viewer of the configuration.
                reader.raise(Category::Write);
                return;
            }
            _ if PRINTING.contains(&text) => return,
            _ if PLAIN.contains(&text) => {}
            _ if text.starts_with('-') => reader.foreign_code(text, Category::Admin),
            _ => break Some(text),
        }
    };
    let rest = words.as_slice();
    match subcommand {
        Some(name) => judge_subcommand(reader, name, rest),
        // An alias may expand to anything.
        None => reader.raise(Category::Admin),
    }
}

/// A setting may name a pager, an alias or a helper, which git runs.
fn setting(reader: &mut Reader<'_>, setting: &str) {
    let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let key = key.to_ascii_lowercase();
    let is_plain = PLAIN_SETTINGS
        .iter()
        .any(|plain| key == *plain || plain.ends_with('.') && key.starts_with(plain));
    let turns_off = matches!(
        (key.as_str(), value),
        ("core.pager", "cat" | "") | ("commit.gpgsign" | "tag.gpgsign" | "core.fsmonitor", "false")
    ) || key.starts_with("pager.") && value == "false";
    if !is_plain && !turns_off {
        reader.foreign_code(setting, Category::Admin);
    }
}

fn judge_subcommand(reader: &mut Reader<'_>, name: &str, rest: &[Word]) {
    let needs = match READ.iter().find(|read| read.name == name) {
        Some(read) => match is_read(read, rest) {
            Ok(true) => {
                reader.reads_repository();
                return;
            }
            Ok(false) | Err(Unclear::Option(_)) => otherwise(name, rest),
            // The word may be an option that names a program, such as `-O` of `git grep`.
            Err(Unclear::Word(_)) if matches!(name, "grep" | "config") => Category::Admin,
            Err(Unclear::Word(_)) => otherwise(name, rest),
        },
        None => otherwise(name, rest),
    };
    if runs_commands(name, rest) {
        let all: Vec<&str> = rest.iter().map(Word::prefix).collect();
        reader.foreign_code(&all.join(" "), Category::Admin);
    }
    for path in rest
        .iter()
        .filter_map(|word| word.prefix().strip_prefix("--output="))
    {
        reader.writes_to(path);
    }
    reader.raise(needs);
}

/// Returns true if the arguments name commands that git runs.
fn runs_commands(subcommand: &str, rest: &[Word]) -> bool {
    let by_option = rest.iter().any(|word| {
        let text = word.prefix();
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let long = name.len() > 4 && RUNNING.iter().any(|option| option.starts_with(name));
        let short = match subcommand {
            "grep" => cluster(word, 'O'),
            "rebase" | "difftool" => cluster(word, 'x'),
            _ => false,
        };
        long || short
    });
    let first = rest.first().and_then(Word::fixed).unwrap_or_default();
    by_option
        || subcommand == "submodule" && !matches!(first, "status" | "summary")
        || subcommand == "bisect" && matches!(first, "run" | "visualize" | "view" | "replay")
        || matches!(
            subcommand,
            "filter-branch" | "difftool" | "for-each-repo" | "hook" | "config"
        )
}

/// Returns true if a subcommand only reads with these arguments.
fn is_read(read: &GitRead, rest: &[Word]) -> Result<bool, Unclear> {
    let parsed = options::parse_groups(read.options, rest)?;
    if parsed.has(&["help"]) {
        return Ok(false);
    }
    let operands = parsed.operands.as_slice();
    let grows = operands
        .iter()
        .any(|word| word.may_be_several() || word.is_glob());
    Ok(match read.operands {
        GitOperands::Any => true,
        GitOperands::Most(most) => operands.len() <= most && !grows,
        GitOperands::Listed => operands.is_empty() || is_listed(read.name, &parsed),
        GitOperands::Verb(verbs) => {
            let first = rest.first().and_then(Word::fixed).unwrap_or_default();
            match operands {
                [] => verbs.first() == Some(&""),
                _ => !first.is_empty() && verbs.contains(&first),
            }
        }
        GitOperands::Setting => is_reading_setting(&parsed, rest, grows),
    })
}

/// Returns true if operands are patterns and not names to create. Old versions of git understand `-l` of
/// `git branch` in another way.
fn is_listed(subcommand: &str, parsed: &Parsed) -> bool {
    parsed.has(&["list"]) || subcommand == "tag" && parsed.has(&["l"])
}

/// Returns true if `git config` only prints settings.
fn is_reading_setting(parsed: &Parsed, rest: &[Word], grows: bool) -> bool {
    let lists = parsed.has(&["l", "list"]);
    let gets = parsed.has(&["get", "get-all", "get-regexp", "get-urlmatch"]);
    match (rest.first().and_then(Word::fixed), parsed.operands.as_slice()) {
        _ if grows => false,
        (Some("list"), [_]) => true,
        (Some("get"), [_, _]) => true,
        (_, []) => lists,
        (_, [_, _]) => gets,
        (_, [name]) => gets || name.fixed().is_some_and(|name| name.contains('.')),
        _ => false,
    }
}

/// Returns the category of a subcommand that does not only read.
fn otherwise(subcommand: &str, rest: &[Word]) -> Category {
    let first = rest.first().and_then(Word::fixed).unwrap_or_default();
    let has = |wanted: &[&str]| {
        rest.iter()
            .filter_map(Word::value)
            .any(|value| wanted.contains(&value))
    };
    let letter = |letter: char| rest.iter().any(|word| cluster(word, letter));
    let long = |start: &str| rest.iter().any(|word| word.prefix().starts_with(start));
    match subcommand {
        "branch" | "tag" | "stash" | "worktree" | "remote" | "notes" => {
            let deletes = matches!(subcommand, "branch" | "tag") && (letter('d') || letter('C'));
            let destroys = deletes
                || letter('D')
                || letter('f')
                || long("--force")
                || long("--delete")
                || has(&["drop", "clear", "set-url", "remove", "rm", "prune"])
                || subcommand != "notes" && has(&["add"]);
            if destroys {
                Category::Admin
            } else {
                Category::Write
            }
        }
        "reset" if long("--hard") || long("--merge") || long("--keep") => Category::Admin,
        "checkout" | "switch" | "restore" | "read-tree" if discards(subcommand, rest) => Category::Admin,
        "clean" if letter('n') || long("--dry-run") => Category::Write,
        "rm" if long("--cached") && !letter('f') && !long("--force") => Category::Write,
        "bisect"
            if matches!(
                first,
                "start" | "good" | "bad" | "old" | "new" | "skip" | "reset" | "log" | "terms" | "next"
            ) =>
        {
            Category::Write
        }
        "reflog" if !matches!(first, "expire" | "delete" | "drop" | "write") => Category::Write,
        "submodule" if matches!(first, "status" | "summary") => Category::Write,
        _ if ADMIN.contains(&subcommand) => Category::Admin,
        _ if WRITE.contains(&subcommand) || READ.iter().any(|read| read.name == subcommand) => {
            Category::Write
        }
        // Not a known subcommand: an alias, or a program named `git-something`.
        _ => Category::Admin,
    }
}

/// Returns true if a subcommand replaces files that may have uncommitted changes, or a branch.
fn discards(subcommand: &str, rest: &[Word]) -> bool {
    let letter = |letter: char| rest.iter().any(|word| cluster(word, letter));
    let long = |start: &str| rest.iter().any(|word| word.prefix().starts_with(start));
    if letter('f') || long("--force") || long("--discard-changes") {
        return true;
    }
    match subcommand {
        "switch" => letter('C'),
        "read-tree" => letter('u') || long("--reset"),
        "restore" => !(letter('S') || long("--staged")) || letter('W') || long("--worktree"),
        _ => letter('B') || long("--ours") || long("--theirs") || long("--pathspec") || names_files(rest),
    }
}

/// Returns true if `git checkout` is given files and not only a branch: after `--`, after a commit, or a single operand
/// that looks like a path.
fn names_files(rest: &[Word]) -> bool {
    let mut operands = rest.iter().filter(|word| !word.starts_with('-'));
    let creates = |word: &Word| cluster(word, 'b') || word.prefix().starts_with("--orphan");
    let is_created = rest.iter().any(creates);
    let split = rest.iter().position(|word| word.value() == Some("--"));
    match (split, operands.next(), operands.next()) {
        (Some(split), ..) => rest.len() > split + 1,
        (None, ..) if is_created => false,
        (None, Some(_), Some(_)) => true,
        (None, Some(only), None) => is_path(only),
        (None, None, _) => false,
    }
}

/// Returns true if a word looks like a path and not like the name of a branch, a tag or a commit.
fn is_path(word: &Word) -> bool {
    let Some(text) = word.fixed().filter(|_| !word.is_glob()) else {
        return true;
    };
    let name = text.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_file = ending.is_some_and(|ending| {
        (1..=5).contains(&ending.len()) && ending.starts_with(|letter: char| letter.is_ascii_alphabetic())
    });
    is_file || matches!(text, "." | "..") || text.starts_with(['.', '/', ':', '~']) || text.ends_with('/')
}

/// Returns true if a word is a cluster of options with this letter.
pub(super) fn cluster(word: &Word, letter: char) -> bool {
    word.starts_with('-') && !word.prefix().starts_with("--") && word.prefix().contains(letter)
}
