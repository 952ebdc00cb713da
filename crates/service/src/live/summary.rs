//! The conversation made smaller on demand.

use tokio::sync::{mpsc, oneshot};
use windlass_api::Event;
use windlass_core::event::FailureKind;
use windlass_core::log::Durability;
use windlass_core::message::FinishReason;

use super::{Begun, Live, Order, Running, canceled, not_stored};

impl Live {
    /// Makes the history smaller on demand.
    pub(super) async fn summarize(
        &mut self,
        answer: oneshot::Sender<Begun>,
        inbox: &mut mpsc::Receiver<Order>,
    ) {
        let start = self.turn_start(None, String::new());
        let stop = self.seat.begin();
        let _ = answer.send(Ok(()));
        let work = match self.work(&start, &stop.token).await {
            Ok(work) => work,
            Err(end) => return self.end(end).await,
        };
        self.warn(&work.setup.notices).await;
        if let Err(error) = self.sink.store(self.still_queued(), Durability::Process).await {
            return self.end(not_stored(&error)).await;
        }
        let running = Running {
            task: tokio::spawn(work.shrink()),
            stop,
        };
        let cancel = running.stop.token.clone();
        let end = match self.watch(running, inbox).await {
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
        self.end(end).await;
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
