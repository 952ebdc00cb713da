//! Where Windlass keeps its files, and where a project keeps its own settings.
//!
//! Nothing here reads the environment: the caller passes a lookup, so that tests need none.

use std::fmt;
use std::path::{Path, PathBuf};

/// The file with settings, in the user's folder and in a project's.
const CONFIG_FILE: &str = "config.toml";

/// The folder of a project that belongs to Windlass.
const PROJECT_FOLDER: &str = ".windlass";

/// EXT-6: the four folders of a user, as the XDG standard divides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folders {
    /// What the user writes.
    pub(crate) config: PathBuf,
    /// What must not be lost: sessions.
    pub(crate) data: PathBuf,
    /// What is kept between runs and may be lost: logs, history of the prompt.
    pub(crate) state: PathBuf,
    /// What can be made again.
    pub(crate) cache: PathBuf,
}

/// Why the folders are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldersError {
    /// Neither `WINDLASS_HOME` nor `HOME` names a folder.
    NoHome,
    /// `WINDLASS_HOME` would mean another folder in every directory.
    RelativeHome,
}

impl Folders {
    /// Finds the folders: below `WINDLASS_HOME` when it is set, else where XDG says.
    pub(crate) fn resolve(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, FoldersError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(home) = set("WINDLASS_HOME") {
            return if home.is_absolute() {
                Ok(Self::below(&home))
            } else {
                Err(FoldersError::RelativeHome)
            };
        }
        let home = set("HOME").filter(|home| home.is_absolute());
        // The standard says that a relative value is invalid and counts as unset.
        let folder = |variable: &str, fallback: &str| {
            let base = set(variable).filter(|path| path.is_absolute());
            let base = base.or_else(|| home.as_ref().map(|home| home.join(fallback)));
            base.map(|base| base.join("windlass")).ok_or(FoldersError::NoHome)
        };
        Ok(Self {
            config: folder("XDG_CONFIG_HOME", ".config")?,
            data: folder("XDG_DATA_HOME", ".local/share")?,
            state: folder("XDG_STATE_HOME", ".local/state")?,
            cache: folder("XDG_CACHE_HOME", ".cache")?,
        })
    }

    fn below(home: &Path) -> Self {
        Self {
            config: home.join("config"),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
        }
    }

    /// The user's settings; the file need not exist.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.config.join(CONFIG_FILE)
    }

    /// The settings of the project around `cwd`: the nearest one, never from outside the repository.
    pub(crate) fn project_file(&self, cwd: &Path) -> Option<PathBuf> {
        for folder in cwd.ancestors() {
            let own = folder.join(PROJECT_FOLDER);
            let file = own.join(CONFIG_FILE);
            if file.exists() && !same_place(&own, &self.config) {
                return Some(file);
            }
            // A file named `.git` marks a worktree or a submodule and is a border too.
            if folder.join(".git").exists() {
                return None;
            }
        }
        None
    }
}

/// Whether two paths lead to the same place, links followed.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

impl fmt::Display for FoldersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHome => "no folder to keep files in: set HOME or WINDLASS_HOME to an absolute path",
            Self::RelativeHome => "WINDLASS_HOME is a relative path: set it to an absolute one",
        })
    }
}

impl std::error::Error for FoldersError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(variables: &[(&str, &str)]) -> Result<Folders, FoldersError> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
        Folders::resolve(&|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn folders(config: &str, data: &str, state: &str, cache: &str) -> Result<Folders, FoldersError> {
        let path = PathBuf::from;
        Ok(Folders {
            config: path(config),
            data: path(data),
            state: path(state),
            cache: path(cache),
        })
    }

    /// EXT-6
    #[test]
    fn folders_follow_the_environment() {
        let home = ("HOME", "/home/ann");
        let below_home = || {
            folders(
                "/home/ann/.config/windlass",
                "/home/ann/.local/share/windlass",
                "/home/ann/.local/state/windlass",
                "/home/ann/.cache/windlass",
            )
        };
        assert_eq!(resolve(&[home]), below_home());
        assert_eq!(
            resolve(&[home, ("XDG_CONFIG_HOME", "relative"), ("XDG_CACHE_HOME", "")]),
            below_home()
        );
        let own = folders("/x/config", "/x/data", "/x/state", "/x/cache");
        assert_eq!(
            resolve(&[home, ("WINDLASS_HOME", "/x"), ("XDG_CONFIG_HOME", "/c")]),
            own
        );
        let xdg = [
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d"),
            ("XDG_STATE_HOME", "/s"),
            ("XDG_CACHE_HOME", "/k"),
        ];
        assert_eq!(
            resolve(&xdg),
            folders("/c/windlass", "/d/windlass", "/s/windlass", "/k/windlass")
        );
        assert_eq!(resolve(&[]), Err(FoldersError::NoHome));
        assert_eq!(resolve(&[("HOME", "ann")]), Err(FoldersError::NoHome));
        assert_eq!(
            resolve(&[home, ("WINDLASS_HOME", "x")]),
            Err(FoldersError::RelativeHome)
        );
    }

    /// CFG-1
    #[test]
    fn the_project_file_is_the_nearest_inside_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let make = |file: &str| {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        let folders = Folders::below(&root.path().join("home"));
        let find = |cwd: &str| {
            std::fs::create_dir_all(root.path().join(cwd)).unwrap();
            folders.project_file(&root.path().join(cwd))
        };
        let outer = make(".windlass/config.toml");
        assert_eq!(find("plain/deep"), Some(outer));
        make("repo/.git/HEAD");
        assert_eq!(find("repo/src"), None);
        let inner = make("repo/.windlass/config.toml");
        assert_eq!(find("repo/src"), Some(inner.clone()));
        assert_eq!(find("repo"), Some(inner));
        make("repo/worktree/.git");
        assert_eq!(find("repo/worktree/src"), None);
    }

    /// CFG-1
    #[test]
    fn the_users_own_folder_is_no_project() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join(".windlass");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("config.toml"), "").unwrap();
        std::fs::write(root.path().join(".git"), "").unwrap();
        let elsewhere = Folders::below(&root.path().join("home"));
        assert_eq!(elsewhere.project_file(root.path()), Some(own.join("config.toml")));
        let same = Folders {
            config: own,
            ..elsewhere
        };
        assert_eq!(same.project_file(root.path()), None);
    }
}
