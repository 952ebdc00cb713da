//! Permission rules: `tool`, `tool(pattern)`, or `tool(pattern, network, outside)`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Escalation, Proposal, Subject};
use crate::text::{GlobStar, glob};

/// Start of a pattern for hosts.
const DOMAIN: &str = "domain:";

/// A pattern over calls, such as `bash(git *)`, `write_file(src/**)` or `fetch(domain:example.com)`. An
/// allowing rule covers access beyond the sandbox only if it names it: `bash(npm *, network)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
    reach: Escalation,
}

/// Reason a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a permission rule: {reason}; write `tool`, `tool(pattern)` or `tool(pattern, network)`, as in \
     `bash(git *)`"
)]
pub struct RuleError {
    text: String,
    reason: &'static str,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let error = |reason| RuleError {
            text: text.to_owned(),
            reason,
        };
        let trimmed = text.trim();
        let (tool, pattern) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => {
                let pattern = rest
                    .strip_suffix(')')
                    .ok_or_else(|| error("the closing `)` is missing"))?;
                (tool.trim_end(), Some(pattern))
            }
        };
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '*');
        if tool.is_empty() || !tool.chars().all(fits) {
            return Err(error(
                "a tool's name consists of letters, digits, `_`, `-` and `*`",
            ));
        }
        let (pattern, reach) = match pattern.map(split_reach) {
            None => (None, Escalation::default()),
            Some((pattern, reach)) => (Some(pattern), reach),
        };
        if pattern.is_some_and(|pattern| pattern.trim().is_empty()) {
            return Err(error("the pattern is empty"));
        }
        let rule = Self {
            tool: tool.to_owned(),
            pattern: pattern.map(str::to_owned),
            reach,
        };
        match rule.domain() {
            Some(domain) if !is_name(domain) => Err(error(
                "a domain is a host name such as `example.com`, which includes the names below it",
            )),
            _ => Ok(rule),
        }
    }
}

impl TryFrom<String> for Rule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            None => f.write_str(&self.tool),
            Some(pattern) => {
                write!(f, "{}({pattern}", self.tool)?;
                self.reach.words().try_for_each(|word| write!(f, ", {word}"))?;
                f.write_str(")")
            }
        }
    }
}

/// Splits the access that a rule names from its pattern: `npm *, network`.
fn split_reach(text: &str) -> (&str, Escalation) {
    let (mut pattern, mut reach) = (text, Escalation::default());
    while let Some((before, word)) = pattern.rsplit_once(',') {
        if !reach.add_word(word.trim()) {
            break;
        }
        pattern = before.trim_end();
    }
    (pattern, reach)
}

impl Rule {
    /// Returns the name of the tool, or the pattern of names.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns true if the rule covers a tool as a whole, whatever its arguments.
    pub fn is_for_all(&self) -> bool {
        self.pattern
            .as_deref()
            .is_none_or(|pattern| pattern == "*" || pattern == "**")
    }

    /// Returns the domain of a rule such as `bash(domain:example.com)`.
    pub fn domain(&self) -> Option<&str> {
        self.pattern.as_deref().and_then(domain)
    }

    /// Returns true if the rule applies to this tool at all.
    pub fn names(&self, tool: &str) -> bool {
        glob(&self.tool, tool, GlobStar::Anything)
    }

    /// Returns true if the rule matches any part of the call. Used by deny and ask rules. A rule that names
    /// access matches only calls that need some of it.
    pub fn touches(&self, proposal: &Proposal) -> bool {
        self.names(&proposal.tool)
            && (self.reach.is_none() || self.reach.overlaps(proposal.escalation))
            && (self.pattern.is_none() || proposal.subjects.iter().any(|subject| self.fits(subject)))
    }

    /// Returns true if the rule allows this part of a call, and the access that the call needs. A command line
    /// runs as a whole with that access, so the rule of each of its commands must name it. The pattern of an
    /// absolute path names the place itself.
    pub(super) fn allows(&self, subject: &Subject, needed: Escalation) -> bool {
        let named = match subject {
            Subject::Path(path) => {
                let is_absolute = |text: &str| text.starts_with('/');
                !is_absolute(path) || self.pattern.as_deref().is_some_and(is_absolute)
            }
            Subject::Command(_) | Subject::Spelling(_) | Subject::Host(_) | Subject::Reached(_) => false,
        };
        self.fits(subject) && (named || self.reach.includes(needed))
    }

    /// Returns true if the rule allows a call without parts, and the access that it needs.
    pub(super) fn allows_all(&self, needed: Escalation) -> bool {
        self.is_for_all() && self.reach.includes(needed)
    }

    /// Creates a rule that allows exactly this part of a call, with this access.
    pub(super) fn exactly(tool: &str, subject: &Subject, reach: Escalation) -> Self {
        let (pattern, reach) = match subject {
            Subject::Host(host) | Subject::Reached(host) => (format!("domain:{host}"), Escalation::default()),
            Subject::Path(path) => (path.clone(), Escalation::default()),
            Subject::Command(text) | Subject::Spelling(text) => (text.clone(), reach),
        };
        Self {
            tool: tool.to_owned(),
            pattern: Some(pattern),
            reach,
        }
    }

    /// Creates a rule for every call of a tool, with this access.
    pub(super) fn for_tool(tool: &str, reach: Escalation) -> Self {
        Self {
            tool: tool.to_owned(),
            pattern: (!reach.is_none()).then(|| "*".to_owned()),
            reach,
        }
    }

    /// Returns true if the rule matches this part of a call.
    pub fn fits(&self, subject: &Subject) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        match subject {
            Subject::Command(text) | Subject::Spelling(text) => fits_command(pattern, text),
            Subject::Path(path) => fits_path(pattern, path),
            Subject::Host(host) | Subject::Reached(host) => fits_host(pattern, host),
        }
    }
}

/// `git *` matches `git` and `git status`, but never `gitk`.
fn fits_command(pattern: &str, text: &str) -> bool {
    let bare = pattern
        .strip_suffix(" *")
        .is_some_and(|bare| glob(bare, text, GlobStar::Anything));
    bare || glob(pattern, text, GlobStar::Anything)
}

/// Both are relative to the workspace, or absolute; a leading `./` is ignored.
fn fits_path(pattern: &str, path: &str) -> bool {
    let plain = |text: &str| text.strip_prefix("./").unwrap_or(text).to_owned();
    let (pattern, path) = (plain(pattern), plain(path));
    let folder = pattern
        .strip_suffix("/**")
        .is_some_and(|folder| glob(folder, &path, GlobStar::Segment));
    folder || glob(&pattern, &path, GlobStar::Segment)
}

/// Returns the domain of a pattern for hosts. `*.example.com` means the same as `example.com`.
fn domain(pattern: &str) -> Option<&str> {
    let name = pattern.strip_prefix(DOMAIN)?.trim();
    Some(name.strip_prefix("*.").unwrap_or(name))
}

/// Returns true for a host name, possibly with a port.
fn is_name(domain: &str) -> bool {
    let (name, port) = domain.split_once(':').unwrap_or((domain, "443"));
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    !name.is_empty() && name.chars().all(is_letter) && port.parse::<u16>().is_ok()
}

/// `domain:example.com` matches the host and its subdomains.
fn fits_host(pattern: &str, host: &str) -> bool {
    let Some(domain) = domain(pattern) else {
        return false;
    };
    let (domain, host) = (domain.to_ascii_lowercase(), host.to_ascii_lowercase());
    host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
}
