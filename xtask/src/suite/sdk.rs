//! The SDK tests: official Python clients, in their own virtual environment, against the binary.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::child;
use crate::repo::Root;

const TESTS: &str = "tests/sdk";
const REQUIREMENTS: &str = "tests/sdk/requirements.txt";

pub(crate) fn exist(root: &Root) -> bool {
    root.join(REQUIREMENTS).is_file()
}

/// Builds the binary and runs the tests against it.
pub(crate) fn test(root: &Root) -> Result<()> {
    if !exist(root) {
        bail!("{REQUIREMENTS} is missing; the SDK tests belong in {TESTS}");
    }
    let python = environment(root)?;
    child::run(child::cargo(root).args(["build", "-p", "windlass"]))?;
    child::run(
        child::command(root, python)
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS])
            .env("WINDLASS_BIN", root.target_dir()?.join("debug/windlass"))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// Creates or updates the Python environment of the tests and returns its interpreter.
///
/// Packages are installed only when the list of requirements changes, so other runs need no network.
pub(crate) fn environment(root: &Root) -> Result<PathBuf> {
    let folder = root.target_dir()?.join("sdk-venv");
    let (python, stamp) = (folder.join("bin/python"), folder.join("requirements.stamp"));
    let wanted =
        fs::read_to_string(root.join(REQUIREMENTS)).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let works = child::succeeds(child::command(root, &python).args(["-c", "import pip"]));
    if works && is_current(&stamp, &wanted) {
        println!("    found the Python environment for {REQUIREMENTS}");
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
    println!("    installing {REQUIREMENTS}");
    pip(root, &python, &["-r", REQUIREMENTS])?;
    fs::write(&stamp, wanted).context("cannot write the stamp of the installed packages")?;
    Ok(python)
}

/// Installs more packages into the environment of the tests.
pub(crate) fn install(root: &Root, packages: &[&str]) -> Result<()> {
    pip(root, &environment(root)?, packages)
}

fn pip(root: &Root, python: &Path, packages: &[&str]) -> Result<()> {
    let options = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
    child::run(child::command(root, python).args(options).args(packages))
}

fn is_current(stamp: &Path, wanted: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == wanted)
}
