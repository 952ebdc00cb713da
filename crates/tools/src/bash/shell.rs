//! The shell, by absolute path: a `bash` in the working directory is never used.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use windlass_sandbox::program;

/// A shell, and the options that make it skip its start-up files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shell {
    pub(super) program: PathBuf,
    is_bash: bool,
}

impl Shell {
    /// Returns the arguments that run `command`, whatever it starts with.
    pub(super) fn arguments<'a>(&self, command: &'a str) -> Vec<&'a str> {
        let quiet: &[&str] = if self.is_bash {
            &["--noprofile", "--norc"]
        } else {
            &[]
        };
        [quiet, &["-c", "--", command]].concat()
    }
}

/// Remembers the shell found in a search path.
#[derive(Default)]
pub(super) struct ShellFinder {
    last: Mutex<Option<(String, Shell)>>,
}

impl ShellFinder {
    /// Returns `bash`, or else `sh`, from the absolute folders of `path`.
    pub(super) fn find(&self, path: &str) -> Option<Shell> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shell)) = last.as_ref().filter(|(known, _)| known == path) {
            return Some(shell.clone());
        }
        let find = |name| program::find(name, path);
        let shell = find("bash")
            .map(|program| Shell {
                program,
                is_bash: true,
            })
            .or_else(|| {
                find("sh").map(|program| Shell {
                    program,
                    is_bash: false,
                })
            })?;
        *last = Some((path.to_owned(), shell.clone()));
        Some(shell)
    }

    /// Forgets the shell, because it could not be started, so that the next call searches again.
    pub(super) fn forget(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_absolute_programs_are_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            fs::write(&file, "").expect("a file");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
        };
        let path = format!(":relative:{}", folder.path().display());
        let finder = ShellFinder::default();
        assert_eq!(finder.find(&path), None);
        place("bash", 0o644);
        place("sh", 0o755);
        let shell = finder.find(&path).expect("a shell");
        assert_eq!(shell.program, folder.path().join("sh"));
        assert_eq!(shell.arguments("-x"), ["-c", "--", "-x"]);
        place("bash", 0o755);
        assert_eq!(finder.find(&path).as_ref(), Some(&shell), "remembered");
        finder.forget();
        let shell = finder.find(&path).expect("a shell");
        assert_eq!(shell.program, folder.path().join("bash"));
        assert_eq!(shell.arguments("ls"), ["--noprofile", "--norc", "-c", "--", "ls"]);
    }
}
