//! Stored sessions: their cost, opening a big one, and memory of many at once.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::iterations::per_iteration;
use super::{median, milliseconds, told};
use crate::lab::Lab;
use crate::process::{self, Cost, Memory};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

const WIRE: Wire = Wire::Anthropic;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let loops = if lab.quick {
        [(50, 3), (200, 1)]
    } else {
        [(200, 11), (1_000, 5)]
    };
    let mut figures = Vec::new();
    for (calls, rounds) in loops {
        figures.push(kept(lab, calls, rounds)?);
    }
    figures.extend(opening(lab)?);
    figures.push(crowd(lab)?);
    Ok(figures)
}

/// Compares a loop through the service with the same loop without a store.
fn kept(lab: &Lab, calls: usize, rounds: usize) -> Result<Figure> {
    let requests = lab.record(WIRE, calls)?;
    let options = ServeOptions::new(WIRE, calls);
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let (_, alone) = lab.measure(&options, Memory::Ignored, |server| lab.alone(server, &requests))?;
        let (_, agent) = lab.measure(&options, Memory::Ignored, |server| {
            lab.agent(server, WIRE, "text")
        })?;
        for log in [&alone, &agent] {
            if log.arrivals.len() != calls + 1 {
                bail!("{} requests arrived instead of {}", log.arrivals.len(), calls + 1);
            }
        }
        pairs.push((per_iteration(&alone), per_iteration(&agent)));
    }
    Ok(Figure {
        name: format!("one iteration of {calls}, kept (floor: not kept)"),
        agent: told(median(pairs.iter().map(|pair| pair.1).collect())),
        floor: told(median(pairs.iter().map(|pair| pair.0).collect())),
        value: median(pairs.iter().map(|(alone, agent)| agent / alone).collect()),
        unit: "×",
        target: Target::AtMost(1.2),
    })
}

/// Measures the time from the start of the process to the first request in a session of many messages, and in
/// a new one.
fn opening(lab: &Lab) -> Result<Vec<Figure>> {
    let (messages, rounds) = if lab.quick { (2_000, 3) } else { (20_000, 21) };
    let home = lab.path("big");
    let mut fill = lab.own(&lab.path("work"));
    fill.args(["fill", "--session", "big", "--messages", &messages.to_string()]);
    fill.arg("--place").arg(lab.path("work"));
    fill.arg("--database").arg(home.join("data/windlass.db"));
    process::run(&mut fill, Memory::Ignored)?;
    // Slow enough to read the memory while the session is open.
    let server = lab.serve(&ServeOptions {
        deltas: 20,
        delay_ms: 5,
        ..ServeOptions::new(WIRE, 0)
    })?;
    let run = |resumed: bool| {
        let mut command = lab.agent(&server, WIRE, "text");
        command.env("WINDLASS_HOME", &home);
        if resumed {
            command.args(["--resume", "big"]);
        }
        process::run(&mut command, Memory::Watched)
    };
    let mut costs = Vec::new();
    for _ in 0..rounds {
        costs.push((run(false)?, run(true)?));
    }
    let log = server.finish()?;
    if log.arrivals.len() != 2 * rounds {
        bail!(
            "{} requests arrived instead of {}",
            log.arrivals.len(),
            2 * rounds
        );
    }
    let (mut new, mut resumed) = (Vec::new(), Vec::new());
    for (cost, arrived) in costs.iter().zip(log.arrivals.chunks_exact(2)) {
        if let [first, second] = arrived {
            new.push(milliseconds(cost.0.begun, *first));
            resumed.push(milliseconds(cost.1.begun, *second));
        }
    }
    let (new, resumed) = (median(new), median(resumed));
    let peak = |cost: &Cost| f64::from(u32::try_from(cost.peak).unwrap_or(u32::MAX)) / 1_024.0;
    let small = median(costs.iter().map(|cost| peak(&cost.0)).collect());
    let large = median(costs.iter().map(|cost| peak(&cost.1)).collect());
    Ok(vec![
        Figure {
            name: format!("opening {messages} messages to the first request (floor: a new session)"),
            agent: told(resumed),
            floor: told(new),
            value: resumed,
            unit: "ms",
            target: Target::AtMost(100.0),
        },
        Figure {
            name: "memory with that session open (floor: a new session)".to_owned(),
            agent: format!("{large:.1} MB"),
            floor: format!("{small:.1} MB"),
            value: large,
            unit: "MB",
            target: Target::AtMost(80.0),
        },
    ])
}

/// Measures the memory of each of many sessions that stream at the same time in one process.
fn crowd(lab: &Lab) -> Result<Figure> {
    let sessions = if lab.quick { 100 } else { 1_000 };
    let server = lab.serve(&ServeOptions {
        deltas: 2_000,
        delay_ms: 250,
        ..ServeOptions::new(WIRE, 0)
    })?;
    let data = lab.path("crowd");
    std::fs::create_dir_all(&data)?;
    let mut crowd = lab.own(&lab.path("work"));
    crowd.args(["crowd", "--port", &server.port.to_string()]);
    crowd.args(["--sessions", &sessions.to_string()]);
    crowd.arg("--data").arg(&data).arg("--helper").arg(lab.windlass());
    let output = crowd.stderr(Stdio::inherit()).output()?;
    server.finish()?;
    if !output.status.success() {
        bail!("the sessions could not be run");
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers: Result<Vec<f64>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    let numbers = numbers.context("unexpected output")?;
    let [before, peak, said] = numbers.as_slice() else {
        bail!("unexpected output");
    };
    Ok(Figure {
        name: format!("memory of one of {sessions} sessions that stream (floor: before them)"),
        agent: format!("{:.1} MB", peak / 1_024.0),
        floor: format!("{:.1} MB", before / 1_024.0),
        value: (peak - before - said) / f64::from(sessions),
        unit: "KB",
        target: Target::AtMost(100.0),
    })
}
