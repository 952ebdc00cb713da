//! Git's settings, as far as they name files of a repository that git runs or reads settings from.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Maximum size of a file of settings.
const MAX_FILE: u64 = 256 << 10;
/// Maximum number of files that are read, which may include each other.
const MAX_FILES: usize = 32;

/// Settings whose value is a command, by section. An empty key stands for all keys.
const COMMANDS: &[(&str, &[&str])] = &[
    ("alias", &[""]),
    (
        "core",
        &[
            "alternaterefscommand",
            "askpass",
            "editor",
            "fsmonitor",
            "gitproxy",
            "pager",
            "sshcommand",
            "virtualfilesystem",
        ],
    ),
    ("credential", &["helper"]),
    ("diff", &["command", "external", "textconv"]),
    ("difftool", &["cmd", "path"]),
    ("filter", &["clean", "process", "smudge"]),
    ("gpg", &["defaultkeycommand", "program"]),
    ("guitool", &["cmd"]),
    ("hook", &["command"]),
    ("interactive", &["difffilter"]),
    ("merge", &["driver"]),
    ("mergetool", &["cmd", "path"]),
    ("pager", &[""]),
    ("remote", &["receivepack", "uploadpack"]),
    ("sequence", &["editor"]),
    ("trailer", &["cmd", "command"]),
    ("uploadpack", &["packobjectshook"]),
];

/// The files of a repository that its settings name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedFiles {
    /// Folders of hooks. They need not exist.
    pub(super) hooks: Vec<PathBuf>,
    /// Programs, and further files of settings.
    pub(super) files: Vec<PathBuf>,
    /// True if objects have long names.
    pub(super) is_sha256: bool,
}

impl NamedFiles {
    /// Reads files of settings, and those that they include. `root` is the folder with the repository's files.
    pub(super) fn of(files: Vec<PathBuf>, root: &Path, home: Option<&Path>) -> Self {
        let mut named = Self::default();
        let mut queue = files;
        let mut next = 0;
        while let Some(file) = queue.get(next).filter(|_| next < MAX_FILES).cloned() {
            next += 1;
            let Some(text) = read_short(&file) else { continue };
            let folder = file.parent().unwrap_or(root);
            for setting in parse(&text) {
                let value = setting.value.as_str();
                match (setting.section.as_str(), setting.key.as_str()) {
                    ("include" | "includeif", "path") => {
                        if let Some(path) = place(folder, value, home) {
                            named.files.extend(inside(&path, root));
                            queue.push(path);
                        }
                    }
                    ("core", "hookspath") => {
                        let path = place(root, value, home);
                        named.hooks.extend(path.and_then(|path| inside(&path, root)));
                    }
                    ("extensions", "objectformat") => named.is_sha256 |= value == "sha256",
                    _ if setting.is_command() => named.files.extend(programs(value, root, home)),
                    _ => {}
                }
            }
        }
        named
    }
}

/// Returns the files of the repository that a command line names.
fn programs(command: &str, root: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let ends = |letter: char| letter.is_whitespace() || "\"'!;|&()<>=$".contains(letter);
    let words = command.split(ends).filter(|word| !word.is_empty());
    let paths = words.filter_map(|word| inside(&place(root, word, home)?, root));
    paths.filter(|path| path.is_file()).collect()
}

/// Returns the absolute path that a value means, without `.` and `..`.
fn place(folder: &Path, value: &str, home: Option<&Path>) -> Option<PathBuf> {
    let whole = match value.strip_prefix("~/") {
        Some(rest) => home?.join(rest),
        None => folder.join(value),
    };
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// Returns a path if it is below the root, and not git's own folder, which commands must be able to write.
fn inside(path: &Path, root: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(root).ok()?;
    (below.components().next().is_some() && below != Path::new(".git")).then(|| path.to_owned())
}

pub(super) fn read_short(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let is_short = found.is_file() && found.len() <= MAX_FILE;
    let bytes = is_short.then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    value: String,
}

impl Setting {
    fn is_command(&self) -> bool {
        let of_section = COMMANDS.iter().find(|(section, _)| *section == self.section);
        of_section.is_some_and(|(_, keys)| keys.contains(&"") || keys.contains(&self.key.as_str()))
    }
}

/// Returns the settings in a text, with the names of sections and keys in lower case. Lines that git would refuse are
/// skipped.
fn parse(text: &str) -> Vec<Setting> {
    let mut letters = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut settings = Vec::new();
    let mut section = String::new();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        if letter == '[' {
            section = letters.by_ref().take_while(|letter| *letter != ']').collect();
            // A quote in the name of a part may contain a bracket; the rest of the line is then no setting.
            let ends = |letter: char| letter.is_whitespace() || letter == '.' || letter == '"';
            section = section
                .split(ends)
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            letters.by_ref().find(|letter| *letter == '\n');
            continue;
        }
        let mut key = String::from(letter.to_ascii_lowercase());
        while let Some(letter) = letters.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '-') {
            key.push(letter.to_ascii_lowercase());
        }
        while letters.next_if(|letter| matches!(letter, ' ' | '\t')).is_some() {}
        let value = match letters.next_if_eq(&'=') {
            Some(_) => value(&mut letters),
            None => String::new(),
        };
        settings.push(Setting {
            section: section.clone(),
            key,
            value,
        });
    }
    settings
}

/// Reads a value up to the end of its line, with quotes, comments and continued lines as git reads them.
fn value(letters: &mut impl Iterator<Item = char>) -> String {
    let mut value = String::new();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => break,
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some('\r') => drop(letters.next()),
                Some('t') => value.push('\t'),
                Some('n') => value.push('\n'),
                Some(other) => value.push(other),
            },
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => {
                letters.find(|letter| *letter == '\n');
                break;
            }
            other => value.push(other),
        }
    }
    value.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(config: &str) -> (tempfile::TempDir, PathBuf, NamedFiles) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a folder");
        fs::create_dir_all(root.join(".git")).expect("a folder");
        fs::create_dir_all(root.join("tools")).expect("a folder");
        fs::write(root.join("tools/run"), "").expect("a file");
        fs::write(root.join(".git/config"), config).expect("a file");
        let files = NamedFiles::of(vec![root.join(".git/config")], &root, Some(&root.join("home")));
        (folder, root, files)
    }

    /// SAFE-10: the folder of hooks is found in every spelling that git accepts.
    #[test]
    fn hooks_are_found_in_every_spelling() {
        for text in [
            "[core]\nhooksPath = tools/hooks\n",
            "[CORE]\n\tHOOKSPATH=tools/hooks",
            "[core] hooksPath = tools/hooks\n",
            "[core]\nhooksPath = \"tools/hooks\" # why\n",
            "[core]\nhooksPath = tools/hooks ; why\n",
            "[core]\nhooksPath = ./x/../tools/hooks\n",
            "[core]\nhooksPath = tools/\\\nhooks\n",
            "[core]\nhooksPath = tools/hooks\nhooksPath = elsewhere\n",
            "\u{feff}[core]\nhooksPath = tools/hooks\r\n",
        ] {
            let (_folder, root, files) = named(text);
            assert!(
                files.hooks.contains(&root.join("tools/hooks")),
                "{text}: {files:?}"
            );
        }
        for text in [
            "[core]\nhooksPath = /elsewhere\n",
            "[core]\nhooksPath = .\n",
            "[core]\nhooksPath = .git\n",
            "# [core]\n# hooksPath = x\n",
            "[user]\nhooksPath = x\n",
        ] {
            assert_eq!(named(text).2.hooks, Vec::<PathBuf>::new(), "{text}");
        }
    }

    /// SAFE-10: programs of the repository that git runs, and files of settings that it reads, are found.
    #[test]
    fn programs_and_included_files_are_found() {
        for text in [
            "[filter \"x\"]\n\tclean = ./tools/run %f\n",
            "[Filter.x]\nsmudge=tools/run",
            "[alias]\n\tgo = \"!sh tools/run\"\n",
            "[core]\n\tfsmonitor = tools/run\n",
            "[diff] external = tools/run\n",
            "[include]\n\tpath = ../tools/run\n",
            "[includeIf \"gitdir:/a]b\"]\npath = ../tools/run\n",
        ] {
            let (_folder, root, files) = named(text);
            assert_eq!(files.files, [root.join("tools/run")], "{text}");
        }
        for text in [
            "[core]\n\texcludesFile = tools/run\n",
            "[filter \"x\"]\n\tclean = git-lfs clean\n",
            "[remote \"a\"]\n\turl = tools/run\n",
        ] {
            assert_eq!(named(text).2.files, Vec::<PathBuf>::new(), "{text}");
        }
    }

    #[test]
    fn included_files_are_read() {
        let (_folder, root, _) = named("");
        fs::write(
            root.join("more"),
            "[include]\npath = more\n[core]\nhooksPath = h\n",
        )
        .expect("a file");
        fs::write(root.join(".git/config"), "[include]\npath = ../more\n").expect("a file");
        let files = NamedFiles::of(vec![root.join(".git/config")], &root, None);
        assert!(files.hooks.contains(&root.join("h")), "{files:?}");
        assert!(files.files.contains(&root.join("more")), "{files:?}");
    }
}
