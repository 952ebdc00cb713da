//! The tests of servers with NATS between them, over a real Postgres. NATS is installed if missing on Debian as root;
//! elsewhere the step is left out, and the summary says so.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Ended, postgres, prerequisites, retry};
use crate::child;
use crate::repo::Root;

/// Debian's package of the server.
const PACKAGES: &[&str] = &["nats-server"];

/// Place of the program on Debian, which ordinary users do not have on their path.
const DEBIAN: &str = "/usr/sbin/nats-server";

pub(super) fn test(root: &Root) -> Result<Ended> {
    if let Some(reason) = postgres::provide(root)?.map_or_else(|| provide(root), |reason| Ok(Some(reason)))? {
        return Ok(Ended::LeftOut(reason));
    }
    retry::test_target(root, "nats", &[]).map(Ended::of)
}

/// Installs NATS if it is missing. Returns the reason if that is not possible.
fn provide(root: &Root) -> Result<Option<String>> {
    if is_there(root) {
        return Ok(None);
    }
    if !prerequisites::can_install(root) {
        let list = PACKAGES.join(" ");
        return Ok(Some(format!(
            "there is no NATS server (on Debian: apt-get install {list})"
        )));
    }
    prerequisites::install(root, PACKAGES)?;
    match is_there(root) {
        true => Ok(None),
        false => bail!("nats-server was installed, but it was not found"),
    }
}

fn is_there(root: &Root) -> bool {
    Path::new(DEBIAN).is_file() || child::succeeds(child::command(root, "nats-server").arg("--version"))
}
