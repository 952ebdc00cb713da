//! `cargo xtask bench`: runs the benchmarks in `bench/`, the package `windlass-bench`.

use anyhow::Result;

use crate::child;
use crate::repo::Root;

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    println!("benchmarks are in bench/");
    // Measure the binary as users run it: with its own features, in release mode.
    child::run(child::cargo(root).args(["build", "--release", "-p", "windlass", "--bin", "windlass"]))?;
    child::run(
        child::cargo(root)
            .args(["run", "--release", "-p", "windlass-bench", "--"])
            .args(arguments),
    )
}
