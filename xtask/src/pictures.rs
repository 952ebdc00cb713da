//! `cargo xtask pictures`: the pictures of the terminal in `docs/` are made by an example of `windlass-testkit`, because
//! this package stands alone.

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
