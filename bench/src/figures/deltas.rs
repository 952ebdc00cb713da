//! A reply of many text deltas.

use anyhow::{Context, Result};

use super::{median, milliseconds, told};
use crate::lab::{Lab, Log};
use crate::process::{Cost, Memory};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

const DELTAS: usize = 20_000;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let rounds = if lab.quick { 3 } else { 11 };
    let mut figures = Vec::new();
    for (burst, name, target) in [
        (false, "event by event", Target::AtMost(2.0)),
        (true, "in one gulp", Target::None),
    ] {
        let options = ServeOptions {
            deltas: DELTAS,
            burst,
            ..ServeOptions::new(Wire::Anthropic, 0)
        };
        figures.extend(compare(lab, &options, rounds, name, target)?);
    }
    Ok(figures)
}

fn compare(
    lab: &Lab,
    options: &ServeOptions,
    rounds: usize,
    name: &str,
    target: Target,
) -> Result<Vec<Figure>> {
    let requests = lab.record(options.wire, 0)?;
    let (mut floor, mut stream, mut text) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let run = |format: &str| {
            lab.measure(options, Memory::Ignored, |server| {
                lab.agent(server, options.wire, format)
            })
        };
        floor.push(time(&lab.measure(options, Memory::Ignored, |server| {
            lab.client("floor", server, &requests)
        })?)?);
        stream.push(time(&run("stream-json")?)?);
        text.push(time(&run("text")?)?);
    }
    let figure = |format: &str, times: Vec<f64>| Figure {
        name: format!("{DELTAS} deltas {name}, {format}"),
        value: median(
            times
                .iter()
                .zip(&floor)
                .map(|(agent, floor)| agent / floor)
                .collect(),
        ),
        agent: told(median(times)),
        floor: told(median(floor.clone())),
        unit: "×",
        target,
    };
    Ok(vec![figure("stream-json", stream), figure("text", text)])
}

/// Returns the time from the arrival of the request to the end of the process.
fn time((cost, log): &(Cost, Log)) -> Result<f64> {
    Ok(milliseconds(
        *log.arrivals.first().context("no request arrived")?,
        cost.ended,
    ))
}
