//! `git`, whose subcommands range from reading to rewriting history on a server.

use windlass_core::tool::Category;

use super::reader::{Directory, Reader};
use super::word::Word;

/// Subcommands that only read.
const READ: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "blame",
    "annotate",
    "describe",
    "shortlog",
    "rev-list",
    "cat-file",
    "merge-base",
    "name-rev",
    "for-each-ref",
    "show-ref",
    "count-objects",
    "diff-tree",
    "diff-index",
    "diff-files",
    "whatchanged",
    "version",
    "check-ignore",
    "check-attr",
    "var",
    "grep",
    "cherry",
    "range-diff",
    "verify-commit",
    "show-branch",
    "help",
];
/// Subcommands that contact other machines, rewrite history, or run the commands they are given.
const ADMIN: &[&str] = &[
    "push",
    "filter-branch",
    "filter-repo",
    "bisect",
    "submodule",
    "daemon",
    "send-email",
    "difftool",
    "mergetool",
    "credential",
    "gc",
    "prune",
    "reflog",
    "update-ref",
    "remote-https",
    "remote-ext",
    "upload-pack",
    "receive-pack",
    "shell",
    "instaweb",
    "web--browse",
    "maintenance",
    "hook",
    "config",
    "clone",
    "fetch",
    "pull",
    "ls-remote",
];
/// Options that run a program or write a file, wherever they appear.
const RUNNING: &[&str] = &[
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--open-files-in-pager",
    "--ext-diff",
    "--textconv",
    "--output",
    "--config",
    "--config-env",
    "--exec-path",
    "--paginate",
    "--template",
    "--editor",
    "--sequence-editor",
];

/// Records the permission that a `git` command needs, and the commands hidden in it.
pub(super) fn judge(reader: &mut Reader<'_>, arguments: &[Word]) {
    let mut words = arguments.iter();
    let subcommand = loop {
        let Some(word) = words.next() else { return };
        let Some(text) = word.fixed() else { break None };
        match text {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "-c" | "--config-env" | "--exec-path" => {
                let value = words.next();
                if text == "-C" {
                    reader.moves(Directory::Elsewhere, value.and_then(Word::fixed));
                    continue;
                }
                // A setting may name a pager, an alias or a helper, which git runs.
                reader.foreign_code(value.map_or("", |word| word.prefix()), Category::Admin);
            }
            "-p" | "--paginate" => reader.raise(Category::Write),
            _ if text.starts_with("--git-dir=")
                || text.starts_with("--work-tree=")
                || text.starts_with("-c") =>
            {
                reader.foreign_code(text, Category::Admin);
            }
            _ if text.starts_with("--exec-path=") || text.starts_with("--config-env=") => {
                reader.raise(Category::Admin);
            }
            _ if text.starts_with('-') => {}
            _ => break Some(text),
        }
    };
    let rest: Vec<&Word> = words.collect();
    let Some(subcommand) = subcommand else {
        // An alias may expand to anything.
        reader.raise(Category::Admin);
        return;
    };
    for word in &rest {
        let text = word.prefix();
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let runs = name.len() > 4 && RUNNING.iter().any(|option| option.starts_with(name))
            || (subcommand == "grep" && text.starts_with("-O"))
            || (subcommand == "rebase" && text.starts_with("-x"));
        if runs {
            let all: Vec<&str> = rest.iter().map(|word| word.prefix()).collect();
            reader.foreign_code(&all.join(" "), Category::Admin);
        }
    }
    reader.raise(category(subcommand, &rest));
}

fn category(subcommand: &str, rest: &[&Word]) -> Category {
    let has = |wanted: &[&str]| {
        rest.iter()
            .filter_map(|word| word.value())
            .any(|value| wanted.contains(&value))
    };
    let cluster = |letter: char| {
        rest.iter().any(|word| {
            word.starts_with('-') && !word.prefix().starts_with("--") && word.prefix().contains(letter)
        })
    };
    let long = |start: &str| rest.iter().any(|word| word.prefix().starts_with(start));
    let options_known = rest
        .iter()
        .take_while(|word| word.value() != Some("--"))
        .all(|word| !word.may_be_option());
    let listing = rest.iter().all(|word| word.starts_with('-'));
    match subcommand {
        _ if READ.contains(&subcommand) => {
            if options_known {
                Category::Read
            } else {
                Category::Admin
            }
        }
        "branch" | "tag" | "stash" | "worktree" | "remote" | "notes" => {
            let only_lists =
                has(&["list", "--list", "-l"]) && !cluster('d') && !cluster('D') && !cluster('f')
                    || listing && !cluster('d') && !cluster('D') && !cluster('m') && subcommand != "stash";
            if only_lists && options_known {
                Category::Read
            } else if cluster('D')
                || cluster('f')
                || long("--force")
                || long("--delete")
                || has(&["drop", "clear", "add", "set-url", "remove"])
            {
                Category::Admin
            } else {
                Category::Write
            }
        }
        "reset" if long("--hard") || long("--merge") || long("--keep") => Category::Admin,
        "clean" | "rm" => Category::Admin,
        "checkout" | "switch" | "restore" if cluster('f') || long("--force") || long("--discard-changes") => {
            Category::Admin
        }
        "config"
            if has(&[
                "--list",
                "-l",
                "--get",
                "--get-all",
                "--get-regexp",
                "get",
                "list",
            ]) && options_known =>
        {
            Category::Read
        }
        _ if ADMIN.contains(&subcommand) => Category::Admin,
        _ if KNOWN_WRITES.contains(&subcommand) => Category::Write,
        // Not a known subcommand: an alias, or a program named `git-something`.
        _ => Category::Admin,
    }
}

const KNOWN_WRITES: &[&str] = &[
    "add",
    "commit",
    "checkout",
    "switch",
    "restore",
    "reset",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "mv",
    "init",
    "apply",
    "am",
    "format-patch",
    "archive",
    "bundle",
    "sparse-checkout",
    "rerere",
    "symbolic-ref",
    "update-index",
    "hash-object",
    "write-tree",
    "commit-tree",
    "read-tree",
    "mktag",
    "mktree",
    "stage",
    "fsck",
    "repack",
    "pack-refs",
];
