//! Open event streams by their credential. A stream ends when its credential is revoked; one look at the credentials
//! serves all streams.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use super::Credentials;
use crate::app::lock;
use crate::queue::{Queue, SharedQueue, event};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(2);
/// The same if the store tells of changes.
const RARE: Duration = Duration::from_secs(120);

/// The streams.
#[derive(Default)]
pub(super) struct Streams {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Streams with the id of their credential.
    open: Vec<(String, Weak<Queue>)>,
    is_looking: bool,
}

impl Credentials {
    /// Ends a stream once its credential no longer works. `changed` tells of changes; without it, they are looked for.
    pub(crate) fn follow(&self, id: String, queue: &SharedQueue, changed: Option<Arc<Notify>>) {
        let mut state = lock(&self.streams.state);
        state.open.push((id, Arc::downgrade(queue)));
        if !std::mem::replace(&mut state.is_looking, true) {
            tokio::spawn(self.clone().look(changed));
        }
    }

    async fn look(self, changed: Option<Arc<Notify>>) {
        loop {
            match &changed {
                Some(changed) => tokio::select! {
                    () = changed.notified() => {}
                    () = self.clock.sleep(RARE) => {}
                },
                None => self.clock.sleep(LOOK).await,
            }
            {
                let mut state = lock(&self.streams.state);
                state.open.retain(|(_, queue)| queue.strong_count() > 0);
                if state.open.is_empty() {
                    state.is_looking = false;
                    return;
                }
            }
            // A store that cannot be read revokes nothing.
            let Ok(valid) = self.valid().await else { continue };
            let text = "this credential was revoked";
            let bye = event("bye", &json!({ "reason": "revoked", "detail": text }));
            let state = lock(&self.streams.state);
            let revoked = state.open.iter().filter(|(id, _)| !valid.contains(id));
            for queue in revoked.filter_map(|(_, queue)| queue.upgrade()) {
                queue.close_with(bye.clone());
            }
        }
    }
}
