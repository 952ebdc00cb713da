//! The least that appends batches: a queue, two connections that take turns, and one statement for a group.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::{Client, Config, NoTls};
use windlass_core::log::Lease;

use super::SIZE;

/// Entries in one statement.
const GROUP: usize = 256;
/// Connections.
const WRITERS: usize = 2;

/// The statement of the store.
const SAME: &str = include_str!("../../../../../crates/postgres/src/append.sql");
/// A statement that checks the fences and inserts the entries, and does nothing else.
const LEAST: &str = "WITH want AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS w(id, owner, fence, seq)), \
up AS (UPDATE session s SET last_seq = w.seq FROM want w WHERE s.id = w.id AND s.owner = w.owner AND s.fence = w.fence \
AND s.last_seq = w.seq - 1 RETURNING s.id, s.fence), \
ins AS (INSERT INTO entry (session, seq, fence, kind, message, payload, time) SELECT e.id, e.seq, up.fence, 'message', e.message, \
e.payload, 1 FROM unnest($1::text[], $4::bigint[], $5::text[], $6::text[]) AS e(id, seq, message, payload) JOIN up ON up.id = e.id) \
SELECT id FROM up";

/// Statement of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Same,
    Least,
}

struct Job {
    session: String,
    fence: i64,
    seq: i64,
    message: String,
    payload: String,
    done: oneshot::Sender<bool>,
}

pub(super) struct Writer(mpsc::UnboundedSender<Job>);

impl Writer {
    pub(super) async fn start(socket: &Path, database: &str, statement: Statement) -> Result<Self> {
        let (sender, jobs) = mpsc::unbounded_channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..WRITERS {
            let mut config = Config::new();
            config.host_path(socket).user("postgres").dbname(database);
            config.options("-c search_path=windlass");
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            tokio::spawn(write(client, statement, Arc::clone(&jobs)));
        }
        Ok(Self(sender))
    }

    pub(super) async fn append(&self, lease: &Lease, seq: u64) -> Result<()> {
        let (done, stored) = oneshot::channel();
        let id = format!("{}-{seq}", lease.session);
        let job = Job {
            session: lease.session.to_string(),
            fence: i64::try_from(lease.fence)?,
            seq: i64::try_from(seq)?,
            payload: format!(
                "{{\"type\":\"message\",\"id\":\"{id}\",\"text\":\"{}\"}}",
                "x".repeat(SIZE)
            ),
            message: id,
            done,
        };
        self.0.send(job).ok().context("the writer has ended")?;
        match stored.await.context("the writer has ended")? {
            true => Ok(()),
            false => bail!("entry {seq} of {} does not fit", lease.session),
        }
    }
}

/// Sends group after group. Whoever holds the queue takes the next one.
async fn write(
    client: Client,
    statement: Statement,
    jobs: Arc<Mutex<mpsc::UnboundedReceiver<Job>>>,
) -> Result<()> {
    let sql = match statement {
        Statement::Same => SAME,
        Statement::Least => LEAST,
    };
    let prepared = client.prepare(sql).await?;
    loop {
        let mut group = Vec::new();
        if jobs.lock().await.recv_many(&mut group, GROUP).await == 0 {
            return Ok(());
        }
        let stored = match statement {
            Statement::Same => same(&client, &prepared, &group).await?,
            Statement::Least => least(&client, &prepared, &group).await?,
        };
        for job in group {
            let _ = job.done.send(stored.contains(&job.session));
        }
    }
}

fn column<'a, T>(group: &'a [Job], value: impl Fn(&'a Job) -> T) -> Vec<T> {
    group.iter().map(value).collect()
}

async fn least(
    client: &Client,
    prepared: &tokio_postgres::Statement,
    group: &[Job],
) -> Result<HashSet<String>> {
    let stored = client
        .query(
            prepared,
            &[
                &column(group, |job| job.session.as_str()),
                &column(group, |_| super::OWNER),
                &column(group, |job| job.fence),
                &column(group, |job| job.seq),
                &column(group, |job| job.message.as_str()),
                &column(group, |job| job.payload.as_str()),
            ],
        )
        .await?;
    Ok(stored.iter().map(|row| row.get(0)).collect())
}

async fn same(
    client: &Client,
    prepared: &tokio_postgres::Statement,
    group: &[Job],
) -> Result<HashSet<String>> {
    let sessions = column(group, |job| job.session.as_str());
    let sequence = column(group, |job| job.seq);
    let ones = column(group, |_| 1_i64);
    let zeros = column(group, |_| 0_i64);
    let (yes, no) = (column(group, |_| true), column(group, |_| false));
    let no_text: Vec<Option<&str>> = column(group, |_| None);
    let no_number: Vec<Option<i64>> = column(group, |_| None);
    let unknown: Vec<Option<bool>> = column(group, |_| None);
    let (texts, numbers): (Vec<&str>, Vec<i64>) = (Vec::new(), Vec::new());
    let costs: Vec<Option<f64>> = Vec::new();
    let stored = client
        .query(
            prepared,
            &[
                &sessions,
                &column(group, |_| super::OWNER),
                &column(group, |job| job.fence),
                &sequence,
                &ones,
                &ones,
                &column(group, |_| 1_000_i64),
                &no_text,
                &no_text,
                &no_text,
                &no_number,
                &no_text,
                &zeros,
                &zeros,
                &column(group, |_| 0.0_f64),
                &zeros,
                &yes,
                &no,
                &no_text,
                &no,
                &sessions,
                &sequence,
                &column(group, |_| "message"),
                &column(group, |job| Some(job.message.as_str())),
                &column(group, |job| job.payload.as_str()),
                &ones,
                &texts,
                &texts,
                &numbers,
                &texts,
                &texts,
                &texts,
                &numbers,
                &numbers,
                &numbers,
                &numbers,
                &costs,
                &unknown,
                &unknown,
                &texts,
            ],
        )
        .await?;
    Ok(stored.iter().map(|row| row.get(0)).collect())
}
