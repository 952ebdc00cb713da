//! Permission for tool calls. Deciding is pure; only asking waits.

mod escalation;
mod grant;
mod mode;
mod policy;
mod rule;

use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

pub use self::escalation::Escalation;
pub use self::grant::{Answer, Asker, Grant, GrantStore, Granting, granted};
pub use self::mode::{Mode, ModeError};
pub use self::policy::{Policy, Rules};
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
    /// Reasons to ask the user first, each a clause such as "it reaches the network".
    pub reasons: Vec<String>,
    /// Access beyond the default that the call needs.
    pub escalation: Escalation,
    /// The list of blocked commands that the call is on.
    pub blocked: Option<Blocked>,
    /// Folder the call would run in.
    pub cwd: PathBuf,
    /// Digest of the tool's definition, if the definition can change.
    pub definition: Option<String>,
    /// Preview of the effect for a person: the command, the diff. Created only for a permission request.
    pub preview: Option<String>,
}

/// A call that runs a listed command. A person may allow it, each time anew; with nobody there it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Message for the model where no person can decide. It names the list.
    pub refusal: String,
    /// True if everything that the call destroys can be restored.
    pub is_undoable: bool,
}

/// One subject of a call; rule patterns are matched against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A simple command of a command line.
    Command(String),
    /// Another spelling of a command, without the options before its subcommand: `git push` for `git -C . push`.
    /// Only rules that deny or ask look at it.
    Spelling(String),
    /// A file or folder, relative to the workspace when it is inside.
    Path(String),
    /// A host on the network.
    Host(String),
    /// A host that a command is known to reach. Only rules that deny or ask look at it: the sandbox enforces
    /// those that allow it.
    Reached(String),
}

impl Subject {
    /// Returns the command, path or host.
    pub fn text(&self) -> &str {
        match self {
            Self::Command(text) | Self::Spelling(text) | Self::Path(text) | Self::Host(text) => text,
            Self::Reached(text) => text,
        }
    }

    /// Returns true if the subject is a part of the call, and not another spelling or a consequence of one.
    pub fn is_part(&self) -> bool {
        !matches!(self, Self::Spelling(_) | Self::Reached(_))
    }
}

impl Proposal {
    /// Returns the parts of the call, without their other spellings.
    pub fn parts(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(|subject| subject.is_part())
    }

    /// Returns true if the call gets something from a host, by an address of the model's choice.
    pub fn reads_host(&self) -> bool {
        self.subjects
            .iter()
            .any(|subject| matches!(subject, Subject::Host(_)))
    }

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
        let about: Vec<&str> = proposal.parts().map(Subject::text).collect();
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
