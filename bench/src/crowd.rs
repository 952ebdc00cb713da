//! Memory of many live sessions in one process that all stream at once.

mod env;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::StreamExt;
use windlass_api::{Begin, Client, Event, EventStream, Label, SessionId, Submission};
use windlass_core::clock::SystemClock;
use windlass_service::{Options, Service};

use crate::process::{memory, peak_memory};

/// Options of the crowd.
#[derive(Debug, Clone, Args)]
pub(crate) struct CrowdOptions {
    /// Port of the server, which should stream slowly.
    #[arg(long)]
    pub(crate) port: u16,
    /// Number of sessions.
    #[arg(long)]
    pub(crate) sessions: usize,
    /// Folder that stores the sessions.
    #[arg(long)]
    pub(crate) data: PathBuf,
    /// Program that sets up the sandbox for commands.
    #[arg(long)]
    pub(crate) helper: PathBuf,
}

/// Prompt of every session.
const PROMPT: &str = "Tell a long story.";
/// Time for which all sessions are watched while they stream.
const WATCHED: Duration = Duration::from_secs(4);
/// Maximum time until all sessions stream.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between memory readings.
const PERIOD: Duration = Duration::from_millis(50);

/// Progress of the sessions.
#[derive(Default)]
struct Progress {
    /// Number of sessions that have started to stream.
    streaming: AtomicUsize,
    /// Number of sessions that have ended.
    ended: AtomicUsize,
    /// Number of reply bytes received.
    bytes: AtomicUsize,
}

/// Prints three numbers in kilobytes: the memory before the sessions, the peak while all of them stream, and
/// how much of that is reply text.
pub(crate) fn crowd(options: &CrowdOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(run(options));
    runtime.shutdown_background();
    done
}

async fn run(options: &CrowdOptions) -> Result<()> {
    let factory = env::factory(options.port, options.helper.clone(), options.data.join("outputs"))?;
    let service = Service::new(
        windlass_store::open(options.data.join("windlass.db"), Arc::new(SystemClock::default()))?,
        factory,
        Arc::new(SystemClock::default()),
        windlass_store::owner(),
        Options::default(),
    );
    warm_up(&service).await?;
    let before = own(memory)?;
    let progress = Arc::new(Progress::default());
    for _ in 0..options.sessions {
        let (_, events) = begin(&service).await?;
        tokio::spawn(follow(events, Arc::clone(&progress)));
    }
    let peak = watch(&progress, options.sessions).await?;
    let said = progress.bytes.load(Ordering::Relaxed) + options.sessions * PROMPT.len();
    println!("{before} {peak} {}", said / 1_024);
    Ok(())
}

/// Runs one session to its first delta: after that, connection, threads and statements exist.
async fn warm_up(service: &Service) -> Result<()> {
    let (session, mut events) = begin(service).await?;
    while let Some(envelope) = events.next().await {
        match envelope.event {
            Event::Delta { .. } => drop(service.cancel(&session).await),
            Event::Failed { message, .. } => bail!("the first session failed: {message}"),
            _ => {}
        }
    }
    Ok(())
}

async fn begin(service: &Service) -> Result<(SessionId, EventStream)> {
    let begin = Begin::New {
        id: None,
        place: std::env::current_dir()?.display().to_string(),
        label: Label::default(),
        parent: None,
    };
    let session = service.begin(begin).await?.id;
    let events = service.submit(Submission::text(session.clone(), PROMPT)).await?;
    Ok((session, events))
}

/// Reads the events of a session, as a front end does, and discards them.
async fn follow(mut events: EventStream, progress: Arc<Progress>) {
    let mut is_streaming = false;
    while let Some(envelope) = events.next().await {
        if let Event::Delta { text, .. } = &envelope.event {
            progress.bytes.fetch_add(text.len(), Ordering::Relaxed);
            if !is_streaming {
                is_streaming = true;
                progress.streaming.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    progress.ended.fetch_add(1, Ordering::Relaxed);
}

/// Returns the peak memory while all sessions stream.
async fn watch(progress: &Progress, sessions: usize) -> Result<u64> {
    let begun = Instant::now();
    while progress.streaming.load(Ordering::Relaxed) < sessions {
        if begun.elapsed() > PATIENCE {
            let count = progress.streaming.load(Ordering::Relaxed);
            bail!("only {count} of {sessions} sessions stream");
        }
        tokio::time::sleep(PERIOD).await;
    }
    tokio::time::sleep(WATCHED).await;
    if progress.ended.load(Ordering::Relaxed) > 0 {
        bail!("sessions ended before all of them streamed");
    }
    // The peak comes from the kernel, so it includes the start of the sessions.
    own(peak_memory)
}

fn own(figure: fn(u32) -> Option<u64>) -> Result<u64> {
    figure(std::process::id()).context("cannot read the memory usage")
}
