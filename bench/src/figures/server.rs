//! The HTTP server: from the model's wire to its clients, many clients at once, requests that must be refused, and
//! floods.

mod client;
mod flood;
mod refused;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

pub(super) use self::client::{Address, Running, delays, request, token};
use self::client::{Followed, follow};
use crate::lab::Lab;
use crate::process;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Pause of the model after each delta.
const PACE_MS: u64 = 40;
/// Maximum time of a stream.
const PATIENCE: Duration = Duration::from_secs(180);

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut figures = vec![delay(lab, &runtime)?];
    figures.extend(crowd(lab, &runtime)?);
    figures.push(refused::measure(lab, &runtime)?);
    figures.extend(flood::measure(lab, &runtime)?);
    Ok(figures)
}

pub(super) fn stamped(deltas: usize, delay_ms: u64) -> ServeOptions {
    ServeOptions {
        deltas,
        delay_ms,
        stamp: true,
        ..ServeOptions::new(Wire::Anthropic, 0)
    }
}

/// Returns the value below which this share of the values lies.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    let index = index.min(values.len().saturating_sub(1));
    values.get(index).copied().unwrap_or_default()
}

/// One client on one session, beside `exec -o stream-json`: the delay of a delta from the model's write.
fn delay(lab: &Lab, runtime: &tokio::runtime::Runtime) -> Result<Figure> {
    let deltas = if lab.quick { 50 } else { 500 };
    let options = stamped(deltas, 5);
    let model = lab.serve(&options)?;
    let direct = client::delays_of_exec(lab.agent(&model, Wire::Anthropic, "stream-json"))?;
    model.finish()?;
    let model = lab.serve(&options)?;
    let server = Running::start(lab, &model)?;
    let followed = runtime.block_on(async {
        let session = server.create().await?;
        let client = tokio::spawn(follow(server.address(), vec![session.clone()]));
        server.say(&session).await?;
        tokio::time::timeout(PATIENCE, client).await??
    })?;
    server.stop()?;
    model.finish()?;
    if followed.delays.len() != deltas || direct.len() != deltas {
        bail!("{} and {} deltas arrived", followed.delays.len(), direct.len());
    }
    let (over, direct) = (quantile(followed.delays, 0.99), quantile(direct, 0.99));
    Ok(Figure {
        name: "a delta to a client over HTTP, 99 of 100 (floor: exec)".to_owned(),
        agent: format!("{over:.2} ms"),
        floor: format!("{direct:.2} ms"),
        value: over - direct,
        unit: "ms more",
        target: Target::AtMost(5.0),
    })
}

/// Many clients, several on each session, while all sessions stream.
#[allow(clippy::cast_precision_loss)]
fn crowd(lab: &Lab, runtime: &tokio::runtime::Runtime) -> Result<Vec<Figure>> {
    let (sessions, clients, deltas) = if lab.quick {
        (10, 50, 50)
    } else {
        (100, 1_000, 150)
    };
    let model = lab.serve(&stamped(deltas, PACE_MS))?;
    let server = Running::start(lab, &model)?;
    let (before, idle, all) = runtime.block_on(async {
        let mut ids = Vec::new();
        for _ in 0..sessions {
            ids.push(server.create().await?);
        }
        let before = process::memory(server.pid()).context("the server is gone")?;
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            let session = ids.get(number % sessions).cloned().unwrap_or_default();
            tasks.spawn(follow(server.address(), vec![session]));
        }
        server.wait_for_streams(clients).await?;
        let idle = process::memory(server.pid()).context("the server is gone")?;
        for id in &ids {
            server.say(id).await?;
        }
        let mut all: Vec<Followed> = Vec::new();
        while let Some(ended) = tokio::time::timeout(PATIENCE, tasks.join_next()).await? {
            all.push(ended??);
        }
        anyhow::Ok((before, idle, all))
    })?;
    let peak = process::peak_memory(server.pid()).context("the server is gone")?;
    server.stop()?;
    model.finish()?;
    let lost: usize = all.iter().map(|followed| followed.gaps).sum();
    let delays: Vec<f64> = all.into_iter().flat_map(|followed| followed.delays).collect();
    let received = delays.len();
    let name = format!("{clients} clients on {sessions} streaming sessions");
    let late = quantile(delays, 0.99);
    Ok(vec![
        Figure {
            name: format!("{name}: memory of a client"),
            agent: format!("{:.1} MB, peak {:.1} MB", idle as f64 / 1e3, peak as f64 / 1e3),
            floor: format!("{:.1} MB without them", before as f64 / 1e3),
            value: idle.saturating_sub(before) as f64 / clients as f64,
            unit: "KB",
            target: Target::AtMost(150.0),
        },
        Figure {
            name: format!("{name}: delay of a delta, 99 of 100"),
            agent: format!("{received} of {} deltas", clients * deltas),
            floor: "–".to_owned(),
            value: late,
            unit: "ms",
            target: Target::AtMost(100.0),
        },
        Figure {
            name: format!("{name}: state events lost"),
            agent: format!("{lost} events"),
            floor: "–".to_owned(),
            value: lost as f64,
            unit: "events",
            target: Target::AtMost(0.0),
        },
    ])
}
