//! The list of jobs, for people and programs.

use serde::Serialize;
use windlass_core::clock::Timestamp;
use windlass_core::log::{LogError, SlotState, Store};

use crate::file::JobSet;
use crate::job::{CronJob, JobAction};
use crate::scheduler::query;

/// Number of next slots shown.
const NEXT: usize = 3;
/// Number of past slots among which the last one of the schedule is looked for.
const PAST: usize = 20;

/// A job with its last and next slots.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobLine {
    /// Name of the job.
    pub id: String,
    /// Its schedule, as written.
    pub schedule: String,
    /// Its time zone.
    pub timezone: String,
    /// The prompt or the command.
    pub work: String,
    /// Reason why it does not run.
    pub disabled: Option<String>,
    /// Number of failed runs in a row.
    pub failures: u32,
    /// Its last slot.
    pub last: Option<LastSlot>,
    /// Its next slots, in its zone.
    pub next: Vec<String>,
}

/// The last slot of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastSlot {
    /// Time of the slot, in the zone of the job.
    pub time: String,
    /// Its state.
    pub state: SlotState,
    /// Reason of the state.
    pub detail: String,
    /// Session of the run.
    pub session: Option<String>,
}

/// Returns the jobs with their last and next slots.
///
/// # Errors
/// Fails if the store cannot be used.
pub async fn job_list(jobs: &JobSet, store: &dyn Store, now: Timestamp) -> Result<Vec<JobLine>, LogError> {
    let mut lines = Vec::new();
    for job in jobs.jobs() {
        let facts = store.job_facts(&query(job, jobs.changed_at(), now)).await?;
        let past = store.slots(Some(&job.id), PAST).await?;
        let last = past.into_iter().next().map(|record| LastSlot {
            time: job.schedule.local(record.key.slot),
            state: record.state,
            detail: record.detail,
            session: record.session.map(|id| id.to_string()),
        });
        let disabled = match facts.standing.disabled {
            _ if !job.enabled => Some("enabled = false".to_owned()),
            reason => reason,
        };
        lines.push(JobLine {
            id: job.id.clone(),
            schedule: job.schedule.text().to_owned(),
            timezone: job.schedule.zone().to_owned(),
            work: work(job),
            next: match disabled {
                Some(_) => Vec::new(),
                None => next(job, now),
            },
            disabled,
            failures: facts.standing.failures,
            last,
        });
    }
    Ok(lines)
}

fn work(job: &CronJob) -> String {
    let (JobAction::Prompt(text) | JobAction::Command(text)) = &job.work.action;
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(80).collect();
    match &job.work.action {
        JobAction::Prompt(_) => short,
        JobAction::Command(_) => format!("$ {short}"),
    }
}

fn next(job: &CronJob, now: Timestamp) -> Vec<String> {
    let mut at = now;
    let mut slots = Vec::new();
    while slots.len() < NEXT
        && let Some(slot) = job.schedule.next(at)
    {
        slots.push(job.schedule.local(slot));
        at = slot;
    }
    slots
}

/// Formats the list for people.
pub fn job_lines(lines: &[JobLine]) -> String {
    if lines.is_empty() {
        return "No scheduled jobs yet; `windlass cron add --help` shows how to add one.".to_owned();
    }
    let lines = lines.iter().map(|line| {
        let mut text = format!(
            "{}  {} ({})  {}",
            line.id, line.schedule, line.timezone, line.work
        );
        match (&line.disabled, line.failures) {
            (Some(reason), _) => text.push_str(&format!("\n  disabled: {reason}")),
            (None, 0) => {}
            (None, failures) => text.push_str(&format!("\n  failed runs in a row: {failures}")),
        }
        if let Some(last) = &line.last {
            let colon = if last.detail.is_empty() { "" } else { ": " };
            text.push_str(&format!(
                "\n  last: {}  {}{colon}{}",
                last.time,
                last.state.words(),
                last.detail
            ));
        }
        if !line.next.is_empty() {
            text.push_str(&format!("\n  next: {}", line.next.join(", ")));
        }
        text
    });
    lines.collect::<Vec<_>>().join("\n")
}
