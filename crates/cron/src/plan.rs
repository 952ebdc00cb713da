//! The next step of a job. Pure: the job, the facts about it and the time go in, steps come out.
//!
//! Nothing is derived from when the last step was taken, so a clock that jumps, a machine that slept or a second
//! process changes nothing: every slot after the last recorded one is decided once.

use std::time::Duration;

use windlass_core::clock::Timestamp;
use windlass_core::log::{JobFacts, JobStanding, RunningSlot, SlotState};

use crate::job::{CronJob, Missed, Overlap};
use crate::schedule::duration_text;

/// Delay up to which a slot counts as on time.
const GRACE: Duration = Duration::from_secs(60);
/// Pauses after failed runs.
const PAUSES: [u64; 5] = [30, 60, 300, 900, 3_600];
/// Maximum number of runs of one job at the same time.
pub(crate) const MAX_PARALLEL: usize = 4;
/// LOOP-17: maximum number of processes that work on one slot.
pub(crate) const MAX_ATTEMPTS: u32 = 3;
/// Maximum number of missed slots that are counted.
const MAX_COUNTED: usize = 10_000;
/// Time before now from which slots are looked at when there are too many to count.
const RECENT: u64 = 86_400_000;
/// Time of a wait without an end.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// Steps of a job that are due, and the time of the next.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Time at which the job is to be looked at again.
    pub wake: Timestamp,
}

/// A step of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The process of this run has ended: it is marked as interrupted.
    Interrupt(RunningSlot),
    /// The process of this run has ended: another continues it.
    Continue(RunningSlot),
    /// This slot does not run.
    Record {
        /// The slot.
        slot: Timestamp,
        /// The reason.
        state: SlotState,
        /// The reason in words.
        detail: String,
    },
    /// This slot runs now.
    Run {
        /// The slot.
        slot: Timestamp,
        /// A note about a late start.
        detail: String,
        /// Money left for the run, in US dollars.
        budget_usd: Option<f64>,
    },
}

/// Slots that are due.
#[derive(Default)]
struct Due {
    newest: Option<Timestamp>,
    /// The slot before that, and the number of all slots before it.
    earlier: Option<Timestamp>,
    first: Timestamp,
    count: usize,
    is_counted: bool,
    /// Time of the next slot that is not due.
    next: Timestamp,
}

/// CRON-1, CRON-3, CRON-4: decides about every slot of a job that is due at `now`.
pub fn plan(job: &CronJob, facts: &JobFacts, now: Timestamp) -> JobPlan {
    let mut steps: Vec<Step> = facts.running.iter().filter_map(|run| lost(job, run)).collect();
    let alive = facts.running.iter().filter(|run| run.is_alive).count();
    let continued = steps
        .iter()
        .filter(|step| matches!(step, Step::Continue(_)))
        .count();
    let due = due(job, facts, now);
    let plan = |steps: Vec<Step>| JobPlan {
        steps,
        wake: due.next,
    };
    let Some(newest) = due.newest else {
        return plan(steps);
    };
    if let Some(reason) = disabled(job, facts) {
        let is_told = matches!(facts.last, Some((_, SlotState::SkippedDisabled)));
        if !is_told {
            steps.push(record(newest, SlotState::SkippedDisabled, reason));
        }
        return plan(steps);
    }
    let running = alive + continued;
    if let Some(earlier) = due.earlier {
        let is_queued = running > 0 && job.policy.overlap == Overlap::Queue;
        let state = if is_queued {
            SlotState::SkippedOverlap
        } else {
            SlotState::Missed
        };
        steps.push(record(earlier, state, due.told(job)));
    }
    if running > 0 && job.policy.overlap == Overlap::Queue {
        // The end of the run wakes the scheduler.
        return plan(steps);
    }
    steps.push(decide(job, facts, (newest, running), now));
    plan(steps)
}

/// Decides about the newest slot that is due.
fn decide(job: &CronJob, facts: &JobFacts, (slot, running): (Timestamp, usize), now: Timestamp) -> Step {
    if let Some(retry_at) = facts.standing.retry_at.filter(|retry_at| now < *retry_at) {
        let until = job.schedule.local(retry_at);
        let detail = format!(
            "{} failed runs in a row: no run before {until}",
            facts.standing.failures
        );
        return record(slot, SlotState::SkippedBackoff, detail);
    }
    let left = job.limits.max_cost_per_day_usd.map(|most| most - facts.spent_usd);
    if let Some(most) = job
        .limits
        .max_cost_per_day_usd
        .filter(|_| left.is_some_and(|left| left <= 0.0))
    {
        let detail = format!("${:.4} of ${most:.2} for the day are spent", facts.spent_usd);
        return record(slot, SlotState::SkippedBudget, detail);
    }
    let most = if job.policy.overlap == Overlap::Parallel {
        MAX_PARALLEL
    } else {
        1
    };
    if running >= most {
        let detail = if most == 1 {
            "the previous run has not ended".to_owned()
        } else {
            format!("{running} runs have not ended")
        };
        return record(slot, SlotState::SkippedOverlap, detail);
    }
    let late = lateness(job, facts, slot, now);
    if late > GRACE && is_too_late(job, slot, late) {
        let detail = format!(
            "no Windlass was running in time; the policy is `{}`",
            job.policy.missed
        );
        return record(slot, SlotState::Missed, detail);
    }
    let budget_usd = match (job.limits.max_cost_usd, left) {
        (Some(run), Some(left)) => Some(run.min(left)),
        (run, left) => run.or(left),
    };
    let whole = Duration::from_secs(late.as_secs());
    let detail = if late > GRACE {
        format!("{} late", duration_text(whole))
    } else {
        String::new()
    };
    Step::Run {
        slot,
        detail,
        budget_usd,
    }
}

/// Returns how late a slot is. A slot that waited for the previous run is not late.
fn lateness(job: &CronJob, facts: &JobFacts, slot: Timestamp, now: Timestamp) -> Duration {
    let mut since = slot.0 + jitter(job, slot);
    if job.policy.overlap == Overlap::Queue {
        since = since.max(facts.last_ended.map_or(0, |ended| ended.0));
    }
    Duration::from_millis(now.0.saturating_sub(since))
}

fn is_too_late(job: &CronJob, slot: Timestamp, late: Duration) -> bool {
    match job.policy.missed {
        Missed::Skip => true,
        Missed::Once => false,
        Missed::Within(limit) => late > limit,
        Missed::HalfInterval => {
            let next = job.schedule.next(slot);
            next.is_some_and(|next| late > Duration::from_millis((next.0 - slot.0) / 2))
        }
    }
}

/// Returns the step for a run whose process has ended.
fn lost(job: &CronJob, run: &RunningSlot) -> Option<Step> {
    if run.is_alive {
        return None;
    }
    let can_continue = job.policy.continues_interrupted && run.session.is_some();
    Some(match can_continue && run.attempts < MAX_ATTEMPTS {
        true => Step::Continue(run.clone()),
        false => Step::Interrupt(run.clone()),
    })
}

fn disabled(job: &CronJob, facts: &JobFacts) -> Option<String> {
    match &facts.standing.disabled {
        _ if !job.enabled => Some("enabled = false".to_owned()),
        Some(reason) => Some(reason.clone()),
        None => None,
    }
}

fn record(slot: Timestamp, state: SlotState, detail: String) -> Step {
    Step::Record { slot, state, detail }
}

/// Finds the slots after the last recorded one that are due.
fn due(job: &CronJob, facts: &JobFacts, now: Timestamp) -> Due {
    let last = facts.last.map_or(facts.since, |(last, _)| last.max(facts.since));
    let mut due = walk(job, last, now);
    if !due.is_counted {
        // Too many to count: only the recent ones matter.
        let first = due.first;
        due = walk(job, Timestamp(now.0.saturating_sub(RECENT)).max(last), now);
        due.first = first;
        due.is_counted = false;
    }
    due
}

fn walk(job: &CronJob, last: Timestamp, now: Timestamp) -> Due {
    let mut due = Due {
        is_counted: true,
        next: NEVER,
        ..Due::default()
    };
    let mut at = last;
    for _ in 0..MAX_COUNTED {
        let Some(slot) = job.schedule.next(at) else {
            return due;
        };
        let time = Timestamp(slot.0.saturating_add(jitter(job, slot)));
        if time > now {
            due.next = time;
            return due;
        }
        if let Some(before) = due.newest.replace(slot) {
            if due.count == 0 {
                due.first = before;
            }
            due.earlier = Some(before);
            due.count += 1;
        }
        at = slot;
    }
    due.is_counted = false;
    due
}

impl Due {
    /// Describes the slots before the newest.
    fn told(&self, job: &CronJob) -> String {
        let first = job.schedule.local(self.first);
        match self.count {
            1 => "no run at this time".to_owned(),
            count if self.is_counted => format!("{count} slots from {first} on"),
            _ => format!("more than {MAX_COUNTED} slots from {first} on"),
        }
    }
}

/// Returns the delay of a slot in milliseconds: the same in every process.
fn jitter(job: &CronJob, slot: Timestamp) -> u64 {
    let most = u64::try_from(job.policy.jitter.as_millis()).unwrap_or(u64::MAX);
    if most == 0 {
        return 0;
    }
    // FNV-1a over the job and the slot.
    let bytes = job.id.bytes().chain(slot.0.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 8) % most
}

/// Returns the standing of a job after a run, and a notice if that disables the job.
pub fn standing(
    job: &CronJob,
    before: &JobStanding,
    state: SlotState,
    now: Timestamp,
) -> (JobStanding, Option<String>) {
    if !state.is_failure() {
        return (JobStanding::default(), None);
    }
    let failures = before.failures.saturating_add(1);
    let is_over = job.policy.disable_after > 0 && failures >= job.policy.disable_after;
    let reason = format!(
        "{failures} runs in a row failed; `windlass cron enable {}` starts it again",
        job.id
    );
    let standing = JobStanding {
        failures,
        retry_at: Some(Timestamp(now.0 + pause(failures))),
        disabled: is_over.then(|| reason.clone()),
    };
    let notice = is_over.then(|| format!("{}: disabled: {reason}", job.id));
    (standing, notice)
}

/// Returns the pause after this many failures, in milliseconds.
pub(crate) fn pause(failures: u32) -> u64 {
    let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    let last = PAUSES.len() - 1;
    PAUSES.get(index.min(last)).copied().unwrap_or_default() * 1000
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
