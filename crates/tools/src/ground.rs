//! What a call on files is about: the places it names, as rules see them.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use windlass_core::permission::Subject;
use windlass_core::tool::{Category, Judgement};

use crate::path::shown;

/// The folder a session works in. Paths inside it are judged relative to it, paths outside it are not its business.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    root: PathBuf,
    home: Option<PathBuf>,
    temp: Option<PathBuf>,
}

impl Ground {
    /// The ground of a session in `root`; `~` means `home`, and `temp` may be written to as well.
    pub fn new(root: &Path, home: Option<&Path>, temp: Option<&Path>) -> Self {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Self {
            root: real(root),
            home: home.map(Path::to_owned),
            temp: temp.map(real),
        }
    }

    /// A call that only reads `path`.
    pub(crate) fn reading(&self, path: &str) -> Judgement {
        self.judge(path, Category::Read)
    }

    /// A call that writes `path`: inside the ground a write, elsewhere more than that.
    pub(crate) fn writing(&self, path: &str) -> Judgement {
        let real = self.real(path);
        let inside =
            real.starts_with(&self.root) || self.temp.as_ref().is_some_and(|temp| real.starts_with(temp));
        self.judge(path, if inside { Category::Write } else { Category::Admin })
    }

    /// Both spellings count, the one that was written and the one that links lead to: a rule that denies either denies
    /// the call, and a rule that allows must allow both.
    fn judge(&self, path: &str, category: Category) -> Judgement {
        let written = shown(&self.root, &self.absolute(path));
        let real = shown(&self.root, &self.real(path));
        let mut subjects = vec![Subject::Path(written.clone())];
        if real != written {
            subjects.push(Subject::Path(real));
        }
        Judgement {
            category,
            subjects,
            refusal: None,
        }
    }

    /// The path without `.`, `..` and `~`, as it was written.
    fn absolute(&self, path: &str) -> PathBuf {
        let from_home = path.strip_prefix("~/").or_else(|| (path == "~").then_some(""));
        let whole = match (from_home, &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.root.join(path),
        };
        let mut plain = PathBuf::new();
        for part in whole.components() {
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

    /// Where the path leads when every link is followed, as far as it exists.
    fn real(&self, path: &str) -> PathBuf {
        let absolute = self.absolute(path);
        let mut rest: Vec<OsString> = Vec::new();
        let mut there = absolute.as_path();
        loop {
            if let Ok(real) = std::fs::canonicalize(there) {
                return rest.iter().rev().fold(real, |path, name| path.join(name));
            }
            let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                return absolute;
            };
            rest.push(name.to_owned());
            there = parent;
        }
    }
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

    /// SAFE-6, SAFE-5: a path is judged by what it means, however it is spelled and wherever links lead.
    #[test]
    fn paths_are_judged_by_what_they_mean() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let out = std::fs::canonicalize(outside.path()).unwrap();
        std::fs::create_dir(root.join("secrets")).unwrap();
        std::os::unix::fs::symlink(root.join("secrets"), root.join("open")).unwrap();
        std::os::unix::fs::symlink(&out, root.join("away")).unwrap();
        let ground = Ground::new(&root, Some(&out), None);
        let absolute = root.join("a.txt").display().to_string();
        let away = out.join("new.txt").display().to_string();
        let cases: Vec<(&str, Vec<&str>, Category)> = vec![
            ("a.txt", vec!["a.txt"], Category::Write),
            ("./x/../a.txt", vec!["a.txt"], Category::Write),
            (&absolute, vec!["a.txt"], Category::Write),
            ("secrets/key", vec!["secrets/key"], Category::Write),
            ("open/key", vec!["open/key", "secrets/key"], Category::Write),
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
            let judgement = ground.writing(path);
            assert_eq!(texts(&judgement), subjects, "{path}");
            assert_eq!(judgement.category, category, "{path}");
            assert_eq!(ground.reading(path).category, Category::Read);
        }
        let with_temp = Ground::new(&root, None, Some(&out));
        assert_eq!(with_temp.writing("away/new.txt").category, Category::Write);
    }
}
