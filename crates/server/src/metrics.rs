//! SRV-6: counts of the server, in the text format of Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

/// Counts since the server started.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by the first digit of their status code, from 1 to 5.
    answers: [AtomicU64; 5],
    /// Requests that a check refused.
    refused: AtomicU64,
    /// Event streams that are open.
    streams: AtomicU64,
}

impl Metrics {
    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        let place = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.answers.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let is_refused = matches!(status.as_u16(), 401 | 403 | 415 | 421 | 429);
        self.refused.fetch_add(u64::from(is_refused), Ordering::Relaxed);
    }

    /// Counts an event stream.
    pub(crate) fn opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of an event stream.
    pub(crate) fn closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the counts as text. `watched` and `busy` are numbers of sessions.
    pub(crate) fn text(&self, watched: usize, busy: usize) -> String {
        let mut text = String::from("# TYPE windlass_http_answers_total counter\n");
        for (place, count) in self.answers.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            text.push_str(&format!(
                "windlass_http_answers_total{{code=\"{}xx\"}} {count}\n",
                place + 1
            ));
        }
        let refused = self.refused.load(Ordering::Relaxed);
        let streams = self.streams.load(Ordering::Relaxed);
        text.push_str(&format!(
            "# TYPE windlass_http_refused_total counter\nwindlass_http_refused_total {refused}\n\
             # TYPE windlass_event_streams gauge\nwindlass_event_streams {streams}\n\
             # TYPE windlass_watched_sessions gauge\nwindlass_watched_sessions {watched}\n\
             # TYPE windlass_busy_sessions gauge\nwindlass_busy_sessions {busy}\n"
        ));
        text
    }
}
