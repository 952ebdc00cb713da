//! Settings of git repositories that name programs. A command such as `git status` runs filters, external
//! diffs and text converters that the repository's own settings name, so in such a repository it is not a
//! read. Settings with a fixed name are overridden by [`windlass_sandbox::reading_environment`] instead.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

/// Maximum size of a settings file in bytes.
const LARGEST: u64 = 256 * 1024;
/// Maximum number of folders searched for the settings of submodules.
const MOST_FOLDERS: usize = 200;
/// Maximum depth of a submodule's folder.
const DEEPEST: usize = 8;

/// Returns true if the settings of the repository around a folder may name a program that a reading command
/// runs. True also if they cannot be read.
pub(super) fn names_programs(folder: &Path) -> bool {
    let Some(repository) = repository_of(folder) else {
        return false;
    };
    let Some(folder) = repository else { return true };
    let common = match read(&folder.join("commondir")) {
        Content::Missing => folder.clone(),
        Content::Text(text) => folder.join(text.trim()),
        Content::Unreadable => return true,
    };
    let mut left = MOST_FOLDERS;
    let mut of_modules = || submodules_name_programs(&common.join("modules"), 0, &mut left);
    file_names_programs(&common.join("config"))
        || file_names_programs(&folder.join("config.worktree"))
        || of_modules()
}

/// Returns the folder of the repository that git finds from a folder: `None` if there is none, and
/// `Some(None)` if it cannot be determined.
#[expect(clippy::option_option, reason = "none and unknown are different answers")]
fn repository_of(folder: &Path) -> Option<Option<PathBuf>> {
    let Ok(start) = folder.canonicalize() else {
        // git fails there.
        return None;
    };
    for folder in start.ancestors() {
        let inside = folder.join(".git");
        if inside.is_dir() {
            return Some(Some(inside));
        }
        if inside.symlink_metadata().is_ok() {
            let Content::Text(text) = read(&inside) else {
                return Some(None);
            };
            let target = text.strip_prefix("gitdir:").map(|path| folder.join(path.trim()));
            return Some(target.filter(|target| target.is_dir()));
        }
        let is_bare =
            folder.join("HEAD").exists() && folder.join("objects").is_dir() && folder.join("refs").is_dir();
        if is_bare {
            return Some(Some(folder.to_owned()));
        }
    }
    None
}

fn submodules_name_programs(folder: &Path, depth: usize, left: &mut usize) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        *left = left.saturating_sub(1);
        if *left == 0 || depth > DEEPEST {
            return true;
        }
        let is_repository = path.join("HEAD").exists();
        let inner = if is_repository {
            path.join("modules")
        } else {
            path.clone()
        };
        if is_repository && file_names_programs(&path.join("config"))
            || submodules_name_programs(&inner, depth + 1, left)
        {
            return true;
        }
    }
    false
}

fn file_names_programs(path: &Path) -> bool {
    match read(path) {
        Content::Missing => false,
        Content::Text(text) => !is_plain(&text),
        Content::Unreadable => true,
    }
}

enum Content {
    Missing,
    Text(String),
    Unreadable,
}

/// Reads a small regular file. The workspace may have put anything else in its place.
fn read(path: &Path) -> Content {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Content::Missing,
        Err(_) => return Content::Unreadable,
    };
    let is_file = rustix::fs::fstat(&file)
        .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile);
    let mut text = String::new();
    let read = is_file.then(|| file.take(LARGEST + 1).read_to_string(&mut text));
    match read {
        Some(Ok(bytes)) if bytes as u64 <= LARGEST => Content::Text(text),
        _ => Content::Unreadable,
    }
}

/// Returns true if every setting of a file is known to name no program, or one that is overridden.
fn is_plain(text: &str) -> bool {
    let mut section = String::new();
    let mut part = None;
    text.trim_start_matches('\u{feff}').lines().all(|line| {
        let mut line = line.trim();
        if line.starts_with('[') {
            let Some((head, rest)) = section_head(line) else {
                return false;
            };
            (section, part) = head;
            line = rest.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        let name: String = line
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        is_plain_setting(&section, part.as_deref(), &name.to_ascii_lowercase())
    })
}

/// Splits `[section "part"] rest` into the section with its part, and the rest.
fn section_head(line: &str) -> Option<((String, Option<String>), &str)> {
    let inner = line.strip_prefix('[')?;
    let name: String = inner
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .collect();
    let rest = inner.get(name.len()..)?.trim_start();
    let name = name.to_ascii_lowercase();
    if let Some(rest) = rest.strip_prefix(']') {
        let (section, part) = match name.split_once('.') {
            Some((section, part)) => (section.to_owned(), Some(part.to_owned())),
            None => (name, None),
        };
        return Some(((section, part), rest));
    }
    let quoted = rest.strip_prefix('"')?;
    let mut escaped = false;
    let end = quoted.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let rest = quoted.get(end + 1..)?.strip_prefix(']')?;
    Some(((name, Some(quoted.get(..end)?.to_owned())), rest))
}

/// Sections that reading commands either ignore or use only to choose what they print.
const PLAIN_SECTIONS: &[&str] = &[
    "advice",
    "alias",
    "apply",
    "author",
    "blame",
    "branch",
    "checkout",
    "clone",
    "color",
    "column",
    "commit",
    "committer",
    "credential",
    "difftool",
    "feature",
    "fetch",
    "format",
    "gc",
    "gitflow",
    "github",
    "grep",
    "gui",
    "http",
    "hub",
    "i18n",
    "index",
    "init",
    "lfs",
    "log",
    "mailmap",
    "maintenance",
    "mergetool",
    "notes",
    "pack",
    "pager",
    "pull",
    "push",
    "rebase",
    "receive",
    "repack",
    "rerere",
    "safe",
    "stash",
    "status",
    "svn-remote",
    "tag",
    "transfer",
    "url",
    "user",
    "versionsort",
    "worktree",
];

fn is_plain_setting(section: &str, part: Option<&str>, key: &str) -> bool {
    match (section, part) {
        ("core", None) => !matches!(
            key,
            "gitproxy" | "alternaterefscommand" | "virtualfilesystem" | "attributesfile"
        ),
        ("diff", None) => key != "external",
        ("diff", Some(_)) => matches!(
            key,
            "xfuncname" | "funcname" | "binary" | "wordregex" | "cachetextconv"
        ),
        ("merge", None) => true,
        ("remote", _) => !matches!(key, "promisor" | "partialclonefilter" | "vcs"),
        ("submodule", _) => key != "ignore",
        ("extensions", None) => !matches!(key, "partialclone"),
        ("gpg", None) => key == "format",
        _ => PLAIN_SECTIONS.contains(&section),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-5: settings that make a reading git command run a program are found, in every spelling of the
    /// file; ordinary ones are not.
    #[test]
    fn settings_that_name_programs() {
        let plain = [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[remote \"origin\"]\n\turl = git@host:x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[branch \"a]b\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = Ann\n",
            "# [filter \"x\"]\n; clean = y\n[color]\n\tui = auto # filter\n",
            "[core] fsmonitor = true\n[pager] log = x\n[alias] st = !x\n",
            "[diff \"rust\"] xfuncname = ^fn\n[diff] algorithm = histogram\n",
        ];
        for text in plain {
            assert!(is_plain(text), "{text}");
        }
        let named = [
            "[filter \"x\"]\n\tclean = touch y\n",
            "[Filter.x]\nclean=touch y",
            "[core]\nbare = false\n[diff]\n\texternal = ./x\n",
            "[diff] external = ./x",
            "[DIFF \"x\"]\n\ttextconv = ./x\n",
            "[diff \"x\"] command = ./x",
            "[include]\n\tpath = ../x\n",
            "[includeIf \"gitdir:/\"]\n\tpath = ../x\n",
            "[hook \"x\"]\n\tcommand = ./x\n",
            "[remote \"x\"]\n\tpromisor = true\n",
            "[extensions]\n\tpartialClone = x\n",
            "[gpg]\n\tprogram = ./x\n",
            "[unheard-of]\n\tx = y\n",
            "[broken\n",
            "\u{feff}[filter \"x\"] clean = y",
            "[core]\n\tx = y\\\n[filter \"x\"]\n\tclean = y\n",
        ];
        for text in named {
            assert!(!is_plain(text), "{text}");
        }
    }

    /// SAFE-5: the settings are found as git finds them: from a folder inside, through a `.git` file, in a
    /// bare repository and in submodules. Settings that are no file are not trusted.
    #[test]
    fn settings_are_found_where_git_finds_them() {
        let filter = "[filter \"x\"]\n\tclean = touch y\n";
        let plain = "[core]\n\tbare = false\n";
        let cases: &[(&[(&str, &str)], bool)] = &[
            (&[(".git/config", plain)], false),
            (&[(".git/config", filter)], true),
            (&[(".git/config", plain), (".git/config.worktree", filter)], true),
            (&[(".git", "gitdir: real\n"), ("real/config", filter)], true),
            (&[(".git", "gitdir: real\n"), ("real/config", plain)], false),
            (&[(".git", "gitdir: missing\n")], true),
            (
                &[
                    (".git", "gitdir: m/worktrees/a"),
                    ("m/worktrees/a/commondir", "../..\n"),
                    ("m/config", filter),
                ],
                true,
            ),
            (
                &[
                    ("HEAD", "x"),
                    ("objects/x", ""),
                    ("refs/x", ""),
                    ("config", filter),
                ],
                true,
            ),
            (
                &[
                    (".git/config", plain),
                    (".git/modules/a/b/HEAD", ""),
                    (".git/modules/a/b/config", filter),
                ],
                true,
            ),
            (&[(".git/config/folder", "")], true),
        ];
        for (files, expected) in cases {
            let folder = tempfile::tempdir().expect("a folder");
            for (name, content) in *files {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
                std::fs::write(path, content).expect("a file");
            }
            let inside = folder.path().join("src/deep");
            std::fs::create_dir_all(&inside).expect("folders");
            assert_eq!(names_programs(folder.path()), *expected, "{files:?}");
            assert_eq!(names_programs(&inside), *expected, "{files:?} from inside");
        }
    }
}
