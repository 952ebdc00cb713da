//! The file of jobs: read with the place of every mistake, and changed without losing comments.

mod edit;
mod read;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use windlass_core::clock::Timestamp;

pub use self::edit::{EditError, NewJob, add_job, remove_job, set_enabled};
pub use self::read::{KEYS, parse};
use crate::job::CronJob;

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProblem {
    /// File, line and column.
    pub place: String,
    /// The key, such as `jobs.nightly.schedule`.
    pub key: String,
    /// The mistake, and what would be right.
    pub message: String,
}

/// All mistakes in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFileError {
    /// The mistakes, in the order of the file.
    pub problems: Vec<JobProblem>,
}

impl std::fmt::Display for JobFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, JobProblem { place, key, message }) in self.problems.iter().enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            let key = if key.is_empty() {
                String::new()
            } else {
                format!("{key}: ")
            };
            write!(f, "{line}{place}: {key}{message}")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileError {}

/// Context in which a file is read.
#[derive(Debug, Clone)]
pub struct JobFileContext {
    /// Path of the file, for messages.
    pub path: PathBuf,
    /// Home folder, for `~`.
    pub home: Option<PathBuf>,
}

/// CRON-1: the jobs that count. A file with mistakes changes nothing, and is reported once.
#[derive(Debug)]
pub struct JobSet {
    context: JobFileContext,
    /// The text that was read last.
    text: Option<String>,
    jobs: Vec<CronJob>,
    error: Option<JobFileError>,
    changed_at: Option<Timestamp>,
}

impl JobSet {
    /// Creates an empty set.
    pub fn new(context: JobFileContext) -> Self {
        Self {
            context,
            text: None,
            jobs: Vec::new(),
            error: None,
            changed_at: None,
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.context.path
    }

    /// Reads the file again. Returns true if its text is new.
    pub fn refresh(&mut self) -> bool {
        let found = std::fs::metadata(&self.context.path);
        self.changed_at = found.as_ref().ok().and_then(modified);
        match read(&self.context.path) {
            Ok(text) => self.update(text.as_deref()),
            Err(message) => {
                let is_new = self.text.take().is_some() || self.error.is_none();
                let place = self.context.path.display().to_string();
                let key = String::new();
                self.error = Some(JobFileError {
                    problems: vec![JobProblem { place, key, message }],
                });
                is_new
            }
        }
    }

    /// Time of the last change of the file.
    pub fn changed_at(&self) -> Option<Timestamp> {
        self.changed_at
    }

    /// Takes the text of the file; `None` if there is no file. Returns true if the text is new.
    pub fn update(&mut self, text: Option<&str>) -> bool {
        let text = text.unwrap_or_default();
        if self.text.as_deref() == Some(text) {
            return false;
        }
        self.text = Some(text.to_owned());
        match parse(text, &self.context) {
            Ok(jobs) => {
                self.jobs = jobs;
                self.error = None;
            }
            Err(error) => self.error = Some(error),
        }
        true
    }

    /// Returns the jobs: those of the last file without mistakes.
    pub fn jobs(&self) -> &[CronJob] {
        &self.jobs
    }

    /// Returns the mistakes in the file as it is now.
    pub fn error(&self) -> Option<&JobFileError> {
        self.error.as_ref()
    }
}

fn modified(found: &std::fs::Metadata) -> Option<Timestamp> {
    let since = found
        .modified()
        .ok()?
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?;
    u64::try_from(since.as_millis()).ok().map(Timestamp)
}

/// Returns the text of the file; `None` if there is no file.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err("is not a regular file".to_owned()),
        Ok(found) if found.len() > MAX_BYTES => return Err("is larger than 1 MiB".to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
