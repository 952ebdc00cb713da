//! File and command access of a session, from the settings.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_sandbox::{CommandSandbox, Workspace};
use windlass_sandbox::{Network, SandboxPolicy};

use windlass_config::environment;
use windlass_config::settings::{NetworkAccess, SecuritySettings};
use windlass_config::{Problem, ProblemKind};

/// Project folders whose content other tools read and run automatically, so that writing there can run code.
const READ_ONLY: &[&str] = &[".windlass", ".git/hooks"];

/// File and command access of a session in one folder.
pub struct SandboxAccess {
    cwd: PathBuf,
    home: Option<PathBuf>,
    allowed: Vec<PathBuf>,
    /// Absolute paths, and patterns for file names.
    denied: Vec<PathBuf>,
    network: NetworkAccess,
}

impl SandboxAccess {
    /// Reads the settings for a session in `cwd`.
    pub fn new(security: &SecuritySettings, cwd: &Path) -> Result<Self, Problem> {
        let home = environment::var("HOME").map(PathBuf::from);
        let temp = PathBuf::from(environment::var("TMPDIR").unwrap_or_else(|| "/tmp".to_owned()));
        let place = |text: &str| placed(text, cwd, home.as_deref(), &temp);
        let mut allowed = Vec::new();
        for text in &security.allowed_paths {
            let path = place(text);
            match path.is_dir() {
                true => allowed.push(path),
                // Not every system has this folder, and the user did not name it.
                false if path == temp => {}
                false => {
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
        let folders = environment::folders()?;
        let private = [folders.keys_file(), folders.trust_file(), folders.grants_file()];
        // An entry may be a link to a place outside our folders. Its target needs the same protection.
        let linked = private.iter().filter(|file| file.is_symlink());
        denied.extend(linked.filter_map(|file| file.canonicalize().ok()));
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
            denied,
            network: security.network.clone(),
        })
    }

    /// Returns the workspace of the file tools.
    pub fn workspace(&self) -> Result<Workspace, Problem> {
        let workspace = Workspace::new(&self.cwd, self.home.as_deref());
        workspace.limited(&self.allowed, &self.denied).map_err(|error| {
            let why = format!("security.allowed_paths, security.denied_paths: {error}");
            Problem::new(ProblemKind::Config, why)
        })
    }

    /// Returns the sandbox for commands.
    pub fn sandbox(&self, workspace: &Workspace) -> Arc<CommandSandbox> {
        Arc::new(CommandSandbox::new(self.policy()).hiding(workspace))
    }

    /// Returns the policy for commands: they read everything that is not denied, and write where file tools
    /// may.
    pub fn policy(&self) -> SandboxPolicy {
        let below = |name: &&str| Some(self.cwd.join(name)).filter(|path| path.is_dir());
        SandboxPolicy {
            read: vec!["/".into()],
            write: self.allowed.clone(),
            denied: self
                .denied
                .iter()
                .filter(|path| path.is_absolute())
                .cloned()
                .collect(),
            read_only: READ_ONLY.iter().filter_map(below).collect(),
            network: match &self.network {
                NetworkAccess::Off => Network::Off,
                NetworkAccess::Hosts(_) => Network::Hosts,
                NetworkAccess::On => Network::On,
            },
            hosts: match &self.network {
                NetworkAccess::Hosts(hosts) => hosts.clone(),
                NetworkAccess::Off | NetworkAccess::On => Vec::new(),
            },
            ..SandboxPolicy::default()
        }
    }
}

fn private_folder(path: &Path) -> Result<(), Problem> {
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| Problem::new(ProblemKind::Failed, format!("{}: {error}", path.display())))
}

fn placed(text: &str, cwd: &Path, home: Option<&Path>, temp: &Path) -> PathBuf {
    let below = |start: &str, folder: &Path| {
        let rest = text.strip_prefix(start)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| folder.join(rest.trim_start_matches('/')))
    };
    let from_home = home.and_then(|home| below("~", home));
    let path = from_home
        .or_else(|| below("$TMPDIR", temp))
        .unwrap_or_else(|| cwd.join(text));
    // Without `.`, doubled slashes, and a trailing slash.
    path.components().collect()
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
