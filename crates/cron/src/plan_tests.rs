use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp as Instant, ToSpan};

use super::*;
use crate::file::{JobFileContext, parse};

const ZONES: [&str; 12] = [
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Australia/Adelaide",
    "Pacific/Chatham",
    "Asia/Kolkata",
    "Africa/Cairo",
    "UTC",
];

/// Returns a job with these keys.
fn job(keys: &str) -> CronJob {
    let text = format!("[jobs.test]\nfolder = \"/tmp\"\nprompt = \"go\"\n{keys}");
    let context = JobFileContext {
        path: "cron.toml".into(),
        home: None,
    };
    parse(&text, &context).unwrap().remove(0)
}

fn at(text: &str) -> Timestamp {
    let instant: Instant = text.parse().unwrap();
    Timestamp(instant.as_millisecond().unsigned_abs())
}

fn since(text: &str) -> JobFacts {
    JobFacts {
        since: at(text),
        ..JobFacts::default()
    }
}

fn running(slot: &str, is_alive: bool, attempts: u32) -> RunningSlot {
    RunningSlot {
        slot: at(slot),
        owner: "host/1/1/x".to_owned(),
        is_alive,
        session: Some("s".into()),
        attempts,
    }
}

/// Formats the steps of a plan, one line each.
fn steps(job: &CronJob, facts: &JobFacts, now: &str) -> Vec<String> {
    let local = |slot: Timestamp| {
        job.schedule
            .local(slot)
            .chars()
            .skip(5)
            .take(11)
            .collect::<String>()
    };
    let plan = plan(job, facts, at(now));
    assert!(plan.wake > at(now), "it wakes later");
    plan.steps
        .iter()
        .map(|step| match step {
            Step::Interrupt(run) => format!("interrupt {}", local(run.slot)),
            Step::Continue(run) => format!("continue {}", local(run.slot)),
            Step::Record { slot, state, .. } => format!("{} {}", state.name(), local(*slot)),
            Step::Run { slot, detail, .. } => format!("run {} {detail}", local(*slot)).trim().to_owned(),
        })
        .collect()
}

const DAILY: &str = "schedule = \"daily at 09:00\"\ntimezone = \"UTC\"\n";
const HOURLY: &str = "schedule = \"@hourly\"\ntimezone = \"UTC\"\n";

/// CRON-1, CRON-3: a slot runs once, on time; the last recorded slot decides, so that a clock that goes back repeats
/// nothing.
#[test]
fn a_slot_runs_once() {
    let job = job(DAILY);
    let mut facts = since("2026-05-01T12:00:00Z");
    assert_eq!(steps(&job, &facts, "2026-05-02T08:59:59Z"), [""; 0]);
    assert_eq!(
        plan(&job, &facts, at("2026-05-02T08:59:59Z")).wake,
        at("2026-05-02T09:00:00Z")
    );
    assert_eq!(steps(&job, &facts, "2026-05-02T09:00:00Z"), ["run 05-02 09:00"]);
    facts.last = Some((at("2026-05-02T09:00:00Z"), SlotState::Ran));
    assert_eq!(steps(&job, &facts, "2026-05-02T09:00:01Z"), [""; 0]);
    // The clock was put back by an hour, and later by a day.
    assert_eq!(steps(&job, &facts, "2026-05-02T08:59:59Z"), [""; 0]);
    assert_eq!(steps(&job, &facts, "2026-05-01T09:00:00Z"), [""; 0]);
}

/// CRON-3: the policy for missed slots: at most one runs late, and the others are recorded.
#[test]
fn missed_slots_follow_the_policy() {
    let facts = since("2026-05-01T12:00:00Z");
    for (policy, now, expected) in [
        ("", "2026-05-02T20:00:00Z", vec!["run 05-02 09:00 11h late"]),
        ("", "2026-05-02T21:30:00Z", vec!["missed 05-02 09:00"]),
        (
            "missed = \"skip\"",
            "2026-05-02T09:00:59Z",
            vec!["run 05-02 09:00"],
        ),
        (
            "missed = \"skip\"",
            "2026-05-02T09:02:00Z",
            vec!["missed 05-02 09:00"],
        ),
        (
            "missed = \"once\"",
            "2026-05-06T08:00:00Z",
            vec!["missed 05-04 09:00", "run 05-05 09:00 23h late"],
        ),
        (
            "missed = \"once within 2h\"",
            "2026-05-02T11:00:00Z",
            vec!["run 05-02 09:00 2h late"],
        ),
        (
            "missed = \"once within 2h\"",
            "2026-05-04T11:01:00Z",
            vec!["missed 05-03 09:00", "missed 05-04 09:00"],
        ),
    ] {
        let job = job(&format!("{DAILY}{policy}"));
        assert_eq!(steps(&job, &facts, now), expected, "{policy} at {now}");
    }
    // A machine that was off for a year counts no further than it has to.
    let often = job("schedule = \"every 1s\"\n");
    let steps = plan(&often, &since("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z")).steps;
    let Step::Record { detail, .. } = &steps[0] else {
        panic!("{steps:?}")
    };
    assert!(
        detail.starts_with("more than 10000 slots from 2025-01-01"),
        "{detail}"
    );
}

/// CRON-4: overlap is skipped, queued or parallel, as the job says.
#[test]
fn overlap_follows_the_policy() {
    let facts = |alive: usize| JobFacts {
        last: Some((at("2026-05-02T09:00:00Z"), SlotState::Running)),
        running: vec![running("2026-05-02T09:00:00Z", true, 1); alive],
        ..since("2026-05-01T12:00:00Z")
    };
    let now = "2026-05-02T10:00:00Z";
    assert_eq!(
        steps(&job(HOURLY), &facts(1), now),
        ["skipped_overlap 05-02 10:00"]
    );
    let queue = job(&format!("{HOURLY}overlap = \"queue\""));
    assert_eq!(steps(&queue, &facts(1), now), [""; 0]);
    assert_eq!(
        steps(&queue, &facts(1), "2026-05-02T12:00:00Z"),
        ["skipped_overlap 05-02 11:00"]
    );
    // The run has ended late: the slot that waited is not late.
    let ended = JobFacts {
        last: Some((at("2026-05-02T11:00:00Z"), SlotState::SkippedOverlap)),
        last_ended: Some(at("2026-05-02T12:55:00Z")),
        ..facts(0)
    };
    assert_eq!(steps(&queue, &ended, "2026-05-02T12:55:00Z"), ["run 05-02 12:00"]);
    let parallel = job(&format!("{HOURLY}overlap = \"parallel\""));
    assert_eq!(steps(&parallel, &facts(3), now), ["run 05-02 10:00"]);
    assert_eq!(
        steps(&parallel, &facts(MAX_PARALLEL), now),
        ["skipped_overlap 05-02 10:00"]
    );
}

/// CRON-3, LOOP-17: a run whose process ended is marked, and continued only if the job says so, a few times.
#[test]
fn interrupted_runs_are_marked_or_continued() {
    let lost = |attempts| JobFacts {
        last: Some((at("2026-05-02T09:00:00Z"), SlotState::Running)),
        running: vec![running("2026-05-02T09:00:00Z", false, attempts)],
        ..since("2026-05-01T12:00:00Z")
    };
    let now = "2026-05-02T09:10:00Z";
    assert_eq!(steps(&job(DAILY), &lost(1), now), ["interrupt 05-02 09:00"]);
    let going = job(&format!("{DAILY}on_interrupted = \"continue\""));
    assert_eq!(steps(&going, &lost(1), now), ["continue 05-02 09:00"]);
    assert_eq!(steps(&going, &lost(MAX_ATTEMPTS), now), ["interrupt 05-02 09:00"]);
    // A slot that is due meanwhile overlaps with the continued run.
    let both = steps(&going, &lost(1), "2026-05-03T09:00:00Z");
    assert_eq!(both, ["continue 05-02 09:00", "skipped_overlap 05-03 09:00"]);
}

/// CRON-4: after failures the next run waits, 30 s up to 60 min, and the job is disabled after a number of them.
#[test]
fn failures_delay_and_disable() {
    let job = job("schedule = \"every 10s\"\ndisable_after = 7\n");
    let now = at("2026-05-02T09:00:00Z");
    let mut before = JobStanding::default();
    let mut pauses = Vec::new();
    for number in 1..=7 {
        let (after, notice) = standing(&job, &before, SlotState::Failed, now);
        pauses.push((after.retry_at.unwrap().0 - now.0) / 1000);
        assert_eq!(notice.is_some(), number == 7, "{number}");
        before = after;
    }
    assert_eq!(pauses, [30, 60, 300, 900, 3600, 3600, 3600]);
    let facts = |standing: &JobStanding| JobFacts {
        standing: standing.clone(),
        ..since("2026-05-02T08:59:55Z")
    };
    assert_eq!(
        steps(&job, &facts(&before), "2026-05-02T09:00:00Z"),
        ["skipped_disabled 05-02 09:00"]
    );
    let (paused, _) = standing(&job, &JobStanding::default(), SlotState::NeedsPerson, now);
    assert_eq!(
        steps(&job, &facts(&paused), "2026-05-02T09:00:00Z"),
        ["skipped_backoff 05-02 09:00"]
    );
    let after = JobFacts {
        last: Some((at("2026-05-02T09:00:20Z"), SlotState::SkippedBackoff)),
        ..facts(&paused)
    };
    assert_eq!(steps(&job, &after, "2026-05-02T09:00:30Z"), ["run 05-02 09:00"]);
    let (cured, _) = standing(&job, &before, SlotState::Ran, now);
    assert_eq!(cured, JobStanding::default());
}

/// CRON-3, CRON-4: a disabled job records one slot, and a job whose money for the day is spent records each.
#[test]
fn disabled_and_broke_jobs_say_why() {
    let off = job(&format!("{DAILY}enabled = false"));
    let mut facts = since("2026-05-01T12:00:00Z");
    assert_eq!(
        steps(&off, &facts, "2026-05-02T09:00:00Z"),
        ["skipped_disabled 05-02 09:00"]
    );
    facts.last = Some((at("2026-05-02T09:00:00Z"), SlotState::SkippedDisabled));
    assert_eq!(steps(&off, &facts, "2026-05-03T09:00:00Z"), [""; 0]);
    let capped = job(&format!("{DAILY}max_cost_usd = 0.5\nmax_cost_per_day_usd = 2"));
    let spent = |spent_usd| JobFacts {
        spent_usd,
        ..since("2026-05-01T12:00:00Z")
    };
    assert_eq!(
        steps(&capped, &spent(2.0), "2026-05-02T09:00:00Z"),
        ["skipped_budget 05-02 09:00"]
    );
    for (spent_usd, expected) in [(0.0, 0.5), (1.8, 0.2)] {
        let steps = plan(&capped, &spent(spent_usd), at("2026-05-02T09:00:00Z")).steps;
        let Step::Run {
            budget_usd: Some(budget),
            ..
        } = steps[0]
        else {
            panic!("{steps:?}")
        };
        assert!((budget - expected).abs() < 1e-9, "{budget}");
    }
}

/// CRON-4: jitter delays a slot by the same time in every process, and changes neither their number nor their order.
#[test]
fn jitter_delays_within_its_limit() {
    let job = job(&format!("{HOURLY}jitter = \"20m\""));
    let found = simulate(&job, at("2026-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z"));
    assert_eq!(found.len(), 31 * 24 - 1);
    let delays: BTreeSet<u64> = found.iter().map(|slot| jitter(&job, *slot)).collect();
    assert!(
        delays.len() > 700 && delays.iter().all(|delay| *delay < 20 * 60_000),
        "{delays:?}"
    );
}

/// Runs a job through a time: looks at it whenever its plan says so, and returns the slots that ran.
fn simulate(job: &CronJob, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let mut facts = JobFacts {
        since: from,
        ..JobFacts::default()
    };
    let mut now = from;
    let mut ran = Vec::new();
    while now < to {
        let plan = plan(job, &facts, now);
        for step in plan.steps {
            let Step::Run { slot, detail, .. } = step else {
                panic!("{step:?}")
            };
            assert_eq!(detail, "", "on time");
            facts.last = Some((slot, SlotState::Ran));
            ran.push(slot);
        }
        now = plan.wake;
    }
    ran.retain(|slot| *slot < to);
    ran
}

/// Returns the slots that a job must have, without its schedule: from a calendar, or minute by minute.
fn expected(form: usize, zone: &TimeZone, from: Instant, to: Instant) -> Vec<Timestamp> {
    let is_within = |time: &Instant| *time > from && *time < to;
    let times: BTreeSet<Instant> = match form {
        0 | 1 => {
            let first = zone.to_datetime(from).date();
            let days = (0..370).map(|day| first.checked_add(day.days()).unwrap());
            let is_due = |date: &Date| form == 0 || date.weekday().to_monday_one_offset() <= 5;
            let (hour, minute) = if form == 0 { (2, 30) } else { (1, 45) };
            days.filter(is_due)
                .map(|date| moment(zone, date.at(hour, minute, 0, 0)))
                .collect()
        }
        form => {
            let step = if form == 2 { 60 } else { 30 };
            let minutes = (to.as_second() - from.as_second()) / 60;
            let instants = (0..=minutes).map(|minute| from.checked_add((minute * 60).seconds()).unwrap());
            instants
                .filter(|time| zone.to_datetime(*time).minute() % step == 0)
                .collect()
        }
    };
    times
        .into_iter()
        .filter(is_within)
        .map(|time| Timestamp(time.as_millisecond().unsigned_abs()))
        .collect()
}

/// Returns the first moment at which a clock shows this wall time or, if it never does, a later one.
fn moment(zone: &TimeZone, mut wall: DateTime) -> Instant {
    loop {
        let found = zone.to_ambiguous_timestamp(wall);
        match found.offset() {
            AmbiguousOffset::Gap { .. } => wall = wall.checked_add(1.minute()).unwrap(),
            _ => return found.earlier().unwrap(),
        }
    }
}

/// CRON-1, CRON-4: in a simulated year no slot of 48 jobs in twelve zones is repeated or skipped, nights with a change
/// of the clock included.
#[test]
fn a_year_without_a_repeated_or_skipped_slot() {
    let (from, to) = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let forms = ["30 2 * * *", "weekdays at 01:45", "0 * * * *", "*/30 * * * *"];
    for zone in ZONES {
        let clock = TimeZone::get(zone).unwrap();
        for (form, schedule) in forms.iter().enumerate() {
            let job = job(&format!("schedule = \"{schedule}\"\ntimezone = \"{zone}\""));
            let found = simulate(&job, at(from), at(to));
            let expected = expected(form, &clock, from.parse().unwrap(), to.parse().unwrap());
            assert!(
                found == expected,
                "{schedule} in {zone}: {} of {}",
                found.len(),
                expected.len()
            );
        }
    }
}
