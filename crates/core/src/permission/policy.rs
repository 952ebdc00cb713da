//! The decision about one call. Pure: the same call, rules and mode always give the same answer.

use super::{Blocked, Decision, Denial, Mode, Proposal, Rule, Subject};
use crate::tool::Category;

/// TOOL-10: the answer to a page that nobody can approve.
const UNKNOWN_HOST: &str = "Permission denied: no rule allows this host, and nobody can be asked. Find another way, or \
                            say what you need.";

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

/// Rules and mode that decide about calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The rules.
    pub rules: Rules,
    /// Mode that decides if no rule applies.
    pub mode: Mode,
    /// True if writes ask as well, whatever the mode.
    pub ask_for_writes: bool,
    /// True if a person is there to answer a permission request.
    pub attended: bool,
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
        if let Some(blocked) = &proposal.blocked {
            return self.about_blocked(blocked, proposal);
        }
        if self.asks(proposal).is_some() {
            return Decision::Ask;
        }
        if proposal.escalation.protected {
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

    /// Returns the rule that asks about a call.
    fn asks(&self, proposal: &Proposal) -> Option<&Rule> {
        self.rules.ask.iter().find(|rule| rule.touches(proposal))
    }

    /// Returns the reason why this policy asks about a call, as a clause; `None` if the call itself has reasons.
    pub fn cause(&self, proposal: &Proposal) -> Option<String> {
        if let Some(rule) = self.asks(proposal) {
            return Some(format!("the rule `{rule}` asks about it"));
        }
        if !proposal.reasons.is_empty() {
            return None;
        }
        Some(match (proposal.category, self.mode) {
            (Category::Read, _) if proposal.reads_host() => {
                "it sends this address to another machine".to_owned()
            }
            (Category::Read, _) => "it needs your approval".to_owned(),
            (Category::Write, _) if self.ask_for_writes => {
                "it writes, and security.auto_approve_writes is off".to_owned()
            }
            (Category::Write, mode) => format!("it writes, and mode `{}` asks first", mode.name()),
            (Category::Admin, _) => "it can destroy data or reach outside the workspace".to_owned(),
        })
    }

    /// Returns the rules that would allow a call that needs approval; `None` if no rule can.
    pub fn allowing(&self, proposal: &Proposal) -> Option<Vec<Rule>> {
        let needed = proposal.escalation;
        let mut allow: Vec<Rule> = proposal
            .parts()
            .map(|subject| Rule::exactly(&proposal.tool, subject, needed))
            .collect();
        if allow.is_empty() {
            allow.push(Rule::for_tool(&proposal.tool, needed));
        }
        let mut changed = self.clone();
        changed.rules.allow.extend(allow.iter().cloned());
        // A pattern may mean something else than the text it was made from.
        let are_read_back = allow
            .iter()
            .all(|rule| rule.to_string().parse().as_ref() == Ok(rule));
        let helps = are_read_back && changed.decide(proposal) == Decision::Allow;
        helps.then_some(allow)
    }

    /// SAFE-2: decides about a listed command. No rule allows it, and only a person can.
    fn about_blocked(&self, blocked: &Blocked, proposal: &Proposal) -> Decision {
        let runs = self.mode == Mode::Full
            && blocked.is_undoable
            && !proposal.escalation.protected
            && self.asks(proposal).is_none();
        match self.mode {
            _ if runs => Decision::Allow,
            Mode::Plan | Mode::Unattended => told(blocked.refusal.clone()),
            _ if self.attended => Decision::Ask,
            _ => told(blocked.refusal.clone()),
        }
    }

    fn by_mode(&self, proposal: &Proposal) -> Decision {
        let is_watched = self.attended && self.mode != Mode::Unattended;
        match (self.mode, proposal.category) {
            // SAFE-3: with a person there, a file tool reads what a command can read.
            (_, Category::Read) if proposal.escalation.outside && !is_watched && self.mode != Mode::Full => {
                let path = proposal.parts().last().map_or("", Subject::text);
                told(format!(
                    "Path is outside allowed paths: {path}. Find another way, or say what you need."
                ))
            }
            // TOOL-10: an address can carry anything out.
            (_, Category::Read) if proposal.reads_host() && self.mode != Mode::Full => match is_watched {
                true => Decision::Ask,
                false => told(UNKNOWN_HOST.to_owned()),
            },
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
            (Mode::Auto, Category::Write) => Decision::Allow,
            (Mode::Edits, Category::Write) if proposal.edits_files() => Decision::Allow,
            (Mode::Ask | Mode::Edits, Category::Write) | (_, Category::Admin) => Decision::Ask,
        }
    }
}

/// Returns true if every part of the call, and the access that the call needs, is allowed by some rule. A call
/// without parts needs a rule for its tool as a whole.
fn covers(allow: &[Rule], proposal: &Proposal) -> bool {
    let named: Vec<&Rule> = allow.iter().filter(|rule| rule.names(&proposal.tool)).collect();
    let needed = proposal.escalation;
    if proposal.parts().next().is_none() {
        return named.iter().any(|rule| rule.allows_all(needed));
    }
    proposal
        .parts()
        .all(|subject| named.iter().any(|rule| rule.allows(subject, needed)))
}

/// Returns a denial that is reported to the model, so that it can find another way.
fn told(feedback: String) -> Decision {
    Decision::Deny(Denial {
        reason: None,
        feedback: Some(feedback),
    })
}
