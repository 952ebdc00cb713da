//! GOAL-1: the goal of a session. It is information for people: nothing waits for it, and nothing ends
//! because of it.

mod autonomy;
pub(crate) mod evidence;
pub(crate) mod go_ahead;
mod hook;
mod phrase;
pub(crate) mod plan;
pub(crate) mod plan_file;
pub(crate) mod prompt;
mod pursuit;
pub(crate) mod supervisor;

use windlass_api::{Event, GoalCompletion, Message, Part, SessionEvent};
use windlass_core::event::LaterMessages;
use windlass_core::log::{Durability, Entry, LogError, Spent, counting};

pub(crate) use self::autonomy::{Autonomy, state, work};
pub(crate) use self::hook::GoalHook;
use self::phrase::says;
pub(crate) use self::pursuit::{After, Due, Phase, Pursuit};
use crate::environment::Goals;
use crate::sink::Sink;

/// Maximum length of a goal that a command sets or several messages make up, in characters.
pub(crate) const LONGEST: usize = 2_000;

/// State of a session's goal. A fold over its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Goal {
    /// There is no goal.
    #[default]
    Idle,
    /// This goal is being worked on.
    Active {
        text: String,
        /// True if a command set it; false if it comes from messages.
        explicit: bool,
    },
    /// This goal was reached.
    Completed(String),
}

impl Goal {
    /// Reads the goal from entries, without those that a rewind left behind.
    pub(crate) fn read<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut goal = Self::default();
        for entry in counting(entries) {
            goal.apply(&entry.event);
        }
        goal
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Session(SessionEvent::Goal { text: None, .. }) => *self = Self::Idle,
            Event::Session(SessionEvent::Goal {
                text: Some(text),
                explicit,
            }) => {
                *self = Self::Active {
                    text: text.clone(),
                    explicit: *explicit,
                };
            }
            Event::Session(SessionEvent::GoalCompleted { text, .. }) => *self = Self::Completed(text.clone()),
            _ => {}
        }
    }

    /// Returns true if an event completes another goal than the active one.
    pub(crate) fn is_outdated(&self, event: &Event) -> bool {
        match event {
            Event::Session(SessionEvent::GoalCompleted { text, .. }) => self.active() != Some(text.as_str()),
            _ => false,
        }
    }

    /// Returns the active goal.
    pub(crate) fn active(&self) -> Option<&str> {
        match self {
            Self::Active { text, .. } => Some(text),
            Self::Idle | Self::Completed(_) => None,
        }
    }

    /// Returns the active goal if a command set it.
    pub(crate) fn explicit(&self) -> Option<&str> {
        match self {
            Self::Active { text, explicit: true } => Some(text),
            _ => None,
        }
    }

    /// Returns the goal, unless goals are off.
    pub(crate) fn followed(&self, goals: &Goals) -> Option<&Self> {
        goals.follows_goal.then_some(self)
    }

    /// Returns the event for an input that starts a goal, or changes one that comes from messages.
    pub(crate) fn told_by(&self, message: &Message, later: LaterMessages) -> Option<Event> {
        let mut texts = message.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.trim()),
            _ => None,
        });
        let said = texts.next().filter(|text| !text.is_empty())?;
        let text = match (self, later) {
            (Self::Idle | Self::Completed(_), _)
            | (Self::Active { explicit: false, .. }, LaterMessages::Replace) => said.to_owned(),
            (
                Self::Active {
                    text,
                    explicit: false,
                },
                LaterMessages::Extend,
            ) => {
                let text = format!("{text}\n{said}");
                (text.chars().count() <= LONGEST).then_some(text)?
            }
            (Self::Active { .. }, _) => return None,
        };
        Some(Event::Session(SessionEvent::Goal {
            text: Some(text),
            explicit: false,
        }))
    }

    /// Returns the completion event; `None` if no goal is active.
    pub(crate) fn completed(&self, how: GoalCompletion) -> Option<Event> {
        let text = self.active()?.to_owned();
        Some(Event::Session(SessionEvent::GoalCompleted { text, how }))
    }

    /// Records that the user considers the goal reached. Returns false if there is no active goal.
    pub(crate) async fn complete(&mut self, sink: &Sink) -> Result<bool, LogError> {
        let Some(event) = self.completed(GoalCompletion::Command) else {
            return Ok(false);
        };
        self.change(event, sink).await?;
        Ok(true)
    }

    async fn change(&mut self, event: Event, sink: &Sink) -> Result<(), LogError> {
        sink.store(vec![event.clone()], Durability::Process).await?;
        self.apply(&event);
        Ok(())
    }
}

/// Returns the cost in US dollars and the tokens of all rows.
pub(crate) fn sum(rows: &[Spent]) -> (f64, u64) {
    let cost = rows.iter().map(|row| row.cost_usd).sum();
    let tokens = rows
        .iter()
        .map(|row| row.usage.total_input() + row.usage.output)
        .sum();
    (cost, tokens)
}

#[cfg(test)]
#[path = "goal_tests.rs"]
mod tests;
