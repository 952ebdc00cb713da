//! Writes frames on a thread of its own, one at a time: a terminal that does not read holds up nobody else, and frames
//! that it would have missed are never kept.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;

/// The hand that frames are given to. Dropped, its thread ends after the frame that it is writing.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// For the thread: there is a frame, or no more will come.
    given: Condvar,
    /// For those who wait on a thread: the frame is written.
    done: Condvar,
    /// For those who wait in a task.
    free: Notify,
}

#[derive(Debug, Default)]
struct State {
    frame: Option<Vec<u8>>,
    /// From when a frame is given until it is written.
    is_busy: bool,
    /// A write has failed: there is no terminal any more.
    is_gone: bool,
    is_closed: bool,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(sink: impl Write + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || theirs.write_frames(sink))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Hands over a frame. False when the last one is still being written, or can never be: then this one is dropped.
    pub(super) fn offer(&self, frame: Vec<u8>) -> bool {
        let mut state = self.shared.state();
        if state.is_busy || state.is_gone {
            return false;
        }
        if !frame.is_empty() {
            state.frame = Some(frame);
            state.is_busy = true;
            self.shared.given.notify_one();
        }
        true
    }

    /// Whether a frame would be taken now.
    pub(super) fn is_free(&self) -> bool {
        let state = self.shared.state();
        !state.is_busy && !state.is_gone
    }

    /// Whether a write has failed.
    pub(super) fn is_gone(&self) -> bool {
        self.shared.state().is_gone
    }

    /// Waits until the last frame is written or never will be; at once when that is so already.
    pub(super) async fn idle(&self) {
        loop {
            let free = self.shared.free.notified();
            if !self.shared.state().is_busy {
                return;
            }
            free.await;
        }
    }

    /// The same for a thread, no longer than `limit`. Says whether it is so.
    pub(super) fn drain(&self, limit: Duration) -> bool {
        let waiting = |state: &mut State| state.is_busy;
        let state = self.shared.state();
        let waited = self.shared.done.wait_timeout_while(state, limit, waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_busy
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let is_idle = {
            let mut state = self.shared.state();
            state.is_closed = true;
            !state.is_busy
        };
        self.shared.given.notify_one();
        // A thread in the middle of a write may stay there for ever; it is left to its fate.
        if let Some(thread) = self.thread.take()
            && is_idle
        {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_frames(&self, mut sink: impl Write) {
        while let Some(frame) = self.next_frame() {
            let written = sink.write_all(&frame).and_then(|()| sink.flush());
            let mut state = self.state();
            state.is_busy = false;
            state.is_gone = written.is_err();
            drop(state);
            self.done.notify_all();
            self.free.notify_waiters();
            if written.is_err() {
                return;
            }
        }
    }

    /// The next frame, or `None` when no more will come.
    fn next_frame(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            if let Some(frame) = state.frame.take() {
                return Some(frame);
            }
            if state.is_closed {
                return None;
            }
            state = self.given.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A terminal that takes a write only when it is told to, and says what it took.
    struct Slow {
        may: Receiver<std::io::Result<()>>,
        took: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.may
                .recv()
                .unwrap_or_else(|_| Err(std::io::ErrorKind::BrokenPipe.into()))?;
            let _ = self.took.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Writer, Sender<std::io::Result<()>>, Receiver<Vec<u8>>) {
        let (allow, may) = channel();
        let (took, taken) = channel();
        (Writer::start(Slow { may, took }).unwrap(), allow, taken)
    }

    const LONG: Duration = Duration::from_secs(20);

    /// UI-2: while a slow terminal takes a frame no other is kept for it.
    #[tokio::test]
    async fn frames_for_a_busy_terminal_are_dropped() {
        let (writer, allow, taken) = slow();
        assert!(writer.is_free());
        assert!(writer.offer(b"first".to_vec()));
        assert!(!writer.is_free());
        for _ in 0..1000 {
            assert!(!writer.offer(b"dropped".to_vec()));
        }
        assert!(!writer.drain(Duration::ZERO));
        allow.send(Ok(())).unwrap();
        writer.idle().await;
        assert!(writer.is_free());
        assert!(writer.offer(b"second".to_vec()));
        allow.send(Ok(())).unwrap();
        assert!(writer.drain(LONG));
        assert!(writer.offer(Vec::new()));
        assert!(writer.is_free());
        drop(writer);
        assert_eq!(
            taken.into_iter().collect::<Vec<_>>(),
            [b"first".to_vec(), b"second".to_vec()]
        );
    }

    /// UI-2: a terminal that is gone is noticed once, and nothing waits for it.
    #[tokio::test]
    async fn a_terminal_that_is_gone_is_noticed() {
        let (writer, allow, taken) = slow();
        assert!(writer.offer(b"lost".to_vec()));
        assert!(!writer.is_gone());
        allow.send(Err(std::io::ErrorKind::BrokenPipe.into())).unwrap();
        writer.idle().await;
        assert!(writer.is_gone());
        assert!(!writer.is_free());
        assert!(!writer.offer(b"late".to_vec()));
        writer.idle().await;
        assert!(writer.drain(LONG));
        assert_eq!(taken.into_iter().count(), 0);
    }

    /// UI-2: a writer that is stuck does not hold up the end.
    #[test]
    fn a_stuck_writer_is_left_behind() {
        let (writer, _allow, _taken) = slow();
        assert!(writer.offer(b"stuck".to_vec()));
        drop(writer);
    }
}
