//! The faults, one after the other while clients work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_testkit::Signal;

use super::check::{Figures, check};
use super::clients::{Log, work};
use super::fleet::{Fleet, lock};

/// Servers of a run.
const SERVERS: usize = 3;
/// Clients of a run.
const CLIENTS: usize = 6;

/// A fault of a server or of the database.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// `kill -9`, and a new start.
    Kill,
    /// SIGSTOP for longer than the lease, then SIGCONT.
    Sleep,
    /// SIGTERM, and a new start.
    Drain,
    /// An immediate stop of Postgres, and a new start.
    Database,
}

/// Time of each run.
fn time() -> Duration {
    let seconds = std::env::var("WINDLASS_CLUSTER_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(20))
}

/// Waits. The threads of the test are all that runs here.
fn wait(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::thread::park_timeout(time.saturating_sub(begun.elapsed()));
    }
}

fn inflict(fleet: &Fleet, fault: Fault, victim: usize) {
    match fault {
        Fault::Kill => {
            if let Some(server) = fleet.take(victim) {
                server.running.signal(Signal::KILL);
                server.running.output();
            }
            wait(Duration::from_millis(500));
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
        Fault::Sleep => {
            // Clients do not wait for a server that does not answer.
            let server = fleet.take(victim);
            if let Some(server) = &server {
                server.running.signal(Signal::STOP);
            }
            wait(Duration::from_secs(9));
            if let Some(server) = server {
                server.running.signal(Signal::CONT);
                fleet.give(victim, server);
            }
        }
        Fault::Database => {
            let mut postgres = lock(&fleet.postgres);
            postgres.crash();
            postgres.resume();
        }
    }
}

/// Lets clients work while faults happen, and checks everything afterwards.
fn run(faults: &[Fault], pause: Duration) -> Figures {
    let fleet = Fleet::start(SERVERS);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
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
        while begun.elapsed() < time() {
            wait(pause);
            inflict(&fleet, faults[count % faults.len()], count % SERVERS);
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
    let longest = logs.iter().map(|log| log.longest).max().unwrap_or_default();
    let place = |part: usize| {
        figures
            .after_ms
            .get(figures.after_ms.len().saturating_sub(1) * part / 100)
    };
    println!(
        "| {faults:?} | {count} | {} | {} | {} | {} | {:?} / {:?} ms | {longest:.1?} |",
        figures.turns,
        figures.effects,
        figures.moved,
        figures.interrupted,
        place(50),
        place(99)
    );
    assert!(figures.turns >= CLIENTS, "{figures:?}");
    figures
}

/// DIST-6, DIST-1: nothing acknowledged is lost, nothing runs twice and no turn stays open over `kill -9` of servers.
#[test]
fn servers_are_killed() {
    let figures = run(&[Fault::Kill], Duration::from_secs(4));
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-3: the same over servers that are stopped for longer than their lease and then go on.
#[test]
fn servers_are_stopped_beyond_their_lease() {
    let figures = run(&[Fault::Sleep], Duration::from_secs(2));
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-3: the same over servers that leave, under load.
#[test]
fn servers_leave_under_load() {
    let figures = run(&[Fault::Drain], Duration::from_secs(3));
    assert!(figures.moved > 0, "{figures:?}");
}

/// DIST-6, DIST-2: the same over crashes of Postgres.
#[test]
fn the_database_crashes() {
    run(&[Fault::Database], Duration::from_secs(4));
}
