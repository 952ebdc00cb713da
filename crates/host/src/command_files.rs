//! CMD-1: commands defined by the user or by a trusted project: Markdown files that contain a prompt.
//!
//! `commands/review.md` is `/review`, `commands/git/commit.md` is `/git:commit`. A file may start with YAML
//! between two lines of `---`: `description` and `argument-hint`. An error in one file affects only that
//! file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use windlass_api::{CommandSource, command_line};
use windlass_service::format::cut;
use windlass_service::{Defined, DefinedCommand};

use windlass_config::folders::Folders;
use windlass_config::trust::{self, TrustState};

/// Maximum size of a file in bytes.
const LARGEST: u64 = 64 * 1024;
/// Maximum number of files that are read, and the maximum depth of folders.
const MOST: usize = 500;
const DEEPEST: usize = 5;
/// Number of characters of the prompt that replace a missing description.
const SHOWN: usize = 80;

/// Folders that hold the command files of a session.
pub struct CommandFiles {
    folders: Folders,
    cwd: PathBuf,
}

impl CommandFiles {
    /// Looks for command files of the user and of the project that contains `cwd`.
    pub fn new(folders: Folders, cwd: &Path) -> Self {
        Self {
            folders,
            cwd: cwd.to_owned(),
        }
    }

    /// Reads the files and returns the commands, the user's own first.
    pub fn read(&self) -> Defined {
        let mut defined = Defined::default();
        self.read_user(&mut defined);
        self.read_project(&mut defined);
        add_built_in(&mut defined);
        defined
    }

    fn read_user(&self, defined: &mut Defined) {
        let folder = self.folders.user_commands();
        let mut files = Vec::new();
        walk(&folder, 0, &mut files);
        files.sort();
        if files.len() > MOST {
            let text = format!("{}: only the first {MOST} files count", folder.display());
            defined.warnings.push(text);
        }
        for file in files.iter().take(MOST) {
            let bytes = read_small(file);
            let name = file.strip_prefix(&folder).unwrap_or(file);
            add(defined, name, bytes, CommandSource::User, file);
        }
    }

    fn read_project(&self, defined: &mut Defined) {
        let Some(project) = self.folders.project(&self.cwd) else {
            return;
        };
        let folder = project.commands_folder();
        if !folder.exists() {
            return;
        }
        let standing = trust::look(&self.folders, &project);
        defined.warnings.extend(standing.notice(&project));
        let TrustState::Trusted(snapshot) = standing else {
            return;
        };
        for (name, bytes) in snapshot.below(&project, &folder) {
            if name.extension().is_some_and(|extension| extension == "md") {
                let bytes = fitting(bytes.len() as u64).map(|()| bytes.to_vec());
                add(defined, &name, bytes, CommandSource::Project, &folder.join(&name));
            }
        }
    }
}

/// CMD-1: commands that are only a prompt. A file of the user or the project of the same name replaces one.
const BUILT_IN: &[(&str, &str, &str, &str)] = &[
    (
        "init",
        "[WISHES]",
        "Have the model write AGENTS.md: instructions for working in this folder",
        include_str!("../prompts/init.md"),
    ),
    (
        "review",
        "[WHAT]",
        "Have the model review the uncommitted changes, a branch, a commit or files; it changes nothing",
        include_str!("../prompts/review.md"),
    ),
];

fn add_built_in(defined: &mut Defined) {
    for (name, hint, description, body) in BUILT_IN {
        if defined.commands.iter().all(|command| command.name != *name) {
            defined.commands.push(DefinedCommand {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
                hint: (*hint).to_owned(),
                body: (*body).to_owned(),
                source: CommandSource::BuiltIn,
                file: "built in".to_owned(),
                runs_in: None,
            });
        }
    }
}

/// Returns the Markdown files below a folder; none if the folder cannot be read.
pub(crate) fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < DEEPEST && files.len() <= MOST {
            walk(&path, depth + 1, files);
        } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

pub(crate) fn read_small(file: &Path) -> Result<Vec<u8>, String> {
    read_limited(file, LARGEST)
}

/// Reads a file of at most `most` bytes.
pub(crate) fn read_limited(file: &Path, most: u64) -> Result<Vec<u8>, String> {
    windlass_sandbox::read_regular(file, most).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => format!("it is larger than {} KB", most / 1024),
        _ => error.to_string(),
    })
}

fn fitting(bytes: u64) -> Result<(), String> {
    if bytes > LARGEST {
        return Err(format!("it is larger than {} KB", LARGEST / 1024));
    }
    Ok(())
}

pub(crate) fn add(
    defined: &mut Defined,
    name: &Path,
    bytes: Result<Vec<u8>, String>,
    source: CommandSource,
    file: &Path,
) {
    let parsed = bytes.and_then(|bytes| {
        let name = called(name)?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
        let (head, body) = parts(&text)?;
        let first = body.lines().find(|line| !line.trim().is_empty());
        let first = first.ok_or("there is no text in it")?;
        let description = head.description.unwrap_or_else(|| first.to_owned());
        Ok(DefinedCommand {
            name,
            description: cut(&description, SHOWN),
            hint: head.hint.map(Hint::into_text).unwrap_or_default(),
            body: body.to_owned(),
            source,
            file: file.display().to_string(),
            runs_in: None,
        })
    });
    match parsed {
        Ok(command) => defined.commands.push(command),
        Err(why) => defined.warnings.push(format!("{}: {why}", file.display())),
    }
}

/// Returns the name of a command from its path below the folder of commands.
fn called(path: &Path) -> Result<String, String> {
    let path = path.with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let name = parts.join(":");
    let line = format!("/{name}");
    match command_line(&line) {
        Some(parsed) if parsed.name == name && !name.contains(|letter: char| letter.is_ascii_uppercase()) => {
            Ok(name)
        }
        _ => Err(format!(
            "/{name} cannot be typed: a name begins with a small letter and has small letters, digits, `_` and `-`"
        )),
    }
}

/// Front matter of a command file.
#[derive(Debug, Default, Deserialize)]
struct Head {
    description: Option<String>,
    #[serde(rename = "argument-hint")]
    hint: Option<Hint>,
}

/// YAML reads `[file]` as a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Hint {
    Text(String),
    List(Vec<String>),
}

impl Hint {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => cut(&text, SHOWN),
            Self::List(words) => cut(&format!("[{}]", words.join(", ")), SHOWN),
        }
    }
}

/// Splits a file into its front matter and its prompt.
fn parts(file: &str) -> Result<(Head, &str), String> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = file.split_inclusive('\n');
    if !lines.next().is_some_and(is_fence) {
        return Ok((Head::default(), file));
    }
    let begin = file.find('\n').map_or(file.len(), |end| end + 1);
    let mut end = begin;
    for line in lines {
        if is_fence(line) {
            let head = file.get(begin..end).unwrap_or_default();
            let body = file.get(end + line.len()..).unwrap_or_default();
            if head.trim().is_empty() {
                return Ok((Head::default(), body));
            }
            let head =
                serde_saphyr::from_str(head).map_err(|error| format!("the part between `---`: {error}"))?;
            return Ok((head, body));
        }
        end += line.len();
    }
    Err("the line `---` that ends its head is missing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str) -> Result<DefinedCommand, String> {
        let mut defined = Defined::default();
        let path = Path::new("git/commit.md");
        add(&mut defined, path, Ok(file.into()), CommandSource::User, path);
        defined.commands.pop().ok_or_else(|| defined.warnings.join("\n"))
    }

    /// CMD-1: a file has a name, optional front matter, and a prompt.
    #[test]
    fn files_are_read() {
        let whole =
            check("---\ndescription: Commit it\nargument-hint: [message]\nmodel: x\n---\nCommit: $1\n")
                .unwrap();
        assert_eq!(
            (
                whole.name.as_str(),
                whole.description.as_str(),
                whole.hint.as_str()
            ),
            ("git:commit", "Commit it", "[message]")
        );
        assert_eq!(whole.body, "Commit: $1\n");
        let bare = check("\nCommit everything\nnow").unwrap();
        assert_eq!(
            (bare.description.as_str(), bare.hint.as_str()),
            ("Commit everything", "")
        );
        let empty_head = check("---\r\n---\r\ntext").unwrap();
        assert_eq!(empty_head.body, "text");
    }

    /// CMD-1: an error in a file is reported with its cause.
    #[test]
    fn mistakes_are_named() {
        for (file, why) in [
            ("", "there is no text"),
            ("---\ndescription: x\n---\n\n", "there is no text"),
            ("---\ndescription: x\ntext", "that ends its head is missing"),
            ("---\ndescription: [\n---\ntext", "the part between `---`"),
        ] {
            let error = check(file).unwrap_err();
            assert!(
                error.starts_with("git/commit.md: ") && error.contains(why),
                "{error}"
            );
        }
        assert!(
            called(Path::new("Review.md"))
                .unwrap_err()
                .contains("cannot be typed")
        );
        assert!(called(Path::new("a b.md")).is_err());
        assert!(fitting(LARGEST).is_ok() && fitting(LARGEST + 1).is_err());
    }
}
