//! CTX-7: what the agent works on now, and which messages belong to it.
//!
//! After HiAgent (hierarchical working memory, arXiv 2408.09559): what serves the current subgoal stays as it is, what
//! served one that is done can go. A [`Registry`] knows the spans; it never looks at messages.

use std::ops::Range;

/// How a subgoal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubgoalState {
    /// It is worked on. At most one is.
    Active,
    /// It is done, or was given up for another.
    Completed,
}

/// Something the agent wants to reach on its way, and the messages that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgoal {
    /// What it is, in a sentence.
    pub text: String,
    /// How it stands.
    pub standing: SubgoalState,
    /// Its messages, by place in the history.
    pub span: Range<usize>,
}

/// How dear a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// It serves the subgoal that is worked on, and is never evicted.
    Active,
    /// It served one that is done.
    Completed,
    /// It served none.
    Outdated,
}

impl Tier {
    /// Its weight.
    pub fn relevance(self) -> f64 {
        match self {
            Self::Active => 1.0,
            Self::Completed => 0.3,
            Self::Outdated => 0.1,
        }
    }
}

/// The subgoals of a conversation, the oldest first. Spans never overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registry {
    subgoals: Vec<Subgoal>,
    /// How many messages there are.
    length: usize,
    /// Whether there ever was one.
    has_begun: bool,
}

/// What a model said about the subgoal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extracted {
    /// What is worked on now.
    pub current: Option<String>,
    /// Whether what was worked on before is done.
    pub is_completed: bool,
}

impl Extracted {
    /// Reads `CURRENT: …` and `COMPLETED: …` lines; anything else is the current subgoal as a whole. `NONE` is nothing.
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
    /// All of them.
    pub fn subgoals(&self) -> &[Subgoal] {
        &self.subgoals
    }

    /// The one that is worked on.
    pub fn active(&self) -> Option<&Subgoal> {
        self.subgoals
            .iter()
            .find(|goal| goal.standing == SubgoalState::Active)
    }

    /// The history has `new` messages more: they belong to what is worked on. Costs the same however long the history is.
    pub fn extend(&mut self, new: usize) {
        self.length += new;
        let length = self.length;
        if let Some(last) = self.subgoals.last_mut()
            && last.standing == SubgoalState::Active
        {
            last.span.end = length;
        }
    }

    /// The history has `length` messages now: more than before, or fewer when it was taken back.
    pub fn resize(&mut self, length: usize) {
        match length.checked_sub(self.length) {
            Some(new) => self.extend(new),
            None => self.rebuild(length..self.length, 0),
        }
    }

    /// Takes what a model said. A new subgoal completes the one before it, whatever the model said of that. The first one
    /// has all messages before it as well, from the second on: the first is what the user asked for.
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

    /// How dear the message at a place is.
    pub fn tier(&self, place: usize) -> Tier {
        let after = self.subgoals.partition_point(|goal| goal.span.start <= place);
        let goal = after.checked_sub(1).and_then(|index| self.subgoals.get(index));
        match goal.filter(|goal| goal.span.contains(&place)) {
            Some(goal) if goal.standing == SubgoalState::Active => Tier::Active,
            Some(_) => Tier::Completed,
            None => Tier::Outdated,
        }
    }

    /// The messages from `removed.start` to `removed.end` were replaced by `inserted` new ones. Places behind move by the
    /// difference; spans shrink by what they lost. Arithmetic alone: no message is looked at.
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
