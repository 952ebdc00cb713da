//! Starts a program that does nothing, without and with the sandbox.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use clap::Args;
use windlass_sandbox::Launch;

use crate::clock::now;
use crate::sandbox;

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
    let sandbox = sandbox::usual(&options.helper)?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let env = std::env::vars().collect();
    let program = Path::new("/bin/true");
    for _ in 0..options.rounds {
        let begun = now();
        run(Command::new(program).stdin(Stdio::null()))?;
        let bare = now() - begun;
        // The work done here for the sandbox counts as well.
        let begun = now();
        let start = Launch {
            program,
            arguments: &[],
            cwd: Path::new("/"),
            env: &env,
        };
        if !sandbox
            .start(start, [null.as_fd(), null.as_fd(), null.as_fd()])?
            .wait()?
            .success()
        {
            bail!("{} failed in the sandbox", program.display());
        }
        let confined = now() - begun;
        println!("{bare} {confined}");
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    if !command.stdout(Stdio::null()).status()?.success() {
        bail!("{} failed", command.get_program().display());
    }
    Ok(())
}
