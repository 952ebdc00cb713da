//! DIST-1: `windlass serve --cluster` and `windlass cluster`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, SessionId};
use windlass_cluster::{
    ClusterConfig, ClusterPorts, ClusterWire, DirectWire, Member, MoveOrder, MovePorts, NatsConfig,
    NatsError, NatsWire, Term, bind,
};
use windlass_config::environment::{self, Given};
use windlass_config::settings::{ClusterSettings, Settings};
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::{SystemClock, span};
use windlass_core::log::{ClusterStore, PlaceWait, ServerInfo, ServerRow, SessionInfo, Store};
use windlass_host::factory::LocalFactory;
use windlass_sandbox::{Warden, since_boot};
use windlass_service::Service;

use crate::engine::{not_begun, working_directory};
use crate::exit::Exit;
use crate::serve::folders::LocalFolders;
use crate::session_choice::{SessionChoice, SessionStore, problem};
use crate::terminal::{plain, say, tell};
use windlass_args::{ClusterCommand, ClusterOptions};

/// Scope and name of the store's small value with the secret.
const SECRET: (&str, &str) = ("cluster", "secret");
/// Turns that a server runs at once.
const SLOTS: u32 = 1_000;

/// Returns the name under which a server owns sessions. That of a server of a cluster has no mark of a process: only its
/// lease counts.
pub(crate) fn owner(is_in_cluster: bool) -> String {
    if !is_in_cluster {
        return windlass_store::owner();
    }
    let id = uuid::Uuid::new_v4().simple().to_string();
    let short: String = id.chars().take(8).collect();
    format!("{}-{short}", hostname())
}

fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().replace(['/', ' '], "_")
}

/// Returns the ports of a store for several servers.
fn shared(store: &Arc<dyn Store>) -> Result<Arc<dyn ClusterStore>, Problem> {
    store.cluster().ok_or_else(|| {
        Problem::usage(
            "servers of a cluster share a Postgres store: give its URL with `--store postgres://…`, or set `store`"
                .to_owned(),
        )
    })
}

/// Returns the first deadline of the warden of a server that joins a cluster.
pub(crate) fn first_deadline() -> Duration {
    since_boot() + Term::default().lease
}

/// Joins a cluster, if the options say so: binds the cluster port, and announces the server. Returns the backend for its
/// front ends.
pub(crate) async fn join(
    options: &ClusterOptions,
    settings: &Settings,
    store: &Arc<dyn Store>,
    (service, factory, id, warden): (&Arc<Service>, &Arc<LocalFactory>, &str, Option<&Arc<Warden>>),
) -> Result<(Option<Joined>, Arc<dyn Backend>), Problem> {
    if !options.cluster {
        service.mark_orphans();
        return Ok((None, Arc::clone(service) as _));
    }
    let cluster = shared(store)?;
    let set = &settings.agent.session.server.cluster;
    let mut places = match options.place.is_empty() {
        true => set.places.clone(),
        false => options.place.clone(),
    };
    if places.is_empty() {
        places.push(format!("host:{}", hostname()));
    }
    let secret = secret(set, store).await?;
    let (wire, address) = match &set.carrier {
        Some(servers) => over_nats(servers, set, (&secret, id)).await?,
        None => direct(options.cluster_address.as_ref().or(set.address.as_ref()), &secret).await?,
    };
    let server = ServerInfo {
        id: id.to_owned(),
        address,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        places,
        slots: SLOTS,
    };
    let warden = warden.cloned();
    let text = format!(
        "server {} of a cluster, reached by the others at {}, with {}",
        server.id,
        server.address,
        server.places.join(", ")
    );
    let changed = Arc::new(Notify::new());
    let config = ClusterConfig {
        server,
        term: Term::default(),
    };
    let data = environment::folders()?.checkpoints();
    windlass_checkpoint::sweep(&data);
    let folders = LocalFolders {
        factory: Arc::clone(factory),
        store: Arc::clone(&cluster),
        data,
    };
    let ports = ClusterPorts {
        store: Arc::clone(store),
        folders: Arc::new(folders),
        cluster,
        local: Arc::clone(service) as _,
        sessions: Arc::clone(service) as _,
        wire,
        clock: Arc::new(SystemClock::default()),
        warn: warner(),
        changed: Arc::clone(&changed),
        warden: Arc::new(move |deadline| {
            if let Some(Err(error)) = warden.as_ref().map(|warden| warden.set_deadline(deadline)) {
                tell!("warning: the warden of this server cannot be started again: {error}");
            }
        }),
    };
    let member = Arc::new(Member::new(config, ports));
    member.join().await.map_err(problem)?;
    service.set_guard(member.guard());
    say!("{}", plain(&text));
    let backend = member.backend();
    let stop = CancellationToken::new();
    let joined = Joined {
        member,
        changed,
        stop,
    };
    Ok((Some(joined), backend))
}

/// Returns what shows a warning to whoever runs the server.
fn warner() -> Arc<dyn Fn(&str) + Send + Sync> {
    Arc::new(|text| tell!("warning: {}", plain(text)))
}

/// Binds the cluster port. Returns it with the address for the other servers.
async fn direct(wanted: Option<&String>, secret: &str) -> Result<(Arc<dyn ClusterWire>, String), Problem> {
    let failed = |why: String| Problem::new(ProblemKind::Failed, why);
    let wanted = wanted.map_or("127.0.0.1:0", String::as_str);
    let (listener, address) = bind(wanted).await.map_err(failed)?;
    let wire = DirectWire::new(secret, listener).map_err(|error| failed(error.to_string()))?;
    Ok((Arc::new(wire), address))
}

/// Connects to NATS. Returns the carrier with the address for the other servers.
async fn over_nats(
    servers: &str,
    set: &ClusterSettings,
    identity: (&str, &str),
) -> Result<(Arc<dyn ClusterWire>, String), Problem> {
    let config = NatsConfig {
        servers: servers.to_owned(),
        credentials: match &set.carrier_credentials_file {
            None => None,
            Some(file) => Some(credentials(file)?),
        },
    };
    let wire = NatsWire::connect(&config, identity, warner())
        .await
        .map_err(|error| {
            let kind = match error {
                NatsError::Address { .. } | NatsError::Refused { .. } => ProblemKind::Config,
                NatsError::Tls { .. } | NatsError::Random => ProblemKind::Failed,
            };
            Problem::new(kind, error.to_string())
        })?;
    let address = wire.address();
    Ok((Arc::new(wire), address))
}

/// Reads the credentials for NATS.
fn credentials(file: &Path) -> Result<String, Problem> {
    let failed = |why: &str| {
        let file = file.display();
        Problem::new(
            ProblemKind::Config,
            format!("server.cluster_carrier_credentials_file: {file}: {why}"),
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error.to_string()))?;
    match text.trim() {
        "" => Err(failed(
            "the file is empty; write USER:PASSWORD or a token into it",
        )),
        text if text.contains('\n') => Err(failed(
            "it has more than one line; write USER:PASSWORD or a token into it. Files of NKEYs and JWTs cannot be used",
        )),
        text => Ok(text.to_owned()),
    }
}

/// A server of a cluster.
pub(crate) struct Joined {
    pub(crate) member: Arc<Member>,
    /// Told when small values of the store may have changed.
    pub(crate) changed: Arc<Notify>,
    stop: CancellationToken,
}

impl Joined {
    /// Starts the work of the server.
    pub(crate) fn start(&self) {
        let (member, stop) = (Arc::clone(&self.member), self.stop.clone());
        tokio::spawn(async move {
            if let Err(error) = member.run(&stop).await {
                tell!("warning: {}", plain(&error.to_string()));
            }
        });
    }

    /// Gives all sessions back.
    pub(crate) async fn leave(&self) {
        self.member.leave().await;
        self.stop.cancel();
    }
}

/// Returns the secret of the cluster: from the environment, a file, or the store, which proves as much as a secret does.
async fn secret(settings: &ClusterSettings, store: &Arc<dyn Store>) -> Result<String, Problem> {
    if let Some(secret) = environment::var("WINDLASS_CLUSTER_SECRET") {
        return Ok(secret);
    }
    if let Some(file) = &settings.secret_file {
        let failed = |why: String| {
            let file = file.display();
            Problem::new(
                ProblemKind::Config,
                format!("server.cluster_secret_file: {file}: {why}"),
            )
        };
        let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        let text = text.trim();
        return match text.len() {
            0..16 => Err(failed("the secret needs at least 16 characters".to_owned())),
            _ => Ok(text.to_owned()),
        };
    }
    let (scope, name) = SECRET;
    if let Some(secret) = store.preference(scope, name).await.map_err(problem)? {
        return Ok(secret);
    }
    let half = || uuid::Uuid::new_v4().simple().to_string();
    // Servers that start at the same time agree on one.
    let settled = store.settle_preference(scope, name, &(half() + &half())).await;
    settled.map_err(problem)
}

/// DIST-5: moves a session to another place.
pub(crate) async fn move_session(
    store: &Arc<dyn Store>,
    info: &SessionInfo,
    place: &str,
    folder: Option<&str>,
) -> Result<Exit, Problem> {
    let cluster = store.cluster().ok_or_else(|| {
        Problem::usage(
            "only sessions in a Postgres store can move: give its URL with `--store postgres://…`, or set `store`"
                .to_owned(),
        )
    })?;
    let settings = environment::settings(&Given::default(), &working_directory(None)?)?;
    let secret = secret(&settings.agent.session.server.cluster, store).await?;
    let wire = DirectWire::asking(&secret, None).map_err(not_begun)?;
    let ports = MovePorts {
        store: &**store,
        cluster: &*cluster,
        wire: &wire,
        clock: &SystemClock::default(),
    };
    let order = MoveOrder::new(&info.id, place, folder);
    let report = windlass_cluster::move_session(ports, &order).await;
    say!("{}", plain(&report.map_err(not_begun)?));
    Ok(Exit::Ok)
}

/// Runs `windlass cluster`.
pub(crate) async fn command(command: &ClusterCommand) -> Result<Exit, Problem> {
    let ClusterCommand::Status { json } = command;
    let keeper = SessionStore::begin(&SessionChoice::New)?;
    keeper.ready().await?;
    let cluster = shared(&keeper.store)?;
    let servers = cluster.servers().await.map_err(problem)?;
    let waiting = cluster.unfinished(None).await.map_err(problem)?;
    let mut waits: Vec<WaitingSession> = Vec::new();
    for session in &waiting {
        let found = cluster.whereabouts(session).await.map_err(problem)?;
        let found = found.unwrap_or_default();
        waits.push(WaitingSession {
            session: session.clone(),
            place: found.home,
            gone: found.waits,
        });
    }
    if *json {
        say!(
            "{:#}",
            json!({ "servers": servers, "waiting": waiting, "waits": waits })
        );
        return Ok(Exit::Ok);
    }
    if servers.is_empty() {
        say!("no server has joined; start one with `windlass serve --cluster`");
    }
    for server in &servers {
        say!("{}", plain(&line(server)));
    }
    if !waiting.is_empty() {
        say!(
            "{} sessions with unfinished work wait for a server:",
            waiting.len()
        );
        for wait in &waits {
            let gone = wait.gone.as_ref().map(PlaceWait::to_string);
            let text = gone.or(wait.place.clone()).unwrap_or_default();
            say!("  {}  {}", wait.session, plain(&text));
        }
    }
    Ok(Exit::Ok)
}

/// A session that waits for a server.
#[derive(Serialize)]
struct WaitingSession {
    session: SessionId,
    place: Option<String>,
    /// Set if no server has the place now.
    gone: Option<PlaceWait>,
}

fn line(server: &ServerRow) -> String {
    let time = span(Duration::from_millis(server.lease_ms));
    let lease = match server.is_alive {
        true => format!("lease ends in {time}"),
        false => format!("lost {time} ago"),
    };
    format!(
        "{}  {}  {}  version {}  {}  {} sessions, {} working",
        server.info.id,
        server.info.address,
        lease,
        server.info.version,
        server.info.places.join(", "),
        server.sessions,
        server.working
    )
}
