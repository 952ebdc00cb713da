//! The SDK tests: official Python clients, in an environment of their own, against the binary.

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

/// Builds the binary as users get it and runs the tests against it.
pub(crate) fn test(root: &Root) -> Result<()> {
    if !exist(root) {
        bail!("{REQUIREMENTS} is missing: the SDK tests belong into {TESTS}");
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

/// Makes sure that the Python environment holds what the tests require, and returns its interpreter.
///
/// The environment is filled again only when the list of requirements changes: a run needs no network then.
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
        println!("    making a Python environment in {}", folder.display());
        child::run(
            child::command(root, "python3")
                .args(["-m", "venv", "--clear"])
                .arg(&folder),
        )?;
    }
    println!("    installing {REQUIREMENTS}");
    let pip = [
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-r",
        REQUIREMENTS,
    ];
    child::run(child::command(root, &python).args(pip))?;
    fs::write(&stamp, wanted).context("cannot remember what is installed")?;
    Ok(python)
}

fn is_current(stamp: &Path, wanted: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == wanted)
}
