//! Many turns at the same time, each with several calls.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::runtime::Runtime;
use windlass_testkit::PostgresServer;

use super::fleet::Fleet;
use crate::figures::server::Running;
use crate::lab::Lab;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Calls of a turn.
const CALLS: usize = 12;
/// Servers.
const SERVERS: usize = 2;
/// Requests under way at the same time while turns are started.
const TOGETHER: usize = 32;
/// Time between two looks at the turns.
const LOOK: Duration = Duration::from_millis(250);
/// Maximum time of all turns.
const PATIENCE: Duration = Duration::from_secs(240);
/// Histogram of the times of appends.
const TIMES: &str = "windlass_store_append_seconds";

#[allow(clippy::cast_precision_loss)]
pub(super) fn turns(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Vec<Figure>> {
    let turns = if lab.quick { 50 } else { 1_000 };
    let model = lab.serve(&ServeOptions {
        many: true,
        ..ServeOptions::new(Wire::Anthropic, CALLS)
    })?;
    let fleet = Fleet::new(lab, postgres)?;
    let servers = fleet.servers(&model, SERVERS)?;
    let place = |number: usize| servers.get(number % SERVERS).context("no server");
    let sessions: Vec<String> = runtime.block_on(async {
        let created = stream::iter(0..turns).map(async |number| place(number)?.create().await);
        created.buffered(TOGETHER).try_collect().await
    })?;
    let begun = Instant::now();
    runtime.block_on(async {
        let sent = stream::iter(sessions.iter().enumerate())
            .map(async |(number, session)| place(number)?.say(session).await);
        sent.buffer_unordered(TOGETHER).try_collect::<()>().await
    })?;
    let answered = "SELECT count(*) FROM windlass.session WHERE standing = 'answered'";
    while fleet.number(answered)? < turns as u64 {
        if begun.elapsed() > PATIENCE {
            bail!("{} of {turns} turns ended in time", fleet.number(answered)?);
        }
        std::thread::sleep(LOOK);
    }
    let spent = begun.elapsed().as_secs_f64();
    let times = runtime.block_on(times(&servers))?;
    let calls = fleet.number("SELECT count(*) FROM windlass.entry WHERE kind = 'tool_result'")?;
    for server in servers {
        server.stop()?;
    }
    model.finish()?;
    if calls != (turns * CALLS) as u64 {
        bail!("{calls} calls ran instead of {}", turns * CALLS);
    }
    let name = format!("{turns} turns at once with {CALLS} calls each");
    let late = times.count - times.within(1.0);
    Ok(vec![
        Figure {
            name: format!("{name}: appends that took more than 1 s"),
            agent: format!("{} appends, 99 of 100 within {}", times.count, times.bound(0.99)),
            floor: format!("{:.1} in a transaction", times.count as f64 / times.groups as f64),
            value: late as f64,
            unit: "appends",
            target: Target::AtMost(0.0),
        },
        Figure {
            name: format!("{name}: turns"),
            agent: format!(
                "{spent:.1} s, {:.1} ms in the store on average",
                times.sum / times.count as f64 * 1e3
            ),
            floor: "–".to_owned(),
            value: turns as f64 / spent,
            unit: "turns/s",
            target: Target::None,
        },
    ])
}

/// Times of appends, of all servers.
#[derive(Default)]
struct Times {
    /// Upper bounds in seconds, with the number of appends that took no longer.
    classes: Vec<(f64, u64)>,
    sum: f64,
    count: u64,
    groups: u64,
}

impl Times {
    fn within(&self, bound: f64) -> u64 {
        let class = self.classes.iter().find(|(most, _)| *most >= bound);
        class.map_or(self.count, |(_, count)| *count)
    }

    /// Returns the bound below which this share of the appends lies.
    #[allow(clippy::cast_precision_loss)]
    fn bound(&self, share: f64) -> String {
        let wanted = self.count as f64 * share;
        let class = self.classes.iter().find(|(_, count)| *count as f64 >= wanted);
        class.map_or("more".to_owned(), |(most, _)| format!("{:.0} ms", most * 1e3))
    }
}

async fn times(servers: &[Running]) -> Result<Times> {
    let mut times = Times::default();
    for server in servers {
        let text = server.metrics().await?;
        let mut classes = Vec::new();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            if let Some(bound) = name.strip_prefix(&format!("{TIMES}_bucket{{le=\"")) {
                if let Ok(bound) = bound.trim_end_matches("\"}").parse::<f64>()
                    && bound.is_finite()
                {
                    classes.push((bound, value.parse::<u64>()?));
                }
            } else if name == format!("{TIMES}_sum") {
                times.sum += value.parse::<f64>()?;
            } else if name == format!("{TIMES}_count") {
                times.count += value.parse::<u64>()?;
            } else if name == "windlass_store_append_groups_total" {
                times.groups += value.parse::<u64>()?;
            }
        }
        match times.classes.is_empty() {
            true => times.classes = classes,
            false => times
                .classes
                .iter_mut()
                .zip(classes)
                .for_each(|(sum, own)| sum.1 += own.1),
        }
    }
    match times.count {
        0 => bail!("the servers count no appends"),
        _ => Ok(times),
    }
}
