//! Starts a program that does nothing, without and with the wall.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use clap::Args;

use crate::clock::now;
use crate::wall;

/// What to start, and how often.
#[derive(Debug, Clone, Args)]
pub(crate) struct LaunchOptions {
    /// The program that puts the wall up.
    #[arg(long)]
    pub(crate) helper: PathBuf,
    /// How often.
    #[arg(long)]
    pub(crate) rounds: usize,
}

/// Prints a line for each round: nanoseconds without the wall, and with it.
pub(crate) fn launch(options: &LaunchOptions) -> Result<()> {
    let wall = wall::usual(&options.helper)?;
    let program = Path::new("/bin/true");
    for _ in 0..options.rounds {
        let bare = time(&mut Command::new(program))?;
        let (helper, arguments) = wall.wrap(program, &[]);
        let walled = time(Command::new(helper).args(arguments))?;
        println!("{bare} {walled}");
    }
    Ok(())
}

fn time(command: &mut Command) -> Result<u64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = now();
    if !command.status()?.success() {
        bail!("{} failed", command.get_program().display());
    }
    Ok(now() - begun)
}
