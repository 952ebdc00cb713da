//! Runs git: by absolute path, without any program that the settings of a repository name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_sandbox::{child_environment, program, reading_environment};

use crate::error::{Result, WorktreeError};

/// Interval in which a running command is checked for cancellation.
const TICK: Duration = Duration::from_millis(25);
/// Number of intervals after which a command is killed: ten minutes.
const TICKS: usize = 24_000;
/// Maximum bytes of an error message.
const MESSAGE: usize = 2_000;

/// Settings on top of those for commands that only read. Filters are not among them, because their names are
/// the repository's choice: no command that is run here applies filters.
const SETTINGS: &[(&str, &str)] = &[
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("commit.gpgSign", "false"),
];

/// Author of the commits that hold the copied state.
const IDENTITY: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "Windlass"),
    ("GIT_AUTHOR_EMAIL", "windlass@localhost"),
    ("GIT_COMMITTER_NAME", "Windlass"),
    ("GIT_COMMITTER_EMAIL", "windlass@localhost"),
    ("LC_ALL", "C"),
];

/// The git program with its environment.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: PathBuf,
    env: BTreeMap<String, String>,
}

/// Repository and working tree of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Working directory.
    pub(crate) cwd: PathBuf,
    /// Variables that name the repository, its working tree or its index.
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

impl Place {
    /// The repository whose working tree starts at `top`, whatever its settings say about the working tree.
    pub(crate) fn of_tree(top: &Path) -> Self {
        let above = top.parent().unwrap_or(top);
        Self {
            cwd: top.to_owned(),
            variables: vec![
                ("GIT_WORK_TREE", top.into()),
                ("GIT_CEILING_DIRECTORIES", above.into()),
            ],
        }
    }

    /// The repository in this folder, without its working tree.
    pub(crate) fn of_repository(folder: &Path) -> Self {
        Self {
            cwd: folder.to_owned(),
            variables: vec![("GIT_DIR", folder.into())],
        }
    }

    pub(crate) fn with_index(mut self, index: &Path) -> Self {
        self.variables.push(("GIT_INDEX_FILE", index.into()));
        self
    }
}

impl Git {
    /// Finds git on the search path in `env`, outside of `workspace`.
    pub(crate) fn find(env: &BTreeMap<String, String>, workspace: &Path, session: &str) -> Option<Self> {
        let given = env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut env = child_environment(given, workspace, session);
        let program = program::find("git", env.get("PATH").map_or("", String::as_str))?;
        reading_environment(&mut env);
        let count = env
            .get("GIT_CONFIG_COUNT")
            .and_then(|count| count.parse::<usize>().ok());
        let count = count.unwrap_or_default();
        for (index, (key, value)) in SETTINGS.iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{}", count + index), (*key).to_owned());
            env.insert(format!("GIT_CONFIG_VALUE_{}", count + index), (*value).to_owned());
        }
        env.insert(
            "GIT_CONFIG_COUNT".to_owned(),
            (count + SETTINGS.len()).to_string(),
        );
        for (name, value) in IDENTITY {
            env.insert((*name).to_owned(), (*value).to_owned());
        }
        Some(Self { program, env })
    }

    /// Runs a command and returns its output.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        arguments: &[A],
        input: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>> {
        let done = self.outcome(place, arguments, input, cancel)?;
        match done.problem {
            None => Ok(done.output),
            Some(problem) => Err(failed(arguments, problem)),
        }
    }

    /// Like [`Self::run`], for a command whose failure is an answer, too.
    pub(crate) fn outcome<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        arguments: &[A],
        input: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<Outcome> {
        let wrong = |error: std::io::Error| failed(arguments, error.to_string());
        let mut child = Command::new(&self.program)
            .args(arguments)
            .current_dir(&place.cwd)
            .env_clear()
            .envs(&self.env)
            .envs(place.variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, ended) = channel();
        let (output, message, waited) = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A command that stops reading its input reports the reason itself.
                let _ = stdin.map(|mut stdin| stdin.write_all(&input));
            });
            let message = scope.spawn(|| all(stderr));
            let output = scope.spawn(move || {
                let output = all(stdout);
                let _ = sender.send(());
                output
            });
            let waited = wait(&mut child, &ended, cancel);
            (output.join(), message.join(), waited)
        });
        let has_ended = waited.map_err(wrong)?;
        let (Some(status), Ok(Ok(output)), Ok(Ok(message))) = (has_ended, output, message) else {
            return Err(match cancel.is_cancelled() {
                true => WorktreeError::Canceled,
                false => failed(arguments, "it did not end in time".to_owned()),
            });
        };
        let problem = (!status.success()).then(|| {
            let text = String::from_utf8_lossy(&message);
            let text: String = text.trim().chars().take(MESSAGE).collect();
            if text.is_empty() { status.to_string() } else { text }
        });
        Ok(Outcome { output, problem })
    }
}

/// Result of a command.
pub(crate) struct Outcome {
    pub(crate) output: Vec<u8>,
    /// The error message, if the command failed.
    pub(crate) problem: Option<String>,
}

fn failed<A: AsRef<OsStr>>(arguments: &[A], problem: String) -> WorktreeError {
    let command = arguments.first().map(|first| first.as_ref().to_string_lossy());
    WorktreeError::Git {
        command: command.unwrap_or_default().into_owned(),
        problem,
    }
}

fn all(stream: Option<impl Read>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Waits for the end of the command. Returns `None` if it was killed.
fn wait(
    child: &mut Child,
    ended: &Receiver<()>,
    cancel: &CancellationToken,
) -> std::io::Result<Option<std::process::ExitStatus>> {
    for _ in 0..TICKS {
        if cancel.is_cancelled() {
            break;
        }
        match ended.recv_timeout(TICK) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return child.wait().map(Some),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
