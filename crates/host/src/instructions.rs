//! EXT-1, CFG-2: instructions of the user and the project for every model: `AGENTS.md` and similar files.
//!
//! They are part of the system prompt, so compaction never touches them. They are checked for changes before
//! every turn; if they have not changed, the prompt stays identical to the byte.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass_sandbox::{OpenMode, Roots, read_open};

use windlass_config::folders::{Folders, is_repository};

/// File names to look for in each folder; the first of each group that exists is read.
const NAMES: &[&[&str]] = &[&["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"]];
/// SUB-2: file names for a sub-agent: the project's instructions, and notes about its tools.
const AGENT_NAMES: &[&[&str]] = &[&["AGENTS.override.md", "AGENTS.md"], &["TOOLS.md"]];
/// Maximum size of all files together, in bytes.
const MOST: usize = 32 << 10;

/// The instructions of a session.
pub struct Instructions {
    user: PathBuf,
    cwd: PathBuf,
    /// The top of the repository, or the folder itself.
    root: PathBuf,
    /// Groups of file names.
    names: &'static [&'static [&'static str]],
    /// Opens the project's files: none outside the repository, and none that is denied.
    roots: Roots,
    files: Vec<Found>,
    /// Files that were refused, so that each is reported once.
    refused: Vec<PathBuf>,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    path: PathBuf,
    stamp: (u64, i64, i64, u64),
    text: String,
    is_cut: bool,
}

impl Instructions {
    /// The instructions of the user and of the folders around `cwd`, without the `denied` paths and names. Reads
    /// nothing yet.
    ///
    /// # Errors
    /// If the top of the repository cannot be opened.
    pub fn new(folders: &Folders, cwd: &Path, denied: &[PathBuf]) -> io::Result<Self> {
        // Never from outside the repository; without a repository, only from the folder itself.
        let root = cwd
            .ancestors()
            .find(|folder| is_repository(folder))
            .unwrap_or(cwd);
        Ok(Self {
            user: folders.config.clone(),
            cwd: cwd.to_owned(),
            root: root.to_owned(),
            names: NAMES,
            roots: Roots::new(&[root.to_owned()], denied)?,
            files: Vec::new(),
            refused: Vec::new(),
        })
    }

    /// Returns the instructions for a sub-agent.
    #[must_use]
    pub fn of_agent(self) -> Self {
        Self {
            names: AGENT_NAMES,
            ..self
        }
    }

    /// Rereads the files. Returns those that are new, changed or removed, and other notices for the user.
    pub fn refresh(&mut self) -> (Vec<String>, Vec<String>) {
        let mut notices = Vec::new();
        let mut files = Vec::new();
        let mut left = MOST;
        let mut changed = Vec::new();
        for path in self.paths() {
            let known = self.files.iter().find(|file| file.path == path);
            let opened = self.open(&path);
            let stamp = opened.as_ref().ok().and_then(stamp);
            let file = match known {
                Some(known) if Some(known.stamp) == stamp => known.clone(),
                known => match (stamp, opened.and_then(|file| read(file, left))) {
                    (Some(stamp), Ok((text, is_cut))) => {
                        changed.push(self.shown(&path));
                        if is_cut {
                            notices.push(format!(
                                "{}: instructions are limited to {MOST} bytes in total; the rest is omitted",
                                self.shown(&path)
                            ));
                        }
                        Found {
                            path,
                            stamp,
                            text,
                            is_cut,
                        }
                    }
                    (_, Err(error)) => match known {
                        Some(known) => {
                            notices.push(format!(
                                "{}: {error}; keeping its last content",
                                self.shown(&path)
                            ));
                            known.clone()
                        }
                        None if self.refused.contains(&path) => continue,
                        None => {
                            notices.push(format!("{}: not read: {error}", self.shown(&path)));
                            self.refused.push(path);
                            continue;
                        }
                    },
                    (None, _) => continue,
                },
            };
            left = left.saturating_sub(file.text.len());
            files.push(file);
        }
        let gone = self
            .files
            .iter()
            .filter(|old| !files.iter().any(|new| new.path == old.path));
        changed.extend(gone.map(|file| self.shown(&file.path)));
        self.files = files;
        (changed, notices)
    }

    /// Returns the text for the system prompt; empty if there are no instructions.
    pub fn text(&self) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let mut text =
            "\n\nInstructions of the user and of the project follow. What the user says in the conversation \
                        counts more, and of two that contradict each other the later one."
                .to_owned();
        for file in &self.files {
            text.push_str(&format!(
                "\n\n<instructions from=\"{}\">\n",
                self.shown(&file.path)
            ));
            text.push_str(file.text.trim_end());
            if file.is_cut {
                text.push_str("\n[the rest is left out]");
            }
            text.push_str("\n</instructions>");
        }
        text
    }

    /// Returns the files in effect, the most general first.
    fn paths(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.user.clone()];
        let root = &self.root;
        let mut inside: Vec<PathBuf> = self
            .cwd
            .ancestors()
            .take_while(|folder| folder.starts_with(root))
            .map(Path::to_owned)
            .collect();
        inside.reverse();
        folders.extend(inside);
        let first = |folder: &PathBuf, group: &&[&str]| {
            group
                .iter()
                .map(|name| folder.join(name))
                .find(|path| path.symlink_metadata().is_ok_and(|found| !found.is_dir()))
        };
        let in_folder = |folder: &PathBuf| -> Vec<PathBuf> {
            self.names
                .iter()
                .filter_map(|group| first(folder, group))
                .collect()
        };
        let mut paths: Vec<PathBuf> = folders.iter().flat_map(in_folder).collect();
        paths.dedup();
        paths
    }

    /// Opens a file. The user's own may be a link to anywhere.
    fn open(&self, path: &Path) -> io::Result<File> {
        if path.starts_with(&self.user) {
            return File::open(path);
        }
        self.roots
            .open(path, OpenMode::Read)
            .map_err(|error| io::Error::other(error.to_string()))
    }

    fn shown(&self, path: &Path) -> String {
        if let Ok(own) = path.strip_prefix(&self.user) {
            return format!("your {}", own.display());
        }
        match path.strip_prefix(&self.cwd) {
            Ok(inside) => inside.display().to_string(),
            Err(_) => {
                let up = self
                    .cwd
                    .ancestors()
                    .position(|folder| path.parent() == Some(folder));
                let name = path.file_name().unwrap_or_default();
                format!("{}{}", "../".repeat(up.unwrap_or_default()), name.display())
            }
        }
    }
}

fn stamp(file: &File) -> Option<(u64, i64, i64, u64)> {
    let data = file.metadata().ok()?;
    Some((data.size(), data.mtime(), data.mtime_nsec(), data.ino()))
}

/// Returns the text, and true if it was truncated.
fn read(file: File, most: usize) -> io::Result<(String, bool)> {
    let (bytes, is_cut) = read_open(file, most as u64)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}

#[cfg(test)]
#[path = "instructions_tests.rs"]
mod tests;
