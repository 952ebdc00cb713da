//! `bash`: runs a command and everything it starts, and ends all of it when asked to.

mod capture;
mod live;
mod output;
mod shell;

use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;
use windlass_core::permission::Subject;
use windlass_core::tool::{
    Category, ExecutionContext, Judgement, Tool, ToolContext, ToolError, ToolOutput, ToolTraits,
};

use self::capture::{Capture, Step};
use self::shell::{Shell, ShellFinder};
use crate::ToolsConfig;
use crate::arguments::null_is_default;
use crate::ground::Ground;
use crate::process::Tree;
use crate::shell::{Analysis, Blocklist, analyse};
use crate::walls::{Reach, Walls};

/// The longest a call may ask for.
const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// What ending a tree may take on top.
pub(crate) const KILL_TIME: Duration = Duration::from_secs(10);
/// How long output is awaited from processes that outlive the command, in all and without a word.
const DRAIN: Duration = Duration::from_secs(2);
const DRAIN_SILENCE: Duration = Duration::from_millis(500);

/// Runs a command with bash and returns stdout and stderr as one text. Each call is a new shell in the working
/// directory; there is no stdin and no terminal. Long output loses its middle. Prefer the file and search tools to
/// cat, sed, find and grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    #[serde(alias = "cmd")]
    command: String,
    /// Seconds until it is killed, at most 1800.
    #[serde(default, alias = "timeout")]
    timeout_secs: Option<u64>,
    /// What it does, in a few words for the user.
    #[serde(default)]
    description: Option<String>,
    /// It needs the network, which the sandbox keeps off. The user is asked.
    #[serde(default, deserialize_with = "null_is_default")]
    network: bool,
    /// It writes outside the working directory and the temporary folder. The user is asked.
    #[serde(default, deserialize_with = "null_is_default")]
    outside: bool,
}

/// The tool.
pub(crate) struct Bash {
    timeout: Duration,
    max_output: usize,
    shells: ShellFinder,
    blocklist: Blocklist,
    ground: Ground,
    walls: Arc<Walls>,
}

impl Bash {
    pub(crate) fn new(config: &ToolsConfig) -> Self {
        Self {
            timeout: config.command_timeout,
            max_output: config.max_command_output,
            shells: ShellFinder::default(),
            blocklist: Blocklist::new(&config.blocked_commands),
            ground: config.ground.clone(),
            walls: Arc::clone(&config.walls),
        }
    }

    /// What the call may reach once it was allowed to run.
    fn reach(&self, input: &BashInput, analysis: &Analysis) -> Reach {
        let needs = analysis.needs();
        // Reading the text cannot know where a file is; the ground can. What a `cd` makes of a relative path nobody can.
        let leaves = || {
            !analysis
                .write_targets()
                .into_iter()
                .all(|path| self.ground.holds(path))
        };
        Reach {
            network: input.network || needs.network,
            outside: input.outside || needs.outside || leaves(),
        }
    }

    fn start(
        &self,
        input: &BashInput,
        reach: Reach,
        cx: &ToolContext,
    ) -> Result<(Tree, Receiver), ToolError> {
        let execution = &cx.execution;
        let shell = self
            .shells
            .find(execution.env.get("PATH").map_or("", String::as_str))
            .ok_or_else(|| ToolError::Permanent("Neither bash nor sh was found on PATH.".to_owned()))?;
        let arguments = shell.arguments(&input.command);
        let started = self
            .walls
            .spawn(reach, &shell.program, &arguments, &execution.cwd, &execution.env);
        started.map_err(|error| {
            self.shells.forget();
            not_started(&error, &shell, cx)
        })
    }
}

impl Tool for Bash {
    type Input = BashInput;
    const NAME: &'static str = "bash";

    fn category(&self, input: &BashInput) -> Category {
        self.judge(input).category
    }

    fn judge(&self, input: &BashInput) -> Judgement {
        let analysis = analyse(&input.command, &self.blocklist);
        let pieces = analysis.pieces().into_iter();
        let mut judgement = Judgement {
            category: analysis.category,
            subjects: pieces.map(Subject::Command).collect(),
            refusal: analysis.refusal.as_ref().map(|refusal| refusal.message.clone()),
            reasons: Vec::new(),
        };
        let reach = self.reach(input, &analysis);
        if reach.outside {
            judgement.category = Category::Admin;
        }
        self.walls.judge(reach, &mut judgement);
        judgement
    }

    fn preview(&self, input: &BashInput, _: &ExecutionContext) -> Option<String> {
        let about = input.description.iter().map(|text| format!("# {text}\n"));
        Some(about.chain([format!("$ {}", input.command)]).collect())
    }

    fn traits(&self) -> ToolTraits {
        // The call keeps its own time, so that the output so far is not lost with it.
        ToolTraits {
            timeout: Some(MAX_TIMEOUT.max(self.timeout) + KILL_TIME),
            ..ToolTraits::default()
        }
    }

    async fn run(&self, input: BashInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = time_limit(&input, self.timeout)?;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Canceled(String::new()));
        }
        let reach = self.reach(&input, &analyse(&input.command, &self.blocklist));
        let (tree, pipe) = self.start(&input, reach, &cx)?;
        let mut finished = finish(tree, pipe, limit, self.max_output, &cx).await?;
        if finished.exit_code != Some(0)
            && let Some(hint) = self.walls.hint(reach, &finished.content)
        {
            finished.content.push('\n');
            finished.content.push_str(hint);
        }
        let mut details = json!({
            "command": input.command,
            "exit_code": finished.exit_code,
            "duration_ms": finished.duration_ms,
            "truncated": finished.truncated,
        });
        if let (Some(description), Some(map)) = (input.description, details.as_object_mut()) {
            map.insert("description".to_owned(), description.into());
        }
        let output = ToolOutput::text(finished.content).with_details(details);
        Ok(ToolOutput {
            failed: finished.exit_code != Some(0),
            ..output
        })
    }
}

/// What came of a process.
pub(crate) struct Finished {
    /// What it wrote, and how it ended if not well, for the model.
    pub(crate) content: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: u64,
    pub(crate) truncated: bool,
}

/// Follows a process that has just been started: shows what it writes, and ends its tree when its time is up or the
/// call is canceled. Keeps `max_output` bytes.
pub(crate) async fn finish(
    tree: Tree,
    pipe: Receiver,
    limit: Duration,
    max_output: usize,
    cx: &ToolContext,
) -> Result<Finished, ToolError> {
    let started = Instant::now();
    let mut capture = Capture::new(pipe, max_output, cx.progress.clone());
    let ending = follow(tree, &mut capture, &cx.cancel, limit).await;
    let (text, truncated) = capture.finish();
    let (exit_code, notes) = match ending {
        Ending::Canceled => return Err(ToolError::Canceled(text)),
        Ending::TimedOut => (None, vec![format!("[timed out after {} s]", seconds(limit))]),
        Ending::Unknown(error) => (None, vec![format!("[how it ended is unknown: {error}]")]),
        Ending::Exited { status, left_running } => (status.code(), notes_on(status, left_running)),
    };
    Ok(Finished {
        content: compose(text, &notes),
        exit_code,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        truncated,
    })
}

enum Ending {
    Exited {
        status: ExitStatus,
        /// Something it started still holds the output.
        left_running: bool,
    },
    TimedOut,
    Canceled,
    Unknown(io::Error),
}

/// Reads output until the command ends, its time is up, or it is canceled.
async fn follow(
    mut tree: Tree,
    capture: &mut Capture,
    cancel: &CancellationToken,
    limit: Duration,
) -> Ending {
    let mut canceled = pin!(cancel.cancelled());
    let mut time_is_up = pin!(tokio::time::sleep(limit));
    let status = loop {
        tokio::select! {
            biased;
            () = &mut canceled => {
                // The kill goes on by itself: whoever canceled does not wait for it.
                drop(tree.kill());
                capture.take_rest();
                return Ending::Canceled;
            }
            status = tree.wait() => break status,
            () = &mut time_is_up => {
                return end_for_time(tree, capture, cancel).await;
            }
            _ = capture.step() => {}
        }
    };
    let status = match status {
        Ok(status) => status,
        Err(error) => return Ending::Unknown(error),
    };
    match drain(capture, cancel).await {
        Drained::Whole => Ending::Exited {
            status,
            left_running: false,
        },
        Drained::Held => {
            capture.abandon();
            Ending::Exited {
                status,
                left_running: true,
            }
        }
        Drained::Canceled => {
            drop(tree.kill());
            capture.take_rest();
            Ending::Canceled
        }
    }
}

async fn end_for_time(tree: Tree, capture: &mut Capture, cancel: &CancellationToken) -> Ending {
    let mut killed = pin!(tree.kill().finished());
    let mut canceled = pin!(cancel.cancelled());
    loop {
        tokio::select! {
            biased;
            () = &mut canceled => {
                capture.take_rest();
                return Ending::Canceled;
            }
            () = &mut killed => {
                capture.take_rest();
                return Ending::TimedOut;
            }
            _ = capture.step() => {}
        }
    }
}

enum Drained {
    Whole,
    Held,
    Canceled,
}

/// Reads what is left after the command ended. A process in the background may hold the pipe for ever, so this waits
/// for the pipe only a little.
async fn drain(capture: &mut Capture, cancel: &CancellationToken) -> Drained {
    let mut canceled = pin!(cancel.cancelled());
    let mut over = pin!(tokio::time::sleep(DRAIN));
    let mut silent = pin!(tokio::time::sleep(DRAIN_SILENCE));
    while capture.is_open() {
        tokio::select! {
            biased;
            () = &mut canceled => return Drained::Canceled,
            step = capture.step() => {
                if step == Step::Read {
                    silent.as_mut().reset(tokio::time::Instant::now() + DRAIN_SILENCE);
                }
            }
            () = &mut silent => return Drained::Held,
            () = &mut over => return Drained::Held,
        }
    }
    Drained::Whole
}

fn time_limit(input: &BashInput, default: Duration) -> Result<Duration, ToolError> {
    match input.timeout_secs {
        None => Ok(default),
        Some(0) => Err(ToolError::Invalid(
            "`timeout_secs` must be at least 1.".to_owned(),
        )),
        Some(seconds) => Ok(Duration::from_secs(seconds).min(MAX_TIMEOUT)),
    }
}

fn notes_on(status: ExitStatus, left_running: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if left_running {
        notes.push("[a background process still holds the output; it was left running]".to_owned());
    }
    match (
        status.code(),
        std::os::unix::process::ExitStatusExt::signal(&status),
    ) {
        (Some(0), _) => {}
        (Some(code), _) => notes.push(format!("[exit code {code}]")),
        (None, Some(signal)) => notes.push(format!("[killed by signal {}]", signal_name(signal))),
        (None, None) => notes.push(format!("[{status}]")),
    }
    notes
}

fn compose(mut text: String, notes: &[String]) -> String {
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    if text.is_empty() {
        text.push_str("(no output)");
    }
    for note in notes {
        text.push('\n');
        text.push_str(note);
    }
    text
}

fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        time.as_secs().to_string()
    } else {
        format!("{:.1}", time.as_secs_f64())
    }
}

/// The names of the signals that have the same number on every system, and the number for the rest.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return signal.to_string(),
    };
    name.to_owned()
}

fn not_started(error: &io::Error, shell: &Shell, cx: &ToolContext) -> ToolError {
    let cwd = &cx.execution.cwd;
    match error.kind() {
        io::ErrorKind::InvalidInput => {
            ToolError::Invalid("The command holds a NUL character, which no command can.".to_owned())
        }
        io::ErrorKind::ArgumentListTooLong => ToolError::Invalid(
            "The command is too long for the system. Write it to a file and run the file.".to_owned(),
        ),
        _ if !cwd.is_dir() => {
            ToolError::Permanent(format!("The working directory {} does not exist.", cwd.display()))
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            ToolError::Transient(format!("No process can be started at the moment: {error}"))
        }
        _ => ToolError::Permanent(format!(
            "{} could not be started: {error}",
            shell.program.display()
        )),
    }
}
