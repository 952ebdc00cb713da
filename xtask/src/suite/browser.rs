//! The tests of the web page in a real browser. Chromium is installed if missing on Debian as root; elsewhere the
//! step is left out, and the summary says so.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Ended, prerequisites, retry};
use crate::child;
use crate::repo::Root;

/// Debian's packages of the browser and of the program that drives it.
const PACKAGES: &[&str] = &["chromium", "chromium-driver"];
/// The checker of accessibility, for tests only.
const AXE: &str = "axe-core@4.14.0";

pub(super) fn test(root: &Root) -> Result<Ended> {
    if !is_there(root) {
        if !prerequisites::can_install(root) {
            let list = PACKAGES.join(" ");
            return Ok(Ended::LeftOut(format!(
                "there is no Chromium with its driver (on Debian: apt-get install {list})"
            )));
        }
        prerequisites::install(root, PACKAGES)?;
        if !is_there(root) {
            bail!("chromium was installed but does not work");
        }
    }
    let axe = provide_axe(root)?;
    retry::test_target(root, "browser", &[("WINDLASS_AXE", &axe)]).map(Ended::of)
}

fn is_there(root: &Root) -> bool {
    let works = |program| child::succeeds(child::command(root, program).arg("--version"));
    works("chromium") && works("chromedriver")
}

/// Installs the checker below the target folder, once.
fn provide_axe(root: &Root) -> Result<std::path::PathBuf> {
    let folder = root.target_dir()?.join("axe");
    let script = folder.join("node_modules/axe-core/axe.min.js");
    let version = AXE.rsplit('@').next().unwrap_or_default();
    let manifest =
        std::fs::read_to_string(folder.join("node_modules/axe-core/package.json")).unwrap_or_default();
    if !script.is_file() || !manifest.contains(&format!("\"version\": \"{version}\"")) {
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let own = root.target_dir()?.join("sdk-venv/bin/npm");
        let npm = if own.is_file() {
            own.as_path()
        } else {
            Path::new("npm")
        };
        child::run(
            child::command(root, npm)
                .args([
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--ignore-scripts",
                    "--prefix",
                ])
                .arg(&folder)
                .arg(AXE),
        )?;
    }
    Ok(script)
}
