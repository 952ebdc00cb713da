//! Servers over one database, which can be stopped and started again while clients use them.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply, Script, When};
use windlass_testkit::{Flush, HttpAnswer, HttpServer, PATIENCE, PostgresServer, SimServer, Workspace, http};

/// Calls of a turn.
pub(super) const STEPS: usize = 4;

/// The servers.
pub(super) struct Fleet {
    pub(super) postgres: Mutex<PostgresServer>,
    pub(super) database: String,
    pub(super) homes: Vec<Workspace>,
    pub(super) servers: Vec<Mutex<Option<HttpServer>>>,
    /// Addresses and tokens, by server; empty while it is down.
    access: Mutex<Vec<Option<(String, String)>>>,
    _sim: SimServer,
}

/// A model that makes some calls for each message and then answers. It goes on after an interrupted call.
fn model() -> SimServer {
    let step = |number: usize| {
        let command = format!(
            "echo \"$WINDLASS_CALL {{{{user}}}} {number}\" >> effects.txt; sleep 0.2; echo done-{number}"
        );
        Reply::call("bash", json!({ "command": command })).forever()
    };
    let after = |number: usize| When::new().last_result_contains(&format!("done-{number}"));
    let mut script = Script::new().reply(Reply::text("finished {{user}}").when(after(STEPS)).forever());
    for number in 1..STEPS {
        script = script.reply(step(number + 1).when(after(number)));
    }
    let interrupted = When::new().last_result_contains("look before you do it again");
    let not_run = When::new().last_result_contains("Not run:");
    script = script
        .reply(step(STEPS).when(interrupted))
        .reply(step(STEPS).when(not_run))
        .reply(step(1).when(When::new().user_contains("work")))
        .reply(Reply::text("a title").forever());
    SimServer::script(script)
}

impl Fleet {
    pub(super) fn start(count: usize) -> Self {
        let postgres = PostgresServer::start(Flush::On);
        let database = postgres.empty();
        let (sim, url) = (model(), postgres.url(&database));
        let home = || {
            let home = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(url.clone());
            home.use_sim(&sim, Protocol::Anthropic);
            home
        };
        let fleet = Self {
            homes: (0..count).map(|_| home()).collect(),
            postgres: Mutex::new(postgres),
            database,
            servers: (0..count).map(|_| Mutex::new(None)).collect(),
            access: Mutex::new(vec![None; count]),
            _sim: sim,
        };
        (0..count).for_each(|number| fleet.resume(number));
        fleet
    }

    /// Starts a server that is down.
    pub(super) fn resume(&self, number: usize) {
        let run = self.homes[number].run(&[
            "serve",
            "--cluster",
            "--mode",
            "auto",
            "--listen",
            "127.0.0.1:0",
            "-C",
        ]);
        let server = HttpServer::start(run.arg(self.homes[0].path()).limit(PATIENCE * 30));
        self.give(number, server);
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

    /// Sends a request to a server. `None` if it is down or does not answer.
    pub(super) fn request(&self, number: usize, method: &str, path: &str, body: &str) -> Option<HttpAnswer> {
        let (addr, cookie) = lock(&self.access)[number].clone()?;
        let headers = [
            ("Cookie", cookie.as_str()),
            ("X-Windlass", "1"),
            ("Content-Type", "application/json"),
        ];
        let sent = std::panic::catch_unwind(|| http(&addr, method, path, &headers, body));
        sent.ok()
    }

    pub(super) fn count(&self) -> usize {
        self.servers.len()
    }

    /// Returns the entries of a session, from the database itself.
    pub(super) fn entries(&self, session: &str) -> Vec<Value> {
        let sql = format!(
            "SELECT coalesce(json_agg(json_build_object('seq', seq, 'fence', fence, 'event', payload::json) ORDER BY seq), '[]') \
             FROM windlass.entry WHERE session = '{session}'"
        );
        let text = lock(&self.postgres).sql(&self.database, &sql);
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the lines that calls wrote: the mark of the call, the message, and the step.
    pub(super) fn effects(&self) -> Vec<String> {
        let project = &self.homes[0];
        match project.has("effects.txt") {
            true => project.read("effects.txt").lines().map(str::to_owned).collect(),
            false => Vec::new(),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
