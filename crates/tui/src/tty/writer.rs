//! Writes frames on a separate thread, one at a time: a terminal that does not read blocks nothing else, and
//! frames it would miss are not stored.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;

/// Handle to the writer thread. When dropped, the thread ends after its current frame.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the writer thread: there is a frame, or no more will come.
    given: Condvar,
    /// Wakes waiting threads: the frame is written.
    done: Condvar,
    /// Wakes waiting tasks.
    free: Notify,
}

#[derive(Debug, Default)]
struct State {
    frame: Option<Vec<u8>>,
    /// True from the hand-over of a frame until it is written.
    is_busy: bool,
    /// True after a failed write: the terminal is gone.
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

    /// Hands over a frame. Returns false, and drops the frame, if the last one is still being written or the
    /// terminal is gone.
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

    /// True if a frame would be accepted now.
    pub(super) fn is_free(&self) -> bool {
        let state = self.shared.state();
        !state.is_busy && !state.is_gone
    }

    /// True if a write has failed.
    pub(super) fn is_gone(&self) -> bool {
        self.shared.state().is_gone
    }

    /// Waits until the last frame is written or lost.
    pub(super) async fn idle(&self) {
        loop {
            let free = self.shared.free.notified();
            if !self.shared.state().is_busy {
                return;
            }
            free.await;
        }
    }

    /// Same for a thread, limited to `limit`. Returns true if it succeeded in time.
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
        // A thread stuck in a write may stay there forever; it is abandoned.
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

    /// Returns the next frame, or `None` if no more will come.
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

    /// A terminal that accepts a write only on command, and reports it.
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

    /// UI-2: while a slow terminal takes a frame, no other frame is stored.
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

    /// UI-2: a lost terminal is noticed once, and nothing waits for it.
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

    /// UI-2: a stuck writer does not delay the exit.
    #[test]
    fn a_stuck_writer_is_left_behind() {
        let (writer, _allow, _taken) = slow();
        assert!(writer.offer(b"stuck".to_vec()));
        drop(writer);
    }
}
