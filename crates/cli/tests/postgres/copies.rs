//! `windlass db copy`.

use serde_json::json;
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::{SimServer, Workspace};

use super::store::server;

/// Runs two sessions with tools in the database in the data folder, and returns the workspace.
fn with_sessions() -> (SimServer, Workspace) {
    let call = |text: &str| Reply::call("bash", json!({ "command": format!("echo {text}; seq 1 30000") }));
    let sim = SimServer::script(
        Script::new()
            .reply(call("one \u{1F600}"))
            .reply(Reply::text("first answer"))
            .reply(call("two"))
            .reply(Reply::text("second answer"))
            .reply(Reply::text("more").forever()),
    );
    let workspace = Workspace::new(env!("CARGO_BIN_EXE_windlass"));
    workspace.use_sim(&sim, Protocol::Anthropic);
    for text in ["do the first thing", "do the second \\ \"thing\""] {
        workspace.run(&["exec", text]).output().assert_code(0);
    }
    (sim, workspace)
}

fn ids(workspace: &Workspace, store: &str) -> Vec<String> {
    let listed = workspace
        .run(&["sessions", "list", "--all", "--json", "--store", store])
        .output();
    listed.assert_code(0);
    let listed = listed.json();
    let mut ids: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

fn export(workspace: &Workspace, store: &str, id: &str) -> String {
    let output = workspace
        .run(&["sessions", "export", id, "--format", "json", "--store", store])
        .output();
    output.assert_code(0);
    output.stdout
}

/// DIST-8, DIST-7: the costs of deleted sessions are copied as well, once, so that the limits of a day stay used up.
#[test]
fn costs_of_deleted_sessions_are_copied() {
    let (_sim, workspace) = with_sessions();
    let sqlite = workspace.home().join("data/windlass.db").display().to_string();
    let postgres = server().url(&server().empty());
    let back = workspace.home().join("data/back.db").display().to_string();
    let gone = ids(&workspace, &sqlite).remove(0);
    workspace
        .run(&["sessions", "delete", &gone, "--yes"])
        .output()
        .assert_code(0);
    let spent = |store: &str| {
        let table = workspace.run(&["sessions", "cost", "--by", "user", "--json", "--store", store]);
        let table = table.output();
        table.assert_code(0);
        table.json()
    };
    for (from, to) in [(&sqlite, &postgres), (&sqlite, &postgres), (&postgres, &back)] {
        workspace.run(&["db", "copy", from, to]).output().assert_code(0);
        assert_eq!(spent(to), spent(&sqlite), "{to}");
    }
    assert_eq!(spent(&back)["rows"][0]["calls"], 4, "{}", spent(&back));
}

/// DIST-8: sessions are copied from SQLite to Postgres and back, byte for byte; a second copy copies nothing, and a
/// session that went on in the target is a clash that is named.
#[test]
fn sessions_move_both_ways() {
    let (_sim, workspace) = with_sessions();
    let sqlite = workspace.home().join("data/windlass.db").display().to_string();
    let postgres = server().url(&server().empty());
    let back = workspace.home().join("data/back.db").display().to_string();
    let copy = |from: &str, to: &str| workspace.run(&["db", "copy", from, to]).output();
    let there = copy(&sqlite, &postgres);
    assert!(
        there.code == Some(0) && there.stdout.contains("copied 2 sessions"),
        "{}{}",
        there.stdout,
        there.stderr
    );
    copy(&postgres, &back).assert_code(0);
    let all = ids(&workspace, &sqlite);
    assert_eq!(all.len(), 2);
    for store in [&postgres, &back] {
        assert_eq!(ids(&workspace, store), all);
        for id in &all {
            assert_eq!(export(&workspace, store, id), export(&workspace, &sqlite, id));
        }
    }
    let found = workspace
        .run(&[
            "sessions",
            "search",
            "second thing",
            "--json",
            "--store",
            &postgres,
        ])
        .output();
    assert!(
        found.stdout.contains(&all[1]) || found.stdout.contains(&all[0]),
        "{}",
        found.stdout
    );
    let again = copy(&sqlite, &postgres);
    assert!(
        again.stdout.contains("2 sessions there already"),
        "{}",
        again.stdout
    );
    let goes_on = workspace
        .run(&["exec", "--continue", "go on", "--store", &postgres])
        .output();
    goes_on.assert_code(0);
    let clash = copy(&sqlite, &postgres);
    assert!(
        clash.code == Some(10) && clash.stderr.contains("with other content"),
        "{}",
        clash.stderr
    );
    let same = copy(&postgres, &postgres);
    assert_eq!(same.code, Some(2), "{}", same.stderr);
    let missing = copy("/nonexistent/x.db", &postgres);
    assert!(
        missing.code == Some(2) && missing.stderr.contains("no database"),
        "{}",
        missing.stderr
    );
}
