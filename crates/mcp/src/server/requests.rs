//! Requests of people: resources, prompts, and calls for a command of the user.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, PromptMessage, ReadResourceRequestParams, ResourceContents,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use windlass_core::message::Binary;

use super::{MAX_ENTRIES, McpServer, Phase};
use crate::client::lock;
use crate::config::McpError;
use crate::content;

impl McpServer {
    /// Returns true if the server has a tool of this name, also one that the model does not get.
    pub fn has_tool(&self, name: &str) -> bool {
        lock(&self.state).lists.names.iter().any(|known| known == name)
    }

    /// Calls a tool for a command of the user, and returns its structured content. A server that has ended is not
    /// started again: the state that the caller works with ended with it.
    ///
    /// # Errors
    /// If the server does not run, refuses, answers with something else, or takes longer than `limit`.
    pub async fn ask(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<Value, McpError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let Some(connection) = self.connection() else {
            return Err(match self.phase() {
                Phase::Failed(error) => error,
                _ => McpError::NotRunning("it is not running".to_owned()),
            });
        };
        connection.meter.reset();
        let called = tokio::time::timeout(limit, connection.service.call_tool(params)).await;
        let Ok(called) = called else {
            return Err(McpError::Timeout {
                phase: "the call",
                limit,
            });
        };
        let result = self.settle(&connection, called).await?;
        let texts: Vec<&str> = result
            .content
            .iter()
            .filter_map(|block| Some(block.as_text()?.text.as_str()))
            .collect();
        let text = texts.join("\n");
        if result.is_error == Some(true) {
            return Err(McpError::Refused(content::line(&text, 500)));
        }
        // Earlier revisions have no structured content, and send it as text.
        match result.structured_content {
            Some(value) => Ok(value),
            None => serde_json::from_str(&text)
                .map_err(|_| McpError::Protocol(format!("{tool} did not answer with JSON"))),
        }
    }

    /// Reads a resource. Returns its text and images.
    ///
    /// # Errors
    /// If the server does not run, refuses, or takes too long.
    pub async fn read(
        self: &Arc<Self>,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<(String, Vec<Binary>), McpError> {
        let params = ReadResourceRequestParams::new(uri.to_owned());
        let work = async {
            let connection = self.ready().await?;
            connection.meter.reset();
            let read = connection.service.read_resource(params).await;
            self.settle(&connection, read).await
        };
        let result = self.limited(work, cancel).await?;
        let mut images = Vec::new();
        let part = |contents: ResourceContents| content::contents(contents, &mut images);
        let parts: Vec<String> = result.contents.into_iter().take(MAX_ENTRIES).map(part).collect();
        Ok((parts.join("\n"), images))
    }

    /// Gets a prompt. Returns its messages as one text.
    ///
    /// # Errors
    /// If the server does not run, refuses, or takes too long.
    pub async fn prompt(self: &Arc<Self>, name: &str, words: &[String]) -> Result<String, McpError> {
        self.settled().await;
        let known = self.prompts();
        let arguments = known.iter().find(|prompt| prompt.name == name);
        let arguments = arguments.map(|prompt| fill(&prompt.arguments, words)).transpose();
        let arguments = arguments.map_err(McpError::Refused)?;
        let mut params = GetPromptRequestParams::new(name.to_owned());
        params.arguments = arguments;
        let work = async {
            let connection = self.ready().await?;
            connection.meter.reset();
            let got = connection.service.get_prompt(params).await;
            self.settle(&connection, got).await
        };
        let result = self.limited(work, &CancellationToken::new()).await?;
        let texts: Vec<String> = result.messages.into_iter().take(100).map(message_text).collect();
        Ok(texts.join("\n\n"))
    }
}

/// Assigns words to arguments: `name=value`, or in order. The last argument takes the rest.
fn fill(arguments: &[(String, bool)], words: &[String]) -> Result<Map<String, Value>, String> {
    let mut filled = Map::new();
    let mut rest: Vec<&str> = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if arguments.iter().any(|(known, _)| known == name) => {
                filled.insert(name.to_owned(), Value::String(value.to_owned()));
            }
            _ => rest.push(word),
        }
    }
    let open: Vec<&String> = arguments
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !filled.contains_key(*name))
        .collect();
    let mut rest = rest.into_iter();
    for (index, name) in open.iter().enumerate() {
        let value = match index + 1 == open.len() {
            true => rest.by_ref().collect::<Vec<_>>().join(" "),
            false => rest.next().unwrap_or_default().to_owned(),
        };
        if !value.is_empty() {
            filled.insert((*name).clone(), Value::String(value));
        }
    }
    let missing = arguments
        .iter()
        .find(|(name, required)| *required && !filled.contains_key(name));
    match missing {
        Some((name, _)) => Err(format!("the argument `{name}` is missing")),
        None => Ok(filled),
    }
}

fn message_text(message: PromptMessage) -> String {
    let value = serde_json::to_value(&message.content).unwrap_or_default();
    match value.get("text").and_then(Value::as_str) {
        Some(text) => content::plain(text, 100_000),
        None => match value.pointer("/resource/text").and_then(Value::as_str) {
            Some(text) => content::plain(text, 100_000),
            None => "[content that is not text]".to_owned(),
        },
    }
}
