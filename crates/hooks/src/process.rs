//! Runs the program of a hook.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use windlass_core::clock::Clock;

use crate::file::HookProgram;

/// Maximum number of bytes that are kept of each of the two outputs.
const MAX_OUTPUT: usize = 1 << 20;
/// Time that a program has to end after it was asked to.
const GRACE: Duration = Duration::from_millis(500);
/// Time to wait for output after the program ended. A program that it left in the background may hold the pipe.
const AFTER_END: Duration = Duration::from_millis(100);

/// Everything needed to run a hook.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program.
    pub program: HookProgram,
    /// Its working directory.
    pub cwd: PathBuf,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// Its standard input.
    pub input: String,
    /// Maximum time.
    pub limit: Duration,
}

/// A hook's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOutput {
    /// The way it ended.
    pub end: HookEnd,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// True if one of the outputs was cut.
    pub is_cut: bool,
    /// Time it took.
    pub took: Duration,
}

/// The way in which a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEnd {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was stopped at its time limit.
    TimedOut(Duration),
    /// It could not be started.
    NotStarted(String),
}

impl HookEnd {
    /// Explains why there is no answer, if the program did not run to its end. A shell exits with 126 or 127 if it
    /// cannot start a program.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Exited(127) => Some("its program was not found (exit code 127)".to_owned()),
            Self::Exited(126) => Some("its program cannot be run (exit code 126)".to_owned()),
            // A shell reports a signal that ended its last command like this.
            Self::Exited(code) if *code > 128 && *code <= 128 + 31 => {
                Some(format!("signal {} ended it", code - 128))
            }
            Self::Exited(_) => None,
            Self::Signaled(signal) => Some(format!("signal {signal} ended it")),
            Self::TimedOut(limit) => Some(format!("it did not end within {} s", limit.as_secs_f32())),
            Self::NotStarted(why) => Some(format!("it could not be started: {why}")),
        }
    }
}

impl HookOutput {
    /// The run of a program that was not started.
    pub(crate) fn not_started(why: String) -> Self {
        Self {
            end: HookEnd::NotStarted(why),
            stdout: String::new(),
            stderr: String::new(),
            is_cut: false,
            took: Duration::ZERO,
        }
    }
}

impl HookCommand {
    /// Runs the program to its end. Dropping the future ends the program and everything it started.
    pub async fn run(&self, clock: &Arc<dyn Clock>) -> HookOutput {
        let started = clock.elapsed();
        let mut output = HookOutput {
            end: HookEnd::Exited(0),
            stdout: String::new(),
            stderr: String::new(),
            is_cut: false,
            took: Duration::ZERO,
        };
        match self.spawn() {
            Err(error) => output.end = HookEnd::NotStarted(error.to_string()),
            Ok(child) => self.follow(child, clock, &mut output).await,
        }
        output.took = clock.elapsed().saturating_sub(started);
        output
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut command = match &self.program.args {
            Some(args) => {
                let mut command = Command::new(&self.program.command);
                command.args(args);
                command
            }
            None => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(&self.program.command);
                command
            }
        };
        command
            .current_dir(&self.cwd)
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }

    async fn follow(&self, mut child: Child, clock: &Arc<dyn Clock>, output: &mut HookOutput) {
        let mut group = Group::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (Kept::default(), Kept::default());
        let input = self.input.as_bytes();
        let talk = async {
            let write = async {
                if let Some(mut stdin) = stdin {
                    // A program that does not read its input is fine.
                    let _ = stdin.write_all(input).await;
                }
            };
            tokio::join!(write, out.fill(stdout), err.fill(stderr));
        };
        let ended = {
            tokio::pin!(talk);
            let run = async {
                let mut talked = false;
                let status = loop {
                    tokio::select! {
                        status = child.wait() => break status,
                        () = &mut talk, if !talked => talked = true,
                    }
                };
                if !talked {
                    tokio::select! {
                        () = &mut talk => {}
                        () = clock.sleep(AFTER_END) => {}
                    }
                }
                status
            };
            tokio::select! {
                biased;
                status = run => Some(status),
                () = clock.sleep(self.limit) => None,
            }
        };
        output.end = match ended {
            Some(status) => {
                group.forget();
                status.map_or_else(|error| HookEnd::NotStarted(error.to_string()), of_status)
            }
            None => {
                group.signal(Signal::TERM);
                tokio::select! {
                    _ = child.wait() => {}
                    () = clock.sleep(GRACE) => {}
                }
                drop(group);
                let _ = child.wait().await;
                HookEnd::TimedOut(self.limit)
            }
        };
        output.is_cut = out.is_cut || err.is_cut;
        output.stdout = out.text();
        output.stderr = err.text();
    }
}

fn of_status(status: ExitStatus) -> HookEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => HookEnd::Exited(code),
        (None, signal) => HookEnd::Signaled(signal.unwrap_or_default()),
    }
}

/// Ends the process group of a hook when it is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.filter(|id| *id > 1).and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }

    /// The program ended by itself. Its number may belong to another process from now on.
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The start of an output.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Kept {
    /// Reads to the end and keeps the start.
    async fn fill(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut piece = vec![0; 16 << 10];
        while let Ok(count) = stream.read(&mut piece).await {
            if count == 0 {
                return;
            }
            let taken = count.min(MAX_OUTPUT - self.bytes.len());
            self.is_cut |= taken < count;
            self.bytes.extend(piece.iter().take(taken));
        }
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
