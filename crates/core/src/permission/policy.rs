//! The decision about one call. Pure: the same call, rules and mode always give the same answer.

use super::{Decision, Denial, Proposal, Rule};
use crate::tool::Category;

/// Permission rules. Deny takes precedence over ask, and ask over allow, whatever their source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Calls that never run.
    pub deny: Vec<Rule>,
    /// Calls that need approval.
    pub ask: Vec<Rule>,
    /// Calls that run without approval.
    pub allow: Vec<Rule>,
}

/// Permissions of the agent if no rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reads only.
    Plan,
    /// Reads and writes run; destructive calls and those that reach outside ask.
    #[default]
    Default,
    /// Reads and file edits run; every other write asks.
    AcceptEdits,
    /// Reads run, everything else only if a rule allows it: for unattended jobs.
    Unattended,
    /// Everything runs unless a rule denies it or asks, or the call changes protected files.
    Full,
}

/// Rules and mode that decide about calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The rules.
    pub rules: Rules,
    /// Mode that decides if no rule applies.
    pub mode: Mode,
    /// True if writes ask as well, whatever the mode.
    pub ask_for_writes: bool,
}

impl Policy {
    /// Decides about one call: built-in refusals, deny, ask, protected files, allow, then the mode.
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
        if proposal.protected {
            return match self.by_mode(proposal) {
                Decision::Allow => Decision::Ask,
                decided => decided,
            };
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
                "Permission denied: this run is unattended, and no rule allows this. Find another way, or say what \
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

/// Returns true if every part of the call is allowed by some rule. A call without parts needs a rule for its
/// tool as a whole.
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

/// Returns a denial that is reported to the model, so that it can find another way.
fn told(feedback: String) -> Decision {
    Decision::Deny(Denial {
        reason: None,
        feedback: Some(feedback),
    })
}
