//! TOOL-2: tools that find and call the tools of servers which are too many, or not ready yet, to be offered.

use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::tool::{
    AnyTool, Category, Judgement, Prepared, ToolContext, ToolError, ToolOutput, ToolSpec, ToolTraits,
    parse_strict,
};

use crate::content;
use crate::server::Phase;
use crate::set::ServerSet;
use crate::tool::McpTool;

/// Tools that a search returns at most.
const MAX_FOUND: usize = 8;
/// Names that a search without a match lists.
const MAX_NAMES: usize = 100;
/// Names of servers in a description.
const MAX_SERVERS: usize = 40;
/// Time that a search may wait for servers that start.
const SEARCH_LIMIT: Duration = Duration::from_secs(120);

/// Finds tools by words.
pub(crate) struct SearchTool {
    spec: ToolSpec,
    set: Weak<ServerSet>,
}

impl SearchTool {
    pub(crate) fn new(set: &Arc<ServerSet>, servers: &[String]) -> Self {
        let names: Vec<String> = servers
            .iter()
            .take(MAX_SERVERS)
            .map(|name| content::line(name, 60))
            .collect();
        let more = if servers.len() > MAX_SERVERS { ", …" } else { "" };
        Self {
            spec: ToolSpec {
                name: "tool_search".to_owned(),
                description: format!(
                    "Finds tools of the connected MCP servers ({}{more}) that are not in your list of tools. Returns \
                     their names, descriptions and parameters; run one with mcp_call.",
                    names.join(", ")
                ),
                schema: Arc::new(json!({
                    "type": "object",
                    "properties": {
                        "query": { "type": "string", "description": "Words that the tool is about; the name of a server lists its tools" },
                    },
                    "required": ["query"],
                })),
            },
            set: Arc::downgrade(set),
        }
    }
}

impl AnyTool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            timeout: Some(SEARCH_LIMIT),
            ..ToolTraits::default()
        }
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let (value, query) = text_argument(arguments, "query")?;
        let set = self.set.clone();
        Ok(Prepared::new(Category::Read, value, move |cx| {
            Box::pin(search(set, query, cx))
        }))
    }
}

async fn search(set: Weak<ServerSet>, query: String, cx: ToolContext) -> Result<ToolOutput, ToolError> {
    let set = gone(&set)?;
    tokio::select! {
        () = cx.cancel.cancelled() => return Err(ToolError::Canceled("The search was canceled.".to_owned())),
        () = set.settled() => {}
    }
    let tools = set.tools();
    let mut text = String::new();
    let words: Vec<String> = query
        .to_lowercase()
        .split(|sign: char| !sign.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let mut found: Vec<(usize, &Arc<McpTool>)> = tools
        .iter()
        .map(|tool| (score(tool, &words), tool))
        .filter(|(score, _)| *score > 0)
        .collect();
    // A stable sort: equal tools stay in the order of their servers.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    for (_, tool) in found.iter().take(MAX_FOUND) {
        let spec = tool.spec();
        let _ = writeln!(
            text,
            "{}\n{}\nparameters: {}\n",
            spec.name, spec.description, spec.schema
        );
    }
    let rest: Vec<&str> = match found.is_empty() {
        true => tools.iter().map(|tool| tool.name()).collect(),
        false => found
            .iter()
            .skip(MAX_FOUND)
            .map(|(_, tool)| tool.name())
            .collect(),
    };
    if !rest.is_empty() {
        let label = if found.is_empty() {
            "No match. All tools"
        } else {
            "Also"
        };
        let shown: Vec<&str> = rest.iter().copied().take(MAX_NAMES).collect();
        let _ = writeln!(text, "{label}: {}", shown.join(", "));
        if rest.len() > MAX_NAMES {
            let _ = writeln!(text, "and {} more", rest.len() - MAX_NAMES);
        }
    }
    for server in set.servers() {
        if let Phase::Failed(error) = server.phase() {
            let _ = writeln!(
                text,
                "The server {} is not available: {error}",
                server.config().name
            );
        }
    }
    if text.is_empty() {
        text.push_str("The servers offer no tools.");
    }
    Ok(ToolOutput::text(text))
}

/// Rates a tool: a word in the name counts more than one in the description.
fn score(tool: &McpTool, words: &[String]) -> usize {
    let (name, about) = (tool.name().to_lowercase(), tool.spec().description.to_lowercase());
    let rate = |word: &String| match (name.contains(word.as_str()), about.contains(word.as_str())) {
        (true, true) => 4,
        (true, false) => 3,
        (false, true) => 1,
        (false, false) => 0,
    };
    words.iter().map(rate).sum()
}

/// Calls a tool that is not in the list of tools.
pub(crate) struct CallTool {
    spec: ToolSpec,
    set: Weak<ServerSet>,
}

impl CallTool {
    pub(crate) fn new(set: &Arc<ServerSet>) -> Self {
        Self {
            spec: ToolSpec {
                name: "mcp_call".to_owned(),
                description: "Runs a tool that tool_search found.".to_owned(),
                schema: Arc::new(json!({
                    "type": "object",
                    "properties": {
                        "tool": { "type": "string", "description": "Name of the tool, such as mcp__server__tool" },
                        "arguments": { "type": "object", "description": "Arguments, as its parameters describe them" },
                    },
                    "required": ["tool"],
                })),
            },
            set: Arc::downgrade(set),
        }
    }
}

impl AnyTool for CallTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        limited_by_server()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let (value, name) = text_argument(arguments, "tool")?;
        let set = gone(&self.set)?;
        let Some(tool) = set.find_tool(&name) else {
            return Err(ToolError::Invalid(format!(
                "There is no MCP tool {}. Find the name with tool_search.",
                content::line(&name, 100)
            )));
        };
        let inner = match value.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            // Models often send the arguments as a text.
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let prepared = Arc::clone(&tool).prepare(&inner)?;
        Ok(prepared.on_behalf_of(&*tool))
    }
}

/// Traits of a tool whose calls have the time limit of their server.
fn limited_by_server() -> ToolTraits {
    ToolTraits {
        timeout: Some(Duration::from_secs(86_400)),
        ..ToolTraits::default()
    }
}

/// Reads resources of servers.
pub(crate) struct ResourceTool {
    spec: ToolSpec,
    set: Weak<ServerSet>,
}

impl ResourceTool {
    pub(crate) fn new(set: &Arc<ServerSet>) -> Self {
        Self {
            spec: ToolSpec {
                name: "mcp_resource".to_owned(),
                description: "Reads a resource of an MCP server, or lists the server's resources.".to_owned(),
                schema: Arc::new(json!({
                    "type": "object",
                    "properties": {
                        "server": { "type": "string" },
                        "uri": { "type": "string", "description": "Address of the resource; lists them if absent" },
                    },
                    "required": ["server"],
                })),
            },
            set: Arc::downgrade(set),
        }
    }
}

impl AnyTool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        limited_by_server()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let (value, server) = text_argument(arguments, "server")?;
        let uri = value.get("uri").and_then(Value::as_str).map(str::to_owned);
        let set = self.set.clone();
        // Listing shows what the server already said; reading is a request to it.
        let category = if uri.is_some() {
            Category::Admin
        } else {
            Category::Read
        };
        let mut judgement = Judgement::of(category);
        if uri.is_some() {
            judgement.reasons.push(format!(
                "it reads from the MCP server {}",
                content::line(&server, 100)
            ));
        }
        let prepared = Prepared::new(category, value, move |cx| {
            Box::pin(resource(set, server, uri, cx))
        });
        Ok(prepared.with_judgement(judgement))
    }
}

async fn resource(
    set: Weak<ServerSet>,
    name: String,
    uri: Option<String>,
    cx: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let set = gone(&set)?;
    let Some(server) = set.find(&name) else {
        let names: Vec<String> = set
            .servers()
            .iter()
            .map(|server| server.config().name.clone())
            .collect();
        return Err(ToolError::Invalid(format!(
            "There is no MCP server {}. The servers are: {}",
            content::line(&name, 100),
            names.join(", ")
        )));
    };
    tokio::select! {
        () = cx.cancel.cancelled() => return Err(ToolError::Canceled("Canceled.".to_owned())),
        _ = server.settled() => {}
    }
    let Some(uri) = uri else {
        let lines: Vec<String> = server
            .resources()
            .into_iter()
            .take(MAX_NAMES)
            .map(|resource| format!("{}  {}  {}", resource.uri, resource.name, resource.description))
            .collect();
        return Ok(ToolOutput::text(match lines.is_empty() {
            true => "The server lists no resources.".to_owned(),
            false => lines.join("\n"),
        }));
    };
    match server.read(&uri, &cx.cancel).await {
        Ok((text, images)) => Ok(ToolOutput {
            images,
            ..ToolOutput::text(text)
        }),
        Err(error) => Err(ToolError::Permanent(format!("MCP server {name}: {error}"))),
    }
}

fn gone(set: &Weak<ServerSet>) -> Result<Arc<ServerSet>, ToolError> {
    set.upgrade()
        .ok_or_else(|| ToolError::Permanent("The MCP servers are gone.".to_owned()))
}

/// Parses arguments with a required text.
fn text_argument(arguments: &str, name: &str) -> Result<(Value, String), ToolError> {
    let value =
        parse_strict(arguments).map_err(|error| ToolError::Invalid(format!("Not valid JSON: {error}")))?;
    match value.get(name).and_then(Value::as_str).map(str::to_owned) {
        Some(text) => Ok((value, text)),
        None => Err(ToolError::Invalid(format!("`{name}` must be a text."))),
    }
}
