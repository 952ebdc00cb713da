//! Ctrl-C and termination: the first stops the turn, the second the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use windlass_sandbox::process;

use crate::exit::Exit;

/// How long the second signal waits for children to be gone.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Signals that ask us to stop.
pub(crate) struct Signals {
    state: Arc<State>,
}

/// Signals that will be listened to in a moment, while other things are done.
pub(crate) struct Beginning {
    state: Arc<State>,
    is_ready: mpsc::Receiver<()>,
}

impl Beginning {
    /// From here on none is missed.
    pub(crate) fn ready(self) -> Signals {
        let _ = self.is_ready.recv();
        Signals { state: self.state }
    }
}

#[derive(Default)]
struct State {
    count: AtomicU8,
    /// Somebody wants the program to end, and not only what it does.
    is_over: AtomicBool,
    asked: Notify,
}

impl Signals {
    /// Starts listening, and waits until none is missed.
    pub(crate) fn listen() -> Self {
        Self::begin().ready()
    }

    /// Starts listening, on a thread of its own: when the main one waits for somebody to read our output, the user must
    /// still get out. Where signals cannot be had, the system's own way of ending a program stays.
    pub(crate) fn begin() -> Beginning {
        let state = Arc::new(State::default());
        let listener = Arc::clone(&state);
        let (ready, is_ready) = mpsc::sync_channel(1);
        let listen = move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                runtime.block_on(listener.listen(&ready));
            }
        };
        // Without the thread the system's own way stays, and there is nothing to wait for.
        let _ = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(listen);
        Beginning { state, is_ready }
    }

    /// Returns when a signal asks for the turn to stop.
    pub(crate) async fn interrupted(&self) {
        self.state.asked.notified().await;
    }

    /// What the signals so far asked for was done: the next one is a first one again.
    pub(crate) fn settled(&self) {
        self.state.count.store(0, Ordering::SeqCst);
    }

    /// Whether a signal asked for more than what Ctrl-C does: that the program ends.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over.load(Ordering::SeqCst)
    }

    /// The exit code of a canceled run.
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
                // Asked twice: whatever hangs, the user wants out, and children are killed at once.
                process::end_all(LAST_LOOK).await;
                std::process::exit(Exit::Interrupted as i32);
            }
            self.asked.notify_one();
        }
    }
}
