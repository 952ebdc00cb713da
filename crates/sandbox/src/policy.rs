//! The policy of a sandbox: the files, sockets and resources that a child process may use.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::backend;

/// The files, sockets and resources that a child process and all of its descendants may use.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Paths that may be read and executed, with everything below them.
    pub read: Vec<PathBuf>,
    /// Paths that may be changed, with everything below them.
    pub write: Vec<PathBuf>,
    /// Folder for temporary files. Commands see it as `/tmp` and `/var/tmp`, instead of the machine's. Where
    /// there are no namespaces, it is only writable.
    pub temp: Option<PathBuf>,
    /// Paths that stay visible although they are in a folder that `temp` replaces, and devices that commands may use
    /// beyond the harmless ones.
    pub visible: Vec<PathBuf>,
    /// Paths that may not be reached at all, even if `read` or `write` covers them. They need not exist.
    pub denied: Vec<PathBuf>,
    /// Existing files and folders that may not be reached either, wherever they are moved. In contrast to `denied`,
    /// the folders above them can be renamed.
    pub hidden: Vec<PathBuf>,
    /// Paths inside `write` that may be read but never changed or created. A path that ends with `.git` stands for
    /// the parts of that repository that git runs.
    pub read_only: Vec<PathBuf>,
    /// Access to other machines.
    pub network: Network,
    /// Hosts for [`Network::Hosts`].
    pub hosts: HostRules,
    /// Access to other programs on this machine.
    pub local_sockets: LocalSockets,
    /// Resource limits of commands.
    pub limits: ResourceLimits,
    /// Guards that a test turns off.
    #[doc(hidden)]
    pub without_for_tests: Vec<Guard>,
}

/// Hosts that commands reach through the proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRules {
    /// Hosts that may be reached: a name, with `*.` in front for all names below it, and with `:port` behind for
    /// another port than 80 and 443.
    pub allowed: Vec<String>,
    /// Domains that are never reached, even if another entry covers them.
    pub denied: Vec<String>,
    /// Domains that are reached only if the access of a command names them.
    pub asked: Vec<String>,
}

/// Access to other machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Nothing but a network of their own, with nothing in it.
    #[default]
    Off,
    /// The hosts of the policy, through a proxy that listens in a network of their own.
    Hosts,
    /// Internet sockets.
    On,
}

/// Access to sockets that have a path. Docker, the session bus, the key agent and the system's name service
/// listen on such sockets, and each of them is a way out of the sandbox, so this is a separate choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalSockets {
    /// Only pairs of connected sockets, which a program creates for itself and its children.
    #[default]
    Pairs,
    /// All of them.
    All,
}

/// Default limit of the processes and threads of a sandbox.
const PROCESSES: u64 = 8192;

/// Resource limits of commands. `None` keeps the current limit, except for `core`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Maximum number of processes of the user.
    pub processes: Option<u64>,
    /// Maximum size of a file, in bytes.
    pub file_size: Option<u64>,
    /// Maximum number of open files.
    pub open_files: Option<u64>,
    /// Maximum memory of a command with everything it started, in bytes. A command that uses more is ended. It is
    /// looked at twice a second, after the first half second. There is no limit of each process, because a
    /// limit of its address space would also stop programs that reserve more than they use.
    pub memory: Option<u64>,
    /// Maximum size of a core file, in bytes. `None` writes no core file.
    pub core: Option<u64>,
}

impl ResourceLimits {
    /// Sets the limits that are open and stop a runaway command before the machine: of processes, and of memory to
    /// three quarters of what the machine has.
    #[must_use]
    pub fn or_default(mut self) -> Self {
        self.processes.get_or_insert(PROCESSES);
        self.memory = self.memory.or_else(|| Some(backend::machine_memory()? / 4 * 3));
        self
    }
}

/// One mechanism of the sandbox. A test turns a guard off to prove that the test then fails.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guard {
    Paths,
    Masks,
    Pins,
    Filter,
    Capabilities,
    Descriptors,
    ResourceLimits,
    NewPrivileges,
    Namespaces,
    Mounts,
    Processes,
    Ipc,
    OwnNetwork,
}

impl SandboxPolicy {
    /// Returns a policy that allows reading everything except `denied` and changing the workspace and the
    /// temporary folder, with the network off.
    pub fn for_workspace(workspace: &Path, temp: &Path, denied: &[PathBuf]) -> Self {
        Self {
            read: vec!["/".into()],
            write: vec![workspace.to_owned(), temp.to_owned()],
            denied: denied.to_vec(),
            ..Self::default()
        }
    }

    /// Turns a guard off.
    #[doc(hidden)]
    #[must_use]
    pub fn without_for_tests(mut self, guard: Guard) -> Self {
        self.without_for_tests.push(guard);
        self
    }
}
