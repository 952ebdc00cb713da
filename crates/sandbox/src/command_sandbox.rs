//! The sandboxes that the commands of one session run in.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use tokio::net::unix::pipe::Receiver;
use windlass_core::permission::Escalation;
use windlass_core::tool::{Category, Judgement};

use crate::process::{self, Tree};
use crate::workspace::Workspace;
use crate::{Gap, Network, Roots, Sandbox, SandboxError, SandboxPolicy};

/// Limits of the search for files with denied names.
const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 6;
/// Folders that contain mostly generated or third-party files.
const SKIPPED: &[&str] = &[".git", "node_modules", "target", ".venv", "venv"];

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
const WRITE_SIGNS: &[&str] = &["Permission denied", "Read-only file system", "EACCES", "EROFS"];

/// Starts commands in a sandbox, which is created when the first command needs it. It must outlive the
/// commands.
#[derive(Debug, Default)]
pub struct CommandSandbox {
    /// `None` if the embedder brings a sandbox of its own.
    policy: Option<SandboxPolicy>,
    /// Helper program that becomes the command; this binary if `None`.
    helper: Option<PathBuf>,
    /// The denied names, and the folder that is searched for them.
    names: Option<(Arc<Roots>, PathBuf)>,
    built: [OnceLock<Result<Sandbox, SandboxError>>; 4],
}

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

    /// Also hides the files in the workspace whose names are denied. A sandbox knows only paths, so the files
    /// are searched when it is created.
    #[must_use]
    pub fn hiding(mut self, workspace: &Workspace) -> Self {
        self.names = Some((workspace.files(), workspace.root().to_owned()));
        self
    }

    /// Starts commands without a sandbox, for an embedder with its own. Only the permission rules limit
    /// commands then.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the access that a command with this escalation gets beyond the default to a judgement, and the reasons
    /// why it needs approval.
    pub fn judge(&self, escalation: Escalation, judgement: &mut Judgement) {
        let Some(policy) = &self.policy else {
            return;
        };
        judgement.escalation = Escalation {
            network: escalation.network && policy.network == Network::Off,
            ..escalation
        };
        let mut ask = |reason: String| {
            judgement.category = Category::Admin;
            judgement.reasons.push(reason);
        };
        if escalation.network && policy.network == Network::Off {
            ask("it reaches the network".to_owned());
        }
        if escalation.outside {
            ask("it writes outside the workspace".to_owned());
        }
        match self.sandbox(policy, escalation) {
            Ok(sandbox) => {
                for gap in sandbox.gaps() {
                    if let Gap::Open(path) = gap {
                        ask(format!("{} cannot be protected on this machine", path.display()));
                    }
                }
            }
            Err(error @ (SandboxError::NoLandlock | SandboxError::NoFilter)) => {
                ask(error.to_string());
                // Nothing confines the command, so it can reach everything.
                judgement.escalation = Escalation {
                    network: true,
                    outside: true,
                };
            }
            Err(error) => {
                judgement.refusal.get_or_insert_with(|| {
                    format!("Refused (security): commands cannot be confined: {error}. Tell the user.")
                });
            }
        }
    }

    /// Starts a program in the sandbox, or without one if this machine has none. The caller must have called
    /// [`Self::judge`] and obtained the approval that it asks for.
    ///
    /// # Errors
    /// If the sandbox cannot be set up although this machine has one, or the program cannot be started.
    pub fn spawn(
        &self,
        escalation: Escalation,
        program: &Path,
        arguments: &[&str],
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> io::Result<(Tree, Receiver)> {
        let sandbox = self
            .policy
            .as_ref()
            .map(|policy| self.sandbox(policy, escalation));
        let (program, arguments, input) = match sandbox {
            Some(Ok(sandbox)) => sandbox.wrap_without_input(program, arguments),
            None | Some(Err(SandboxError::NoLandlock | SandboxError::NoFilter)) => {
                let (program, arguments) = crate::unprotected(program, arguments);
                (program, arguments, Stdio::null())
            }
            Some(Err(error)) => return Err(io::Error::other(error.to_string())),
        };
        process::spawn(&program, &arguments, cwd, env, input)
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
                let _ = this.sandbox(policy, Escalation::default());
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

    fn sandbox(&self, policy: &SandboxPolicy, escalation: Escalation) -> Result<&Sandbox, &SandboxError> {
        let place = usize::from(escalation.network) + 2 * usize::from(escalation.outside);
        let Some(cell) = self.built.get(place) else {
            return Err(&SandboxError::Arguments);
        };
        cell.get_or_init(|| {
            let mut policy = policy.clone();
            if let Some((roots, folder)) = &self.names {
                policy.denied.extend(denied_files(roots, folder));
            }
            if escalation.network {
                policy.network = Network::On;
            }
            if escalation.outside {
                policy.write = vec!["/".into()];
            }
            match &self.helper {
                Some(helper) => Sandbox::with_helper(policy, helper),
                None => Sandbox::new(policy),
            }
        })
        .as_ref()
    }
}

/// Returns the files with a denied name, within the limits that keep the first command from being delayed.
fn denied_files(roots: &Roots, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                let skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
                if depth < MAX_DEPTH && !skipped {
                    folders.push_back((entry.path(), depth + 1));
                }
            } else if roots.denies(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found
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

    /// SAFE-3: files with a denied name are found in the workspace, but not in third-party folders.
    #[test]
    fn denied_names_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("a folder");
        for name in [
            ".env",
            "a/b/.env.local",
            ".env.example",
            "node_modules/x/.env",
            "a/plain",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, "").expect("a file");
        }
        let roots = Roots::new(std::slice::from_ref(&root), &[".env*".into()]).expect("roots");
        assert_eq!(
            denied_files(&roots, &root),
            [root.join(".env"), root.join("a/b/.env.local")]
        );
    }
}
