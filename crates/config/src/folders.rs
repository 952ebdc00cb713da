//! Locations of Windlass's own files and of a project's settings.
//!
//! Nothing here reads the environment: the caller passes a lookup function, so tests do not need one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;

/// Name of the settings file, in the user's folder and in a project's.
const CONFIG_FILE: &str = "config.toml";

/// Name of the file with declared tools, in the user's folder and in a project's.
const TOOLS_FILE: &str = "tools.yaml";

/// Name of the file with API keys, only in the user's folder.
const KEYS_FILE: &str = "keys.toml";

/// Name of the file with scheduled jobs, only in the user's folder.
const JOBS_FILE: &str = "cron.toml";

/// Name of the folder with commands, in the user's folder and in a project's.
const COMMANDS_FOLDER: &str = "commands";

/// Name of the folder with agent types, in the user's folder and in a project's.
const AGENTS_FOLDER: &str = "agents";

/// Name of the folder with skills, in the user's folder and in a project's.
const SKILLS_FOLDER: &str = "skills";

/// Name of the folder in a project that belongs to Windlass.
const PROJECT_FOLDER: &str = ".windlass";

/// Name of the file with hooks, in the user's folder and in a project's.
const HOOKS_FILE: &str = "hooks.json";

/// HOOK-1: files of other agents with hooks, below the root of a project.
pub const FOREIGN_HOOKS: [&str; 3] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
];

/// Maximum size of a file of another agent.
const MAX_FOREIGN: u64 = 1 << 20;

/// Names read from a project's folder. The presence of any of them makes a folder a project.
const PROJECT_FILES: [&str; 6] = [
    CONFIG_FILE,
    TOOLS_FILE,
    COMMANDS_FOLDER,
    AGENTS_FOLDER,
    SKILLS_FOLDER,
    HOOKS_FILE,
];

/// Name of the file with MCP servers at a project's root, which other agents read, too.
const PROJECT_SERVERS: &str = ".mcp.json";

/// Name of the user's file with MCP servers.
const SERVERS_FILE: &str = "mcp.json";

/// Returns true if a folder is the root of a repository, also of a worktree or a submodule. The empty `.git` that a
/// sandbox keeps where there is no repository does not count.
pub fn is_repository(folder: &Path) -> bool {
    rustix::fs::stat(folder.join(".git")).is_ok_and(|found| !windlass_sandbox::is_placeholder(&found))
}

/// SAFE-7: returns a warning if other users can change a file or folder.
fn exposed(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let (mode, owner) = (found.mode(), found.uid());
    let us = rustix::process::geteuid().as_raw();
    // A group of the user's own is common, and has no other members.
    let is_foreign_group = found.gid() != rustix::process::getegid().as_raw();
    let by_others = mode & 0o002 != 0 || (mode & 0o020 != 0 && is_foreign_group);
    let path = path.display();
    if by_others {
        let keep = if found.is_dir() { "700" } else { "600" };
        return Some(format!(
            "{path}: other users can change it; run: chmod {keep} {path}"
        ));
    }
    (owner != us && owner != 0).then(|| format!("{path}: belongs to another user, who can change it"))
}

/// EXT-6: the four folders of a user, following the XDG standard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Configuration written by the user.
    pub config: PathBuf,
    /// Data that must not be lost: sessions.
    pub data: PathBuf,
    /// State that persists between runs and may be lost: logs, prompt history.
    pub state: PathBuf,
    /// Data that can be regenerated.
    pub cache: PathBuf,
    /// The user's home, where other programs keep their files.
    pub home: Option<PathBuf>,
}

/// Reason why the folders are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldersError {
    /// Neither `WINDLASS_HOME` nor `HOME` names a folder.
    NoHome,
    /// `WINDLASS_HOME` is relative, and would mean a different folder in every directory.
    RelativeHome,
}

impl Folders {
    /// Locates the folders: below `WINDLASS_HOME` if it is set, otherwise as XDG specifies.
    pub fn resolve(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, FoldersError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(home) = set("WINDLASS_HOME") {
            return if home.is_absolute() {
                let own = set("HOME").filter(|home| home.is_absolute());
                Ok(Self::below(&home, own))
            } else {
                Err(FoldersError::RelativeHome)
            };
        }
        let home = set("HOME").filter(|home| home.is_absolute());
        // By the XDG standard, a relative value is invalid and counts as unset.
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
            home: home.clone(),
        })
    }

    fn below(home: &Path, own: Option<PathBuf>) -> Self {
        Self {
            config: home.join("config"),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
            home: own,
        }
    }

    /// Path of the user's settings file, which need not exist.
    pub fn user_file(&self) -> PathBuf {
        self.config.join(CONFIG_FILE)
    }

    /// Returns the path of a profile: settings that `--profile` adds to the user's.
    pub fn profile_file(&self, name: &str) -> PathBuf {
        let beside = self.user_file();
        beside.with_file_name("profiles").join(format!("{name}.toml"))
    }

    /// Path of the user's key file, which need not exist.
    pub fn keys_file(&self) -> PathBuf {
        self.config.join(KEYS_FILE)
    }

    /// Path of the user's tools file, which need not exist.
    pub fn user_tools(&self) -> PathBuf {
        self.config.join(TOOLS_FILE)
    }

    /// Path of the user's hooks, which need not exist.
    pub fn user_hooks(&self) -> PathBuf {
        self.config.join(HOOKS_FILE)
    }

    /// Path of the record of hook runs, which need not exist.
    pub fn hook_runs(&self) -> PathBuf {
        self.state.join("hook-runs.jsonl")
    }

    /// Path of the user's scheduled jobs, which need not exist.
    pub fn jobs_file(&self) -> PathBuf {
        self.config.join(JOBS_FILE)
    }

    /// Path of the user's commands folder, which need not exist.
    pub fn user_commands(&self) -> PathBuf {
        self.config.join(COMMANDS_FOLDER)
    }

    /// Path of the user's folder of agent types, which need not exist.
    pub fn user_agents(&self) -> PathBuf {
        self.config.join(AGENTS_FOLDER)
    }

    /// Folder with the copies of files that sub-agents work in. It is beside the state folder, which no command may
    /// enter.
    pub fn worktrees(&self) -> PathBuf {
        let mut name = self.state.file_name().unwrap_or_default().to_owned();
        name.push("-worktrees");
        self.state.with_file_name(name)
    }

    /// Path of the user's MCP servers, which need not exist.
    pub fn servers_file(&self) -> PathBuf {
        self.config.join(SERVERS_FILE)
    }

    /// Path of the tokens for MCP servers, which need not exist.
    pub fn server_tokens(&self) -> PathBuf {
        self.data.join("mcp-tokens.json")
    }

    /// Folder with the private home folders of MCP servers.
    pub fn server_homes(&self) -> PathBuf {
        self.cache.join("mcp")
    }

    /// Path of the list of trusted folders, which need not exist.
    pub fn trust_file(&self) -> PathBuf {
        self.data.join("trust.json")
    }

    /// Path of the file with the key and the subscriptions of web push, which need not exist.
    pub fn push_file(&self) -> PathBuf {
        self.state.join("push.json")
    }

    /// Path of the file with permanent approvals, which need not exist.
    pub fn grants_file(&self) -> PathBuf {
        self.data.join("grants.json")
    }

    /// Returns a warning for each of our files and folders that other users can change, and for a settings file
    /// given by name.
    pub fn exposed(&self, user_file: &Path) -> Vec<String> {
        let own = [
            self.config.clone(),
            user_file.to_owned(),
            self.keys_file(),
            self.user_tools(),
            self.user_commands(),
            self.user_hooks(),
            self.data.clone(),
            self.data.join("windlass.db"),
            self.trust_file(),
            self.grants_file(),
            self.state.clone(),
        ];
        let parent = self
            .config
            .parent()
            .filter(|parent| self.data.parent() == Some(parent));
        let all = own.iter().map(PathBuf::as_path).chain(parent);
        let mut warnings: Vec<String> = all.filter_map(exposed).collect();
        warnings.dedup();
        warnings
    }

    /// Folder with the workspace checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.data.join("checkpoints")
    }

    /// MEM-7: file of the local embedding model.
    pub fn embedding_model(&self) -> PathBuf {
        self.data.join("models").join("minilm-l6-v2.bin")
    }

    /// Folder with what no other program may see and nobody keeps: the databases of ephemeral sessions, and texts
    /// in an editor.
    pub fn ephemeral(&self) -> PathBuf {
        self.state.join("ephemeral")
    }

    /// Folder with the code indexes of workspaces.
    pub fn code_indexes(&self) -> PathBuf {
        self.state.join("code")
    }

    /// Folder with the long outputs of all sessions, in one subfolder per session.
    pub fn outputs(&self) -> PathBuf {
        self.state.join("outputs")
    }

    /// Path of the user's own skills.
    pub fn user_skills(&self) -> PathBuf {
        self.config.join(SKILLS_FOLDER)
    }

    /// Path of the files of installed plugins.
    pub fn plugins(&self) -> PathBuf {
        self.data.join("plugins")
    }

    /// Path of the list of installed plugins.
    pub fn plugins_file(&self) -> PathBuf {
        self.data.join("plugins.json")
    }

    /// Finds the project around `cwd`: the nearest one, never from outside the repository.
    pub fn project(&self, cwd: &Path) -> Option<Project> {
        if let Some(known) = PROJECT_CACHE.with_borrow(|cache| cache.as_ref()?.get(cwd).cloned()) {
            return known;
        }
        let project = self.find_project(cwd);
        PROJECT_CACHE.with_borrow_mut(|cache| {
            if let Some(cache) = cache {
                cache.insert(cwd.to_owned(), project.clone());
            }
        });
        project
    }

    fn find_project(&self, cwd: &Path) -> Option<Project> {
        for folder in cwd.ancestors() {
            let project = Project {
                root: folder.to_owned(),
            };
            if project.has_files() && !self.is_ours(&project.folder()) {
                return Some(project);
            }
            // In the user's home these files are the user's own.
            let is_home = || self.home.as_ref().is_some_and(|home| same_place(home, folder));
            if project.has_foreign_hooks() && !is_home() {
                return Some(project);
            }
            // A file named `.git` marks a worktree or a submodule, and is a boundary as well.
            if is_repository(folder) {
                return None;
            }
        }
        None
    }

    /// Path of the settings file of the project around `cwd`, if it has one.
    pub fn project_file(&self, cwd: &Path) -> Option<PathBuf> {
        let file = self.project(cwd)?.config_file();
        file.symlink_metadata().is_ok().then_some(file)
    }

    /// Returns true if Windlass's own files are there, as with `WINDLASS_HOME=~/.windlass`.
    fn is_ours(&self, folder: &Path) -> bool {
        let folder = real(folder);
        let own = [&self.config, &self.data, &self.state, &self.cache];
        own.into_iter().any(|own| real(own).starts_with(&folder))
    }
}

/// Projects by the folder they were searched from.
type ProjectCache = HashMap<PathBuf, Option<Project>>;

thread_local! {
    /// Cache of [`Folders::project`] while [`with_project_cache`] or [`with_project_cache_async`] runs.
    static PROJECT_CACHE: RefCell<Option<ProjectCache>> = const { RefCell::new(None) };
}

/// Runs `work`, in which [`Folders::project`] searches each folder once. The start of a session asks for the same project
/// many times.
pub fn with_project_cache<T>(work: impl FnOnce() -> T) -> T {
    run_with(&mut Some(ProjectCache::new()), work)
}

/// Like [`with_project_cache`], for a future. Other tasks on the thread do not see its cache.
pub async fn with_project_cache_async<F: Future>(work: F) -> F::Output {
    let mut cache = Some(ProjectCache::new());
    let mut work = pin!(work);
    poll_fn(|cx| run_with(&mut cache, || work.as_mut().poll(cx))).await
}

/// Runs `work` with this cache on the thread, and puts the former one back afterwards, even after a panic.
fn run_with<T>(cache: &mut Option<ProjectCache>, work: impl FnOnce() -> T) -> T {
    struct Restore<'a> {
        cache: &'a mut Option<ProjectCache>,
        outer: Option<ProjectCache>,
    }

    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            *self.cache = PROJECT_CACHE.replace(self.outer.take());
        }
    }

    let outer = PROJECT_CACHE.replace(cache.take());
    let _restore = Restore { cache, outer };
    work()
}

/// A folder with its own settings, tools or commands, written by the authors of the folder's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Folder that contains `.windlass`.
    pub root: PathBuf,
}

impl Project {
    /// Path of the `.windlass` folder.
    pub fn folder(&self) -> PathBuf {
        self.root.join(PROJECT_FOLDER)
    }

    /// Path of the project's settings file, which need not exist.
    pub fn config_file(&self) -> PathBuf {
        self.folder().join(CONFIG_FILE)
    }

    /// Path of the project's tools file, which need not exist.
    pub fn tools_file(&self) -> PathBuf {
        self.folder().join(TOOLS_FILE)
    }

    /// Path of the project's commands folder, which need not exist.
    pub fn commands_folder(&self) -> PathBuf {
        self.folder().join(COMMANDS_FOLDER)
    }

    /// Path of the project's folder of agent types, which need not exist.
    pub fn agents_folder(&self) -> PathBuf {
        self.folder().join(AGENTS_FOLDER)
    }

    /// Path of the project's hooks, which need not exist.
    pub fn hooks_file(&self) -> PathBuf {
        self.folder().join(HOOKS_FILE)
    }

    /// Returns true if a file of another agent in the project has hooks.
    fn has_foreign_hooks(&self) -> bool {
        FOREIGN_HOOKS.iter().any(|name| {
            let path = self.root.join(name);
            let is_small = path
                .metadata()
                .is_ok_and(|found| found.is_file() && found.len() <= MAX_FOREIGN);
            // The file may be invalid, which its user wants to know.
            is_small && std::fs::read_to_string(path).is_ok_and(|text| text.contains("\"hooks\""))
        })
    }

    /// Path of the project's MCP servers, which need not exist.
    pub fn servers_file(&self) -> PathBuf {
        self.root.join(PROJECT_SERVERS)
    }

    /// Returns true if the project has a file with MCP servers, or a link in its place.
    pub fn has_servers(&self) -> bool {
        let found = self.servers_file().symlink_metadata();
        found.is_ok_and(|found| !found.is_dir())
    }

    fn has_files(&self) -> bool {
        if self.has_servers() {
            return true;
        }
        let folder = self.folder();
        // A dangling link counts: it may have a target tomorrow.
        let has = |name: &&str| folder.join(name).symlink_metadata().is_ok();
        folder.is_dir() && PROJECT_FILES.iter().any(has)
    }
}

/// Resolves links in the part of the path that exists.
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

/// Returns true if two paths are the same place once links are resolved.
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
