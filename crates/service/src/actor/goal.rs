//! GOAL-1, GOAL-2: the goal of a live session.

use async_trait::async_trait;
use windlass_api::{Event, GoalCompletion, SessionEvent};
use windlass_core::hook::{Hook, TurnEnd, TurnHook};
use windlass_core::log::{Durability, LogError};
use windlass_core::message::{FinishReason, Message};
use windlass_core::turn::{Answered, Outcome};

use super::SessionActor;
use crate::environment::Goals;
use crate::goal::{Goal, says};

impl SessionActor {
    /// Returns the goal of the session and its state; `None` if goals are off.
    pub(crate) fn followed_goal(&mut self) -> Option<&Goal> {
        self.env.goals().follows_goal.then_some(&self.goal)
    }

    /// Returns the event for the goal that an input starts, if it starts one.
    pub(super) fn goal_of(&mut self, message: &Message) -> Option<Event> {
        self.followed_goal()?.begun_by(message)
    }

    /// Returns the hook that detects in the answer of a turn that the goal was reached.
    pub(super) fn goal_hook(&self) -> GoalHook {
        GoalHook {
            goal: self.goal.clone(),
            goals: self.env.goals(),
        }
    }

    /// Sets or clears the goal, whatever its state.
    pub(crate) async fn set_goal(&mut self, text: Option<String>) -> Result<(), LogError> {
        self.change_goal(Event::Session(SessionEvent::Goal { text }))
            .await
    }

    /// Records that the user considers the goal reached. Returns the goal; `None` if there is no active one.
    pub(crate) async fn complete_goal(&mut self) -> Result<Option<String>, LogError> {
        let text = self.goal.active().map(str::to_owned);
        if let Some(event) = self.goal.completed(GoalCompletion::Command) {
            self.change_goal(event).await?;
        }
        Ok(text)
    }

    async fn change_goal(&mut self, event: Event) -> Result<(), LogError> {
        self.sink.store(vec![event.clone()], Durability::Process).await?;
        self.goal.apply(&event);
        Ok(())
    }
}

/// GOAL-2: completes the goal when the answer of a turn states that it was reached. An answer that a tool
/// gave, or that a limit forced, does not count.
pub(super) struct GoalHook {
    goal: Goal,
    goals: Goals,
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
        if !self.goals.follows_goal || !says(text, &self.goals.completion_phrases) {
            return Vec::new();
        }
        self.goal.completed(GoalCompletion::Phrase).into_iter().collect()
    }
}
