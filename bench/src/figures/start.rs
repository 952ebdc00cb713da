//! Time from the start of the process until the server has the whole first request.

use anyhow::{Context, Result};

use super::{median, milliseconds, told};
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let samples = if lab.quick { 10 } else { 41 };
    let requests = lab.record(Wire::Anthropic, 0)?;
    let server = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let mut begun = Vec::new();
    for _ in 0..samples {
        begun.push(process::run(&mut lab.client("bare", &server, &requests), Memory::Ignored)?.begun);
        begun.push(process::run(&mut lab.agent(&server, Wire::Anthropic, "text"), Memory::Ignored)?.begun);
    }
    let log = server.finish()?;
    let times: Vec<f64> = begun
        .iter()
        .zip(&log.arrivals)
        .map(|(begun, arrived)| milliseconds(*begun, *arrived))
        .collect();
    let pairs: Vec<(f64, f64)> = times
        .chunks_exact(2)
        .filter_map(|pair| Some((*pair.first()?, *pair.last()?)))
        .collect();
    let bare = median(pairs.iter().map(|pair| pair.0).collect());
    let agent = median(pairs.iter().map(|pair| pair.1).collect());
    pairs.get(samples - 1).context("requests are missing")?;
    Ok(vec![Figure {
        name: "exec to the first request (floor: bare client)".to_owned(),
        agent: told(agent),
        floor: told(bare),
        value: median(pairs.iter().map(|(bare, agent)| agent / bare).collect()),
        unit: "×",
        target: Target::AtMost(2.0),
    }])
}
