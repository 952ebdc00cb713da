//! Sessions that move to another server: after a kill, and when a server stops.

use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use tokio::runtime::Runtime;
use windlass_testkit::PostgresServer;

use super::fleet::{Fleet, Watch};
use super::shares;
use crate::clock::now;
use crate::figures::milliseconds;
use crate::figures::server::Running;
use crate::lab::{Lab, Server};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Pause between two kills, so that they meet the heartbeats of the other server at different times.
const PAUSE: Duration = Duration::from_millis(370);
/// Deltas after which everything before them is stored.
const DELTAS: usize = 10;
/// Sessions of a server that stops.
const SESSIONS: usize = 5;

/// A model whose replies take longer than the figure.
fn model(lab: &Lab) -> Result<Server> {
    lab.serve(&ServeOptions {
        deltas: 5_000,
        delay_ms: 50,
        ..ServeOptions::new(Wire::Anthropic, 0)
    })
}

/// Starts a turn on a server, and returns a client of another one that follows it.
async fn begin(owner: &Running, other: &Running) -> Result<Watch> {
    let session = owner.create().await?;
    let mut watch = Watch::open(other.address(), &session).await?;
    owner.say(&session).await?;
    for _ in 0..DELTAS {
        watch.until("delta").await?;
    }
    Ok(watch)
}

/// Kills servers, each in the middle of a turn.
pub(super) fn takeover(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Figure> {
    let (rounds, victims) = if lab.quick { (1, 3) } else { (2, 12) };
    let model = model(lab)?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let fleet = Fleet::new(lab, postgres)?;
        let survivor = fleet.server(&model, &[])?;
        let servers = fleet.servers(&model, victims)?;
        times.extend(runtime.block_on(async {
            let mut watches = Vec::new();
            for server in &servers {
                watches.push(begin(server, &survivor).await?);
            }
            let mut moving = tokio::task::JoinSet::new();
            for (server, mut watch) in servers.iter().zip(watches) {
                tokio::time::sleep(PAUSE).await;
                let killed = now();
                server.signal(Signal::KILL)?;
                moving.spawn(async move { anyhow::Ok(milliseconds(killed, watch.until("moved").await?.at)) });
            }
            moving.join_all().await.into_iter().collect::<Result<Vec<f64>>>()
        })?);
        for server in servers {
            server.wait()?;
        }
        survivor.stop()?;
    }
    model.finish()?;
    let (half, late) = shares(&times);
    Ok(Figure {
        name: format!("takeover after kill -9, 99 of 100 ({} kills)", times.len()),
        agent: format!("p50 {half:.0} ms, p99 {late:.0} ms"),
        floor: "6000 ms lease".to_owned(),
        value: late / 1_000.0,
        unit: "s",
        target: Target::AtMost(8.0),
    })
}

/// Stops servers that run turns but no call of a tool.
pub(super) fn drain(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Figure> {
    let rounds = if lab.quick { 2 } else { 8 };
    let model = model(lab)?;
    let fleet = Fleet::new(lab, postgres)?;
    let survivor = fleet.server(&model, &[])?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let server = fleet.server(&model, &[])?;
        let slowest = runtime.block_on(async {
            let mut watches = Vec::new();
            for _ in 0..SESSIONS {
                watches.push(begin(&server, &survivor).await?);
            }
            let told = now();
            server.signal(Signal::TERM)?;
            let mut slowest = 0.0_f64;
            for mut watch in watches {
                slowest = slowest.max(milliseconds(told, watch.until("moved").await?.at));
            }
            anyhow::Ok(slowest)
        })?;
        times.push(slowest);
        server.wait()?;
    }
    survivor.stop()?;
    model.finish()?;
    let (half, late) = shares(&times);
    Ok(Figure {
        name: format!("SIGTERM until another server has all {SESSIONS} sessions, the slowest"),
        agent: format!("p50 {half:.0} ms, of {rounds} servers"),
        floor: "–".to_owned(),
        value: late,
        unit: "ms",
        target: Target::AtMost(1_000.0),
    })
}
