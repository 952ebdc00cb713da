//! Follows a running sub-agent until it ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;
use windlass_api::{Event, EventStream, Presence, SessionEvent};
use windlass_core::clock::span;
use windlass_core::event::{AgentEvent, EventSink};
use windlass_core::hook::ChildAction;
use windlass_core::log::{AgentRow, AgentState};

use super::copies::{Collisions, drop_unchanged};
use super::elsewhere;
use super::start::{restart, warn};
use crate::actor::SessionRequest;
use crate::{LiveSession, Service, why};

/// Maximum number of times that hooks can send a sub-agent back to work.
const MAX_CONTINUES: usize = 2;
/// Time a stopped sub-agent has to end.
const STOPPING: Duration = Duration::from_secs(10);

/// A running sub-agent.
pub(super) struct Watched {
    pub(super) row: AgentRow,
    pub(super) live: LiveSession,
    pub(super) events: EventStream,
    pub(super) deadline: Duration,
    pub(super) silence: Duration,
}

/// Follows a sub-agent until it has ended, and returns its row. `cancel` stops it.
pub(super) async fn watch(
    service: &Service,
    mut watched: Watched,
    cancel: Option<CancellationToken>,
) -> AgentRow {
    let inner = &service.inner;
    let parent = watched.row.family.parent.clone();
    for round in 0..=MAX_CONTINUES {
        follow(service, &mut watched, cancel.as_ref()).await;
        if let Ok(Some(row)) = inner.store.agent(&watched.row.session).await {
            watched.row = row;
        }
        let Some(text) = continued(service, &watched.row, round).await else {
            break;
        };
        match restart(service, &watched.row, &text, (watched.row.job.wake, true)).await {
            Ok(again) => watched = again,
            Err(why) => {
                warn(
                    service,
                    &parent,
                    vec![format!("agent {}: {why}", watched.row.title())],
                );
                break;
            }
        }
    }
    let mut row = watched.row;
    if row.status.state == AgentState::Done {
        drop_unchanged(service, &mut row).await;
    }
    if let Some(family) = service.family(&parent) {
        let wakes = row.job.background && row.job.wake;
        family.ended(&row.session, wakes);
        if wakes {
            wake(service, &row).await;
        }
    }
    inner
        .tasks
        .spawn(retire(service.clone(), watched.live, row.clone()));
    row
}

/// Returns the text with which hooks of the session above continue a sub-agent.
async fn continued(service: &Service, row: &AgentRow, round: usize) -> Option<String> {
    let inner = &service.inner;
    let hooks = service.family(&row.family.parent)?.hooks();
    let (action, warnings) = hooks.child_ended(&*inner.clock, row).await;
    warn(service, &row.family.parent, warnings);
    match action {
        ChildAction::Continue(text)
            if round < MAX_CONTINUES
                && row.status.state == AgentState::Done
                && !inner.closing.is_cancelled() =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// Passes the events of one run on until it ends; stops the run at its deadline.
async fn follow(service: &Service, watched: &mut Watched, cancel: Option<&CancellationToken>) {
    let clock = Arc::clone(&service.inner.clock);
    let mut deadline = clock.sleep(watched.deadline);
    let mut silence = clock.sleep(watched.silence);
    let mut given_up = clock.sleep(Duration::MAX);
    let mut is_stopped = false;
    let mut collisions = Collisions::default();
    let canceled = async {
        match cancel {
            Some(cancel) => cancel.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(canceled);
    loop {
        tokio::select! {
            biased;
            event = watched.events.next() => {
                let Some(envelope) = event else { return };
                match &envelope.event {
                    Event::StepComplete { .. } => collisions.look(service, &watched.row).await,
                    // It was stopped between two turns of its run.
                    Event::Start { .. } if is_stopped => drop(watched.live.handle.stop()),
                    _ => {}
                }
                pass_on(service, &watched.row, envelope.event);
                silence = clock.sleep(watched.silence);
            }
            () = &mut canceled, if !is_stopped => {
                is_stopped = true;
                watched.live.handle.stop();
                given_up = clock.sleep(STOPPING);
            }
            () = &mut deadline, if !is_stopped => {
                is_stopped = true;
                let limit = span(watched.deadline);
                watched.live.handle.family.ends_as(AgentState::TimedOut, &format!("after {limit}"));
                watched.live.handle.stop();
                given_up = clock.sleep(STOPPING);
            }
            () = &mut silence => {
                is_silent(service, &watched.row, watched.silence).await;
                silence = clock.sleep(watched.silence);
            }
            () = &mut given_up, if is_stopped => return,
        }
    }
}

/// Tells the session above that a sub-agent has been silent for a while, and what it waits for.
async fn is_silent(service: &Service, row: &AgentRow, silence: Duration) {
    let chain = service.why(&row.session).await;
    let text = format!(
        "agent {} has been silent for {}: {}",
        row.title(),
        span(silence),
        why::lines(&chain)
    );
    warn(service, &row.family.parent, vec![text]);
}

/// EVT-4: passes an event of a sub-agent to the session above. Pieces of texts and whole messages are left to those
/// who follow the sub-agent itself.
fn pass_on(service: &Service, row: &AgentRow, event: Event) {
    let Some(above) = service.known(&row.family.parent) else {
        return;
    };
    let nested = match event {
        Event::Delta { .. } | Event::ToolOutput { .. } | Event::Message { .. } | Event::Waiting(_) => return,
        // An event from further below already names its sub-agent.
        Event::Session(SessionEvent::Agent(AgentEvent::Subagent { .. })) => event,
        event => AgentEvent::Subagent {
            agent: row.session.clone(),
            number: row.family.number,
            name: row.job.name.clone(),
            depth: row.family.depth,
            event: Box::new(event),
        }
        .into_event(),
    };
    above.sink.live(nested);
}

/// Lets an idle session above continue with the result.
async fn wake(service: &Service, row: &AgentRow) {
    if service.inner.closing.is_cancelled() {
        return;
    }
    // On another server of a cluster, the inbox of the session above has the end.
    if elsewhere::cluster(&service.inner).is_some() && service.known(&row.family.parent).is_none() {
        return;
    }
    // If another process has the session by now, it gets the result with its next turn there.
    if let Ok(above) = service.open(&row.family.parent).await {
        let _ = above.requests.send(SessionRequest::Wake).await;
    }
}

/// Releases the session of a sub-agent that has ended, unless somebody else uses it.
async fn retire(service: Service, live: LiveSession, row: AgentRow) {
    if live.requests.send(SessionRequest::Leave).await.is_ok() {
        live.requests.closed().await;
    }
    if service.known(&row.session).is_some() {
        return;
    }
    if let Some(mut env) = live.handle.parked() {
        env.close().await;
    }
    // Somebody may have opened it again meanwhile.
    let is_gone = {
        let mut live = service.lock();
        let is_closed = live
            .get(&row.session)
            .is_none_or(|live| live.requests.is_closed());
        if is_closed {
            live.remove(&row.session);
        }
        is_closed
    };
    if is_gone {
        service.inner.factory.release(&row.session).await;
    }
}
