//! Starts a program that does nothing, without and with the sandbox.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use clap::Args;

use crate::clock::now;
use crate::wall;

/// Options of the launches.
#[derive(Debug, Clone, Args)]
pub(crate) struct LaunchOptions {
    /// Program that sets up the sandbox.
    #[arg(long)]
    pub(crate) helper: PathBuf,
    /// Number of rounds.
    #[arg(long)]
    pub(crate) rounds: usize,
}

/// Prints a line for each round: nanoseconds without the sandbox, and with it.
pub(crate) fn launch(options: &LaunchOptions) -> Result<()> {
    let wall = wall::usual(&options.helper)?;
    let program = Path::new("/bin/true");
    for _ in 0..options.rounds {
        let begun = now();
        run(Command::new(program).stdin(Stdio::null()))?;
        let bare = now() - begun;
        // The work done here for the sandbox counts as well.
        let begun = now();
        let (helper, arguments, input) = wall.wrap_without_input(program, &[]);
        run(Command::new(helper).args(arguments).stdin(input))?;
        let walled = now() - begun;
        println!("{bare} {walled}");
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    if !command.stdout(Stdio::null()).status()?.success() {
        bail!("{} failed", command.get_program().display());
    }
    Ok(())
}
