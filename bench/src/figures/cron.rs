//! A simulated year of scheduled jobs: every slot is planned, as a scheduler does it, and compared with a calendar.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp as Instant, ToSpan};
use windlass_core::clock::Timestamp;
use windlass_core::log::{JobFacts, SlotState};
use windlass_cron::file::parse;
use windlass_cron::{CronJob, JobFileContext, Step, plan};

use crate::clock::now;
use crate::lab::Lab;
use crate::report::{Figure, Target};

const JOBS: usize = 100;

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

/// The year, in seconds since the Unix epoch: 2026.
const YEAR: (i64, i64) = (1_767_225_600, 1_798_761_600);

/// A schedule, and how a calendar finds its times.
#[derive(Clone, Copy)]
enum Form {
    /// At this hour and minute, and only on weekdays.
    Wall(i8, i8, bool),
    /// Whenever the minute is a multiple of this.
    Minutes(i8),
    /// Every so many seconds.
    Every(i64),
}

impl Form {
    fn of(index: usize) -> Self {
        let hour = i8::try_from(index % 24).unwrap_or_default();
        match index % 10 {
            6 => Self::Wall(hour, 45, true),
            7 => Self::Minutes(60),
            8 => Self::Minutes(30),
            9 => Self::Every(5_400),
            _ => Self::Wall(i8::try_from(index % 4).unwrap_or_default(), 30, false),
        }
    }

    fn schedule(self) -> String {
        match self {
            Self::Wall(hour, minute, is_weekdays) => {
                format!("{minute} {hour} * * {}", if is_weekdays { "1-5" } else { "*" })
            }
            Self::Minutes(60) => "0 * * * *".to_owned(),
            Self::Minutes(step) => format!("*/{step} * * * *"),
            Self::Every(seconds) => format!("every {seconds}s"),
        }
    }
}

pub(super) fn measure(_lab: &Lab) -> Result<Vec<Figure>> {
    let mut jobs = Vec::new();
    for index in 0..JOBS {
        let zone = ZONES.get(index % ZONES.len()).copied().unwrap_or("UTC");
        jobs.push((job(Form::of(index), zone)?, Form::of(index), zone));
    }
    let begun = now();
    let found: Vec<Vec<Timestamp>> = jobs.iter().map(|(job, ..)| year(job)).collect();
    #[allow(clippy::cast_precision_loss)]
    let seconds = (now() - begun) as f64 / 1e9;
    let (mut slots, mut wrong) = (0, 0);
    for ((_, form, zone), found) in jobs.iter().zip(&found) {
        let expected = calendar(*form, &TimeZone::get(zone)?)?;
        let unique: BTreeSet<Timestamp> = found.iter().copied().collect();
        slots += found.len();
        wrong += found.len() - unique.len() + unique.symmetric_difference(&expected).count();
    }
    if slots == 0 {
        bail!("no job was due");
    }
    let figure = |name: &str, value: f64, unit, target, agent: String| Figure {
        name: name.to_owned(),
        agent,
        floor: "–".to_owned(),
        value,
        unit,
        target: Target::AtMost(target),
    };
    #[allow(clippy::cast_precision_loss)]
    Ok(vec![
        figure(
            "a year of slots, 100 jobs in 12 time zones",
            seconds,
            "s",
            2.0,
            format!("{slots} slots"),
        ),
        figure(
            "slots repeated or skipped in that year",
            wrong as f64,
            "slots",
            0.0,
            format!("{wrong} slots"),
        ),
    ])
}

fn job(form: Form, zone: &str) -> Result<CronJob> {
    let text = format!(
        "[jobs.bench]\nschedule = \"{}\"\ntimezone = \"{zone}\"\nfolder = \"/\"\nprompt = \"go\"\n",
        form.schedule()
    );
    let context = JobFileContext {
        path: "cron.toml".into(),
        home: None,
    };
    parse(&text, &context)?.pop().context("the job is not there")
}

/// Plans a job through the year, and returns the slots that run.
fn year(job: &CronJob) -> Vec<Timestamp> {
    let mut now = stamp(YEAR.0);
    let mut facts = JobFacts {
        since: now,
        ..JobFacts::default()
    };
    let mut slots = Vec::new();
    while now < stamp(YEAR.1) {
        let plan = plan(job, &facts, now);
        for step in plan.steps {
            if let Step::Run { slot, .. } = step {
                facts.last = Some((slot, SlotState::Ran));
                slots.push(slot);
            }
        }
        now = plan.wake;
    }
    slots
}

/// Returns the slots that must run.
fn calendar(form: Form, zone: &TimeZone) -> Result<BTreeSet<Timestamp>> {
    let mut times = BTreeSet::new();
    let (from, to) = YEAR;
    match form {
        Form::Wall(hour, minute, is_weekdays) => {
            let mut date = zone.to_datetime(Instant::from_second(from)?).date().yesterday()?;
            for _ in 0..368 {
                date = date.tomorrow()?;
                if !is_weekdays || date.weekday().to_monday_one_offset() <= 5 {
                    times.insert(moment(zone, date.at(hour, minute, 0, 0))?.as_second());
                }
            }
        }
        Form::Minutes(step) => {
            for second in (from..to).step_by(60) {
                if zone.to_datetime(Instant::from_second(second)?).minute() % step == 0 {
                    times.insert(second);
                }
            }
        }
        Form::Every(seconds) => times.extend((from..to).filter(|second| second % seconds == 0)),
    }
    Ok(times
        .into_iter()
        .filter(|second| *second > from && *second < to)
        .map(stamp)
        .collect())
}

/// Returns the first moment at which a clock shows this wall time or, if it never does, a later one.
fn moment(zone: &TimeZone, mut wall: DateTime) -> Result<Instant> {
    loop {
        let found = zone.to_ambiguous_timestamp(wall);
        match found.offset() {
            AmbiguousOffset::Gap { .. } => wall = wall.checked_add(1.minute())?,
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => return Ok(found.earlier()?),
        }
    }
}

fn stamp(second: i64) -> Timestamp {
    Timestamp(second.unsigned_abs() * 1000)
}
