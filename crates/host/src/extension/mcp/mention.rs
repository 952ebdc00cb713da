//! MCP-6: resources that the user names in a message, as `@server:uri`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windlass_core::hook::{Hook, TurnAction, TurnHook};
use windlass_core::message::{Fragment, FragmentSource, Message, Part, Role};
use windlass_mcp::ServerSet;

use super::CurrentServers;
use crate::extension::ExtensionHost;

/// Resources of a message that are read.
const MAX_MENTIONS: usize = 10;
/// Longest text of a resource, in characters.
const MAX_TEXT: usize = 100_000;
/// Time to read the resources of a message.
const LIMIT: Duration = Duration::from_secs(60);
/// The tool that reads resources: a rule that denies it denies mentions as well.
const TOOL: &str = "mcp_resource";

/// Adds the resources that a message names to the conversation.
pub(super) struct MentionHook {
    servers: CurrentServers,
    host: ExtensionHost,
    warnings: Mutex<Vec<String>>,
}

impl MentionHook {
    pub(super) fn new(servers: CurrentServers, host: ExtensionHost) -> Self {
        Self {
            servers,
            host,
            warnings: Mutex::default(),
        }
    }

    async fn read(&self, set: &ServerSet, (server, uri): (String, String)) -> Fragment {
        let named = format!("@{server}:{uri}");
        let read = match (self.is_denied(), set.find(&server)) {
            (true, _) => Err(format!("a rule forbids {TOOL}")),
            (false, None) => Err("there is no such MCP server".to_owned()),
            (false, Some(found)) => {
                let cancel = CancellationToken::new();
                let _guard = cancel.clone().drop_guard();
                found.read(&uri, &cancel).await.map_err(|error| error.to_string())
            }
        };
        let text = match read {
            Ok((text, _)) => windlass_mcp::plain_text(&text, MAX_TEXT),
            Err(why) => {
                let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
                warnings.push(format!("{named} could not be read: {why}"));
                format!("[it could not be read: {why}]")
            }
        };
        Fragment::new(FragmentSource::Resource, text).labeled(named)
    }

    fn is_denied(&self) -> bool {
        let Some(calls) = self.host.calls() else {
            return false;
        };
        calls.config.policy.rules.deny.iter().any(|rule| rule.names(TOOL))
    }
}

impl Hook for MentionHook {
    fn name(&self) -> &str {
        "mcp resources"
    }

    fn time_limit(&self) -> Duration {
        LIMIT
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for MentionHook {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        let set = self.servers.get();
        let known = |name: &str| set.find(name).is_some();
        let mut fragments = Vec::new();
        for mention in mentions(&said(history), known) {
            fragments.push(self.read(&set, mention).await);
        }
        TurnAction::Start(fragments)
    }

    /// Includes news of the servers: one that fails during the only turn of a run would not be mentioned otherwise.
    fn take_warnings(&self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        for server in self.servers.get().servers() {
            warnings.extend(server.take_notices());
        }
        warnings
    }
}

/// Returns the user's own words that a turn starts with.
fn said(history: &[Arc<Message>]) -> String {
    let last = history.last().filter(|message| message.role == Role::User);
    let texts = last.into_iter().flat_map(|message| &message.parts);
    let texts = texts.filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the servers and addresses that a text names, each once.
fn mentions(text: &str, is_server: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_start_matches(['(', '[', '{', '"', '\'', '`']);
        let Some((server, uri)) = word.strip_prefix('@').and_then(|rest| rest.split_once(':')) else {
            continue;
        };
        // Marks after the address belong to the sentence.
        let uri = uri.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`']);
        let mention = (server.to_owned(), uri.to_owned());
        let is_clean = !uri.is_empty() && !uri.contains(['"', '<', '>']);
        if is_clean && is_server(server) && !found.contains(&mention) {
            found.push(mention);
        }
    }
    found.truncate(MAX_MENTIONS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MCP-6: addresses are found in a sentence; other words with an `@` are not.
    #[test]
    fn mentions_are_found() {
        let found = |text: &str| mentions(text, |name| name == "docs");
        let one = |uri: &str| vec![("docs".to_owned(), uri.to_owned())];
        assert_eq!(found("compare @docs:file:///a.md, please"), one("file:///a.md"));
        assert_eq!(found("(see @docs:note://x?y=1)."), one("note://x?y=1"));
        assert_eq!(found("@docs:a @docs:a"), one("a"));
        assert_eq!(found("me@docs:a @other:b @docs @docs: @docs:<x>"), []);
    }
}
