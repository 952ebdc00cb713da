//! The decision about one call. Pure: the same call, rules and mode always give the same answer.

use super::{Decision, Denial, Proposal, Rule};
use crate::tool::Category;

/// Who said what may run. Deny beats ask beats allow, wherever they come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Never runs.
    pub deny: Vec<Rule>,
    /// Somebody is asked first.
    pub ask: Vec<Rule>,
    /// Runs without asking.
    pub allow: Vec<Rule>,
}

/// How far the agent may go when no rule says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reads only.
    Plan,
    /// Reads and writes run, what destroys or reaches outside asks.
    #[default]
    Default,
    /// Reads and file edits run, every other write asks.
    AcceptEdits,
    /// Reads run, everything else only when a rule allows it: a job that nobody watches.
    Unattended,
    /// Everything runs but what a rule denies or asks about.
    Full,
}

/// What decides about calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The rules.
    pub rules: Rules,
    /// What happens without one.
    pub mode: Mode,
    /// Whether writes ask too, whatever the mode says.
    pub ask_for_writes: bool,
}

impl Policy {
    /// Decides about one call: built-in refusals, deny, ask, allow, then the mode.
    pub fn decide(&self, proposal: &Proposal) -> Decision {
        if let Some(refusal) = &proposal.refusal {
            return told(refusal.clone());
        }
        if let Some(rule) = self.rules.deny.iter().find(|rule| rule.touches(proposal)) {
            return told(format!(
                "Permission denied: the rule `{rule}` forbids this. Find another way, or say what you need."
            ));
        }
        if self.rules.ask.iter().any(|rule| rule.touches(proposal)) {
            return Decision::Ask;
        }
        if covers(&self.rules.allow, proposal) {
            return Decision::Allow;
        }
        self.by_mode(proposal)
    }

    fn by_mode(&self, proposal: &Proposal) -> Decision {
        match (self.mode, proposal.category) {
            (_, Category::Read) | (Mode::Full, _) => Decision::Allow,
            (Mode::Plan, _) => {
                told("Permission denied: this is plan mode, and only reading is allowed.".to_owned())
            }
            (Mode::Unattended, _) => told(
                "Permission denied: nobody watches this run, and no rule allows this. Find another way, or say what \
                 you need."
                    .to_owned(),
            ),
            (_, Category::Write) if self.ask_for_writes => Decision::Ask,
            (Mode::Default, Category::Write) => Decision::Allow,
            (Mode::AcceptEdits, Category::Write) if proposal.edits_files() => Decision::Allow,
            (Mode::AcceptEdits, Category::Write) | (_, Category::Admin) => Decision::Ask,
        }
    }
}

/// Whether every part of the call is allowed by some rule. A call without parts needs a rule for its tool as a whole.
fn covers(allow: &[Rule], proposal: &Proposal) -> bool {
    let named: Vec<&Rule> = allow.iter().filter(|rule| rule.names(&proposal.tool)).collect();
    if proposal.subjects.is_empty() {
        return named.iter().any(|rule| rule.is_for_all());
    }
    proposal
        .subjects
        .iter()
        .all(|subject| named.iter().any(|rule| rule.fits(subject)))
}

/// A denial the model hears about, so that it can find another way.
fn told(feedback: String) -> Decision {
    Decision::Deny(Denial {
        reason: None,
        feedback: Some(feedback),
    })
}
