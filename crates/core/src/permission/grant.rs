//! Approvals given by a person, and their lifetime.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Approver, Denial, Escalation, Proposal, Question, Rule, Subject};
use crate::id::CallId;
use crate::tool::Category;

/// A person's answer to a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this time only.
    Once,
    /// Yes, and do not ask about the same call again in this session.
    Session,
    /// Yes, and never ask about the same call again.
    Always,
    /// Yes, and never ask again about calls whose parts these rules match, instead of the same parts only.
    AlwaysFor(Vec<Rule>),
    /// No; the turn ends.
    No,
    /// No, and the model receives the reason; the turn continues.
    NoBecause(String),
}

/// Shows a permission request to a person.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Waits for the answer. Dropped when the turn is canceled.
    async fn ask(&self, proposal: &Proposal) -> Answer;

    /// Waits for the answer to a tool's question. `None` if there will be none.
    async fn answer(&self, _call: &CallId, _question: &Question) -> Option<String> {
        None
    }
}

#[async_trait]
impl Asker for Arc<dyn Asker> {
    async fn ask(&self, proposal: &Proposal) -> Answer {
        (**self).ask(proposal).await
    }

    async fn answer(&self, call: &CallId, question: &Question) -> Option<String> {
        (**self).answer(call, question).await
    }
}

/// A lasting approval. It covers only what was shown: the same tool with the same definition, in the same
/// folder, for parts that were all on the screen, with no more effect and no more access than was stated. Rules
/// that the person wrote widen the parts, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    cwd: PathBuf,
    category: Category,
    #[serde(default, skip_serializing_if = "Escalation::is_none")]
    reach: Escalation,
    parts: BTreeSet<String>,
    /// The whole call, if one of its parts changes what the others do. Only the same call is then covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Rule>,
}

/// Commands of a shell that change what the commands after them do.
const STATEFUL: &[&str] = &[
    ".", "alias", "builtin", "cd", "command", "declare", "enable", "eval", "exec", "export", "hash", "local",
    "popd", "pushd", "readonly", "set", "shopt", "source", "trap", "typeset", "ulimit", "umask", "unalias",
    "unset",
];

impl Grant {
    /// Creates a grant for the shown proposal.
    pub fn of(proposal: &Proposal) -> Self {
        Self {
            tool: proposal.tool.clone(),
            definition: proposal.definition.clone(),
            cwd: proposal.cwd.clone(),
            category: proposal.category,
            reach: proposal.escalation,
            parts: parts(proposal).into_iter().map(|(_, part)| part).collect(),
            whole: changes_others(proposal).then(|| whole(proposal)),
            rules: Vec::new(),
        }
    }

    /// SAFE-6: widens the parts to those that these rules match. Rules of other tools are left out.
    #[must_use]
    pub fn widened(mut self, rules: Vec<Rule>) -> Self {
        self.rules = rules;
        self.rules.retain(|rule| rule.names(&self.tool));
        self
    }

    /// Returns the tool it covers.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the folder it is valid in.
    pub fn cwd(&self) -> &std::path::Path {
        &self.cwd
    }

    /// Returns the access beyond the default that it covers.
    pub fn reach(&self) -> Escalation {
        self.reach
    }

    /// Returns the covered parts.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(String::as_str)
    }

    /// Returns the rules that a person wrote when giving it.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn covers(&self, subject: Option<&Subject>, part: &str) -> bool {
        let fits = |subject: &Subject| self.rules.iter().any(|rule| rule.fits(subject));
        self.is_of_single_parts() && self.parts.contains(part) || subject.is_some_and(fits)
    }

    /// Returns true if each part means the same without the others.
    fn is_of_single_parts(&self) -> bool {
        let mut commands = self.parts.iter().filter_map(|part| part.strip_prefix(COMMAND));
        self.whole.is_none() && !commands.any(is_stateful)
    }

    fn is_about(&self, proposal: &Proposal) -> bool {
        self.tool == proposal.tool
            && self.definition == proposal.definition
            && self.cwd == proposal.cwd
            && self.category >= proposal.category
            && self.reach.includes(proposal.escalation)
    }
}

/// Start of a part that is a command.
const COMMAND: &str = "command ";

/// Returns true if one of the commands of a call changes the folder or the environment of the others.
fn changes_others(proposal: &Proposal) -> bool {
    let is_stateful = |subject: &Subject| matches!(subject, Subject::Command(text) if is_stateful(text));
    proposal.parts().any(is_stateful)
}

/// Returns the command line of a call, or all of its arguments.
fn whole(proposal: &Proposal) -> String {
    let line = proposal.arguments.get("command").and_then(|line| line.as_str());
    line.map_or_else(|| proposal.arguments.to_string(), str::to_owned)
}

fn is_stateful(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or_default();
    STATEFUL.contains(&first) || first.contains('=')
}

/// Returns true if the grants together cover every part of a proposal. A listed command is never covered.
pub fn granted<'a>(grants: impl Iterator<Item = &'a Grant> + Clone, proposal: &Proposal) -> bool {
    if proposal.blocked.is_some() {
        return false;
    }
    let about = grants.filter(|grant| grant.is_about(proposal));
    let parts = parts(proposal);
    if changes_others(proposal) {
        let whole = Some(whole(proposal));
        let has_all = |grant: &Grant| parts.iter().all(|(_, part)| grant.parts.contains(part));
        return about.clone().any(|grant| grant.whole == whole && has_all(grant));
    }
    parts
        .iter()
        .all(|(subject, part)| about.clone().any(|grant| grant.covers(*subject, part)))
}

/// Returns everything that was on the screen, so that a call with more than that needs a new approval; with the
/// subject of the call, where it is one.
fn parts(proposal: &Proposal) -> Vec<(Option<&Subject>, String)> {
    let named = |subject: &Subject| match subject {
        Subject::Command(text) | Subject::Spelling(text) => format!("{COMMAND}{text}"),
        Subject::Path(text) => format!("path {text}"),
        Subject::Host(text) | Subject::Reached(text) => format!("host {text}"),
    };
    let mut parts: Vec<(Option<&Subject>, String)> = proposal
        .parts()
        .map(|subject| (Some(subject), named(subject)))
        .collect();
    if parts.is_empty() {
        parts.push((None, format!("arguments {}", proposal.arguments)));
    }
    let reasons = proposal.reasons.iter();
    parts.extend(reasons.map(|reason| (None, format!("because {reason}"))));
    parts
}

/// Stores the grants that outlive a session.
pub trait GrantStore: Send + Sync {
    /// Returns the grants, as far as they can be read.
    fn all(&self) -> Vec<Grant>;

    /// Adds a grant.
    ///
    /// # Errors
    /// Fails if the grant cannot be stored; the text gives the reason.
    fn add(&self, grant: &Grant) -> Result<(), String>;
}

/// An [`Approver`] that asks a person only once about the same call.
pub struct Granting<A> {
    asker: A,
    session: Mutex<Vec<Grant>>,
    always: Box<dyn GrantStore>,
}

impl<A: Asker> Granting<A> {
    /// Asks with `asker`, and stores lasting answers in `always`.
    pub fn new(asker: A, always: Box<dyn GrantStore>) -> Self {
        Self {
            asker,
            session: Mutex::default(),
            always,
        }
    }

    fn grant(&self, proposal: &Proposal, rules: Vec<Rule>) -> Grant {
        let grant = Grant::of(proposal).widened(rules);
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.push(grant.clone());
        grant
    }
}

#[async_trait]
impl<A: Asker> Approver for Granting<A> {
    fn granted(&self, proposal: &Proposal) -> bool {
        let mut grants = self.session_grants();
        grants.extend(self.always.all());
        granted(grants.iter(), proposal)
    }

    fn session_grants(&self) -> Vec<Grant> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }

    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        match self.asker.ask(proposal).await {
            Answer::Once => Ok(()),
            // Only this time, whatever a front end offered.
            Answer::Session | Answer::Always | Answer::AlwaysFor(_) if proposal.blocked.is_some() => Ok(()),
            Answer::Session => {
                self.grant(proposal, Vec::new());
                Ok(())
            }
            // A grant that cannot be stored is still valid for this session.
            Answer::Always => {
                let _ = self.always.add(&self.grant(proposal, Vec::new()));
                Ok(())
            }
            Answer::AlwaysFor(rules) => {
                let _ = self.always.add(&self.grant(proposal, rules));
                Ok(())
            }
            Answer::No => Err(Denial {
                reason: Some("You said no.".to_owned()),
                feedback: None,
            }),
            Answer::NoBecause(note) => Err(Denial {
                reason: None,
                feedback: Some(format!("The user did not allow this call and said: {note}")),
            }),
        }
    }

    async fn answer(&self, call: &CallId, question: &Question) -> Option<String> {
        self.asker.answer(call, question).await
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
