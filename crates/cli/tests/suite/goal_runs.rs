//! Goals that are worked on without input.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply, When};
use windlass_testkit::{Output, Signal, SimServer, Workspace, eventually};

use super::support::{with_replies, workspace};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Settings that make goals quick to test.
fn quick(sim: &SimServer, workspace: &Workspace, more: &str) {
    let settings =
        format!("\n[agent.goal]\nautonomous_enabled = true\nautonomous_turn_delay_ms = 0\n{more}\n");
    workspace.use_sim_with(sim, Protocol::Anthropic, &settings);
}

fn goal(replies: impl IntoIterator<Item = Reply>, more: &str) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    quick(&sim, &workspace, more);
    (sim, workspace)
}

fn write(path: &str, content: &str) -> Reply {
    Reply::call("write_file", json!({ "path": path, "content": content }))
}

fn verdict(achieved: bool, reason: &str) -> Reply {
    Reply::text(&json!({ "achieved": achieved, "reason": reason }).to_string())
        .when(When::new().user_contains("The end of the work:"))
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
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
    stopped.assert_code(11).assert_says("Check failed: `sleep 600`");
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

/// GOAL-6, GOAL-2: the model proposes a plan, a bad one goes back to it, the user drops a step, and the rest is
/// carried out step by step; the goal is reached with the last one.
#[test]
fn a_plan_is_carried_out() {
    let circle = json!({ "steps": [{ "id": "a", "title": "x", "depends_on": ["b"] },
                                   { "id": "b", "title": "y", "depends_on": ["a"] }] });
    let plan = json!({ "steps": [
        { "id": "make", "title": "make a", "check": "test -s a" },
        { "id": "extra", "title": "not needed", "depends_on": ["make"] },
        { "id": "tell", "title": "tell about it", "depends_on": ["extra"] },
    ]});
    let replies = [
        Reply::text(&circle.to_string()),
        Reply::text(&format!("```json\n{plan}\n```")),
        Reply::text("I forgot to do it."),
        write("a", "x"),
        Reply::text("a is there."),
        Reply::text("Told."),
    ];
    let (sim, workspace) = goal(replies, "");
    run(&workspace, &["exec", "/plan make a and tell"]).assert_code(0);
    assert!(sim.requests()[1].body.to_string().contains("in a circle: a"));
    let shown = run(&workspace, &["exec", "--continue", "/plan drop 2"]);
    assert!(
        shown
            .assert_code(0)
            .stdout
            .contains("2. [ ] tell: tell about it (after make)"),
        "{shown}"
    );
    let done = run(
        &workspace,
        &[
            "exec",
            "--continue",
            "--mode",
            "auto",
            "-o",
            "stream-json",
            "/plan go",
        ],
    );
    let events = done.assert_code(0).events();
    assert_eq!(of_type(&events, "goal_turn").len(), 3, "{done}");
    assert_eq!(of_type(&events, "goal_completed")[0]["how"], "plan");
    let shown = run(&workspace, &["exec", "--continue", "/plan show"]);
    assert!(shown.stdout.contains("2 of 2 done"), "{shown}");
}

/// GOAL-6: a plan is edited as a file: written, changed by hand, read again; mistakes are named with their line, and no
/// other file is replaced.
#[test]
fn a_plan_is_edited_as_a_file() {
    let plan = json!({ "steps": [
        { "id": "make", "title": "make a", "check": "test -s a" },
        { "id": "tell", "title": "tell about it", "depends_on": ["make"] },
    ]});
    let (_sim, workspace) = goal([Reply::text(&plan.to_string())], "");
    let proposed = run(&workspace, &["exec", "/plan make a and tell"]);
    proposed.assert_code(0).assert_says("  make: make a");
    let command = |line: &str| run(&workspace, &["exec", "--continue", line]);
    let edited = command("/plan edit");
    command("/plan export").assert_code(0);
    let text = workspace.read("PLAN.md");
    assert_eq!(edited.assert_code(0).stdout.trim(), text.trim());
    assert!(text.starts_with("# make a and tell\n"), "{text}");
    assert!(
        text.ends_with("- [ ] make: make a\n      check: test -s a\n- [ ] tell: tell about it\n      after: make\n"),
        "{text}"
    );
    workspace.write("PLAN.md", &text.replace("[ ] make", "[x] make").replace("about it", "everybody"));
    let read = command("/plan import PLAN.md");
    assert!(read.assert_code(0).stdout.contains("[x] make: make a"), "{read}");
    assert!(read.stdout.contains("[ ] tell: tell everybody (after make)"), "{read}");
    command("/plan export PLAN.md").assert_code(0);
    workspace.write("PLAN.md", &text.replace("check: test", "after: tell\n      check: test"));
    command("/plan import PLAN.md")
        .assert_code(1)
        .assert_says("PLAN.md: line 6: the steps depend on each other in a circle: make → tell → make");
    workspace.write("PLAN.md", "something else\n");
    command("/plan import PLAN.md")
        .assert_code(1)
        .assert_says("PLAN.md: line 1: expected `- [ ] id: title`, found `something else`");
    command("/plan export PLAN.md")
        .assert_code(1)
        .assert_says("PLAN.md: exists and is not a plan");
    command("/plan import missing.md")
        .assert_code(1)
        .assert_says("missing.md: No such file");
    assert!(command("/plan show").stdout.contains("tell everybody"));
    let set = command("/plan set\n- [ ] a: b\n- [ ] c: d\n  after: a");
    assert!(set.assert_code(0).stdout.contains("2. [ ] c: d (after a)"), "{set}");
}

/// GOAL-6: steps that do not depend on each other run in parallel, each in an agent of its name; the changes of a
/// coder are merged before the checks; a step that no agent worked on is carried out alone.
#[test]
fn independent_steps_run_in_parallel() {
    let child = |task: &str, reply: Reply| reply.when(When::new().user_contains(task));
    let agent =
        |name: &str, kind: &str| json!({ "task": format!("do {name} now"), "name": name, "type": kind });
    let plan = json!({ "steps": [
        { "id": "left", "title": "make left.txt", "check": "grep -q l left.txt && grep -q r right.txt" },
        { "id": "right", "title": "make right.txt", "check": "test -s right.txt" },
        { "id": "look", "title": "look around" },
        { "id": "think", "title": "think about it" },
        { "id": "join", "title": "join both", "depends_on": ["left", "right", "look"] },
    ]});
    let replies = [
        child("do left now", write("left.txt", "l")),
        child("do left now", Reply::text("left is made")),
        child("do right now", write("right.txt", "r")),
        child("do right now", Reply::text("right is made")),
        child("do look now", Reply::text("looked")),
        Reply::text(&plan.to_string()),
        Reply::call("agent", agent("left", "coder"))
            .and_call("agent", agent("right", "coder"))
            .and_call("agent", agent("look", "explorer")),
        Reply::text("All three are done."),
        Reply::text("Thought."),
        Reply::text("Joined."),
    ];
    let (sim, workspace) = goal(replies, "");
    run(&workspace, &["exec", "/plan make and join"]).assert_code(0);
    let args = ["exec", "--continue", "--mode", "auto", "-o", "stream-json", "/plan go"];
    let done = run(&workspace, &args);
    let events = done.assert_code(0).events();
    assert_eq!(of_type(&events, "goal_turn").len(), 3, "{done}");
    assert_eq!(workspace.read("left.txt"), "l");
    assert_eq!(workspace.read("right.txt"), "r");
    let told: Vec<String> = sim.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(told.iter().any(|body| body.contains("- `left`: make left.txt (done when")));
    let alone = told.iter().find(|body| body.contains("Carry out step `think`"));
    assert!(alone.unwrap().contains("No agent named `think` worked on it"));
    let active = |event: &&&Value| {
        let steps = event["steps"].as_array().unwrap();
        steps.iter().filter(|step| step["status"] == "active").count() == 4
    };
    assert_eq!(of_type(&events, "plan").iter().filter(active).count(), 1, "{done}");
    let shown = run(&workspace, &["exec", "--continue", "/plan show"]);
    assert!(shown.stdout.contains("5 of 5 done"), "{shown}");
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
