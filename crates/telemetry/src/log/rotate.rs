//! A file that is replaced when it is full; a few old ones are kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Number of old files.
const OLD: u32 = 3;

/// A log file of limited size. Several processes may write to the same one.
pub struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    file: File,
}

impl RotatingFile {
    /// Opens the file, readable only by its user, and creates its folder.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn open(path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = append(&path)?;
        Ok(Self {
            path,
            max_bytes,
            file,
        })
    }

    /// Appends a line in one write.
    ///
    /// # Errors
    /// Fails if the line cannot be written.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        self.follow()?;
        let size = self.file.metadata()?.len();
        if size > 0 && size.saturating_add(line.len() as u64) > self.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(line.as_bytes())
    }

    /// Opens the file again if another process has replaced it.
    fn follow(&mut self) -> io::Result<()> {
        let is_same = match fs::metadata(&self.path) {
            Ok(current) => current.ino() == self.file.metadata()?.ino(),
            Err(_) => false,
        };
        if !is_same {
            self.file = append(&self.path)?;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..OLD).rev() {
            // An old file that is missing leaves a gap, and nothing else.
            let _ = fs::rename(self.old(number), self.old(number + 1));
        }
        fs::rename(&self.path, self.old(1))?;
        self.file = append(&self.path)?;
        Ok(())
    }

    fn old(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}
