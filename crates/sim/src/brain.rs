//! Decides the answer to a request: a script, the rules or a recording.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::answer::Answer;
use crate::rules;
use crate::script::{OnEnd, Script, Times};
use crate::seen::Seen;
use crate::wire::Protocol;

/// Decides the answer to a request.
#[derive(Clone, Debug)]
pub struct Brain {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Rules,
    Script(Script),
    Recording(Recording),
}

/// Looks up a recorded answer by the bytes of the request.
#[derive(Clone)]
pub struct Recording(Find);

type Find = Arc<dyn Fn(&[u8]) -> Option<Recorded> + Send + Sync>;

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recording")
    }
}

/// A recorded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub form: String,
    /// Response body.
    pub body: Bytes,
    /// True if the connection broke after the body.
    pub is_cut: bool,
}

impl Brain {
    /// Uses the built-in rules, which answer simple requests with real tool calls.
    #[must_use]
    pub const fn rules() -> Self {
        Self { kind: Kind::Rules }
    }

    /// Answers from a recording. A request that `find` does not know is refused.
    #[must_use]
    pub fn recording(find: impl Fn(&[u8]) -> Option<Recorded> + Send + Sync + 'static) -> Self {
        Self {
            kind: Kind::Recording(Recording(Arc::new(find))),
        }
    }

    /// Answers from a script of replies.
    #[must_use]
    pub const fn script(script: Script) -> Self {
        Self {
            kind: Kind::Script(script),
        }
    }
}

/// The state of a brain: counts the uses of each reply of its script.
#[derive(Debug)]
pub(crate) struct Mind {
    brain: Brain,
    used: Mutex<Vec<u64>>,
}

/// Error for the author of a script that has no answer.
#[derive(Debug, thiserror::Error)]
#[error(
    "the script has no reply for this request: {used} of {total} replies are used up, the conditions of the others do not fit"
)]
pub(crate) struct Exhausted {
    used: usize,
    total: usize,
}

impl Mind {
    pub(crate) fn new(brain: Brain) -> Self {
        let replies = match &brain.kind {
            Kind::Rules | Kind::Recording(_) => 0,
            Kind::Script(script) => script.replies.len(),
        };
        Self {
            used: Mutex::new(vec![0; replies]),
            brain,
        }
    }

    /// Returns the answer recorded for a request; the outer `None` means that there is no recording.
    pub(crate) fn recorded(&self, request: &[u8]) -> Option<Option<Recorded>> {
        match &self.brain.kind {
            Kind::Recording(recording) => Some((recording.0)(request)),
            _ => None,
        }
    }

    pub(crate) fn answer(&self, wire: Protocol, seen: &Seen) -> Result<Answer, Exhausted> {
        let script = match &self.brain.kind {
            Kind::Rules | Kind::Recording(_) => return Ok(rules::answer(seen)),
            Kind::Script(script) => script,
        };
        let mut answer = match self.pick(script, wire, seen) {
            Ok(index) => script.replies[index].answer(seen),
            Err(_) if script.on_end == OnEnd::Rules => rules::answer(seen),
            Err(exhausted) => return Err(exhausted),
        };
        answer.model = script.model.clone();
        Ok(answer)
    }

    /// Picks the first unused reply that fits, and marks it as used.
    fn pick(&self, script: &Script, wire: Protocol, seen: &Seen) -> Result<usize, Exhausted> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |used: &[u64]| {
            (0..script.replies.len())
                .find(|index| !spent(script, used, *index) && script.replies[*index].when.holds(wire, seen))
        };
        let mut found = find(&used);
        if found.is_none() && script.on_end == OnEnd::Repeat {
            used.fill(0);
            found = find(&used);
        }
        match found {
            Some(index) => {
                used[index] += 1;
                Ok(index)
            }
            None => Err(Exhausted {
                used: (0..used.len())
                    .filter(|index| spent(script, &used, *index))
                    .count(),
                total: used.len(),
            }),
        }
    }
}

fn spent(script: &Script, used: &[u64], index: usize) -> bool {
    match script.replies[index].times {
        Times::Count(count) => used[index] >= count,
        Times::Forever => false,
    }
}
