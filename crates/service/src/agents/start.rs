//! Starts, resumes and steers sub-agents.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use windlass_api::{CallId, Client, ClientError, Event, EventStream, SessionId, SessionInfo, Submission};
use windlass_core::event::AgentEvent;
use windlass_core::hook::SessionOpening;
use windlass_core::log::{
    AgentBudget, AgentJob, AgentRow, AgentState, AgentsLeft, Durability, NewAgent, Spawned,
};

use super::copies::{drop_unchanged, prepare};
use super::family::RunningChild;
use super::watch::{Watched, watch};
use super::{AgentCatalog, AgentType, elsewhere, orphans};
use crate::actor::SessionRequest;
use crate::format::cut;
use crate::queue::Input;
use crate::{LiveSession, Service};

/// Maximum number of characters of a name.
const NAME: usize = 40;
/// Maximum number of characters of a task in the title of a running sub-agent.
const TASK: usize = 60;

/// Maximum time to wait until the last run of a sub-agent is cleaned up.
const SETTLING: Duration = Duration::from_secs(30);

/// A request for a sub-agent.
#[derive(Debug, Default)]
pub(super) struct AgentRequest {
    pub(super) kind: Option<String>,
    pub(super) task: String,
    pub(super) name: Option<String>,
    pub(super) background: Option<bool>,
    pub(super) wake: bool,
    pub(super) asks: AgentBudget,
    pub(super) isolated: Option<bool>,
}

/// A sub-agent that runs.
pub(super) struct Started {
    pub(super) watched: Watched,
    pub(super) left: AgentsLeft,
}

/// A sub-agent that does not run.
pub(super) enum NotStarted {
    /// It was not created. The text is for the model.
    Refused(String),
    /// It was created and could not start, which is its end.
    Ended(Box<AgentRow>),
}

/// Creates a sub-agent and starts its turn. `cancel` ends the wait for its copy of the files.
pub(super) async fn start(
    service: &Service,
    parent: &SessionId,
    (call, cancel): (CallId, &CancellationToken),
    request: AgentRequest,
) -> Result<Started, NotStarted> {
    let inner = &service.inner;
    let parent_info = known(service, parent).await.map_err(NotStarted::Refused)?;
    let catalog = inner.factory.agents(&parent_info).await;
    let isolated = request.isolated;
    let (new, kind) =
        described(service, &catalog, &parent_info, (call, request)).map_err(NotStarted::Refused)?;
    let (task, limit) = (new.job.task.clone(), new.asks.seconds);
    let spawned = inner.store.spawn(new, &inner.owner).await;
    // Nothing is copied for a sub-agent that a limit refuses.
    let Spawned {
        mut opened,
        mut row,
        left,
    } = spawned.map_err(|error| NotStarted::Refused(error.to_string()))?;
    let begun = async {
        if isolated.unwrap_or(kind.isolated) {
            opened.info.place = tokio::select! {
                biased;
                () = cancel.cancelled() => Err("it was stopped".to_owned()),
                made = prepare(service, &parent_info, &mut row) => made,
            }?;
        }
        if let Some(family) = service.family(parent) {
            let warnings = family.hooks().child_started(&*inner.clock, &row).await;
            warn(service, parent, warnings);
            family.started(running(&row));
        }
        let live = service.enliven(opened, SessionOpening::New).await;
        let live = live.map_err(|error| error.to_string())?;
        let events = begin(service, &live, (&row.session, task)).await?;
        Ok((live, events))
    };
    match begun.await {
        Ok((live, events)) => Ok(Started {
            watched: Watched {
                deadline: deadline(&catalog, &row, limit),
                silence: catalog.silence,
                row,
                live,
                events,
            },
            left,
        }),
        Err(why) => {
            let state = match cancel.is_cancelled() {
                true => AgentState::Canceled,
                false => AgentState::Failed,
            };
            Err(NotStarted::Ended(Box::new(
                fail(service, row, (state, why)).await,
            )))
        }
    }
}

/// Starts a run of a sub-agent that is live, and returns its events.
async fn begin(
    service: &Service,
    live: &LiveSession,
    (session, text): (&SessionId, String),
) -> Result<EventStream, String> {
    // Created before the input is accepted, so that no event is missed.
    let reader = live.sink.feed().reader();
    let accepted = service.submit(Submission::text(session.clone(), text)).await;
    accepted.map_err(|error| error.to_string())?;
    Ok(reader.run())
}

/// Ends a sub-agent that could not start, and returns its row.
async fn fail(service: &Service, row: AgentRow, (state, why): (AgentState, String)) -> AgentRow {
    let inner = &service.inner;
    let kind = "setup";
    let _ = match service.known(&row.session) {
        None => orphans::end(inner, &row, state, Some((kind, why))).await,
        Some(live) => {
            let ended = AgentEvent::AgentEnded {
                state,
                reason: Some(kind.to_owned()),
                result: why,
                claims: Vec::new(),
            };
            let stored = live.sink.store(vec![ended.into_event()], Durability::Process);
            let stored = stored.await;
            let _ = live.requests.try_send(SessionRequest::Leave);
            stored
        }
    };
    let stored = inner.store.agent(&row.session).await;
    let mut row = stored.ok().flatten().unwrap_or(row);
    drop_unchanged(service, &mut row).await;
    if let Some(family) = service.family(&row.family.parent) {
        family.ended(&row.session, false);
    }
    row
}

/// Returns the time a run may take.
pub(super) fn deadline(catalog: &AgentCatalog, row: &AgentRow, asked: Option<u64>) -> Duration {
    let share = row.budget.seconds.map(Duration::from_secs);
    let limit = match asked {
        Some(seconds) => Duration::from_secs(seconds),
        None => catalog.deadline,
    };
    share.map_or(limit, |share| limit.min(share))
}

async fn known(service: &Service, session: &SessionId) -> Result<SessionInfo, String> {
    let info = service.inner.store.get(session).await;
    let info = info.map_err(|error| error.to_string())?;
    info.ok_or_else(|| format!("there is no session {session}"))
}

/// Checks a request. The folder of a sub-agent that gets a copy of the files is empty until there is one.
fn described<'a>(
    service: &Service,
    catalog: &'a AgentCatalog,
    parent: &SessionInfo,
    (call, request): (CallId, AgentRequest),
) -> Result<(NewAgent, &'a AgentType), String> {
    let kind = request.kind.as_deref().unwrap_or(&catalog.default_type);
    let Some(kind) = catalog.find(kind) else {
        let names: Vec<&str> = catalog.types.iter().map(|known| known.name.as_str()).collect();
        return Err(format!(
            "`type`: there is no type `{kind}`; there are {}",
            names.join(", ")
        ));
    };
    if request.task.trim().is_empty() {
        return Err("`task`: the task is empty".to_owned());
    }
    let name = request.name.unwrap_or_default().trim().to_owned();
    if name.chars().count() > NAME || name.chars().any(char::is_control) {
        return Err(format!(
            "`name`: a name has at most {NAME} characters on one line"
        ));
    }
    let is_isolated = request.isolated.unwrap_or(kind.isolated);
    let place = if is_isolated {
        String::new()
    } else {
        parent.place.clone()
    };
    let mut asks = request.asks;
    if let Some(most) = kind.max_cost_usd {
        asks.cost_usd = Some(asks.cost_usd.map_or(most, |asked| asked.min(most)));
    }
    let new = NewAgent {
        parent: parent.id.clone(),
        call: Some(call),
        job: AgentJob {
            name,
            kind: kind.name.clone(),
            task: request.task,
            background: request.background.unwrap_or(kind.background),
            wake: request.wake,
            place,
            worktree: None,
        },
        asks,
        limits: catalog.limits.clone(),
        session: SessionId::generate(),
        time: service.inner.clock.now(),
    };
    Ok((new, kind))
}

pub(super) fn running(row: &AgentRow) -> RunningChild {
    RunningChild {
        session: row.session.clone(),
        title: format!("agent {}: {}", row.title(), cut(&row.job.task, TASK)),
        background: row.job.background,
    }
}

/// Reports warnings in a live session.
pub(super) fn warn(service: &Service, session: &SessionId, warnings: Vec<String>) {
    if let Some(live) = service.known(session) {
        for message in warnings {
            live.sink.mention(Event::Warning { message });
        }
    }
}

/// Sends a text to a running sub-agent. Returns false if no turn of it runs; nothing was sent then.
pub(crate) async fn steer(service: &Service, row: &AgentRow, text: &str) -> Result<bool, String> {
    let Some(live) = service.known(&row.session) else {
        return Ok(elsewhere::steer(&service.inner, row, text).await);
    };
    let stops = live.handle.stops.count();
    let input = Input::for_running_turn(&row.session, text, stops, service.inner.clock.now());
    let input = input.map_err(|error| error.to_string())?;
    let (answer, answered) = oneshot::channel();
    if live
        .requests
        .send(SessionRequest::Submit(input, answer))
        .await
        .is_err()
    {
        return Ok(false);
    }
    match answered.await {
        Ok(Ok(_)) => Ok(true),
        Ok(Err(ClientError::Closed(_))) | Err(_) => Ok(false),
        Ok(Err(error)) => Err(error.to_string()),
    }
}

/// Continues a sub-agent that has ended, in the background.
pub(crate) async fn resume(service: &Service, row: &AgentRow, text: &str, wake: bool) -> Result<(), String> {
    let family = service.family(&row.family.parent);
    if let Some(family) = &family {
        // Its last run may still be cleaned up.
        let limit = service.inner.clock.sleep(SETTLING);
        tokio::select! {
            () = family.settled(&row.session) => {}
            () = limit => return Err(format!("agent {} is still ending; try again", row.title())),
        }
    }
    let watched = restart(service, row, text, (wake, false)).await?;
    if let Some(family) = family {
        family.started(RunningChild {
            background: true,
            ..running(row)
        });
    }
    let service = service.clone();
    let inner = std::sync::Arc::clone(&service.inner);
    inner.tasks.spawn(async move {
        watch(&service, watched, None).await;
    });
    Ok(())
}

/// Starts another run of a sub-agent. Its place in the ledger and its budget stay. The new run `replaces` the last one,
/// or continues it, so that a result that is not delivered yet is part of the new one.
pub(super) async fn restart(
    service: &Service,
    row: &AgentRow,
    text: &str,
    (wake, replaces): (bool, bool),
) -> Result<Watched, String> {
    let inner = &service.inner;
    let parent = known(service, &row.family.parent).await?;
    let catalog = inner.factory.agents(&parent).await;
    let reserved = inner.store.restart(&row.session, &catalog.limits).await;
    let mut row = reserved.map_err(|error| error.to_string())?;
    let begun = async {
        if row.job.place != parent.place {
            prepare(service, &parent, &mut row).await?;
        }
        let live = service.open(&row.session).await;
        let live = live.map_err(|error| error.to_string())?;
        let started = AgentEvent::AgentStarted { wake, replaces }.into_event();
        let stored = live.sink.store(vec![started], Durability::Process).await;
        stored.map_err(|error| error.to_string())?;
        let events = begin(service, &live, (&row.session, text.to_owned())).await?;
        Ok::<_, String>((live, events))
    };
    let (live, events) = match begun.await {
        Ok(begun) => begun,
        Err(why) => {
            fail(service, row, (AgentState::Failed, why.clone())).await;
            return Err(why);
        }
    };
    let stored = inner.store.agent(&row.session).await;
    let row = stored.ok().flatten().unwrap_or(row);
    Ok(Watched {
        deadline: deadline(&catalog, &row, None),
        silence: catalog.silence,
        row,
        live,
        events,
    })
}
