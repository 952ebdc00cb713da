//! Iterations with a shell call each.

use anyhow::Result;

use super::{median, milliseconds, told};
use crate::lab::{Lab, Log};
use crate::process::{Cost, Memory};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Runs of Windlass, of the floor in the same sandbox and of the floor without one, one after the other.
struct Round {
    agent: (Cost, Log),
    floor: (Cost, Log),
    bare: (Cost, Log),
}

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (calls, rounds) = if lab.quick { (50, 3) } else { (200, 9) };
    let runs = run(lab, Wire::Anthropic, calls, rounds, Memory::Ignored)?;
    let connections = runs.iter().map(|run| run.agent.1.connections).max();
    let connections = connections.unwrap_or_default();
    let mut figures = vec![
        ratio(format!("one iteration, of {calls}"), &runs, |run| &run.floor),
        unconfined(Wire::Anthropic, calls, &runs),
    ];
    for wire in [Wire::Chat, Wire::Responses] {
        figures.push(unconfined(
            wire,
            calls,
            &run(lab, wire, calls, rounds, Memory::Ignored)?,
        ));
    }
    figures.push(Figure {
        name: format!("connections made for {calls} iterations"),
        agent: connections.to_string(),
        floor: "1".to_owned(),
        value: f64::from(u32::try_from(connections)?),
        unit: "",
        target: Target::AtMost(1.0),
    });
    Ok(figures)
}

/// Compares an iteration with one of the floor without a sandbox.
fn unconfined(wire: Wire, calls: usize, runs: &[Round]) -> Figure {
    let name = format!(
        "one iteration of {calls}, {} (floor: without a sandbox)",
        wire.name()
    );
    ratio(name, runs, |run| &run.bare)
}

fn ratio(name: String, runs: &[Round], floor: fn(&Round) -> &(Cost, Log)) -> Figure {
    let of = |time: &dyn Fn(&Round) -> f64| median(runs.iter().map(time).collect());
    let agent = |run: &Round| per_iteration(&run.agent.1);
    let floor = |run: &Round| per_iteration(&floor(run).1);
    Figure {
        name,
        agent: told(of(&agent)),
        floor: told(of(&floor)),
        value: of(&|run| agent(run) / floor(run)),
        unit: "×",
        target: Target::AtMost(1.5),
    }
}

pub(super) fn measure_long(lab: &Lab) -> Result<Vec<Figure>> {
    let (calls, rounds) = if lab.quick { (200, 1) } else { (1_000, 5) };
    let pairs = run(lab, Wire::Anthropic, calls, rounds, Memory::Watched)?;
    let of = |figure: &dyn Fn(&Round) -> f64| median(pairs.iter().map(figure).collect());
    let agent = of(&|pair| growth(&pair.agent.1));
    let floor = of(&|pair| growth(&pair.floor.1));
    let growth = Figure {
        name: format!("last fifth of {calls} iterations to the first"),
        agent: format!("{agent:.2} ×"),
        floor: format!("{floor:.2} ×"),
        value: of(&|pair| growth(&pair.agent.1) / growth(&pair.floor.1)),
        unit: "×",
        target: Target::AtMost(1.15),
    };
    let peak = |cost: &Cost| f64::from(u32::try_from(cost.peak).unwrap_or(u32::MAX)) / 1_024.0;
    let memory = Figure {
        name: format!("peak memory over {calls} iterations"),
        agent: format!("{:.1} MB", of(&|pair| peak(&pair.agent.0))),
        floor: format!("{:.1} MB", of(&|pair| peak(&pair.floor.0))),
        value: of(&|pair| peak(&pair.agent.0)),
        unit: "MB",
        target: Target::AtMost(40.0),
    };
    let cpu = |run: &(Cost, Log)| run.0.cpu * 1_000.0 / iterations(&run.1);
    let (agent, floor) = (of(&|pair| cpu(&pair.agent)), of(&|pair| cpu(&pair.floor)));
    let ratio = of(&|pair| cpu(&pair.agent) / cpu(&pair.floor));
    let cpu = Figure {
        name: format!("processor time of one iteration, of {calls}"),
        agent: told(agent),
        floor: told(floor),
        value: ratio,
        unit: "×",
        target: Target::AtMost(1.5),
    };
    let mut figures = vec![growth, memory, cpu, unconfined(Wire::Anthropic, calls, &pairs)];
    for wire in [Wire::Chat, Wire::Responses] {
        figures.push(unconfined(
            wire,
            calls,
            &run(lab, wire, calls, rounds, Memory::Ignored)?,
        ));
    }
    Ok(figures)
}

/// Compares the wire of models with a public tokenizer with one that has none.
pub(super) fn measure_chat(lab: &Lab) -> Result<Vec<Figure>> {
    let (calls, rounds) = if lab.quick { (50, 3) } else { (200, 9) };
    let mut runs = Vec::new();
    for _ in 0..rounds {
        let [floor, chat] = [Wire::Anthropic, Wire::Chat].map(|wire| {
            let options = ServeOptions::new(wire, calls);
            lab.measure(&options, Memory::Watched, |server| {
                lab.agent(server, wire, "text")
            })
        });
        runs.push((chat?, floor?));
    }
    let time = |run: &(Cost, Log)| per_iteration(&run.1);
    let peak = |run: &(Cost, Log)| f64::from(u32::try_from(run.0.peak).unwrap_or(u32::MAX)) / 1_024.0;
    let figure = |name: String, value: &dyn Fn(&(Cost, Log)) -> f64, told: &dyn Fn(f64) -> String| Figure {
        name,
        agent: told(median(runs.iter().map(|(chat, _)| value(chat)).collect())),
        floor: told(median(runs.iter().map(|(_, floor)| value(floor)).collect())),
        value: median(
            runs.iter()
                .map(|(chat, floor)| value(chat) / value(floor))
                .collect(),
        ),
        unit: "×",
        target: Target::AtMost(1.1),
    };
    Ok(vec![
        figure(
            format!("one iteration of {calls}, chat (floor: anthropic)"),
            &time,
            &told,
        ),
        figure(
            format!("peak memory of {calls} iterations, chat (floor: anthropic)"),
            &peak,
            &|megabytes| format!("{megabytes:.1} MB"),
        ),
    ])
}

fn run(lab: &Lab, wire: Wire, calls: usize, rounds: usize, memory: Memory) -> Result<Vec<Round>> {
    let requests = lab.record(wire, calls)?;
    let options = ServeOptions::new(wire, calls);
    let round = |_| {
        let floor = lab.measure(&options, memory, |server| lab.floor(server, &requests))?;
        let bare = lab.measure(&options, memory, |server| lab.unconfined(server, &requests))?;
        let agent = lab.measure(&options, memory, |server| lab.agent(server, wire, "text"))?;
        Ok(Round { agent, floor, bare })
    };
    (0..rounds).map(round).collect()
}

fn iterations(log: &Log) -> f64 {
    f64::from(u32::try_from(log.arrivals.len().saturating_sub(1)).unwrap_or(u32::MAX))
}

/// Returns the milliseconds from one request's arrival to the next.
pub(super) fn per_iteration(log: &Log) -> f64 {
    match (log.arrivals.first(), log.arrivals.last()) {
        (Some(first), Some(last)) => milliseconds(*first, *last) / iterations(log),
        _ => 0.0,
    }
}

/// Returns the ratio of an iteration in the last fifth to one in the first. Takes the median of each: a
/// machine that is busy for a moment is not growth.
fn growth(log: &Log) -> f64 {
    let times: Vec<f64> = log
        .arrivals
        .windows(2)
        .filter_map(|pair| Some(milliseconds(*pair.first()?, *pair.last()?)))
        .collect();
    let fifth = times.len() / 5;
    let first = times.iter().take(fifth).copied().collect();
    let last = times.iter().rev().take(fifth).copied().collect();
    median(last) / median(first)
}
