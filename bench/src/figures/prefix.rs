//! The fixed part of every request, and the share of it that the provider has seen before.

use anyhow::{Context, Result};
use serde_json::Value;

use super::mcp;
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::record;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Asks the provider to cache everything before it. It moves along and is not part of the cached prefix.
const MARKER: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
/// End of a request. The next request continues before it.
const CLOSING: &str = "]}";

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for wire in Wire::ALL {
        let requests = record::read(&std::fs::read(lab.record(wire, 50)?)?)?;
        let bodies: Result<Vec<String>, _> = record::bodies(&requests)
            .into_iter()
            .map(String::from_utf8)
            .collect();
        let bodies = bodies?;
        let first = bodies.first().context("no request arrived")?;
        let bytes = fixed(wire, first)?;
        figures.push(Figure {
            name: format!("system prompt and tools, {}", wire.name()),
            agent: format!("{bytes} bytes"),
            floor: "–".to_owned(),
            value: f64::from(u32::try_from(bytes)?),
            unit: "bytes",
            target: Target::AtMost(10_240.0),
        });
        figures.push(Figure {
            name: format!("prefix sent again unchanged, {}", wire.name()),
            agent: format!("{} requests", bodies.len()),
            floor: "–".to_owned(),
            value: reuse(&bodies),
            unit: "%",
            target: Target::AtLeast(100.0),
        });
    }
    figures.extend(with_servers(lab)?);
    Ok(figures)
}

/// The same with 500 tools of 20 servers, in three sessions one after the other, each of which starts the servers.
fn with_servers(lab: &Lab) -> Result<Vec<Figure>> {
    let home = mcp::home(lab, "tools", &mcp::servers(lab, 20, 25, false)?)?;
    let path = lab.path("tools.record");
    let options = ServeOptions {
        record: Some(path.clone()),
        ..ServeOptions::new(Wire::Anthropic, 50)
    };
    let server = lab.serve(&options)?;
    for number in 0..3 {
        let mut command = lab.agent(&server, Wire::Anthropic, "text");
        command.env("WINDLASS_HOME", &home);
        if number > 0 {
            // The servers of the earlier turn are known to be too many, and those of this one are ready at its start.
            command.args(["--continue", "-c", "mcp.startup_wait_secs=30"]);
        }
        process::run(&mut command, Memory::Ignored)?;
    }
    let log = server.finish()?;
    let bodies = record::bodies(&record::read(&std::fs::read(path)?)?).into_iter();
    let bodies: Vec<String> = bodies.map(String::from_utf8).collect::<Result<_, _>>()?;
    anyhow::ensure!(
        log.arrivals.len() == 3 * 51,
        "{} requests arrived",
        log.arrivals.len()
    );
    let fixed: Result<Vec<usize>> = bodies.iter().map(|body| fixed(Wire::Anthropic, body)).collect();
    let bytes = fixed?.into_iter().max().unwrap_or_default();
    Ok(vec![
        Figure {
            name: "system prompt and tools, with 500 tools of 20 MCP servers".to_owned(),
            agent: format!("{bytes} bytes"),
            floor: "–".to_owned(),
            value: f64::from(u32::try_from(bytes)?),
            unit: "bytes",
            target: Target::AtMost(12_288.0),
        },
        Figure {
            name: "prefix sent again unchanged, with 500 tools of 20 MCP servers".to_owned(),
            agent: format!("{} requests", bodies.len()),
            floor: "–".to_owned(),
            value: reuse(&bodies),
            unit: "%",
            target: Target::AtLeast(100.0),
        },
    ])
}

/// Returns the bytes of system prompt and tools in a request, as sent.
fn fixed(wire: Wire, body: &str) -> Result<usize> {
    let request: Value = serde_json::from_str(body)?;
    let system = match wire {
        Wire::Anthropic => request.get("system"),
        Wire::Chat => request.pointer("/messages/0"),
        Wire::Responses => request.get("instructions"),
    };
    let system = system.context("the request has no system prompt")?;
    let tools = request.get("tools").context("the request has no tools")?;
    Ok(system.to_string().len() + tools.to_string().len())
}

/// Returns the smallest share of a request that the next one starts with, in percent.
fn reuse(bodies: &[String]) -> f64 {
    let sent: Vec<String> = bodies.iter().map(|body| body.replace(MARKER, "")).collect();
    let share = |pair: &[String]| {
        let [before, after] = pair else { return 100.0 };
        let before = before.strip_suffix(CLOSING).unwrap_or(before);
        let shared = record::shared(before.as_bytes(), after.as_bytes());
        let part = |bytes: usize| f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        part(shared) / part(before.len()) * 100.0
    };
    sent.windows(2).map(share).fold(100.0, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_do_not_count_and_changes_do() {
        let marked = format!("{{\"messages\":[{{\"a\":1{MARKER}}}]}}");
        let next = "{\"messages\":[{\"a\":1},{\"b\":2}]}".to_owned();
        assert!((reuse(&[marked, next.clone()]) - 100.0).abs() < f64::EPSILON);
        let changed = "{\"messages\":[{\"a\":2},{\"b\":2},{\"c\":3}]}".to_owned();
        assert!(reuse(&[next, changed]) < 100.0);
    }
}
