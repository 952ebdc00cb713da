//! CTX-7: subgoals of the agent, and the messages that belong to each.
//!
//! After HiAgent (hierarchical working memory, arXiv 2408.09559): messages of the current subgoal stay
//! unchanged, and those of a completed subgoal can be removed. A [`Registry`] tracks the spans; it never
//! looks at messages.

use std::ops::Range;

/// State of a subgoal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubgoalState {
    /// In progress. At most one subgoal is active.
    Active,
    /// Done, or abandoned for another.
    Completed,
}

/// An intermediate goal of the agent, and the messages that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgoal {
    /// Description in one sentence.
    pub text: String,
    /// State of the subgoal.
    pub standing: SubgoalState,
    /// Range of its messages in the history.
    pub span: Range<usize>,
}

/// Importance of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Belongs to the active subgoal, and is never evicted.
    Active,
    /// Belongs to a completed subgoal.
    Completed,
    /// Belongs to no subgoal.
    Outdated,
}

impl Tier {
    /// Weight of the tier.
    pub fn relevance(self) -> f64 {
        match self {
            Self::Active => 1.0,
            Self::Completed => 0.3,
            Self::Outdated => 0.1,
        }
    }
}

/// Subgoals of a conversation, oldest first. Spans never overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registry {
    subgoals: Vec<Subgoal>,
    /// Number of messages.
    length: usize,
    /// True once there has been a subgoal.
    has_begun: bool,
}

/// Answer of a model about the subgoal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extracted {
    /// The current subgoal.
    pub current: Option<String>,
    /// True if the previous subgoal is done.
    pub is_completed: bool,
}

impl Extracted {
    /// Parses `CURRENT: …` and `COMPLETED: …` lines; any other text is taken whole as the current subgoal.
    /// `NONE` means no subgoal.
    pub fn read(reply: &str) -> Self {
        const LONGEST: usize = 500;
        let said = |text: &str| {
            let text = text.trim();
            (!text.is_empty() && !text.eq_ignore_ascii_case("none")).then(|| {
                text.chars()
                    .map(|sign| if sign.is_control() { ' ' } else { sign })
                    .take(LONGEST)
                    .collect()
            })
        };
        let line = |name: &str| {
            reply.lines().find_map(|line| {
                let (head, rest) = line.trim().split_once(':')?;
                head.trim().eq_ignore_ascii_case(name).then_some(rest)
            })
        };
        let (current, completed) = (line("CURRENT"), line("COMPLETED"));
        if current.is_none() && completed.is_none() {
            return Self {
                current: said(reply),
                is_completed: false,
            };
        }
        let completed: Option<String> = completed.and_then(said);
        Self {
            current: current.and_then(said),
            is_completed: completed.is_some(),
        }
    }
}

impl Registry {
    /// Returns all subgoals.
    pub fn subgoals(&self) -> &[Subgoal] {
        &self.subgoals
    }

    /// Returns the active subgoal.
    pub fn active(&self) -> Option<&Subgoal> {
        self.subgoals
            .iter()
            .find(|goal| goal.standing == SubgoalState::Active)
    }

    /// Adds `new` messages to the history; they belong to the active subgoal. Takes constant time.
    pub fn extend(&mut self, new: usize) {
        self.length += new;
        let length = self.length;
        if let Some(last) = self.subgoals.last_mut()
            && last.standing == SubgoalState::Active
        {
            last.span.end = length;
        }
    }

    /// Sets the length of the history: longer than before, or shorter after a rewind.
    pub fn resize(&mut self, length: usize) {
        match length.checked_sub(self.length) {
            Some(new) => self.extend(new),
            None => self.rebuild(length..self.length, 0),
        }
    }

    /// Applies the answer of a model. A new subgoal completes the previous one, whatever the model said about
    /// it. The first subgoal also gets all earlier messages except the first one, which is the user's
    /// request.
    pub fn update(&mut self, said: Extracted) {
        let is_same = |goal: &Subgoal| said.current.as_deref() == Some(goal.text.as_str());
        if self.active().is_some_and(is_same) && !said.is_completed {
            return;
        }
        if said.current.is_some() || said.is_completed {
            for goal in &mut self.subgoals {
                goal.standing = SubgoalState::Completed;
            }
        }
        let Some(text) = said.current else { return };
        let start = if std::mem::replace(&mut self.has_begun, true) {
            self.length
        } else {
            self.length.min(1)
        };
        self.subgoals.push(Subgoal {
            text,
            standing: SubgoalState::Active,
            span: start..self.length,
        });
    }

    /// Returns the importance of the message at an index.
    pub fn tier(&self, place: usize) -> Tier {
        let after = self.subgoals.partition_point(|goal| goal.span.start <= place);
        let goal = after.checked_sub(1).and_then(|index| self.subgoals.get(index));
        match goal.filter(|goal| goal.span.contains(&place)) {
            Some(goal) if goal.standing == SubgoalState::Active => Tier::Active,
            Some(_) => Tier::Completed,
            None => Tier::Outdated,
        }
    }

    /// Updates the spans after the messages in `removed` were replaced by `inserted` new ones. Later indices
    /// move by the difference, and spans shrink by the messages they lost. Pure arithmetic: no message is
    /// examined.
    pub fn rebuild(&mut self, removed: Range<usize>, inserted: usize) {
        let Range { start: from, end: to } = removed;
        let behind = |place: usize| place - (to - from) + inserted;
        self.length = behind(self.length.max(to));
        for goal in &mut self.subgoals {
            let Range { start, end } = goal.span;
            let end = match end {
                end if end <= from => end,
                end if end >= to => behind(end),
                _ => from,
            };
            let start = match start {
                start if start >= to => behind(start),
                start if start < from => start,
                _ => from + inserted,
            };
            goal.span = start.min(end)..end;
        }
        let is_left = |goal: &Subgoal| !goal.span.is_empty() || goal.standing == SubgoalState::Active;
        self.subgoals.retain(is_left);
    }
}

#[cfg(test)]
#[path = "subgoal_tests.rs"]
mod tests;
