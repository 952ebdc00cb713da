//! The sandboxes that the commands of one session run in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use tokio::net::unix::pipe::Receiver;
use windlass_core::permission::Escalation;
use windlass_core::tool::{Category, Judgement};

use crate::process::{self, Tree};
use crate::scan::{MAX_ENTRIES, Scan};
use crate::temp::PrivateTemp;
use crate::workspace::Workspace;
use crate::{Gap, Network, Roots, Sandbox, SandboxError, SandboxPolicy, Start};

/// Messages of programs that cannot reach the network.
const NETWORK_SIGNS: &[&str] = &[
    "resolve host",
    "resolve hostname",
    "name resolution",
    "Name or service not known",
    "Network is unreachable",
    "getaddrinfo",
    "EAI_AGAIN",
    "socket: Operation not permitted",
    "dns error",
];
/// Messages of programs that may not write a file.
const WRITE_SIGNS: &[&str] = &[
    "Permission denied",
    "Read-only file system",
    "Device or resource busy",
    "EACCES",
    "EROFS",
    "EBUSY",
];

/// Starts commands in a sandbox, which is created when the first command needs it. It must outlive the
/// commands.
#[derive(Debug, Default)]
pub struct CommandSandbox {
    /// `None` if the embedder brings a sandbox of its own.
    policy: Option<SandboxPolicy>,
    /// Helper program that becomes the command; this binary if `None`.
    helper: Option<PathBuf>,
    /// The denied names, and the folders that are searched for them and for nested repositories.
    search: Option<(Arc<Roots>, Vec<PathBuf>)>,
    scan: OnceLock<Scan>,
    /// Keeps the folder as long as commands may use it.
    temp: Option<Arc<PrivateTemp>>,
    built: [OnceLock<Result<Sandbox, SandboxError>>; 6],
}

/// Index of the first sandbox without read-only paths among the built ones.
const LIFTED: usize = 4;

impl CommandSandbox {
    /// Creates sandboxes with this policy, which applies to commands that request nothing more.
    pub fn new(policy: SandboxPolicy) -> Self {
        Self {
            policy: Some(policy),
            ..Self::default()
        }
    }

    /// Like [`Self::new`], with another program that calls [`crate::enter`] as the helper.
    pub fn with_helper(policy: SandboxPolicy, helper: &Path) -> Self {
        Self {
            helper: Some(helper.to_owned()),
            ..Self::new(policy)
        }
    }

    /// Also hides the files in the workspace whose names are denied, and protects nested repositories. A sandbox
    /// knows only paths, so the files are searched when it is created.
    #[must_use]
    pub fn hiding(mut self, workspace: &Workspace) -> Self {
        self.search = Some((workspace.files(), workspace.searched()));
        self.temp = workspace.temp().cloned();
        self
    }

    /// Starts commands without a sandbox, for an embedder with its own. Only the permission rules limit
    /// commands then.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the reasons why a command with this escalation needs approval to a judgement.
    pub fn judge(&self, escalation: Escalation, judgement: &mut Judgement) {
        let Some(policy) = &self.policy else {
            return;
        };
        let is_protected = judgement.protected;
        let mut ask = |reason: String| {
            judgement.category = Category::Admin;
            judgement.reasons.push(reason);
        };
        if escalation.network && policy.network == Network::Off {
            ask("it reaches the network".to_owned());
        }
        // The caller has named the protected files, which may be inside.
        if escalation.outside && !is_protected {
            ask("it writes outside the workspace".to_owned());
        }
        if self.scan().is_some_and(|scan| scan.is_partial) {
            ask(format!(
                "it may read files with denied names: the workspace has more than {MAX_ENTRIES} entries"
            ));
        }
        match self.sandbox(policy, escalation, false) {
            Ok(sandbox) => {
                for gap in sandbox.gaps() {
                    if let Gap::Open(path) = gap {
                        ask(format!("{} cannot be protected on this machine", path.display()));
                    }
                }
            }
            Err(error @ (SandboxError::NoLandlock | SandboxError::NoFilter)) => ask(error.to_string()),
            Err(error) => {
                judgement.refusal.get_or_insert_with(|| {
                    format!("Refused (security): commands cannot be confined: {error}. Tell the user.")
                });
            }
        }
    }

    /// Starts a program in the sandbox, or without one if this machine has none. The caller must have called
    /// [`Self::judge`] and obtained the approval that it asks for. If a person `confirmed` the access outside the
    /// workspace, the program may change protected files, too; a mode or a rule does not allow that.
    ///
    /// # Errors
    /// If the sandbox cannot be set up although this machine has one, or the program cannot be started.
    pub fn spawn(
        &self,
        escalation: Escalation,
        confirmed: bool,
        program: &Path,
        arguments: &[&str],
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> io::Result<(Tree, Receiver)> {
        let sandbox = self
            .policy
            .as_ref()
            .map(|policy| self.sandbox(policy, escalation, confirmed));
        match sandbox {
            Some(Ok(sandbox)) => {
                if confirmed && escalation.outside {
                    self.release();
                }
                let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
                let (cwd, env) = self.seen(sandbox, cwd, env);
                let start = Start {
                    program,
                    arguments: &arguments,
                    cwd: &cwd,
                    env: &env,
                };
                process::confined(sandbox, start)
            }
            None | Some(Err(SandboxError::NoLandlock | SandboxError::NoFilter)) => {
                process::spawn(program, arguments, cwd, env, Stdio::null())
            }
            Some(Err(error)) => Err(io::Error::other(error.to_string())),
        }
    }

    /// Builds the sandbox of commands without extra access on a thread of its own, once, so that neither judging nor
    /// starting the first command has to wait for it.
    pub fn prepare(this: &Arc<Self>) {
        let is_built = this.built.first().is_none_or(|cell| cell.get().is_some());
        if this.policy.is_none() || is_built {
            return;
        }
        let this = Arc::clone(this);
        std::thread::spawn(move || {
            if let Some(policy) = &this.policy {
                let _ = this.sandbox(policy, Escalation::default(), false);
            }
        });
    }

    /// Returns a hint for the model if the sandbox may be the reason why a command failed.
    pub fn hint(&self, escalation: Escalation, output: &str) -> Option<&'static str> {
        let policy = self.policy.as_ref()?;
        let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        if !escalation.network && policy.network == Network::Off && says(NETWORK_SIGNS) {
            Some("[the sandbox keeps the network off; a call with network: true asks the user for it]")
        } else if !escalation.outside && says(WRITE_SIGNS) {
            Some(
                "[the sandbox allows writing in the working directory and the temporary folder only; a call with \
                 outside: true asks the user for more]",
            )
        } else {
            None
        }
    }

    /// Returns the working directory and the variables of a command, with the private temporary folder where the
    /// command sees it.
    fn seen(
        &self,
        sandbox: &Sandbox,
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> (PathBuf, BTreeMap<String, String>) {
        let (mut cwd, mut env) = (cwd.to_owned(), env.clone());
        if let Some((own, seen)) = self.temp.as_ref().zip(sandbox.temp()) {
            if let Ok(below) = cwd.strip_prefix(own.path()) {
                cwd = seen.join(below);
            }
            env.insert("TMPDIR".to_owned(), seen.display().to_string());
        }
        (cwd, env)
    }

    /// Removes the placeholders of the other sandboxes, because a command that creates those paths may need them to
    /// be absent. `git clone` needs an empty folder.
    fn release(&self) {
        for sandbox in self.built.iter().take(LIFTED).filter_map(OnceLock::get).flatten() {
            sandbox.release();
        }
    }

    fn scan(&self) -> Option<&Scan> {
        let (roots, folders) = self.search.as_ref()?;
        Some(self.scan.get_or_init(|| Scan::of(roots, folders, MAX_ENTRIES)))
    }

    fn sandbox(
        &self,
        policy: &SandboxPolicy,
        escalation: Escalation,
        confirmed: bool,
    ) -> Result<&Sandbox, &SandboxError> {
        let network = usize::from(escalation.network);
        let place = match escalation.outside {
            false => network,
            true if confirmed => LIFTED + network,
            true => 2 + network,
        };
        let Some(cell) = self.built.get(place) else {
            return Err(&SandboxError::Arguments);
        };
        cell.get_or_init(|| {
            let mut policy = policy.clone();
            if let Some(scan) = self.scan() {
                scan.add_to(&mut policy);
            }
            if escalation.network {
                policy.network = Network::On;
            }
            // Placeholders are for the folders that every command may write. Elsewhere, only what exists is protected.
            let is_inside = |path: &PathBuf| policy.write.iter().any(|root| path.starts_with(root));
            let keep = |path: &PathBuf| is_inside(path) || (escalation.outside && path.exists());
            let read_only = policy.read_only.iter().filter(|path| keep(path));
            policy.read_only = match place >= LIFTED {
                true => Vec::new(),
                false => read_only.cloned().collect(),
            };
            if escalation.outside {
                policy.write.push("/".into());
            }
            match &self.helper {
                Some(helper) => Sandbox::with_helper(policy, helper),
                None => Sandbox::new(policy),
            }
        })
        .as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that cannot confine commands.
    fn without_landlock() -> CommandSandbox {
        let sandbox = CommandSandbox::new(SandboxPolicy::default());
        for cell in &sandbox.built {
            cell.set(Err(SandboxError::NoLandlock)).expect("still empty");
        }
        sandbox
    }

    fn judged(sandbox: &CommandSandbox, escalation: Escalation) -> Judgement {
        let mut judgement = Judgement::of(Category::Read);
        sandbox.judge(escalation, &mut judgement);
        judgement
    }

    /// SAFE-4, LIB-2: where the kernel cannot confine commands, each command asks for approval and gives the
    /// reason.
    #[test]
    fn without_a_sandbox_every_command_asks() {
        let judgement = judged(&without_landlock(), Escalation::default());
        assert_eq!(judgement.category, Category::Admin);
        assert!(
            judgement.reasons.concat().contains("no Landlock"),
            "{judgement:?}"
        );
        assert_eq!(judgement.refusal, None);
    }

    /// SAFE-4: a policy with a mistake in it lets nothing run.
    #[cfg(all(target_os = "linux", not(windlass_portable)))]
    #[test]
    fn a_wrong_policy_refuses() {
        let policy = SandboxPolicy {
            write: vec!["/nowhere/at/all".into()],
            ..SandboxPolicy::default()
        };
        let judgement = judged(&CommandSandbox::new(policy), Escalation::default());
        let refusal = judgement.refusal.unwrap_or_default();
        assert!(refusal.contains("/nowhere/at/all"), "{refusal}");
    }

    /// SAFE-4: an embedder with its own sandbox is not asked for approval because of ours.
    #[test]
    fn an_embedders_sandbox_asks_nothing() {
        let escalation = Escalation {
            network: true,
            outside: true,
        };
        assert_eq!(
            judged(&CommandSandbox::none(), escalation),
            Judgement::of(Category::Read)
        );
    }
}
