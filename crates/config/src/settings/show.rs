//! Formats the settings in effect as lines of TOML that can be read back.

use super::Settings;
use super::layers::Effective;
use super::value::{Value, quote};
use windlass_providers::key::is_credential;

/// CFG-1: `agent.max_iterations = 200  # default`; an unset key is a comment.
pub fn show(settings: &Settings, with_origin: bool) -> String {
    let mut lines = String::new();
    for effective in &settings.origins {
        lines.push_str(&assignment(effective));
        if with_origin {
            lines.push_str(&format!("  # {}", effective.origin));
        }
        lines.push('\n');
    }
    lines
}

/// Returns the line without its origin. A value that may be secret is hidden.
pub(super) fn assignment(effective: &Effective) -> String {
    let key = &effective.key;
    match &effective.value {
        None => format!("# {key} is unset"),
        Some(Value::Text(text))
            if is_secret_header(key, text) || (is_of_server(key) && !text.contains("${")) =>
        {
            format!("{key} = {}", quote("<hidden>"))
        }
        Some(value) => format!("{key} = {value}"),
    }
}

/// MCP-1: variables and headers of MCP servers usually carry tokens.
fn is_of_server(key: &str) -> bool {
    let rest = key.strip_prefix("mcp_servers.");
    rest.is_some_and(|rest| rest.contains(".env.") || rest.contains(".headers."))
}

/// PROV-11: the usual headers that carry a key are rejected, but a gateway may use a different name.
fn is_secret_header(key: &str, value: &str) -> bool {
    let header = key
        .strip_prefix("providers.")
        .and_then(|rest| rest.rsplit_once(".headers."));
    header.is_some_and(|(_, header)| is_credential(header, value))
}
