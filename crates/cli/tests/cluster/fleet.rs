//! Servers over one database, which can be stopped and started again while clients use them.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply, Script, When};
use windlass_testkit::{
    Flush, HttpAnswer, HttpServer, Output, PATIENCE, PostgresServer, Process, Run, SimServer, SseEvents,
    Workspace, descendants, try_http,
};

use super::disk::Disk;
use super::network::{End, Network};

/// Calls of a turn.
pub(super) const STEPS: usize = 4;

/// Environment of the server with this number.
pub(super) type Environment = fn(usize) -> Vec<(&'static str, String)>;

/// Servers to be started.
pub(super) struct Plan {
    pub(super) servers: usize,
    pub(super) script: Script,
    pub(super) mode: &'static str,
    pub(super) environment: Environment,
    /// A namespace for each server.
    pub(super) network: Option<Network>,
    /// Disk for the files of the database.
    pub(super) disk: Option<Disk>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            servers: 3,
            script: model(),
            mode: "auto",
            environment: |_| Vec::new(),
            network: None,
            disk: None,
        }
    }
}

/// The servers.
pub(super) struct Fleet {
    pub(super) postgres: Mutex<PostgresServer>,
    pub(super) database: String,
    pub(super) homes: Vec<Workspace>,
    servers: Vec<Mutex<Option<HttpServer>>>,
    /// Addresses and cookies, by server; empty while it is down.
    access: Mutex<Vec<Option<(String, String)>>>,
    pub(super) sim: SimServer,
    mode: &'static str,
    environment: Environment,
    pub(super) network: Option<Network>,
    pub(super) disk: Option<Disk>,
}

/// A model that makes some calls for each message and then answers. It goes on after an interrupted call.
fn model() -> Script {
    let step = |number: usize| {
        let command = format!("echo \"{{{{user}}}} {number}\" >> effects.txt; sleep 0.2; echo done-{number}");
        Reply::call("bash", json!({ "command": command })).forever()
    };
    let after = |number: usize| When::new().last_result_contains(&format!("done-{number}"));
    let mut script = Script::new().reply(Reply::text("finished {{user}}").when(after(STEPS)).forever());
    for number in 1..STEPS {
        script = script.reply(step(number + 1).when(after(number)));
    }
    let interrupted = When::new().last_result_contains("look before you do it again");
    let not_run = When::new().last_result_contains("Not run:");
    script
        .reply(step(STEPS).when(interrupted))
        .reply(step(STEPS).when(not_run))
        .reply(step(1).when(When::new().user_contains("work")))
        .reply(Reply::text("a title").forever())
}

impl Fleet {
    pub(super) fn start(plan: Plan) -> Self {
        let fleet = Self::prepare(plan);
        (0..fleet.count()).for_each(|number| fleet.resume(number));
        fleet
    }

    /// Prepares servers, and starts none.
    pub(super) fn prepare(plan: Plan) -> Self {
        let postgres = match &plan.network {
            Some(network) => PostgresServer::start_at(&network.address(End::Store)),
            None => PostgresServer::start(Flush::On),
        };
        let database = postgres.empty();
        if let Some(disk) = &plan.disk {
            let folder = disk.folder();
            std::os::unix::fs::chown(&folder, postgres.user(), postgres.user()).unwrap();
            let made = format!("CREATE TABLESPACE small LOCATION '{}'", folder.display());
            postgres.sql("postgres", &made);
            postgres.sql(
                "postgres",
                &format!("ALTER DATABASE {database} SET TABLESPACE small"),
            );
        }
        let (sim, url, count) = (
            SimServer::script(plan.script),
            postgres.url(&database),
            plan.servers,
        );
        if let Some(network) = &plan.network {
            let port = sim.url().rsplit(':').next().and_then(|port| port.parse().ok());
            network.offer(port.unwrap());
        }
        let home = || {
            let home = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(url.clone());
            home.use_sim(&sim, Protocol::Anthropic);
            home
        };
        Self {
            homes: (0..count).map(|_| home()).collect(),
            postgres: Mutex::new(postgres),
            database,
            servers: (0..count).map(|_| Mutex::new(None)).collect(),
            access: Mutex::new(vec![None; count]),
            sim,
            mode: plan.mode,
            environment: plan.environment,
            network: plan.network,
            disk: plan.disk,
        }
    }

    /// Prepares the start of a server.
    pub(super) fn run(&self, number: usize) -> Run {
        let serve = [
            "serve",
            "--cluster",
            "--mode",
            self.mode,
            "--listen",
            "127.0.0.1:0",
            "-C",
        ];
        let mut run = self.homes[number].run(&serve).arg(self.project().path());
        if let Some(network) = &self.network {
            let address = network.address(End::Server(number));
            run = run.args(&["--cluster-address", &format!("{address}:0")]);
        }
        for (name, value) in (self.environment)(number) {
            run = run.env(name, &value);
        }
        run.limit(PATIENCE * 30)
    }

    /// Starts a server that is down.
    pub(super) fn resume(&self, number: usize) {
        let run = self.run(number);
        let server = self.within(number, || HttpServer::start(run));
        self.give(number, server);
    }

    /// Runs work where the server is.
    fn within<T: Send>(&self, number: usize, work: impl FnOnce() -> T + Send) -> T {
        match &self.network {
            Some(network) => network.within(number, work),
            None => work(),
        }
    }

    /// Takes a server away from clients; its process is the caller's business.
    pub(super) fn take(&self, number: usize) -> Option<HttpServer> {
        lock(&self.access)[number] = None;
        lock(&self.servers[number]).take()
    }

    /// Gives a server back to clients.
    pub(super) fn give(&self, number: usize, server: HttpServer) {
        lock(&self.access)[number] = Some((server.addr.clone(), server.cookie.clone()));
        *lock(&self.servers[number]) = Some(server);
    }

    fn access(&self, number: usize) -> Option<(String, String)> {
        lock(&self.access)[number].clone()
    }

    /// Returns true if clients may use a server.
    pub(super) fn is_up(&self, number: usize) -> bool {
        self.access(number).is_some()
    }

    /// Returns the processes below a server.
    pub(super) fn processes(&self, number: usize) -> Vec<Process> {
        let server = lock(&self.servers[number]);
        server
            .as_ref()
            .map_or_else(Vec::new, |server| descendants(server.running.pid()))
    }

    /// Sends a request to a server. `None` if it is down or does not answer.
    pub(super) fn request(&self, number: usize, method: &str, path: &str, body: &str) -> Option<HttpAnswer> {
        let (addr, cookie) = self.access(number)?;
        let headers = [
            ("Cookie", cookie.as_str()),
            ("X-Windlass", "1"),
            ("Content-Type", "application/json"),
        ];
        let sent = self.within(number, || try_http(&addr, method, path, &headers, body));
        sent.ok()
    }

    /// Follows events of a server. `None` if it is down or refuses.
    pub(super) fn events(&self, number: usize, path: &str) -> Option<SseEvents> {
        let (addr, cookie) = self.access(number)?;
        let opened = self.within(number, || {
            SseEvents::try_open(&addr, path, &[("Cookie", &cookie)])
        });
        opened.ok()
    }

    pub(super) fn count(&self) -> usize {
        self.servers.len()
    }

    /// Returns the folder in which all sessions work.
    pub(super) fn project(&self) -> &Workspace {
        &self.homes[0]
    }

    /// Runs SQL, and returns what it prints.
    pub(super) fn sql(&self, sql: &str) -> String {
        lock(&self.postgres).sql(&self.database, sql)
    }

    /// Returns the entries of a session, from the database itself.
    pub(super) fn entries(&self, session: &str) -> Vec<Value> {
        let sql = format!(
            "SELECT coalesce(json_agg(json_build_object('seq', seq, 'fence', fence, 'event', payload::json) ORDER BY seq), '[]') \
             FROM windlass.entry WHERE session = '{session}'"
        );
        serde_json::from_str(&self.sql(&sql)).unwrap()
    }

    /// Returns the number of the server that owns a session.
    pub(super) fn owner(&self, session: &str) -> Option<usize> {
        let address = self.sql(&format!(
            "SELECT server.address FROM windlass.session JOIN windlass.server ON server.id = session.owner \
             WHERE session.id = '{session}' AND server.until > extract(epoch FROM clock_timestamp()) * 1000"
        ));
        (0..self.count()).find(|number| {
            let server = lock(&self.servers[*number]);
            let is_it = |server: &HttpServer| server.running.stdout().contains(&format!("at {address},"));
            !address.is_empty() && server.as_ref().is_some_and(is_it)
        })
    }

    /// Returns what calls wrote: the message, and the step.
    pub(super) fn effects(&self) -> String {
        let project = self.project();
        match project.has("effects.txt") {
            true => project.read("effects.txt"),
            false => String::new(),
        }
    }

    /// Stops all servers, each of which has to say that it ends well.
    pub(super) fn stop(&self) -> Vec<Output> {
        let servers: Vec<HttpServer> = (0..self.count()).filter_map(|number| self.take(number)).collect();
        servers.iter().for_each(|server| server.running.terminate());
        let outputs: Vec<Output> = servers
            .into_iter()
            .map(|server| server.running.output())
            .collect();
        for output in &outputs {
            output.assert_code(0);
        }
        outputs
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
