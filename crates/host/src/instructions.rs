//! EXT-1, CFG-2: instructions of the user and the project for every model: `AGENTS.md` and similar files.
//!
//! They are part of the system prompt, so compaction never touches them. They are checked for changes before
//! every turn; if they have not changed, the prompt stays identical to the byte.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass_sandbox::{OpenMode, Roots, read_open};

use windlass_config::folders::{Folders, is_repository};

/// File names to look for in each folder; the first that exists is read.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];
/// Maximum size of all files together, in bytes.
const MOST: usize = 32 << 10;

/// The instructions of a session.
pub struct Instructions {
    user: PathBuf,
    cwd: PathBuf,
    files: Vec<Found>,
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
            files: Vec::new(),
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
            let stamp = stamp(&path);
            let file = match known {
                Some(known) if Some(known.stamp) == stamp => known.clone(),
                known => match (stamp, read(&path, left)) {
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
                    (_, Err(error)) => {
                        notices.push(format!(
                            "{}: {error}; keeping its last content",
                            self.shown(&path)
                        ));
                        match known {
                            Some(known) => known.clone(),
                            None => continue,
                        }
                    }
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
        // Never from outside the repository; without a repository, only from the folder itself.
        let root = self.cwd.ancestors().find(|folder| folder.join(".git").exists());
        let root = root.unwrap_or(&self.cwd);
        let mut inside: Vec<PathBuf> = self
            .cwd
            .ancestors()
            .take_while(|folder| folder.starts_with(root))
            .map(Path::to_owned)
            .collect();
        inside.reverse();
        folders.extend(inside);
        let first = |folder: PathBuf| {
            NAMES
                .iter()
                .map(|name| folder.join(name))
                .find(|path| path.is_file())
        };
        let mut paths: Vec<PathBuf> = folders.into_iter().filter_map(first).collect();
        paths.dedup();
        paths
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

fn stamp(path: &Path) -> Option<(u64, i64, i64, u64)> {
    let data = fs::metadata(path).ok()?;
    Some((data.size(), data.mtime(), data.mtime_nsec(), data.ino()))
}

/// Returns the text, and true if it was truncated.
fn read(path: &Path, most: usize) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bed {
        folder: tempfile::TempDir,
    }

    impl Bed {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["config", "repo/.git", "repo/sub/deep"] {
                fs::create_dir_all(folder.path().join(name)).unwrap();
            }
            Self { folder }
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.folder.path().join(path), text).unwrap();
        }

        fn instructions(&self) -> Instructions {
            Instructions {
                user: self.folder.path().join("config"),
                cwd: self.folder.path().join("repo/sub/deep"),
                files: Vec::new(),
            }
        }
    }

    /// EXT-1: the user's file, then one per folder from the root of the repository down to the working
    /// folder, and none from outside.
    #[test]
    fn one_per_folder_from_the_root() {
        let bed = Bed::new();
        bed.write("AGENTS.md", "outside");
        bed.write("config/AGENTS.md", "mine");
        bed.write("repo/AGENTS.md", "root\n\n");
        bed.write("repo/CLAUDE.md", "not this");
        bed.write("repo/sub/CLAUDE.md", "sub");
        bed.write("repo/sub/deep/AGENTS.md", "not this");
        bed.write("repo/sub/deep/AGENTS.override.md", "deep");
        let mut instructions = bed.instructions();
        let (changed, notices) = instructions.refresh();
        assert_eq!(
            changed,
            [
                "your AGENTS.md",
                "../../AGENTS.md",
                "../CLAUDE.md",
                "AGENTS.override.md"
            ]
        );
        assert!(notices.is_empty());
        let text = instructions.text();
        let parts: Vec<&str> = text.split("<instructions from=").skip(1).collect();
        assert_eq!(
            parts,
            [
                "\"your AGENTS.md\">\nmine\n</instructions>\n\n",
                "\"../../AGENTS.md\">\nroot\n</instructions>\n\n",
                "\"../CLAUDE.md\">\nsub\n</instructions>\n\n",
                "\"AGENTS.override.md\">\ndeep\n</instructions>"
            ]
        );
    }

    /// CFG-2, EXT-1: a change is noticed and reported, an unchanged file is not, and an oversized file is
    /// reported.
    #[test]
    fn changes_are_noticed() {
        let bed = Bed::new();
        let mut instructions = bed.instructions();
        let nothing = (Vec::new(), Vec::new());
        assert_eq!(instructions.refresh(), nothing);
        assert!(instructions.text().is_empty());
        bed.write("repo/AGENTS.md", "one");
        assert_eq!(instructions.refresh().0.len(), 1);
        let before = instructions.text();
        assert_eq!(instructions.refresh(), nothing);
        assert_eq!(instructions.text(), before);
        bed.write("repo/AGENTS.md", "another");
        assert_eq!(instructions.refresh().0, ["../../AGENTS.md"]);
        assert!(instructions.text().contains("another"));
        bed.write("repo/AGENTS.md", &"x".repeat(40_000));
        let (_, notices) = instructions.refresh();
        assert!(notices[0].contains("the rest is omitted"), "{notices:?}");
        assert!(instructions.text().len() < 34_000);
        fs::remove_file(bed.folder.path().join("repo/AGENTS.md")).unwrap();
        assert_eq!(instructions.refresh().0, ["../../AGENTS.md"]);
        assert!(instructions.text().is_empty());
    }
}
