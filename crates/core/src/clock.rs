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
