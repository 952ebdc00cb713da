//! Conditions of replies.

use crate::seen::Seen;
use crate::wire::Protocol;

/// Conditions on a request. All conditions given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    pub(crate) user_contains: Option<String>,
    pub(crate) last_result_contains: Option<String>,
    pub(crate) last_result_not_contains: Option<String>,
    pub(crate) last_tool: Option<String>,
    pub(crate) system_contains: Option<String>,
    pub(crate) has_tool: Option<String>,
    pub(crate) wire: Option<Protocol>,
    pub(crate) no_tools: Option<bool>,
}

impl When {
    /// Creates a condition that always holds, to start a chain of the methods below.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires that the last user text contains `text`.
    #[must_use]
    pub fn user_contains(mut self, text: &str) -> Self {
        self.user_contains = Some(text.to_owned());
        self
    }

    /// Requires that the request ends with a tool result that contains `text`.
    #[must_use]
    pub fn last_result_contains(mut self, text: &str) -> Self {
        self.last_result_contains = Some(text.to_owned());
        self
    }

    /// Requires that the request ends with a tool result that does not contain `text`.
    #[must_use]
    pub fn last_result_not_contains(mut self, text: &str) -> Self {
        self.last_result_not_contains = Some(text.to_owned());
        self
    }

    /// Requires that the request ends with a result of `tool`.
    #[must_use]
    pub fn last_tool(mut self, tool: &str) -> Self {
        self.last_tool = Some(tool.to_owned());
        self
    }

    /// Requires that the system text contains `text`.
    #[must_use]
    pub fn system_contains(mut self, text: &str) -> Self {
        self.system_contains = Some(text.to_owned());
        self
    }

    /// Requires that `tool` is offered.
    #[must_use]
    pub fn has_tool(mut self, tool: &str) -> Self {
        self.has_tool = Some(tool.to_owned());
        self
    }

    /// Requires that the request came over `wire`.
    #[must_use]
    pub const fn wire(mut self, wire: Protocol) -> Self {
        self.wire = Some(wire);
        self
    }

    /// Requires that the request offers no tools at all (`true`) or some (`false`).
    #[must_use]
    pub const fn no_tools(mut self, none: bool) -> Self {
        self.no_tools = Some(none);
        self
    }

    pub(crate) fn holds(&self, wire: Protocol, seen: &Seen) -> bool {
        let user = seen.last_user_text().unwrap_or_default();
        let result = seen.last_result().map(|result| result.text.as_str());
        fits(&self.user_contains, |text| user.contains(text))
            && fits(&self.last_result_contains, |text| {
                result.is_some_and(|result| result.contains(text))
            })
            && fits(&self.last_result_not_contains, |text| {
                result.is_some_and(|result| !result.contains(text))
            })
            && fits(&self.last_tool, |tool| seen.last_tool() == Some(tool))
            && fits(&self.system_contains, |text| seen.system.contains(text))
            && fits(&self.has_tool, |tool| seen.offers(tool))
            && self.wire.is_none_or(|wanted| wanted == wire)
            && self.no_tools.is_none_or(|none| none == seen.tools.is_empty())
    }
}

fn fits(condition: &Option<String>, test: impl Fn(&str) -> bool) -> bool {
    condition.as_deref().is_none_or(test)
}
