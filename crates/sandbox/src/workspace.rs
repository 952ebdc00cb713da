//! The workspace of a session, and the paths of a file tool's call as the permission rules see them.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use windlass_core::permission::Subject;
use windlass_core::tool::{Category, Judgement, ToolContext};

use crate::handle::real_path;
use crate::path::shown;
use crate::process::alone;
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
    /// Folders outside that can be read without asking.
    readable: Arc<Mutex<Vec<PathBuf>>>,
}

/// Location of a file that a command names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// In the folder of the session.
    Workspace,
    /// In another folder that may be written.
    Writable,
    /// Anywhere else, or a home folder, or a folder above one or above the workspace.
    Outside,
}

impl Workspace {
    /// Protects further files, which Windlass itself runs with other rights than a command has.
    #[must_use]
    pub fn protecting(self, files: &[PathBuf]) -> Self {
        let protected = ProtectedPaths::new(&self.root, self.home.as_deref());
        Self {
            protected: Arc::new(protected.with_run_here(files.iter().cloned())),
            ..self
        }
    }

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
            files: Arc::new(Roots::new(allowed, denied)?.with_temp(temp.path(), self.home.as_deref())),
            writable: allowed.iter().map(|path| real(path)).collect(),
            temp: Some(temp),
            ..self
        })
    }

    /// Lets the file tools read a folder outside the workspace without asking. Denied paths stay denied, and nothing
    /// there can be written.
    pub fn allow_reading(&self, folder: &Path) {
        let folder = real(folder);
        let mut readable = self.readable.lock().unwrap_or_else(PoisonError::into_inner);
        if !readable.contains(&folder) {
            readable.push(folder);
        }
    }

    fn is_readable(&self, places: &[PathBuf]) -> bool {
        let readable = self.readable.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in = |place: &PathBuf| readable.iter().any(|folder| place.starts_with(folder));
        !places.is_empty() && places.iter().all(is_in)
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
        !is_other_home(path) && self.contains(&self.real(path))
    }

    fn contains(&self, real: &Path) -> bool {
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

    /// Returns the real path of a protected path, and the path as written if it is another one; nothing if it is not
    /// protected.
    pub fn protected_places(&self, path: &str) -> Vec<PathBuf> {
        let mut places = vec![self.real(path), self.absolute(path)];
        places.dedup();
        places.retain(|place| self.protected.reason(place).is_some());
        places
    }

    /// Returns the location of a path that is written in a command that starts in `folder`, with links followed
    /// except in its last part.
    pub fn location(&self, folder: &str, path: &str) -> Location {
        let from_home = |text: &str| text.starts_with('~');
        if is_other_home(path) || is_other_home(folder) {
            return Location::Outside;
        }
        let whole = if from_home(path) {
            path.to_owned()
        } else {
            Path::new(folder).join(path).display().to_string()
        };
        let written = self.whole(&whole);
        let follow = |path: &Path| match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !whole.ends_with('/') => followed(parent).join(name),
            _ => followed(path),
        };
        let real = follow(&written);
        // Only a path that names the shared folder means the private one; a relative path may leave the workspace.
        let meant = match path.starts_with('/') {
            true => follow(&self.files.meant(&written)),
            false => real.clone(),
        };
        let is_home = self
            .home
            .as_deref()
            .is_some_and(|home| home.starts_with(&real) || self::real(home).starts_with(&real));
        let is_above = real != self.root && self.root.starts_with(&real);
        if is_home || is_above {
            Location::Outside
        } else if real.starts_with(&self.root) {
            Location::Workspace
        } else if self.writable.iter().any(|place| meant.starts_with(place)) {
            Location::Writable
        } else {
            Location::Outside
        }
    }

    /// Prepares an approved call that changes protected files: ends the processes that ended commands have left behind.
    pub async fn settle(&self, cx: &ToolContext) {
        if cx.confirmed
            && cx
                .places
                .iter()
                .any(|place| self.protected.reason(place).is_some())
        {
            alone::end_leftovers().await;
        }
    }

    /// Returns the handles for an approved call, which opens exactly what it was judged by.
    pub fn files_of(&self, cx: &ToolContext) -> Arc<Roots> {
        Arc::new(self.files.judged(&cx.places))
    }

    /// Returns the handles for a preview of a call that names `path`.
    pub fn files_at(&self, path: &str) -> Roots {
        self.files
            .judged(&Arc::new(self.judge(path, Category::Read).0.places))
    }

    /// Judges a call that only reads `path`. Reading outside the workspace is no effect, but needs a person, a mode
    /// or a rule that allows it.
    pub fn reading(&self, path: &str) -> Judgement {
        let (mut judgement, is_inside) = self.judge(path, Category::Read);
        let is_open = is_inside || self.is_readable(&judgement.places);
        judgement.escalation.outside = !is_open && !self.files.is_unlimited();
        judgement
    }

    /// Judges a call that writes `path`: a write inside the workspace, an administrative call elsewhere and for
    /// protected paths.
    pub fn writing(&self, path: &str) -> Judgement {
        let (mut judgement, is_inside) = self.judge(path, Category::Write);
        if !is_inside {
            judgement.escalation.outside = true;
            let reason = "it writes outside the workspace".to_owned();
            judgement.reasons.push(reason);
        }
        if let Some(reason) = self.protects(path) {
            judgement.escalation.protected = true;
            judgement.reasons.push(reason);
            judgement.refusal = alone::refusal();
        }
        if !judgement.reasons.is_empty() {
            judgement.category = Category::Admin;
        }
        judgement
    }

    /// Judges a path under both of its names, as written and with links followed: a rule that denies either
    /// name denies the call, and a rule that allows the call must allow both. The path is followed once, so that
    /// everything in the judgement is about the same file. The second value is true if it is inside.
    fn judge(&self, path: &str, category: Category) -> (Judgement, bool) {
        let real = self.real(path);
        let written = shown(&self.root, &self.absolute(path));
        let followed = shown(&self.root, &real);
        let mut subjects = vec![Subject::Path(written.clone())];
        if followed != written {
            subjects.push(Subject::Path(followed));
        }
        let is_inside = self.contains(&real);
        // Without a folder of its own, a workspace cannot tell which file a relative path names.
        let has_folder = self.cwd.current().is_absolute();
        let judgement = Judgement {
            subjects,
            places: has_folder.then_some(real).into_iter().collect(),
            ..Judgement::of(category)
        };
        (judgement, is_inside)
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
        plain(&self.whole(path))
    }

    /// Returns the path that a path means, with every link followed.
    pub fn real(&self, path: &str) -> PathBuf {
        followed(&self.files.meant(&self.whole(path)))
    }
}

/// Follows every link of the existing part of an absolute path. A `..` after a link leads to the parent of the link's
/// target, so it is resolved and not removed from the text.
fn followed(whole: &Path) -> PathBuf {
    if let Some(real) = real_path(whole) {
        return real;
    }
    let mut rest: Vec<OsString> = Vec::new();
    let mut there = whole;
    loop {
        if let Ok(real) = std::fs::canonicalize(there) {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
            return plain(whole);
        };
        rest.push(name.to_owned());
        there = parent;
    }
}

/// Removes each `.` and `..` from the text of a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
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

/// Returns true if a path begins with the home folder of a user by name, as in `~root`, or with a folder of the shell.
fn is_other_home(text: &str) -> bool {
    text.starts_with('~') && text != "~" && !text.starts_with("~/")
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
