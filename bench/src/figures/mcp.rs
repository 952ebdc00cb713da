//! MCP servers: the time to the first request with ten of them, beside Codex, and their memory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::{median, milliseconds, told};
use crate::lab::{Lab, Server};
use crate::peers::codex_exec;
use crate::process::{self, Memory};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::tool_server::Conduct;
use crate::wire::Wire;

/// Servers of a run.
const SERVERS: usize = 10;

/// A server's name, its program and its arguments.
pub(crate) type ServerEntry = (String, String, Vec<String>);

/// Servers with this many tools each. With `faulty`, the last two of them end at once and never answer.
pub(super) fn servers(lab: &Lab, count: usize, tools: usize, faulty: bool) -> Result<Vec<ServerEntry>> {
    let program = lab.own_program().to_str().context("a path that is no text")?;
    let entry = |number: usize| {
        let conduct = match (faulty, count - number) {
            (true, 2) => Conduct::Ends,
            (true, 1) => Conduct::Hangs,
            _ => Conduct::Serves,
        };
        let arguments = [
            "tool-server",
            "--tools",
            &tools.to_string(),
            "--conduct",
            conduct.word(),
        ];
        (
            format!("records{number}"),
            program.to_owned(),
            arguments.map(str::to_owned).to_vec(),
        )
    };
    Ok((0..count).map(entry).collect())
}

/// Creates a home of Windlass with these servers, and returns its path.
pub(super) fn home(lab: &Lab, name: &str, servers: &[ServerEntry]) -> Result<std::path::PathBuf> {
    let home = lab.path(name);
    let config = home.join("config");
    std::fs::create_dir_all(&config)?;
    let entries: Map<String, Value> = servers
        .iter()
        .map(|(name, program, arguments)| (name.clone(), json!({ "command": program, "args": arguments })))
        .collect();
    std::fs::write(
        config.join("mcp.json"),
        json!({ "mcpServers": entries }).to_string(),
    )?;
    Ok(home)
}

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let all = servers(lab, SERVERS, 25, true)?;
    let home_with = home(lab, "servers", &all)?;
    let mut figures = vec![start(lab, &home_with)?];
    match codex(lab, &all) {
        Ok(figure) => figures.push(figure),
        Err(error) => eprintln!("  without codex: {error:#}"),
    }
    figures.push(idle(
        lab,
        &home(lab, "idle", &servers(lab, SERVERS, 25, false)?)?,
    )?);
    Ok(figures)
}

fn in_home(lab: &Lab, server: &Server, home: &Path) -> Command {
    let mut command = lab.agent(server, Wire::Anthropic, "text");
    command.env("WINDLASS_HOME", home);
    command
}

/// Time to the first request, with servers and without.
fn start(lab: &Lab, home_with: &Path) -> Result<Figure> {
    let samples = if lab.quick { 7 } else { 41 };
    let home_without = home(lab, "no-servers", &[])?;
    let server = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let mut begun = Vec::new();
    for _ in 0..samples {
        for home in [&home_without, home_with] {
            begun.push(process::run(&mut in_home(lab, &server, home), Memory::Ignored)?.begun);
        }
    }
    let log = server.finish()?;
    anyhow::ensure!(log.arrivals.len() == 2 * samples, "requests are missing");
    let times: Vec<f64> = begun
        .iter()
        .zip(&log.arrivals)
        .map(|(begun, arrived)| milliseconds(*begun, *arrived))
        .collect();
    let pairs = || {
        times
            .chunks_exact(2)
            .filter_map(|pair| Some((*pair.first()?, *pair.last()?)))
    };
    let without = median(pairs().map(|pair| pair.0).collect());
    let with = median(pairs().map(|pair| pair.1).collect());
    Ok(Figure {
        name: format!(
            "exec to the first request with {SERVERS} MCP servers, one dead, one silent (floor: without)"
        ),
        agent: told(with),
        floor: told(without),
        value: median(pairs().map(|(without, with)| with - without).collect()),
        unit: "ms more",
        target: Target::AtMost(2.0),
    })
}

/// The same with Codex, which the result is not judged by.
fn codex(lab: &Lab, servers: &[ServerEntry]) -> Result<Figure> {
    let samples = if lab.quick { 1 } else { 3 };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        for (servers, times) in [(&[][..], &mut without), (servers, &mut with)] {
            let options = ServeOptions {
                talk: true,
                ..ServeOptions::new(Wire::Responses, 0)
            };
            let server = lab.serve(&options)?;
            let begun = process::run(&mut codex_exec(lab, server.port, servers)?, Memory::Ignored)?.begun;
            let arrived = server.finish()?.arrivals.first().copied();
            times.push(milliseconds(begun, arrived.context("no request arrived")?));
        }
    }
    let (with, without) = (median(with), median(without));
    Ok(Figure {
        name: "codex exec to the first request with the same servers (floor: codex without)".to_owned(),
        agent: told(with),
        floor: told(without),
        value: with - without,
        unit: "ms more",
        target: Target::None,
    })
}

/// Memory of a session with servers that are not used.
fn idle(lab: &Lab, home_with: &Path) -> Result<Figure> {
    let rounds = if lab.quick { 1 } else { 5 };
    let home_without = home(lab, "no-servers", &[])?;
    let options = ServeOptions::new(Wire::Anthropic, 200);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (home, peaks) in [(home_without.as_path(), &mut without), (home_with, &mut with)] {
            let run = |server: &Server| in_home(lab, server, home);
            let (cost, _) = lab.measure(&options, Memory::Watched, run)?;
            peaks.push(f64::from(u32::try_from(cost.peak)?) / 1024.0);
        }
    }
    let (with, without) = (median(with), median(without));
    Ok(Figure {
        name: format!("peak memory of 200 iterations with {SERVERS} MCP servers (floor: without)"),
        agent: format!("{with:.1} MB"),
        floor: format!("{without:.1} MB"),
        value: (with - without).max(0.0),
        unit: "MB more",
        target: Target::AtMost(2.0),
    })
}
