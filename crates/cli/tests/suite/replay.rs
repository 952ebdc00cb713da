//! Offline replay of sessions.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, When};
use windlass_testkit::{Output, SimServer, WIRES, Workspace};

use super::agents::ledger;
use super::support::{Dice, script, variable, with_replies, workspace};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

fn session(workspace: &Workspace) -> String {
    let listed = run(workspace, &["sessions", "list", "--json"]);
    listed.json()[0]["id"].as_str().unwrap().to_owned()
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::call("bash", json!({"command": "echo one"}))
            .thinking("let me see")
            .and_call("write_file", json!({"path": "a.txt", "content": "x"})),
        Reply::text("").fault(Fault::status(429)),
        Reply::call("read_file", json!({"path": "nothing.txt"})),
        Reply::call("no_such_tool", json!({})),
        Reply::raw_call("bash", "{\"command\": \"l"),
        Reply::text("first answer"),
        Reply::call(
            "todo",
            json!({"items": [{"content": "later", "status": "pending"}]}),
        ),
        Reply::text("too early"),
        Reply::call(
            "todo",
            json!({"items": [{"content": "later", "status": "completed"}]}),
        ),
        Reply::text("second answer"),
    ]
}

/// OBS-2: whatever happened in a session, its replay sends byte for byte the same requests and produces the
/// same history, on every wire; no tool runs and no model is called.
#[test]
fn a_session_comes_out_the_same() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, replies());
        run(&workspace, &["exec", "first"]).assert_code(0);
        run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
        let asked = sim.count();
        fs::remove_file(workspace.path().join("a.txt")).unwrap();
        let replayed = run(&workspace, &["replay", &session(&workspace)]);
        let text = &replayed.assert_code(0).stdout;
        assert_eq!(text.matches("the same   ").count(), 2, "{wire:?}: {replayed}");
        assert!(
            text.contains(&format!(
                "{asked} of {asked} recorded requests replayed, byte for byte identical"
            )),
            "{wire:?}: {replayed}"
        );
        assert_eq!(sim.count(), asked, "nobody was asked");
        assert!(!workspace.has("a.txt"), "nothing was run");
        let part = run(&workspace, &["replay", &session(&workspace), "--to", "2"]);
        part.assert_code(0);
        assert!(
            part.stdout.contains("stopped here") && part.stdout.contains("2 of "),
            "{part}"
        );
    }
}

/// OBS-2: a compaction in the middle of a session is replayed as well.
#[test]
fn compaction_is_driven_again() {
    let long = "word ".repeat(3_000);
    let calls = (0..6).map(|number| {
        Reply::call(
            "write_file",
            json!({"path": format!("{number}.txt"), "content": long}),
        )
    });
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        calls.chain([Reply::text("an answer").forever()]),
    );
    let window = ["-c", "models.sim-1.context_window=16000"];
    let first = run(
        &workspace,
        &[&["exec", "-o", "stream-json"], &window[..], &["go"]].concat(),
    );
    assert!(
        !first.assert_code(0).events_of("compaction").is_empty(),
        "{first}"
    );
    let replayed = run(
        &workspace,
        &[&["replay"], &window[..], &[&session(&workspace)]].concat(),
    );
    replayed.assert_code(0);
    assert!(replayed.stdout.contains("the history is identical"), "{replayed}");
}

/// OBS-2: a difference is reported with its request and byte, and has its own exit code.
#[test]
fn a_difference_is_named() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("yes"), Reply::text("and no")]);
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
    let file = workspace.home().join("data/windlass.db");
    let changed = Command::new("python3")
        .arg("-c")
        .arg(format!(
            "import sqlite3; c = sqlite3.connect('{}'); c.execute(\"update entry set payload = replace(payload, 'first', 'worst')\"); c.commit()",
            file.display()
        ))
        .status();
    assert!(
        changed.is_ok_and(|status| status.success()),
        "python3 cannot change the database"
    );
    let replayed = run(&workspace, &["replay", &session(&workspace)]);
    replayed.assert_code(1);
    for text in ["request 1 differs from byte", "first", "worst"] {
        assert!(replayed.stdout.contains(text), "{text}: {replayed}");
    }
}

/// OBS-2: the recording contains no key, is readable only by its user, and ends at the size limit.
#[test]
fn what_is_kept_is_private() {
    let replies = [Reply::text("yes").forever()];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.use_sim_with(&sim, Protocol::Anthropic, "key_env = \"TEST_KEY\"\n");
    let exec = |args: &[&str]| {
        let run = workspace
            .run(args)
            .env("TEST_KEY", "sk-very-secret-key-1234567890");
        run.output()
    };
    exec(&["exec", "my key is sk-very-secret-key-1234567890, is it good?"]).assert_code(0);
    let replayed = exec(&["replay", &session(&workspace)]);
    replayed.assert_code(0);
    exec(&[
        "exec",
        "--continue",
        "-c",
        "session.record_max_mb=1",
        &"long ".repeat(20_000),
    ])
    .assert_code(0);
    exec(&["exec", "-c", "session.record=false", "not kept"]).assert_code(0);
    let none = exec(&["replay", &session(&workspace)]);
    none.assert_code(2).assert_says("has no recording");
    let missing = exec(&["replay", "nothing"]);
    missing.assert_code(2).assert_says("there is no session nothing");
}

/// OBS-2: a new session starts in the middle of another, optionally with a different input.
#[test]
fn a_session_continues_from_its_middle() {
    let replies = [
        Reply::call("bash", json!({"command": "echo one"})),
        Reply::text("first answer"),
        Reply::text("second answer"),
        Reply::text("another answer"),
    ];
    let (sim, workspace) = with_replies(Protocol::Responses, replies);
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
    let id = session(&workspace);
    let forked = run(&workspace, &["replay", &id, "--fork-at", "3"]);
    let new = forked.assert_code(0).stdout.lines().next().unwrap().to_owned();
    let exported = run(&workspace, &["sessions", "export", &new]);
    assert!(
        exported.stdout.contains("second") && !exported.stdout.contains("second answer"),
        "{exported}"
    );
    let edited = run(
        &workspace,
        &["replay", &id, "--fork-at", "3", "--edit", "something else"],
    );
    assert_eq!(edited.assert_code(0).stdout.trim(), "another answer");
    let outlines = sim.outlines();
    let last = outlines.last().unwrap();
    assert!(
        last.contains("something else") && !last.contains("user second"),
        "{last}"
    );
    sim.assert_valid();
    run(&workspace, &["replay", &id, "--fork-at", "9"])
        .assert_code(2)
        .assert_says("there is no request 9");
    run(&workspace, &["replay", &id, "--edit", "x"]).assert_code(2);
}

/// OBS-2: a session becomes a standalone test that fails when an answer changes.
#[test]
fn a_session_becomes_a_test() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second\nwith two lines"]).assert_code(0);
    let folder = workspace.path().join("fixture");
    let shown = folder.display().to_string();
    let id = session(&workspace);
    run(&workspace, &["sessions", "export", &id, "--fixture", &shown]).assert_code(0);
    run(&workspace, &["sessions", "export", &id, "--fixture", &shown])
        .assert_code(2)
        .assert_says("nothing was written");
    let test = || {
        Command::new("sh")
            .arg(folder.join("run.sh"))
            .env("WINDLASS", env!("CARGO_BIN_EXE_windlass"))
            .output()
            .unwrap()
    };
    let passed = test();
    let text = String::from_utf8_lossy(&passed.stderr);
    assert!(passed.status.success(), "{text}");
    fs::write(folder.join("turns/0002.answer"), "something else\n").unwrap();
    assert!(!test().status.success());
}

/// OBS-2, EVT-6: the exported JSON of a session is still complete with recording on.
#[test]
fn recording_does_not_change_exports() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("yes")]);
    run(&workspace, &["exec", "first"]).assert_code(0);
    let exported = run(
        &workspace,
        &["sessions", "export", "--format", "json", &session(&workspace)],
    );
    let object: Value = exported.assert_code(0).json();
    assert!(
        object["entries"]
            .as_array()
            .is_some_and(|entries| entries.len() >= 4),
        "{object}"
    );
}

/// Something that happens in a turn of a generated session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happening {
    Answered,
    Called,
    Failed,
    Denied,
    Retried,
    Broken,
    CanceledCall,
    CanceledReply,
    Long,
    Compacted,
    /// Another model stands in for one step.
    StoodIn,
    /// Another model stands in for the last step.
    StoodInLast,
    /// A sub-agent works in the turn.
    Child,
}

const HAPPENINGS: [Happening; 13] = [
    Happening::Answered,
    Happening::Called,
    Happening::Failed,
    Happening::Denied,
    Happening::Retried,
    Happening::Broken,
    Happening::CanceledCall,
    Happening::CanceledReply,
    Happening::Long,
    Happening::Compacted,
    Happening::StoodIn,
    Happening::StoodInLast,
    Happening::Child,
];

/// A failure that the retries of [`check_replay`] do not survive when it comes three times.
fn down() -> Reply {
    Reply::text("").fault(Fault::status(529).header("retry-after", "0"))
}

impl Happening {
    /// Returns the replies of a turn, which are used in no other turn.
    fn replies(self, turn: usize) -> Vec<Reply> {
        let bash = |command: &str| Reply::call("bash", json!({ "command": command }));
        let answer = || Reply::text(&format!("answer {turn}"));
        let replies = match self {
            Self::Answered | Self::Compacted => vec![answer().thinking("hm")],
            Self::Called => vec![
                bash("echo one").and_call("list_directory", json!({})),
                Reply::call("write_file", json!({ "path": "a.txt", "content": "x" })).say("writing"),
                answer(),
            ],
            Self::Failed => vec![
                Reply::call("read_file", json!({ "path": "nothing.txt" })),
                Reply::call("no_such_tool", json!({})),
                Reply::raw_call("bash", "{\"command\": \"l"),
                answer(),
            ],
            Self::Denied => vec![
                bash("git push").and_call("bash", json!({ "command": "echo two" })),
                answer(),
            ],
            Self::Retried => vec![
                Reply::text("").fault(Fault::status(429).header("retry-after", "0")),
                Reply::text("").fault(Fault::status(500)),
                answer(),
            ],
            Self::Broken => vec![answer().fault(Fault::new().cut_after_events(3)), answer()],
            Self::CanceledCall => vec![bash(&format!("echo > started-{turn}; sleep 600"))],
            Self::CanceledReply => vec![answer().fault(Fault::new().stall_after_events(3))],
            Self::Long => vec![bash("seq 4000"), answer()],
            Self::StoodIn => [down(), down(), down(), answer()].to_vec(),
            Self::StoodInLast => [down(), down(), down()].to_vec(),
            Self::Child => vec![
                Reply::call(
                    "agent",
                    json!({ "task": format!("look {turn}"), "type": "explorer" }),
                ),
                answer(),
            ],
        };
        let own = When::new().user_contains(&format!("turn {turn}."));
        let replies = replies.into_iter().map(|reply| reply.when(own.clone()));
        let below = Reply::text(&format!("found {turn}"));
        let task = When::new()
            .user_contains(&format!("look {turn}"))
            .system_contains("started for one task");
        let below = (self == Self::Child).then(|| below.when(task));
        below.into_iter().chain(replies).collect()
    }

    /// Returns the replies of the model that stands in.
    fn stand_in(self, turn: usize) -> Option<Reply> {
        let reply = match self {
            Self::StoodIn => Reply::call("bash", json!({ "command": "echo two" })),
            Self::StoodInLast => Reply::text(&format!("stood in {turn}")),
            _ => return None,
        };
        Some(reply.when(When::new().user_contains(&format!("turn {turn}."))))
    }
}

/// Runs a session in which these things happen, one per turn, and replays it.
fn check_replay(wire: Protocol, happenings: &[Happening]) {
    let replies = happenings.iter().enumerate();
    let replies = replies.flat_map(|(turn, happening)| happening.replies(turn));
    // Summaries are asked for without the words of a turn.
    let replies = replies.chain([Reply::text("a summary").forever()]);
    let sim = SimServer::script(script(replies));
    let stand_ins = happenings.iter().enumerate();
    let stand_ins = stand_ins.filter_map(|(turn, happening)| happening.stand_in(turn));
    let other = SimServer::script(script(stand_ins));
    let workspace = workspace();
    let more = format!(
        "\n[providers.other]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"sim-2\"\n",
        other.url()
    );
    workspace.use_sim_with(&sim, wire, &more);
    let options = [
        "models.sim-1.context_window=16000",
        "models.sim-2.context_window=16000",
        "retry.max_delay_secs=1",
        "retry.max_retries=2",
        "retry.fallback_secs=0",
        "fallback=[\"other/sim-2\"]",
    ];
    let options = options.map(|option| ["-c", option]).concat();
    for (turn, happening) in happenings.iter().enumerate() {
        let go_on: &[&str] = if turn == 0 { &[] } else { &["--continue"] };
        let words = format!("turn {turn}. Go on.");
        let arguments = [&["exec"], &options[..], go_on, &[&words]].concat();
        let asked = sim.count();
        match happening {
            Happening::CanceledCall | Happening::CanceledReply => {
                let mut running = workspace.run(&arguments).start();
                running.wait_until("the turn is in the middle", |_| match happening {
                    Happening::CanceledCall => workspace.has(&format!("started-{turn}")),
                    _ => sim.count() > asked,
                });
                running.interrupt();
                running.output().assert_code(130);
            }
            Happening::Denied => {
                run(&workspace, &arguments).assert_code(5);
            }
            Happening::Compacted => {
                run(&workspace, &arguments).assert_code(0);
                run(
                    &workspace,
                    &[&["exec"], &options[..], &["--continue", "/compact"]].concat(),
                );
            }
            _ => {
                run(&workspace, &arguments).assert_code(0);
            }
        }
    }
    let replay = |session: &str| run(&workspace, &[&["replay"], &options[..], &[session]].concat());
    for agent in ledger(&workspace) {
        let replayed = replay(agent["session"].as_str().unwrap());
        assert!(
            replayed.code == Some(0) && replayed.stdout.contains("the history is identical"),
            "{wire:?} {happenings:?}: a sub-agent\n{replayed}"
        );
    }
    let replayed = replay(&session(&workspace));
    let fork = ["--continue", "--fork", "go on elsewhere"];
    run(&workspace, &[&["exec"], &options[..], &fork].concat()).assert_code(0);
    let forked = replay(&session(&workspace));
    assert!(
        forked.code == Some(0) && forked.stdout.contains("byte for byte identical"),
        "{wire:?} {happenings:?}: forked\n{forked}"
    );
    // A request that is canceled before any byte of its answer is not recorded.
    let unanswered = happenings.iter().filter(|one| **one == Happening::CanceledReply);
    let missing = replayed.stdout.matches("not recorded").count();
    assert!(
        replayed.code == Some(0)
            && replayed.stdout.contains("byte for byte identical")
            && missing <= unanswered.count(),
        "{wire:?} {happenings:?}\n{replayed}"
    );
}

/// OBS-2, PROV-13: a replay follows a session through the models that stood in, also when one had the last word, and when
/// nothing listened at the address of the first; a sub-agent is replayed like any session.
#[test]
fn stand_ins_are_replayed() {
    check_replay(
        Protocol::Anthropic,
        &[
            Happening::StoodInLast,
            Happening::Child,
            Happening::StoodIn,
            Happening::StoodInLast,
            Happening::Answered,
        ],
    );
    let other = SimServer::script(script([
        Reply::call("bash", json!({ "command": "echo two" })),
        Reply::text("the last word"),
    ]));
    let workspace = workspace();
    workspace.config(&format!(
        "provider = \"gone\"\nfallback = [\"other/sim-2\"]\n[retry]\nmax_delay_secs = 0\nfallback_secs = 0\n\
         [providers.gone]\nwire = \"anthropic-messages\"\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"sim-1\"\n\
         [providers.other]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"sim-2\"\n",
        other.url()
    ));
    let output = run(&workspace, &["exec", "go"]);
    assert_eq!(output.assert_code(0).stdout, "the last word\n");
    let replayed = run(&workspace, &["replay", &session(&workspace)]);
    replayed.assert_code(0);
    assert!(replayed.stdout.contains("the history is identical"), "{replayed}");
}

/// OBS-2: the replay of any session is exact: answered, failed, denied, canceled, retried, broken off and compacted
/// turns, turns with sub-agents and with models that stand in, in any order, on every wire.
/// `WINDLASS_REPLAY_SESSIONS` sets the number of sessions.
#[test]
fn generated_sessions_come_out_the_same() {
    let mut dice = Dice::new(variable("WINDLASS_REPLAY_SEED", 1));
    let pick = |dice: &mut Dice, count: usize| usize::try_from(dice.roll(count as u64)).unwrap();
    for _ in 0..variable("WINDLASS_REPLAY_SESSIONS", 6) {
        let wire = WIRES[pick(&mut dice, WIRES.len())];
        let turns = 2 + pick(&mut dice, 4);
        let happenings: Vec<Happening> = (0..turns)
            .map(|_| HAPPENINGS[pick(&mut dice, HAPPENINGS.len())])
            .collect();
        check_replay(wire, &happenings);
    }
}
