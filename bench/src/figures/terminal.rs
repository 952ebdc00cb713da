//! The terminal UI, compared with others if they are available.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{median, milliseconds, told};
use crate::lab::Lab;
use crate::peers::sessions::shows_last;
use crate::peers::{Guest, Program, Who};
use crate::process::{Memory, tree_cpu, tree_memory, tree_run_time};
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::terminal::Terminal;
use crate::wire::{LAST_WORD, talk};

/// Maximum time until a program is ready.
const START: Duration = Duration::from_secs(120);
/// Maximum time until a reply is shown.
const REPLY: Duration = Duration::from_secs(240);
/// Pause between one key's echo and the next key: faster than anybody types, slower than screens are drawn.
const PAUSE: Duration = Duration::from_millis(40);
/// Number of letters to type before they are deleted.
const LETTERS: usize = 40;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let programs = Program::all(lab);
    let party = |home| Party::new(lab, &programs, home);
    let mut figures = vec![first_frame(lab, party("start")?)?];
    figures.extend(big_session(lab, party("open")?)?);
    figures.extend(streaming(lab, party("stream")?)?);
    Ok(figures)
}

/// Measures the time from before the start of the process until its input is shown, one program after the
/// other.
fn first_frame(lab: &Lab, mut party: Party) -> Result<Figure> {
    let rounds = if lab.quick { 3 } else { 11 };
    // The first start creates files that all others find.
    party.each(|guest| start(lab, guest))?;
    let mut rows = Vec::new();
    for _ in 0..rounds {
        rows.extend(party.each(|guest| start(lab, guest))?);
    }
    Ok(beside("start to the first frame", &medians(&rows), told, "ms"))
}

fn start(lab: &Lab, guest: &Guest) -> Result<f64> {
    let server = lab.serve(&ServeOptions {
        talk: true,
        ..ServeOptions::new(guest.who.wire(), 0)
    })?;
    let mut terminal = Terminal::start(guest.command(lab, server.port, None)?)?;
    let ready = terminal.wait("composer", START, |screen| guest.who.is_ready(&screen.contents()))?;
    let time = milliseconds(terminal.begun, ready);
    // A program killed during its start would leave unfinished files for the next one.
    terminal.settle(START)?;
    drop(terminal);
    server.finish()?;
    Ok(time)
}

/// Cost of an open session of many messages.
struct Opened {
    /// Time until its last message was on the screen, in milliseconds.
    time: f64,
    /// Memory in megabytes.
    memory: f64,
    /// Times from a key to its echo, in milliseconds, sorted.
    keys: Vec<f64>,
    /// Processor time while nothing happened, in seconds.
    idle: f64,
}

fn big_session(lab: &Lab, mut party: Party) -> Result<Vec<Figure>> {
    let messages = if lab.quick { 2_000 } else { 20_000 };
    let idle = Duration::from_secs(if lab.quick { 5 } else { 30 });
    let opened = party.each(|guest| open(lab, guest, messages, idle))?;
    let row = |pick: fn(&Opened) -> f64| -> Vec<(Who, f64)> {
        opened.iter().map(|(who, opened)| (*who, pick(opened))).collect()
    };
    let at_most = |name: String, row: &[(Who, f64)], told: fn(f64) -> String, unit, most| Figure {
        value: of(row, Who::Windlass).unwrap_or(f64::MAX),
        unit,
        target: Target::AtMost(most),
        ..beside(&name, row, told, unit)
    };
    let name = format!("opening {messages} messages on a terminal");
    Ok(vec![
        beside(&name, &row(|opened| opened.time), told, "ms"),
        beside(
            "from a key to its echo in that session, half of them",
            &row(|opened| percentile(&opened.keys, 50)),
            told,
            "ms",
        ),
        beside(
            "from a key to its echo in that session, 99 of 100",
            &row(|opened| percentile(&opened.keys, 99)),
            told,
            "ms",
        ),
        at_most(
            "memory with that session on a terminal".to_owned(),
            &row(|opened| opened.memory),
            |value| format!("{value:.1} MB"),
            "MB",
            60.0,
        ),
        at_most(
            format!("processor time in {} s of doing nothing", idle.as_secs()),
            &row(|opened| opened.idle),
            |value| format!("{value:.4} s"),
            "s",
            0.01,
        ),
    ])
}

#[allow(clippy::cast_precision_loss)]
fn open(lab: &Lab, guest: &Guest, messages: usize, idle: Duration) -> Result<Opened> {
    let session = guest.fill(lab, messages)?;
    let server = lab.serve(&ServeOptions {
        talk: true,
        ..ServeOptions::new(guest.who.wire(), 0)
    })?;
    let who = guest.who;
    let ready = |terminal: &mut Terminal| {
        let ready = terminal.wait("last message", START, |screen| {
            let screen = screen.contents();
            who.is_ready(&screen) && shows_last(who, &screen)
        })?;
        let time = milliseconds(terminal.begun, ready);
        terminal.settle(START).map(|()| time)
    };
    // Some programs build an index when a session is opened for the first time.
    ready(&mut Terminal::start(guest.command(
        lab,
        server.port,
        Some(&session),
    )?)?)?;
    let mut terminal = Terminal::start(guest.command(lab, server.port, Some(&session))?)?;
    let time = ready(&mut terminal)?;
    let memory = tree_memory(terminal.pid()) as f64 / 1_024.0;
    let keys = keys(&mut terminal, if lab.quick { LETTERS } else { 5 * LETTERS })?;
    terminal.rest(Duration::from_secs(2))?;
    let before = tree_run_time(terminal.pid());
    terminal.rest(idle)?;
    let idle = tree_run_time(terminal.pid()) - before;
    drop(terminal);
    server.finish()?;
    Ok(Opened {
        time,
        memory,
        keys,
        idle,
    })
}

/// Returns the times from each key to the picture with it, sorted. Letters are typed and deleted again.
fn keys(terminal: &mut Terminal, count: usize) -> Result<Vec<f64>> {
    let seen = |screen: &vt100::Screen| screen.contents().matches('Q').count();
    let mut wanted = terminal.contents().matches('Q').count();
    let mut times = Vec::new();
    for number in 0..count {
        let key = if (number / LETTERS).is_multiple_of(2) {
            wanted += 1;
            "Q"
        } else {
            wanted -= 1;
            "\x7f"
        };
        let pressed = crate::clock::now();
        terminal.press(key)?;
        let shown = terminal.wait("echo", START, |screen| seen(screen) == wanted)?;
        times.push(milliseconds(pressed, shown));
        terminal.rest(PAUSE)?;
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Cost of a streamed reply.
struct Streamed {
    /// Processor time of the whole run, in seconds.
    cpu: f64,
    /// Bytes to the terminal for each kilobyte of the reply.
    bytes: f64,
}

fn streaming(lab: &Lab, mut party: Party) -> Result<Vec<Figure>> {
    let (rounds, deltas, paced) = if lab.quick {
        (1, 20_000, 1_000)
    } else {
        (7, 20_000, 5_000)
    };
    let reply = |wire, deltas, delay_ms| ServeOptions {
        deltas,
        delay_ms,
        talk: true,
        ..ServeOptions::new(wire, 0)
    };
    let run =
        |guest: &Guest, deltas, delay_ms| stream(lab, guest, &reply(guest.who.wire(), deltas, delay_ms));
    let fast = party.each(|guest| run(guest, deltas, 0))?;
    let slow = party.each(|guest| run(guest, paced, 1))?;
    // The first run of Windlass belonged to the comparison with the others.
    let guest = party.guests.first().context("no program to measure")?;
    let (mut exec, mut own) = (0.0, 0.0);
    for _ in 0..rounds {
        let options = reply(guest.who.wire(), deltas, 0);
        let (cost, _) = lab.measure(&options, Memory::Ignored, |server| {
            lab.agent(server, options.wire, "text")
        })?;
        exec += cost.cpu;
        own += stream(lab, guest, &options)?.cpu;
    }
    let seconds = |value: f64| format!("{value:.2} s");
    let row = |streamed: &[(Who, Streamed)], pick: fn(&Streamed) -> f64| -> Vec<(Who, f64)> {
        let pick = |(who, streamed): &(Who, Streamed)| (*who, pick(streamed));
        streamed.iter().map(pick).collect()
    };
    let bytes = |value: f64| format!("{value:.0} bytes");
    Ok(vec![
        Figure {
            name: format!("processor time of {deltas} deltas on a terminal (floor: exec)"),
            agent: seconds(own / f64::from(rounds)),
            floor: seconds(exec / f64::from(rounds)),
            value: own / exec,
            unit: "×",
            target: Target::AtMost(3.0),
        },
        beside(
            "processor time of those deltas",
            &row(&fast, |streamed| streamed.cpu),
            seconds,
            "s",
        ),
        beside(
            "bytes to the terminal for a kilobyte of them",
            &row(&fast, |streamed| streamed.bytes),
            bytes,
            "bytes",
        ),
        beside(
            "bytes to the terminal for a kilobyte at 1000 deltas a second",
            &row(&slow, |streamed| streamed.bytes),
            bytes,
            "bytes",
        ),
    ])
}

/// Runs one turn with a reply, from the start of the program until the reply is shown and the screen is
/// still.
#[allow(clippy::cast_precision_loss)]
fn stream(lab: &Lab, guest: &Guest, options: &ServeOptions) -> Result<Streamed> {
    let server = lab.serve(options)?;
    let mut terminal = Terminal::start(guest.command(lab, server.port, None)?)?;
    terminal.wait("composer", START, |screen| guest.who.is_ready(&screen.contents()))?;
    terminal.settle(START)?;
    terminal.write("go")?;
    let before = terminal.bytes;
    terminal.press("\r")?;
    terminal.wait("end of the reply", REPLY, |screen| {
        screen.contents().contains(LAST_WORD)
    })?;
    terminal.settle(Duration::from_secs(5))?;
    let written = (terminal.bytes - before) as f64;
    let cpu = tree_cpu(terminal.pid());
    drop(terminal);
    server.finish()?;
    let said: usize = talk(options.deltas).iter().map(String::len).sum();
    Ok(Streamed {
        cpu,
        bytes: written / (said as f64 / 1_024.0),
    })
}

/// The programs to compare, Windlass first.
struct Party {
    guests: Vec<Guest>,
}

impl Party {
    fn new(lab: &Lab, programs: &[Program], home: &str) -> Result<Self> {
        let guests: Result<_> = programs
            .iter()
            .map(|program| Guest::new(lab, program, home))
            .collect();
        Ok(Self { guests: guests? })
    }

    /// Runs the same for each. A peer that fails is left out; Windlass must not fail.
    fn each<T>(&mut self, run: impl Fn(&Guest) -> Result<T>) -> Result<Vec<(Who, T)>> {
        let mut row = Vec::new();
        for guest in std::mem::take(&mut self.guests) {
            match run(&guest) {
                Ok(value) => {
                    row.push((guest.who, value));
                    self.guests.push(guest);
                }
                Err(error) if guest.who == Who::Windlass => return Err(error),
                Err(error) => eprintln!("  without {}: {error:#}", guest.who.name()),
            }
        }
        Ok(row)
    }
}

/// Builds a figure that compares Windlass with the better of the available peers.
fn beside(name: &str, row: &[(Who, f64)], told: fn(f64) -> String, unit: &'static str) -> Figure {
    let peers = [Who::Codex, Who::Pi];
    let cell = |who| of(row, who).map_or("–".to_owned(), told);
    let floor = peers.map(|who| format!("{} {}", who.name(), cell(who)));
    let own = of(row, Who::Windlass).unwrap_or(f64::MAX);
    let best = peers
        .iter()
        .filter_map(|who| of(row, *who))
        .min_by(f64::total_cmp);
    let (value, unit, target) = match best {
        Some(best) => (own / best, "×", Target::AtMost(1.0)),
        None => (own, unit, Target::None),
    };
    Figure {
        name: name.to_owned(),
        agent: cell(Who::Windlass),
        floor: floor.join(", "),
        value,
        unit,
        target,
    }
}

fn of(row: &[(Who, f64)], who: Who) -> Option<f64> {
    row.iter()
        .find(|(other, _)| *other == who)
        .map(|(_, value)| *value)
}

/// Returns the median of each program.
fn medians(rows: &[(Who, f64)]) -> Vec<(Who, f64)> {
    let of = |who: Who| -> Vec<f64> {
        let own = rows.iter().filter(|(other, _)| *other == who);
        own.map(|(_, value)| *value).collect()
    };
    let columns = Who::ALL.map(|who| (who, of(who)));
    let had = columns.into_iter().filter(|(_, values)| !values.is_empty());
    had.map(|(who, values)| (who, median(values))).collect()
}

/// Returns a percentile of sorted values.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let at = (values.len().saturating_sub(1) * percent).div_ceil(100);
    values.get(at).copied().unwrap_or_default()
}
