//! Sessions whose host is gone, and sessions that move to another place: real servers over a real Postgres.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::{HttpServer, PATIENCE, Signal, SimServer, Workspace, eventually};

use super::store::server;

/// Two hosts: each with a home and a project folder of its own, over one database.
struct Hosts {
    sim: SimServer,
    database: String,
    alpha: Workspace,
    beta: Workspace,
}

impl Hosts {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let sim = SimServer::script(script);
        let database = server().empty();
        let home = || {
            let home = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(server().url(&database));
            home.use_sim(&sim, Protocol::Anthropic);
            home
        };
        let (alpha, beta) = (home(), home());
        Self {
            sim,
            database,
            alpha,
            beta,
        }
    }

    fn start(&self, host: &Workspace, place: &str) -> HttpServer {
        let run = host.run(&["serve", "--cluster", "--listen", "127.0.0.1:0", "--mode", "auto"]);
        HttpServer::start(run.args(&["--place", place]).limit(PATIENCE * 4))
    }

    fn both(&self) -> (HttpServer, HttpServer) {
        (
            self.start(&self.alpha, "host:alpha"),
            self.start(&self.beta, "host:beta"),
        )
    }

    /// Waits until the store describes the folder after a call of this tool, with a content.
    fn wait_stored(&self, tool: &str, content: &str) {
        let sql = format!(
            "SELECT (SELECT count(*) FROM windlass.folder WHERE document LIKE '%\"after\":\"{tool}\"%') > 0 AND {}",
            stored(content)
        );
        let came = eventually(PATIENCE, || server().sql(&self.database, &sql).trim() == "t");
        assert!(came, "`{content}` is not in the store");
    }

    fn stores(&self, content: &str) -> bool {
        let sql = format!("SELECT {}", stored(content));
        server().sql(&self.database, &sql).trim() == "t"
    }

    /// Returns a path on beta that is free.
    fn free(&self) -> PathBuf {
        self.beta.path().parent().unwrap().join("moved/project")
    }
}

/// Returns the SQL that tells whether a content with this text is stored.
fn stored(content: &str) -> String {
    format!("EXISTS (SELECT 1 FROM windlass.blob WHERE position('{content}'::bytea IN content) > 0)")
}

fn bash(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command }))
}

fn write(path: &str, content: &str) -> Reply {
    Reply::call("write_file", json!({ "path": path, "content": content }))
}

fn command(server: &HttpServer, session: &str, line: &str) -> (u16, Value) {
    let body = json!({ "line": line }).to_string();
    let answer = server.request("POST", &format!("/api/sessions/{session}/commands"), &body);
    (answer.status, answer.json())
}

/// Runs a command that must succeed, and returns its text.
#[track_caller]
fn said(server: &HttpServer, session: &str, line: &str) -> String {
    let (status, answer) = command(server, session, line);
    assert_eq!(status, 200, "{line}: {answer:#}");
    answer["text"].as_str().unwrap().to_owned()
}

/// Runs a command that must fail, and returns the reason.
#[track_caller]
fn refused(server: &HttpServer, session: &str, line: &str) -> String {
    let (status, answer) = command(server, session, line);
    assert!((400..500).contains(&status), "{line}: {status} {answer:#}");
    answer.to_string()
}

fn kill(server: HttpServer) {
    server.running.signal(Signal::KILL);
    server.running.output();
}

/// Waits until the session is said to wait for its place.
#[track_caller]
fn wait_gone(server: &HttpServer, session: &str) -> Value {
    let mut why = Value::Null;
    let gone = eventually(PATIENCE, || {
        why = server.get(&format!("/api/sessions/{session}/why"));
        why["waits"][0]["on"] == "place"
    });
    assert!(gone, "{why:#}");
    why
}

fn entries(server: &HttpServer, session: &str, kind: &str) -> Vec<Value> {
    let page = server.get(&format!("/api/sessions/{session}/entries?limit=1000"));
    let all = page["entries"].as_array().unwrap();
    all.iter()
        .filter(|entry| entry["type"] == kind)
        .cloned()
        .collect()
}

fn wait_entries(server: &HttpServer, session: &str, kind: &str, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    let came = eventually(PATIENCE, || {
        found = entries(server, session, kind);
        found.len() >= count
    });
    assert!(came, "{} of {count} `{kind}`", found.len());
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// DIST-5: the host of a session dies with its disk. That it is gone, and since when, is said by `/why`, the list, the overview
/// and `cluster status`, and the session takes messages. Moved to another host, it has the files as of its last
/// call, the waiting message is answered there, and the record tells of the move. Denied files were never stored.
#[test]
fn a_session_of_a_dead_host_moves_with_its_files() {
    let hosts = Hosts::new([
        bash("mkdir -p out/empty; echo made > out/made.txt; ln -s out/made.txt link; chmod 700 out/made.txt"),
        write("a.txt", "by a tool\n"),
        Reply::text("done"),
        bash("cat a.txt out/made.txt > seen.txt; pwd >> seen.txt"),
        Reply::text("all done").forever(),
    ]);
    hosts.alpha.write(".env", "TOKEN=TOPSECRET\n");
    hosts.alpha.write("kept.txt", "there before\n");
    hosts.alpha.write("nested/.env.local", "TOKEN=TOPSECRET\n");
    let (alpha, beta) = hosts.both();
    let session = alpha.session();
    alpha.say(&session, "go");
    wait_entries(&alpha, &session, "final", 1);
    hosts.wait_stored("write_file", "by a tool");
    kill(alpha);
    let why = wait_gone(&beta, &session);
    let what = why["waits"][0]["what"].as_str().unwrap();
    assert!(
        what.starts_with("alpha, gone since ") && what.contains(" UTC on 20"),
        "{what}"
    );
    assert!(said(&beta, &session, "/why").contains("alpha, gone since "));
    let row = beta.get(&format!("/api/sessions/{session}"));
    assert_eq!(row["waits"]["place"], "host:alpha", "{row:#}");
    assert!(
        row["waits"]["since"].as_u64().unwrap() > 1_700_000_000_000,
        "{row:#}"
    );
    beta.say(&session, "go on");
    for args in [
        &["sessions", "list", "--all"][..],
        &["cluster", "status"],
        &["sessions", "show", &session],
    ] {
        let output = hosts.beta.run(args).output();
        let line = "waits for alpha, gone since ";
        assert!(output.stdout.contains(line), "{args:?}: {}", output.stdout);
    }
    let status = hosts.beta.run(&["cluster", "status", "--json"]).output().json();
    assert_eq!(status["waits"][0]["gone"]["place"], "host:alpha", "{status:#}");
    let target = hosts.free();
    let report = said(
        &beta,
        &session,
        &format!("/session move host:beta {}", target.display()),
    );
    for part in [
        "from host:alpha to host:beta",
        "has 3 files as of ",
        "of `write_file`",
        ".env: tools may not access it, so it is never stored",
        "nested/.env.local: tools may not access it",
        "The folder at host:alpha is unchanged",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let ended = wait_entries(&beta, &session, "final", 2);
    assert_eq!(ended[1]["content"], "all done");
    let seen = read(&target.join("seen.txt"));
    let real = fs::canonicalize(&target).unwrap();
    assert_eq!(seen, format!("by a tool\nmade\n{}\n", real.display()));
    assert_eq!(read(&target.join("kept.txt")), "there before\n");
    assert_eq!(
        fs::read_link(target.join("link")).unwrap(),
        Path::new("out/made.txt")
    );
    assert!(target.join("out/empty").is_dir());
    assert!(!target.join(".env").exists() && !target.join("nested/.env.local").exists());
    let moved = entries(&beta, &session, "moved");
    assert_eq!(moved[0]["folder"]["place"], "host:beta", "{moved:#?}");
    assert_eq!(moved[0]["folder"]["folder"], json!(real), "{moved:#?}");
    let row = beta.get(&format!("/api/sessions/{session}"));
    assert!(row["waits"].is_null(), "{row:#}");
    assert!(hosts.stores("there before") && !hosts.stores("TOPSECRET"));
    // The model is told the new folder.
    let outlines = hosts.sim.requests();
    assert!(
        outlines
            .last()
            .unwrap()
            .body
            .to_string()
            .contains(&real.display().to_string())
    );
    hosts.sim.assert_valid();
}

/// DIST-5: a session moves to the same path on the other host by the command line, and the turns before the move are
/// undone and done again there.
#[test]
fn turns_before_a_move_are_undone_after_it() {
    let hosts = Hosts::new([
        write("a.txt", "two\n"),
        Reply::text("done"),
        bash("echo three > a.txt; mv b.txt c.txt"),
        Reply::text("done").forever(),
    ]);
    hosts.alpha.write("a.txt", "one\n");
    hosts.alpha.write("b.txt", "kept\n");
    let (alpha, beta) = hosts.both();
    let session = alpha.session();
    for (turn, text) in [(1, "write"), (2, "change")] {
        alpha.say(&session, text);
        wait_entries(&alpha, &session, "final", turn);
    }
    hosts.wait_stored("bash", "three");
    kill(alpha);
    wait_gone(&beta, &session);
    // The disk of the host is gone as well.
    fs::remove_dir_all(hosts.alpha.path()).unwrap();
    let output = hosts
        .beta
        .run(&["sessions", "move", &session, "host:beta"])
        .output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("to host:beta"), "{}", output.stdout);
    let file = |name: &str| hosts.alpha.path().join(name);
    assert_eq!(read(&file("a.txt")), "three\n");
    assert!(!file("b.txt").exists() && file("c.txt").exists());
    said(&beta, &session, "/undo");
    assert_eq!(
        (read(&file("a.txt")), read(&file("b.txt"))),
        ("two\n".to_owned(), "kept\n".to_owned())
    );
    said(&beta, &session, "/undo");
    assert_eq!(read(&file("a.txt")), "one\n");
    said(&beta, &session, "/redo");
    assert_eq!(read(&file("a.txt")), "two\n");
}

/// DIST-5: while its host lives, a session moves with what was changed by hand since its last turn; its host lets it go,
/// and passes on messages to the new one. A long output of a tool can still be read there.
#[test]
fn a_session_of_a_living_host_moves_as_it_is() {
    let hosts = Hosts::new([
        write("a.txt", "one\n"),
        bash("seq 1 400000"),
        Reply::text("done"),
        Reply::call(
            "tool_output",
            json!({ "id": "{{last_quoted}}", "offset": 399_999 }),
        )
        .and_call("bash", json!({ "command": "cat a.txt by-hand.txt > seen.txt" })),
        Reply::text("all done").forever(),
    ]);
    let (alpha, beta) = hosts.both();
    let session = alpha.session();
    alpha.say(&session, "go");
    wait_entries(&alpha, &session, "final", 1);
    hosts.alpha.write("by-hand.txt", "by hand\n");
    let target = hosts.free();
    let report = said(
        &alpha,
        &session,
        &format!("/session move host:beta {}", target.display()),
    );
    assert!(report.contains("has 2 files as of "), "{report}");
    assert_eq!(hosts.alpha.read("a.txt"), "one\n");
    alpha.say(&session, "read it again");
    wait_entries(&beta, &session, "final", 2);
    let results = json!(entries(&beta, &session, "message")).to_string();
    assert!(
        results.contains("400000\\t400000\\n[lines 399999-400000 of 400000"),
        "{results}"
    );
    assert_eq!(read(&target.join("seen.txt")), "one\nby hand\n");
    assert!(!hosts.alpha.has("seen.txt"));
    // And back, to another folder.
    let back = hosts.free().with_file_name("back");
    said(
        &beta,
        &session,
        &format!("/session move host:alpha {}", back.display()),
    );
    assert_eq!(read(&back.join("seen.txt")), "one\nby hand\n");
}

/// DIST-5: a move that cannot be done says why, and changes nothing: the place is no place, nobody has it, the folder is
/// not empty, the path is relative, the session is there already, a turn runs, or the store is not shared.
#[test]
fn moves_are_refused_by_name() {
    let hosts = Hosts::new([
        write("a.txt", "one\n"),
        Reply::text("done"),
        bash("echo > runs.txt; sleep 60"),
        Reply::text("never").forever(),
    ]);
    let (alpha, beta) = hosts.both();
    let session = alpha.session();
    alpha.say(&session, "go");
    wait_entries(&alpha, &session, "final", 1);
    let here = alpha.get(&format!("/api/sessions/{session}"))["place"]
        .as_str()
        .unwrap()
        .to_owned();
    hosts.beta.write("foreign.txt", "foreign\n");
    let foreign = hosts.beta.path();
    let cases = [
        (
            "/session move nowhere".to_owned(),
            "`nowhere` is no place: expected `host:NAME`",
        ),
        (
            "/session move host:gamma".to_owned(),
            "no server has the place `host:gamma`; the places are host:alpha, host:beta",
        ),
        (
            "/session move host:beta some/folder".to_owned(),
            "`some/folder` is not an absolute path",
        ),
        (format!("/session move host:alpha {here}"), "is at host:alpha in "),
        (
            format!("/session move host:beta {}", foreign.display()),
            "is not empty; files there are never overwritten",
        ),
    ];
    for (line, expected) in cases {
        let why = refused(&beta, &session, &line);
        assert!(why.contains(expected), "{line}: {why}");
    }
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
    assert_eq!(hosts.beta.read("foreign.txt"), "foreign\n");
    alpha.say(&session, "wait");
    assert!(eventually(PATIENCE, || hosts.alpha.has("runs.txt")));
    let line = format!("/session move host:beta {}", hosts.free().display());
    let why = refused(&beta, &session, &line);
    assert!(why.contains("busy"), "{why}");
    assert!(!hosts.free().exists());
    assert!(entries(&beta, &session, "moved").is_empty());
    let row = beta.get(&format!("/api/sessions/{session}"));
    assert_eq!(row["place"], json!(here), "{row:#}");
    // A session in a file of one machine has no place.
    let alone = Workspace::new(env!("CARGO_BIN_EXE_windlass"));
    alone.use_sim(&hosts.sim, Protocol::Anthropic);
    let output = alone.run(&["sessions", "move", "x", "host:beta"]).output();
    assert_ne!(output.code, Some(0), "{}", output.stdout);
}

/// DIST-5: a server that is killed while it rebuilds a folder leaves nothing half-made at its place. The session stays where
/// it was, the next start removes the rest, and the move can be repeated.
#[test]
fn an_interrupted_move_can_be_repeated() {
    let hosts = Hosts::new([
        bash("mkdir many; for i in $(seq 3000); do echo content $i > many/$i; done; echo last > last.txt"),
        Reply::text("done").forever(),
    ]);
    let (alpha, beta) = hosts.both();
    let session = alpha.session();
    alpha.say(&session, "go");
    wait_entries(&alpha, &session, "final", 1);
    hosts.wait_stored("bash", "content 3000");
    kill(alpha);
    wait_gone(&beta, &session);
    let target = hosts.free();
    let parent = target.parent().unwrap().to_owned();
    let unfinished = || {
        let names = fs::read_dir(&parent).into_iter().flatten().flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.find(|name| name.starts_with(".windlass-move-"))
    };
    let words = [
        "sessions",
        "move",
        &session,
        "host:beta",
        target.to_str().unwrap(),
    ];
    let moving = hosts.beta.run(&words).limit(PATIENCE * 2).start();
    assert!(
        eventually(PATIENCE, || unfinished().is_some()),
        "nothing was begun"
    );
    kill(beta);
    assert!(
        !target.exists() && unfinished().is_some(),
        "the move was over before the kill"
    );
    let output = moving.output();
    assert_ne!(output.code, Some(0), "{}", output.stdout);
    assert!(output.stderr.contains("cannot be reached"), "{}", output.stderr);
    let beta = hosts.start(&hosts.beta, "host:beta");
    assert_eq!(unfinished(), None, "the start removes what was not finished");
    assert!(entries(&beta, &session, "moved").is_empty());
    wait_gone(&beta, &session);
    let output = hosts.beta.run(&words).limit(PATIENCE * 2).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(fs::read_dir(target.join("many")).unwrap().count(), 3_000);
    assert_eq!(read(&target.join("last.txt")), "last\n");
    assert_eq!(unfinished(), None);
    assert_eq!(entries(&beta, &session, "moved").len(), 1);
}
