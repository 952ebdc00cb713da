//! Sessions that do nothing: the transactions of their servers.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::Runtime;
use windlass_testkit::PostgresServer;

use super::fleet::{Fleet, Watch};
use crate::figures::server::Running;
use crate::lab::Lab;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Servers.
const SERVERS: usize = 2;
/// Time between two heartbeats of a server, in seconds.
const BEAT: f64 = 1.5;
/// Time after which every connection has reported its transactions to the statistics of Postgres: some report them with
/// their next statement, and the heartbeats take turns on the connections of a server.
const REPORTED: Duration = Duration::from_secs(30);
/// Sessions that are created at the same time.
const TOGETHER: usize = 8;

/// Counts transactions while nobody does anything.
#[allow(clippy::cast_precision_loss)]
pub(super) fn transactions(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Figure> {
    let (open, stored, watched, seconds) = if lab.quick {
        (50, 200, 50, 6)
    } else {
        (1_000, 10_000, 1_000, 30)
    };
    let model = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let fleet = Fleet::new(lab, postgres)?;
    let servers = fleet.servers(&model, SERVERS)?;
    // The server's own work is not that of Windlass.
    postgres.sql("postgres", "ALTER SYSTEM SET autovacuum = off");
    postgres.sql("postgres", "SELECT pg_reload_conf()");
    let watches = runtime.block_on(watch(&servers, open, watched))?;
    // Sessions that a server owns, without the time of creating each.
    let more = stored - open;
    fleet.number(&format!(
        "WITH made AS (INSERT INTO windlass.session (id, place, home, created_at, updated_at, owner, fence) \
         SELECT 'more' || n, one.place, one.home, 1, 1, one.owner, 1 FROM generate_series(1, {more}) AS n, \
         (SELECT * FROM windlass.session LIMIT 1) AS one RETURNING 1) SELECT count(*) FROM made"
    ))?;
    let count = || -> Result<u64> {
        // From another database, so that this is not counted.
        let sql = format!(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{}'",
            fleet.database
        );
        Ok(postgres.sql("postgres", &sql).parse()?)
    };
    std::thread::sleep(REPORTED);
    let (begun, before) = (Instant::now(), count()?);
    std::thread::sleep(Duration::from_secs(seconds));
    let (spent, after) = (begun.elapsed().as_secs_f64(), count()?);
    drop(watches);
    for server in servers {
        server.stop()?;
    }
    model.finish()?;
    postgres.sql("postgres", "ALTER SYSTEM RESET autovacuum");
    postgres.sql("postgres", "SELECT pg_reload_conf()");
    let beats = spent / BEAT * SERVERS as f64;
    let transactions = after.saturating_sub(before) as f64;
    Ok(Figure {
        name: format!(
            "transactions of {stored} idle sessions, {watched} of them watched (floor: heartbeats)"
        ),
        agent: format!("{transactions:.0} in {spent:.0} s"),
        floor: format!("{beats:.0}, of {SERVERS} servers"),
        value: transactions / beats,
        unit: "×",
        target: Target::AtMost(1.1),
    })
}

/// Creates sessions on the first server, and follows them on all servers in turn.
async fn watch(servers: &[Running], open: usize, watched: usize) -> Result<Vec<Watch>> {
    let mut watches = Vec::new();
    let Some(owner) = servers.first() else {
        return Ok(watches);
    };
    let numbers: Vec<usize> = (0..open).collect();
    for numbers in numbers.chunks(TOGETHER) {
        let made = numbers.iter().map(async |number| {
            let session = owner.create().await?;
            match servers.get(number % servers.len()) {
                Some(server) if *number < watched => Watch::open(server.address(), &session).await.map(Some),
                _ => Ok(None),
            }
        });
        watches.extend(
            futures_util::future::try_join_all(made)
                .await?
                .into_iter()
                .flatten(),
        );
    }
    Ok(watches)
}
