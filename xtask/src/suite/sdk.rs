//! The SDK tests: official Python clients, in their own virtual environment, and clients for Node.js, against the
//! binary.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::child;
use crate::repo::Root;

const TESTS: &str = "tests/sdk";
const REQUIREMENTS: &str = "tests/sdk/requirements.txt";
const PACKAGES: &str = "tests/sdk/package.json";

pub(crate) fn exist(root: &Root) -> bool {
    root.join(REQUIREMENTS).is_file()
}

/// Builds the binary and runs the tests against it.
pub(crate) fn test(root: &Root) -> Result<()> {
    if !exist(root) {
        bail!("{REQUIREMENTS} is missing; the SDK tests belong in {TESTS}");
    }
    let python = environment(root)?;
    let node = node_modules(root)?;
    child::run(child::cargo(root).args(super::BUILD))?;
    child::run(
        child::command(root, python)
            .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", TESTS])
            .envs(node.map(|folder| ("WINDLASS_NODE_MODULES", folder)))
            .env("WINDLASS_BIN", root.target_dir()?.join("debug/windlass"))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// Creates or updates the Python environment of the tests and returns its interpreter.
///
/// Packages are installed only when the list of requirements changes, so other runs need no network.
pub(crate) fn environment(root: &Root) -> Result<PathBuf> {
    environment_of(root, "sdk-venv", REQUIREMENTS)
}

/// Creates or updates a Python environment below the target folder with the packages of a list, and returns its
/// interpreter.
pub(crate) fn environment_of(root: &Root, name: &str, requirements: &str) -> Result<PathBuf> {
    let folder = root.target_dir()?.join(name);
    let (python, stamp) = (folder.join("bin/python"), folder.join("requirements.stamp"));
    let wanted =
        fs::read_to_string(root.join(requirements)).with_context(|| format!("cannot read {requirements}"))?;
    let works = child::succeeds(child::command(root, &python).args(["-c", "import pip"]));
    if works && is_current(&stamp, &wanted) {
        println!("    found the Python environment for {requirements}");
        return Ok(python);
    }
    if !works {
        println!("    creating a Python environment in {}", folder.display());
        child::run(
            child::command(root, "python3")
                .args(["-m", "venv", "--clear"])
                .arg(&folder),
        )?;
    }
    println!("    installing {requirements}");
    pip(root, &python, &["-r", requirements])?;
    fs::write(&stamp, wanted).context("cannot write the stamp of the installed packages")?;
    Ok(python)
}

/// Installs the clients for Node.js, and the Node.js they need, beside the Python environment. Returns their folder;
/// `None` if they cannot be had, such as without a network. The tests that need them are skipped then, and listed.
///
/// As with the Python packages, only a change of the list needs a network.
fn node_modules(root: &Root) -> Result<Option<PathBuf>> {
    let folder = root.target_dir()?.join("sdk-node");
    let (modules, stamp) = (folder.join("node_modules"), folder.join("packages.stamp"));
    let wanted =
        fs::read_to_string(root.join(PACKAGES)).with_context(|| format!("cannot read {PACKAGES}"))?;
    if modules.is_dir() && is_current(&stamp, &wanted) {
        println!("    found the packages of {PACKAGES}");
        return Ok(Some(modules));
    }
    println!("    installing {PACKAGES}");
    fs::create_dir_all(&folder).context("cannot create a folder for packages")?;
    fs::write(folder.join("package.json"), &wanted).context("cannot write the list of packages")?;
    let own = root.target_dir()?.join("sdk-venv/bin/npm");
    let npm = if own.is_file() { own } else { PathBuf::from("npm") };
    let options = [
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
    ];
    let installed = child::run(child::command(root, npm).args(options).arg(&folder));
    if let Err(error) = installed {
        println!("    left out: the tests with acpx, and the comparison of the schema ({error:#})");
        return Ok(None);
    }
    fs::write(&stamp, wanted).context("cannot write the stamp of the installed packages")?;
    Ok(Some(modules))
}

/// Installs more packages into the environment of the tests.
pub(crate) fn install(root: &Root, packages: &[&str]) -> Result<()> {
    pip(root, &environment(root)?, packages)
}

pub(crate) fn pip(root: &Root, python: &Path, packages: &[&str]) -> Result<()> {
    let options = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
    child::run(child::command(root, python).args(options).args(packages))
}

fn is_current(stamp: &Path, wanted: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == wanted)
}
