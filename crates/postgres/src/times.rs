//! Times of appends, for the page of counts.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the classes, in milliseconds.
const BOUNDS: [u64; 10] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000];

/// Histogram of the time until an append was answered, which includes the wait for its group.
#[derive(Debug, Default)]
pub(super) struct AppendTimes {
    /// Appends in each class; the last one has no bound.
    classes: [AtomicU64; BOUNDS.len() + 1],
    /// Sum of the times, in microseconds.
    sum: AtomicU64,
    /// Groups that were sent.
    groups: AtomicU64,
}

impl AppendTimes {
    /// Counts an append.
    pub(super) fn note(&self, time: Duration) {
        let class = BOUNDS.partition_point(|bound| Duration::from_millis(*bound) < time);
        if let Some(class) = self.classes.get(class) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.sum.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts a group.
    pub(super) fn sent(&self) {
        self.groups.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts in the text format of Prometheus.
    pub(super) fn text(&self) -> String {
        let name = "windlass_store_append_seconds";
        let mut text = format!(
            "# HELP {name} Time until appends to sessions were stored, with the wait for their group.\n# TYPE {name} histogram\n"
        );
        let mut count = 0;
        for (place, class) in self.classes.iter().enumerate() {
            count += class.load(Ordering::Relaxed);
            let bound = BOUNDS.get(place).map(|bound| Duration::from_millis(*bound));
            let bound = bound.map_or("+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = Duration::from_micros(self.sum.load(Ordering::Relaxed)).as_secs_f64();
        let groups = self.groups.load(Ordering::Relaxed);
        let _ = write!(
            text,
            "{name}_sum {sum}\n{name}_count {count}\n\
             # HELP windlass_store_append_groups_total Transactions that appended to sessions.\n\
             # TYPE windlass_store_append_groups_total counter\nwindlass_store_append_groups_total {groups}\n"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SRV-6: classes are cumulative, a bound belongs to its class, and the last class has all.
    #[test]
    fn the_histogram_counts_every_append_once() {
        let times = AppendTimes::default();
        for ms in [1, 5, 6, 999, 1_000, 60_000] {
            times.note(Duration::from_millis(ms));
        }
        times.sent();
        let text = times.text();
        for line in [
            "windlass_store_append_seconds_bucket{le=\"0.005\"} 2\n",
            "windlass_store_append_seconds_bucket{le=\"0.01\"} 3\n",
            "windlass_store_append_seconds_bucket{le=\"0.5\"} 3\n",
            "windlass_store_append_seconds_bucket{le=\"1\"} 5\n",
            "windlass_store_append_seconds_bucket{le=\"5\"} 5\n",
            "windlass_store_append_seconds_bucket{le=\"+Inf\"} 6\n",
            "windlass_store_append_seconds_sum 62.011\n",
            "windlass_store_append_seconds_count 6\n",
            "windlass_store_append_groups_total 1\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
