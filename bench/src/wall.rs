//! The wall that Windlass starts commands behind, for whoever is compared with it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use windlass_sandbox::{Policy, Wall};

/// The wall of a session in the current folder with no settings, put up by `helper`.
pub(crate) fn usual(helper: &Path) -> Result<Wall> {
    Ok(Wall::with_helper(policy()?, helper)?)
}

/// What commands of such a session may reach.
pub(crate) fn policy() -> Result<Policy> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (home, own) = (folder("HOME"), folder("WINDLASS_HOME"));
    let (home, own) = (
        home.context("there is no HOME")?,
        own.context("no WINDLASS_HOME")?,
    );
    let mut denied: Vec<PathBuf> = vec!["/etc/shadow".into(), "/etc/passwd".into()];
    denied.extend([".ssh", ".gnupg"].map(|name| home.join(name)));
    denied.extend(["config", "data", "state"].map(|name| own.join(name)));
    Ok(Policy::for_workspace(
        &std::env::current_dir()?,
        &folder("TMPDIR").context("there is no TMPDIR")?,
        &denied,
    ))
}
