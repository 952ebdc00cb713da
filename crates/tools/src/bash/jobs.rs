//! Background commands of one session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use windlass_core::tool::ToolError;

use super::capture::Keeping;
use super::job::Job;
use windlass_core::text::shorten;
use windlass_sandbox::CommandSandbox;
use windlass_sandbox::process::Tree;

/// Maximum number of running jobs. More than this is a mistake.
const MAX_RUNNING: usize = 16;
/// Number of ended jobs that are remembered.
const MAX_ENDED: usize = 32;
/// Maximum number of characters of a command in a job's name.
const COMMAND_CHARS: usize = 60;

/// TOOL-9: commands that outlive the call and the turn that started them. Dropping this ends all of them.
pub(crate) struct Jobs {
    jobs: Mutex<Vec<Arc<Job>>>,
    last: AtomicUsize,
    keeping: Keeping,
}

impl Jobs {
    pub(crate) fn new(keeping: Keeping) -> Self {
        Self {
            jobs: Mutex::default(),
            last: AtomicUsize::new(0),
            keeping,
        }
    }

    /// Starts a command as a job, unless too many are running. Serialised, so that the count is right.
    pub(super) fn begin(
        &self,
        command: &str,
        limit: Option<Duration>,
        sandbox: Arc<CommandSandbox>,
        start: impl FnOnce() -> Result<(Tree, Receiver), ToolError>,
    ) -> Result<Arc<Job>, ToolError> {
        let mut jobs = self.jobs();
        let running: Vec<String> = jobs
            .iter()
            .filter(|job| job.life().is_running())
            .map(|job| named(job))
            .collect();
        if running.len() >= MAX_RUNNING {
            return Err(ToolError::Permanent(format!(
                "{MAX_RUNNING} background jobs are running, which is the maximum. End one with bash_job first:\n{}",
                running.join("\n")
            )));
        }
        let started = start()?;
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let name = (format!("job-{number}"), command.to_owned());
        let job = Job::begin(name, started, limit, &self.keeping, sandbox);
        if jobs.len() - running.len() >= MAX_ENDED
            && let Some(oldest) = jobs.iter().position(|job| !job.life().is_running())
        {
            jobs.remove(oldest);
        }
        jobs.push(Arc::clone(&job));
        Ok(job)
    }

    /// Returns all jobs, in the order they were started.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.jobs().clone()
    }

    /// Returns the job with this id, or an error that explains why there is none.
    pub(crate) fn find(&self, id: &str) -> Result<Arc<Job>, ToolError> {
        let all = self.all();
        if let Some(job) = all.iter().find(|job| job.id == id) {
            return Ok(Arc::clone(job));
        }
        let known: Vec<String> = all.iter().map(|job| named(job)).collect();
        let known = if known.is_empty() {
            "No job was started since Windlass was; jobs end with it.".to_owned()
        } else {
            format!("There are:\n{}", known.join("\n"))
        };
        Err(ToolError::Permanent(format!("There is no job `{id}`. {known}")))
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in self.all() {
            // The kill continues in the background.
            drop(job.kill());
        }
    }
}

/// Describes a job in one line.
pub(crate) fn named(job: &Job) -> String {
    let line = job.command.lines().next().unwrap_or_default();
    let (shown, cut) = shorten(line, COMMAND_CHARS);
    let more = if cut > 0 || line.len() < job.command.len() {
        "…"
    } else {
        ""
    };
    format!("{}: {shown}{more}", job.id)
}
