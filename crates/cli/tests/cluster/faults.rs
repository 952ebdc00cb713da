//! The faults, one after the other while clients work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_testkit::{Process, Signal, descendants, eventually};

use super::check::{Figures, check};
use super::clients::{Log, wait, work};
use super::disk::Disk;
use super::fleet::{Fleet, Plan, lock};
use super::network::{End, Network};

/// Clients of a run.
const CLIENTS: usize = 6;
/// Lease of a server.
const LEASE: Duration = Duration::from_secs(6);

/// A fault of a server, the database or the network.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// `kill -9`, and a new start.
    Kill,
    /// SIGSTOP for this many halves of a lease, then SIGCONT.
    Sleep(u32),
    /// SIGTERM, and a new start.
    Drain,
    /// An immediate stop of Postgres, and a new start.
    Crash,
    /// The same, with seconds between them in which connections are refused.
    Away(u64),
    /// The disk of the database is full for some seconds.
    Full(u64),
    /// Links are cut for some seconds.
    Cut(Cut, u64),
}

/// Links of a server that are cut.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// To the database, both ways.
    Store,
    /// From the database: requests arrive, answers do not.
    Answers,
    /// To the database: nothing arrives, and what was sent before is answered.
    Requests,
    /// To the other servers, both ways; each still reaches the database.
    Servers,
    /// To the database; then, in the middle of it, also those of the next server, which took over.
    InTurn,
}

impl Cut {
    /// Returns the directions that are cut.
    fn ways(self, victim: usize, count: usize) -> Vec<(End, End)> {
        let server = End::Server(victim);
        let (there, back) = ((server, End::Store), (End::Store, server));
        match self {
            Self::Store | Self::InTurn => vec![there, back],
            Self::Answers => vec![back],
            Self::Requests => vec![there],
            Self::Servers => {
                let others = (0..count).filter(|other| *other != victim).map(End::Server);
                others
                    .flat_map(|other| [(server, other), (other, server)])
                    .collect()
            }
        }
    }
}

/// Random numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Time of each run.
fn time() -> Duration {
    let seconds = std::env::var("WINDLASS_CLUSTER_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(20))
}

/// Fails if a process of a lost server is alive, other than its warden.
#[track_caller]
fn assert_gone(what: &str, left: &[Process]) {
    let running = || left.iter().filter(|process| process.runs()).count();
    assert!(
        eventually(LEASE, || running() == 0),
        "{what}: {} of its processes run on",
        running()
    );
}

/// Stops a server, and returns the processes below it, without its warden.
fn freeze(server: &windlass_testkit::HttpServer) -> Vec<Process> {
    server.running.signal(Signal::STOP);
    let wardens = windlass_testkit::processes_with("--warden");
    let below = descendants(server.running.pid());
    below
        .into_iter()
        .filter(|process| !wardens.contains(&process.pid))
        .collect()
}

fn inflict(fleet: &Fleet, fault: Fault, victim: usize) {
    match fault {
        Fault::Kill => {
            if let Some(server) = fleet.take(victim) {
                let left = freeze(&server);
                server.running.signal(Signal::KILL);
                server.running.output();
                assert_gone("a killed server", &left);
            }
            fleet.resume(victim);
        }
        Fault::Drain => {
            if let Some(server) = fleet.take(victim) {
                server.running.terminate();
                let output = server.running.output();
                assert_eq!(output.code, Some(0), "{}", output.stderr);
            }
            fleet.resume(victim);
        }
        Fault::Sleep(halves) => {
            // Clients do not wait for a server that does not answer.
            if let Some(server) = fleet.take(victim) {
                let left = freeze(&server);
                wait(LEASE * halves / 2);
                if halves > 2 {
                    // Somebody else may own its sessions now.
                    assert_gone("a stopped server", &left);
                }
                server.running.signal(Signal::CONT);
                fleet.give(victim, server);
            }
        }
        Fault::Crash => {
            let mut postgres = lock(&fleet.postgres);
            postgres.crash();
            postgres.resume();
        }
        Fault::Away(seconds) => {
            let mut postgres = lock(&fleet.postgres);
            postgres.crash();
            wait(Duration::from_secs(seconds));
            postgres.resume();
        }
        Fault::Full(seconds) => {
            let disk = fleet.disk.as_ref().unwrap();
            disk.fill();
            wait(Duration::from_secs(seconds));
            disk.free();
        }
        Fault::Cut(cut, seconds) => cut_links(fleet, (cut, victim), Duration::from_secs(seconds)),
    }
}

fn cut_links(fleet: &Fleet, (cut, victim): (Cut, usize), time: Duration) {
    let network = fleet.network.as_ref().unwrap();
    let set = |victim: usize, is_open: bool| {
        let ways = cut.ways(victim, fleet.count());
        ways.into_iter().for_each(|way| network.set_way(way, is_open));
    };
    set(victim, false);
    wait(time);
    if let Cut::InTurn = cut {
        let next = (victim + 1) % fleet.count();
        set(next, false);
        set(victim, true);
        wait(time);
        set(next, true);
    } else {
        set(victim, true);
    }
}

/// Lets clients work while faults happen, and checks everything afterwards. `pause` is the longest time between two faults,
/// in milliseconds.
fn run(name: &str, plan: Plan, faults: &[Fault], pause: u64) -> Figures {
    let fleet = Fleet::start(plan);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let mut dice = Dice(20_261_119);
    let (logs, count) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn({
                    let (fleet, stop) = (&fleet, &stop);
                    move || work(fleet, number, stop)
                })
            })
            .collect();
        let mut count = 0;
        // Each kind of fault happens, however short the run is.
        while count < faults.len() || begun.elapsed() < time() {
            wait(Duration::from_millis(pause / 4 + dice.roll(pause * 3 / 4)));
            let victim = dice.roll(fleet.count() as u64);
            inflict(
                &fleet,
                faults[count % faults.len()],
                usize::try_from(victim).unwrap(),
            );
            count += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let logs: Vec<Log> = clients
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        (logs, count)
    });
    let figures = check(&fleet, &logs);
    let all: Vec<Process> = (0..fleet.count())
        .flat_map(|number| fleet.processes(number))
        .collect();
    fleet.stop();
    assert_gone("a server that was stopped", &all);
    let place = |part: usize| {
        let place = figures.after_ms.len().saturating_sub(1) * part / 100;
        figures
            .after_ms
            .get(place)
            .map_or("–".to_owned(), |ms| ms.to_string())
    };
    println!(
        "| {name} | {count} | {} | {} | {} | {} | {} | {} / {} | {:.1} |",
        figures.turns,
        figures.effects,
        figures.streams,
        figures.moved,
        figures.interrupted,
        place(50),
        place(99),
        figures.longest.as_secs_f64(),
    );
    assert!(figures.turns >= CLIENTS, "{figures:?}");
    figures
}

/// DIST-6, DIST-1: nothing acknowledged is lost, nothing runs twice, no turn stays open and no process is left over
/// `kill -9` of servers at random.
#[test]
fn servers_are_killed() {
    let figures = run("`kill -9`", Plan::default(), &[Fault::Kill], 3_000);
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-3: the same over servers that are stopped for half a lease, a lease and two leases, and then go on. Past its
/// deadline no process of a stopped server runs.
#[test]
fn servers_are_stopped_beyond_their_lease() {
    let faults = [Fault::Sleep(4), Fault::Sleep(1), Fault::Sleep(2)];
    let figures = run("SIGSTOP for ½, 1, 2 leases", Plan::default(), &faults, 1_500);
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-3: the same over servers that leave, under load.
#[test]
fn servers_leave_under_load() {
    let figures = run("drain by SIGTERM", Plan::default(), &[Fault::Drain], 3_000);
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-2: the same over crashes of Postgres.
#[test]
fn the_database_crashes() {
    run("Postgres crashes", Plan::default(), &[Fault::Crash], 4_000);
}

/// DIST-6, DIST-3: the same over a Postgres that refuses connections for two leases and longer. All servers lose their lease,
/// and continue their turns when it is back.
#[test]
fn the_database_refuses_connections() {
    let seconds = if time() > Duration::from_secs(60) { 30 } else { 13 };
    let figures = run(
        &format!("Postgres away for {seconds} s"),
        Plan::default(),
        &[Fault::Away(seconds)],
        4_000,
    );
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-2: the same over a full disk of Postgres. A turn that cannot be recorded fails, or continues once there is
/// space again.
#[test]
fn the_disk_of_the_database_is_full() {
    let plan = Plan {
        disk: Some(Disk::mount()),
        ..Plan::default()
    };
    run("full disk of Postgres", plan, &[Fault::Full(5)], 5_000);
}

fn with_network() -> Plan {
    let servers = Plan::default().servers;
    Plan {
        network: Some(Network::make(servers).unwrap()),
        ..Plan::default()
    }
}

/// DIST-6, DIST-3: the same over a network that is cut between a server and Postgres: both ways, and one way only.
#[test]
fn the_network_to_the_database_is_cut() {
    let faults = [Cut::Store, Cut::Answers, Cut::Requests].map(|cut| Fault::Cut(cut, 8));
    let figures = run(
        "cut from Postgres: both ways, one way",
        with_network(),
        &faults,
        2_000,
    );
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-4: the same over a network that is cut between the servers: events reach clients of other servers through
/// the store.
#[test]
fn the_network_between_servers_is_cut() {
    run(
        "cut from other servers",
        with_network(),
        &[Fault::Cut(Cut::Servers, 13)],
        2_000,
    );
}

/// DIST-6, DIST-3: the same over a network that is cut for the owner of a session, and then for the server that took it over.
#[test]
fn both_servers_of_a_session_are_cut_in_turn() {
    let faults = [Fault::Cut(Cut::InTurn, 9)];
    let figures = run(
        "both servers of a session cut in turn",
        with_network(),
        &faults,
        2_000,
    );
    assert!(figures.moved > 0, "{figures:?}");
}

/// Returns variables that shift the clock of a program by a time such as `+3600`.
pub(super) fn clock(shift: &str) -> Vec<(&'static str, String)> {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let found = files.find(|file| file.is_file());
    let library = found.expect("libfaketime is missing (on Debian: apt-get install libfaketime)");
    vec![
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", shift.to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// DIST-6, DIST-3: clocks that are an hour ahead and an hour behind change nothing, because no two of them are compared.
#[test]
fn clocks_are_wrong() {
    let plan = Plan {
        environment: |server| clock(["+3600", "-3600", "+0"][server % 3]),
        ..Plan::default()
    };
    let faults = [Fault::Kill, Fault::Sleep(3), Fault::Drain];
    let figures = run("clocks ±1 h, with kills and stops", plan, &faults, 3_000);
    assert!(figures.moved > 0, "{figures:?}");
}
