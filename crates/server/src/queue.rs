//! Frames that wait for one connection. A slow reader loses live events first, then is told to read the state again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde_json::json;

use crate::app::lock;

/// Bytes of live events that wait for one reader before it misses some.
const LIVE_ROOM: usize = 96 << 10;
/// Bytes of all events that wait for one reader before it has to start over.
const ROOM: usize = 512 << 10;

/// Urgency of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// May be dropped.
    Live,
    /// Must arrive, or the reader is told.
    State,
}

/// Queue of one connection. Publishing never waits.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Bytes>,
    bytes: usize,
    missed: u64,
    is_over: bool,
    waker: Option<Waker>,
}

impl Queue {
    /// Adds a frame.
    pub(crate) fn push(&self, kind: Kind, frame: &Bytes) {
        let mut waiting = lock(&self.0);
        if waiting.is_over {
            return;
        }
        let room = if kind == Kind::Live { LIVE_ROOM } else { ROOM };
        if waiting.bytes + frame.len() <= room || waiting.frames.is_empty() {
            waiting.report_missed();
            waiting.add(frame.clone());
        } else if kind == Kind::Live {
            waiting.missed += 1;
        } else {
            let reason = "this connection reads too slowly";
            waiting.close_with(event("resync", &json!({ "reason": reason })));
        }
        waiting.wake();
    }

    /// Ends the stream after one more frame.
    pub(crate) fn close_with(&self, frame: Bytes) {
        let mut waiting = lock(&self.0);
        waiting.close_with(frame);
        waiting.wake();
    }

    /// Returns the next frames, or `None` at the end.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut waiting = lock(&self.0);
        if let Some(frame) = waiting.frames.pop_front() {
            waiting.bytes -= frame.len();
            return Poll::Ready(Some(frame));
        }
        if waiting.is_over {
            return Poll::Ready(None);
        }
        waiting.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Waiting {
    fn add(&mut self, frame: Bytes) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    fn report_missed(&mut self) {
        let missed = std::mem::take(&mut self.missed);
        if missed > 0 {
            self.add(event("missed", &json!({ "live_events": missed })));
        }
    }

    fn close_with(&mut self, frame: Bytes) {
        if !self.is_over {
            self.frames.clear();
            self.bytes = 0;
            self.add(frame);
            self.is_over = true;
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Formats a named server-sent event.
pub(crate) fn event(name: &str, data: &impl serde::Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// A shared queue.
pub(crate) type SharedQueue = Arc<Queue>;
