//! Texts of `/mcp`.

use std::fmt::Write;

use windlass_core::text::count;
use windlass_mcp::{Phase, ServerReport, ServerSet};

/// Lines of a log that are shown.
const LOG: usize = 20;
/// Addresses of resources that are shown.
const RESOURCES: usize = 30;

/// Describes every server on one line, with its last error below.
pub(super) fn overview(set: &ServerSet) -> String {
    let servers = set.servers();
    if servers.is_empty() {
        return "No MCP servers. `windlass mcp add NAME -- COMMAND` adds one; docs/mcp.md explains the rest."
            .to_owned();
    }
    let mut text = String::new();
    for server in servers {
        let report = server.report();
        let _ = writeln!(
            text,
            "{}  {}  {}  [{}] {}",
            report.name,
            state(&report.phase),
            count(report.tools.len(), "tool"),
            report.origin,
            report.line
        );
        if let Some(error) = &report.last_error {
            let _ = writeln!(text, "    {error}");
        }
    }
    text.push_str("/mcp NAME shows tools and log; /mcp restart|enable|disable NAME switches a server");
    text
}

/// Describes a server: state, tools, resources, prompts, last error and log.
pub(super) fn server(report: &ServerReport) -> String {
    let mut text = format!(
        "{}  {}  [{}]\n{}\n",
        report.name,
        state(&report.phase),
        report.origin,
        report.line
    );
    if !report.about.is_empty() {
        let _ = writeln!(text, "{}", report.about);
    }
    if let Some(error) = &report.last_error {
        let _ = writeln!(text, "last error: {error}");
    }
    let _ = writeln!(text, "tools: {}", list(&report.tools));
    for line in &report.left_out {
        let _ = writeln!(text, "  {line}");
    }
    let shown: Vec<String> = report.resources.iter().take(RESOURCES).cloned().collect();
    let more = match report.resources.len().saturating_sub(RESOURCES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let _ = writeln!(text, "resources: {}{more}", list(&shown));
    let _ = writeln!(text, "prompts: {}", list(&report.prompts));
    let from = report.log.len().saturating_sub(LOG);
    let _ = writeln!(text, "log:");
    for line in report.log.iter().skip(from) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn list(names: &[String]) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

/// Returns the state as a word.
fn state(phase: &Phase) -> &'static str {
    match phase {
        Phase::Off => "off",
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Failed(_) => "failed",
    }
}
