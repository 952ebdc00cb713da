//! Schedules: when a job is due, in a time zone.
//!
//! A pattern that names its hours means wall times. One that does not exist because the clock was put forward runs
//! at the next valid time, and one that comes twice runs the first time. A pattern for every hour, or for every few,
//! follows the clock through both passes. `every 90m` counts elapsed time and knows no zone.

mod readable;

pub use self::readable::{duration, duration_text};

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp as Instant, ToSpan, Zoned};
use windlass_core::clock::Timestamp;

/// Maximum number of wall times looked at for one slot: those of a clock that was put back by hours.
const MAX_STEPS: usize = 20_000;

/// Reason a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The text is no schedule.
    #[error(
        "`{text}` is not a schedule: {why}; expected a cron pattern such as `30 2 * * *`, `@daily`, `every 15m`, `daily at 09:00` or `weekdays at 09:00`"
    )]
    Invalid {
        /// The text.
        text: String,
        /// The reason.
        why: String,
    },
    /// No time matches the pattern.
    #[error("`{0}` never fires: there is no such date")]
    Never(String),
    /// There is no such zone.
    #[error("`{name}` is not a time zone{hint}")]
    Zone {
        /// The name.
        name: String,
        /// The zone that was probably meant.
        hint: String,
    },
}

/// Times at which a job is due.
#[derive(Debug, Clone)]
pub struct Schedule {
    text: String,
    zone: TimeZone,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// Elapsed time in milliseconds, counted from the Unix epoch.
    Every(i64),
    /// Wall times.
    Wall(Box<Cron>),
    /// A pattern for every hour or every few, which follows the clock.
    Flowing(Box<Cron>),
}

/// A time at which a job is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The time.
    pub time: Timestamp,
    /// Effect of a change of the clock, for people.
    pub note: Option<String>,
}

impl Schedule {
    /// Parses a schedule. `zone` is the name of a time zone; `None` is the zone of this machine.
    ///
    /// # Errors
    /// Fails if the text is no schedule, names no date that exists, or the zone is unknown.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let zone = match zone {
            None | Some("local") => TimeZone::system(),
            Some(name) => TimeZone::get(name).map_err(|_| unknown_zone(name))?,
        };
        let form = match readable::interval(text) {
            Some(Ok(milliseconds)) => Form::Every(milliseconds),
            Some(Err(why)) => return Err(invalid(text, why)),
            None => pattern(text)?,
        };
        let schedule = Self {
            text: text.trim().to_owned(),
            zone,
            form,
        };
        // From the epoch on, every pattern with a possible date matches somewhere.
        match schedule.next(Timestamp(0)) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never(schedule.text)),
        }
    }

    /// Returns the schedule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name of the time zone.
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("local")
    }

    /// Returns the first slot after a time; `None` if there is none.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.find(after).map(|(time, _)| time)
    }

    /// Returns the first slot after a time, with a note if a change of the clock affects it.
    pub fn next_slot(&self, after: Timestamp) -> Option<Slot> {
        let (time, wall) = self.find(after)?;
        let note = match wall {
            Some(wall) => self.wall_note(wall, time),
            None => self.shift_note(after, time),
        };
        Some(Slot { time, note })
    }

    /// Returns a time on the clock of the zone, with its offset.
    pub fn local(&self, time: Timestamp) -> String {
        self.zoned(time).map_or_else(
            || format!("{} ms", time.0),
            |zoned| {
                let offset = offset_text(zoned.offset().seconds());
                let date = zoned.datetime();
                format!(
                    "{:04}-{:02}-{:02} {:02}:{:02}:{:02} {offset}",
                    date.year(),
                    date.month(),
                    date.day(),
                    date.hour(),
                    date.minute(),
                    date.second()
                )
            },
        )
    }

    /// Returns the start of the day in the zone.
    pub fn day(&self, time: Timestamp) -> Timestamp {
        let start = self.zoned(time).and_then(|zoned| zoned.start_of_day().ok());
        start.map_or(time, |zoned| stamp(zoned.timestamp()))
    }

    fn zoned(&self, time: Timestamp) -> Option<Zoned> {
        Some(instant(time)?.to_zoned(self.zone.clone()))
    }

    /// Returns the next slot, and the wall time that it stands for.
    fn find(&self, after: Timestamp) -> Option<(Timestamp, Option<DateTime>)> {
        match &self.form {
            Form::Every(interval) => {
                let after = i64::try_from(after.0).ok()?;
                let next = after
                    .div_euclid(*interval)
                    .checked_add(1)?
                    .checked_mul(*interval)?;
                Some((Timestamp(u64::try_from(next).ok()?), None))
            }
            Form::Flowing(cron) => {
                let zoned = self.zoned(after)?;
                let found = cron.find_next_occurrence(&zoned, false).ok()?;
                Some((stamp(found.timestamp()), None))
            }
            Form::Wall(cron) => {
                let from = instant(after)?;
                let mut wall = self.zone.to_datetime(from);
                for _ in 0..MAX_STEPS {
                    wall = cron.find_next_occurrence(&wall, false).ok()?;
                    let time = self.resolve(wall)?;
                    if time > from {
                        return Some((stamp(time), Some(wall)));
                    }
                }
                None
            }
        }
    }

    /// Returns the moment of a wall time: the first of two, or the end of a gap.
    fn resolve(&self, wall: DateTime) -> Option<Instant> {
        let ambiguous = self.zone.to_ambiguous_timestamp(wall);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
            AmbiguousOffset::Gap { .. } => {
                let behind = ambiguous.later().ok()?.checked_add(1.second()).ok()?;
                let change = self.zone.preceding(behind).next()?;
                Some(change.timestamp())
            }
        }
    }

    fn wall_note(&self, wall: DateTime, time: Timestamp) -> Option<String> {
        let clock = format!("{:02}:{:02}", wall.hour(), wall.minute());
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { .. } => None,
            AmbiguousOffset::Fold { .. } => Some(format!(
                "the clock goes back: {clock} comes twice, and the first one counts"
            )),
            AmbiguousOffset::Gap { .. } => {
                let zoned = self.zoned(time)?;
                Some(format!(
                    "the clock goes forward: {clock} does not exist, so it runs at {:02}:{:02}",
                    zoned.hour(),
                    zoned.minute()
                ))
            }
        }
    }

    /// Returns a note if the clock changes between two slots.
    fn shift_note(&self, before: Timestamp, time: Timestamp) -> Option<String> {
        let offset = |time| Some(self.zoned(time)?.offset().seconds());
        let (before, after) = (offset(before)?, offset(time)?);
        (before != after).then(|| {
            let word = if after > before { "forward" } else { "back" };
            format!("the clock has gone {word} to {}", offset_text(after))
        })
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.zone == other.zone
    }
}

fn invalid(text: &str, why: impl std::fmt::Display) -> ScheduleError {
    ScheduleError::Invalid {
        text: text.chars().take(100).collect(),
        why: why.to_string(),
    }
}

/// Parses a cron pattern, or a text that stands for one.
fn pattern(text: &str) -> Result<Form, ScheduleError> {
    let pattern = readable::pattern(text).map_err(|why| invalid(text, why))?;
    let cron: Cron = pattern.parse().map_err(|error: croner::errors::CronError| {
        let why = error.to_string();
        let why = why.trim_end_matches('.');
        let why = why.strip_prefix("Component error: ").unwrap_or(why);
        // The library speaks of its own types.
        let why = why
            .strip_prefix("Pattern contains illegal characters: ")
            .unwrap_or(why);
        let why = why.strip_prefix("Invalid pattern: ").unwrap_or(why);
        let why = match why {
            "Number out of bounds" => "a number is too large or too small for its field",
            "CronPattern cannot be an empty string" => "it is empty",
            why => why,
        };
        invalid(
            text,
            why.replace("CronPattern contains illegal", "it contains the illegal"),
        )
    })?;
    // The hours are the third of six or seven fields, and the second of five.
    let fields: Vec<&str> = cron_fields(&pattern);
    let hours = match fields.len() {
        5 => fields.get(1),
        _ => fields.get(2),
    };
    let is_flowing = hours.is_some_and(|hours| hours.contains(['*', '/', '?']));
    Ok(match is_flowing {
        true => Form::Flowing(Box::new(cron)),
        false => Form::Wall(Box::new(cron)),
    })
}

fn cron_fields(pattern: &str) -> Vec<&str> {
    pattern.split_whitespace().collect()
}

/// Returns the error about an unknown zone, with the nearest name.
fn unknown_zone(name: &str) -> ScheduleError {
    let lower = name.to_lowercase();
    let near = jiff::tz::db()
        .available()
        .map(|known| {
            let known = known.as_str().to_owned();
            let last = known.rsplit('/').next().unwrap_or_default().to_lowercase();
            let whole = strsim::osa_distance(&lower, &known.to_lowercase());
            (whole.min(strsim::osa_distance(&lower, &last)), known)
        })
        .min();
    let hint = match near {
        Some((distance, near)) if distance <= 3 => format!("; did you mean `{near}`?"),
        Some(_) => "; expected a name such as `Europe/Berlin` or `UTC`".to_owned(),
        None => "; this machine has no time zones: install the package `tzdata`, or use `UTC`".to_owned(),
    };
    ScheduleError::Zone {
        name: name.chars().take(100).collect(),
        hint,
    }
}

fn offset_text(seconds: i32) -> String {
    let (sign, seconds) = if seconds < 0 {
        ('-', -seconds)
    } else {
        ('+', seconds)
    };
    format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
}

fn instant(time: Timestamp) -> Option<Instant> {
    Instant::from_millisecond(i64::try_from(time.0).ok()?).ok()
}

fn stamp(instant: Instant) -> Timestamp {
    Timestamp(u64::try_from(instant.as_millisecond()).unwrap_or_default())
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
