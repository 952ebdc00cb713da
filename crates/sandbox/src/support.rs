//! The kernel features that the sandbox is built from.

use crate::backend;

/// Kernel features that are enforced here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Version of Landlock. Without Landlock there is no sandbox.
    pub landlock_abi: Option<u32>,
    /// True if system calls can be filtered.
    pub seccomp: bool,
    /// True if Landlock has rules for TCP. Without them the seccomp filter alone turns the network off.
    pub network: bool,
    /// True if signals and abstract sockets are confined to the sandbox.
    pub scopes: bool,
    /// True if a mount namespace can be created, which protects denied paths inside the workspace.
    pub user_namespaces: bool,
}

/// Asks the kernel for its features. Takes about as long as starting a command, because namespaces are tried
/// in a child process.
pub fn support() -> Support {
    backend::support()
}
