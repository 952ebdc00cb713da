//! Appends through the store, beside a writer that does nothing else.

mod writer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::event::Event;
use windlass_core::log::{Batch, Lease, NewSession, Store};
use windlass_core::message::{Message, Part, Role};
use windlass_testkit::PostgresServer;

use self::writer::{Statement, Writer};
use super::super::median;
use crate::lab::Lab;
use crate::report::{Figure, Target};

/// Size of the text of an entry.
const SIZE: usize = 1_000;
/// Owner of the sessions.
const OWNER: &str = "bench";

/// Compares the rates of appends for a few sessions and for many.
pub(super) fn measure(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Vec<Figure>> {
    let (rounds, time) = if lab.quick { (1, 500) } else { (5, 1_500) };
    let time = Duration::from_millis(time);
    let mut figures = Vec::new();
    for sessions in [64, 1_000] {
        let (mut own, mut same, mut least) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            same.push(floor(postgres, runtime, (Statement::Same, sessions, time))?);
            own.push(windlass(postgres, runtime, sessions, time)?);
            least.push(floor(postgres, runtime, (Statement::Least, sessions, time))?);
        }
        let name = format!("appends of {sessions} sessions");
        figures.push(figure(
            format!("{name} (floor: the same SQL)"),
            &own,
            &same,
            Target::AtLeast(0.7),
        ));
        figures.push(figure(
            format!("{name} (floor: the least SQL)"),
            &own,
            &least,
            Target::None,
        ));
    }
    Ok(figures)
}

fn figure(name: String, own: &[f64], floor: &[f64], target: Target) -> Figure {
    let rate = |rates: &[f64]| format!("{:.0}/s", median(rates.to_vec()));
    Figure {
        name,
        agent: rate(own),
        floor: rate(floor),
        value: median(own.iter().zip(floor).map(|(own, floor)| own / floor).collect()),
        unit: "×",
        target,
    }
}

/// Opens a database of its own with sessions in it.
async fn filled(url: &str, sessions: usize) -> Result<(Arc<dyn Store>, Vec<Lease>)> {
    let store = windlass_store::begin(url, Arc::new(SystemClock::default()))?;
    let create = (0..sessions).map(async |number| {
        let new = NewSession {
            id: Some(format!("s{number}").into()),
            place: "/bench".to_owned(),
            time: Timestamp(1),
            ..NewSession::default()
        };
        anyhow::Ok(store.create(new, OWNER).await?.lease)
    });
    let leases = futures_util::future::try_join_all(create).await?;
    Ok((store, leases))
}

/// Returns the appends per second of sessions that each wait for the one before.
fn windlass(postgres: &PostgresServer, runtime: &Runtime, sessions: usize, time: Duration) -> Result<f64> {
    let url = postgres.url(&postgres.empty());
    let (store, leases) = runtime.block_on(filled(&url, sessions))?;
    let rate = runtime.block_on(rate(leases, time, {
        let store = Arc::clone(&store);
        move |lease, seq| {
            let store = Arc::clone(&store);
            async move { Ok(store.append(&lease, batch(&lease, seq)).await?) }
        }
    }))?;
    drop(store);
    Ok(rate)
}

fn floor(
    postgres: &PostgresServer,
    runtime: &Runtime,
    (statement, sessions, time): (Statement, usize, Duration),
) -> Result<f64> {
    let database = postgres.empty();
    let (store, leases) = runtime.block_on(filled(&postgres.url(&database), sessions))?;
    drop(store);
    runtime.block_on(async {
        let writer = Arc::new(Writer::start(postgres.socket_folder(), &database, statement).await?);
        rate(leases, time, move |lease, seq| {
            let writer = Arc::clone(&writer);
            async move { writer.append(&lease, seq).await }
        })
        .await
    })
}

/// Appends to every session, one entry after the other.
#[allow(clippy::cast_precision_loss)]
async fn rate<A>(
    leases: Vec<Lease>,
    time: Duration,
    append: impl Fn(Lease, u64) -> A + Clone + Send + Sync + 'static,
) -> Result<f64>
where
    A: Future<Output = Result<()>> + Send + 'static,
{
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for lease in leases {
        let append = append.clone();
        tasks.spawn(async move {
            let mut seq = 0;
            while begun.elapsed() < time {
                seq += 1;
                append(lease.clone(), seq).await?;
            }
            anyhow::Ok(seq)
        });
    }
    let counts = tasks.join_all().await.into_iter().collect::<Result<Vec<u64>>>();
    let count: u64 = counts.context("an append failed")?.iter().sum();
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

fn batch(lease: &Lease, seq: u64) -> Batch {
    let parts = vec![Part::text("x".repeat(SIZE))];
    let message = Message::new(&lease.session, Role::Assistant, parts, Timestamp(1));
    Batch {
        first_seq: seq,
        events: vec![Event::Message {
            message: Arc::new(message),
        }],
        time: Timestamp(1),
        ..Batch::default()
    }
}
