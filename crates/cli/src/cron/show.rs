//! Shows jobs, slots and schedules.

use serde_json::json;
use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};
use windlass_core::log::SlotRecord;
use windlass_cron::{JobSet, Schedule, job_lines, job_list};
use windlass_service::format::dollars;

use super::{context, find, jobs};
use crate::exit::Exit;
use crate::session_choice::{self, problem};
use crate::sessions::print_json;
use crate::terminal::{plain, say, tell};

/// Maximum number of slots printed at a time.
const MAX_SLOTS: usize = 10_000;

/// Lists the jobs.
pub(super) async fn list(json: bool) -> Result<Exit, Problem> {
    let jobs = jobs()?;
    let store = session_choice::store()?;
    let lines = job_list(&jobs, &*store, environment::clock().now());
    let lines = lines.await.map_err(problem)?;
    if json {
        return print_json(&lines);
    }
    say!("{}", plain(&job_lines(&lines)));
    Ok(Exit::Ok)
}

/// Shows past slots.
pub(super) async fn logs(job: Option<&str>, limit: usize, output: bool, json: bool) -> Result<Exit, Problem> {
    let store = session_choice::store()?;
    let found = store.slots(job, limit.min(MAX_SLOTS)).await.map_err(problem)?;
    if json {
        return print_json(&found);
    }
    // The jobs know the zones; slots of removed jobs are shown in the zone of the machine.
    let mut known = JobSet::new(context()?);
    known.refresh();
    if let (Some(job), true) = (job, found.is_empty()) {
        find(&known, job)?;
    }
    if found.is_empty() {
        say!("No slots yet: no job was due.");
    }
    let local = Schedule::parse("@daily", None).map_err(invalid)?;
    for record in &found {
        let own = known.jobs().iter().find(|job| job.id == record.key.job);
        show(record, own.map_or(&local, |job| &job.schedule), output);
    }
    Ok(Exit::Ok)
}

fn show(record: &SlotRecord, schedule: &Schedule, output: bool) {
    let time = schedule.local(record.key.slot);
    let took = record
        .ended_at
        .filter(|_| record.ended_at > Some(record.started_at))
        .map(|ended| {
            let seconds = ended.0.saturating_sub(record.started_at.0) / 1000;
            format!("  {seconds} s")
        });
    let cost = (record.cost_usd > 0.0).then(|| format!("  {}", dollars(record.cost_usd)));
    let cost = cost.unwrap_or_default();
    let session = record.session.as_ref().map(|id| format!("  session {id}"));
    let detail = if record.detail.is_empty() {
        String::new()
    } else {
        format!("  {}", record.detail)
    };
    let line = format!(
        "{time}  {:<16} {:<19}{}{cost}{}{detail}",
        record.key.job,
        record.state.words(),
        took.unwrap_or_default(),
        session.unwrap_or_default(),
    );
    say!("{}", plain(&line));
    for delivery in &record.deliveries {
        let why = if delivery.detail.is_empty() {
            String::new()
        } else {
            format!(": {}", delivery.detail)
        };
        say!(
            "    {} {}{}",
            delivery.state,
            plain(&delivery.target),
            plain(&why)
        );
    }
    if output {
        for line in record.output.lines() {
            say!("    {}", plain(line));
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> Problem {
    Problem::new(ProblemKind::Config, error.to_string())
}

/// CRON-5: prints the next slots of a job or a schedule.
pub(super) fn test(what: &str, timezone: Option<&str>, limit: usize, json: bool) -> Result<Exit, Problem> {
    let mut known = JobSet::new(context()?);
    known.refresh();
    let job = known.jobs().iter().find(|job| job.id == what);
    let schedule = match job {
        Some(job) => match timezone {
            None => job.schedule.clone(),
            zone => Schedule::parse(job.schedule.text(), zone).map_err(invalid)?,
        },
        None => Schedule::parse(what, timezone).map_err(|error| {
            if let Some(broken) = known.error() {
                tell!("warning: {}", plain(&broken.to_string()));
            }
            invalid(error)
        })?,
    };
    let mut at = environment::clock().now();
    let mut slots = Vec::new();
    for _ in 0..limit.min(MAX_SLOTS) {
        let Some(slot) = schedule.next_slot(at) else { break };
        at = slot.time;
        slots.push(slot);
    }
    if json {
        let slots = slots.iter().map(|slot| {
            json!({ "slot": slot.time.0, "time": schedule.local(slot.time), "zone": schedule.zone(), "note": slot.note })
        });
        return print_json(&slots.collect::<Vec<_>>());
    }
    say!("{} in {}", plain(schedule.text()), schedule.zone());
    for slot in &slots {
        let note = slot.note.as_ref().map(|note| format!("  {note}"));
        say!("  {}{}", schedule.local(slot.time), note.unwrap_or_default());
    }
    Ok(Exit::Ok)
}
