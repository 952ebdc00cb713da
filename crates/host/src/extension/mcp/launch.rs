//! Starts the processes of servers in a sandbox, each with a home folder of its own.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::settings::Settings;
use windlass_mcp::{Launcher, StdioServer};
use windlass_sandbox::process::{Duplex, Tree};
use windlass_sandbox::{CommandSandbox, LocalSockets, Network, Workspace, child_environment, program};

use super::servers::expand_home;
use crate::sandbox_access::SandboxAccess;

/// Variables that point to the user's own sound server.
const AUDIO: [&str; 3] = ["XDG_RUNTIME_DIR", "PULSE_SERVER", "PIPEWIRE_REMOTE"];

/// Starts servers in a sandbox: they write in the workspace and in a home folder of their own.
pub struct ConfinedLauncher {
    settings: Arc<Settings>,
    cwd: PathBuf,
    session: String,
    homes: PathBuf,
    /// Sandboxes by server. They must outlive the processes.
    kept: Mutex<HashMap<String, (CommandSandbox, Option<Workspace>)>>,
}

impl ConfinedLauncher {
    /// Starts servers for a session in `cwd`.
    pub fn new(settings: &Arc<Settings>, cwd: &Path, session: &str, folders: &Folders) -> Self {
        Self {
            settings: Arc::clone(settings),
            cwd: cwd.to_owned(),
            session: session.to_owned(),
            homes: folders.server_homes(),
            kept: Mutex::default(),
        }
    }

    fn sandbox(&self, server: &StdioServer, home: &Path) -> io::Result<(CommandSandbox, Option<Workspace>)> {
        if !server.access.sandbox {
            return Ok((CommandSandbox::none(), None));
        }
        let failed = |problem: windlass_config::Problem| io::Error::other(problem.to_string());
        let access = SandboxAccess::of(&self.settings, &self.cwd).map_err(failed)?;
        let workspace = access.workspace().map_err(failed)?;
        let mut policy = access.policy(&workspace);
        policy.network = match server.access.network {
            true => Network::On,
            false => Network::Off,
        };
        policy.write.push(home.to_owned());
        policy.visible.push(home.to_owned());
        if let Some((root, data)) = &server.access.plugin {
            std::fs::create_dir_all(data)?;
            policy.write.push(data.clone());
            policy.visible.extend([root.clone(), data.clone()]);
        }
        if server.access.devices.iter().any(|device| device == "audio") {
            policy.local_sockets = LocalSockets::All;
            policy.visible.extend(sound_devices());
        }
        let sandbox = CommandSandbox::new(policy).hiding(&workspace);
        Ok((sandbox, Some(workspace)))
    }

    fn env(&self, server: &StdioServer, home: &Path) -> BTreeMap<String, String> {
        let mut env = child_environment(environment::vars(), &self.cwd, &self.session);
        if server.access.sandbox {
            env.insert("HOME".to_owned(), home.display().to_string());
        }
        if server.access.devices.iter().any(|device| device == "audio") {
            let sound = AUDIO
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), environment::var(name)?)));
            env.extend(sound);
        }
        env.extend(
            server
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        env
    }
}

impl Launcher for ConfinedLauncher {
    fn launch(&self, name: &str, server: &StdioServer) -> io::Result<(Tree, Duplex)> {
        let folder: String = name
            .chars()
            .map(|sign| {
                if sign.is_ascii_alphanumeric() || sign == '-' {
                    sign
                } else {
                    '_'
                }
            })
            .collect();
        let home = self.homes.join(folder);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&home)?;
        let home = home.canonicalize()?;
        let env = self.env(server, &home);
        let cwd = match &server.cwd {
            Some(cwd) => self.cwd.join(expand_home(cwd)),
            None => self.cwd.clone(),
        };
        let command = match server.command.contains('/') {
            true => cwd
                .join(expand_home(Path::new(&server.command)))
                .display()
                .to_string(),
            false => server.command.clone(),
        };
        let path = env.get("PATH").map_or("", String::as_str);
        let found = program::find(&command, path)
            .ok_or_else(|| io::Error::other(format!("there is no program {command}")))?;
        let (sandbox, workspace) = self.sandbox(server, &home)?;
        let started = sandbox.spawn_duplex(&found, &server.args, &cwd, &env)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(name.to_owned(), (sandbox, workspace));
        Ok(started)
    }
}

/// Starts nothing.
pub(super) struct NoLauncher;

impl Launcher for NoLauncher {
    fn launch(&self, _: &str, _: &StdioServer) -> io::Result<(Tree, Duplex)> {
        Err(io::Error::other("the session is closed"))
    }
}

/// Returns the sound devices of the machine.
fn sound_devices() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev/snd").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| !path.is_dir())
        .take(100)
        .collect();
    found.sort();
    found
}
