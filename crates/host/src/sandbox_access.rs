//! File and command access of a session, from the settings.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::permission::Rule;
use windlass_sandbox::{
    CommandSandbox, HostRules, Network, PrivateTemp, ProtectedPaths, ResourceLimits, SandboxPolicy,
    Workspace, domain_hosts,
};

use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::settings::{NetworkAccess, SecuritySettings, Settings};
use windlass_config::{Problem, ProblemKind};

use crate::run_here::run_here;

/// Maximum number of entries of one of our folders that are looked at.
const MAX_OWN: usize = 1_000;

/// The tool for commands, as rules name it.
const COMMANDS: &str = "bash";

/// File and command access of a session in one folder.
pub struct SandboxAccess {
    cwd: PathBuf,
    home: Option<PathBuf>,
    allowed: Vec<PathBuf>,
    /// Folder for the private temporary folders of sessions; `None` if the session has none.
    temp: Option<PathBuf>,
    /// Folder for the caches of package managers.
    caches: PathBuf,
    /// Absolute paths, and patterns for file names.
    denied: Vec<PathBuf>,
    network: NetworkAccess,
    /// Domains of the rules that deny commands, and of those that ask.
    denied_hosts: Vec<String>,
    asked_hosts: Vec<String>,
    limits: ResourceLimits,
    /// Files that Windlass itself runs with other rights than a command has.
    run_here: Vec<PathBuf>,
}

impl SandboxAccess {
    /// Reads the settings for a session in `cwd`, for commands and tools that write. Also protects the project's files
    /// that Windlass itself runs.
    pub fn of(settings: &Settings, cwd: &Path) -> Result<Self, Problem> {
        Ok(Self {
            run_here: run_here(settings, cwd),
            ..Self::new(&settings.security, cwd)?
        })
    }

    /// Reads the settings for a session in `cwd`.
    pub fn new(security: &SecuritySettings, cwd: &Path) -> Result<Self, Problem> {
        let home = environment::var("HOME").map(PathBuf::from);
        let temp = PathBuf::from(environment::var("TMPDIR").unwrap_or_else(|| "/tmp".to_owned()));
        let place = |text: &str| placed(text, cwd, home.as_deref(), &temp);
        let folders = environment::folders()?;
        let is_temp = |text: &&String| below_variable(text, "$TMPDIR").is_some();
        let named = security.allowed_paths.iter().filter(|text| !is_temp(text));
        let mut allowed = Vec::new();
        for text in named {
            let path = place(text);
            match path.canonicalize() {
                // The protected paths inside are compared with the real one.
                Ok(real) if real.is_dir() => allowed.push(real),
                Ok(_) | Err(_) => {
                    let why = format!(
                        "security.allowed_paths: {}: there is no such folder",
                        path.display()
                    );
                    return Err(Problem::new(ProblemKind::Config, why));
                }
            }
        }
        let is_pattern = |text: &str| !text.contains('/') && !text.starts_with(['~', '$']);
        let mut denied: Vec<PathBuf> = security
            .denied_paths
            .iter()
            .map(|text| {
                if is_pattern(text) {
                    PathBuf::from(text)
                } else {
                    place(text)
                }
            })
            .collect();
        // Who names the shared folder itself gets it.
        let is_shared = allowed
            .iter()
            .any(|allowed| Path::new("/tmp").starts_with(allowed));
        let temp = (!is_shared && security.allowed_paths.iter().any(|text| is_temp(&text)))
            .then(|| folders.cache.join("tmp"));
        let caches = folders.cache.join("packages");
        let own = own_links(&folders)
            .into_iter()
            .chain(security.config_file.clone());
        denied.extend(own.filter_map(|file| file.canonicalize().ok()));
        for own in [folders.config, folders.data, folders.state] {
            // The sandbox would occupy its path until we exit, and we could not create it ourselves
            // meanwhile.
            if allowed.iter().any(|allowed| own.starts_with(allowed)) {
                private_folder(&own)?;
            }
            denied.push(own);
        }
        Ok(Self {
            cwd: cwd.to_owned(),
            home,
            allowed,
            temp,
            caches,
            denied,
            network: network(security),
            denied_hosts: domains(&security.deny),
            asked_hosts: domains(&security.ask),
            limits: security.limits,
            run_here: Vec::new(),
        })
    }

    /// Returns the denied paths, and the patterns for denied file names.
    pub fn denied(&self) -> &[PathBuf] {
        &self.denied
    }

    /// Returns the workspace of the file tools, with a new private folder for temporary files.
    pub fn workspace(&self) -> Result<Workspace, Problem> {
        let workspace = Workspace::new(&self.cwd, self.home.as_deref()).protecting(&self.run_here);
        let limited = match &self.temp {
            None => workspace.limited(&self.allowed, &self.denied),
            Some(parent) => {
                let temp = PrivateTemp::new(parent).map_err(|error| {
                    Problem::new(ProblemKind::Failed, format!("{}: {error}", parent.display()))
                })?;
                let mut allowed = self.allowed.clone();
                allowed.push(temp.path().to_owned());
                workspace.limited_with_temp(&allowed, &self.denied, Arc::new(temp))
            }
        };
        limited.map_err(|error| {
            let why = format!("security.allowed_paths, security.denied_paths: {error}");
            Problem::new(ProblemKind::Config, why)
        })
    }

    /// Returns the same workspace without a folder for temporary files, for work that only reads.
    pub fn reading_workspace(&self) -> Result<Workspace, Problem> {
        let workspace = Workspace::new(&self.cwd, self.home.as_deref());
        workspace.limited(&self.allowed, &self.denied).map_err(|error| {
            let why = format!("security.allowed_paths, security.denied_paths: {error}");
            Problem::new(ProblemKind::Config, why)
        })
    }

    /// Returns true if the folder is the user's home folder, or one above it.
    pub fn is_home(&self) -> bool {
        self.home
            .as_deref()
            .is_some_and(|home| home.starts_with(&self.cwd))
    }

    /// Returns the sandbox for commands.
    pub fn sandbox(self: &Arc<Self>, workspace: &Workspace) -> Arc<CommandSandbox> {
        let (this, of) = (Arc::clone(self), workspace.clone());
        let sandbox = CommandSandbox::deferred(move || this.policy(&of)).hiding(workspace);
        Arc::new(sandbox.caching(&self.caches, &self.cwd))
    }

    /// Returns the folders that commands need even if they are in a shared temporary folder: the home folder, and
    /// those that programs are found in.
    fn visible(&self) -> Vec<PathBuf> {
        let path = environment::var("PATH").unwrap_or_default();
        let folders = path
            .split(':')
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute());
        folders.chain(self.home.clone()).collect()
    }

    /// Returns the policy for commands: they read everything that is not denied, and write where file tools
    /// may.
    pub fn policy(&self, workspace: &Workspace) -> SandboxPolicy {
        let protected = ProtectedPaths::new(&self.cwd, self.home.as_deref());
        let protected = protected.with_run_here(self.run_here.iter().cloned());
        let mut read_only = protected.in_workspace();
        let others = self.allowed.iter().filter(|folder| **folder != self.cwd);
        read_only.extend(others.flat_map(|folder| protected.in_folder(folder)));
        read_only.extend(protected.of_user());
        SandboxPolicy {
            read: vec!["/".into()],
            write: self.allowed.clone(),
            temp: workspace.temp().map(|temp| temp.path().to_owned()),
            visible: self.visible(),
            denied: self
                .denied
                .iter()
                .filter(|path| path.is_absolute())
                .cloned()
                .collect(),
            read_only,
            network: match &self.network {
                NetworkAccess::Off => Network::Off,
                NetworkAccess::Hosts(_) => Network::Hosts,
                NetworkAccess::On => Network::On,
            },
            hosts: HostRules {
                allowed: match &self.network {
                    NetworkAccess::Hosts(hosts) => hosts.clone(),
                    NetworkAccess::Off | NetworkAccess::On => Vec::new(),
                },
                denied: self.denied_hosts.clone(),
                asked: self.asked_hosts.clone(),
            },
            limits: self.limits.or_default(),
            ..SandboxPolicy::default()
        }
    }
}

/// Returns the network access of commands: that of the settings, and the domains of rules that allow some.
fn network(security: &SecuritySettings) -> NetworkAccess {
    let mut hosts: Vec<String> = domains(&security.allow)
        .iter()
        .flat_map(|domain| domain_hosts(domain))
        .collect();
    match &security.network {
        NetworkAccess::On => NetworkAccess::On,
        NetworkAccess::Off if hosts.is_empty() => NetworkAccess::Off,
        NetworkAccess::Off => NetworkAccess::Hosts(hosts),
        NetworkAccess::Hosts(named) => {
            hosts.splice(0..0, named.iter().cloned());
            NetworkAccess::Hosts(hosts)
        }
    }
}

/// Returns the domains of rules for commands, such as `bash(domain:example.com)`.
fn domains(rules: &[String]) -> Vec<String> {
    let rules = rules.iter().filter_map(|text| text.parse::<Rule>().ok());
    rules
        .filter(|rule| rule.names(COMMANDS))
        .filter_map(|rule| rule.domain().map(str::to_owned))
        .collect()
}

/// Returns the part of a path below a variable.
fn below_variable<'a>(text: &'a str, variable: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(variable)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

/// Returns those of our own files, read or written by name, that are links: the target may be outside our folders and
/// needs the same protection.
fn own_links(folders: &Folders) -> Vec<PathBuf> {
    let fixed = [
        folders.user_file(),
        folders.user_tools(),
        folders.user_commands(),
        folders.keys_file(),
        folders.trust_file(),
        folders.grants_file(),
        folders.data.join("windlass.db"),
    ];
    let mut files: Vec<PathBuf> = fixed.into_iter().collect();
    // Instructions and commands of the user, which may be links one by one.
    for folder in [&folders.config, &folders.user_commands()] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.extend(entries.take(MAX_OWN).map(|entry| entry.path()));
    }
    files.retain(|path| path.is_symlink());
    files
}

fn private_folder(path: &Path) -> Result<(), Problem> {
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| Problem::new(ProblemKind::Failed, format!("{}: {error}", path.display())))
}

fn placed(text: &str, cwd: &Path, home: Option<&Path>, temp: &Path) -> PathBuf {
    let below = |start: &str, folder: &Path| Some(folder.join(below_variable(text, start)?));
    let from_home = home.and_then(|home| below("~", home));
    let path = from_home
        .or_else(|| below("$TMPDIR", temp))
        .unwrap_or_else(|| cwd.join(text));
    // Without `.`, doubled slashes, and a trailing slash.
    let text = path.as_os_str().to_string_lossy();
    let is_tidy = !text.contains("//") && !text.contains("/./") && !text.ends_with(['/', '.']);
    if is_tidy {
        path
    } else {
        path.components().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-3: paths in the settings are resolved to absolute paths.
    #[test]
    fn paths_in_settings_mean_places() {
        let (cwd, home, temp) = (Path::new("/project"), Path::new("/home/ann"), Path::new("/tmp"));
        for (text, place) in [
            (".", "/project"),
            ("sub/x", "/project/sub/x"),
            ("/data/", "/data"),
            ("~", "/home/ann"),
            ("~/.ssh", "/home/ann/.ssh"),
            ("~ann", "/project/~ann"),
            ("$TMPDIR", "/tmp"),
            ("$TMPDIR/a", "/tmp/a"),
        ] {
            assert_eq!(placed(text, cwd, Some(home), temp), Path::new(place), "{text}");
        }
        assert_eq!(placed("~/x", cwd, None, temp), Path::new("/project/~/x"));
    }
}
