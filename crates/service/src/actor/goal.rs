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
    /// What the session is to reach, and how that stands; `None` where goals are not followed.
    pub(crate) fn followed_goal(&mut self) -> Option<&Goal> {
        self.env.goals().follows_goal.then_some(&self.goal)
    }

    /// The goal that an input begins, if it begins one.
    pub(super) fn goal_of(&mut self, message: &Message) -> Option<Event> {
        self.followed_goal()?.begun_by(message)
    }

    /// The hook that notices in the answer of a turn that the goal was reached.
    pub(super) fn goal_hook(&self) -> GoalHook {
        GoalHook {
            goal: self.goal.clone(),
            goals: self.env.goals(),
        }
    }

    /// Sets the goal or takes it away, whatever it was.
    pub(crate) async fn set_goal(&mut self, text: Option<String>) -> Result<(), LogError> {
        self.change_goal(Event::Session(SessionEvent::Goal { text }))
            .await
    }

    /// Notes that the user has the goal for reached. The goal; `None` when there is nothing to reach.
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

/// GOAL-2: notices that the goal was reached, when the answer of a turn says so. An answer that a tool gave, or that a
/// limit forced, does not.
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
