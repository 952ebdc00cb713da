//! One background command: its unread output and its state.

use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_core::tool::Kept;

use super::capture::Keeping;
use super::notes::{how, seconds};
use super::output::Clip;
use super::pipe::{Piece, Pipe};
use crate::outputs::Spill;
use windlass_core::text::size;
use windlass_sandbox::CommandSandbox;
use windlass_sandbox::process::{Background, Kill, Tree};

/// Time for the disk to store each piece of output.
const DISK_TIME: Duration = Duration::from_secs(2);

/// A background command.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    started: Instant,
    background: Background,
    limit: usize,
    state: Mutex<State>,
    /// Changes when there is output, and when the job ends.
    news: watch::Sender<()>,
}

struct State {
    /// Unread output.
    fresh: Clip,
    total: u64,
    kept: Option<Kept>,
    life: Life,
    /// Run time; set when the job has ended.
    took: Option<Duration>,
}

/// State of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    /// The command has ended, but a process that it started has not.
    Outlived(ExitStatus),
    Exited(ExitStatus),
    TimedOut(Duration),
    Unknown(String),
}

impl Life {
    /// Returns true if any process of the job still runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running | Self::Outlived(_))
    }

    /// Returns the exit code, once there is one.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Outlived(status) | Self::Exited(status) => status.code(),
            Self::Running | Self::TimedOut(_) | Self::Unknown(_) => None,
        }
    }
}

/// Snapshot of a job.
pub(crate) struct Reading {
    /// Output since the previous read.
    pub(crate) text: String,
    pub(crate) life: Life,
    /// Bytes of all its output.
    pub(crate) total: u64,
    pub(crate) kept: Option<Kept>,
    time: Duration,
}

impl Reading {
    /// Describes the state in a few words that follow "it".
    pub(crate) fn words(&self) -> String {
        // Tenths of a second are noise after hours, but useful after one second.
        let time = match self.time {
            time if time >= Duration::from_secs(10) => time.as_secs().to_string(),
            time => seconds(Duration::from_millis(
                u64::try_from(time.as_millis() / 100 * 100).unwrap_or(u64::MAX),
            )),
        };
        let life = match &self.life {
            Life::Running => format!("running for {time} s"),
            Life::Outlived(status) => {
                format!("ended with {}, but a process it started still runs", how(*status))
            }
            Life::Exited(status) => format!("ended with {} after {time} s", how(*status)),
            Life::TimedOut(limit) => format!("timed out after {} s and was ended", seconds(*limit)),
            Life::Unknown(error) => format!("ended after {time} s, the exit status is unknown: {error}"),
        };
        format!("{life}; {} of output in total", size(self.total))
    }
}

impl Job {
    /// Takes over a command that has just been started and follows it until it ends. Its sandbox lives as
    /// long.
    pub(super) fn begin(
        (id, command): (String, String),
        (tree, pipe): (Tree, Receiver),
        limit: Option<Duration>,
        keeping: &Keeping,
        sandbox: Arc<CommandSandbox>,
    ) -> Arc<Self> {
        let job = Arc::new(Self {
            id,
            command,
            started: Instant::now(),
            background: tree.in_background(),
            limit: keeping.bytes,
            state: Mutex::new(State {
                fresh: Clip::new(keeping.bytes),
                total: 0,
                kept: None,
                life: Life::Running,
                took: None,
            }),
            news: watch::Sender::new(()),
        });
        let (attended, keeping) = (Arc::clone(&job), keeping.clone());
        tokio::spawn(async move {
            attended.attend(tree, Pipe::new(pipe), limit, &keeping).await;
            drop(sandbox);
        });
        job
    }

    /// Starts ending the job. Returns `None` if it has ended.
    pub(crate) fn kill(&self) -> Option<Kill> {
        self.background.kill()
    }

    /// Returns the current state.
    pub(crate) fn life(&self) -> Life {
        self.state().life.clone()
    }

    /// Returns a snapshot and leaves the output unread.
    pub(crate) fn glance(&self) -> Reading {
        self.reading(&self.state(), String::new())
    }

    /// Returns the unread output and marks it as read.
    pub(crate) fn read(&self) -> Reading {
        let mut state = self.state();
        let fresh = std::mem::replace(&mut state.fresh, Clip::new(self.limit));
        let text = fresh.text(state.kept.as_ref());
        self.reading(&state, text)
    }

    /// Waits until there is output to read or the job has ended, up to the limit.
    pub(crate) async fn wait_for_news(&self, limit: Duration, cancel: &CancellationToken) {
        let is_news = |state: &State| !state.fresh.is_empty() || !state.life.is_running();
        self.wait(limit, cancel, is_news).await;
    }

    /// Waits until the job has ended, up to the limit.
    pub(crate) async fn wait_for_end(&self, limit: Duration, cancel: &CancellationToken) {
        self.wait(limit, cancel, |state| !state.life.is_running()).await;
    }

    async fn wait(&self, limit: Duration, cancel: &CancellationToken, is_so: impl Fn(&State) -> bool) {
        let mut news = self.news.subscribe();
        let looking = async { while !is_so(&self.state()) && news.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = looking => {}
            () = tokio::time::sleep(limit) => {}
        }
    }

    fn reading(&self, state: &State, text: String) -> Reading {
        Reading {
            text,
            life: state.life.clone(),
            total: state.total,
            kept: state.kept.clone(),
            time: state.took.unwrap_or_else(|| self.started.elapsed()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state());
        self.news.send_replace(());
    }

    /// Reads until the command has ended and no process can write any more.
    async fn attend(&self, mut tree: Tree, mut pipe: Pipe, limit: Option<Duration>, keeping: &Keeping) {
        let mut spill = None;
        let mut time_is_up = pin!(tokio::time::sleep(limit.unwrap_or(Duration::MAX)));
        let mut ended: Option<io::Result<ExitStatus>> = None;
        let mut timed_out = None;
        while ended.is_none() || pipe.is_open() {
            tokio::select! {
                biased;
                status = tree.wait(), if ended.is_none() => {
                    self.background.root_ended();
                    if let (Ok(status), true) = (&status, pipe.is_open()) {
                        let life = Life::Outlived(*status);
                        self.change(|state| state.life = life);
                    }
                    ended = Some(status);
                }
                () = &mut time_is_up, if limit.is_some() && timed_out.is_none() => {
                    timed_out = limit;
                    // The kill continues in the background, and its effect is noticed here.
                    drop(self.kill());
                }
                piece = pipe.read() => self.take(&piece, &mut spill, keeping).await,
            }
        }
        self.take(&pipe.finish(), &mut spill, keeping).await;
        self.background.over();
        let life = match (timed_out, ended) {
            (Some(limit), _) => Life::TimedOut(limit),
            (None, Some(Ok(status))) => Life::Exited(status),
            (None, Some(Err(error))) => Life::Unknown(error.to_string()),
            (None, None) => Life::Unknown(String::new()),
        };
        let took = self.started.elapsed();
        self.change(|state| {
            state.life = life;
            state.took = Some(took);
        });
        if let Some(spill) = spill {
            spill.close(DISK_TIME).await;
        }
    }

    /// Stores the output on disk before it can be read, so that a reference to it is always valid.
    async fn take(&self, piece: &Piece, spill: &mut Option<Spill>, keeping: &Keeping) {
        let Piece { bytes, text } = piece;
        if bytes.is_empty() && text.is_empty() {
            return;
        }
        // Output that was already read is no longer in memory, so everything is stored from the start.
        if spill.is_none() {
            *spill = keeping.spill();
        }
        let kept = match spill {
            Some(spill) => {
                spill.push(bytes, text);
                spill.flush(DISK_TIME).await
            }
            None => None,
        };
        self.change(|state| {
            state.fresh.push(text);
            state.total += u64::try_from(text.len()).unwrap_or(u64::MAX);
            state.kept = kept;
        });
    }
}
