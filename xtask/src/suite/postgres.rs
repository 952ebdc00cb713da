//! The tests of the store against a real Postgres, which they start themselves. Postgres is installed if missing on
//! Debian as root; elsewhere the step is left out, and the summary says so. The extension pgvector comes with a second
//! server, from PyPI, because Debian 12 has no package of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Ended, prerequisites, retry, sdk};
use crate::child;
use crate::repo::Root;

/// Debian's package of the server.
const PACKAGES: &[&str] = &["postgresql"];

/// PyPI's package of a server with the extension.
const VECTORS: &str = "pgserver==0.1.4";

/// Installs Postgres if it is missing. Returns the reason if that is not possible.
pub(crate) fn provide(root: &Root) -> Result<Option<String>> {
    if is_there(root) {
        return Ok(None);
    }
    if !prerequisites::can_install(root) {
        let list = PACKAGES.join(" ");
        return Ok(Some(format!(
            "there is no Postgres server (on Debian: apt-get install {list})"
        )));
    }
    prerequisites::install(root, PACKAGES)?;
    match is_there(root) {
        true => Ok(None),
        false => bail!("postgresql was installed, but its server was not found"),
    }
}

pub(super) fn test(root: &Root) -> Result<Ended> {
    if let Some(reason) = provide(root)? {
        return Ok(Ended::LeftOut(reason));
    }
    let vectors = provide_vectors(root);
    let variables: Vec<(&str, &Path)> = match &vectors {
        Ok(programs) => vec![("WINDLASS_PGVECTOR", programs)],
        Err(error) => {
            println!("    no server with pgvector, so no test of it: {error:#}");
            Vec::new()
        }
    };
    retry::test_target(root, "postgres", &variables).map(Ended::of)
}

/// Installs a server with pgvector beside the SDKs, once. Returns the folder of its programs.
fn provide_vectors(root: &Root) -> Result<PathBuf> {
    let library = root.target_dir()?.join("sdk-venv/lib");
    let find = || {
        let versions = std::fs::read_dir(&library).into_iter().flatten().flatten();
        let mut programs =
            versions.map(|version| version.path().join("site-packages/pgserver/pginstall/bin"));
        programs.find(|folder| folder.join("postgres").is_file())
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    sdk::install(root, &[VECTORS])?;
    find().context("pgserver was installed, but its server was not found")
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
