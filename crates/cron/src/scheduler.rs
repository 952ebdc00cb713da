//! Acts on the plans of jobs: claims slots, starts runs, records their ends, and delivers results.

mod delivery;
mod run;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::id::SessionId;
use windlass_core::log::{
    Claimed, JobFacts, JobQuery, LogError, NewSlot, RunningSlot, SlotCause, SlotEnd, SlotKey, SlotSession,
    SlotState, Store,
};

use self::run::JobRun;
use crate::file::JobSet;
use crate::job::{CronJob, DeliveryTarget, Overlap};
use crate::plan::{MAX_PARALLEL, Step, plan};

/// Longest time between two looks at the jobs: the file may have changed, or a process ended.
const POLL: Duration = Duration::from_secs(15);
/// Maximum number of runs in this process at the same time.
const MAX_RUNS: usize = 8;
/// Time for canceled runs to end.
const LAST_CALL: Duration = Duration::from_secs(10);

/// Runs the work of jobs.
#[async_trait]
pub trait JobRunner: Send + Sync {
    /// Runs a command of a job in its folder, in the sandbox, under the job's permissions.
    ///
    /// # Errors
    /// Fails with the reason if the command was refused or could not be started.
    async fn command(
        &self,
        job: &CronJob,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, String>;

    /// Runs a prompt in a session that exists, with nobody to ask. Must return soon after `cancel`.
    async fn prompt(&self, run: PromptRun<'_>, cancel: &CancellationToken) -> RunEnd;

    /// Deletes the session of an old run, with the files that belong to it. One that is open stays.
    ///
    /// # Errors
    /// Fails with the reason.
    async fn forget(&self, session: &SessionId) -> Result<(), String>;
}

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// True for exit code 0.
    pub is_success: bool,
    /// Output of the command, with its exit code if it failed.
    pub output: String,
}

/// A prompt to be run.
#[derive(Debug, Clone, Copy)]
pub struct PromptRun<'a> {
    /// The job.
    pub job: &'a CronJob,
    /// Session of the run.
    pub session: &'a SessionId,
    /// The prompt.
    pub prompt: &'a str,
    /// Maximum cost, in US dollars.
    pub budget_usd: Option<f64>,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// State of the slot.
    pub state: SlotState,
    /// Reason of the state, on one line.
    pub detail: String,
    /// Answer of the model, or output of the command.
    pub output: String,
}

/// Takes results to where they belong. Apart from the run: a delivery that fails is tried again, and the run is not.
#[async_trait]
pub trait Courier: Send + Sync {
    /// Delivers a result. May be called again for the same result, if the process ended meanwhile.
    ///
    /// # Errors
    /// Fails with the reason.
    async fn deliver(&self, target: &DeliveryTarget, report: &JobReport) -> Result<(), String>;
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The job.
    pub job: String,
    /// Time of the slot, in the zone of the job.
    pub time: String,
    /// The slot in milliseconds since the Unix epoch. With the job it identifies the run.
    pub slot: u64,
    /// State of the slot.
    pub state: SlotState,
    /// Reason of the state.
    pub detail: String,
    /// Session of the run.
    pub session: Option<String>,
    /// Answer of the model, or output of the command.
    pub output: String,
}

/// Connections of a scheduler.
#[derive(Clone)]
pub struct SchedulerPorts {
    /// Store of the slots.
    pub store: Arc<dyn Store>,
    /// Runs the work.
    pub runner: Arc<dyn JobRunner>,
    /// Delivers the results.
    pub courier: Arc<dyn Courier>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Name of this process as an owner of slots.
    pub owner: String,
    /// Tells the user what happens, one line at a time.
    pub tell: Arc<dyn Fn(String) + Send + Sync>,
}

/// Runs the jobs of a file.
pub struct Scheduler {
    ports: SchedulerPorts,
    jobs: JobSet,
    runs: JoinSet<Option<RunEnd>>,
    /// The task that delivers results, if there is one.
    deliveries: JoinSet<()>,
    stop: CancellationToken,
    /// The last failure of the store, which is told once.
    failure: Option<String>,
}

impl Scheduler {
    /// Creates a scheduler. It ends when `stop` is canceled.
    pub fn new(ports: SchedulerPorts, jobs: JobSet, stop: CancellationToken) -> Self {
        Self {
            ports,
            jobs,
            runs: JoinSet::new(),
            deliveries: JoinSet::new(),
            stop,
            failure: None,
        }
    }

    /// CRON-2: runs jobs when they are due, until the scheduler is stopped.
    pub async fn run(mut self) {
        while !self.stop.is_cancelled() {
            let wake = self.look().await;
            let wait = Duration::from_millis(wake.0.saturating_sub(self.ports.clock.now().0)).min(POLL);
            let clock = Arc::clone(&self.ports.clock);
            tokio::select! {
                () = self.stop.cancelled() => {}
                _ = self.runs.join_next(), if !self.runs.is_empty() => {}
                () = clock.sleep(wait) => {}
            }
        }
        self.finish().await;
    }

    /// Runs what is due now, and returns when all of it has ended: for a line in a crontab. Returns false if a run
    /// failed.
    pub async fn run_due(mut self) -> bool {
        self.look().await;
        let mut is_good = true;
        while let Some(ended) = self.runs.join_next().await {
            let state = ended.ok().flatten().map(|end| end.state);
            is_good &= !state.is_some_and(SlotState::is_failure);
            // Another run may have waited for this one.
            if !self.stop.is_cancelled() {
                self.look().await;
            }
        }
        while self.deliveries.join_next().await.is_some() {}
        delivery::deliver_all(&self.ports, &self.stop).await;
        is_good && self.failure.is_none()
    }

    /// Runs a job now, whatever its schedule, and returns the end. `None` if as many runs as allowed have not ended.
    ///
    /// # Errors
    /// Fails if the store cannot be used.
    pub async fn run_now(mut self, job: &CronJob) -> Result<Option<RunEnd>, LogError> {
        let now = self.ports.clock.now();
        let facts = self.facts(job, now).await?;
        let slot = (now, SlotCause::Manual);
        let run = self
            .claim(job, &facts, slot, "by hand", job.limits.max_cost_usd)
            .await?;
        let Some(run) = run else { return Ok(None) };
        let end = run.execute().await;
        delivery::deliver_all(&self.ports, &self.stop).await;
        self.finish().await;
        Ok(end)
    }

    async fn finish(&mut self) {
        self.stop.cancel();
        let clock = Arc::clone(&self.ports.clock);
        tokio::select! {
            () = async {
                while self.runs.join_next().await.is_some() {}
                while self.deliveries.join_next().await.is_some() {}
            } => {}
            () = clock.sleep(LAST_CALL) => {}
        }
    }

    /// Looks at every job, and acts. Returns the time of the next look.
    async fn look(&mut self) -> Timestamp {
        if self.jobs.refresh()
            && let Some(error) = self.jobs.error()
        {
            (self.ports.tell)(format!("{error}\nthe jobs stay as they were before this change"));
        }
        let mut wake = Timestamp(u64::MAX);
        if self.jobs.jobs().is_empty() && self.jobs.changed_at().is_none() {
            // Most users have no jobs, and pay nothing for it.
            return wake;
        }
        for job in self.jobs.jobs().to_vec() {
            match self.step(&job).await {
                Ok(next) => {
                    self.failure = None;
                    wake = wake.min(next);
                }
                Err(error) => self.tell_failure(&error),
            }
        }
        while self.deliveries.try_join_next().is_some() {}
        if self.deliveries.is_empty() {
            let (ports, stop) = (self.ports.clone(), self.stop.clone());
            self.deliveries
                .spawn(async move { delivery::deliver_all(&ports, &stop).await });
        }
        wake
    }

    fn tell_failure(&mut self, error: &LogError) {
        let text = error.to_string();
        if self.failure.as_ref() != Some(&text) {
            (self.ports.tell)(format!("scheduled jobs: {text}"));
            self.failure = Some(text);
        }
    }

    async fn facts(&self, job: &CronJob, now: Timestamp) -> Result<JobFacts, LogError> {
        let changed_at = self.jobs.changed_at();
        self.ports.store.job_facts(&query(job, changed_at, now)).await
    }

    /// Takes the steps of a job that are due. Returns the time of the next.
    async fn step(&mut self, job: &CronJob) -> Result<Timestamp, LogError> {
        let now = self.ports.clock.now();
        let facts = self.facts(job, now).await?;
        for session in &facts.surplus {
            // One that is open now is deleted at a later look.
            let _ = self.ports.runner.forget(session).await;
        }
        let plan = plan(job, &facts, now);
        for step in plan.steps {
            match step {
                Step::Interrupt(lost) => self.interrupt(job, &lost).await?,
                Step::Continue(lost) => self.take_over(job, &facts, lost).await?,
                Step::Record { slot, state, detail } => {
                    let new = self.new_slot(job, (slot, SlotCause::Schedule), state, detail);
                    if self.ports.store.claim_slot(&new).await? != Claimed::Taken {
                        let time = job.schedule.local(slot);
                        (self.ports.tell)(format!("{}: {time}: {}: {}", job.id, state.words(), new.detail));
                    }
                }
                Step::Run {
                    slot,
                    detail,
                    budget_usd,
                } => {
                    if self.runs.len() >= MAX_RUNS {
                        // The slot stays due, and is claimed when a run has ended.
                        return Ok(plan.wake);
                    }
                    let slot = (slot, SlotCause::Schedule);
                    if let Some(run) = self.claim(job, &facts, slot, &detail, budget_usd).await? {
                        self.runs.spawn(run.execute());
                    }
                }
            }
        }
        Ok(plan.wake)
    }

    fn new_slot(
        &self,
        job: &CronJob,
        (slot, cause): (Timestamp, SlotCause),
        state: SlotState,
        detail: String,
    ) -> NewSlot {
        let time = self.ports.clock.now();
        NewSlot {
            key: SlotKey {
                job: job.id.clone(),
                slot,
            },
            cause,
            state,
            owner: self.ports.owner.clone(),
            until: until(job, time),
            session: None,
            max_running: match job.policy.overlap {
                Overlap::Parallel => MAX_PARALLEL,
                Overlap::Skip | Overlap::Queue => 1,
            },
            detail,
            time,
        }
    }

    /// Claims a slot. `None` if another process has it.
    async fn claim(
        &self,
        job: &CronJob,
        facts: &JobFacts,
        slot: (Timestamp, SlotCause),
        detail: &str,
        budget_usd: Option<f64>,
    ) -> Result<Option<JobRun>, LogError> {
        let session = session(job, slot.0);
        let new = NewSlot {
            // With a condition, there is a session only if it holds.
            session: job.work.when.is_none().then(|| session.clone()),
            ..self.new_slot(job, slot, SlotState::Running, detail.to_owned())
        };
        let Claimed::Won(id) = self.ports.store.claim_slot(&new).await? else {
            return Ok(None);
        };
        let time = job.schedule.local(slot.0);
        let note = if detail.is_empty() {
            String::new()
        } else {
            format!(" ({detail})")
        };
        (self.ports.tell)(format!("{}: {time}: started{note}", job.id));
        Ok(Some(JobRun {
            ports: self.ports.clone(),
            job: job.clone(),
            key: new.key,
            session: id,
            new_session: session,
            is_continued: false,
            standing: facts.standing.clone(),
            budget_usd,
            stop: self.stop.child_token(),
        }))
    }

    /// CRON-3: marks a run whose process has ended.
    async fn interrupt(&self, job: &CronJob, lost: &RunningSlot) -> Result<(), LogError> {
        let key = SlotKey {
            job: job.id.clone(),
            slot: lost.slot,
        };
        let end = RunEnd {
            state: SlotState::Interrupted,
            detail: "the process ended before the run did".to_owned(),
            output: String::new(),
        };
        let session = lost.session.as_ref().map(ToString::to_string);
        let end = SlotEnd {
            deliveries: delivery::deliveries(job, &key, &end, session),
            key,
            owner: lost.owner.clone(),
            state: end.state,
            detail: end.detail,
            output: end.output,
            standing: None,
            time: self.ports.clock.now(),
        };
        if self.ports.store.end_slot(&end).await? {
            let time = job.schedule.local(lost.slot);
            (self.ports.tell)(format!("{}: {time}: interrupted: {}", job.id, end.detail));
        }
        Ok(())
    }

    /// Continues a run whose process has ended, in its session.
    async fn take_over(
        &mut self,
        job: &CronJob,
        facts: &JobFacts,
        lost: RunningSlot,
    ) -> Result<(), LogError> {
        let key = SlotKey {
            job: job.id.clone(),
            slot: lost.slot,
        };
        let until = until(job, self.ports.clock.now());
        let store = &self.ports.store;
        let is_ours = store
            .take_over_slot(&key, &lost.owner, &self.ports.owner, until)
            .await?;
        if !is_ours {
            return Ok(());
        }
        let time = job.schedule.local(lost.slot);
        (self.ports.tell)(format!("{}: {time}: continued after an interruption", job.id));
        let run = JobRun {
            ports: self.ports.clone(),
            job: job.clone(),
            key,
            session: lost.session,
            new_session: session(job, lost.slot),
            is_continued: true,
            standing: facts.standing.clone(),
            budget_usd: job.limits.max_cost_usd,
            stop: self.stop.child_token(),
        };
        self.runs.spawn(run.execute());
        Ok(())
    }
}

/// Returns the question about the facts of a job.
pub fn query(job: &CronJob, changed_at: Option<Timestamp>, now: Timestamp) -> JobQuery {
    JobQuery {
        job: job.id.clone(),
        definition: job.definition(),
        changed_at: changed_at.map_or(now, |changed| changed.min(now)),
        day: job.schedule.day(now),
        keep_sessions: Some(job.policy.keep_sessions).filter(|keep| *keep > 0),
    }
}

/// Returns the time by which a run that starts now has ended.
fn until(job: &CronJob, now: Timestamp) -> Timestamp {
    let most = u64::try_from((job.limits.timeout + 3 * LAST_CALL).as_millis());
    Timestamp(now.0.saturating_add(most.unwrap_or(u64::MAX)))
}

fn session(job: &CronJob, slot: Timestamp) -> SlotSession {
    let local = job.schedule.local(slot);
    let minute: String = local.chars().take("2026-01-01 00:00".len()).collect();
    let key = job.session_key();
    SlotSession {
        place: job.work.folder.display().to_string(),
        title: match key {
            Some(_) => format!("[cron] {}", job.id),
            None => format!("[cron] {} - {minute}", job.id),
        },
        key,
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
