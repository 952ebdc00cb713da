//! Programs that are talked to: separate pipes for input, output and messages.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::Command;
use uuid::Uuid;

use super::reaper::Live;
use super::{Direct, Inner, MARKER, Target, Tree};
use crate::backend::Supervised;
use crate::{Launch, Sandbox, warden_mark};

/// Our ends of the standard streams of a program.
#[derive(Debug)]
pub struct Duplex {
    /// Standard input of the program.
    pub input: Sender,
    /// Standard output of the program.
    pub output: Receiver,
    /// Standard error of the program.
    pub messages: Receiver,
}

/// Starts a program in a sandbox, with a pipe for each of its standard streams.
///
/// # Errors
/// If a pipe cannot be created or the sandbox cannot be entered. Must be called inside a Tokio runtime.
pub fn confined_duplex(sandbox: &Sandbox, start: Launch<'_>) -> io::Result<(Tree, Duplex)> {
    let (ours, theirs) = pipes()?;
    let streams = [theirs[0].as_fd(), theirs[1].as_fd(), theirs[2].as_fd()];
    let running = sandbox.0.start(start, streams)?;
    drop(theirs);
    Ok((Tree(Inner::Confined(Supervised::new(running)?)), ours.open()?))
}

/// Starts a program without a sandbox, in a process group of its own, with a pipe for each of its standard streams.
/// Its environment is exactly `env` and the marker.
///
/// # Errors
/// If a pipe cannot be created or the program cannot be started. Must be called inside a Tokio runtime.
pub fn spawn_duplex(
    program: &Path,
    arguments: &[impl AsRef<OsStr>],
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> io::Result<(Tree, Duplex)> {
    let (ours, [input, output, messages]) = pipes()?;
    let marker = Uuid::new_v4().simple().to_string();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(cwd)
        .env_clear()
        .envs(env)
        .env(MARKER, &marker)
        .envs(warden_mark())
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(messages))
        .process_group(0);
    let child = command.spawn()?;
    // The command holds their ends; while they are open the pipes never end.
    drop(command);
    let target = Target {
        root: child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .unwrap_or_default(),
        marker: format!("{MARKER}={marker}").into_bytes(),
        pipe: rustix::fs::fstat(&ours.output).ok().map(|stat| stat.st_ino),
    };
    let tree = Tree(Inner::Direct(Box::new(Direct {
        child: Some(child),
        live: Some(Live::begin(&target)),
        target,
    })));
    Ok((tree, ours.open()?))
}

struct OurEnds {
    input: OwnedFd,
    output: OwnedFd,
    messages: OwnedFd,
}

impl OurEnds {
    fn open(self) -> io::Result<Duplex> {
        Ok(Duplex {
            input: Sender::from_owned_fd(self.input)?,
            output: Receiver::from_owned_fd(self.output)?,
            messages: Receiver::from_owned_fd(self.messages)?,
        })
    }
}

/// Creates the pipes. The second value holds the ends of the program: standard input, output and error.
fn pipes() -> io::Result<(OurEnds, [OwnedFd; 3])> {
    let (their_input, input) = io::pipe()?;
    let (output, their_output) = io::pipe()?;
    let (messages, their_messages) = io::pipe()?;
    let ours = OurEnds {
        input: input.into(),
        output: output.into(),
        messages: messages.into(),
    };
    Ok((
        ours,
        [their_input.into(), their_output.into(), their_messages.into()],
    ))
}
