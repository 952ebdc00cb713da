//! Sub-agents: the cost of one, several in parallel, and many one after the other.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{median, milliseconds, told};
use crate::lab::Lab;
use crate::process::{self, Cost, Memory};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Work that the parent has done, call by call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A sub-agent that answers at once.
    Agent,
    /// A tool that returns at once.
    Tool,
}

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    Ok(vec![
        one(lab)?,
        parallel(lab)?,
        flat_time(lab)?,
        flat_memory(lab)?,
    ])
}

/// Compares calls of sub-agents that answer at once with calls of a tool.
fn one(lab: &Lab) -> Result<Figure> {
    let (rounds, calls) = if lab.quick { (1, 20) } else { (9, 100) };
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        pairs.push((run(lab, Work::Tool, calls)?, run(lab, Work::Agent, calls)?));
    }
    #[allow(clippy::cast_precision_loss)]
    let each = |cost: &Cost| milliseconds(cost.begun, cost.ended) / calls as f64;
    Ok(Figure {
        name: "a sub-agent that answers at once (floor: a tool call)".to_owned(),
        agent: told(median(pairs.iter().map(|pair| each(&pair.1)).collect())),
        floor: told(median(pairs.iter().map(|pair| each(&pair.0)).collect())),
        value: median(pairs.iter().map(|pair| each(&pair.1) - each(&pair.0)).collect()),
        unit: "ms more",
        target: Target::AtMost(3.0),
    })
}

/// Runs eight sub-agents that think for a second in parallel.
fn parallel(lab: &Lab) -> Result<Figure> {
    let rounds = if lab.quick { 1 } else { 5 };
    let mut times = Vec::new();
    for _ in 0..rounds {
        let idle = run(lab, Work::Tool, 1)?;
        let calls: Vec<String> = (1..=8)
            .map(|number| format!("{{ tool: agent, args: {{ task: job {number} }} }}"))
            .collect();
        let script = format!(
            "replies:\n  - {{ when: {{ system_contains: {CHILD} }}, text: ok, times: forever, fault: {{ delay_ms: 1000 }} }}\n  \
             - calls: [{}]\n  - text: done\n",
            calls.join(", ")
        );
        let eight = exec(lab, &script)?;
        let start = milliseconds(idle.begun, idle.ended);
        times.push(milliseconds(eight.begun, eight.ended) - start);
    }
    Ok(Figure {
        name: "8 sub-agents that think for 1 s in parallel".to_owned(),
        agent: told(median(times.clone())),
        floor: "1000.00 ms".to_owned(),
        value: median(times) / 1_000.0,
        unit: "×",
        target: Target::AtMost(1.15),
    })
}

fn long(lab: &Lab) -> (usize, usize) {
    if lab.quick { (20, 60) } else { (200, 1_000) }
}

/// Compares the time of a sub-agent after many others with that of the first ones.
fn flat_time(lab: &Lab) -> Result<Figure> {
    let (few, many) = long(lab);
    let growth = |work: Work| -> Result<(f64, f64)> {
        let none = run(lab, work, 1)?;
        let (first, all) = (run(lab, work, few)?, run(lab, work, many)?);
        let time = |cost: &Cost| milliseconds(cost.begun, cost.ended);
        #[allow(clippy::cast_precision_loss)]
        let early = (time(&first) - time(&none)) / (few - 1) as f64;
        #[allow(clippy::cast_precision_loss)]
        let late = (time(&all) - time(&first)) / (many - few) as f64;
        Ok((early, late))
    };
    let (tool, agent) = (growth(Work::Tool)?, growth(Work::Agent)?);
    Ok(Figure {
        name: format!("a sub-agent after {few} others, without the tool calls' own growth"),
        agent: format!("{:.2} → {:.2} ms", agent.0, agent.1),
        floor: format!("{:.2} → {:.2} ms", tool.0, tool.1),
        value: (agent.1 - tool.1) / (agent.0 - tool.0),
        unit: "×",
        target: Target::AtMost(1.15),
    })
}

/// Compares the peak memory after many sub-agents with that after a few.
fn flat_memory(lab: &Lab) -> Result<Figure> {
    let (few, many) = long(lab);
    let growth =
        |work: Work| -> Result<(u64, u64)> { Ok((run(lab, work, few)?.peak, run(lab, work, many)?.peak)) };
    let (tool, agent) = (growth(Work::Tool)?, growth(Work::Agent)?);
    #[allow(clippy::cast_precision_loss)]
    let more = |pair: (u64, u64)| pair.1.saturating_sub(pair.0) as f64 / 1024.0;
    Ok(Figure {
        name: format!("memory of {many} sub-agents one after the other, beside tool calls"),
        agent: format!("{:.1} MB more than {few}", more(agent)),
        floor: format!("{:.1} MB more than {few}", more(tool)),
        value: more(agent) - more(tool),
        unit: "MB",
        target: Target::AtMost(8.0),
    })
}

/// Text in the prompt of every sub-agent.
const CHILD: &str = "started for one task";

/// Runs a turn with this many calls, one after the other, against a model that costs the same for each request.
fn run(lab: &Lab, work: Work, calls: usize) -> Result<Cost> {
    let server = lab.serve(&ServeOptions {
        many: true,
        agents: work == Work::Agent,
        ..ServeOptions::new(Wire::Anthropic, calls)
    })?;
    let mut exec = lab.agent(&server, Wire::Anthropic, "text");
    without_limits(&mut exec);
    let cost = process::run(&mut exec, Memory::Watched)?;
    server.finish()?;
    Ok(cost)
}

/// Raises the limits on the number of sub-agents and on what they use together.
fn without_limits(exec: &mut Command) {
    for setting in [
        "agents.max_agents=2000",
        "agents.max_children=8",
        "agents.max_turns=1000000",
        "agents.max_tokens=1000000000",
        "agents.max_time=2000000",
    ] {
        exec.args(["-c", setting]);
    }
}

/// Runs a turn against a simulated model with a script.
fn exec(lab: &Lab, script: &str) -> Result<Cost> {
    let file = lab.path("agents.yaml");
    fs::write(&file, script)?;
    let windlass = lab.windlass().display().to_string();
    let mut sim = lab
        .other(&lab.path("work"), &windlass)
        .args(["sim", "serve", "--port", "0", "--script"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(sim.stdout.take().context("the model has no output")?).read_line(&mut line)?;
    let url = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    let mut exec = lab.other(&lab.path("work"), &windlass);
    exec.args(["exec", "--provider", "anthropic", "go"]);
    without_limits(&mut exec);
    exec.env("ANTHROPIC_API_KEY", "bench")
        .env("ANTHROPIC_BASE_URL", url);
    let cost = process::run(&mut exec, Memory::Watched);
    sim.kill()?;
    sim.wait()?;
    cost
}
