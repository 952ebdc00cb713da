//! Ctrl-C and termination: the first stops the turn, the second the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::exit::Exit;

/// How long the second signal waits for children to be gone.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Signals that ask us to stop.
pub(crate) struct Signals {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    count: AtomicU8,
    asked: Notify,
}

impl Signals {
    /// Starts listening. Where signals cannot be had, the system's own way of ending a program stays.
    pub(crate) fn listen() -> Self {
        let state = Arc::new(State::default());
        for kind in [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ] {
            let Ok(mut stream) = signal(kind) else { continue };
            let state = Arc::clone(&state);
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    if state.count.fetch_add(1, Ordering::SeqCst) > 0 {
                        // Asked twice: whatever hangs, the user wants out, and children are killed at once.
                        windlass_tools::process::hurry(LAST_LOOK).await;
                        std::process::exit(Exit::Interrupted as i32);
                    }
                    state.asked.notify_one();
                }
            });
        }
        Self { state }
    }

    /// Returns when a signal asks for the turn to stop.
    pub(crate) async fn interrupted(&self) {
        self.state.asked.notified().await;
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
