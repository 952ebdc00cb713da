//! Follows the files and keeps the last valid state.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::problem::{DeclarationError, DeclarationProblem};
use super::{Declarations, Paths, Source};

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Tools declared by the files, as far as these are valid.
///
/// The owner calls [`refresh`](Self::refresh) between turns; nothing is watched. A file that becomes invalid
/// keeps its last good tools, and the other file is not affected. A project's declarations may change with
/// every refresh, so a caller that trusts them compares the fingerprint again, or passes the trusted text to
/// [`set_project`](Self::set_project).
#[derive(Debug)]
pub struct LastGood {
    files: Vec<Followed>,
    /// True if the project's text was set or removed since the last refresh.
    is_project_new: bool,
    current: Declarations,
    error: Option<DeclarationError>,
}

/// Result of a refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refresh {
    /// The files have not changed.
    Unchanged,
    /// The files have changed and are valid.
    Loaded {
        /// Names of all tools.
        names: Vec<String>,
    },
    /// The files have changed and contain mistakes. Reported once; [`LastGood::error`] returns the error
    /// until it is fixed.
    Broken {
        /// The mistakes.
        error: DeclarationError,
        /// Names of all tools that remain available.
        kept: Vec<String>,
    },
}

#[derive(Debug)]
struct Followed {
    path: PathBuf,
    source: Source,
    stamp: Option<Stamp>,
    /// True once the stamp was seen twice. The first time, the coarse clock of the file system may still hide
    /// a change.
    is_settled: bool,
    /// True if the text was passed in and is not read from the disk.
    is_given: bool,
    /// Last text, or the reason there is none. `None` before the first read.
    content: Option<Result<String, String>>,
    good: Declarations,
    error: Option<DeclarationError>,
}

/// Metadata that changes almost always when the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl LastGood {
    /// Follows these files. Nothing is read before the first [`refresh`](Self::refresh).
    pub fn new(paths: Paths) -> Self {
        let user = paths.user.map(|path| Followed::new(path, Source::User));
        let project = paths.project.map(|path| Followed::new(path, Source::Project));
        Self {
            files: user.into_iter().chain(project).collect(),
            is_project_new: false,
            current: Declarations::default(),
            error: None,
        }
    }

    /// Sets or removes the text of the project's file; the next refresh reports it. The text is not read from
    /// the disk, so the text in use is the one that was checked. Unlike a file that becomes invalid, a new
    /// text does not keep the tools of the previous one: the user who trusts the new text did not agree to
    /// those.
    pub fn set_project(&mut self, file: Option<(PathBuf, String)>) {
        let given = file.map(|(path, text)| Followed::given(path, text));
        let now = self.files.iter().find(|file| file.source == Source::Project);
        let is_same = match (now, &given) {
            (None, None) => true,
            (Some(now), Some(given)) => now.path == given.path && now.content == given.content,
            _ => false,
        };
        if !is_same {
            self.files.retain(|file| file.source != Source::Project);
            self.files.extend(given);
            self.is_project_new = true;
        }
    }

    /// Checks the files again. Reads the disk, but only briefly.
    pub fn refresh(&mut self) -> Refresh {
        // Every file is checked, even if the one before it has changed.
        let mut has_changed = std::mem::take(&mut self.is_project_new);
        for file in &mut self.files {
            has_changed |= file.look();
        }
        if !has_changed {
            return Refresh::Unchanged;
        }
        let (current, problems) = merge(&self.files);
        self.current = current;
        let names = self.current.names().into_iter().map(str::to_owned).collect();
        if problems.is_empty() {
            self.error = None;
            return Refresh::Loaded { names };
        }
        let error = DeclarationError::new(problems);
        self.error = Some(error.clone());
        Refresh::Broken { error, kept: names }
    }

    /// Returns the declarations as of the last refresh.
    pub fn current(&self) -> &Declarations {
        &self.current
    }

    /// Returns the mistakes in the files as of the last refresh.
    pub fn error(&self) -> Option<&DeclarationError> {
        self.error.as_ref()
    }

    pub(super) fn into_current(self) -> Declarations {
        self.current
    }
}

/// Returns all valid tools. A project's tool must not use a name of the user's.
fn merge(files: &[Followed]) -> (Declarations, Vec<DeclarationProblem>) {
    let mut all = Declarations::default();
    let mut problems = Vec::new();
    for file in files {
        let errors = file.error.iter().flat_map(|error| error.problems());
        problems.extend(errors.cloned());
        for definition in &file.good.definitions {
            let name = definition.name.as_str();
            if all.names().contains(&name) {
                problems.push(DeclarationProblem {
                    file: file.name(),
                    line: Some(definition.line),
                    message: format!(
                        "`{name}.name` is the name of one of the user's own tools; choose another"
                    ),
                });
            } else {
                all.definitions.push(definition.clone());
            }
        }
    }
    (all, problems)
}

impl Followed {
    fn new(path: PathBuf, source: Source) -> Self {
        Self {
            path,
            source,
            stamp: None,
            is_settled: false,
            is_given: false,
            content: None,
            good: Declarations::default(),
            error: None,
        }
    }

    fn given(path: PathBuf, text: String) -> Self {
        let content = Ok(text);
        let mut file = Self::new(path, Source::Project);
        file.take(&content);
        file.content = Some(content);
        file.is_given = true;
        file
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads the file if it may have changed. Returns true if its content differs from before.
    fn look(&mut self) -> bool {
        if self.is_given {
            return false;
        }
        let stamp = std::fs::metadata(&self.path).ok().as_ref().map(Stamp::of);
        let is_same = stamp.is_some() && stamp == self.stamp;
        if is_same && self.is_settled {
            return false;
        }
        let content = match read(&self.path) {
            Ok((text, stamp)) => {
                self.is_settled = self.stamp == Some(stamp);
                self.stamp = Some(stamp);
                Ok(text)
            }
            Err(error) => {
                self.is_settled = false;
                self.stamp = None;
                if error.kind() == io::ErrorKind::NotFound {
                    Ok(String::new())
                } else {
                    Err(error.to_string())
                }
            }
        };
        if self.content.as_ref() == Some(&content) {
            return false;
        }
        // A missing file is not a change if it never existed.
        let is_news = self.content.is_some() || content.as_deref() != Ok("");
        self.take(&content);
        self.content = Some(content);
        is_news
    }

    fn take(&mut self, content: &Result<String, String>) {
        let read = match content {
            Ok(text) => Declarations::parse(text, &self.name(), self.source),
            Err(why) => Err(DeclarationError::new(vec![DeclarationProblem {
                file: self.name(),
                line: None,
                message: format!("cannot be read: {why}"),
            }])),
        };
        match read {
            Ok(good) => {
                self.good = good;
                self.error = None;
            }
            Err(error) => self.error = Some(error),
        }
    }
}

/// Returns the text of a file and its stamp, both of the same file even while it is being replaced.
fn read(path: &Path) -> io::Result<(String, Stamp)> {
    // A pipe in place of the file must not block until a writer appears.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let data = file.metadata()?;
    if !data.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    (&file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))?;
    Ok((text, Stamp::of(&data)))
}

impl Stamp {
    fn of(data: &std::fs::Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

#[cfg(test)]
#[path = "last_good_tests.rs"]
mod tests;
