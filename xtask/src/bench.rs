//! `cargo xtask bench`: the benchmarks live in `bench/`, as the package `windlass-bench`.

use anyhow::Result;

use crate::child;
use crate::repo::Root;

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    println!("benchmarks are in bench/");
    // The binary is measured as users run it: with its own features, in release mode.
    child::run(child::cargo(root).args(["build", "--release", "-p", "windlass", "--bin", "windlass"]))?;
    child::run(
        child::cargo(root)
            .args(["run", "--release", "-p", "windlass-bench", "--"])
            .args(arguments),
    )
}
