//! Where Windlass keeps its files, and where a project keeps its own settings.
//!
//! Nothing here reads the environment: the caller passes a lookup, so that tests need none.

use std::fmt;
use std::path::{Path, PathBuf};

/// The file with settings, in the user's folder and in a project's.
const CONFIG_FILE: &str = "config.toml";

/// The file with declared tools, in the user's folder and in a project's.
const TOOLS_FILE: &str = "tools.yaml";

/// The file with keys, in the user's folder alone.
const KEYS_FILE: &str = "keys.toml";

/// The folder with commands, in the user's folder and in a project's.
const COMMANDS_FOLDER: &str = "commands";

/// The folder of a project that belongs to Windlass.
const PROJECT_FOLDER: &str = ".windlass";

/// What is read from a project's folder. One of them makes a folder a project.
const PROJECT_FILES: [&str; 3] = [CONFIG_FILE, TOOLS_FILE, COMMANDS_FOLDER];

/// EXT-6: the four folders of a user, as the XDG standard divides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// What the user writes.
    pub config: PathBuf,
    /// What must not be lost: sessions.
    pub data: PathBuf,
    /// What is kept between runs and may be lost: logs, history of the prompt.
    pub state: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
}

/// Why the folders are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldersError {
    /// Neither `WINDLASS_HOME` nor `HOME` names a folder.
    NoHome,
    /// `WINDLASS_HOME` would mean another folder in every directory.
    RelativeHome,
}

impl Folders {
    /// Finds the folders: below `WINDLASS_HOME` when it is set, else where XDG says.
    pub fn resolve(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, FoldersError> {
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
    pub fn user_file(&self) -> PathBuf {
        self.config.join(CONFIG_FILE)
    }

    /// The user's keys; the file need not exist.
    pub fn keys_file(&self) -> PathBuf {
        self.config.join(KEYS_FILE)
    }

    /// The user's own tools; the file need not exist.
    pub fn user_tools(&self) -> PathBuf {
        self.config.join(TOOLS_FILE)
    }

    /// The user's own commands; the folder need not exist.
    pub fn user_commands(&self) -> PathBuf {
        self.config.join(COMMANDS_FOLDER)
    }

    /// The folders that the user trusts; the file need not exist.
    pub fn trust_file(&self) -> PathBuf {
        self.data.join("trust.json")
    }

    /// What the user allowed for good; the file need not exist.
    pub fn grants_file(&self) -> PathBuf {
        self.data.join("grants.json")
    }

    /// What is kept of workspaces so that files can be taken back.
    pub fn checkpoints(&self) -> PathBuf {
        self.data.join("checkpoints")
    }

    /// The long outputs of all sessions, each in a folder of its own.
    pub fn outputs(&self) -> PathBuf {
        self.state.join("outputs")
    }

    /// The project around `cwd`: the nearest one, never from outside the repository.
    pub fn project(&self, cwd: &Path) -> Option<Project> {
        for folder in cwd.ancestors() {
            let project = Project {
                root: folder.to_owned(),
            };
            if project.has_files() && !self.is_ours(&project.folder()) {
                return Some(project);
            }
            // A file named `.git` marks a worktree or a submodule and is a border too.
            if folder.join(".git").exists() {
                return None;
            }
        }
        None
    }

    /// The settings of the project around `cwd`, if it has any.
    pub fn project_file(&self, cwd: &Path) -> Option<PathBuf> {
        let file = self.project(cwd)?.config_file();
        file.symlink_metadata().is_ok().then_some(file)
    }

    /// Whether our own files lie there, as with `WINDLASS_HOME=~/.windlass`.
    fn is_ours(&self, folder: &Path) -> bool {
        let folder = real(folder);
        let own = [&self.config, &self.data, &self.state, &self.cache];
        own.into_iter().any(|own| real(own).starts_with(&folder))
    }
}

/// A folder with settings, tools or commands of its own, written by whoever wrote what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The folder that holds `.windlass`.
    pub root: PathBuf,
}

impl Project {
    /// The folder in it that belongs to Windlass.
    pub fn folder(&self) -> PathBuf {
        self.root.join(PROJECT_FOLDER)
    }

    /// Its settings; the file need not exist.
    pub fn config_file(&self) -> PathBuf {
        self.folder().join(CONFIG_FILE)
    }

    /// Its tools; the file need not exist.
    pub fn tools_file(&self) -> PathBuf {
        self.folder().join(TOOLS_FILE)
    }

    /// Its commands; the folder need not exist.
    pub fn commands_folder(&self) -> PathBuf {
        self.folder().join(COMMANDS_FOLDER)
    }

    fn has_files(&self) -> bool {
        let folder = self.folder();
        // A link that leads nowhere counts: it could lead somewhere tomorrow.
        PROJECT_FILES
            .iter()
            .any(|name| folder.join(name).symlink_metadata().is_ok())
    }
}

/// The path with links followed, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for folder in path.ancestors() {
        if let Ok(found) = folder.canonicalize() {
            return missing.iter().rev().fold(found, |path, name| path.join(name));
        }
        missing.extend(folder.file_name());
    }
    path.to_owned()
}

/// Whether two paths lead to the same place, links followed.
pub fn same_place(one: &Path, other: &Path) -> bool {
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
#[path = "folders_tests.rs"]
mod tests;
