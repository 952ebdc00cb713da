//! The sandbox in which Windlass starts commands, for the programs compared with it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use windlass_sandbox::{Sandbox, SandboxPolicy};

/// Returns the sandbox of a session in the current folder without settings, set up by `helper`.
pub(crate) fn usual(helper: &Path) -> Result<Sandbox> {
    Ok(Sandbox::with_helper(policy()?, helper)?)
}

/// Returns the policy for commands of such a session.
pub(crate) fn policy() -> Result<SandboxPolicy> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (home, own) = (folder("HOME"), folder("WINDLASS_HOME"));
    let (home, own) = (home.context("HOME is not set")?, own.context("no WINDLASS_HOME")?);
    let mut denied: Vec<PathBuf> = vec!["/etc/shadow".into(), "/etc/passwd".into()];
    denied.extend([".ssh", ".gnupg"].map(|name| home.join(name)));
    denied.extend(["config", "data", "state"].map(|name| own.join(name)));
    Ok(SandboxPolicy::for_workspace(
        &std::env::current_dir()?,
        &folder("TMPDIR").context("TMPDIR is not set")?,
        &denied,
    ))
}
