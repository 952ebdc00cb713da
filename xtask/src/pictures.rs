//! `cargo xtask pictures`: renders the terminal pictures in `docs/`.
//!
//! An example of `windlass-testkit` does the work, because this package uses no sibling.

use anyhow::Result;

use crate::child;
use crate::repo::Root;

pub(crate) fn command(root: &Root) -> Result<()> {
    child::run(child::cargo(root).args(["build", "-p", "windlass", "--bin", "windlass"]))?;
    child::run(child::cargo(root).args([
        "run",
        "-p",
        "windlass-testkit",
        "--example",
        "pictures",
        "--",
        "docs",
    ]))?;
    println!("wrote docs/tui.svg and docs/tui-approval.svg");
    Ok(())
}
