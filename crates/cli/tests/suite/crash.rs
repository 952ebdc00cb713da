//! The program is killed at any moment, and everything it acknowledged is there after a restart.
//!
//! `WINDLASS_CRASH_RUNS` sets the number of runs, `WINDLASS_CRASH_SEED` the seed of the random numbers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::log::INTERRUPTED_TEXT;
use windlass_sim::{Fault, Reply, Script, When};
use windlass_testkit::{Output, Running, Signal, SimServer, WIRES, Workspace, eventually};

use super::support::{Dice, variable, workspace};

const RUNS: u64 = 80;
const SEED: u64 = 20_261_115;
const THREADS: usize = 4;

/// Rough duration of a whole turn here; kills come before and after that.
const TURN: u64 = 500;

/// Moment at which the process is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// This long after its start.
    After(u64),
    /// This long after the model has seen this many requests.
    Request(u64, u64),
    /// During this reply, which stalls after this many events.
    InReply(u64, u64),
}

impl Moment {
    fn pick(dice: &mut Dice) -> Self {
        match dice.roll(3) {
            0 => Self::After(dice.roll(TURN)),
            1 => Self::Request(1 + dice.roll(4), dice.roll(120)),
            _ => Self::InReply(1 + dice.roll(4), 2 + dice.roll(12)),
        }
    }

    /// Waits for that moment, or for the end of the process.
    fn wait(self, sim: &SimServer) {
        let (requests, then) = match self {
            Self::After(then) => (0, then),
            Self::Request(requests, then) => (requests, then),
            Self::InReply(requests, _) => (requests, 0),
        };
        let seen = || sim.count() as u64 >= requests;
        eventually(Duration::from_millis(4 * TURN), seen);
        eventually(Duration::from_millis(then), || false);
    }
}

/// Four requests with six calls, each of which leaves a mark; any later request is answered with "went on".
fn script(moment: Moment) -> Script {
    let mark = |id: &str| json!({ "command": format!("echo {id} >> ran.txt; sleep 0.02") });
    let file = |id: &str| json!({ "path": format!("{id}.txt"), "content": id });
    let words = "I look at this and then I do what is to be done here, one thing after the other. ";
    let replies = [
        Reply::call("bash", mark("c1"))
            .id("c1")
            .and_call("bash", mark("c2"))
            .id("c2"),
        Reply::call("write_file", file("c3"))
            .id("c3")
            .and_call("bash", mark("c4"))
            .id("c4"),
        Reply::call("bash", mark("c5"))
            .id("c5")
            .and_call("bash", mark("c6"))
            .id("c6"),
        Reply::text(""),
    ];
    let mut script = Script::new().reply(
        Reply::text("went on")
            .when(When::new().user_contains("go on"))
            .forever(),
    );
    for (number, reply) in (1..).zip(replies) {
        let fault = match moment {
            Moment::InReply(stalled, events) if stalled == number => {
                Fault::new().stall_after_events(usize::try_from(events).unwrap())
            }
            _ => Fault::new().delay_ms(10),
        };
        script = script.reply(reply.say(&words.repeat(2)).delta_chars(12).fault(fault));
    }
    script
}

/// Number of events after which a reply has some text.
const TEXT: u64 = 6;

/// Returns the number of replies whose text the program has begun to show.
fn shown(output: &str) -> u64 {
    let begins = |line: &&str| line.contains(r#""type":"delta""#) && line.contains(FIRST_WORDS);
    output.lines().filter(begins).count() as u64
}

/// Text at the start of every reply.
const FIRST_WORDS: &str = "I look at";

/// One session that is killed one or more times.
struct Crash {
    context: String,
    sim: SimServer,
    workspace: Workspace,
}

impl Crash {
    fn new(number: u64, moment: Moment) -> Self {
        let wire = WIRES[usize::try_from(number).unwrap() % WIRES.len()];
        let sim = SimServer::script(script(moment));
        let workspace = workspace();
        workspace.use_sim(&sim, wire);
        Self {
            context: format!("run {number}, {moment:?}, {wire}"),
            sim,
            workspace,
        }
    }

    /// Returns the output so far of a killed process.
    fn kill(&self, run: Running, moment: Moment) -> Output {
        moment.wait(&self.sim);
        if let Moment::InReply(number, TEXT..) = moment
            && eventually(Duration::from_secs(2), || shown(&run.stdout()) >= number)
        {
            // What has been shown is stored soon, not at once.
            eventually(Duration::from_millis(250), || false);
        }
        run.signal(Signal::KILL);
        run.output()
    }

    /// Returns the stored entries, which must exist whatever happened.
    fn record(&self) -> Option<Value> {
        let listed = self
            .workspace
            .run(&["sessions", "list", "--all", "--json"])
            .output();
        listed.assert_code(0);
        let id = listed.json()[0]["id"].as_str()?.to_owned();
        let record = self
            .workspace
            .run(&["sessions", "export", &id, "--format", "json"])
            .output();
        Some(record.assert_code(0).json())
    }

    /// Checks that everything acknowledged is stored: everything the program reported as stored, and
    /// everything that was part of a request.
    fn check_acknowledged(&self, output: &Output, record: Option<&Value>) {
        let entries = entries(record);
        let said: Vec<Value> = output
            .stdout
            .lines()
            // The last line may be incomplete.
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|event: &Value| event["type"] == "message")
            .collect();
        for event in &said {
            let stored = entries.iter().any(|entry| entry["message"] == event["message"]);
            assert!(stored, "{}: lost {event}\n{output}", self.context);
        }
        let of_role = |role: &str| {
            entries
                .iter()
                .filter(|entry| entry["message"]["role"] == role)
                .count()
        };
        let asked = self.sim.count();
        if asked > 0 {
            let prompt = entries[0]["message"]["parts"].to_string();
            assert!(prompt.contains("work on it"), "{}: {prompt}", self.context);
            assert!(
                of_role("assistant") >= asked - 1,
                "{}: a reply is lost",
                self.context
            );
            assert!(of_role("tool") >= asked - 1, "{}: results are lost", self.context);
        }
    }

    /// Resumes the session and checks its state.
    fn check_resumed(&self, by_name: bool, record: Option<&Value>, was_accepted: bool) {
        let id = record.and_then(|record| record["session"]["id"].as_str());
        let mut args = vec!["exec", "go on"];
        match id {
            Some(id) if by_name => args.extend(["--resume", id]),
            // Killed between the session and its first entry: there is nothing to continue, and a new session works.
            Some(_) if entries(record).is_empty() => {
                let refused = self.workspace.run(&["exec", "go on", "--continue"]).output();
                refused.assert_code(2).assert_says("to continue");
            }
            Some(_) => args.push("--continue"),
            None => {}
        }
        let resumed = self.workspace.run(&args).output();
        assert_eq!(resumed.code, Some(0), "{}\n{resumed}", self.context);
        assert_eq!(resumed.stdout, "went on\n", "{}", self.context);
        self.sim.assert_valid();
        let last = self.sim.requests().pop().unwrap();
        let request = String::from_utf8_lossy(&last.raw).into_owned();
        if was_accepted {
            assert!(
                request.contains("work on it"),
                "{}: the input is lost",
                self.context
            );
        }
        assert_eq!(
            request.contains(INTERRUPTED_TEXT),
            is_interrupted(&entries(record)),
            "{}: what the model is told of interrupted calls\n{}",
            self.context,
            last.seen.outline()
        );
        self.check_marks();
        // Only a file can be checked.
        if super::store::IS_FILE {
            let health = self.workspace.run(&["db", "check"]).output();
            health.assert_code(0);
            assert!(
                health.stdout.contains("no problems found"),
                "{}\n{health}",
                self.context
            );
        }
    }

    /// Checks that a partly received reply is stored as such.
    fn check_draft(&self, moment: Moment, asked: u64, output: &Output) {
        let Moment::InReply(number, TEXT..) = moment else {
            return;
        };
        if asked != number || shown(&output.stdout) < number {
            return;
        }
        let record = self.record();
        let half = entries(record.as_ref()).into_iter().any(|entry| {
            let text = entry.to_string();
            text.contains(FIRST_WORDS) && text.contains(r#""reason":"interrupted""#)
        });
        assert!(half, "{}: half a reply is lost", self.context);
    }

    /// Checks that a call with a result ran exactly once, and any other at most once.
    fn check_marks(&self) {
        let record = self.record();
        let entries = entries(record.as_ref());
        let marks = if self.workspace.has("ran.txt") {
            self.workspace.read("ran.txt")
        } else {
            String::new()
        };
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for mark in marks.lines() {
            *counts.entry(mark).or_default() += 1;
        }
        assert!(
            counts.values().all(|count| *count == 1),
            "{}: ran twice: {marks}",
            self.context
        );
        for result in entries.iter().filter(|entry| entry["type"] == "tool_result") {
            let id = result["call_id"].as_str().unwrap();
            let ran = match result["name"].as_str() {
                Some("write_file") => self.workspace.read(&format!("{id}.txt")) == id,
                _ => counts.contains_key(id),
            };
            assert!(
                ran,
                "{}: {id} has a result and has not run\n{marks}",
                self.context
            );
        }
    }
}

fn entries(record: Option<&Value>) -> Vec<Value> {
    record
        .and_then(|record| record["entries"].as_array().cloned())
        .unwrap_or_default()
}

/// Returns true if a call has no result, or was already reported as interrupted.
fn is_interrupted(entries: &[Value]) -> bool {
    let told = |entry: &Value| entry.to_string().contains(INTERRUPTED_TEXT);
    let messages: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "message")
        .collect();
    let Some(last) = messages.last() else { return false };
    let calls = last["message"]["parts"].as_array().unwrap().iter();
    let calls = calls
        .filter(|part| part["type"] == "tool_call")
        .map(|part| &part["data"]["id"]);
    let has_result = |id: &Value| {
        entries
            .iter()
            .any(|entry| entry["type"] == "tool_result" && entry["call_id"] == *id)
    };
    entries.iter().any(told) || calls.into_iter().any(|id| !has_result(id))
}

/// Describes the state of the process when it was killed.
fn phase(record: Option<&Value>) -> &'static str {
    let entries = entries(record);
    let has = |kind: &str| entries.iter().any(|entry| entry["type"] == kind);
    match () {
        () if entries.is_empty() => "before anything was accepted",
        () if is_interrupted(&entries) => "in a call",
        () if has("final") => "after the end",
        () => "between calls",
    }
}

fn crash(number: u64, seed: u64) -> &'static str {
    let mut dice = Dice::new(seed.wrapping_add(number));
    let moment = Moment::pick(&mut dice);
    let crash = Crash::new(number, moment);
    let run = crash
        .workspace
        .run(&["exec", "-o", "stream-json", "work on it"])
        .start();
    let output = crash.kill(run, moment);
    let mut record = crash.record();
    crash.check_acknowledged(&output, record.as_ref());
    let phase = phase(record.as_ref());
    let asked = crash.sim.count() as u64;
    // A second process may be accepted when the first one was not.
    let was_accepted = !entries(record.as_ref()).is_empty();
    if dice.roll(3) == 0
        && let Some(id) = record
            .as_ref()
            .and_then(|record| record["session"]["id"].as_str())
    {
        let run = crash.workspace.run(&["exec", "go on", "--resume", id]).start();
        crash.kill(run, Moment::After(dice.roll(TURN / 3)));
        record = crash.record();
    }
    crash.check_resumed(dice.roll(2) == 0, record.as_ref(), was_accepted);
    crash.check_draft(moment, asked, &output);
    phase
}

/// SES-4, SES-5: killed at any moment, the program loses nothing it acknowledged: the input is stored, a call
/// with a result ran once and does not run again, a call that may have run is reported to the model as
/// interrupted, the next request is valid, and the database is intact.
#[test]
fn nothing_is_lost_when_it_is_killed() {
    let (runs, seed) = (
        variable("WINDLASS_CRASH_RUNS", RUNS),
        variable("WINDLASS_CRASH_SEED", SEED),
    );
    let next = AtomicU64::new(0);
    let phases: Mutex<HashMap<&str, u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && number < runs
                {
                    let phase = crash(number, seed);
                    *phases.lock().unwrap().entry(phase).or_default() += 1;
                }
            });
        }
    });
    let phases = phases.into_inner().unwrap();
    println!("{runs} runs from seed {seed}: {phases:?}");
    // A run of the suite that never hits a call proves nothing.
    let hit = phases.get("in a call").copied().unwrap_or_default();
    assert!(runs < RUNS || hit >= runs / 20, "{phases:?}");
}
