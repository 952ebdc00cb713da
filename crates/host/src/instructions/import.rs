//! EXT-1: `@path` in instructions imports another file of the repository.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Found, InstructionReader, MOST, read, stamp};

/// Maximum depth of imports.
const DEEPEST: usize = 5;
/// Maximum number of files that one file imports, with those that they import.
const MOST_FILES: usize = 50;

/// Reads one file and everything it imports.
pub(super) struct Reading<'a> {
    reader: &'a InstructionReader,
    /// Bytes that are left.
    left: usize,
    seen: Vec<PathBuf>,
    /// Notices for the user.
    pub(super) notices: Vec<String>,
}

impl<'a> Reading<'a> {
    /// Reads at most `left` bytes.
    pub(super) fn new(reader: &'a InstructionReader, left: usize) -> Self {
        Self {
            reader,
            left,
            seen: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Reads a file.
    pub(super) fn file(&mut self, path: &Path) -> io::Result<Found> {
        self.read(path, 0)
    }

    fn read(&mut self, path: &Path, depth: usize) -> io::Result<Found> {
        let opened = self.reader.open(path)?;
        let stamp = stamp(&opened).ok_or_else(|| io::Error::other("it cannot be read"))?;
        let (text, is_cut) = read(opened, self.left)?;
        self.left = self.left.saturating_sub(text.len());
        self.seen.push(path.to_owned());
        if is_cut {
            self.notices.push(format!(
                "{}: instructions are limited to {MOST} bytes in total; the rest is omitted",
                self.reader.shown(path)
            ));
        }
        let mut imports = Vec::new();
        for name in imported(&text) {
            imports.extend(self.import(path, &name, depth));
        }
        Ok(Found {
            path: path.to_owned(),
            stamp,
            text,
            is_cut,
            imports,
        })
    }

    fn import(&mut self, from: &Path, name: &str, depth: usize) -> Option<Found> {
        let path = clean(&from.parent()?.join(name));
        let exists = path.symlink_metadata().is_ok();
        let looks_like_file = name.contains('/') || path.extension().is_some_and(|end| end == "md");
        if !exists && !looks_like_file || self.seen.contains(&path) || path.is_dir() {
            return None;
        }
        let shown = self.reader.shown(from);
        let mut refuse = |why: &str| {
            self.notices
                .push(format!("{shown}: @{name} is not imported: {why}"));
        };
        let is_inside = path.starts_with(&self.reader.root) || path.starts_with(&self.reader.user);
        if name.starts_with('~') || !is_inside {
            refuse("it is outside the repository");
            return None;
        }
        if depth >= DEEPEST || self.seen.len() >= MOST_FILES {
            refuse(&format!(
                "at most {DEEPEST} levels and {MOST_FILES} files are imported"
            ));
            return None;
        }
        match self.read(&path, depth + 1) {
            Ok(found) => Some(found),
            Err(error) => {
                self.notices
                    .push(format!("{shown}: @{name} is not imported: {error}"));
                None
            }
        }
    }
}

/// Returns the paths that a text imports: words that start with `@`, outside of code.
fn imported(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        // Every second part is between backticks.
        for part in line.split('`').step_by(2) {
            for word in part.split_whitespace() {
                let Some(name) = word.strip_prefix('@') else {
                    continue;
                };
                let name = name.trim_end_matches(['.', ',', ';', ':', ')', '"']);
                if !name.is_empty() && !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    names
}

/// Removes `.` and `..` from a path.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXT-1: imports are words that start with `@`, outside of code.
    #[test]
    fn imports_are_found() {
        let text = "See @docs/a.md, and @b.md.\nMail me@x.org `@no.md`\n```\n@no.md\n```\n@c";
        assert_eq!(imported(text), ["docs/a.md", "b.md", "c"]);
    }
}
