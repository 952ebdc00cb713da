//! `bash_job`: lists, reads and ends background commands.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolTraits};

use crate::bash::{Job, Jobs, Reading, compose, named};

/// Maximum time that a read may wait.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Maximum time for ending a process tree and noticing its end.
const KILL_TIME: Duration = Duration::from_secs(5);
/// Extra time for a read beyond its wait.
const SLACK: Duration = Duration::from_secs(30);

/// Lists, reads or ends background commands of bash. Reading gives the output since the last read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashJobInput {
    action: Action,
    /// Such as job-1; for read and kill.
    #[serde(default, alias = "id", alias = "job_id")]
    job: Option<String>,
    /// With read: seconds to wait for output, at most 60.
    #[serde(default)]
    wait_secs: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Read,
    Kill,
}

/// The tool.
pub(crate) struct BashJob {
    pub(crate) jobs: Arc<Jobs>,
}

impl BashJob {
    fn job(&self, input: &BashJobInput) -> Result<Arc<Job>, ToolError> {
        let id = input
            .job
            .as_deref()
            .ok_or_else(|| ToolError::Invalid("`job` is missing; name the job.".to_owned()))?;
        self.jobs.find(id)
    }

    fn list(&self) -> ToolOutput {
        let jobs = self.jobs.all();
        let lines: Vec<String> = jobs
            .iter()
            .map(|job| format!("{} ({})", named(job), job.glance().words()))
            .collect();
        let running = jobs.iter().filter(|job| job.life().is_running()).count();
        let content = if lines.is_empty() {
            "No background jobs.".to_owned()
        } else {
            lines.join("\n")
        };
        ToolOutput::text(content).with_details(json!({ "jobs": jobs.len(), "running": running }))
    }

    async fn read(&self, input: &BashJobInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let job = self.job(input)?;
        if let Some(wait) = input.wait_secs {
            let wait = Duration::from_secs(wait).min(MAX_WAIT);
            job.wait_for_news(wait, &cx.cancel).await;
            if cx.cancel.is_cancelled() {
                return Err(ToolError::Canceled(String::new()));
            }
        }
        Ok(answer(&job, "(no new output)"))
    }

    async fn kill(&self, input: &BashJobInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let job = self.job(input)?;
        let Some(kill) = job.kill() else {
            return Ok(answer(&job, "It had already ended."));
        };
        tokio::select! {
            biased;
            // The kill continues in the background.
            () = cx.cancel.cancelled() => {}
            () = kill.finished() => job.wait_for_end(KILL_TIME, &cx.cancel).await,
        }
        Ok(answer(&job, "(no new output)"))
    }
}

impl Tool for BashJob {
    type Input = BashJobInput;
    const NAME: &'static str = "bash_job";

    fn category(&self, input: &BashJobInput) -> Category {
        match input.action {
            Action::List | Action::Read => Category::Read,
            Action::Kill => Category::Write,
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            timeout: Some(MAX_WAIT + SLACK),
            ..ToolTraits::default()
        }
    }

    async fn run(&self, input: BashJobInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        match input.action {
            Action::List => Ok(self.list()),
            Action::Read => self.read(&input, &cx).await,
            Action::Kill => self.kill(&input, &cx).await,
        }
    }
}

/// Returns the new output and the state of a job, for the model.
pub(crate) fn answer(job: &Job, nothing: &str) -> ToolOutput {
    let reading = job.read();
    let note = format!("[{}: {}]", job.id, reading.words());
    let details = json!({
        "job": job.id,
        "command": job.command,
        "running": reading.life.is_running(),
        "exit_code": reading.life.exit_code(),
        "output_bytes": reading.total,
    });
    let Reading { text, kept, .. } = reading;
    ToolOutput {
        kept,
        ..ToolOutput::text(compose(text, nothing, &[note])).with_details(details)
    }
}
