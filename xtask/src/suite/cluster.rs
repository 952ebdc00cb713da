//! The faults of a cluster: `cargo xtask cluster`, and its short form as a step of the test command.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Ended, postgres, retry};
use crate::child;
use crate::repo::Root;

/// Time of each run in the long form, in seconds.
const LONG: &str = "600";

/// Runs the short form.
pub(super) fn test(root: &Root) -> Result<Ended> {
    if let Some(reason) = postgres::provide(root)? {
        return Ok(Ended::LeftOut(reason));
    }
    retry::test_target(root, "cluster", &[("WINDLASS_CLUSTER_SECONDS", Path::new("8"))]).map(Ended::of)
}

/// Runs `cargo xtask cluster`.
pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    let seconds = match arguments {
        [] => "20",
        [long] if long == "--long" => LONG,
        _ => bail!("usage: cargo xtask cluster [--long]"),
    };
    if let Some(reason) = postgres::provide(root)? {
        bail!("{reason}");
    }
    println!(
        "| faults | number | turns | effects | moved | told as interrupted | taken over, median / p99 | longest turn |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut test = child::cargo(root);
    test.args([
        "test",
        "--package",
        "windlass",
        "--test",
        "cluster",
        "--",
        "--test-threads=1",
        "--nocapture",
    ]);
    test.env("WINDLASS_CLUSTER_SECONDS", seconds);
    child::run(&mut test)
}
