//! Scheduled jobs.
//!
//! - [`Schedule`] is when a job is due: cron patterns and readable forms, in a time zone.
//! - [`JobSet`] is the file of jobs, of which the last version without mistakes counts.
//! - [`plan()`] decides about the slots of a job. It is pure.
//! - [`Scheduler`] acts on that: it claims slots in the store, runs them, and delivers results.
//!
//! Any number of processes may run a scheduler over the same store. A slot is claimed in a transaction before its run
//! starts, so exactly one of them runs it.
//!
//! Deliberately absent: models, tools, processes and HTTP. They are behind [`JobRunner`] and [`Courier`].

pub mod file;
mod job;
mod plan;
mod report;
mod schedule;
mod scheduler;

pub use self::file::{JobFileContext, JobFileError, JobSet};
pub use self::job::{
    CronJob, DISABLE_AFTER, DeliveryTarget, JobAction, JobLimits, JobPolicy, JobWork, MAX_ITERATIONS, Missed,
    Overlap, TIMEOUT,
};
pub use self::plan::{JobPlan, Step, plan, standing};
pub use self::report::{JobLine, LastSlot, job_lines, job_list};
pub use self::schedule::{Schedule, ScheduleError, Slot, duration, duration_text};
pub use self::scheduler::{
    CommandEnd, Courier, JobReport, JobRunner, PromptRun, RunEnd, Scheduler, SchedulerPorts, query,
};
