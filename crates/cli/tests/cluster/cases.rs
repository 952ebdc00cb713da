//! Faults at a certain moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{Reply, Script, When};
use windlass_testkit::{PATIENCE, Signal, eventually};

use super::check::check;
use super::clients::{begin, wait, work};
use super::disk::Disk;
use super::faults::clock;
use super::fleet::{Fleet, Plan};

/// Sends something to a server, which must accept it.
#[track_caller]
fn post(fleet: &Fleet, server: usize, path: &str, body: &Value) {
    let answer = fleet.request(server, "POST", path, &body.to_string()).unwrap();
    assert!((200..300).contains(&answer.status), "{path}: {}", answer.body);
}

/// Returns the events of a session of one type.
fn events(fleet: &Fleet, session: &str, kind: &str) -> Vec<Value> {
    let entries = fleet.entries(session);
    let events = entries.into_iter().map(|mut entry| entry["event"].take());
    events.filter(|event| event["type"] == kind).collect()
}

#[track_caller]
fn wait_for(fleet: &Fleet, session: &str, kind: &str, count: usize) {
    let came = eventually(PATIENCE, || events(fleet, session, kind).len() >= count);
    assert!(came, "no `{kind}`: {:#?}", fleet.entries(session));
}

/// Kills a server.
fn kill(fleet: &Fleet, number: usize) {
    let server = fleet.take(number).unwrap();
    server.running.signal(Signal::KILL);
    server.running.output();
}

/// DIST-6, DIST-3: a server that is stopped while it listens does not read its notifications, which pile up for everybody.
/// The others work on; once its lease has ended they end its connection, and the queue empties. It listens again when it
/// goes on.
#[test]
fn a_stuck_listener_harms_nobody() {
    let fleet = Fleet::start(Plan::default());
    let listeners = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'windlass wl%'";
    let is = |sql: &str, expected: &str| {
        let came = eventually(PATIENCE, || fleet.sql(sql) == expected);
        assert!(came, "{sql}: {}", fleet.sql(sql));
    };
    is(listeners, "3");
    let stuck = fleet.take(0).unwrap();
    stuck.running.signal(Signal::STOP);
    // More than the connection holds.
    fleet.sql(
        "DO $$ BEGIN FOR n IN 1..4000 LOOP PERFORM pg_notify('wl_all', n || repeat(' ', 7900)); END LOOP; END $$",
    );
    let usage = "SELECT pg_notification_queue_usage() > 0";
    assert_eq!(fleet.sql(usage), "t");
    let session = begin(&fleet, 1);
    post(
        &fleet,
        2,
        &format!("/api/sessions/{session}/messages"),
        &json!({ "text": "work" }),
    );
    wait_for(&fleet, &session, "final", 1);
    is(listeners, "2");
    is(usage, "f");
    stuck.running.signal(Signal::CONT);
    fleet.give(0, stuck);
    is(listeners, "3");
    fleet.stop();
}

/// DIST-6, DIST-1: a permission request whose server is killed is asked again by the next owner, under the same id, and a
/// third server takes the answer.
#[test]
fn an_answer_reaches_the_next_owner_through_a_third_server() {
    let write = Reply::call("write_file", json!({ "path": "a.txt", "content": "new\n" }));
    let fleet = Fleet::start(Plan {
        script: Script::new().reply(write).reply(Reply::text("written").forever()),
        mode: "ask",
        ..Plan::default()
    });
    let session = begin(&fleet, 0);
    post(
        &fleet,
        0,
        &format!("/api/sessions/{session}/messages"),
        &json!({ "text": "go" }),
    );
    wait_for(&fleet, &session, "permission_request", 1);
    let first = fleet.owner(&session).unwrap();
    kill(&fleet, first);
    wait_for(&fleet, &session, "permission_request", 2);
    let asked = events(&fleet, &session, "permission_request");
    assert_eq!(asked[0]["call_id"], asked[1]["call_id"], "{asked:#?}");
    let next = fleet.owner(&session).unwrap();
    let third = (0..3).find(|number| ![first, next].contains(number)).unwrap();
    let call = asked[1]["call_id"].as_str().unwrap();
    let reply = format!("/api/sessions/{session}/replies/{call}");
    post(&fleet, third, &reply, &json!({ "answer": "once" }));
    wait_for(&fleet, &session, "final", 1);
    assert_eq!(events(&fleet, &session, "moved").len(), 1);
    assert_eq!(events(&fleet, &session, "tool_result").len(), 1);
    assert_eq!(fleet.project().read("a.txt"), "new\n");
    fleet.sim.assert_valid();
    fleet.stop();
}

/// DIST-6, SUB-4: a session and its sub-agent whose server is killed continue at another server: the model of the session is
/// told that the sub-agent is still at work, nothing runs again, and its result is delivered.
#[test]
fn a_lost_sub_agent_continues() {
    let is_child = || {
        When::new()
            .user_contains("long work")
            .system_contains("started for one task")
    };
    let mark = json!({ "command": "echo child >> ran.txt; sleep 600" });
    let spawn = json!({ "task": "long work", "name": "long", "type": "coder", "isolation": "none" });
    let script = [
        Reply::call("bash", mark).when(is_child()),
        Reply::text("the work is done").when(is_child()).forever(),
        Reply::call("agent", spawn),
        Reply::text("complete").forever(),
    ];
    let fleet = Fleet::start(Plan {
        script: script.into_iter().fold(Script::new(), Script::reply),
        ..Plan::default()
    });
    let session = begin(&fleet, 0);
    post(
        &fleet,
        0,
        &format!("/api/sessions/{session}/messages"),
        &json!({ "text": "go" }),
    );
    assert!(eventually(PATIENCE, || fleet.project().has("ran.txt")));
    let owner = fleet.owner(&session).unwrap();
    kill(&fleet, owner);
    wait_for(&fleet, &session, "final", 1);
    assert_eq!(events(&fleet, &session, "final")[0]["content"], "complete");
    assert_eq!(events(&fleet, &session, "moved").len(), 1);
    let state = || fleet.sql("SELECT state, delivered FROM windlass.agent");
    assert!(eventually(PATIENCE, || state() == "done|t"), "{}", state());
    assert_eq!(fleet.project().read("ran.txt"), "child\n");
    let has_told = |words: &str| {
        fleet.sim.requests().iter().any(|request| {
            let text = String::from_utf8_lossy(&request.raw);
            text.contains(words) && !text.contains("started for one task")
        })
    };
    assert!(
        has_told("continues at another one"),
        "the model is told of the move"
    );
    assert!(
        eventually(PATIENCE, || has_told("the work is done")),
        "the result is delivered"
    );
    fleet.sim.assert_valid();
    fleet.stop();
}

/// DIST-6, CRON-3: three servers that run the same jobs run each slot once, also when one of them is killed.
#[test]
fn three_servers_run_a_slot_once() {
    let fleet = Fleet::prepare(Plan::default());
    let folder = fleet.project().path().display().to_string();
    let jobs = format!(
        "[jobs.test]\nfolder = \"{folder}\"\nschedule = \"every 1s\"\ncommand = \"echo x >> ran.txt\"\n"
    );
    for home in &fleet.homes {
        std::fs::write(home.home().join("config/cron.toml"), &jobs).unwrap();
    }
    (0..3).for_each(|number| fleet.resume(number));
    let ran = || match fleet.project().has("ran.txt") {
        true => fleet.project().read("ran.txt").lines().count(),
        false => 0,
    };
    let wait_for = |count: usize| assert!(eventually(PATIENCE, || ran() >= count), "{} slots ran", ran());
    wait_for(3);
    kill(&fleet, 1);
    let before = ran();
    wait_for(before + 3);
    fleet.stop();
    let count = |condition: &str| {
        let sql = format!("SELECT count(*) FROM windlass.cron_slot WHERE {condition}");
        fleet.sql(&sql).parse::<usize>().unwrap()
    };
    // A run that was cut off may have written, and is not repeated.
    let (done, most) = (
        count("state = 'ran'"),
        count("state IN ('ran', 'interrupted', 'failed', 'running')"),
    );
    assert!(done <= ran() && ran() <= most, "{done} ≤ {} ≤ {most}", ran());
}

/// DIST-6, DIST-2: after a newer version has migrated the tables, servers of this one go on with what they have, also beside
/// messages that only the newer one knows. A server that stops cannot start again, and says so; the others take its
/// sessions.
#[test]
fn two_versions_work_side_by_side() {
    let fleet = Fleet::start(Plan::default());
    let stop = AtomicBool::new(false);
    let logs = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|number| {
                let (fleet, stop) = (&fleet, &stop);
                scope.spawn(move || work(fleet, number, stop))
            })
            .collect();
        let working = "SELECT count(*) FROM windlass.session WHERE owner IS NOT NULL";
        assert!(eventually(PATIENCE, || fleet.sql(working) == "3"));
        fleet.sql(
            "BEGIN; ALTER TABLE windlass.session ADD later text; ALTER TABLE windlass.entry ADD later text; \
             ALTER TABLE windlass.server ADD later text; ALTER TABLE windlass.inbox ADD later text; \
             CREATE TABLE windlass.later (id text); UPDATE windlass.version SET number = number + 1; COMMIT",
        );
        fleet.sql(
            "INSERT INTO windlass.inbox (id, session, kind, payload, sender, made) \
             SELECT 'later-' || id, id, 'later', '{}', 'a newer server', 0 FROM windlass.session",
        );
        let ended = || {
            fleet
                .sql("SELECT count(*) FROM windlass.entry WHERE kind = 'final'")
                .parse::<usize>()
                .unwrap()
        };
        let before = ended();
        assert!(eventually(PATIENCE, || ended() >= before + 6), "turns go on");
        kill(&fleet, 0);
        let refused = fleet.run(0).limit(PATIENCE).output();
        refused.assert_code(10).assert_says("use a newer Windlass");
        wait(Duration::from_secs(8));
        let before = ended();
        assert!(
            eventually(PATIENCE, || ended() >= before + 6),
            "turns go on without it"
        );
        stop.store(true, Ordering::Relaxed);
        let logs = clients.into_iter().map(|client| client.join());
        logs.map(|log| log.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    check(&fleet, &logs);
    let left = fleet.sql("SELECT count(*) FROM windlass.inbox WHERE kind = 'later' AND taken IS NULL");
    assert_eq!(left, "3", "messages of the newer version wait for it");
    fleet.stop();
}

/// DIST-6: a server whose clock differs from the database's says so, and what to do.
#[test]
fn a_wrong_clock_is_reported() {
    let fleet = Fleet::start(Plan {
        servers: 2,
        environment: |server| clock(["+3600", "-3600"][server]),
        ..Plan::default()
    });
    let said: Vec<String> = fleet.stop().into_iter().map(|output| output.stderr).collect();
    for (said, by) in said.iter().zip(["ahead of", "behind"]) {
        let expected = format!("{by} the clock of the database");
        assert!(
            said.contains(&expected) && said.contains("set the clocks of both machines"),
            "{said}"
        );
    }
}

/// DIST-6, DIST-2: a database without space is reported with what to do, and works again once there is some.
#[test]
fn a_full_disk_is_reported() {
    let fleet = Fleet::prepare(Plan {
        disk: Some(Disk::mount()),
        ..Plan::default()
    });
    let exec = |prompt: &str| fleet.project().run(&["exec", "--mode", "auto", prompt]).output();
    exec("work first").assert_code(0);
    let disk = fleet.disk.as_ref().unwrap();
    disk.fill();
    // Numbers that cannot be compressed.
    let numbers = (1..6_000_u64).map(|number| format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let failed = exec(&format!("work {}", numbers.collect::<Vec<_>>().join(" ")));
    failed
        .assert_code(10)
        .assert_says("make space on the machine of the database");
    disk.free();
    exec("work again").assert_code(0);
}
