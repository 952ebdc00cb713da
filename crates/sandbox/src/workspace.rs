//! The workspace of a session, and the paths of a file tool's call as the permission rules see them.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use windlass_core::permission::Subject;
use windlass_core::tool::{Category, Judgement};

use crate::path::shown;
use crate::protected::ProtectedPaths;
use crate::scan::{MAX_ENTRIES, Scan};
use crate::temp::PrivateTemp;
use crate::working_directory::WorkingDirectory;
use crate::{Roots, SandboxPolicy};

/// The folder that a session works in, and the folders where it may use files. Paths inside the folder are
/// judged relative to it.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    root: PathBuf,
    home: Option<PathBuf>,
    /// Writable folders other than the root.
    writable: Vec<PathBuf>,
    files: Arc<Roots>,
    protected: Arc<ProtectedPaths>,
    temp: Option<Arc<PrivateTemp>>,
    cwd: WorkingDirectory,
}

impl Workspace {
    /// Creates the workspace of a session in `root`; `~` means `home`. Files can be used anywhere until
    /// [`Self::limited`] is called.
    pub fn new(root: &Path, home: Option<&Path>) -> Self {
        let root = real(root);
        Self {
            cwd: WorkingDirectory::new(root.clone()),
            protected: Arc::new(ProtectedPaths::new(&root, home)),
            root,
            home: home.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Limits files to the folders in `allowed`, except for `denied` paths and names. Allowed folders are
    /// writable.
    ///
    /// # Errors
    /// If a folder cannot be opened, or a denied path is neither absolute nor a pattern for file names.
    pub fn limited(self, allowed: &[PathBuf], denied: &[PathBuf]) -> io::Result<Self> {
        Ok(Self {
            files: Arc::new(Roots::new(allowed, denied)?),
            writable: allowed.iter().map(|path| real(path)).collect(),
            ..self
        })
    }

    /// Like [`Self::limited`], with a private folder for temporary files, which lives as long as the workspace. It
    /// must be one of the allowed folders.
    ///
    /// # Errors
    /// As [`Self::limited`].
    pub fn limited_with_temp(
        self,
        allowed: &[PathBuf],
        denied: &[PathBuf],
        temp: Arc<PrivateTemp>,
    ) -> io::Result<Self> {
        Ok(Self {
            files: Arc::new(Roots::new(allowed, denied)?.with_temp(temp.path())),
            writable: allowed.iter().map(|path| real(path)).collect(),
            temp: Some(temp),
            ..self
        })
    }

    /// Returns the private folder for temporary files.
    pub fn temp(&self) -> Option<&Arc<PrivateTemp>> {
        self.temp.as_ref()
    }

    /// Returns the working directory, where relative paths start.
    pub fn working_directory(&self) -> &WorkingDirectory {
        &self.cwd
    }

    /// Returns the folder of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folders that are searched for files with denied names, which no list of paths can name.
    pub(crate) fn searched(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.root.clone()];
        if self.files.denies_names() {
            let temp = self.temp.as_ref().map(|temp| temp.path());
            let others = self
                .writable
                .iter()
                .filter(|folder| **folder != self.root && Some(folder.as_path()) != temp);
            folders.extend(others.cloned());
        }
        folders
    }

    /// Adds the files with denied names and the nested repositories to a policy. Returns false if there are so many
    /// files that some may be missing.
    pub fn hide_in(&self, policy: &mut SandboxPolicy) -> bool {
        let scan = Scan::of(&self.files, &self.searched(), MAX_ENTRIES);
        scan.add_to(policy);
        !scan.is_partial
    }

    /// Returns the handles that files are opened from.
    pub fn files(&self) -> Arc<Roots> {
        Arc::clone(&self.files)
    }

    /// Returns true if a path, with every link followed, is in the workspace or another writable folder.
    pub fn holds(&self, path: &str) -> bool {
        let real = self.real(path);
        real.starts_with(&self.root) || self.writable.iter().any(|place| real.starts_with(place))
    }

    /// Returns the protected paths.
    pub fn protected(&self) -> &Arc<ProtectedPaths> {
        &self.protected
    }

    /// SAFE-10: returns the reason to ask before `path` is changed, if other programs run it by themselves, as
    /// written or with every link followed.
    pub fn protects(&self, path: &str) -> Option<String> {
        let real = self.real(path);
        let found = self.protected.reason(&real);
        found.or_else(|| self.protected.reason(&self.absolute(path)))
    }

    /// Judges a call that only reads `path`.
    pub fn reading(&self, path: &str) -> Judgement {
        self.judge(path, Category::Read)
    }

    /// Judges a call that writes `path`: a write inside the workspace, an administrative call elsewhere and for
    /// protected paths.
    pub fn writing(&self, path: &str) -> Judgement {
        let mut judgement = self.judge(path, Category::Write);
        if !self.holds(path) {
            let reason = "it writes outside the workspace".to_owned();
            judgement.reasons.push(reason);
        }
        if let Some(reason) = self.protects(path) {
            judgement.reasons.push(reason);
            judgement.protected = true;
        }
        if !judgement.reasons.is_empty() {
            judgement.category = Category::Admin;
        }
        judgement
    }

    /// Judges a path under both of its names, as written and with links followed: a rule that denies either
    /// name denies the call, and a rule that allows the call must allow both.
    fn judge(&self, path: &str, category: Category) -> Judgement {
        let written = shown(&self.root, &self.absolute(path));
        let real = shown(&self.root, &self.real(path));
        let mut subjects = vec![Subject::Path(written.clone())];
        if real != written {
            subjects.push(Subject::Path(real));
        }
        Judgement {
            subjects,
            ..Judgement::of(category)
        }
    }

    /// Returns the absolute path, including any `..`.
    fn whole(&self, path: &str) -> PathBuf {
        let from_home = path.strip_prefix("~/").or_else(|| (path == "~").then_some(""));
        match (from_home, &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.cwd.current().join(path),
        }
    }

    /// Returns the absolute path as written, without `.`, `..` and `~`.
    fn absolute(&self, path: &str) -> PathBuf {
        let mut plain = PathBuf::new();
        for part in self.whole(path).components() {
            match part {
                Component::ParentDir => {
                    plain.pop();
                }
                Component::CurDir => {}
                part => plain.push(part),
            }
        }
        plain
    }

    /// Follows every link of the existing part of the path. A `..` after a link leads to the parent of the
    /// link's target, so it is resolved and not removed from the text.
    fn real(&self, path: &str) -> PathBuf {
        let whole = self.files.meant(&self.whole(path));
        let mut rest: Vec<OsString> = Vec::new();
        let mut there = whole.as_path();
        loop {
            if let Ok(real) = std::fs::canonicalize(there) {
                return rest.iter().rev().fold(real, |path, name| path.join(name));
            }
            let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                return self.absolute(path);
            };
            rest.push(name.to_owned());
            there = parent;
        }
    }
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(judgement: &Judgement) -> Vec<String> {
        let text = |subject: &Subject| match subject {
            Subject::Path(path) => path.clone(),
            other => format!("{other:?}"),
        };
        judgement.subjects.iter().map(text).collect()
    }

    /// SAFE-6, SAFE-5: a path is judged by the file it names, however it is spelled and wherever links lead.
    #[test]
    fn paths_are_judged_by_what_they_mean() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let out = std::fs::canonicalize(outside.path()).unwrap();
        std::fs::create_dir(root.join("secrets")).unwrap();
        std::os::unix::fs::symlink(root.join("secrets"), root.join("open")).unwrap();
        std::fs::create_dir(root.join("secrets/inner")).unwrap();
        std::os::unix::fs::symlink(root.join("secrets/inner"), root.join("deep")).unwrap();
        std::os::unix::fs::symlink(&out, root.join("away")).unwrap();
        let workspace = Workspace::new(&root, Some(&out));
        let absolute = root.join("a.txt").display().to_string();
        let away = out.join("new.txt").display().to_string();
        let cases: Vec<(&str, Vec<&str>, Category)> = vec![
            ("a.txt", vec!["a.txt"], Category::Write),
            ("./x/../a.txt", vec!["a.txt"], Category::Write),
            (&absolute, vec!["a.txt"], Category::Write),
            ("secrets/key", vec!["secrets/key"], Category::Write),
            ("open/key", vec!["open/key", "secrets/key"], Category::Write),
            ("deep/../key", vec!["key", "secrets/key"], Category::Write),
            ("away/new.txt", vec!["away/new.txt", &away], Category::Admin),
            ("~/new.txt", vec![&away], Category::Admin),
            (
                "../../../../../../../../etc/hosts",
                vec!["/etc/hosts"],
                Category::Admin,
            ),
            (".", vec!["."], Category::Write),
        ];
        for (path, subjects, category) in cases {
            let judgement = workspace.writing(path);
            assert_eq!(texts(&judgement), subjects, "{path}");
            assert_eq!(judgement.category, category, "{path}");
            assert_eq!(workspace.reading(path).category, Category::Read);
        }
        let with_temp = Workspace::new(&root, None)
            .limited(&[root.clone(), out], &[])
            .unwrap();
        assert_eq!(with_temp.writing("away/new.txt").category, Category::Write);
    }
}
