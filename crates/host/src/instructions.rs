//! EXT-1, CFG-2: instructions of the user and the project for every model: `AGENTS.md` and similar files.
//!
//! They are part of the system prompt, so compaction never touches them. They are checked for changes before
//! every turn; if they have not changed, the prompt stays identical to the byte. Files below the working directory are
//! read when a tool first uses a file in their folder (`instructions/nested.rs`).

mod import;
mod nested;

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::hook::Hook;
use windlass_sandbox::{OpenMode, Roots, read_open};

use windlass_config::folders::{Folders, is_repository};

use self::import::Reading;
use self::nested::NestedInstructions;

/// File names to look for in each folder; the first of each group that exists is read.
const NAMES: &[&[&str]] = &[&["AGENTS.override.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md"]];
/// SUB-2: file names for a sub-agent: the project's instructions, and notes about its tools.
const AGENT_NAMES: &[&[&str]] = &[&["AGENTS.override.md", "AGENTS.md"], &["TOOLS.md"]];
/// Maximum size of all files together, in bytes.
const MOST: usize = 32 << 10;

/// The instructions of a session.
pub struct Instructions {
    reader: Arc<InstructionReader>,
    files: Vec<Found>,
    /// Files that were refused, so that each is reported once.
    refused: Vec<PathBuf>,
    nested: Arc<NestedInstructions>,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    path: PathBuf,
    stamp: Stamp,
    text: String,
    is_cut: bool,
    imports: Vec<Found>,
}

impl Found {
    /// Returns the size of the text with everything it imports.
    fn size(&self) -> usize {
        self.text.len() + self.imports.iter().map(Self::size).sum::<usize>()
    }

    /// Returns the file and everything it imports.
    fn all(&self) -> Vec<&Self> {
        let imports = self.imports.iter().flat_map(Self::all);
        std::iter::once(self).chain(imports).collect()
    }
}

impl Instructions {
    /// The instructions of the user and of the folders around `cwd`, without the `denied` paths and names. Reads
    /// nothing yet.
    ///
    /// # Errors
    /// If the top of the repository cannot be opened.
    pub fn new(folders: &Folders, cwd: &Path, denied: &[PathBuf]) -> io::Result<Self> {
        Self::sharing(folders, cwd, &Roots::new(&[], denied)?)
    }

    /// Like [`Self::new`], without the denied paths of these roots.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn sharing(folders: &Folders, cwd: &Path, roots: &Roots) -> io::Result<Self> {
        // Never from outside the repository; without a repository, only from the folder itself.
        let root = cwd
            .ancestors()
            .find(|folder| is_repository(folder))
            .unwrap_or(cwd);
        let reader = InstructionReader {
            user: folders.config.clone(),
            cwd: cwd.to_owned(),
            root: root.to_owned(),
            names: NAMES,
            roots: roots.elsewhere(&[root.to_owned()])?,
        };
        Ok(Self::reading(reader))
    }

    fn reading(reader: InstructionReader) -> Self {
        let reader = Arc::new(reader);
        Self {
            nested: Arc::new(NestedInstructions::new(Arc::clone(&reader))),
            reader,
            files: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Returns the instructions for a sub-agent.
    #[must_use]
    pub fn of_agent(self) -> Self {
        Self::reading(InstructionReader {
            names: AGENT_NAMES,
            ..(*self.reader).clone()
        })
    }

    /// Returns the hook that adds the instructions of folders that tools use.
    pub fn hook(&self) -> Arc<dyn Hook> {
        Arc::clone(&self.nested) as _
    }

    /// Returns the files in effect, as the user knows them.
    pub fn names(&self) -> Vec<String> {
        let files = self.files.iter().flat_map(Found::all);
        let mut names: Vec<String> = files.map(|file| self.reader.shown(&file.path)).collect();
        names.extend(self.nested.names());
        names
    }

    /// Rereads the files. Returns those that are new, changed or removed, and other notices for the user.
    pub fn refresh(&mut self) -> (Vec<String>, Vec<String>) {
        let reader = Arc::clone(&self.reader);
        let (mut notices, mut changed, mut files) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = MOST;
        for path in reader.paths() {
            let known = self.files.iter().find(|file| file.path == path);
            if let Some(known) = known.filter(|known| reader.is_current(known)) {
                left = left.saturating_sub(known.size());
                files.push(known.clone());
                continue;
            }
            let shown = reader.shown(&path);
            let mut reading = Reading::new(&reader, left);
            match (reading.file(&path), known) {
                (Ok(file), _) => {
                    changed.push(shown);
                    notices.extend(reading.notices);
                    left = left.saturating_sub(file.size());
                    files.push(file);
                }
                (Err(error), Some(known)) => {
                    notices.push(format!("{shown}: {error}; keeping its last content"));
                    left = left.saturating_sub(known.size());
                    files.push(known.clone());
                }
                (Err(_), None) if self.refused.contains(&path) => {}
                (Err(error), None) => {
                    notices.push(format!("{shown}: not read: {error}"));
                    self.refused.push(path);
                }
            }
        }
        let gone = self
            .files
            .iter()
            .filter(|old| !files.iter().any(|new: &Found| new.path == old.path));
        changed.extend(gone.map(|file| reader.shown(&file.path)));
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
            text.push_str(&self.reader.blocks(file));
        }
        text
    }
}

/// Reads instructions from the folders where they may be.
#[derive(Clone)]
struct InstructionReader {
    user: PathBuf,
    cwd: PathBuf,
    /// The top of the repository, or the folder itself.
    root: PathBuf,
    /// Groups of file names.
    names: &'static [&'static [&'static str]],
    /// Opens the project's files: none outside the repository, and none that is denied.
    roots: Roots,
}

impl InstructionReader {
    /// Returns a file and everything it imports, as the model reads them.
    fn blocks(&self, file: &Found) -> String {
        let mut text = String::new();
        for file in file.all() {
            let name = self.shown(&file.path);
            text.push_str(&format!("\n\n<instructions from=\"{name}\">\n"));
            text.push_str(file.text.trim_end());
            if file.is_cut {
                text.push_str("\n[the rest is left out]");
            }
            text.push_str("\n</instructions>");
        }
        text
    }

    /// Returns true if a file and everything it imports are as they were.
    fn is_current(&self, known: &Found) -> bool {
        let is_same = |file: &&Found| {
            let opened = self.open(&file.path);
            opened.ok().and_then(|opened| stamp(&opened)) == Some(file.stamp)
        };
        known.all().iter().all(is_same)
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
        let mut paths: Vec<PathBuf> = folders.iter().flat_map(|folder| self.in_folder(folder)).collect();
        paths.dedup();
        paths
    }

    /// Returns the files of one folder.
    fn in_folder(&self, folder: &Path) -> Vec<PathBuf> {
        let first = |group: &&[&str]| {
            group
                .iter()
                .map(|name| folder.join(name))
                .find(|path| path.symlink_metadata().is_ok_and(|found| !found.is_dir()))
        };
        self.names.iter().filter_map(first).collect()
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
                match up {
                    Some(up) => format!("{}{}", "../".repeat(up), name.display()),
                    None => path.display().to_string(),
                }
            }
        }
    }
}

type Stamp = (u64, i64, i64, u64);

fn stamp(file: &File) -> Option<Stamp> {
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
