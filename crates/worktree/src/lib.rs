//! SUB-6: a copy of a folder as it is now, in which a sub-agent can write, and a merge of what it changed.
//!
//! - [`Worktrees`] creates worktrees below the state folder, and finds them again.
//! - [`Worktree`] is one of them: [`Worktree::folder`] is the counterpart of the folder that was copied.
//! - [`WorktreeChanges`] says what changed in it since it was created.
//! - [`MergePlan`] brings the changes into the original folder. It is made first and applied later, so that
//!   the caller can show it, and wrap it in a checkpoint of [`MergePlan::paths`].
//!
//! The copy contains every file that version control does not ignore, uncommitted and untracked ones
//! included, with its mode; links are copied as links. In a git repository with a commit the copy is a working
//! tree of the same repository, on a branch of its own. The branch is at a commit that holds the copied state,
//! so that `git diff` in the worktree shows the sub-agent's changes. Everywhere else the copy is just a folder.
//! The original, its index, its branch and the stash are not touched.
//!
//! The copied state, the *base*, is kept: as objects of the repository where they exist anyway, otherwise as
//! a second copy. So a merge compares three states of each file, even if the original has changed since.
//!
//! Git runs without hooks, filters and other programs that a repository names (SAFE-1). A file that a filter
//! converts, such as a large file of LFS, is copied as it is on the disk.
//!
//! Submodules and other repositories inside the folder are copied as plain files, without their history.
//!
//! All functions block; call them from a thread that may.
//!
//! ```
//! use tokio_util::sync::CancellationToken;
//! use windlass_worktree::{OnConflict, Worktrees};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (folder, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let (project, cancel) = (folder.path(), CancellationToken::new());
//! std::fs::write(project.join("notes.txt"), "one\n")?;
//! let worktrees = Worktrees::new(state.path(), &Default::default());
//!
//! let worktree = worktrees.create(project, "session-1", &cancel)?;
//! std::fs::write(worktree.folder().join("notes.txt"), "one\ntwo\n")?;
//!
//! assert_eq!(worktree.changes(&cancel)?.lines(), (1, 0));
//! let merged = worktree.merge(project, &cancel)?.apply(OnConflict::Keep, &cancel)?;
//! assert_eq!(merged.changed, [std::path::Path::new("notes.txt")]);
//! assert_eq!(std::fs::read_to_string(project.join("notes.txt"))?, "one\ntwo\n");
//! worktree.remove(&cancel)?;
//! # Ok(())
//! # }
//! ```

mod base;
mod changes;
mod copy;
mod create;
mod digest;
mod error;
mod git;
mod index_file;
mod listing;
mod manifest;
mod merge;
mod node;
mod record;
mod remove;
mod repository;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub(crate) use self::base::Base;
pub use self::changes::{ChangedFile, FileChangeKind, WorktreeChanges};
use self::create::Creation;
pub use self::error::WorktreeError;
use self::error::{Context, Result};
use self::git::Git;
use self::manifest::Manifest;
pub use self::merge::{ConflictReason, MergeConflict, MergeOutcome, MergePlan, OnConflict};
use self::record::Record;
use self::repository::{Repository, top_of};

/// Prefix of the branches of worktrees.
const BRANCHES: &str = "windlass/";
/// Maximum length of a name.
const NAME: usize = 100;

/// The worktrees below one folder.
#[derive(Debug, Clone)]
pub struct Worktrees {
    folder: PathBuf,
    env: BTreeMap<String, String>,
    hidden: Vec<PathBuf>,
}

/// A worktree that is complete.
#[derive(Debug, Clone)]
pub struct Worktree {
    session: String,
    at: PathBuf,
    folder: PathBuf,
    record: Record,
    git: Option<Git>,
}

/// A worktree on the disk.
#[derive(Debug, Clone)]
pub struct StoredWorktree {
    /// The session it was created for.
    pub session: String,
    /// The worktree; `None` if it is still being created, or the process that created it was stopped.
    pub worktree: Option<Worktree>,
}

impl Worktrees {
    /// Keeps worktrees below `folder`, and runs git with the allowed part of the environment `env`.
    pub fn new(folder: &Path, env: &BTreeMap<String, String>) -> Self {
        Self {
            folder: folder.to_owned(),
            env: env.clone(),
            hidden: Vec::new(),
        }
    }

    /// Never copies these paths, for the program's own data in a folder that is copied.
    #[must_use]
    pub fn hiding(mut self, paths: Vec<PathBuf>) -> Self {
        self.hidden = paths;
        self
    }

    /// Creates a worktree for a session: a copy of `source` as it is now, on the branch `windlass/<session>`.
    /// If `source` is a subfolder of a repository, everything in the repository is copied.
    ///
    /// # Errors
    /// If the copy cannot be made, if there is a worktree or branch for this session already, or if the work
    /// was canceled. Nothing is left behind then.
    pub fn create(&self, source: &Path, session: &str, cancel: &CancellationToken) -> Result<Worktree> {
        let at = self.place(session)?;
        let source = fs::canonicalize(source).when("open", source)?;
        fs::create_dir_all(&self.folder).when("create", &self.folder)?;
        match fs::DirBuilder::new().mode(0o700).create(&at) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(WorktreeError::Exists(at));
            }
            created => created.when("create", &at)?,
        }
        // Paths with links in them would not be recognized.
        let at = fs::canonicalize(&at).when("open", &at)?;
        let mut unfinished = Unfinished {
            worktrees: self,
            at: &at,
            session,
            is_kept: false,
        };
        let record = self.fill(&at, &source, session, cancel)?;
        unfinished.is_kept = true;
        drop(unfinished);
        Ok(self.opened(session, at, record))
    }

    fn fill(&self, at: &Path, source: &Path, session: &str, cancel: &CancellationToken) -> Result<Record> {
        let hidden = self.hidden.iter().chain([&self.folder]);
        let hidden: Vec<PathBuf> = hidden.filter_map(|path| fs::canonicalize(path).ok()).collect();
        let branch = format!("{BRANCHES}{session}");
        let creation = Creation {
            at,
            branch: &branch,
            hidden: &hidden,
            cancel,
        };
        let top = top_of(source);
        let git = top.and_then(|top| Some((Git::find(&self.env, &top, session)?, top)));
        let repository = match git {
            Some((git, top)) => Repository::open(git, &top, cancel)?,
            None => None,
        };
        match repository {
            Some(repository) => creation.in_repository(&repository, source),
            None => creation.plain(source),
        }
    }

    /// Opens the worktree of a session.
    ///
    /// # Errors
    /// If there is none, or it is not complete.
    pub fn open(&self, session: &str) -> Result<Worktree> {
        let at = self.place(session)?;
        match Record::read(&at)? {
            Some(record) if record.is_complete => Ok(self.opened(session, at, record)),
            _ => Err(WorktreeError::Missing(at)),
        }
    }

    fn opened(&self, session: &str, at: PathBuf, record: Record) -> Worktree {
        Worktree {
            session: session.to_owned(),
            at,
            folder: record.tree.join(&record.subfolder),
            git: Git::find(&self.env, &record.top, session),
            record,
        }
    }

    /// Lists the worktrees, in the order of their sessions.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<StoredWorktree>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).when("read", &self.folder),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.when("read", &self.folder)?;
            let Ok(session) = entry.file_name().into_string() else {
                continue;
            };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_name(&session) {
                let worktree = self.open(&session).ok();
                found.push(StoredWorktree { session, worktree });
            }
        }
        found.sort_by(|one, two| one.session.cmp(&two.session));
        Ok(found)
    }

    /// Removes the worktree of a session with its branch, also one that is not complete. Does nothing if there
    /// is none.
    ///
    /// # Errors
    /// If something cannot be removed. It is still listed then.
    pub fn remove(&self, session: &str, cancel: &CancellationToken) -> Result<()> {
        let at = self.place(session)?;
        self.erase(&at, session, cancel)
    }

    fn erase(&self, at: &Path, session: &str, cancel: &CancellationToken) -> Result<()> {
        // Without a readable description only the files can be removed.
        let record = Record::read(at).ok().flatten();
        let git = record
            .as_ref()
            .and_then(|record| Git::find(&self.env, &record.top, session));
        remove::remove(at, record.as_ref(), git.as_ref(), cancel)
    }

    fn place(&self, session: &str) -> Result<PathBuf> {
        match is_name(session) {
            true => Ok(self.folder.join(session)),
            false => Err(WorktreeError::Name(session.to_owned())),
        }
    }
}

/// A worktree that is removed unless it is finished.
struct Unfinished<'a> {
    worktrees: &'a Worktrees,
    at: &'a Path,
    session: &'a str,
    is_kept: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // The reason of the failure is more useful than a failure to clean up, and a folder that is left
            // is listed.
            let cancel = CancellationToken::new();
            let _ = self.worktrees.erase(self.at, self.session, &cancel);
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
    !name.is_empty() && name.len() <= NAME && !name.starts_with('-') && name.chars().all(is_plain)
}

impl Worktree {
    /// Returns the session it was created for.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns the counterpart of the folder that was copied: the folder the sub-agent works in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the top folder of the copy. It differs from [`Self::folder`] if a subfolder of a repository was
    /// copied; all paths in results are relative to it.
    pub fn root(&self) -> &Path {
        &self.record.tree
    }

    /// Returns the folder that was copied.
    pub fn source(&self) -> PathBuf {
        self.record.top.join(&self.record.subfolder)
    }

    /// Returns the branch, if the folder is in a repository.
    pub fn branch(&self) -> Option<&str> {
        self.record.branch()
    }

    /// Returns the commit that holds the copied state, if the folder is in a repository.
    pub fn base(&self) -> Option<&str> {
        self.record.repository.as_ref()?.base.as_deref()
    }

    /// Returns the changes since the worktree was created, with a diff.
    ///
    /// # Errors
    /// If a file or the base cannot be read, or the work was canceled.
    pub fn changes(&self, cancel: &CancellationToken) -> Result<WorktreeChanges> {
        changes::describe(self, &changes::scan(self, cancel)?, cancel)
    }

    /// Returns the paths that changed since the worktree was created. Cheaper than [`Self::changes`]; useful to
    /// find files that several sub-agents change.
    ///
    /// # Errors
    /// As [`Self::changes`].
    pub fn changed_paths(&self, cancel: &CancellationToken) -> Result<Vec<PathBuf>> {
        let differing = changes::scan(self, cancel)?;
        let path = |file: changes::Differing| node::as_path(&file.path).to_owned();
        Ok(differing.into_iter().map(path).collect())
    }

    /// Returns true if nothing changed since the worktree was created.
    ///
    /// # Errors
    /// As [`Self::changes`].
    pub fn is_unchanged(&self, cancel: &CancellationToken) -> Result<bool> {
        changes::scan(self, cancel).map(|differing| differing.is_empty())
    }

    /// Plans a merge of the changes into `into`, the folder that was copied or one at the same position in
    /// another copy of it. Nothing is written until the plan is applied.
    ///
    /// # Errors
    /// As [`Self::changes`], and if `into` is at another position in its repository.
    pub fn merge(&self, into: &Path, cancel: &CancellationToken) -> Result<MergePlan> {
        merge::plan(self, into, cancel)
    }

    /// Removes the worktree and its branch.
    ///
    /// # Errors
    /// If something cannot be removed. The worktree is still listed then.
    pub fn remove(self, cancel: &CancellationToken) -> Result<()> {
        remove::remove(&self.at, Some(&self.record), self.git.as_ref(), cancel)
    }

    fn manifest(&self) -> Result<Manifest> {
        manifest::read(&self.at.join("manifest"))
    }
}
