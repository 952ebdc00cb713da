//! Time as a port: nothing in the core reads the wall clock or sleeps on its own.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Formats the rough time since this timestamp for people, such as `5 min ago`.
    pub fn ago(self, now: Self) -> String {
        let seconds = now.0.saturating_sub(self.0) / 1000;
        match seconds {
            0..=59 => "just now".to_owned(),
            60..=3599 => format!("{} min ago", seconds / 60),
            3600..=86_399 => format!("{} h ago", seconds / 3600),
            _ => format!("{} d ago", seconds / 86_400),
        }
    }

    /// Formats the minute in UTC, such as `12:03 UTC on 2026-11-19`.
    pub fn minute(self) -> String {
        let minutes = self.0 / 60_000;
        // Counted from March, so that the leap day is the last one of a year: days of 400 years, then of one.
        let days = minutes / 1_440 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
        let year = era * 400 + year + u64::from(month <= 2);
        let (hour, minute) = (minutes / 60 % 24, minutes % 60);
        format!("{hour:02}:{minute:02} UTC on {year:04}-{month:02}-{day:02}")
    }
}

/// Formats a duration in seconds, and in minutes if it is that long.
pub fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Source of time for the loop.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns the current time. Must not block.
    fn now(&self) -> Timestamp;

    /// Returns a monotonic time, for measuring durations.
    fn elapsed(&self) -> Duration;

    /// Returns after `duration`. Dropping the future ends the wait.
    async fn sleep(&self, duration: Duration);
}

/// Returns the machine's clock, for programs that do not bring their own.
pub fn system() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
