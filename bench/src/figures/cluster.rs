//! Several servers over one Postgres: moves, requests from server to server, transactions, throughput.

mod appends;
mod fleet;
mod load;
mod moves;
mod reach;
mod rest;

use anyhow::{Result, bail};
use windlass_testkit::{Flush, PostgresServer};

use super::iterations::per_iteration;
use super::server::quantile;
use super::{median, told};
use crate::lab::Lab;
use crate::process::Memory;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let postgres = PostgresServer::start(Flush::On);
    let mut figures = vec![
        moves::takeover(lab, &postgres, &runtime)?,
        moves::drain(lab, &postgres, &runtime)?,
        reach::cancel(lab, &postgres, &runtime)?,
        reach::answer(lab, &postgres, &runtime)?,
    ];
    figures.extend(reach::deltas(lab, &postgres, &runtime)?);
    figures.push(rest::transactions(lab, &postgres, &runtime)?);
    figures.extend(load::turns(lab, &postgres, &runtime)?);
    figures.extend(appends::measure(lab, &postgres, &runtime)?);
    figures.extend(iteration(lab, &postgres)?);
    Ok(figures)
}

/// Returns the median and the 99th percentile.
fn shares(values: &[f64]) -> (f64, f64) {
    (quantile(values.to_vec(), 0.5), quantile(values.to_vec(), 0.99))
}

/// Compares iterations that are stored in Postgres with those in SQLite.
fn iteration(lab: &Lab, postgres: &PostgresServer) -> Result<Vec<Figure>> {
    let (calls, rounds) = if lab.quick { (30, 2) } else { (100, 7) };
    let options = ServeOptions::new(Wire::Anthropic, calls);
    let database = postgres.empty();
    let url = postgres.url(&database);
    let run = |store: Option<&str>| -> Result<f64> {
        let (_, log) = lab.measure(&options, Memory::Ignored, |server| {
            let mut command = lab.agent(server, Wire::Anthropic, "text");
            if let Some(url) = store {
                command.env("WINDLASS_STORE", url);
            }
            command
        })?;
        match log.arrivals.len() {
            arrived if arrived == calls + 1 => Ok(per_iteration(&log)),
            arrived => bail!("{arrived} requests arrived instead of {}", calls + 1),
        }
    };
    let unflushed = format!("{url}?options=-c%20synchronous_commit%3Doff");
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push([run(None)?, run(Some(&url))?, run(Some(&unflushed))?]);
    }
    let figure = |name: &str, place: usize, target: Target| {
        let of = |place: usize| median(times.iter().filter_map(|run| run.get(place).copied()).collect());
        let ratio = |run: &[f64; 3]| Some(run.get(place)? / run.first()?);
        Figure {
            name: format!("one iteration of {calls}, in Postgres{name} (floor: in SQLite)"),
            agent: told(of(place)),
            floor: told(of(0)),
            value: median(times.iter().filter_map(ratio).collect()),
            unit: "×",
            target,
        }
    };
    Ok(vec![
        figure("", 1, Target::AtMost(1.5)),
        figure(" without flushing", 2, Target::None),
    ])
}
