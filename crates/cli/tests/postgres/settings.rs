//! The setting `store` and the option `--store`.

use serde_json::json;
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::{PATIENCE, SimServer, Workspace, eventually};

use super::store::server;

fn workspace() -> Workspace {
    Workspace::new(env!("CARGO_BIN_EXE_windlass"))
}

fn model() -> SimServer {
    let call = Reply::call("bash", json!({ "command": "echo hello" }));
    SimServer::script(
        Script::new()
            .reply(call)
            .reply(Reply::text("first"))
            .reply(Reply::text("second").forever()),
    )
}

/// SES-1, DIST-2: a session is created, continued, listed and exported with `--store postgres://…`, and nothing is written
/// to the database in the data folder.
#[test]
fn a_session_lives_in_postgres() {
    let (sim, workspace) = (model(), workspace());
    workspace.use_sim(&sim, Protocol::Chat);
    let url = server().url(&server().empty());
    let run = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--store", url.as_str()]);
        workspace.run(&all).output()
    };
    let first = run(&["exec", "say hello"]);
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (Some(0), "first\n"),
        "{}",
        first.stderr
    );
    let second = run(&["exec", "--continue", "and again"]);
    assert_eq!(
        (second.code, second.stdout.as_str()),
        (Some(0), "second\n"),
        "{}",
        second.stderr
    );
    let listed = run(&["sessions", "list", "--all", "--json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let export = run(&["sessions", "export", &id, "--format", "json"]);
    assert!(export.stdout.contains("and again"), "{}", export.stdout);
    let found = run(&["sessions", "search", "hello", "--json"]).json();
    assert_eq!(found[0]["session"], json!(id));
    assert!(!workspace.home().join("data/windlass.db").exists());
    let path = run(&["db", "path"]);
    assert!(
        path.stdout.starts_with("postgres://postgres@/"),
        "{}",
        path.stdout
    );
    let check = run(&["db", "check"]);
    assert!(
        check.code == Some(2) && check.stderr.contains("pg_amcheck"),
        "{}",
        check.stderr
    );
}

/// SES-1: the setting names the store as well, is shown without the password, and a project cannot set it.
#[test]
fn the_setting_names_the_store() {
    let (sim, workspace) = (model(), workspace());
    let database = server().empty();
    let url = server().url_of("postgres:hunter2", &database);
    workspace.use_sim(&sim, Protocol::Chat);
    let settings = std::fs::read_to_string(workspace.config_file()).unwrap();
    workspace.config(&format!("store = \"{url}\"\n{settings}"));
    let ran = workspace.run(&["exec", "say hello"]).output();
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "first\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        server().sql(&database, "SELECT count(*) FROM windlass.session"),
        "1"
    );
    let shown = workspace.run(&["config", "show"]).output();
    let line = shown
        .stdout
        .lines()
        .find(|line| line.starts_with("store"))
        .unwrap();
    assert!(
        line.contains("postgres@") && !shown.stdout.contains("hunter2"),
        "{line}"
    );
}

/// SES-1, DIST-2: each problem with the store is reported with what to do, without the password and with the exit code of
/// the store.
#[test]
fn problems_are_explained() {
    let (sim, workspace) = (model(), workspace());
    workspace.use_sim(&sim, Protocol::Chat);
    let newer = server().database();
    server().sql(&newer, "UPDATE windlass.version SET number = 99");
    let empty = server().empty();
    server().sql(
        "postgres",
        "CREATE ROLE visitor LOGIN; CREATE ROLE locked LOGIN PASSWORD 'right'",
    );
    server().require_password("locked");
    let (prepared, old) = (server().database(), server().empty());
    // The function of the server, as a server of Postgres 12 has it.
    server().sql(
        &old,
        "CREATE FUNCTION current_setting (text) RETURNS text LANGUAGE sql AS $$ \
           SELECT CASE $1 WHEN 'server_version_num' THEN '120022' ELSE '12.22' END $$",
    );
    let old = format!(
        "{}?options=-c%20search_path%3Dpublic%2Cpg_catalog",
        server().url(&old)
    );
    let socket = server().url("absent");
    for (url, expected) in [
        (
            "postgres://me:hunter2@127.0.0.1:1/db".to_owned(),
            "that the server runs",
        ),
        (
            "postgres://me:hunter2@127.0.0.1:port/db".to_owned(),
            "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        ),
        (
            "mysql://me:hunter2@host/db".to_owned(),
            "`mysql:`, which is not supported",
        ),
        (
            server().url_of("visitor:hunter2", &empty),
            "GRANT CREATE ON DATABASE",
        ),
        (
            server().url_of("locked:hunter2", &empty),
            "check the user and the password",
        ),
        (
            server().url_of("visitor:hunter2", &prepared),
            "If the tables belong to another user",
        ),
        (server().url(&newer), "use a newer Windlass"),
        (old, "needs version 13 or newer; upgrade the server"),
        (socket, "createdb absent"),
    ] {
        for args in [&["exec", "hi"][..], &["sessions", "list"]] {
            let output = workspace.run(args).env("WINDLASS_STORE", &url).output();
            assert_eq!(output.code, Some(10), "{url}: {}", output.stderr);
            assert!(output.stderr.contains(expected), "{url}: {}", output.stderr);
            assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
        }
    }
    assert_eq!(sim.count(), 0);
}

/// SES-2, DIST-2: a session that one process works in is busy for others, and free when that process is killed.
#[test]
fn one_process_owns_a_session() {
    let sim = SimServer::script(
        Script::new()
            .reply(Reply::text("slow").fault(windlass_sim::Fault::new().stall_after_events(2)))
            .reply(Reply::text("later").forever()),
    );
    let workspace = super::support::workspace();
    workspace.use_sim(&sim, Protocol::Chat);
    let running = workspace.run(&["exec", "wait"]).start();
    assert!(windlass_testkit::eventually(windlass_testkit::PATIENCE, || sim
        .count()
        == 1));
    let busy = workspace.run(&["exec", "--continue", "hi"]).output();
    assert_eq!(busy.code, Some(4), "{}", busy.stderr);
    assert!(busy.stderr.contains("is busy"), "{}", busy.stderr);
    running.signal(windlass_testkit::Signal::KILL);
    running.output();
    let after = workspace.run(&["exec", "--continue", "go on"]).output();
    assert_eq!(
        (after.code, after.stdout.as_str()),
        (Some(0), "later\n"),
        "{}",
        after.stderr
    );
}

/// SES-5, DIST-2: a database that went back in time, as when a backup takes its place, is noticed before anything is written
/// to it; the message says what happened, and the session continues from what the database has.
#[test]
fn a_database_that_went_back_is_reported() {
    let (database, wait) = (server().empty(), "while [ ! -e go ]; do sleep 0.02; done");
    let workspace = workspace().with_store(server().url(&database));
    let call = Reply::call("bash", json!({ "command": format!("echo 1 >> ran.txt; {wait}") }));
    let sim = SimServer::script(Script::new().reply(call).reply(Reply::text("later").forever()));
    workspace.use_sim(&sim, Protocol::Chat);
    let running = workspace.run(&["exec", "--mode", "auto", "go"]).start();
    assert!(eventually(PATIENCE, || workspace.has("ran.txt")));
    server().sql(
        &database,
        "DELETE FROM windlass.entry WHERE seq > 2; UPDATE windlass.session SET last_seq = 2",
    );
    workspace.write("go", "");
    let output = running.output();
    assert_ne!(output.code, Some(0), "{output}");
    assert!(
        output
            .stderr
            .contains("the database went back in time: its last entry is 2"),
        "{output}"
    );
    assert!(output.stderr.contains("start the session again"), "{output}");
    let after = workspace.run(&["exec", "--continue", "go on"]).output();
    assert_eq!(
        (after.code, after.stdout.as_str()),
        (Some(0), "later\n"),
        "{after}"
    );
    let sql = "SELECT count(*) = max(seq) FROM windlass.entry";
    assert_eq!(server().sql(&database, sql), "t");
}
