//! DIST-1: `windlass serve --cluster` and `windlass cluster`.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_api::Backend;
use windlass_cluster::{ClusterConfig, ClusterPorts, DirectWire, Member, Term, bind};
use windlass_config::environment;
use windlass_config::settings::{ClusterSettings, Settings};
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::{SystemClock, span};
use windlass_core::log::{ClusterStore, ServerInfo, ServerRow, Store};
use windlass_service::Service;

use crate::exit::Exit;
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

/// Joins a cluster, if the options say so: binds the cluster port, and announces the server. Returns the backend for its
/// front ends.
pub(crate) async fn join(
    options: &ClusterOptions,
    settings: &Settings,
    store: &Arc<dyn Store>,
    (service, id): (&Arc<Service>, &str),
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
    let failed = |why: String| Problem::new(ProblemKind::Failed, why);
    let wanted = options.cluster_address.as_ref().or(set.address.as_ref());
    let wanted = wanted.map_or("127.0.0.1:0", String::as_str);
    let (listener, address) = bind(wanted).await.map_err(failed)?;
    let secret = secret(set, store).await?;
    let wire = DirectWire::new(&secret, listener).map_err(|error| failed(error.to_string()))?;
    let server = ServerInfo {
        id: id.to_owned(),
        address,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        places,
        slots: SLOTS,
    };
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
    let ports = ClusterPorts {
        store: Arc::clone(store),
        cluster,
        local: Arc::clone(service) as _,
        sessions: Arc::clone(service) as _,
        wire: Arc::new(wire),
        clock: Arc::new(SystemClock::default()),
        warn: Arc::new(|text| tell!("warning: {}", plain(text))),
        changed: Arc::clone(&changed),
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

/// Runs `windlass cluster`.
pub(crate) async fn command(command: &ClusterCommand) -> Result<Exit, Problem> {
    let ClusterCommand::Status { json } = command;
    let keeper = SessionStore::begin(&SessionChoice::New)?;
    keeper.ready().await?;
    let cluster = shared(&keeper.store)?;
    let servers = cluster.servers().await.map_err(problem)?;
    let waiting = cluster.unfinished(None).await.map_err(problem)?;
    if *json {
        say!("{:#}", json!({ "servers": servers, "waiting": waiting }));
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
        for session in &waiting {
            let found = cluster.whereabouts(session).await.map_err(problem)?;
            let home = found.and_then(|found| found.home).unwrap_or_default();
            say!("  {session}  {}", plain(&home));
        }
    }
    Ok(Exit::Ok)
}

fn line(server: &ServerRow) -> String {
    let time = span(std::time::Duration::from_millis(server.lease_ms));
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
