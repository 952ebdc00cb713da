//! GOAL-2: notices in the answer of a turn that the goal was reached.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{Event, GoalCompletion, Message, Part};
use windlass_core::hook::{Hook, TurnEnd, TurnHook};
use windlass_core::message::FinishReason;
use windlass_core::turn::{Answered, Outcome};

use super::{Goal, says};
use crate::environment::Goals;

/// Completes the goal when the answer of a turn states that it was reached. An answer that a tool gave, or
/// that a limit forced, does not count.
pub(crate) struct GoalHook {
    pub(crate) goal: Goal,
    pub(crate) goals: Goals,
}

impl Hook for GoalHook {
    fn name(&self) -> &str {
        "goal"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for GoalHook {
    async fn turn_ended(&self, end: &TurnEnd<'_>) -> Vec<Event> {
        let Outcome::Answered(Answered {
            text,
            finish: FinishReason::EndTurn,
            done: false,
        }) = end.outcome
        else {
            return Vec::new();
        };
        if has_failed(end.history) {
            return Vec::new();
        }
        if !self.goals.follows_goal || !says(text, &self.goals.completion_phrases) {
            return Vec::new();
        }
        self.goal.completed(GoalCompletion::Phrase).into_iter().collect()
    }
}

/// Returns true if a call failed in the last iteration before the answer.
fn has_failed(history: &[Arc<Message>]) -> bool {
    let before = history.iter().rev().nth(1);
    let is_error = |part: &Part| matches!(part, Part::ToolResult(result) if result.is_error);
    before.is_some_and(|message| message.parts.iter().any(is_error))
}
