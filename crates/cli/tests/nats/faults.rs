//! NATS that is not there, refuses, goes away, or is listened to by strangers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use windlass_sim::Reply;
use windlass_testkit::{HttpServer, NatsServer, PATIENCE, Signal, Workspace, eventually};

use super::carrier::{carried_by, settings_of};
use super::cluster::{Fleet, bash, check_record, count, entries, wait_entry, wait_ran};
use super::store::server;

/// Reads everything that goes over a NATS server.
fn sniff(nats: &NatsServer) -> Arc<Mutex<Vec<u8>>> {
    let url = nats.url("");
    let mut stream = TcpStream::connect(url.trim_start_matches("nats://")).unwrap();
    stream
        .write_all(b"CONNECT {\"verbose\":false}\r\nSUB > 1\r\nPING\r\n")
        .unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&heard);
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            written.lock().unwrap().extend_from_slice(&buffer[..length]);
        }
    });
    let is_ready = || contains(&heard, "PONG");
    assert!(eventually(PATIENCE, is_ready));
    heard
}

fn contains(heard: &Mutex<Vec<u8>>, text: &str) -> bool {
    let heard = heard.lock().unwrap();
    heard.windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

/// Returns a turn of one call and an answer.
fn turn(number: usize) -> [Reply; 2] {
    let command = format!("echo {number} >> ran.txt; sleep 0.3");
    [bash(&command), Reply::text(&format!("answer-{number}"))]
}

fn two(fleet: &Fleet) -> (HttpServer, HttpServer) {
    let start = |number| fleet.start(number, &["--mode", "auto"]);
    (start(0), start(1))
}

/// DIST-6, DIST-4: NATS is killed and started again in the middle of turns: no event of a client of another server is
/// missing or repeated, all inputs are carried out, and live events come again.
#[test]
fn nats_is_killed_under_load() {
    const TURNS: usize = 5;
    let mut nats = NatsServer::start(&[]);
    let more = Reply::text("and more").forever();
    let replies = (1..=TURNS).flat_map(turn).chain([more]);
    let fleet = Fleet::with(2, replies, &settings_of(&nats));
    let (first, second) = two(&fleet);
    let session = first.session();
    let watching = second.events(&format!("/api/events?session={session}&after=0"));
    for number in 1..=TURNS {
        second.say(&session, &format!("turn {number}"));
        wait_ran(&fleet, &number.to_string());
        nats.kill();
        // Every other turn ends without NATS.
        if number % 2 == 0 {
            assert!(eventually(PATIENCE, || count(
                &entries(&second, &session),
                "final"
            ) == number));
        }
        nats.resume();
        let answer = format!("answer-{number}");
        watching.wait_for("the end", |event| {
            event.data["type"] == "final" && event.data["content"] == *answer
        });
    }
    let record = entries(&second, &session);
    check_record(&record);
    assert_eq!((count(&record, "final"), count(&record, "failed")), (TURNS, 0));
    let seen: Vec<u64> = watching.states().iter().map(|(number, _)| *number).collect();
    assert_eq!(seen, (1..=record.len() as u64).collect::<Vec<_>>());
    // Questions have answers again, and a later turn is seen live.
    let context = format!("/api/sessions/{session}/context");
    let answers = || second.request("GET", &context, "").status == 200;
    assert!(
        eventually(PATIENCE, answers),
        "{}",
        second.request("GET", &context, "").body
    );
    let is_live = || {
        let before = watching.so_far().len();
        let finals = count(&entries(&second, &session), "final");
        second.say(&session, "once more");
        let ended = || count(&entries(&second, &session), "final") > finals;
        assert!(eventually(PATIENCE, ended));
        let since = watching.so_far().split_off(before);
        since.iter().any(|event| event.data["type"] == "delta")
    };
    assert!(
        eventually(PATIENCE, is_live),
        "no live events after the last start of NATS"
    );
    fleet.sim.assert_valid();
}

/// DIST-4: servers start before NATS and work through the store; once it is there, questions have answers and live
/// events arrive. Strangers on NATS see subjects, but no content.
#[test]
fn servers_start_before_nats() {
    let mut nats = NatsServer::start(&[]);
    let settings = settings_of(&nats);
    nats.kill();
    let replies = turn(1).into_iter().chain(turn(2));
    let fleet = Fleet::with(2, replies, &settings);
    let (first, mut second) = two(&fleet);
    let session = first.session();
    second.say(&session, "turn 1");
    wait_entry(&second, &session, "final");
    let checkpoints = format!("/api/sessions/{session}/checkpoints");
    let answer = second.request("GET", &checkpoints, "");
    assert!(
        answer
            .body
            .contains("which runs this session, cannot be reached: NATS at 127.0.0.1:"),
        "{}",
        answer.body
    );
    second.running.wait_for_stderr("warning: NATS at 127.0.0.1:");
    nats.resume();
    let heard = sniff(&nats);
    let answers = || second.request("GET", &checkpoints, "").status == 200;
    assert!(
        eventually(PATIENCE, answers),
        "{}",
        second.request("GET", &checkpoints, "").body
    );
    let watching = second.events(&format!("/api/events?session={session}&after=0"));
    // Over NATS from here on.
    watching.wait_for("the first turn", |event| event.data["type"] == "final");
    assert!(eventually(PATIENCE, || contains(&heard, ".live.")));
    second.say(&session, "turn 2");
    watching.wait_for("a live event", |event| event.data["type"] == "delta");
    watching.wait_for("the end", |event| event.data["content"] == "answer-2");
    assert!(contains(&heard, "MSG wl."));
    assert!(!contains(&heard, "answer-"), "strangers can read answers");
    fleet.sim.assert_valid();
}

/// DIST-4: an owner that is dead does not answer at once, and the error names it; another server takes its session over.
#[test]
fn a_dead_owner_is_named() {
    let nats = NatsServer::start(&[]);
    let fleet = Fleet::with(
        2,
        [bash("echo 1 >> ran.txt; sleep 60"), Reply::text("done")],
        &settings_of(&nats),
    );
    let (first, second) = two(&fleet);
    let session = first.session();
    first.say(&session, "go");
    wait_ran(&fleet, "1");
    first.running.signal(Signal::KILL);
    first.running.output();
    let checkpoints = format!("/api/sessions/{session}/checkpoints");
    let mut said = String::new();
    let is_named = eventually(PATIENCE, || {
        said = second.request("GET", &checkpoints, "").body;
        said.contains("which runs this session, cannot be reached: it is not connected to NATS")
    });
    assert!(is_named, "{said}");
    wait_entry(&second, &session, "final");
    check_record(&entries(&second, &session));
}

/// DIST-4: wrong addresses and credentials are refused at the start, with the setting to change; those from a file are
/// used.
#[test]
fn wrong_addresses_and_credentials_are_explained() {
    let nats = NatsServer::start(&["--user", "wind", "--pass", "s3cret"]);
    let store = server().url(&server().empty());
    let said = |settings: &str| {
        let home = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(store.clone());
        home.config(settings);
        let output = home
            .run(&["serve", "--cluster", "--listen", "127.0.0.1:0"])
            .output();
        (output.code, output.stderr)
    };
    for (url, wanted) in [
        (nats.url(""), "refuses this server"),
        (
            nats.url("wind:wrong@"),
            "check the user, the password or the token",
        ),
        (
            "https://127.0.0.1".to_owned(),
            "is not the address of a NATS server",
        ),
    ] {
        let (code, text) = said(&carried_by(&url));
        assert_eq!(code, Some(3), "{text}");
        assert!(text.contains(wanted), "{text}");
        assert!(!text.contains("wrong@"), "{text}");
    }
    let home = Workspace::new(env!("CARGO_BIN_EXE_windlass")).with_store(store.clone());
    let file = |content: &str| home.write("credentials", content).display().to_string();
    let settings = |content: &str| {
        let file = file(content);
        format!(
            "{}cluster_carrier_credentials_file = \"{file}\"\n",
            settings_of(&nats)
        )
    };
    let (code, text) = said(&settings("\n"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("write USER:PASSWORD or a token into it"), "{text}");
    home.config(&settings("wind:s3cret\n"));
    let server = HttpServer::start(home.run(&["serve", "--cluster", "--listen", "127.0.0.1:0"]));
    assert!(server.running.stdout().contains("reached by the others at nats:"));
    drop(server);
    // Those in the URL.
    home.config(&carried_by(&nats.url("wind:s3cret@")));
    let server = HttpServer::start(home.run(&["serve", "--cluster", "--listen", "127.0.0.1:0"]));
    assert!(server.running.stdout().contains("reached by the others at nats:"));
}
