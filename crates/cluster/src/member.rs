//! This server as a member of the cluster: its heartbeat, its deadline, takeover and drain.

mod pump;

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, EventStream, SessionId};
use windlass_core::clock::{Timestamp, span};
use windlass_core::hook::Hook;
use windlass_core::log::{LogError, Notice};

pub(crate) use self::pump::{RefusedPost, ReplyPost};
use crate::backend::ClusterBackend;
use crate::boot_time;
use crate::guard::Guard;
use crate::moving;
use crate::state::{ClusterConfig, ClusterPorts, LOST, News, Shared, count, lock};
use crate::wire::{OwnerQuery, OwnerQueryKind, WireError, WireHandler};

/// Sessions that are claimed at once.
const CLAIMED: usize = 16;
/// Time between two comparisons of the store with what is open here.
const COMPARE: Duration = Duration::from_secs(10);
/// Maximum time for which a call of a tool may continue when the server leaves.
const DRAIN: Duration = Duration::from_secs(20);
/// Difference between the clocks of a server and of the store that is reported.
const CLOCKS: Duration = Duration::from_secs(30);
/// Time between two looks at running calls.
const LOOK: Duration = Duration::from_millis(50);
/// Shortest wait for the deadline.
const SOON: Duration = Duration::from_millis(20);

/// A server of a cluster.
pub struct Member {
    shared: Arc<Shared>,
    /// Sessions whose failed takeover was reported.
    reported: Mutex<HashSet<SessionId>>,
}

impl Member {
    /// Creates a server that has not joined yet.
    pub fn new(config: ClusterConfig, ports: ClusterPorts) -> Self {
        Self {
            shared: Arc::new(Shared::new(config, ports)),
            reported: Mutex::default(),
        }
    }

    /// Returns the backend for the front ends of this server.
    pub fn backend(&self) -> Arc<ClusterBackend> {
        Arc::new(ClusterBackend::new(Arc::clone(&self.shared)))
    }

    /// Returns the hook that keeps tools from starting after the deadline.
    pub fn guard(&self) -> Arc<dyn Hook> {
        Arc::new(Guard(Arc::clone(&self.shared)))
    }

    /// Joins the cluster: the first heartbeat.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn join(&self) -> Result<(), LogError> {
        let sent = boot_time::now();
        let config = &self.shared.config;
        let beat = self
            .shared
            .ports
            .cluster
            .beat(&config.server, config.term.lease, 0)
            .await?;
        self.beaten(sent);
        self.compare_clocks(beat.time);
        if beat.has_work {
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Notes a heartbeat that succeeded. Returns true if the lease was lost before.
    fn beaten(&self, sent: Duration) -> bool {
        let shared = &self.shared;
        let is_back = shared.lease().beaten(sent, boot_time::now());
        (shared.ports.warden)(shared.config.term.warden_deadline(sent));
        is_back
    }

    /// Reports a clock that differs from the store's. No lease depends on it, but the times of records and jobs do.
    fn compare_clocks(&self, store: Timestamp) {
        let shared = &self.shared;
        let own = shared.ports.clock.now();
        let ahead = i64::try_from(own.0).unwrap_or(i64::MAX) - i64::try_from(store.0).unwrap_or(i64::MAX);
        let before = shared.flags.ahead_ms.swap(ahead, Ordering::Relaxed);
        let is_wrong = |ms: i64| u128::from(ms.unsigned_abs()) > CLOCKS.as_millis();
        if is_wrong(ahead) && !is_wrong(before) {
            let by = span(Duration::from_millis(ahead.unsigned_abs()));
            let side = if ahead > 0 { "ahead of" } else { "behind" };
            (shared.ports.warn)(&format!(
                "the clock of this server is {by} {side} the clock of the database: leases are not affected, but times in \
                 records are wrong, and scheduled jobs run at the wrong time; set the clocks of both machines, for \
                 example by NTP"
            ));
        }
    }

    /// Works until `stop` is cancelled.
    ///
    /// # Errors
    /// When the carrier between servers cannot be used.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), WireError> {
        let handler = Arc::new(Handler(Arc::clone(&self.shared)));
        let wire = Arc::clone(&self.shared.ports.wire);
        let work = async {
            tokio::join!(
                self.beats(),
                self.deadline(),
                self.notices(),
                self.claims(),
                self.compares(),
                pump::run(Arc::clone(&self.shared)),
            );
            Ok(())
        };
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            served = wire.serve(handler, stop.clone()) => served,
            worked = work => worked,
        }
    }

    /// Renews the lease.
    async fn beats(&self) {
        let (shared, config) = (&self.shared, &self.shared.config);
        let pace = config.term.beat();
        let mut mark = 0;
        loop {
            let sent = boot_time::now();
            // That of a living server ends later than the next heartbeat.
            let mut ends = pace;
            let beating = shared.ports.cluster.beat(&config.server, config.term.lease, mark);
            match timeout(pace, beating).await {
                Ok(Ok(beat)) => {
                    count(&shared.counts.beats);
                    mark = beat.mark;
                    if let Some(left) = beat.ends_ms {
                        ends = Duration::from_millis(left) + SOON;
                    }
                    shared.flags.has_own.store(beat.has_own, Ordering::Relaxed);
                    self.compare_clocks(beat.time);
                    if self.beaten(sent) {
                        (shared.ports.warn)("contact with the store is back");
                        shared.compare.notify_one();
                        shared.tell(News::Again);
                    }
                    beat.moved
                        .into_iter()
                        .for_each(|session| shared.tell(News::Moved(session)));
                    if beat.has_work {
                        shared.work.notify_one();
                    }
                    if !beat.inbox.is_empty() {
                        shared.inbox.notify_one();
                    }
                }
                Ok(Err(_)) | Err(_) => count(&shared.counts.failed_beats),
            }
            let spent = boot_time::now().saturating_sub(sent);
            let pause = pace.saturating_sub(spent).min(ends);
            shared.ports.clock.sleep(pause.max(SOON)).await;
        }
    }

    /// Lets go of everything when the deadline has passed.
    async fn deadline(&self) {
        let shared = &self.shared;
        loop {
            let left = shared.lease().left(boot_time::now());
            shared.ports.clock.sleep(left.max(SOON)).await;
            let is_over = shared.lease().expires(boot_time::now());
            if !is_over {
                continue;
            }
            count(&shared.counts.lost);
            shared.tell(News::Lost);
            (shared.ports.warn)("lost contact with the store: all turns and commands end here");
            for (session, _) in shared.ports.sessions.open_here() {
                let shared = Arc::clone(shared);
                tokio::spawn(async move {
                    shared.ports.sessions.let_go(&session, LOST).await;
                    // It may still be ours when contact is back.
                    shared.compare.notify_one();
                });
            }
        }
    }

    /// Hears the store. A lost notice is made up for by the next heartbeat.
    async fn notices(&self) {
        let shared = &self.shared;
        let mut notices = shared.ports.cluster.notices(shared.id());
        while let Some(notice) = notices.next().await {
            match notice {
                Notice::Preference => shared.ports.changed.notify_one(),
                Notice::Again => {
                    shared.ports.changed.notify_one();
                    shared.inbox.notify_one();
                    shared.work.notify_one();
                    lock(&shared.answers)
                        .values()
                        .for_each(|waiting| waiting.notify_one());
                }
                Notice::Inbox(_) => shared.inbox.notify_one(),
                Notice::Work => shared.work.notify_one(),
                Notice::Answered(id) => {
                    if let Some(waiting) = lock(&shared.answers).get(&id) {
                        waiting.notify_one();
                    }
                }
                Notice::Moved(session) => shared.tell(News::Moved(session)),
            }
        }
    }

    /// Claims sessions whose owner is gone.
    async fn claims(&self) {
        let shared = &self.shared;
        loop {
            shared.work.notified().await;
            while shared.works() {
                let slots = usize::try_from(shared.config.server.slots).unwrap_or(usize::MAX);
                let open = shared.ports.sessions.open_here().len();
                let limit = slots.saturating_sub(open).min(CLAIMED);
                if limit == 0 {
                    break;
                }
                let claimed = shared.ports.cluster.claim(&shared.config.server, limit).await;
                let claimed = claimed.unwrap_or_default();
                if claimed.is_empty() {
                    break;
                }
                let taken = join_all(claimed.iter().map(|session| self.take_over(session))).await;
                shared.inbox.notify_one();
                // What failed once fails again at once, for example while the disk of the store is full.
                if taken.contains(&false) {
                    break;
                }
            }
        }
    }

    /// Opens own sessions with unfinished work that are not open: a task may have ended without its work.
    async fn compares(&self) {
        let shared = &self.shared;
        loop {
            tokio::select! {
                () = shared.compare.notified() => {}
                () = shared.ports.clock.sleep(COMPARE) => {}
            }
            if !shared.works() || !shared.flags.has_own.load(Ordering::Relaxed) {
                continue;
            }
            let unfinished = shared.ports.cluster.unfinished(Some(shared.id())).await;
            let unfinished = unfinished.unwrap_or_default();
            let strays = unfinished
                .iter()
                .filter(|session| !shared.ports.sessions.is_open(session));
            join_all(strays.map(|session| self.take_over(session))).await;
            shared.inbox.notify_one();
        }
    }

    /// Opens a session of this server. Returns true if it is open.
    async fn take_over(&self, session: &SessionId) -> bool {
        match self.shared.ports.sessions.take_over(session).await {
            Ok(()) => {
                count(&self.shared.counts.taken_over);
                self.reported.lock().await.remove(session);
                true
            }
            Err(error) => {
                if self.reported.lock().await.insert(session.clone()) {
                    let text = format!("session {session} cannot be taken over: {error}; it is tried again");
                    (self.shared.ports.warn)(&text);
                }
                false
            }
        }
    }

    /// Leaves the cluster: sessions are given back at once, except where a call of a tool runs; that gets a while to end.
    /// Others may take them over immediately.
    pub async fn leave(&self) {
        let shared = &self.shared;
        shared.flags.is_leaving.store(true, Ordering::SeqCst);
        let begun = boot_time::now();
        loop {
            let open = shared.ports.sessions.open_here();
            let is_over = boot_time::now().saturating_sub(begun) >= DRAIN;
            let free = open.iter().filter(|(_, runs_call)| is_over || !runs_call);
            join_all(free.map(|(session, _)| self.give_back(session))).await;
            if open.is_empty() || is_over {
                break;
            }
            shared.ports.clock.sleep(LOOK).await;
        }
        if let Err(error) = shared.ports.cluster.give_back(shared.id(), None).await {
            (shared.ports.warn)(&format!(
                "the sessions could not be released: {error}; their lease will expire"
            ));
        }
    }

    async fn give_back(&self, session: &SessionId) {
        let ports = &self.shared.ports;
        // First, so that nothing more is written under the old fence.
        let given = ports.cluster.give_back(self.shared.id(), Some(session)).await;
        ports
            .sessions
            .let_go(
                session,
                "this server is shutting down; another one continues the turn",
            )
            .await;
        drop(given);
    }

    /// Returns the counts in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let counts = &self.shared.counts;
        let rows = [
            (
                "heartbeats_total",
                "Heartbeats that renewed the lease",
                &counts.beats,
            ),
            (
                "heartbeats_failed_total",
                "Heartbeats that failed or were late",
                &counts.failed_beats,
            ),
            ("leases_lost_total", "Times the lease was lost", &counts.lost),
            (
                "sessions_taken_over_total",
                "Sessions opened after another server dropped them",
                &counts.taken_over,
            ),
            (
                "inbox_posted_total",
                "Messages for sessions of other servers",
                &counts.posted,
            ),
            (
                "inbox_taken_total",
                "Messages taken for own sessions",
                &counts.taken,
            ),
            (
                "mirrors_total",
                "Event streams opened to other servers",
                &counts.mirrors,
            ),
        ];
        let mut text = String::new();
        for (name, help, counter) in rows {
            let value = counter.load(Ordering::Relaxed);
            text.push_str(&format!(
                "# HELP windlass_cluster_{name} {help}.\n# TYPE windlass_cluster_{name} counter\nwindlass_cluster_{name} {value}\n"
            ));
        }
        let open = self.shared.ports.sessions.open_here().len();
        let left = self.shared.lease().left(boot_time::now()).as_secs_f64();
        let ahead = self.shared.flags.ahead_ms.load(Ordering::Relaxed) as f64 / 1_000.0;
        text.push_str(&format!(
            "# HELP windlass_cluster_sessions_open Sessions open on this server.\n\
             # TYPE windlass_cluster_sessions_open gauge\nwindlass_cluster_sessions_open {open}\n\
             # HELP windlass_cluster_lease_seconds Time left of the server's own deadline.\n\
             # TYPE windlass_cluster_lease_seconds gauge\nwindlass_cluster_lease_seconds {left:.3}\n\
             # HELP windlass_cluster_clock_ahead_seconds Difference between this server's clock and the database's.\n\
             # TYPE windlass_cluster_clock_ahead_seconds gauge\nwindlass_cluster_clock_ahead_seconds {ahead:.3}\n"
        ));
        text
    }
}

/// Answers other servers.
struct Handler(Arc<Shared>);

#[async_trait]
impl WireHandler for Handler {
    async fn answer(&self, ask: OwnerQuery) -> Result<Value, ClientError> {
        self.0.check()?;
        let (local, session) = (&self.0.ports.local, &ask.session);
        match ask.kind {
            OwnerQueryKind::Move(order) => return moving::arrive(&self.0, order).await,
            OwnerQueryKind::Depart(id) => return moving::depart(&self.0, ask.session, id).await,
            _ => {}
        }
        if !self.0.ports.sessions.is_open(session) {
            // The asking server looks again.
            return Err(ClientError::Closed(session.clone()));
        }
        match ask.kind {
            OwnerQueryKind::Overview => json_of(local.overview(session)).await,
            OwnerQueryKind::Why => Ok(json!(local.why(session).await)),
            OwnerQueryKind::Context => json_of(local.context(session)).await,
            OwnerQueryKind::Catalog => Ok(json!(local.catalog(session).await)),
            OwnerQueryKind::Complete(line) => Ok(json!(local.complete(session, &line).await)),
            OwnerQueryKind::Command(line) => json_of(local.command(session, &line)).await,
            OwnerQueryKind::Summarize => local.summarize(session).await.map(|_| Value::Null),
            OwnerQueryKind::Checkpoints => json_of(local.checkpoints(session)).await,
            OwnerQueryKind::Changes(number) => json_of(local.changes(session, number)).await,
            OwnerQueryKind::Delete => json_of(local.delete(session)).await,
            OwnerQueryKind::Move(_) | OwnerQueryKind::Depart(_) => Err(ClientError::Closed(session.clone())),
        }
    }

    async fn events(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError> {
        self.0.check()?;
        match self.0.ports.sessions.is_open(session) {
            true => self.0.ports.local.subscribe(session, after).await,
            false => Err(ClientError::Closed(session.clone())),
        }
    }
}

async fn json_of<T: serde::Serialize>(
    answer: impl Future<Output = Result<T, ClientError>>,
) -> Result<Value, ClientError> {
    serde_json::to_value(answer.await?).map_err(|error| ClientError::Store(error.to_string()))
}
