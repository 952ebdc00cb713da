//! `bash`: runs a command with everything it starts, and ends the whole process tree on request.

mod blocked;
mod capture;
mod follow;
mod job;
mod jobs;
mod live;
mod notes;
mod output;
mod pipe;
mod repository;
mod shell;
mod terminal;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::net::unix::pipe::Receiver;
use windlass_core::permission::Subject;
use windlass_core::tool::{
    Category, ExecutionContext, Judgement, Tool, ToolContext, ToolError, ToolOutput, ToolTraits,
};

pub(crate) use self::capture::Keeping;
pub(crate) use self::follow::{Finished, finish};
pub(crate) use self::job::{Job, Reading};
pub(crate) use self::jobs::{Jobs, named};
use self::notes::NO_OUTPUT;
pub(crate) use self::notes::compose;
use self::shell::{Shell, ShellFinder};
use crate::ToolsConfig;
use crate::arguments::null_is_default;
use crate::bash_job::answer;
use windlass_core::permission::Escalation;
use windlass_sandbox::process::Tree;
use windlass_sandbox::{Access, CommandSandbox, ProtectedChange, Reached, Workspace, reading_environment};
use windlass_shell::{Analysis, Blocklist, SandboxFacts, analyse_in};

/// Maximum timeout that a call may request.
const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Extra time for ending a process tree.
pub(crate) const KILL_TIME: Duration = Duration::from_secs(10);
/// Time to watch the start of a background command.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Note after the sandbox's launcher ended by itself.
const RESTARTED: &str =
    "[the sandbox had ended, with everything that still ran in it, and was started again]";
/// Reason for asking about a reading git command.
const RUNS_SETTINGS: &str = "the settings of this repository name programs that git runs";
/// Maximum number of characters of a description in an approval request.
const DESCRIPTION: usize = 200;

/// Runs a bash command; returns stdout and stderr as one text. Each call is a new shell in the working directory,
/// without stdin and terminal. Long output loses its middle. Prefer the file and search tools to cat, sed, find and
/// grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    #[serde(alias = "cmd")]
    command: String,
    /// Seconds, at most 1800.
    #[serde(default, alias = "timeout")]
    timeout_secs: Option<u64>,
    /// Its purpose in a few words, for the user.
    #[serde(default)]
    description: Option<String>,
    /// It needs the network. The user is asked.
    #[serde(default, deserialize_with = "null_is_default")]
    network: bool,
    /// It writes outside the working directory, or changes git's settings. The user is asked.
    #[serde(default, deserialize_with = "null_is_default")]
    outside: bool,
    /// It writes, although it looks like a read.
    #[serde(default, deserialize_with = "null_is_default")]
    write: bool,
    /// Returns at once; bash_job reads and ends it.
    #[serde(default, deserialize_with = "null_is_default")]
    background: bool,
    #[serde(skip)]
    judged: OnceLock<Judged>,
}

/// Analysis of a command line and the access it was judged with. Made once per call: files may change between the
/// judgement and the start of the command, and a command must not get more access than was judged.
#[derive(Debug)]
struct Judged {
    analysis: Analysis,
    category: Category,
    escalation: Escalation,
    /// Reasons to ask because of files that other programs run by themselves.
    protected: Vec<String>,
    /// The files of these reasons.
    change: ProtectedChange,
    /// Hosts that network access is limited to; empty for all.
    hosts: Vec<String>,
    /// True if git would run programs that the settings of a repository name.
    runs_settings: bool,
}

impl Judged {
    /// Returns the access of the command. A command that was judged to read gets no more than that.
    fn access(&self) -> Access {
        Access::of(self.category, self.escalation)
            .limited_to(self.hosts.clone())
            .changing(self.change.clone())
    }
}

/// The tool.
pub(crate) struct Bash {
    timeout: Duration,
    keeping: Keeping,
    jobs: Arc<Jobs>,
    shells: ShellFinder,
    blocklist: Blocklist,
    workspace: Workspace,
    sandbox: Arc<CommandSandbox>,
}

impl Bash {
    pub(crate) fn new(config: &ToolsConfig, jobs: Arc<Jobs>) -> Self {
        Self {
            timeout: config.command_timeout,
            keeping: Keeping::new(config, Self::NAME),
            jobs,
            shells: ShellFinder::default(),
            blocklist: Blocklist::new(&config.blocked_commands),
            workspace: config.workspace.clone(),
            sandbox: Arc::clone(&config.sandbox),
        }
    }

    /// Returns the analysis of the command line and its access, both made by the first caller.
    fn judged<'a>(&self, input: &'a BashInput) -> &'a Judged {
        input.judged.get_or_init(|| {
            let facts = SandboxFacts {
                holds: &|folder| self.workspace.holds(folder),
                own_network: self.sandbox.has_own_network(),
            };
            let analysis = analyse_in(&input.command, &self.blocklist, &facts);
            let protected = self.protected(&analysis);
            let mut escalation = self.escalation(input, &analysis);
            // With approval, such a command may change those files.
            escalation.protected = !protected.is_empty();
            let change = ProtectedChange {
                git: analysis.changes_git_settings(),
                paths: self.protected_targets(&analysis),
            };
            let cwd = self.workspace.working_directory().current();
            let mut folders = analysis.repositories().iter().map(|folder| cwd.join(folder));
            let runs_settings = folders.any(|folder| repository::names_programs(&folder));
            let category = match analysis.category {
                _ if escalation.outside || escalation.protected => Category::Admin,
                Category::Read if input.write || runs_settings => Category::Write,
                category => category,
            };
            // A call that asks for the network gets all of it, if the user agrees.
            let hosts = match input.network {
                true => Vec::new(),
                false => analysis.hosts().into_iter().map(str::to_owned).collect(),
            };
            Judged {
                analysis,
                category,
                hosts,
                escalation,
                runs_settings,
                protected,
                change,
            }
        })
    }

    /// Returns the protected files that the command names.
    fn protected_targets(&self, analysis: &Analysis) -> Vec<PathBuf> {
        let targets = analysis.write_targets().into_iter();
        targets
            .flat_map(|path| self.workspace.protected_places(path))
            .collect()
    }

    /// Returns the access that the call gets once it is allowed to run.
    fn escalation(&self, input: &BashInput, analysis: &Analysis) -> Escalation {
        let needs = analysis.needs();
        // The analysis of the text cannot know the location of a file, but the workspace can.
        let leaves = || {
            !analysis
                .write_targets()
                .into_iter()
                .all(|path| self.workspace.holds(path))
        };
        Escalation {
            network: input.network || needs.network,
            outside: input.outside || needs.outside || analysis.changes_users_git_settings() || leaves(),
            protected: false,
        }
    }

    /// Returns the reasons to ask because the command names files that other programs run by themselves, or git's
    /// settings.
    fn protected(&self, analysis: &Analysis) -> Vec<String> {
        let targets = analysis.write_targets().into_iter();
        let mut reasons: Vec<String> = targets.filter_map(|path| self.workspace.protects(path)).collect();
        if analysis.changes_git_settings() {
            reasons.push(
                "it changes git's settings, which name programs that git runs automatically".to_owned(),
            );
        }
        reasons.dedup();
        reasons
    }

    /// TOOL-9: leaves the command running and returns its first output. Cancelling ends the wait, not the
    /// command.
    async fn run_in_background(
        &self,
        input: &BashInput,
        access: &Access,
        limit: Option<Duration>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let sandbox = Arc::clone(&self.sandbox);
        let start = || self.start(input, access, cx);
        let job = self.jobs.begin(&input.command, limit, sandbox, start)?;
        job.wait_for_end(FIRST_LOOK, &cx.cancel).await;
        let output = answer(&job, NO_OUTPUT);
        let life = job.life();
        Ok(ToolOutput {
            failed: !life.is_running() && life.exit_code() != Some(0),
            ..output
        })
    }

    /// Returns hints for a model whose command failed or was blocked.
    fn hints(&self, finished: &Finished, access: &Access, analysis: &Analysis) -> Vec<&'static str> {
        let failed = finished.exit_code != Some(0);
        let content = &finished.content;
        let sandbox = self.sandbox.hint(access, content).filter(|_| failed);
        let silent = failed || content == NO_OUTPUT;
        let restarted = self.sandbox.was_restarted(access).then_some(RESTARTED);
        let terminal = terminal::is_missed(content) || (silent && terminal::is_wanted(analysis));
        sandbox
            .into_iter()
            .chain(restarted)
            .chain(terminal.then_some(terminal::NOTE))
            .collect()
    }

    fn start(
        &self,
        input: &BashInput,
        access: &Access,
        cx: &ToolContext,
    ) -> Result<(Tree, Receiver), ToolError> {
        let execution = &cx.execution;
        let shell = self
            .shells
            .find(execution.env.get("PATH").map_or("", String::as_str))
            .ok_or_else(|| ToolError::Permanent("Neither bash nor sh was found on PATH.".to_owned()))?;
        let arguments = shell.arguments(&input.command);
        let mut env = execution.env.clone();
        // Without it, bash looks for the user's entry in a file that the sandbox denies, and then everywhere else.
        env.entry("SHELL".to_owned())
            .or_insert_with(|| shell.program.to_string_lossy().into_owned());
        if access.reads_only {
            reading_environment(&mut env);
        }
        let started = self
            .sandbox
            .spawn(access, &shell.program, &arguments, &execution.cwd, &env);
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
        let judged = self.judged(input);
        let analysis = &judged.analysis;
        let pieces = analysis.pieces().into_iter().map(Subject::Command);
        let spellings = analysis.spellings().into_iter().map(Subject::Spelling);
        let hosts = judged.hosts.iter().cloned().map(Subject::Reached);
        let mut judgement = Judgement {
            subjects: pieces.chain(spellings).chain(hosts).collect(),
            refusal: analysis.refusal.as_ref().map(|refusal| refusal.message.clone()),
            reasons: [judged.protected.clone(), analysis.reasons()].concat(),
            ..Judgement::of(judged.category)
        };
        judgement.escalation.protected = judged.escalation.protected;
        if judged.runs_settings && analysis.category == Category::Read {
            judgement.reasons.push(RUNS_SETTINGS.to_owned());
        }
        if !analysis.blocked.is_empty() {
            blocked::judge(&self.workspace, analysis, &mut judgement);
        }
        self.sandbox.judge(&judged.access(), &mut judgement);
        judgement
    }

    fn preview(&self, input: &BashInput, _: &ExecutionContext) -> Option<String> {
        let mut preview = format!("$ {}", input.command);
        // The command comes first, and its description is a single line, so that the model's description can
        // neither be mistaken for the command nor push it out of view.
        if let Some(description) = &input.description {
            let words: Vec<&str> = description.split_whitespace().collect();
            preview.push_str("\n# ");
            preview.extend(words.join(" ").chars().take(DESCRIPTION));
        }
        Some(preview)
    }

    fn traits(&self) -> ToolTraits {
        // The call enforces its own timeout, so that the output so far is not lost.
        ToolTraits {
            timeout: Some(MAX_TIMEOUT.max(self.timeout) + KILL_TIME),
            ..ToolTraits::default()
        }
    }

    async fn run(&self, input: BashInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = time_limit(&input)?;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Canceled(String::new()));
        }
        let judged = self.judged(&input);
        let (analysis, access) = (&judged.analysis, judged.access().confirmed(cx.confirmed));
        self.sandbox.settle(&access).await;
        if input.background {
            return self.run_in_background(&input, &access, limit, &cx).await;
        }
        let limit = limit.map_or(self.timeout, |limit| limit.min(MAX_TIMEOUT));
        let (tree, pipe) = self.start(&input, &access, &cx)?;
        let mut finished = finish(tree, pipe, limit, &self.keeping, &cx).await?;
        for note in self.hints(&finished, &access, analysis) {
            finished.content.push('\n');
            finished.content.push_str(note);
        }
        let mut details = json!({
            "command": input.command,
            "exit_code": finished.exit_code,
            "duration_ms": finished.duration_ms,
            "truncated": finished.truncated,
        });
        note_hosts(
            &self.sandbox.take_reached(&access),
            &mut details,
            &mut finished.content,
        );
        if let (Some(description), Some(map)) = (input.description, details.as_object_mut()) {
            map.insert("description".to_owned(), description.into());
        }
        Ok(ToolOutput {
            failed: finished.exit_code != Some(0),
            kept: finished.kept,
            ..ToolOutput::text(finished.content).with_details(details)
        })
    }
}

/// Adds the hosts that a command asked for to its result.
fn note_hosts(asked: &[Reached], details: &mut serde_json::Value, content: &mut String) {
    let hosts = |allowed: bool| -> Vec<&str> {
        let these = asked.iter().filter(|one| one.allowed == allowed);
        these.map(|one| one.host.as_str()).collect()
    };
    let (reached, refused) = (hosts(true), hosts(false));
    if let (false, Some(map)) = (asked.is_empty(), details.as_object_mut()) {
        map.insert(
            "hosts".to_owned(),
            json!({ "reached": reached, "refused": refused }),
        );
    }
    if !refused.is_empty() {
        content.push_str(&format!(
            "\n[not reached: {}; a call with network: true asks the user for the whole network]",
            refused.join(", ")
        ));
    }
}

/// Returns the timeout that the call requests.
fn time_limit(input: &BashInput) -> Result<Option<Duration>, ToolError> {
    match input.timeout_secs {
        Some(0) => Err(ToolError::Invalid(
            "`timeout_secs` must be at least 1.".to_owned(),
        )),
        seconds => Ok(seconds.map(Duration::from_secs)),
    }
}

fn not_started(error: &io::Error, shell: &Shell, cx: &ToolContext) -> ToolError {
    let cwd = &cx.execution.cwd;
    match error.kind() {
        io::ErrorKind::InvalidInput => {
            ToolError::Invalid("The command contains a NUL character, which is not allowed.".to_owned())
        }
        io::ErrorKind::ArgumentListTooLong => ToolError::Invalid(
            "The command is too long for the system. Write it to a file and run the file.".to_owned(),
        ),
        _ if !cwd.is_dir() => {
            ToolError::Permanent(format!("The working directory {} does not exist.", cwd.display()))
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            ToolError::Transient(format!("No process can be started right now: {error}"))
        }
        _ => ToolError::Permanent(format!(
            "{} could not be started: {error}",
            shell.program.display()
        )),
    }
}
