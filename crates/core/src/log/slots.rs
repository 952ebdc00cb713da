//! Slots of scheduled jobs: the times at which a job was due, and what became of each.
//!
//! A slot is claimed before its run starts, and only one process can claim it. So a job runs at most once per slot,
//! whatever happens to the process, and a slot that did not run has a reason.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::LogError;
use crate::clock::Timestamp;
use crate::id::SessionId;

/// A job and the time at which it was due.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlotKey {
    /// The job.
    pub job: String,
    /// The time.
    pub slot: Timestamp,
}

/// Cause of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotCause {
    /// The schedule.
    #[default]
    Schedule,
    /// A person. Such a slot does not count for the schedule.
    Manual,
}

/// State of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotState {
    /// The run has not ended, or its process has.
    Running,
    /// The run succeeded.
    Ran,
    /// No process was there in time.
    Missed,
    /// The previous run had not ended.
    SkippedOverlap,
    /// The job was disabled.
    SkippedDisabled,
    /// The money for the day was spent.
    SkippedBudget,
    /// Earlier runs had failed, and the pause after that was not over.
    SkippedBackoff,
    /// The condition of the job did not hold.
    SkippedCondition,
    /// The process ended before the run did.
    Interrupted,
    /// The run failed.
    Failed,
    /// The run had a question that only a person can answer.
    NeedsPerson,
}

impl SlotState {
    /// Every state with its name in the store.
    pub const NAMES: [(Self, &'static str); 11] = [
        (Self::Running, "running"),
        (Self::Ran, "ran"),
        (Self::Missed, "missed"),
        (Self::SkippedOverlap, "skipped_overlap"),
        (Self::SkippedDisabled, "skipped_disabled"),
        (Self::SkippedBudget, "skipped_budget"),
        (Self::SkippedBackoff, "skipped_backoff"),
        (Self::SkippedCondition, "skipped_condition"),
        (Self::Interrupted, "interrupted"),
        (Self::Failed, "failed"),
        (Self::NeedsPerson, "needs_person"),
    ];

    /// Returns the name in the store.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(state, _)| *state == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the state with this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(state, _)| *state)
    }

    /// Returns the state as people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::SkippedOverlap => "skipped (overlap)",
            Self::SkippedDisabled => "skipped (disabled)",
            Self::SkippedBudget => "skipped (budget)",
            Self::SkippedBackoff => "skipped (back-off)",
            Self::SkippedCondition => "skipped (condition)",
            Self::NeedsPerson => "needs a person",
            other => other.name(),
        }
    }

    /// Returns true if the run did not do its work, so that the next one waits longer.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::NeedsPerson)
    }
}

/// A slot to be claimed, or recorded as one that does not run.
#[derive(Debug, Clone)]
pub struct NewSlot {
    /// The slot.
    pub key: SlotKey,
    /// Cause of the run.
    pub cause: SlotCause,
    /// `Running` for a run that starts now.
    pub state: SlotState,
    /// The process that runs it.
    pub owner: String,
    /// Time by which the run has ended at the latest.
    pub until: Timestamp,
    /// Session of the run.
    pub session: Option<SlotSession>,
    /// Maximum number of runs of the job at the same time, this one included.
    pub max_running: usize,
    /// Reason of the state, on one line.
    pub detail: String,
    /// Time of the claim.
    pub time: Timestamp,
}

/// Session of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotSession {
    /// Folder of the session.
    pub place: String,
    /// Title of a new session.
    pub title: String,
    /// Key of a session that continues from run to run; a new session for each run if `None`.
    pub key: Option<String>,
}

/// Result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The slot is ours, and its session exists.
    Won(Option<SessionId>),
    /// The slot is already recorded.
    Taken,
    /// As many runs of the job as allowed have not ended. Nothing was recorded.
    Overlap,
}

/// End of a run.
#[derive(Debug, Clone)]
pub struct SlotEnd {
    /// The slot.
    pub key: SlotKey,
    /// The process that claimed it.
    pub owner: String,
    /// State of the slot from now on.
    pub state: SlotState,
    /// Reason of the state, on one line.
    pub detail: String,
    /// Answer of the model, or output of the command.
    pub output: String,
    /// Standing of the job from now on; unchanged if `None`.
    pub standing: Option<JobStanding>,
    /// Places that get the result, each with its text.
    pub deliveries: Vec<(String, String)>,
    /// Time of the end.
    pub time: Timestamp,
}

/// Failures of a job, and their consequences.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobStanding {
    /// Number of failed runs since the last that succeeded.
    pub failures: u32,
    /// Time before which no run starts.
    pub retry_at: Option<Timestamp>,
    /// Reason why the job was disabled.
    pub disabled: Option<String>,
}

/// Question about the facts of a job.
#[derive(Debug, Clone)]
pub struct JobQuery {
    /// The job.
    pub job: String,
    /// Everything that decides about its slots, as text. A change does not make earlier times due.
    pub definition: String,
    /// Time of the last change of the jobs.
    pub changed_at: Timestamp,
    /// Start of the day for which spending is added up.
    pub day: Timestamp,
    /// Number of runs whose sessions are kept; `None` for all.
    pub keep_sessions: Option<u32>,
}

/// Facts about a job from which its next step follows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFacts {
    /// Time from which its slots count.
    pub since: Timestamp,
    /// Its last slot of the schedule.
    pub last: Option<(Timestamp, SlotState)>,
    /// Runs without an end.
    pub running: Vec<RunningSlot>,
    /// End of the last run.
    pub last_ended: Option<Timestamp>,
    /// Failures and their consequences.
    pub standing: JobStanding,
    /// Cost of its runs since the start of the day, in US dollars.
    pub spent_usd: f64,
    /// Sessions of older runs that may be deleted, a few at a time.
    pub surplus: Vec<SessionId>,
}

/// Maximum number of sessions in [`JobFacts::surplus`].
pub const MAX_SURPLUS: usize = 20;
/// Time after the end of a run within which a change of its session belongs to the run, in milliseconds. After a
/// later one, the user works in the session, so it stays.
pub const RUN_GRACE_MS: u64 = 60_000;

/// A run without an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningSlot {
    /// The slot.
    pub slot: Timestamp,
    /// The process that claimed it.
    pub owner: String,
    /// True if that process is alive.
    pub is_alive: bool,
    /// Its session.
    pub session: Option<SessionId>,
    /// Number of processes that worked on it.
    pub attempts: u32,
}

/// A recorded slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotRecord {
    /// The slot.
    #[serde(flatten)]
    pub key: SlotKey,
    /// Cause of the run.
    pub cause: SlotCause,
    /// Its state.
    pub state: SlotState,
    /// Session of the run.
    pub session: Option<SessionId>,
    /// Time of the claim.
    pub started_at: Timestamp,
    /// Time of the end.
    pub ended_at: Option<Timestamp>,
    /// Cost in US dollars.
    pub cost_usd: f64,
    /// Reason of the state, on one line.
    pub detail: String,
    /// Answer of the model, or output of the command.
    pub output: String,
    /// Places that get the result.
    pub deliveries: Vec<DeliveryRecord>,
}

/// Delivery of a result to one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The place.
    pub target: String,
    /// `waiting`, `delivered` or `failed`.
    pub state: String,
    /// Number of attempts so far.
    pub attempts: u32,
    /// The last error.
    pub detail: String,
}

/// A result that is to be delivered now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Number of the delivery.
    pub id: i64,
    /// The slot.
    pub key: SlotKey,
    /// The place.
    pub target: String,
    /// The text.
    pub body: String,
    /// Number of attempts before this one.
    pub attempts: u32,
}

/// Outcome of an attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// It arrived.
    Yes,
    /// It did not. The next attempt is at this time.
    Again(Timestamp, String),
    /// It did not, and there is no further attempt.
    Never(String),
}

/// Stores the slots of jobs.
#[async_trait]
pub trait Slots: Send + Sync {
    /// Returns the facts about a job. Records a job that is new, and a change of its definition.
    ///
    /// # Errors
    /// Fails if the store cannot be used.
    async fn job_facts(&self, query: &JobQuery) -> Result<JobFacts, LogError>;

    /// Records a slot, unless it is recorded already. A session of the run is created, or found by its key, in the
    /// same transaction.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn claim_slot(&self, new: &NewSlot) -> Result<Claimed, LogError>;

    /// Takes over the run of a process that has ended. Returns false if another process was faster.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn take_over_slot(
        &self,
        key: &SlotKey,
        from: &str,
        owner: &str,
        until: Timestamp,
    ) -> Result<bool, LogError>;

    /// Records the end of a run, the standing of its job, and the deliveries of its result. Returns false, and
    /// changes nothing, if the slot belongs to another process by now.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn end_slot(&self, end: &SlotEnd) -> Result<bool, LogError>;

    /// Returns the last slots, newest first: of one job, or of all.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn slots(&self, job: Option<&str>, limit: usize) -> Result<Vec<SlotRecord>, LogError>;

    /// Sets the standing of a job.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn set_standing(&self, job: &str, standing: &JobStanding) -> Result<(), LogError>;
}

/// Stores the results that are to be delivered.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Returns a delivery that is due, and keeps other processes from it for a while.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn due_delivery(&self, owner: &str, now: Timestamp) -> Result<Option<Delivery>, LogError>;

    /// Records the outcome of an attempt.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn settle_delivery(&self, id: i64, outcome: &Delivered) -> Result<(), LogError>;

    /// Creates the session of a claimed slot, for a job whose condition is checked first. Returns `None` if the slot
    /// belongs to another process by now.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn link_slot(
        &self,
        key: &SlotKey,
        owner: &str,
        session: &SlotSession,
    ) -> Result<Option<SessionId>, LogError>;
}
