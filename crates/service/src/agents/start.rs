//! Starts, resumes and steers sub-agents.

use std::time::Duration;

use windlass_api::{CallId, Client, Event, OnBusy, Part, SessionId, SessionInfo, Submission};
use windlass_core::event::AgentEvent;
use windlass_core::hook::SessionOpening;
use windlass_core::log::{
    AgentBudget, AgentJob, AgentQuery, AgentRow, AgentState, AgentsLeft, Durability, NewAgent,
};

use super::family::RunningChild;
use super::watch::{Watched, watch};
use super::{AgentCatalog, orphans};
use crate::Service;
use crate::format::cut;

/// Maximum number of characters of a name.
const NAME: usize = 40;
/// Maximum number of characters of a task in the title of a running sub-agent.
const TASK: usize = 60;

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

/// Creates a sub-agent and starts its turn. The error is a text for the model.
pub(super) async fn start(
    service: &Service,
    parent: &SessionId,
    call: CallId,
    request: AgentRequest,
) -> Result<Started, String> {
    let inner = &service.inner;
    let parent_info = known(service, parent).await?;
    let catalog = inner.factory.agents(&parent_info).await;
    let new = described(service, &catalog, &parent_info, (call, request)).await?;
    let isolated = new.job.worktree.is_some().then(|| new.session.clone());
    let (task, limit) = (new.job.task.clone(), new.asks.seconds);
    let spawned = match inner.store.spawn(new, &inner.owner).await {
        Ok(spawned) => spawned,
        Err(error) => {
            if let (Some(agent), Ok(copies)) = (isolated, service.copies()) {
                let _ = copies.discard(&agent).await;
            }
            return Err(error.to_string());
        }
    };
    let row = spawned.row;
    if let Some(family) = service.family(parent) {
        let warnings = family.hooks().child_started(&*inner.clock, &row).await;
        warn(service, parent, warnings);
        family.started(running(&row));
    }
    let begun = async {
        let live = service.enliven(spawned.opened, SessionOpening::New).await?;
        let events = service
            .submit(Submission::text(row.session.clone(), task))
            .await?;
        Ok::<_, windlass_api::ClientError>((live, events))
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
            left: spawned.left,
        }),
        Err(error) => {
            let reason = Some(("setup", error.to_string()));
            let _ = orphans::end(inner, &row, AgentState::Failed, reason).await;
            if let Some(family) = service.family(parent) {
                family.ended(&row.session, false);
            }
            Err(format!("agent {} could not start: {error}", row.title()))
        }
    }
}

/// Returns the time a run may take.
fn deadline(catalog: &AgentCatalog, row: &AgentRow, asked: Option<u64>) -> Duration {
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

/// Checks a request, and prepares the folder of the sub-agent.
async fn described(
    service: &Service,
    catalog: &AgentCatalog,
    parent: &SessionInfo,
    (call, request): (CallId, AgentRequest),
) -> Result<NewAgent, String> {
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
    let session = SessionId::generate();
    let mut place = parent.place.clone();
    let mut worktree = None;
    if request.isolated.unwrap_or(kind.isolated) {
        let made = match service.copies() {
            Ok(copies) => copies.make(parent, &session).await,
            Err(why) => Err(why),
        };
        let folder =
            made.map_err(|why| format!("the agent's own copy of the files cannot be made: {why}"))?;
        place.clone_from(&folder);
        worktree = Some(folder);
    }
    let mut asks = request.asks;
    if let Some(most) = kind.max_cost_usd {
        asks.cost_usd = Some(asks.cost_usd.map_or(most, |asked| asked.min(most)));
    }
    Ok(NewAgent {
        parent: parent.id.clone(),
        call: Some(call),
        job: AgentJob {
            name,
            kind: kind.name.clone(),
            task: request.task,
            background: request.background.unwrap_or(kind.background),
            wake: request.wake,
            place,
            worktree,
        },
        asks,
        limits: catalog.limits.clone(),
        session,
        time: service.inner.clock.now(),
    })
}

fn running(row: &AgentRow) -> RunningChild {
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

/// Sends a text to a running sub-agent. Returns false if it does not run.
pub(crate) async fn steer(service: &Service, row: &AgentRow, text: &str) -> Result<bool, String> {
    if !row.status.state.is_active() || service.known(&row.session).is_none() {
        return Ok(false);
    }
    let submission = Submission {
        session: row.session.clone(),
        parts: vec![Part::text(text)],
        on_busy: OnBusy::Steer,
        id: None,
    };
    let sent = service.submit(submission).await;
    sent.map(|_| true).map_err(|error| error.to_string())
}

/// Continues a sub-agent that has ended, in the background.
pub(crate) async fn resume(service: &Service, row: &AgentRow, text: &str, wake: bool) -> Result<(), String> {
    let watched = restart(service, row, text, wake).await?;
    if let Some(family) = service.family(&row.family.parent) {
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

/// Starts another run of a sub-agent. Its place in the ledger and its budget stay.
pub(super) async fn restart(
    service: &Service,
    row: &AgentRow,
    text: &str,
    wake: bool,
) -> Result<Watched, String> {
    let inner = &service.inner;
    let parent = known(service, &row.family.parent).await?;
    let catalog = inner.factory.agents(&parent).await;
    let query = AgentQuery::Below(row.family.root.clone());
    let rows = inner
        .store
        .agents(&query)
        .await
        .map_err(|error| error.to_string())?;
    let active = rows.iter().filter(|row| row.status.state.is_active()).count();
    if active >= usize::try_from(catalog.limits.max_concurrent).unwrap_or(usize::MAX) {
        let most = catalog.limits.max_concurrent;
        return Err(format!(
            "{active} agents of this tree run, and agents.max_concurrent is {most}"
        ));
    }
    let live = service
        .open(&row.session)
        .await
        .map_err(|error| error.to_string())?;
    let started = AgentEvent::AgentStarted { wake }.into_event();
    let stored = live.sink.store(vec![started], Durability::Process).await;
    stored.map_err(|error| error.to_string())?;
    let events = service.submit(Submission::text(row.session.clone(), text)).await;
    let events = match events {
        Ok(events) => events,
        Err(error) => {
            let ended = AgentEvent::AgentEnded {
                state: AgentState::Failed,
                reason: Some("setup".to_owned()),
                result: error.to_string(),
            };
            let _ = live
                .sink
                .store(vec![ended.into_event()], Durability::Process)
                .await;
            return Err(error.to_string());
        }
    };
    let row = inner
        .store
        .agent(&row.session)
        .await
        .ok()
        .flatten()
        .unwrap_or_else(|| row.clone());
    Ok(Watched {
        deadline: deadline(&catalog, &row, None),
        silence: catalog.silence,
        row,
        live,
        events,
    })
}
