//! Runs the work of jobs on this machine: prompts in sessions, commands in the sandbox.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{Client, Event, FailureKind, FinishReason, SessionId, Submission, Waiting};
use windlass_config::environment::{self, Given};
use windlass_config::settings::{Settings, quote};
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::Clock;
use windlass_core::dispatch::{CallConfig, Calls, call};
use windlass_core::event::{EventSink, SinkError};
use windlass_core::hook::Hooks;
use windlass_core::log::{SlotState, Store};
use windlass_core::message::ToolCall;
use windlass_core::permission::{Approver, Mode, NobodyToAsk, Policy, Rule};
use windlass_core::tool::CallModel;
use windlass_cron::{CommandEnd, CronJob, JobRunner, PromptRun, RunEnd};
use windlass_host::factory::{SessionSpec, SessionTools, delete_session, policy, session_tools};

use crate::engine::{Engine, ModelRuntime, Plan};
use crate::observe::Wanted;
use crate::session_choice::{NewSession, SessionChoice, SessionStore};
use crate::session_folder;

/// Name of the flag that a setting of a job stands for, in messages.
const FLAG: &str = "cron";
/// The tool that runs commands.
const BASH: &str = "bash";

/// Longest time that a command may ask for.
const MAX_COMMAND_SECS: u64 = 1_800;

/// Runs jobs on this machine.
pub(super) struct LocalRunner {
    pub(super) store: Arc<dyn Store>,
    /// Settings from the command line.
    pub(super) given: Given,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl JobRunner for LocalRunner {
    async fn command(
        &self,
        job: &CronJob,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, String> {
        self.run_command(job, command, cancel)
            .await
            .map_err(|problem| problem.to_string())
    }

    async fn prompt(&self, run: PromptRun<'_>, cancel: &CancellationToken) -> RunEnd {
        match self.run_prompt(run, cancel).await {
            Ok(end) => end,
            // Somebody has the session open.
            Err(problem) if problem.kind == ProblemKind::Busy => {
                end(SlotState::SkippedOverlap, problem.message, String::new())
            }
            Err(problem) => end(SlotState::Failed, problem.message, String::new()),
        }
    }

    async fn forget(&self, session: &SessionId) -> Result<(), String> {
        let folders = environment::folders().map_err(|problem| problem.to_string())?;
        let deleted = delete_session(&*self.store, &folders, session).await;
        deleted.map_err(|error| error.to_string())
    }
}

impl LocalRunner {
    /// SAFE-5 (S6.14), LOOP-9: the settings of a run: unattended, and only what the job lists.
    fn given(&self, job: &CronJob, budget_usd: Option<f64>) -> Given {
        let rules: Vec<String> = job.limits.allowed_tools.iter().map(|rule| quote(rule)).collect();
        let mut flags = self.given.flags.clone();
        flags.push(("security.mode", FLAG, Mode::Unattended.name().to_owned()));
        flags.push(("security.allow", FLAG, format!("[{}]", rules.join(", "))));
        flags.push((
            "agent.max_iterations",
            FLAG,
            job.limits.max_iterations.to_string(),
        ));
        if let Some(budget) = budget_usd {
            flags.push(("agent.max_cost_usd", FLAG, format!("{budget:?}")));
        }
        Given {
            provider: job.work.provider.clone().or_else(|| self.given.provider.clone()),
            model: job.work.model.clone().or_else(|| self.given.model.clone()),
            flags,
            ..self.given.clone()
        }
    }

    fn settings(&self, job: &CronJob, given: &Given) -> Result<Settings, Problem> {
        let folder = &job.work.folder;
        if !folder.is_dir() {
            let text = format!("the folder of the job is not here: {}", folder.display());
            return Err(Problem::new(ProblemKind::Failed, text));
        }
        let settings = environment::settings(given, folder)?;
        session_folder::check(&settings, folder, false)?;
        Ok(settings)
    }

    async fn run_prompt(&self, run: PromptRun<'_>, cancel: &CancellationToken) -> Result<RunEnd, Problem> {
        let given = self.given(run.job, run.budget_usd);
        let settings = Arc::new(self.settings(run.job, &given)?);
        let which = SessionChoice::Called(run.session.to_string());
        let keeper = SessionStore {
            store: Arc::clone(&self.store),
        };
        let wanted = Wanted::default();
        let ModelRuntime { models, watch } =
            ModelRuntime::new(&settings, &keeper, &which, None, wanted).await?;
        tokio::select! {
            connected = models.connect() => drop(connected?),
            () = cancel.cancelled() => return Ok(interrupted()),
        }
        let plan = Plan {
            cwd: run.job.work.folder.clone(),
            which,
            fork: false,
            require_done: false,
            // A question is asked, so that the run can end with it. In this mode nothing else changes.
            interactive: true,
            given,
            watch,
            new: NewSession::default(),
        };
        let engine = Engine::start(&settings, &models, plan, keeper).await?;
        let ended = turn(&*engine.backend, run.session, run.prompt, cancel).await;
        engine.close().await;
        ended
    }

    /// Runs a command as a call of the `bash` tool: judged by the rules, in the sandbox, with nobody to ask.
    async fn run_command(
        &self,
        job: &CronJob,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, Problem> {
        let given = self.given(job, None);
        let settings = self.settings(job, &given)?;
        let spec = SessionSpec {
            interactive: false,
            require_done: false,
            ..SessionSpec::looking(&job.work.folder, &format!("cron-{}", job.id))
        };
        let SessionTools { catalog, .. } = session_tools(&settings, &spec)?;
        let config = CallConfig {
            tools: catalog.tools().clone(),
            policy: Policy {
                // The command is the user's own: it may write in its folder. Anything else has to be listed.
                mode: Mode::Auto,
                attended: false,
                ..policy(&settings)
            },
            execution: catalog.execution(),
            timeout: job.limits.timeout,
            ..CallConfig::default()
        };
        let approver: Arc<dyn Approver> = Arc::new(NobodyToAsk);
        let events: Arc<dyn EventSink> = Arc::new(NoEvents);
        let (hooks, tasks) = (Hooks::new(), TaskTracker::new());
        let calls = Calls {
            config: &config,
            hooks: &hooks,
            approver: &approver,
            model: &CallModel::default(),
            outputs: None,
            clock: &self.clock,
            events: &events,
            cancel,
            tasks: &tasks,
        };
        let result = call(
            &calls,
            ToolCall {
                id: "cron".into(),
                name: BASH.to_owned(),
                input: input(job, command),
                finished: true,
            },
        )
        .await;
        Ok(CommandEnd {
            is_success: !result.is_error,
            output: result.content,
        })
    }
}

/// The events of a command without a session, which nobody reads.
struct NoEvents;

#[async_trait]
impl EventSink for NoEvents {
    fn live(&self, _event: Event) {}

    async fn record(&self, _event: Event) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Returns the arguments of a command. It gets the access that the job's rules for commands name.
fn input(job: &CronJob, command: &str) -> String {
    let rules = job.limits.allowed_tools.iter();
    let rules = rules.filter(|text| text.parse::<Rule>().is_ok_and(|rule| rule.names(BASH)));
    let names = |word: &str| {
        let mut rules = rules.clone();
        rules.any(|rule| rule.split([',', ')']).skip(1).any(|part| part.trim() == word))
    };
    let timeout = job.limits.timeout.as_secs().min(MAX_COMMAND_SECS);
    json!({
        "command": command,
        "network": names("network"),
        "outside": names("outside"),
        "timeout": timeout,
    })
    .to_string()
}

/// Runs one turn to its end. A question ends it.
async fn turn(
    client: &dyn Client,
    session: &SessionId,
    prompt: &str,
    cancel: &CancellationToken,
) -> Result<RunEnd, Problem> {
    let submitted = client.submit(Submission::text(session.clone(), prompt)).await;
    let mut events = submitted.map_err(crate::engine::not_begun)?;
    let mut question: Option<String> = None;
    let mut is_stopped = false;
    loop {
        let next = tokio::select! {
            biased;
            () = cancel.cancelled(), if !is_stopped => {
                is_stopped = true;
                client.cancel(session).await;
                continue;
            }
            next = events.next() => next,
        };
        let Some(envelope) = next else {
            let text = "the event stream ended before the turn did".to_owned();
            return Ok(end(SlotState::Failed, text, String::new()));
        };
        if let Event::Waiting(waiting) = &envelope.event
            && let Some(asked) = asked(waiting)
        {
            question = Some(asked);
            client.cancel(session).await;
        }
        if envelope.event.is_terminal() {
            return Ok(ended(&envelope.event, question, is_stopped));
        }
    }
}

/// Returns the question of a turn that waits for a person.
fn asked(waiting: &Waiting) -> Option<String> {
    match waiting {
        Waiting::PermissionRequest {
            tool,
            subjects,
            reasons,
            ..
        } => {
            let why = if reasons.is_empty() {
                String::new()
            } else {
                format!(" ({})", reasons.join("; "))
            };
            Some(format!("may it run `{tool}`: {}{why}?", subjects.join(" · ")))
        }
        Waiting::Question { text, .. } => Some(text.clone()),
        Waiting::PermissionAnswer { .. } | Waiting::Queue { .. } => None,
    }
}

/// CRON-4: returns the end of a run, from the last event of its turn.
fn ended(event: &Event, question: Option<String>, is_stopped: bool) -> RunEnd {
    match (event, question) {
        (_, Some(question)) => end(SlotState::NeedsPerson, question.clone(), question),
        (Event::Final { content, finish }, None) if *finish == FinishReason::MaxIterations => {
            let why = "the limit of model requests is reached (max_iterations)".to_owned();
            end(SlotState::Failed, why, content.clone())
        }
        (Event::Final { content, .. }, None) => end(SlotState::Ran, String::new(), content.clone()),
        (Event::Failed { reason, message, .. }, None) => {
            let state = match reason {
                FailureKind::PermissionDenied => SlotState::NeedsPerson,
                _ => SlotState::Failed,
            };
            end(state, message.clone(), String::new())
        }
        _ if is_stopped => interrupted(),
        _ => end(
            SlotState::Failed,
            "the turn was canceled".to_owned(),
            String::new(),
        ),
    }
}

fn interrupted() -> RunEnd {
    let why = "Windlass was stopped".to_owned();
    end(SlotState::Interrupted, why, String::new())
}

fn end(state: SlotState, detail: String, output: String) -> RunEnd {
    RunEnd {
        state,
        detail,
        output,
    }
}
