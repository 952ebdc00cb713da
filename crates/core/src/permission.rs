//! Whether a call may run. Deciding is pure; only asking waits.

mod escalation;
mod grant;
mod policy;
mod rule;

use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

pub use self::escalation::Escalation;
pub use self::grant::{Answer, Asker, Grant, GrantStore, Granting, granted};
pub use self::policy::{Mode, Policy, Rules};
pub use self::rule::{Rule, RuleError};
use crate::id::CallId;
use crate::tool::Category;

/// A validated call, as rules and people judge it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The kind of effect.
    pub category: Category,
    /// The arguments.
    pub arguments: Value,
    /// What the call is about, part by part: each command of a line, each path, each host.
    pub subjects: Vec<Subject>,
    /// Why the tool itself will not do this, whatever the rules say.
    pub refusal: Option<String>,
    /// Why somebody should look at it first, each in a few words about "it".
    pub reasons: Vec<String>,
    /// The folder it would run in.
    pub cwd: PathBuf,
    /// What the tool is, when that can change: a digest of its definition.
    pub definition: Option<String>,
    /// What would happen, for a person to read: the command, the diff. Only made when somebody is asked.
    pub preview: Option<String>,
}

/// One thing a call is about; what a rule's pattern is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A simple command of a command line.
    Command(String),
    /// A file or folder, relative to the workspace when it is inside.
    Path(String),
    /// A host on the network.
    Host(String),
}

impl Subject {
    /// The command, path or host.
    pub fn text(&self) -> &str {
        match self {
            Self::Command(text) | Self::Path(text) | Self::Host(text) => text,
        }
    }
}

impl Proposal {
    /// Whether the call changes files and does nothing else.
    pub fn edits_files(&self) -> bool {
        !self.subjects.is_empty()
            && self
                .subjects
                .iter()
                .all(|subject| matches!(subject, Subject::Path(_)))
    }
}

/// What may happen with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It does not run.
    Deny(Denial),
}

/// Why a call does not run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Denial {
    /// Shown to the user.
    pub reason: Option<String>,
    /// Told to the model instead of ending the turn.
    pub feedback: Option<String>,
}

/// An embedder's say before the built-in rules. Must not block and must not have effects.
pub trait PermissionHook: Send + Sync {
    /// `None` leaves the call to the rules.
    fn can_execute_tool(&self, proposal: &Proposal) -> Option<Decision>;
}

/// Asks a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Whether the same was approved before, for longer than once.
    fn granted(&self, _proposal: &Proposal) -> bool {
        false
    }

    /// What was approved for this session, in order.
    fn session_grants(&self) -> Vec<Grant> {
        Vec::new()
    }

    /// Waits for the answer. The loop drops the future when the turn is canceled.
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial>;

    /// Waits for the answer to a question that a tool asks. `None` when nobody is there.
    async fn answer(&self, _call: &CallId, _question: &Question) -> Option<String> {
        None
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// Answers to choose from; any other text is an answer, too.
    pub options: Vec<String>,
}

/// Nobody is there: every question is answered with no.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

#[async_trait]
impl Approver for NobodyToAsk {
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        let about: Vec<&str> = proposal.subjects.iter().map(Subject::text).collect();
        let about = if about.is_empty() {
            String::new()
        } else {
            format!(": {}", about.join(" · "))
        };
        let why = if proposal.reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", proposal.reasons.join("; "))
        };
        let reason = format!(
            "`{}` needs approval and nobody is there to ask{about}{why}",
            proposal.tool
        );
        Err(Denial {
            reason: Some(reason),
            feedback: None,
        })
    }
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
