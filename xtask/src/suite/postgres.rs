//! The tests of the store against a real Postgres, which they start themselves. Postgres is installed if missing on
//! Debian as root; elsewhere the step is left out, and the summary says so.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Ended, prerequisites, retry};
use crate::child;
use crate::repo::Root;

/// Debian's package of the server.
const PACKAGES: &[&str] = &["postgresql"];

pub(super) fn test(root: &Root) -> Result<Ended> {
    if !is_there(root) {
        if !prerequisites::can_install(root) {
            let list = PACKAGES.join(" ");
            return Ok(Ended::LeftOut(format!(
                "there is no Postgres server (on Debian: apt-get install {list})"
            )));
        }
        prerequisites::install(root, PACKAGES)?;
        if !is_there(root) {
            bail!("postgresql was installed, but its server was not found");
        }
    }
    retry::test_target(root, "postgres", &[]).map(Ended::of)
}

/// Returns true if the programs of a server are on the path, or where Debian installs them.
fn is_there(root: &Root) -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let has_server =
        |folder: &Path| folder.join("bin/initdb").is_file() && folder.join("bin/postgres").is_file();
    let works = |program| child::succeeds(child::command(root, program).arg("--version"));
    versions.into_iter().any(|version| has_server(&version.path())) || (works("initdb") && works("postgres"))
}
