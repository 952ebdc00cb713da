//! Permission for tool calls. Deciding is pure; only asking waits.

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
    /// Subjects of the call, part by part: each command of a line, each path, each host.
    pub subjects: Vec<Subject>,
    /// Reason the tool itself refuses the call, whatever the rules say.
    pub refusal: Option<String>,
    /// Reasons to ask the user first, each a few words with "it" as the implied subject.
    pub reasons: Vec<String>,
    /// SAFE-10: true if it changes files that other programs run by themselves. Neither a mode nor a rule allows that,
    /// only a person.
    pub protected: bool,
    /// Folder the call would run in.
    pub cwd: PathBuf,
    /// Digest of the tool's definition, if the definition can change.
    pub definition: Option<String>,
    /// Preview of the effect for a person: the command, the diff. Created only for a permission request.
    pub preview: Option<String>,
}

/// One subject of a call; rule patterns are matched against it.
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
    /// Returns the command, path or host.
    pub fn text(&self) -> &str {
        match self {
            Self::Command(text) | Self::Path(text) | Self::Host(text) => text,
        }
    }
}

impl Proposal {
    /// Returns true if the call changes files and does nothing else.
    pub fn edits_files(&self) -> bool {
        !self.subjects.is_empty()
            && self
                .subjects
                .iter()
                .all(|subject| matches!(subject, Subject::Path(_)))
    }
}

/// Decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call runs.
    Allow,
    /// A person is asked.
    Ask,
    /// The call does not run.
    Deny(Denial),
}

/// Reason a call does not run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Denial {
    /// Shown to the user.
    pub reason: Option<String>,
    /// Sent to the model instead of ending the turn.
    pub feedback: Option<String>,
}

/// An embedder's check before the built-in rules. Must not block and must not have effects.
pub trait PermissionHook: Send + Sync {
    /// Judges a call; `None` leaves it to the rules. An approval answers the permission request that the
    /// rules would make; it does not lift a denial.
    fn can_execute_tool(&self, proposal: &Proposal) -> Option<Decision>;
}

/// Asks a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Returns true if a lasting grant covers the call.
    fn granted(&self, _proposal: &Proposal) -> bool {
        false
    }

    /// Returns the grants of this session, in order.
    fn session_grants(&self) -> Vec<Grant> {
        Vec::new()
    }

    /// Waits for the answer. The loop drops the future when the turn is canceled.
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial>;

    /// Waits for the answer to a question that a tool asks. `None` if no person is available.
    async fn answer(&self, _call: &CallId, _question: &Question) -> Option<String> {
        None
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Text of the question.
    pub text: String,
    /// Suggested answers; any other text is also accepted.
    pub options: Vec<String>,
}

/// An approver without a person: every permission request is denied.
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
            "`{}` needs approval, and no one is available to give it{about}{why}",
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
