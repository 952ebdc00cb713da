//! One start of the binary.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Output, PATIENCE, eventually, must};

/// A run to be started: arguments, input, environment. The environment contains only `PATH` and the variables
/// set here.
#[derive(Debug)]
pub struct Run {
    command: Command,
    input: Input,
    limit: Duration,
}

#[derive(Debug)]
enum Input {
    None,
    Bytes(Vec<u8>),
    Open,
}

impl Run {
    /// Creates a run of `binary`.
    pub fn new(binary: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(binary);
        command
            .args(args)
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Self {
            command,
            input: Input::None,
            limit: PATIENCE,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// Sets the standard input, which is `/dev/null` otherwise.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(input.into());
        self
    }

    /// Makes standard input a pipe that stays open; [`Running::say`] writes to it.
    #[must_use]
    pub fn open_stdin(mut self) -> Self {
        self.input = Input::Open;
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.command.current_dir(folder.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Unsets an environment variable.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs the binary as this user and group, which only root can.
    #[must_use]
    pub fn user(mut self, user: u32) -> Self {
        self.command.uid(user).gid(user);
        self
    }

    /// Sets the timeout. After it the process is killed and the test fails.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub fn output(self) -> Output {
        self.start().output()
    }

    /// Starts the binary.
    pub fn start(mut self) -> Running {
        let piped = !matches!(self.input, Input::None);
        self.command
            .stdin(if piped { Stdio::piped() } else { Stdio::null() });
        let begun = Instant::now();
        let mut child = must(self.command.spawn(), "start the binary");
        let mut stdin = child.stdin.take();
        if let Input::Bytes(bytes) = self.input
            && let Some(mut pipe) = stdin.take()
        {
            // On a thread: the program may respond before it has read everything, or never read at all.
            std::thread::spawn(move || {
                let _ = pipe.write_all(&bytes);
            });
        }
        let stdout = Stream::read(child.stdout.take());
        let stderr = Stream::read(child.stderr.take());
        Running {
            child,
            stdin,
            stdout,
            stderr,
            begun,
            limit: self.limit,
        }
    }

    /// Starts the binary with readers that take this many bytes of standard output and standard error and
    /// then close, like `head`.
    pub fn start_with_short_readers(mut self, stdout: u64, stderr: u64) -> Running {
        self.command.stdin(Stdio::null());
        let begun = Instant::now();
        let mut child = must(self.command.spawn(), "start the binary");
        let stdout = Stream::read(child.stdout.take().map(|pipe| pipe.take(stdout)));
        let stderr = Stream::read(child.stderr.take().map(|pipe| pipe.take(stderr)));
        Running {
            child,
            stdin: None,
            stdout,
            stderr,
            begun,
            limit: self.limit,
        }
    }

    /// Returns the working directory, if one was set.
    pub(crate) fn folder(&self) -> PathBuf {
        self.command
            .get_current_dir()
            .unwrap_or(Path::new("/"))
            .to_owned()
    }

    /// Returns the command, for another way to start it.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }
}

/// A started run. Dropping it before its end kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Held so that the pipe stays open.
    stdin: Option<std::process::ChildStdin>,
    stdout: Stream,
    stderr: Stream,
    begun: Instant,
    limit: Duration,
}

impl Running {
    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until standard output contains `text`.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, text: &str) {
        self.wait_until(&format!("standard output contains `{text}`"), |run| {
            run.stdout.text().contains(text)
        });
    }

    /// Waits until standard error contains `text`.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, text: &str) {
        self.wait_until(&format!("standard error contains `{text}`"), |run| {
            run.stderr.text().contains(text)
        });
    }

    /// Writes to standard input, which must be [open](Run::open_stdin).
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        let Some(stdin) = &mut self.stdin else {
            panic!("standard input is not open");
        };
        let said = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
        must(said, "write to standard input");
    }

    /// Closes standard input.
    pub fn hush(&mut self) {
        self.stdin = None;
    }

    /// Returns standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Waits until `condition` holds; `what` describes it for the failure message. A process that has ended, with all its
    /// output, is not waited for.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let limit = self.limit;
        let has_ended = |run: &mut Self| {
            let is_over = run.stdout.ended() && run.stderr.ended();
            is_over && matches!(run.child.try_wait(), Ok(Some(_)))
        };
        eventually(limit, || condition(self) || has_ended(self));
        if !condition(self) {
            let _ = self.child.kill();
            let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
            let after = self.begun.elapsed();
            panic!(
                "after {after:?} it is still not true that {what}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
            );
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            must(kill_process(pid, signal), "send a signal");
        }
    }

    /// Sends the signal of Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends the signal of a service manager.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for the end. After the timeout the process is killed and the test fails.
    #[track_caller]
    pub fn output(mut self) -> Output {
        let mut status = None;
        let limit = self.limit;
        let ended = eventually(limit, || {
            status = must(self.child.try_wait(), "wait for the binary");
            status.is_some()
        });
        let elapsed = self.begun.elapsed();
        if !ended {
            let _ = self.child.kill();
        }
        // A process left behind may hold the pipes open; the output written by now counts.
        eventually(Duration::from_secs(5), || {
            self.stdout.ended() && self.stderr.ended()
        });
        let output = Output {
            code: status.and_then(|status: ExitStatus| status.code()),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            elapsed,
        };
        assert!(ended, "the process did not exit within {limit:?}\n{output}");
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream of the process, read on a thread so that the process never waits for us.
#[derive(Debug)]
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = pipe.map(|mut pipe| {
            std::thread::spawn(move || {
                let mut piece = [0; 8192];
                while let Ok(count) = pipe.read(&mut piece) {
                    if count == 0 {
                        break;
                    }
                    let mut bytes = sink.lock().unwrap_or_else(PoisonError::into_inner);
                    bytes.extend(piece.iter().take(count));
                }
            })
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn ended(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }
}
