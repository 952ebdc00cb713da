//! The sandboxes that the commands of one session run in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::net::unix::pipe::Receiver;
use windlass_core::permission::Escalation;
use windlass_core::tool::{Category, Judgement};

use crate::egress::{self, Egress, Reached};
use crate::package_caches::PackageCaches;
use crate::process::alone::{self, Changes};
use crate::process::{self, Duplex, Tree};
use crate::scan::{MAX_ENTRIES, Scan};
use crate::temp::PrivateTemp;
use crate::workspace::Workspace;
use crate::{Gap, Launch, Network, Roots, Sandbox, SandboxError, SandboxPolicy};

/// Maximum number of sandboxes of a session. Each set of hosts has its own.
const MAX_SANDBOXES: usize = 16;

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
/// Messages of programs that may not remove a mount point.
const BUSY_SIGNS: &[&str] = &["Device or resource busy", "EBUSY"];
/// Messages of programs that may not write a file.
const WRITE_SIGNS: &[&str] = &[
    "Permission denied",
    "Read-only file system",
    "Device or resource busy",
    "EACCES",
    "EROFS",
    "EBUSY",
];

/// Access of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// True for a command that only reads: nothing is writable but the private temporary folder. The kernel
    /// holds the command to it if it was misjudged.
    pub reads_only: bool,
    /// Access beyond the folders of the policy.
    pub escalation: Escalation,
    /// Hosts that network access is limited to; empty for all.
    pub hosts: Vec<String>,
    /// The protected files that the command changes, if it does not write outside as well.
    pub protected: ProtectedChange,
    /// True if a person approved that the command changes protected files. A mode or a rule does not allow that.
    pub lifted: bool,
}

/// The protected files that a command is known to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedChange {
    /// Those of git repositories.
    pub git: bool,
    /// Others, by their real paths.
    pub paths: Vec<PathBuf>,
}

impl ProtectedChange {
    /// Returns true if nothing protected is changed.
    pub fn is_none(&self) -> bool {
        !self.git && self.paths.is_empty()
    }

    /// Returns true if the protection of this path has to be lifted for the change.
    fn includes(&self, protected: &Path) -> bool {
        let is_named = |path: &PathBuf| path.starts_with(protected) || protected.starts_with(path);
        (self.git && protected.ends_with(".git")) || self.paths.iter().any(is_named)
    }
}

impl Access {
    /// Returns the access of a command of this category.
    pub fn of(category: Category, escalation: Escalation) -> Self {
        Self {
            reads_only: category == Category::Read && !escalation.outside,
            escalation,
            hosts: Vec::new(),
            protected: ProtectedChange::default(),
            lifted: false,
        }
    }

    /// Lets an approved command change the protected files that were shown; all of them, if it may write outside the
    /// workspace.
    #[must_use]
    pub fn confirmed(mut self, confirmed: bool) -> Self {
        self.lifted = confirmed && (self.escalation.outside || !self.protected.is_none());
        self
    }

    /// Names the protected files that the command changes.
    #[must_use]
    pub fn changing(mut self, protected: ProtectedChange) -> Self {
        self.protected = protected;
        self
    }

    /// Returns true if the command changes protected files, and could not change all files anyway.
    fn changes_protected(&self) -> bool {
        !self.escalation.outside && !self.protected.is_none()
    }

    fn changes(&self) -> Changes {
        match self {
            Self { lifted: true, .. } if self.changes_protected() => Changes::Protected,
            Self { reads_only: true, .. } => Changes::Nothing,
            _ => Changes::Files,
        }
    }

    /// Limits network access to some hosts.
    #[must_use]
    pub fn limited_to(mut self, hosts: Vec<String>) -> Self {
        self.hosts = hosts;
        self
    }
}

/// A sandbox, or the reason why there is none.
type Built = Arc<OnceLock<Result<Sandbox, SandboxError>>>;

/// A policy that is made when the first command needs it.
type LazyPolicy = LazyLock<SandboxPolicy, Box<dyn FnOnce() -> SandboxPolicy + Send>>;

/// Caches that are created when the first command needs them; `None` if they cannot be.
type LazyCaches = LazyLock<Option<PackageCaches>, Box<dyn FnOnce() -> Option<PackageCaches> + Send>>;

/// Starts commands in sandboxes, one for each kind of access, which are created when the first command needs
/// them. It must outlive the commands.
#[derive(Debug, Default)]
pub struct CommandSandbox {
    /// `None` if the embedder brings a sandbox of its own.
    policy: Option<LazyPolicy>,
    /// Helper program that becomes the command; this binary if `None`.
    helper: Option<PathBuf>,
    /// The denied names, and the folders that are searched for them and for nested repositories.
    search: Option<(Arc<Roots>, Vec<PathBuf>)>,
    scan: OnceLock<Scan>,
    /// Keeps the folder as long as commands may use it.
    temp: Option<Arc<PrivateTemp>>,
    caches: Option<LazyCaches>,
    built: Mutex<Vec<(Access, Built)>>,
}

impl CommandSandbox {
    /// Creates sandboxes with this policy, which applies to commands that request nothing more. Limits that
    /// it leaves open get defaults that stop a runaway command before the machine.
    pub fn new(policy: SandboxPolicy) -> Self {
        Self::deferred(|| policy)
    }

    /// Like [`Self::new`], with a policy that is made when the first command needs it.
    pub fn deferred(policy: impl FnOnce() -> SandboxPolicy + Send + 'static) -> Self {
        let make = || {
            let policy = policy();
            SandboxPolicy {
                limits: policy.limits.or_default(),
                ..policy
            }
        };
        Self {
            policy: Some(LazyLock::new(Box::new(make))),
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

    /// Gives package managers caches that they may write, in a folder of the workspace below `parent`. Where none can
    /// be created, they use their usual ones.
    #[must_use]
    pub fn caching(mut self, parent: &Path, workspace: &Path) -> Self {
        let (parent, workspace) = (parent.to_owned(), workspace.to_owned());
        let make = move || PackageCaches::new(&parent, &workspace).ok();
        self.caches = Some(LazyLock::new(Box::new(make)));
        self
    }

    /// Starts commands without a sandbox, for an embedder with its own. Only the permission rules limit
    /// commands then.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns true if commands have a network of their own, in which only they themselves listen.
    pub fn has_own_network(&self) -> bool {
        let policy = self.policy.as_ref();
        policy.is_some_and(|policy| policy.network != Network::On)
    }

    /// Adds the access that a command gets beyond the default to a judgement, and the reasons why it needs
    /// approval.
    pub fn judge(&self, access: &Access, judgement: &mut Judgement) {
        let Some(policy) = &self.policy else {
            return;
        };
        if access.changes_protected()
            && let Some(refusal) = alone::refusal()
        {
            judgement.refusal.get_or_insert(refusal);
        }
        let protected = access.escalation.protected;
        let access = &effective(policy, access);
        let escalation = access.escalation;
        judgement.escalation = Escalation {
            network: escalation.network && policy.network != Network::On,
            protected,
            ..escalation
        };
        let mut ask = |reason: String| {
            judgement.category = Category::Admin;
            judgement.reasons.push(reason);
        };
        if escalation.network && policy.network != Network::On {
            ask(match access.hosts.as_slice() {
                [] => "it reaches the network".to_owned(),
                hosts => format!("it reaches {}, and no other host", hosts.join(", ")),
            });
        }
        if escalation.outside {
            ask("it writes outside the workspace".to_owned());
        }
        if self.scan().is_some_and(|scan| scan.is_partial) {
            ask(format!(
                "it may read files with denied names: the workspace has more than {MAX_ENTRIES} entries"
            ));
        }
        match built(&self.sandbox(policy, access)) {
            Ok(sandbox) => {
                for gap in sandbox.gaps() {
                    match gap {
                        Gap::Open(path) => {
                            ask(format!("{} cannot be protected on this machine", path.display()));
                        }
                        Gap::Shared => {
                            ask("this machine has no namespaces, so the sandbox is incomplete".to_owned());
                        }
                        Gap::Frozen(_) => {}
                    }
                }
            }
            Err(error) if error.is_about_machine() => {
                ask(error.to_string());
                // Nothing confines the command, so it can reach everything.
                judgement.escalation = Escalation {
                    network: true,
                    outside: true,
                    protected,
                };
            }
            Err(error) => {
                judgement.refusal.get_or_insert_with(|| {
                    format!("Refused (security): commands cannot be confined: {error}. Tell the user.")
                });
            }
        }
    }

    /// Prepares the start of a command: ends the processes that ended commands have left behind, if it changes
    /// protected files.
    pub async fn settle(&self, access: &Access) {
        if access.changes() == Changes::Protected {
            alone::end_leftovers().await;
        }
    }

    /// Starts a program in the sandbox, or without one if this machine has none. The caller must have called
    /// [`Self::judge`] and obtained the approval that it asks for.
    ///
    /// # Errors
    /// If the sandbox cannot be set up although this machine has one, or the program cannot be started.
    pub fn spawn(
        &self,
        access: &Access,
        program: &Path,
        arguments: &[&str],
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> io::Result<(Tree, Receiver)> {
        let Some(policy) = &self.policy else {
            return process::spawn(program, arguments, cwd, env, Stdio::null());
        };
        let access = &effective(policy, access);
        let turn = alone::turn(access.changes())?;
        match built(&self.sandbox(policy, access)) {
            Ok(sandbox) => {
                if access.lifted {
                    self.release();
                }
                let by_host = match access.escalation.network {
                    true => !access.hosts.is_empty(),
                    false => policy.network == Network::Hosts,
                };
                let mut env = env.clone();
                if by_host {
                    env.extend(egress::variables());
                }
                self.add_caches(policy, access, &mut env);
                let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
                let (cwd, env) = self.seen(sandbox, cwd, env);
                let start = Launch {
                    program,
                    arguments: &arguments,
                    cwd: &cwd,
                    env: &env,
                };
                let started = process::confined(sandbox, start)?;
                turn.end(&started.0, access.changes());
                Ok(started)
            }
            Err(error) if !error.is_about_machine() => Err(io::Error::other(error.to_string())),
            Err(_) => process::spawn(program, arguments, cwd, env, Stdio::null()),
        }
    }

    /// Starts a program that is talked to, with a pipe for each of its standard streams. In contrast to
    /// [`Self::spawn`], a machine without a sandbox is an error.
    ///
    /// # Errors
    /// If the sandbox cannot be set up, or the program cannot be started.
    pub fn spawn_duplex(
        &self,
        program: &Path,
        arguments: &[String],
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> io::Result<(Tree, Duplex)> {
        let Some(policy) = &self.policy else {
            return process::spawn_duplex(program, arguments, cwd, env);
        };
        let access = effective(policy, &Access::default());
        match built(&self.sandbox(policy, &access)) {
            Ok(sandbox) => {
                let mut env = env.clone();
                if policy.network == Network::Hosts {
                    env.extend(egress::variables());
                }
                self.add_caches(policy, &access, &mut env);
                let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
                let (cwd, env) = self.seen(sandbox, cwd, env);
                let start = Launch {
                    program,
                    arguments: &arguments,
                    cwd: &cwd,
                    env: &env,
                };
                process::confined_duplex(sandbox, start)
            }
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    /// Starts the sandboxes of commands without extra access on a thread of their own, once, so that neither
    /// judging nor starting the first command has to wait for them.
    pub fn prepare(this: &Arc<Self>) {
        if this.policy.is_none() || !this.cells().is_empty() {
            return;
        }
        let (work, this) = (process::UnderWay::begin(), Arc::clone(this));
        std::thread::spawn(move || {
            // The program waits for this work before it exits. Released last, when the sandbox is.
            let _work = work;
            let this = this;
            if let Some(policy) = &this.policy {
                for reads_only in [true, false] {
                    let access = Access {
                        reads_only,
                        ..Access::default()
                    };
                    let _ = this.sandbox(policy, &access);
                }
            }
        });
    }

    /// Returns true once after the launcher of commands with this access ended by itself and was replaced.
    pub fn was_restarted(&self, access: &Access) -> bool {
        let Some(policy) = &self.policy else { return false };
        built(&self.sandbox(policy, &effective(policy, access))).is_ok_and(Sandbox::was_restarted)
    }

    /// Takes the hosts that commands with this access asked for since the last call, if it limits them.
    pub fn take_reached(&self, access: &Access) -> Vec<Reached> {
        let Some(policy) = &self.policy else {
            return Vec::new();
        };
        built(&self.sandbox(policy, &effective(policy, access)))
            .map_or_else(|_| Vec::new(), Sandbox::take_reached)
    }

    /// Returns a hint for the model if the sandbox may be the reason why a command failed.
    pub fn hint(&self, access: &Access, output: &str) -> Option<&'static str> {
        let policy = self.policy.as_ref()?;
        // Without a sandbox, the failure has another reason.
        let access = &effective(policy, access);
        let cell = self.sandbox(policy, access);
        let sandbox = built(&cell).ok()?;
        let escalation = access.escalation;
        let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        let is_busy = |line: &str| BUSY_SIGNS.iter().any(|sign| line.contains(sign));
        if output
            .lines()
            .any(|line| is_busy(line) && sandbox.names_placeholder(line))
        {
            Some(
                "[the busy folders, such as .vscode or .claude, are empty placeholders of the sandbox for protected paths \
                 that do not exist; they are not part of the project, no command can remove them, and they disappear \
                 with the session]",
            )
        } else if !escalation.network && policy.network == Network::Off && says(NETWORK_SIGNS) {
            Some("[the sandbox keeps the network off; a call with network: true asks the user for it]")
        } else if access.reads_only && says(WRITE_SIGNS) {
            Some(
                "[the command was classified as read-only, so it could write nowhere but in /tmp; a call with \
                 write: true runs it with write access]",
            )
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
        mut env: BTreeMap<String, String>,
    ) -> (PathBuf, BTreeMap<String, String>) {
        let mut cwd = cwd.to_owned();
        if let Some((own, seen)) = self.temp.as_ref().zip(sandbox.temp()) {
            if let Ok(below) = cwd.strip_prefix(own.path()) {
                cwd = seen.join(below);
            }
            env.insert("TMPDIR".to_owned(), seen.display().to_string());
        }
        (cwd, env)
    }

    /// Adds the variables of private caches for package managers, if the command may not write to the usual ones.
    fn add_caches(&self, policy: &SandboxPolicy, access: &Access, env: &mut BTreeMap<String, String>) {
        let Some(caches) = self.caches_of(access) else {
            return;
        };
        let is_online = access.escalation.network || policy.network != Network::Off;
        caches.add_to(env, &policy.write, is_online);
    }

    /// Returns the caches, if a command with this access may write them but not the usual ones.
    fn caches_of(&self, access: &Access) -> Option<&PackageCaches> {
        let caches = self.caches.as_ref();
        let caches = caches.filter(|_| !access.reads_only && !access.escalation.outside);
        caches.and_then(|caches| caches.as_ref())
    }

    /// Removes the placeholders of the other sandboxes, because a command that creates those paths may need them to
    /// be absent. `git clone` needs an empty folder.
    fn release(&self) {
        for (_, cell) in self.cells().iter().filter(|(access, _)| !access.lifted) {
            if let Some(Ok(sandbox)) = cell.get() {
                sandbox.release();
            }
        }
    }

    fn scan(&self) -> Option<&Scan> {
        let (roots, folders) = self.search.as_ref()?;
        Some(self.scan.get_or_init(|| Scan::of(roots, folders, MAX_ENTRIES)))
    }

    /// Returns the sandbox of this access, which the first caller creates.
    fn sandbox(&self, policy: &SandboxPolicy, access: &Access) -> Built {
        let cell = {
            let mut cells = self.cells();
            let known = cells.iter().find(|(known, _)| known == access);
            match known {
                Some((_, cell)) => Arc::clone(cell),
                None => {
                    if cells.len() >= MAX_SANDBOXES {
                        cells.remove(0);
                    }
                    let cell = Built::default();
                    cells.push((access.clone(), Arc::clone(&cell)));
                    cell
                }
            }
        };
        cell.get_or_init(|| self.create(policy.clone(), access));
        cell
    }

    fn create(&self, mut policy: SandboxPolicy, access: &Access) -> Result<Sandbox, SandboxError> {
        if let Some(scan) = self.scan() {
            scan.add_to(&mut policy);
        }
        if access.escalation.network {
            policy.network = if access.hosts.is_empty() {
                Network::On
            } else {
                Network::Hosts
            };
            policy.hosts.allowed.extend(access.hosts.iter().cloned());
        }
        // What a rule asks about is denied unless this access was asked for.
        let asked = std::mem::take(&mut policy.hosts.asked).into_iter();
        let is_granted = |domain: &String| access.hosts.iter().any(|host| egress::is_below(host, domain));
        policy
            .hosts
            .denied
            .extend(asked.filter(|domain| !is_granted(domain)));
        let outside = access.escalation.outside;
        match access.lifted {
            true if outside => policy.read_only.clear(),
            // Nothing absent is held: `git clone` needs an empty folder, and creates what the repository has.
            true => policy
                .read_only
                .retain(|path| !access.protected.includes(path) && is_there(path)),
            false => {}
        }
        // Placeholders are for the folders that every command may write. Elsewhere, only what exists is protected.
        let roots = policy.write.clone();
        let is_inside = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root));
        policy
            .read_only
            .retain(|path| is_inside(path) || (outside && path.exists()));
        if outside {
            policy.write.push("/".into());
        }
        let caches = self.caches_of(access);
        policy.write.extend(caches.map(|caches| caches.path().to_owned()));
        if access.reads_only {
            // Still readable if they are in a folder that the private temporary one replaces.
            policy.visible.append(&mut policy.write);
        }
        match &self.helper {
            Some(helper) => Sandbox::with_helper(policy, helper),
            None => Sandbox::new(policy),
        }
    }

    fn cells(&self) -> MutexGuard<'_, Vec<(Access, Built)>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a path exists and is no placeholder.
fn is_there(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|found| !crate::is_placeholder(&found))
}

fn built(cell: &Built) -> Result<&Sandbox, &SandboxError> {
    cell.get().map_or(Err(&SandboxError::Arguments), Result::as_ref)
}

/// Returns the access beyond what the policy gives every command anyway.
fn effective(policy: &SandboxPolicy, access: &Access) -> Access {
    let denied = [policy.hosts.denied.as_slice(), &policy.hosts.asked].concat();
    let egress = Egress::new(&policy.hosts.allowed, &denied);
    let covered = match policy.network {
        Network::On => true,
        Network::Hosts => {
            !access.hosts.is_empty() && access.hosts.iter().all(|host| egress.lets_through(host))
        }
        Network::Off => false,
    };
    let mut access = access.clone();
    if !access.lifted {
        // Until a person has agreed, it is a command like any other.
        access.protected = ProtectedChange::default();
        access.escalation.protected = false;
    }
    if covered || !access.escalation.network {
        access.escalation.network = false;
        access.hosts.clear();
    }
    access
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that cannot confine commands.
    fn without_landlock() -> CommandSandbox {
        let sandbox = CommandSandbox::new(SandboxPolicy::default());
        for reads_only in [true, false] {
            let access = Access {
                reads_only,
                ..Access::default()
            };
            let cell = Built::default();
            cell.set(Err(SandboxError::NoLandlock)).expect("still empty");
            sandbox.cells().push((access, cell));
        }
        sandbox
    }

    fn judged(sandbox: &CommandSandbox, access: Access) -> Judgement {
        let mut judgement = Judgement::of(Category::Read);
        sandbox.judge(&access, &mut judgement);
        judgement
    }

    /// SAFE-4, LIB-2: where the kernel cannot confine commands, each command asks for approval and gives the
    /// reason.
    #[test]
    fn without_a_sandbox_every_command_asks() {
        let judgement = judged(
            &without_landlock(),
            Access::of(Category::Read, Escalation::default()),
        );
        assert_eq!(judgement.category, Category::Admin);
        assert!(
            judgement.reasons.concat().contains("no Landlock"),
            "{judgement:?}"
        );
        assert_eq!(judgement.refusal, None);
    }

    /// SAFE-4, LIB-2: a failed command is explained by the sandbox only if it ran in one.
    #[test]
    fn without_a_sandbox_nothing_is_blamed_on_it() {
        let fails = ["getaddrinfo failed", "x: Permission denied"];
        let sandbox = CommandSandbox::new(SandboxPolicy::default());
        let is_confined = Sandbox::new(SandboxPolicy::default()).is_ok();
        for output in fails {
            let hint = |sandbox: &CommandSandbox| sandbox.hint(&Access::default(), output);
            assert_eq!(hint(&sandbox).is_some(), is_confined, "{output}");
            assert_eq!(hint(&without_landlock()), None, "{output}");
        }
    }

    /// SAFE-4: a policy with a mistake in it lets nothing run.
    #[cfg(all(target_os = "linux", not(windlass_portable)))]
    #[test]
    fn a_wrong_policy_refuses() {
        let policy = SandboxPolicy {
            write: vec!["/nowhere/at/all".into()],
            ..SandboxPolicy::default()
        };
        let judgement = judged(&CommandSandbox::new(policy), Access::default());
        let refusal = judgement.refusal.unwrap_or_default();
        assert!(refusal.contains("/nowhere/at/all"), "{refusal}");
    }

    /// SAFE-4: an embedder with its own sandbox is not asked for approval because of ours.
    #[test]
    fn an_embedders_sandbox_asks_nothing() {
        let escalation = Escalation {
            network: true,
            outside: true,
            protected: false,
        };
        assert_eq!(
            judged(&CommandSandbox::none(), Access::of(Category::Write, escalation)),
            Judgement::of(Category::Read)
        );
    }
}
