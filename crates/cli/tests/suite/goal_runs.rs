//! Goals that are worked on without input.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply, When};
use windlass_testkit::{Output, Signal, SimServer, Workspace, eventually};

use super::support::{with_replies, workspace};

pub(super) fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Settings that make goals quick to test.
fn quick(sim: &SimServer, workspace: &Workspace, more: &str) {
    let settings =
        format!("\n[agent.goal]\nautonomous_enabled = true\nautonomous_turn_delay_ms = 0\n{more}\n");
    workspace.use_sim_with(sim, Protocol::Anthropic, &settings);
}

pub(super) fn goal(replies: impl IntoIterator<Item = Reply>, more: &str) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    quick(&sim, &workspace, more);
    (sim, workspace)
}

pub(super) fn write(path: &str, content: &str) -> Reply {
    Reply::call("write_file", json!({ "path": path, "content": content }))
}

fn verdict(achieved: bool, reason: &str) -> Reply {
    Reply::text(&json!({ "achieved": achieved, "reason": reason }).to_string())
        .when(When::new().user_contains("The end of the work:"))
}

pub(super) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// GOAL-3, GOAL-8: a check that fails after the first turn is shown to the model; when it passes, the goal is
/// reached.
#[test]
fn a_goal_is_reached_when_its_check_passes() {
    let (sim, workspace) = goal(
        [
            Reply::text("I had a look."),
            write("out.txt", "ok"),
            Reply::text("Wrote it."),
        ],
        "",
    );
    let check = "grep -q ok out.txt || { echo no ok here; exit 7; }";
    let done = run(
        &workspace,
        &[
            "exec",
            "-o",
            "stream-json",
            "--mode",
            "auto",
            "--goal",
            "make out.txt",
            "--check",
            check,
        ],
    );
    let events = done.assert_code(0).events();
    let checks = of_type(&events, "goal_check");
    assert_eq!(checks.len(), 2, "{done}");
    assert_eq!(
        (&checks[0]["passed"], &checks[0]["exit_code"]),
        (&json!(false), &json!(7))
    );
    assert_eq!(
        (&checks[1]["passed"], &checks[1]["exit_code"]),
        (&json!(true), &json!(0))
    );
    for check in checks {
        assert_eq!(check["output"].as_str().map(str::len), Some(64), "{check}");
        assert_eq!(check["tree"].as_str().map(str::len), Some(64), "{check}");
    }
    assert_eq!(of_type(&events, "goal_turn").len(), 2);
    let reached = of_type(&events, "goal_completed");
    assert_eq!((reached.len(), &reached[0]["how"]), (1, &json!("verified")));
    let last = events
        .iter()
        .rev()
        .find(|event| event["type"] == "goal_state")
        .unwrap();
    assert_eq!(last["state"], "completed");
    let second = &sim.requests()[1];
    let told = second.body.to_string();
    for words in ["make out.txt", "no ok here", "failed with exit code 7"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let why = run(&workspace, &["exec", "--continue", "/goal why"]);
    why.assert_code(0);
    assert!(why.stdout.contains(": passed\n"), "{why}");
    workspace.write("out.txt", "changed");
    let why = run(&workspace, &["exec", "--continue", "/goal why"]);
    assert!(
        why.stdout.contains("passed (stale: files changed since)"),
        "{why}"
    );
}

/// GOAL-3: without the setting, `--auto` is rejected; flags that are wrong are named.
#[test]
fn autonomy_is_off_by_default() {
    let workspace = workspace();
    for line in [
        "/goal create --auto win",
        "/goal --turns 3 win",
        "/goal create --check true win",
    ] {
        let refused = run(&workspace, &["exec", line]);
        refused.assert_code(1).assert_says("(--auto) is off");
    }
    let wrong = [
        (vec!["exec", "--goal"], "--goal needs a text"),
        (vec!["exec", "--goal", "x", "--turns", "0"], "--turns"),
        (vec!["exec", "--check", "true", "hi"], "--goal"),
    ];
    for (args, words) in wrong {
        run(&workspace, &args).assert_code(2).assert_says(words);
    }
}

/// GOAL-3, GOAL-9: each limit has its exit code, and the goal can be resumed afterwards.
#[test]
fn limits_pause_a_goal() {
    let (_sim, workspace) = goal(
        [
            Reply::text("one"),
            Reply::text("two"),
            Reply::text("three"),
            write("a", "x"),
            Reply::text("four"),
        ],
        "",
    );
    let args = [
        "exec",
        "--mode",
        "auto",
        "--goal",
        "g",
        "--check",
        "test -s a",
        "--turns",
        "2",
    ];
    let stopped = run(&workspace, &args);
    stopped
        .assert_code(11)
        .assert_says("the limit of 2 turns is reached");
    let told = run(&workspace, &["exec", "--continue", "/goal"]);
    assert!(
        told.stdout
            .contains("paused, turn 2 of 2: the limit of 2 turns is reached"),
        "{told}"
    );
    let resumed = run(&workspace, &["exec", "--mode", "auto", "--continue", "--goal"]);
    resumed.assert_code(0).assert_says("Goal: turn 4");
    let again = run(&workspace, &["exec", "--continue", "--goal"]);
    again.assert_code(1).assert_says("the goal is reached");
}

/// GOAL-3: the same answer three times, or the same blocker three times, blocks a goal.
#[test]
fn repetition_blocks_a_goal() {
    let (sim, workspace) = goal([Reply::text("I am  thinking.").forever()], "");
    let args = ["exec", "--goal", "g", "--check", "false"];
    run(&workspace, &args)
        .assert_code(13)
        .assert_says("3 turns in a row had the same answer");
    assert_eq!(sim.count(), 3);
    let (sim, workspace) = goal(
        [Reply::text("BLOCKED: no key\nSorry.").forever()],
        "max_stuck_count = 2",
    );
    run(&workspace, &args).assert_code(13).assert_says("no key");
    assert_eq!(sim.count(), 2);
}

/// GOAL-8: a check that hangs is killed and counts as failed.
#[test]
fn a_check_that_hangs_fails() {
    let (_sim, workspace) = goal([Reply::text("a"), Reply::text("b")], "check_timeout_secs = 1");
    let args = ["exec", "--goal", "g", "--check", "sleep 600", "--turns", "1"];
    let stopped = run(&workspace, &args);
    stopped
        .assert_code(11)
        .assert_says("Check failed: `sleep 600` (")
        .assert_says("1 s");
}

/// GOAL-8, UI-7: work towards a goal that takes longer than `--timeout` ends as a run without a goal does.
#[test]
fn the_time_of_a_goal_is_limited() {
    let (_sim, workspace) = goal([Reply::text("a")], "");
    let args = [
        "exec",
        "-o",
        "json",
        "--goal",
        "g",
        "--check",
        "sleep 600",
        "--timeout",
        "1",
    ];
    let stopped = run(&workspace, &args);
    stopped.assert_code(1);
    assert_eq!(stopped.json()["error"]["kind"], "timeout", "{stopped}");
}

/// GOAL-4, GOAL-8: without a check the supervisor decides, and its yes is only believed. Its cost is booked.
#[test]
fn the_supervisor_decides_without_checks() {
    let replies = [
        verdict(false, "no file"),
        verdict(true, "the file is there"),
        Reply::text("Task complete."),
        Reply::text("Now it is really done."),
    ];
    let (_sim, workspace) = goal(replies, "");
    let done = run(&workspace, &["exec", "-o", "stream-json", "--goal", "g"]);
    let events = done.assert_code(0).events();
    let verdicts = of_type(&events, "goal_verdict");
    assert_eq!(verdicts.len(), 2, "{done}");
    assert_eq!(verdicts[0]["achieved"], false);
    assert_eq!(of_type(&events, "goal_completed")[0]["how"], "believed");
    let cost = run(&workspace, &["exec", "--continue", "/cost cause"]);
    assert!(cost.assert_code(0).stdout.contains("supervisor"), "{cost}");
}

/// GOAL-4: a supervisor that answers nonsense means not done, and pauses the goal after some failures.
#[test]
fn a_broken_supervisor_pauses() {
    let garbled = Reply::text("yes, surely")
        .when(When::new().user_contains("The end of the work:"))
        .forever();
    let replies = [
        garbled,
        Reply::text("Done."),
        Reply::text("It is done."),
        Reply::text("All is done."),
    ];
    let (_sim, workspace) = goal(replies, "");
    let stopped = run(&workspace, &["exec", "--goal", "g"]);
    stopped
        .assert_code(14)
        .assert_says("the supervisor failed 3 times in a row: its answer is not the expected JSON");
}

/// GOAL-4: the supervisor never says yes against a failing check.
#[test]
fn a_check_beats_the_supervisor() {
    let replies = [
        verdict(true, "looks fine").forever(),
        Reply::text("a"),
        Reply::text("b"),
    ];
    let (_sim, workspace) = goal(replies, "verify_interval = 1");
    let args = ["exec", "--goal", "g", "--check", "false", "--turns", "2"];
    run(&workspace, &args)
        .assert_code(11)
        .assert_says("Supervisor: reached");
}

/// GOAL-9: unattended spending has a limit per day, over all sessions.
#[test]
fn spending_is_limited_per_day() {
    let prices =
        "\n[models.sim-1.price]\ninput = 1000.0\noutput = 1000.0\n[autonomy]\nmax_cost_per_day = 0.01";
    let (_sim, workspace) = goal([Reply::text("a"), Reply::text("b"), Reply::text("c")], prices);
    let args = ["exec", "--goal", "g", "--check", "false"];
    run(&workspace, &args)
        .assert_code(12)
        .assert_says("autonomy.max_cost_per_day is $0.01");
    run(&workspace, &args).assert_code(12);
}

/// GOAL-3: the cost limit of a goal covers all its turns.
#[test]
fn a_goal_has_a_cost_limit() {
    let prices = "\n[models.sim-1.price]\ninput = 1000.0\noutput = 1000.0\n[autonomy]\nmax_cost_per_day = 0";
    let (sim, workspace) = goal([Reply::text("a").forever()], prices);
    let args = ["exec", "--goal", "g", "--check", "false", "--max-cost", "0.01"];
    run(&workspace, &args).assert_code(12);
    assert_eq!(sim.count(), 1);
    let again = run(&workspace, &["exec", "--continue", "--goal"]);
    again.assert_code(1).assert_says("--max-cost");
}

/// GOAL-5, GOAL-9: a goal whose process is killed is paused when the session is opened again, and continues.
#[test]
fn a_killed_goal_is_resumed() {
    let replies = [
        Reply::text("one"),
        Reply::call("bash", json!({ "command": "sleep 30" })),
        write("a", "x"),
        Reply::text("two"),
    ];
    let (sim, workspace) = goal(replies, "");
    let args = ["exec", "--mode", "auto", "--goal", "g", "--check", "test -s a"];
    let running = workspace.run(&args).start();
    assert!(eventually(Duration::from_secs(20), || sim.count() >= 2));
    running.signal(Signal::KILL);
    running.output();
    // Another session finds the orphan at its start.
    run(&workspace, &["exec", "/status"]).assert_code(0);
    let told = run(&workspace, &["exec", "--continue", "/goal"]);
    assert!(
        told.stdout.contains("paused, turn 2 of 50: the process ended"),
        "{told}"
    );
    let fleet = |state: &str| {
        for args in [&["agents"][..], &["exec", "/agents"]] {
            let told = run(&workspace, args);
            assert!(told.stdout.contains(state), "{state}: {told}");
        }
    };
    fleet(": orphaned, turn 2 of 50, not reached when last verified · g");
    let resumed = run(&workspace, &["exec", "--mode", "auto", "--continue", "--goal"]);
    resumed
        .assert_code(0)
        .assert_says("Goal completed: all checks passed");
    fleet(": completed, turn ");
}

/// GOAL-7: `done` carries claims; a false one is shown next to the answer, and `windlass verify` runs them again.
#[test]
fn claims_are_verified() {
    let test = json!({ "command": "test -e a.txt" });
    let done = json!({ "message": "All good.", "claims": [
        { "text": "a.txt is there", "command": "test -e a.txt", "exit_code": 0 },
        { "text": "nobody looked", "command": "test -e b.txt", "exit_code": 0 },
    ]});
    let (_sim, workspace) = goal([Reply::call("bash", test), Reply::call("done", done)], "");
    let said = run(&workspace, &["exec", "--mode", "auto", "--require-done", "look"]);
    said.assert_code(0)
        .assert_says("False claim: a.txt is there (`test -e a.txt` had exit code 1)")
        .assert_says("Unproven claim: nobody looked");
    assert_eq!(said.stdout, "All good.\n");
    let verified = run(&workspace, &["verify"]);
    assert!(
        verified
            .assert_code(15)
            .stdout
            .contains("FALSE     a.txt is there"),
        "{verified}"
    );
    workspace.write("a.txt", "x");
    workspace.write("b.txt", "x");
    let verified = run(&workspace, &["verify"]);
    assert!(
        verified.assert_code(0).stdout.contains("verified  nobody looked"),
        "{verified}"
    );
}

/// GOAL-9: a rate limit that names a time is waited for.
#[test]
fn a_named_time_is_waited_for() {
    use windlass_sim::Fault;
    let limited = Reply::default().fault(Fault::status(429).header("retry-after", "121"));
    let (_sim, workspace) = goal([limited, Reply::text("never")], "");
    let mut running = workspace.run(&["exec", "--goal", "g", "--check", "true"]).start();
    running.wait_for_stderr("Goal: waits 121 s");
    // The wait can be stopped.
    running.interrupt();
    running
        .output()
        .assert_code(130)
        .assert_says("Goal paused: you stopped it");
}

/// GOAL-4: a supervisor that is rate limited is asked again later, and the wait can be stopped; it never counts as a
/// yes.
#[test]
fn a_limited_supervisor_is_asked_later() {
    use windlass_sim::Fault;
    let limited = Reply::default()
        .fault(Fault::status(429).header("retry-after", "121"))
        .when(When::new().user_contains("The end of the work:"))
        .forever();
    let (_sim, workspace) = goal([limited, Reply::text("Done.")], "");
    let mut running = workspace.run(&["exec", "--goal", "g"]).start();
    running.wait_for_stderr("the supervisor's provider asks to wait 121 s");
    running.interrupt();
    let stopped = running.output();
    stopped
        .assert_code(130)
        .assert_says("Goal paused: you stopped it");
    assert!(!stopped.stderr.contains("Goal completed"), "{stopped}");
}

/// GOAL-3, GOAL-9: the tokens of a goal are limited.
#[test]
fn a_goal_has_a_token_limit() {
    let (sim, workspace) = goal([Reply::text("a"), Reply::text("b")], "autonomous_max_tokens = 1");
    let stopped = run(&workspace, &["exec", "--goal", "g", "--check", "false"]);
    stopped.assert_code(12).assert_says("tokens, and the limit is 1");
    assert_eq!(sim.count(), 1);
}

/// GOAL-8: a file must exist and have content; a name with quotes and spaces is a name.
#[test]
fn a_file_is_a_criterion() {
    let name = "it's \"here\".txt";
    let replies = [
        write(name, ""),
        Reply::text("made"),
        write(name, "x"),
        Reply::text("filled"),
    ];
    let (_sim, workspace) = goal(replies, "");
    let args = [
        "exec",
        "--mode",
        "auto",
        "-o",
        "stream-json",
        "--goal",
        "g",
        "--file",
        name,
    ];
    let done = run(&workspace, &args);
    let events = done.assert_code(0).events();
    let passed: Vec<bool> = of_type(&events, "goal_check")
        .iter()
        .map(|check| check["passed"] == true)
        .collect();
    assert_eq!(passed, [false, true], "{done}");
}

/// GOAL-8, GOAL-9: the user confirms a goal, once its other criteria hold. If nobody is there, it is blocked.
#[test]
fn a_person_confirms_a_goal() {
    let replies = || [Reply::text("first"), write("a", "x"), Reply::text("second")];
    let (_sim, workspace) = goal(replies(), "");
    let args = [
        "exec",
        "--mode",
        "auto",
        "--goal",
        "g",
        "--check",
        "test -s a",
        "--ask",
    ];
    let blocked = run(&workspace, &args);
    blocked
        .assert_code(13)
        .assert_says("nobody was there to confirm that the goal is reached");
    assert!(blocked.stderr.contains("Goal: turn 2"), "{blocked}");
    let (sim, workspace) = goal(replies(), "");
    let run = workspace.run_on_terminal("--plain --mode auto").open_stdin();
    let mut running = run.env("NO_COLOR", "1").start();
    running.wait_for_stdout("> ");
    running.say("/goal create --auto --check \"test -s a\" --ask win\n");
    running.wait_for_stdout("Is the goal reached? win");
    assert_eq!(sim.count(), 3, "nobody is asked before the check passes");
    running.say("1\n");
    running.wait_for_stdout("Goal completed: all checks passed");
    running.say("/exit\n");
    running.output().assert_code(0);
}

/// GOAL-1: the setting for later messages.
#[test]
fn later_messages_change_a_goal() {
    for (setting, expected) in [
        ("extend", "Goal: first\nsecond\n"),
        ("replace", "Goal: second\n"),
        ("keep", "Goal: first\n"),
    ] {
        let (_sim, workspace) = goal(
            [Reply::text("one"), Reply::text("two")],
            &format!("later_messages = \"{setting}\""),
        );
        run(&workspace, &["exec", "first"]).assert_code(0);
        run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
        let told = run(&workspace, &["exec", "--continue", "/goal"]);
        assert_eq!(told.stdout, expected, "{setting}");
    }
}

/// GOAL-9: a cost that cannot be read is no cost within a limit.
#[test]
fn an_unreadable_cost_stops_a_goal() {
    let (sim, workspace) = goal([Reply::text("a"), Reply::text("b")], "");
    let args = ["exec", "--goal", "g", "--check", "sleep 3; false"];
    let running = workspace.run(&args).start();
    let file = workspace.home().join("data/windlass.db");
    // Their sum is more than the database can count.
    let spoil = "INSERT INTO booking (session, time, provider, model, cause, input, output, cache_read, cache_write) \
                 SELECT session, time, provider, model, cause, 9223372036854775807, 1, 0, 0 FROM booking, (VALUES (1), (2))";
    let is_spoiled = || {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        let database = rusqlite::Connection::open_with_flags(&file, flags);
        database.is_ok_and(|database| database.execute(spoil, []).is_ok_and(|rows| rows > 0))
    };
    assert!(eventually(Duration::from_secs(20), is_spoiled));
    running
        .output()
        .assert_code(12)
        .assert_says("the cost so far cannot be read");
    assert_eq!(sim.count(), 1);
}

/// SUB-7: an idle session continues by itself when an agent ends that was started with `wake`.
#[test]
fn an_agent_wakes_its_session() {
    use windlass_sim::Fault;
    let task = json!({ "task": "count the files", "background": true, "wake": true });
    let replies = [
        super::agents::child(
            "count the files",
            Reply::text("There are seven.").fault(Fault::new().delay_ms(1_500)),
        ),
        Reply::call("agent", task),
        Reply::text("It counts."),
        Reply::text("Seven files, it says."),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = super::tui::open(&workspace, &[]);
    super::tui::say(&mut screen, "how many files?");
    screen.wait_for("It counts.");
    screen.wait_for("Seven files, it says.");
    super::tui::leave(&mut screen);
    let told = sim.requests().iter().rev().find_map(|request| {
        let told = request.seen.last_user_text()?;
        told.contains("There are seven.").then(|| told.to_owned())
    });
    assert!(told.is_some(), "{:?}", sim.outlines());
}

/// GOAL-8, GOAL-9: a check whose program does not exist ends the goal after the first turn, and one that is never
/// executable after the second, both with the reason.
#[test]
fn a_check_that_cannot_run_ends_the_goal() {
    for (check, turns, why) in [
        ("no-such-program --all", 1, "no-such-program: command not found"),
        ("./not-executable.sh", 2, "Permission denied"),
    ] {
        let replies = (0..9).map(|number| Reply::text(&format!("turn {number}")));
        let (sim, workspace) = goal(replies, "");
        workspace.write("not-executable.sh", "exit 0\n");
        let ended = run(&workspace, &["exec", "--goal", "pass", "--check", check]);
        ended
            .assert_code(13)
            .assert_says(&format!("the check `{check}` cannot run"))
            .assert_says(why);
        assert_eq!(sim.count(), turns, "{ended}");
    }
    // A program that the work creates is given the chance.
    let (_sim, workspace) = goal(
        [
            Reply::text("I had a look."),
            Reply::call(
                "bash",
                json!({ "command": "echo 'exit 0' > check.sh && chmod +x check.sh" }),
            ),
            Reply::text("There it is."),
        ],
        "",
    );
    run(&workspace, &["exec", "--goal", "pass", "--check", "./check.sh"]).assert_code(0);
}

/// GOAL-8: an empty check is refused; it would pass always.
#[test]
fn an_empty_check_is_refused() {
    let (sim, workspace) = goal([Reply::text("fine").forever()], "");
    for flag in ["--check", "--file"] {
        let refused = run(&workspace, &["exec", "--goal", "pass", flag, " "]);
        assert_ne!(refused.code, Some(0), "{refused}");
        refused.assert_says(&format!("{flag} is empty"));
    }
    assert_eq!(sim.count(), 0);
}
