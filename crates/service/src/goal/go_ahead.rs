//! GOAL-6: a turn in plan mode ends with the question whether to go ahead, if somebody is there to answer it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windlass_api::{CallId, Event, FinishReason, GoalEvent, MessageId, Waiting};
use windlass_core::event::EventSink;
use windlass_core::hook::{Hook, TurnEnd, TurnHook};
use windlass_core::permission::{Asker, Question};
use windlass_core::turn::{Answered, Outcome};

use super::work;
use crate::replies::Replies;
use crate::sink::Sink;

/// Maximum time that the question waits. The turn has its answer by then, and can be stopped at any time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// First word of the answer that switches the mode.
const YES: &str = "yes";

/// Asks whether to go ahead.
pub(crate) struct GoAhead {
    pub(crate) id: CallId,
    pub(crate) sink: Arc<Sink>,
    pub(crate) replies: Replies,
    pub(crate) cancel: CancellationToken,
}

impl Hook for GoAhead {
    fn name(&self) -> &str {
        "go ahead"
    }

    fn time_limit(&self) -> Duration {
        LONGEST
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for GoAhead {
    async fn turn_ended(&self, end: &TurnEnd<'_>) -> Vec<Event> {
        let Outcome::Answered(Answered {
            finish: FinishReason::EndTurn,
            ..
        }) = end.outcome
        else {
            return Vec::new();
        };
        let question = Question {
            text: "Go ahead?".to_owned(),
            options: vec![
                "yes, switch to auto mode".to_owned(),
                "no, keep planning".to_owned(),
            ],
        };
        let event = Event::Waiting(Waiting::Question {
            call_id: self.id.clone(),
            text: question.text.clone(),
            options: question.options.clone(),
        });
        if self.sink.record(event).await.is_err() {
            return Vec::new();
        }
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            answer = self.replies.answer(&self.id, &question) => answer,
        };
        let answer = answer.unwrap_or_default().trim().to_lowercase();
        if answer != "y" && !answer.starts_with(YES) {
            return Vec::new();
        }
        let input = MessageId::generate();
        vec![work(GoalEvent::GoAhead { input })]
    }
}
