//! `windlass serve --cluster`: several servers over one database.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, Script};
use windlass_testkit::{
    HttpServer, PATIENCE, Signal, SimServer, SseEvents, Workspace, eventually, processes_with,
};

use super::carrier;
use super::store::server;

/// Lease of a server, and the time after it in which others take over.
const TAKEOVER: Duration = Duration::from_secs(8);

/// Servers over one database and one project folder, each with a home of its own.
pub(super) struct Fleet {
    pub(super) sim: SimServer,
    homes: Vec<Workspace>,
    database: String,
}

impl Fleet {
    fn new(count: usize, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(count, replies, &carrier::settings())
    }

    /// Creates a fleet with further settings.
    pub(super) fn with(count: usize, replies: impl IntoIterator<Item = Reply>, settings: &str) -> Self {
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let sim = SimServer::script(script);
        let database = server().empty();
        let url = server().url(&database);
        let home = || {
            let home = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(url.clone());
            home.use_sim_with(&sim, Protocol::Anthropic, settings);
            home
        };
        let homes = (0..count).map(|_| home()).collect();
        Self { sim, homes, database }
    }

    /// Runs SQL in the database.
    pub(super) fn sql(&self, sql: &str) -> String {
        server().sql(&self.database, sql)
    }

    /// Returns the folder in which all sessions work.
    pub(super) fn project(&self) -> &Workspace {
        &self.homes[0]
    }

    pub(super) fn start(&self, number: usize, more: &[&str]) -> HttpServer {
        let folder = self.project().path();
        let run = self.homes[number].run(&["serve", "--cluster", "--listen", "127.0.0.1:0", "-C"]);
        HttpServer::start(run.arg(folder).args(more).limit(PATIENCE * 4))
    }

    pub(super) fn ran(&self) -> Vec<String> {
        match self.project().has("ran.txt") {
            true => self
                .project()
                .read("ran.txt")
                .lines()
                .map(str::to_owned)
                .collect(),
            false => Vec::new(),
        }
    }

    pub(super) fn status(&self) -> Value {
        self.homes[0]
            .run(&["cluster", "status", "--json"])
            .output()
            .json()
    }
}

pub(super) fn bash(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command }))
}

pub(super) fn entries(server: &HttpServer, session: &str) -> Vec<Value> {
    let page = server.get(&format!("/api/sessions/{session}/entries?limit=1000"));
    page["entries"].as_array().unwrap().clone()
}

/// Waits for an entry, and returns it with the time that passed.
pub(super) fn wait_entry(server: &HttpServer, session: &str, kind: &str) -> (Value, Duration) {
    let begun = Instant::now();
    let mut found = None;
    let came = eventually(PATIENCE, || {
        found = entries(server, session)
            .into_iter()
            .find(|entry| entry["type"] == kind);
        found.is_some()
    });
    assert!(came, "no `{kind}`: {:#?}", entries(server, session));
    (found.unwrap(), begun.elapsed())
}

/// Checks what holds for every record: no gap, one terminal event for each turn, one result for each call.
pub(super) fn check_record(entries: &[Value]) {
    let numbers: Vec<u64> = entries
        .iter()
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let mut results: Vec<&str> = Vec::new();
    let messages = entries
        .iter()
        .filter(|entry| entry["type"] == "message" && entry["message"]["role"] == "tool");
    for message in messages {
        for part in message["message"]["parts"].as_array().unwrap() {
            results.push(part["data"]["call_id"].as_str().unwrap());
        }
    }
    let count = results.len();
    results.sort_unstable();
    results.dedup();
    assert_eq!(results.len(), count, "one result for each call");
}

pub(super) fn count(entries: &[Value], kind: &str) -> usize {
    entries.iter().filter(|entry| entry["type"] == kind).count()
}

/// Waits for a line of `ran.txt`.
pub(super) fn wait_ran(fleet: &Fleet, line: &str) {
    let came = eventually(PATIENCE, || fleet.ran().iter().any(|ran| ran == line));
    assert!(came, "{line} does not run: {:?}", fleet.ran());
}

/// DIST-1, DIST-3, DIST-4: a server that is killed in the middle of a call loses nothing: another one takes the turn over
/// within its lease and continues it, the call is not run again, and a client of the other server sees neither a gap
/// nor a repeat.
#[test]
fn another_server_continues_the_turn_of_a_killed_one() {
    let fleet = Fleet::new(
        2,
        [
            bash("echo 1 >> ran.txt"),
            bash("echo 2 >> ran.txt; sleep 60"),
            bash("echo 3 >> ran.txt"),
            Reply::text("all done").forever(),
        ],
    );
    let (first, second) = (
        fleet.start(0, &["--mode", "auto"]),
        fleet.start(1, &["--mode", "auto"]),
    );
    let session = first.session();
    let watching = second.events(&format!("/api/events?session={session}&after=0"));
    first.say(&session, "go");
    wait_ran(&fleet, "2");
    let status = fleet.status();
    assert_eq!(status["servers"].as_array().unwrap().len(), 2, "{status:#}");
    assert_eq!(status["servers"][0]["working"], 1, "{status:#}");
    let lost = status["servers"][0]["info"]["id"].as_str().unwrap().to_owned();
    first.running.signal(Signal::KILL);
    let (moved, took) = wait_entry(&second, &session, "moved");
    assert!(took < TAKEOVER, "it took {took:?}");
    assert_eq!(moved["from"], json!(lost));
    let ended = watching.wait_for("the end", |event| event.data["type"] == "final");
    assert_eq!(ended.data["content"], "all done");
    let record = entries(&second, &session);
    check_record(&record);
    assert_eq!(
        (
            count(&record, "moved"),
            count(&record, "final"),
            count(&record, "failed")
        ),
        (1, 1, 0)
    );
    assert_eq!(fleet.ran(), ["1", "2", "3"]);
    let seen: Vec<u64> = watching.states().iter().map(|(number, _)| *number).collect();
    assert_eq!(seen, (1..=record.len() as u64).collect::<Vec<_>>());
    let told = record
        .iter()
        .any(|entry| entry.to_string().contains("It may have taken effect or not"));
    assert!(told, "the model is told about the interrupted call");
    fleet.sim.assert_valid();
    first.running.output();
}

/// DIST-3: a server that is stopped gives its sessions back at once: another one continues the turn without waiting for a
/// lease to end.
#[test]
fn a_server_that_stops_hands_its_turns_over() {
    let fleet = Fleet::new(
        2,
        [
            bash("echo 1 >> ran.txt"),
            Reply::text("never").fault(Fault::new().stall_after_events(2)),
            Reply::text("all done").forever(),
        ],
    );
    let (first, second) = (
        fleet.start(0, &["--mode", "auto"]),
        fleet.start(1, &["--mode", "auto"]),
    );
    let session = first.session();
    first.say(&session, "go");
    wait_ran(&fleet, "1");
    assert!(eventually(PATIENCE, || fleet.sim.count() >= 2));
    first.running.terminate();
    let (_, took) = wait_entry(&second, &session, "moved");
    assert!(took < Duration::from_secs(2), "it took {took:?}");
    wait_entry(&second, &session, "final");
    let record = entries(&second, &session);
    check_record(&record);
    assert_eq!((count(&record, "final"), count(&record, "canceled")), (1, 0));
    assert_eq!(fleet.ran(), ["1"]);
    let output = first.running.output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

/// DIST-4: inputs, cancellations and answers reach a session through any server, and repeating a message changes nothing.
#[test]
fn any_server_takes_inputs_answers_and_cancellations() {
    let fleet = Fleet::new(
        2,
        [
            Reply::call("write_file", json!({ "path": "a.txt", "content": "new\n" })),
            Reply::text("written"),
            bash("sleep 60"),
            Reply::text("never").forever(),
        ],
    );
    let (first, second) = (
        fleet.start(0, &["--mode", "ask"]),
        fleet.start(1, &["--mode", "ask"]),
    );
    let session = first.session();
    let messages = format!("/api/sessions/{session}/messages");
    let message = json!({ "id": "0b9d6f0e-8f6c-4d0e-9a53-6c9a6a5f0a11", "text": "go" });
    second.post(&messages, &message);
    second.post(&messages, &message);
    let question = second.question(&session);
    let call = question["call"].as_str().unwrap();
    second.post(
        &format!("/api/sessions/{session}/replies/{call}"),
        &json!({ "answer": "once" }),
    );
    wait_entry(&second, &session, "final");
    assert_eq!(fleet.project().read("a.txt"), "new\n");
    // A later message, and a repeated one.
    second.post(&messages, &message);
    second.say(&session, "and now wait");
    let why = format!("/api/sessions/{session}/why");
    let runs = eventually(PATIENCE, || {
        second.get(&why)["waits"]
            .as_array()
            .unwrap()
            .iter()
            .any(|wait| wait["on"] == "tool")
    });
    assert!(runs, "{:#}", second.get(&why));
    let cancelled = second.post(&format!("/api/sessions/{session}/cancel"), &json!({}));
    assert_eq!(cancelled["was_running"], true);
    wait_entry(&second, &session, "canceled");
    let record = entries(&second, &session);
    check_record(&record);
    let inputs = record
        .iter()
        .filter(|entry| entry["type"] == "message" && entry["message"]["role"] == "user");
    assert_eq!(inputs.count(), 2, "{record:#?}");
    fleet.sim.assert_valid();
}

/// DIST-1, DIST-4: a permission request whose server is killed is asked again by the next owner, under the same id, and an
/// answer that was given meanwhile is used.
#[test]
fn the_next_owner_asks_again() {
    let fleet = Fleet::new(
        2,
        [
            Reply::call("write_file", json!({ "path": "a.txt", "content": "new\n" })),
            Reply::text("written").forever(),
        ],
    );
    let (first, second) = (
        fleet.start(0, &["--mode", "ask"]),
        fleet.start(1, &["--mode", "ask"]),
    );
    let session = first.session();
    first.say(&session, "go");
    let call = first.question(&session)["call"].as_str().unwrap().to_owned();
    first.running.signal(Signal::KILL);
    first.running.output();
    // Before anybody has taken over.
    let reply = format!("/api/sessions/{session}/replies/{call}");
    let answer = second.request("POST", &reply, &json!({ "answer": "once" }).to_string());
    assert_eq!(answer.status, 204, "{}", answer.body);
    wait_entry(&second, &session, "final");
    let record = entries(&second, &session);
    check_record(&record);
    assert_eq!(
        (count(&record, "moved"), count(&record, "permission_request")),
        (1, 2)
    );
    assert_eq!(fleet.project().read("a.txt"), "new\n");
    fleet.sim.assert_valid();
}

/// DIST-3: a server that was stopped for longer than its lease acts as if it had lost everything when it runs again: it
/// writes nothing, and its session goes on at another server. Its warden has ended its commands meanwhile.
#[test]
fn a_server_that_slept_finds_its_session_elsewhere() {
    let mark = format!("{}.6", 80_000 + std::process::id());
    let fleet = Fleet::new(
        2,
        [
            bash(&format!("echo 1 >> ran.txt; sleep {mark}")),
            bash("echo 2 >> ran.txt"),
            Reply::text("all done").forever(),
        ],
    );
    let (first, second) = (
        fleet.start(0, &["--mode", "auto"]),
        fleet.start(1, &["--mode", "auto"]),
    );
    let session = first.session();
    first.say(&session, "go");
    wait_ran(&fleet, "1");
    let commands = || processes_with(&format!("sleep\0{mark}"));
    assert!(!commands().is_empty());
    first.running.signal(Signal::STOP);
    wait_entry(&second, &session, "moved");
    assert!(
        eventually(PATIENCE, || commands().is_empty()),
        "a command of a stopped server runs on"
    );
    wait_entry(&second, &session, "final");
    first.running.signal(Signal::CONT);
    // It is back, and takes part again.
    let back = eventually(PATIENCE, || {
        let status = fleet.status();
        status["servers"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|server| server["is_alive"] == true)
            .count()
            == 2
    });
    assert!(back, "{:#}", fleet.status());
    let record = entries(&second, &session);
    check_record(&record);
    assert_eq!((count(&record, "moved"), count(&record, "final")), (1, 1));
    assert_eq!(fleet.ran(), ["1", "2"]);
    assert!(first.running.stdout().contains("of a cluster"));
    first.say(&session, "again");
    assert!(eventually(PATIENCE, || count(
        &entries(&second, &session),
        "final"
    ) == 2));
    check_record(&entries(&second, &session));
}

/// SRV-3, SRV-6, DIST-4: a credential that is revoked anywhere ends the streams of every server at once, and each server
/// counts its appends.
#[test]
fn a_revoked_credential_ends_streams_everywhere() {
    let fleet = Fleet::new(2, [Reply::text("done").forever()]);
    let (first, second) = (fleet.start(0, &[]), fleet.start(1, &[]));
    let create = ["token", "create", "reader", "--scope", "read"];
    let token = fleet.project().run(&create).output().stdout;
    let token = format!("Bearer {}", token.trim());
    let session = first.session();
    let path = format!("/api/sessions/{session}/events");
    let streams =
        [&first, &second].map(|server| SseEvents::open(&server.addr, &path, &[("Authorization", &token)]));
    let own = second.events(&path);
    first.say(&session, "go");
    wait_entry(&second, &session, "final");
    let revoked = fleet.project().run(&["token", "revoke", "reader"]).output();
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    for stream in &streams {
        let bye = stream.wait_for("the end", |event| event.name == "bye");
        assert_eq!(bye.data["reason"], "revoked");
        stream.wait_for_end();
    }
    first.say(&session, "again");
    own.wait_for("the second turn", |event| {
        event.data["type"] == "message" && event.data.to_string().contains("again")
    });
    let counts = first.request("GET", "/metrics", "").body;
    assert!(
        counts.contains("windlass_store_append_seconds_count "),
        "{counts}"
    );
}

/// DIST-1: a cluster needs a Postgres store; a place and an address of the wrong form are refused by name.
#[test]
fn bad_input_is_explained() {
    let workspace = Workspace::new(env!("CARGO_BIN_EXE_windlass"));
    workspace.config("");
    let said = |args: &[&str]| {
        let output = workspace.run(args).output();
        (output.code, output.stderr)
    };
    let (code, text) = said(&["serve", "--cluster", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--store postgres://"), "{text}");
    let (code, text) = said(&["cluster", "status"]);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = said(&["serve", "--cluster", "--place", "here"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("`host:NAME`, `volume:NAME` or `any`"), "{text}");
    let store = server().url(&server().empty());
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        &store,
        "--cluster",
        "--cluster-address",
    ];
    let (code, text) = said(&[&serve[..], &["nowhere"]].concat());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`nowhere` has no port"), "{text}");
}
