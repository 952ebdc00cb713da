//! Child processes. They inherit the terminal; a failure is an error that names the command line.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo::Root;

/// Prepares `cargo` in the workspace root, with the environment of a plain shell.
///
/// `cargo run` describes this package in the environment. If a child inherited those variables, build
/// scripts that watch them (`ring` does) would see a change and rebuild half of the tree.
pub(crate) fn cargo(root: &Root) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(root, program);
    for (name, _) in std::env::vars_os() {
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if about_us
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Prepares a program in the workspace root.
pub(crate) fn command(root: &Root, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root.path());
    command
}

/// Runs a command to its end with our standard streams.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a command to its end and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = command_line(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed invalid UTF-8"))
}

/// Returns true if the command starts and succeeds. Discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
