//! A project, a state folder, and git.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_worktree::{Worktree, Worktrees};

pub(crate) const SESSION: &str = "0190a1b2-child";

pub(crate) struct Lab {
    /// Contains the project, the state folder and a home folder.
    around: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) worktrees: Worktrees,
    pub(crate) cancel: CancellationToken,
}

impl Lab {
    /// A project that is a plain folder.
    pub(crate) fn plain() -> Self {
        let around = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(around.path()).unwrap();
        let project = real.join("project");
        fs::create_dir(&project).unwrap();
        let env = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), real.join("home").display().to_string()),
        ]);
        Self {
            worktrees: Worktrees::new(&real.join("state"), &env),
            around,
            project,
            cancel: CancellationToken::new(),
        }
    }

    /// A project that is a repository without a commit.
    pub(crate) fn unborn() -> Self {
        let lab = Self::plain();
        lab.git(&["init", "--quiet", "--initial-branch=main"]);
        lab
    }

    /// A project that is a repository with these files in one commit.
    pub(crate) fn committed(files: &[(&str, &str)]) -> Self {
        let lab = Self::unborn();
        for (path, text) in files {
            lab.write(path, text);
        }
        lab.commit();
        lab
    }

    pub(crate) fn outside(&self) -> PathBuf {
        fs::canonicalize(self.around.path()).unwrap()
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "one"]);
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.project, arguments)
    }

    pub(crate) fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .current_dir(folder)
            .env("HOME", self.outside().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {message}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.project, path, text);
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.project.join(path)).unwrap()
    }

    pub(crate) fn create(&self) -> Worktree {
        self.worktrees
            .create(&self.project, SESSION, &self.cancel)
            .unwrap()
    }

    /// Everything about the repository that creating a worktree must not change.
    pub(crate) fn repository_state(&self) -> Vec<String> {
        vec![
            self.git(&["status", "--porcelain=v2", "--branch", "--ignored"]),
            self.git(&["rev-parse", "HEAD"]),
            self.git(&["stash", "list"]),
            self.git(&["diff"]),
            self.git(&["diff", "--cached"]),
            format!("{:?}", fs::read(self.project.join(".git/index")).unwrap()),
            self.git(&["config", "--local", "--list"]),
        ]
    }

    /// Asserts that nothing is left of any worktree.
    pub(crate) fn assert_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.outside().join("state"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
        if self.project.join(".git").is_dir() {
            assert_eq!(self.git(&["branch", "--list", "windlass/*"]), "");
            assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1);
        }
    }
}

pub(crate) fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every file, link and folder below a folder, without version control.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let data = fs::symlink_metadata(&path).unwrap();
            let mode = data.permissions().mode() & 0o777;
            let state = if data.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if data.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else {
                format!(
                    "{mode:o} {:?}",
                    String::from_utf8_lossy(&fs::read(&path).unwrap())
                )
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), state);
        }
    }
    found
}
