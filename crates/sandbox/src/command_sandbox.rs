//! The walls that the commands of one session run behind.

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

/// How far files with denied names are looked for.
const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 6;
/// Folders full of what others wrote.
const SKIPPED: &[&str] = &[".git", "node_modules", "target", ".venv", "venv"];

/// What programs say when the network is off, and when a file is not theirs to write.
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
const WRITE_SIGNS: &[&str] = &["Permission denied", "Read-only file system", "EACCES", "EROFS"];

/// Starts commands behind a wall, which is built when the first of its kind is needed. It must live as long as they do.
#[derive(Debug, Default)]
pub struct CommandSandbox {
    /// `None` when whoever runs us has walls of their own.
    policy: Option<SandboxPolicy>,
    /// The program that becomes the command; this one when there is none.
    helper: Option<PathBuf>,
    /// What knows which names are denied, and the folder in which they are looked for.
    names: Option<(Arc<Roots>, PathBuf)>,
    built: [OnceLock<Result<Sandbox, SandboxError>>; 4],
}

impl CommandSandbox {
    /// CommandSandbox for a policy: what a command gets that asks for nothing more.
    pub fn new(policy: SandboxPolicy) -> Self {
        Self {
            policy: Some(policy),
            ..Self::default()
        }
    }

    /// The same with another program that calls [`sandbox::enter`].
    pub fn with_helper(policy: SandboxPolicy, helper: &Path) -> Self {
        Self {
            helper: Some(helper.to_owned()),
            ..Self::new(policy)
        }
    }

    /// The same, hiding also the files in the workspace whose names are denied. A wall knows only paths, so they are
    /// looked for when it is built.
    #[must_use]
    pub fn hiding(mut self, ground: &Workspace) -> Self {
        self.names = Some((ground.files(), ground.root().to_owned()));
        self
    }

    /// No walls, for an embedder who has others. Everything a command may do is then up to the rules alone.
    pub fn none() -> Self {
        Self::default()
    }

    /// Says what a command with this reach needs permission for, on top of what is known about it.
    pub fn judge(&self, reach: Escalation, judgement: &mut Judgement) {
        let Some(policy) = &self.policy else {
            return;
        };
        let mut ask = |reason: String| {
            judgement.category = Category::Admin;
            judgement.reasons.push(reason);
        };
        if reach.network && policy.network == Network::Off {
            ask("it reaches the network".to_owned());
        }
        if reach.outside {
            ask("it writes outside the workspace".to_owned());
        }
        match self.wall(policy, reach) {
            Ok(wall) => {
                for gap in wall.gaps() {
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

    /// Starts a program behind the wall. Whoever calls this has asked [`Self::judge`] and was allowed to.
    ///
    /// # Errors
    /// When there is no wall although there could be one, or the program cannot be started.
    pub fn spawn(
        &self,
        reach: Escalation,
        program: &Path,
        arguments: &[&str],
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> io::Result<(Tree, Receiver)> {
        let wall = self.policy.as_ref().map(|policy| self.wall(policy, reach));
        let (program, arguments, input) = match wall {
            Some(Ok(wall)) => wall.wrap_without_input(program, arguments),
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
                let _ = this.wall(policy, Escalation::default());
            }
        });
    }

    /// What to tell a model whose command failed, if the wall may be why.
    pub fn hint(&self, reach: Escalation, output: &str) -> Option<&'static str> {
        let policy = self.policy.as_ref()?;
        let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        if !reach.network && policy.network == Network::Off && says(NETWORK_SIGNS) {
            Some("[the sandbox keeps the network off; a call with network: true asks the user for it]")
        } else if !reach.outside && says(WRITE_SIGNS) {
            Some(
                "[the sandbox allows writing in the working directory and the temporary folder only; a call with \
                 outside: true asks the user for more]",
            )
        } else {
            None
        }
    }

    fn wall(&self, policy: &SandboxPolicy, reach: Escalation) -> Result<&Sandbox, &SandboxError> {
        let place = usize::from(reach.network) + 2 * usize::from(reach.outside);
        let Some(cell) = self.built.get(place) else {
            return Err(&SandboxError::Arguments);
        };
        cell.get_or_init(|| {
            let mut policy = policy.clone();
            if let Some((roots, folder)) = &self.names {
                policy.denied.extend(denied_files(roots, folder));
            }
            if reach.network {
                policy.network = Network::On;
            }
            if reach.outside {
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

/// The files with a denied name, as far as they are near enough to be found without holding up the first command.
fn denied_files(roots: &Roots, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MAX_ENTRIES {
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

    /// CommandSandbox on a machine where none can stand.
    fn without_landlock() -> CommandSandbox {
        let walls = CommandSandbox::new(SandboxPolicy::default());
        for cell in &walls.built {
            cell.set(Err(SandboxError::NoLandlock)).expect("still empty");
        }
        walls
    }

    fn judged(walls: &CommandSandbox, reach: Escalation) -> Judgement {
        let mut judgement = Judgement::of(Category::Read);
        walls.judge(reach, &mut judgement);
        judgement
    }

    /// SAFE-4: where the kernel cannot confine commands, each asks, and says why.
    #[test]
    fn without_a_wall_every_command_asks() {
        let judgement = judged(&without_landlock(), Escalation::default());
        assert_eq!(judgement.category, Category::Admin);
        assert!(
            judgement.reasons.concat().contains("no Landlock"),
            "{judgement:?}"
        );
        assert_eq!(judgement.refusal, None);
    }

    /// SAFE-4: a policy that cannot be put up because of a mistake in it lets nothing run.
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

    /// SAFE-4: whoever brings walls of their own is not asked for ours.
    #[test]
    fn no_walls_ask_nothing() {
        let reach = Escalation {
            network: true,
            outside: true,
        };
        assert_eq!(
            judged(&CommandSandbox::none(), reach),
            Judgement::of(Category::Read)
        );
    }

    /// SAFE-3: files with a denied name are found in the workspace, but not in what others wrote.
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
