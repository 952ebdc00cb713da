//! An MCP server over standard input and output, as small as possible: its tools repeat their argument.

use std::io::{self, BufRead, Write};

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

/// Options of the server.
#[derive(Debug, Clone, Args)]
pub(crate) struct ToolServerOptions {
    /// Number of tools.
    #[arg(long, default_value_t = 25)]
    pub(crate) tools: usize,
    /// Behaviour.
    #[arg(long, value_enum, default_value_t = Conduct::Serves)]
    pub(crate) conduct: Conduct,
}

/// Behaviour of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Conduct {
    /// It answers.
    Serves,
    /// It ends at once.
    Ends,
    /// It reads, and never answers.
    Hangs,
}

impl Conduct {
    /// Returns the argument that selects it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Serves => "serves",
            Self::Ends => "ends",
            Self::Hangs => "hangs",
        }
    }
}

/// Serves until standard input ends.
pub(crate) fn tool_server(options: &ToolServerOptions) -> Result<()> {
    if options.conduct == Conduct::Ends {
        anyhow::bail!("this server does not start");
    }
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let (Some(id), Conduct::Serves) = (request.get("id"), options.conduct) else {
            continue;
        };
        let answer = match result(options, &request) {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "unknown method" } })
            }
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn result(options: &ToolServerOptions, request: &Value) -> Option<Value> {
    match request.get("method")?.as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": request.pointer("/params/protocolVersion")?,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "bench", "version": "1" },
        })),
        "ping" => Some(json!({})),
        "tools/list" => {
            let tools: Vec<Value> = (0..options.tools).map(tool).collect();
            Some(json!({ "tools": tools }))
        }
        "tools/call" => {
            let text = request.pointer("/params/arguments").cloned().unwrap_or_default();
            Some(json!({ "content": [{ "type": "text", "text": text.to_string() }] }))
        }
        _ => None,
    }
}

/// A tool of the usual size.
fn tool(number: usize) -> Value {
    json!({
        "name": format!("search_records_{number}"),
        "description": "Searches the records of a project and returns those that match, the newest first. Use it to find \
                        a record before you change it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words that the record contains" },
                "limit": { "type": "integer", "description": "Maximum number of records", "default": 20 },
            },
            "required": ["query"],
        },
    })
}
