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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(queue: &Queue) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut read = Vec::new();
        while let Poll::Ready(Some(frame)) = queue.poll(&mut cx) {
            read.push(String::from_utf8_lossy(&frame).into_owned());
        }
        read
    }

    /// SRV-2, EVT-5: a reader that falls behind loses live events first and is told how many; state events stay.
    #[test]
    fn live_events_are_dropped_first() {
        let queue = Queue::default();
        let live = Bytes::from(vec![b'l'; 1 << 10]);
        let state = Bytes::from(vec![b's'; 1 << 10]);
        for _ in 0..200 {
            queue.push(Kind::Live, &live);
        }
        for _ in 0..100 {
            queue.push(Kind::State, &state);
        }
        let read = read(&queue);
        assert_eq!(read.iter().filter(|frame| frame.starts_with('s')).count(), 100);
        assert_eq!(read.iter().filter(|frame| frame.starts_with('l')).count(), 96);
        assert!(
            read.iter()
                .any(|frame| frame == "event: missed\ndata: {\"live_events\":104}\n\n")
        );
    }

    /// SRV-2: a reader that cannot follow the state events gets nothing more but the request to start over, and memory
    /// stays bounded.
    #[test]
    fn a_reader_that_is_lost_starts_over() {
        let queue = Queue::default();
        let state = Bytes::from(vec![b's'; 1 << 10]);
        for _ in 0..10_000 {
            queue.push(Kind::State, &state);
        }
        let read = read(&queue);
        assert_eq!(read.len(), 1, "{read:?}");
        assert!(read[0].starts_with("event: resync\n"), "{read:?}");
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(queue.poll(&mut cx), Poll::Ready(None));
    }
}
