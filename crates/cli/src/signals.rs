//! Ctrl-C and termination: the first signal stops the turn, the second one the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use windlass_sandbox::process;

use crate::exit::Exit;

/// Maximum time for child processes to end after the second signal.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Signals that ask the program to stop.
pub(crate) struct Signals {
    state: Arc<State>,
}

/// A listener that is starting in the background.
pub(crate) struct Beginning {
    state: Arc<State>,
    is_ready: mpsc::Receiver<()>,
}

impl Beginning {
    /// Waits until the listener is active; no signal is missed after that.
    pub(crate) fn ready(self) -> Signals {
        let _ = self.is_ready.recv();
        Signals { state: self.state }
    }
}

#[derive(Default)]
struct State {
    count: AtomicU8,
    /// True once a signal asked the program to end, and not only the turn.
    is_over: AtomicBool,
    asked: Notify,
}

/// Returns when a signal asks for the program to end, while no [`Signals`] listen. Ctrl-C is a key there.
pub(crate) async fn asked_to_end() {
    let (Ok(mut ended), Ok(mut left)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = ended.recv() => {}
        _ = left.recv() => {}
    }
}

impl Signals {
    /// Starts listening, and waits until the listener is active.
    pub(crate) fn listen() -> Self {
        Self::begin().ready()
    }

    /// Starts listening on a separate thread: when the main thread is blocked on output that is not read, the
    /// user must still be able to quit. If signals cannot be handled, the system's default action stays.
    pub(crate) fn begin() -> Beginning {
        let state = Arc::new(State::default());
        let listener = Arc::clone(&state);
        let (ready, is_ready) = mpsc::sync_channel(1);
        let listen = move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                runtime.block_on(listener.listen(&ready));
            }
        };
        // Without the thread, the system's default action stays, and there is nothing to wait for.
        let _ = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(listen);
        Beginning { state, is_ready }
    }

    /// Returns when a signal asks for the turn to stop.
    pub(crate) async fn interrupted(&self) {
        self.state.asked.notified().await;
    }

    /// Marks the signals so far as handled: the next one counts as the first again.
    pub(crate) fn settled(&self) {
        self.state.count.store(0, Ordering::SeqCst);
    }

    /// Returns true if a signal asked for the program to end, unlike Ctrl-C.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over.load(Ordering::SeqCst)
    }

    /// Returns the exit code of a canceled run.
    pub(crate) fn exit(&self) -> Exit {
        if self.state.count.load(Ordering::SeqCst) > 0 {
            Exit::Interrupted
        } else {
            Exit::BrokenPipe
        }
    }
}

impl State {
    async fn listen(&self, ready: &mpsc::SyncSender<()>) {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
            return;
        };
        let _ = ready.try_send(());
        loop {
            let is_over = tokio::select! {
                _ = interrupt.recv() => false,
                _ = terminate.recv() => true,
                _ = hangup.recv() => true,
            };
            self.is_over.fetch_or(is_over, Ordering::SeqCst);
            if self.count.fetch_add(1, Ordering::SeqCst) > 0 {
                // Second signal: the user wants to quit, whatever is blocked, and children are killed
                // immediately.
                process::end_all(LAST_LOOK).await;
                std::process::exit(Exit::Interrupted as i32);
            }
            self.asked.notify_one();
        }
    }
}
