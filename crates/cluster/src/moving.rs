//! DIST-5: sessions that go to another place.
//!
//! Any server takes the request and passes it to one that has the new place. That one asks the server that has the
//! session, if it lives, to store the folder as it is and to let the session go; then it rebuilds the folder and records
//! the new place, if nobody has worked in the session since. Until then nothing has changed, so a move that was
//! interrupted can be repeated.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use windlass_api::{ClientError, Event, FolderMade, SessionEvent, SessionId, SessionInfo};
use windlass_core::clock::Clock;
use windlass_core::event::MovedFolder;
use windlass_core::log::{ClusterStore, Holder, LogError, Relocation, ServerRow, Store, Whereabouts};

use crate::state::{Shared, lock};
use crate::wire::{ClusterWire, OwnerQuery, OwnerQueryKind, WireError};

/// Time for which a question waits for the end of the work; less than a server waits for an answer.
const WAITED: Duration = Duration::from_secs(1);
/// Pause before a server is asked again.
const AGAIN: Duration = Duration::from_millis(100);
/// Questions without an answer after which a server counts as lost.
const LOST: u32 = 5;

/// A session to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveOrder {
    /// Id of this request.
    pub id: String,
    /// The session.
    pub session: SessionId,
    /// The new place.
    pub place: String,
    /// Absolute path of the folder there; that of the present folder if `None`.
    pub folder: Option<String>,
}

impl MoveOrder {
    /// A request with an id of its own.
    pub fn new(session: &SessionId, place: &str, folder: Option<&str>) -> Self {
        Self {
            id: uuid::Uuid::now_v7().to_string(),
            session: session.clone(),
            place: place.to_owned(),
            folder: folder.map(str::to_owned),
        }
    }
}

/// State of work that takes longer than a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LongWork {
    Running,
    /// It ended with this text for people.
    Done(String),
}

/// The end of work that was started.
pub(crate) type WorkEnd = watch::Receiver<Option<Result<String, ClientError>>>;

/// Connections that a request to move a session needs.
pub struct MovePorts<'a> {
    /// Sessions.
    pub store: &'a dyn Store,
    /// Servers.
    pub cluster: &'a dyn ClusterStore,
    /// Reaches them.
    pub wire: &'a dyn ClusterWire,
    /// Time.
    pub clock: &'a dyn Clock,
}

/// Moves a session to another place. Returns what was done, for people.
///
/// # Errors
/// When the session is busy, the place is not known, or the folder cannot be rebuilt. The session is where it was then.
pub async fn move_session(ports: MovePorts<'_>, order: &MoveOrder) -> Result<String, ClientError> {
    let ask = OwnerQuery {
        session: order.session.clone(),
        kind: OwnerQueryKind::Move(order.clone()),
    };
    let mut unreachable = None;
    for server in targets(&ports, order).await? {
        match ask_long(ports.wire, ports.clock, &holder(&server), &ask).await {
            // Its lease has not ended, but it may be gone; another server may have the place as well.
            Err(LongError::Unreachable(error)) => unreachable = Some(error),
            done => return done.map_err(ClientError::from),
        }
    }
    match unreachable {
        Some(error) => Err(LongError::Unreachable(error).into()),
        None => refused(format!("no server has the place `{}`", order.place)),
    }
}

/// Reason that work on another server did not end well.
enum LongError {
    Refused(ClientError),
    Unreachable(WireError),
}

impl From<LongError> for ClientError {
    fn from(error: LongError) -> Self {
        match error {
            LongError::Refused(error) => error,
            LongError::Unreachable(error) => Self::Command(format!(
                "server {} cannot be reached: {}; look where the session is, and try again in a moment",
                error.server, error.why
            )),
        }
    }
}

fn holder(server: &ServerRow) -> Holder {
    Holder {
        owner: server.info.id.clone(),
        address: server.info.address.clone(),
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, ClientError> {
    Err(ClientError::Command(why.into()))
}

fn stored(error: LogError) -> ClientError {
    match error {
        LogError::Unknown(session) => ClientError::Unknown(session),
        other => ClientError::Store(other.to_string()),
    }
}

/// Checks a request, and returns the servers that can carry it out, the one that started last first.
async fn targets(ports: &MovePorts<'_>, order: &MoveOrder) -> Result<Vec<ServerRow>, ClientError> {
    let MoveOrder { session, place, .. } = order;
    let known = place == "any"
        || ["host:", "volume:"]
            .iter()
            .any(|kind| place.strip_prefix(kind).is_some_and(|name| !name.is_empty()));
    if !known {
        return Err(ClientError::CommandUsage(format!(
            "`{place}` is no place: expected `host:NAME`, `volume:NAME` or `any`"
        )));
    }
    let info = info(ports.store, session).await?;
    if info.parent.is_some() {
        return refused("a sub-agent moves with its parent session; move the parent");
    }
    let folder = order.folder.as_deref().unwrap_or(&info.place);
    if !folder.starts_with('/') {
        return Err(ClientError::CommandUsage(format!(
            "the folder `{folder}` is not an absolute path"
        )));
    }
    let found = whereabouts(ports.cluster, session).await?;
    if found.home.as_deref() == Some(place) && folder == info.place {
        return refused(format!("the session is at {place} in {folder} already"));
    }
    let mut servers = ports.cluster.servers().await.map_err(stored)?;
    servers.retain(|server| server.is_alive && !server.info.address.is_empty());
    servers.reverse();
    let has_place = |server: &ServerRow| server.info.places.contains(place);
    let (able, others): (Vec<_>, Vec<_>) = servers.into_iter().partition(has_place);
    if !able.is_empty() {
        return Ok(able);
    }
    let mut places: Vec<String> = others.into_iter().flat_map(|server| server.info.places).collect();
    places.sort();
    places.dedup();
    refused(match places.is_empty() {
        true => format!("no server has the place `{place}`, and no server of a cluster runs"),
        false => format!(
            "no server has the place `{place}`; the places are {}",
            places.join(", ")
        ),
    })
}

async fn info(store: &dyn Store, session: &SessionId) -> Result<SessionInfo, ClientError> {
    let info = store.get(session).await.map_err(stored)?;
    info.ok_or_else(|| ClientError::Unknown(session.clone()))
}

async fn whereabouts(cluster: &dyn ClusterStore, session: &SessionId) -> Result<Whereabouts, ClientError> {
    let found = cluster.whereabouts(session).await.map_err(stored)?;
    found.ok_or_else(|| ClientError::Unknown(session.clone()))
}

/// Asks a server again and again until the work is done.
async fn ask_long(
    wire: &dyn ClusterWire,
    clock: &dyn Clock,
    server: &Holder,
    ask: &OwnerQuery,
) -> Result<String, LongError> {
    let mut lost = 0;
    loop {
        match wire.ask(server, ask).await {
            Ok(answer) => match serde_json::from_value(answer.map_err(LongError::Refused)?) {
                Ok(LongWork::Done(text)) => return Ok(text),
                Ok(LongWork::Running) => lost = 0,
                Err(error) => {
                    let why = format!("the answer of server {}: {error}", server.owner);
                    return Err(LongError::Refused(ClientError::Store(why)));
                }
            },
            Err(error) if lost >= LOST => return Err(LongError::Unreachable(error)),
            Err(_) => lost += 1,
        }
        clock.sleep(AGAIN).await;
    }
}

/// Starts work, or looks after work that was started under this id.
async fn long_work(
    shared: &Shared,
    id: String,
    work: impl Future<Output = Result<String, ClientError>> + Send + 'static,
) -> Result<Value, ClientError> {
    let mut end = {
        let mut works = lock(&shared.works_long);
        let started = works.entry(id).or_insert_with(|| {
            let (sender, receiver) = watch::channel(None);
            tokio::spawn(async move { sender.send(Some(work.await)) });
            receiver
        });
        started.clone()
    };
    let ended = tokio::time::timeout(WAITED, end.wait_for(Option::is_some)).await;
    let state = match ended {
        Ok(Ok(ended)) => match ended.clone() {
            Some(text) => LongWork::Done(text?),
            None => LongWork::Running,
        },
        Ok(Err(_)) => return refused("the work ended unexpectedly; nothing was moved"),
        Err(_) => LongWork::Running,
    };
    Ok(json!(state))
}

/// Answers a server that asks for a move to this one.
pub(crate) async fn arrive(shared: &Arc<Shared>, order: MoveOrder) -> Result<Value, ClientError> {
    let (this, id) = (Arc::clone(shared), order.id.clone());
    long_work(shared, id, async move { arrived(&this, &order).await }).await
}

/// Answers a server that asks this one to let a session go.
pub(crate) async fn depart(
    shared: &Arc<Shared>,
    session: SessionId,
    id: String,
) -> Result<Value, ClientError> {
    let this = Arc::clone(shared);
    long_work(shared, id, async move { departed(&this, &session).await }).await
}

/// Stores the folder of a session as it is, and lets the session go. Returns the reason if the folder was not stored.
async fn departed(shared: &Shared, session: &SessionId) -> Result<String, ClientError> {
    shared.check()?;
    let ports = &shared.ports;
    if !ports.sessions.is_open(session) {
        ports.sessions.take_over(session).await?;
    }
    if ports.local.overview(session).await?.is_busy {
        return Err(ClientError::Busy(session.clone()));
    }
    let saved = ports.folders.save(session).await;
    ports
        .cluster
        .give_back(shared.id(), Some(session))
        .await
        .map_err(stored)?;
    ports
        .sessions
        .let_go(session, "the session goes to another place")
        .await;
    Ok(saved.map_or_else(|error| error.to_string(), |()| String::new()))
}

/// Takes a session in: rebuilds its folder here, and records its new place.
async fn arrived(shared: &Shared, order: &MoveOrder) -> Result<String, ClientError> {
    shared.check()?;
    let (ports, session) = (&shared.ports, &order.session);
    if !shared.has_place(Some(&order.place)) {
        return refused(format!("server {} does not have `{}`", shared.id(), order.place));
    }
    let notice = freed(shared, order).await?;
    let info = info(&*ports.store, session).await?;
    let before = whereabouts(&*ports.cluster, session).await?;
    if let Some(holder) = before.holder {
        return refused(format!(
            "the session was taken up again by {}: it has work that starts by itself; pause its goal with `/goal pause`, or \
             wait until its queue is empty",
            holder.owner
        ));
    }
    let folder = order.folder.as_deref().unwrap_or(&info.place);
    let made = ports.folders.rebuild(session, folder).await?;
    let moved = MovedFolder {
        from_place: before.home.unwrap_or_else(|| "an unknown place".to_owned()),
        from_folder: info.place,
        place: order.place.clone(),
        folder: made.folder.clone(),
        as_of: made.as_of,
        files: made.files,
        left: made.left.clone(),
    };
    let relocation = Relocation {
        session: session.clone(),
        fence: before.fence,
        last_seq: before.last_seq,
        place: order.place.clone(),
        folder: made.folder.clone(),
        event: Event::Session(SessionEvent::Moved {
            from: String::new(),
            to: shared.id().to_owned(),
            fence: before.fence + 1,
            after_ms: 0,
            folder: Some(Box::new(moved.clone())),
        }),
    };
    if let Err(error) = ports.cluster.relocate(relocation).await {
        ports.folders.discard(session, &made).await;
        return match error {
            LogError::Busy { .. } | LogError::Lost(_) => {
                refused("the session changed during the move and was not moved; try again")
            }
            error => Err(stored(error)),
        };
    }
    shared.work.notify_one();
    Ok(report(&moved, &made, &notice))
}

/// Releases a session: its owner stores the folder and closes it. Without an owner, a server that has its place stores
/// the folder as it is now, if there is one. Returns a notice if that failed, so that the last stored state counts.
async fn freed(shared: &Shared, order: &MoveOrder) -> Result<String, ClientError> {
    let (ports, session) = (&shared.ports, &order.session);
    let found = whereabouts(&*ports.cluster, session).await?;
    if let Some(holder) = found.holder {
        if holder.owner != shared.id() && holder.address.is_empty() {
            return refused(format!(
                "the session is in use by {}, which is not part of the cluster; close it there first",
                holder.owner
            ));
        }
        return left_by(shared, order, &holder).await;
    }
    let servers = ports.cluster.servers().await.map_err(stored)?;
    let has_place = |server: &&ServerRow| {
        let home = found.home.as_ref();
        server.is_alive && home.is_some_and(|home| server.info.places.contains(home))
    };
    let Some(server) = servers.iter().find(has_place) else {
        return Ok(String::new());
    };
    match left_by(shared, order, &holder(server)).await {
        Err(error @ ClientError::Busy(_)) => Err(error),
        left => Ok(left.unwrap_or_else(|error| error.to_string())),
    }
}

/// Lets the server that has a session, or its place, store the folder and let the session go.
async fn left_by(shared: &Shared, order: &MoveOrder, owner: &Holder) -> Result<String, ClientError> {
    let (ports, session) = (&shared.ports, &order.session);
    if owner.owner == shared.id() {
        return departed(shared, session).await;
    }
    let ask = OwnerQuery {
        session: session.clone(),
        kind: OwnerQueryKind::Depart(order.id.clone()),
    };
    let left = ask_long(&*ports.wire, &*ports.clock, owner, &ask).await;
    left.map_err(ClientError::from)
}

/// Describes what was restored.
fn report(moved: &MovedFolder, made: &FolderMade, notice: &str) -> String {
    let mut text = match made.is_new {
        true => format!("{moved}"),
        false => format!("{moved} The files were already there."),
    };
    match &made.after {
        Some(tool) => text.push_str(&format!(
            "\nThis is the state after the last finished call that may have changed files, of `{tool}`."
        )),
        None => text.push_str("\nThis is the state of the last scan of the folder."),
    }
    if !notice.is_empty() {
        text.push_str(&format!(
            "\nThe folder could not be scanned again at {}: {notice}",
            moved.from_place
        ));
    }
    if !made.left.is_empty() {
        text.push_str("\nNot restored:");
        for line in &made.left {
            text.push_str(&format!("\n  {line}"));
        }
    }
    text.push_str(&format!(
        "\nThe folder at {} is unchanged: {}",
        moved.from_place, moved.from_folder
    ));
    text
}
