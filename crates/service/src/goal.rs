//! GOAL-1: what a session is to reach. It is there for people: nothing waits for it and nothing ends because of it.

mod phrase;

use windlass_api::{Event, GoalCompletion, Message, Part, SessionEvent};
use windlass_core::log::{Entry, counting};

pub(crate) use self::phrase::says;

/// The longest goal that a command sets, in characters.
pub(crate) const LONGEST: usize = 2_000;

/// How the goal of a session stands. A fold over its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Goal {
    /// There is none.
    #[default]
    Idle,
    /// This is to be reached.
    Active(String),
    /// This was reached.
    Completed(String),
}

impl Goal {
    /// The goal that entries tell, without those that a rewind left behind.
    pub(crate) fn read<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut goal = Self::default();
        for entry in counting(entries) {
            goal.apply(&entry.event);
        }
        goal
    }

    /// Takes one event in.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Session(SessionEvent::Goal { text: Some(text) }) => *self = Self::Active(text.clone()),
            Event::Session(SessionEvent::Goal { text: None }) => *self = Self::Idle,
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

    /// What is to be reached.
    pub(crate) fn active(&self) -> Option<&str> {
        match self {
            Self::Active(text) => Some(text),
            Self::Idle | Self::Completed(_) => None,
        }
    }

    /// What an input makes of it: a goal where there is none. While one is to be reached, inputs are about it.
    pub(crate) fn begun_by(&self, message: &Message) -> Option<Event> {
        if self.active().is_some() {
            return None;
        }
        let mut texts = message.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.trim()),
            _ => None,
        });
        let text = texts.next().filter(|text| !text.is_empty())?;
        Some(Event::Session(SessionEvent::Goal {
            text: Some(text.to_owned()),
        }))
    }

    /// That it was reached; nothing when there is nothing to reach.
    pub(crate) fn completed(&self, how: GoalCompletion) -> Option<Event> {
        let text = self.active()?.to_owned();
        Some(Event::Session(SessionEvent::GoalCompleted { text, how }))
    }
}

#[cfg(test)]
#[path = "goal_tests.rs"]
mod tests;
