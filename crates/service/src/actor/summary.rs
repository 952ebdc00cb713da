//! Compaction of the conversation on demand.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use windlass_api::Event;
use windlass_core::event::FailureKind;
use windlass_core::log::Durability;
use windlass_core::message::{FinishReason, Message};

use super::{Activity, Begun, Running, SessionActor, canceled, not_stored};

impl SessionActor {
    /// Starts a compaction on demand.
    pub(super) async fn summarize(&mut self, answer: oneshot::Sender<Begun>) -> Activity {
        let start = self.turn_start(None, "");
        let stop = self.handle.begin();
        let _ = answer.send(Ok(()));
        let turn = match self.plan(&start, &stop.token).await {
            Ok(turn) => turn,
            Err(end) => {
                self.end(vec![end]).await;
                return Activity::Idle;
            }
        };
        self.warn(&turn.notices).await;
        let queued = self.queue.repeated(&self.sink);
        if let Err(error) = self.sink.store(queued, Durability::Process).await {
            self.end(vec![not_stored(&error)]).await;
            return Activity::Idle;
        }
        Activity::Summary(Running {
            task: tokio::spawn(turn.shrink()),
            stop,
        })
    }

    /// Takes over the compacted history.
    pub(super) async fn summarized(
        &mut self,
        cancel: &CancellationToken,
        result: Result<Result<Vec<Arc<Message>>, String>, JoinError>,
    ) {
        let end = match result {
            _ if cancel.is_cancelled() => canceled(),
            Ok(Ok(history)) => {
                self.history = history;
                Event::Final {
                    content: "The conversation was summarized.".to_owned(),
                    finish: FinishReason::EndTurn,
                }
            }
            Ok(Err(why)) => not_summarized(&why),
            Err(error) => not_summarized(&error.to_string()),
        };
        self.end(vec![end]).await;
    }
}

fn not_summarized(why: &str) -> Event {
    Event::Failed {
        reason: FailureKind::Stopped,
        message: format!("the conversation was not summarized: {why}"),
        hint: None,
        finish: FinishReason::Error,
    }
}
