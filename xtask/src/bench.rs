//! `cargo xtask bench`: runs the benchmarks in `bench/`, the package `windlass-bench`.

use anyhow::Result;

use crate::child;
use crate::repo::Root;
use crate::suite::postgres;

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    println!("benchmarks are in bench/");
    let is_only = arguments.iter().any(|argument| argument == "--only");
    if !is_only || arguments.iter().any(|argument| argument == "cluster") {
        // Installs it if that is possible; the figures fail without it.
        if let Some(reason) = postgres::provide(root)? {
            println!("{reason}");
        }
    }
    // Measure the binary as users run it: with its own features, in release mode.
    child::run(child::cargo(root).args(["build", "--release", "-p", "windlass", "--bin", "windlass"]))?;
    child::run(
        child::cargo(root)
            .args(["run", "--release", "-p", "windlass-bench", "--"])
            .args(arguments),
    )
}
