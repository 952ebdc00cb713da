//! Plans: proposed by the model, edited by the user, carried out step by step.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use windlass_sim::{Reply, When};

use super::goal_runs::{goal, of_type, run, write};
use super::support::elsewhere;

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

/// SAFE-3: commands that name a file reach the session's folder only, and nothing in it that is denied or protected; an error
/// shows nothing of a file outside.
#[test]
fn files_of_commands_are_in_the_folder() {
    let outside = elsewhere();
    std::fs::write(outside.path().join("old.md"), "hidden words\n").unwrap();
    let plan = json!({ "steps": [{ "id": "make", "title": "make a" }] });
    let (_sim, workspace) = goal([Reply::text(&plan.to_string())], "");
    run(&workspace, &["exec", "/plan make a"]).assert_code(0);
    workspace.write(".env", "hidden words\n");
    symlink(outside.path(), workspace.path().join("link")).unwrap();
    let outside = outside.path().display().to_string();
    let command = |line: &str| run(&workspace, &["exec", "--continue", line]);
    for file in [
        &format!("{outside}/old.md"),
        "link/old.md",
        ".env",
        "/etc/shadow",
        "/proc/self/environ",
        "../home/config/config.toml",
    ] {
        let read = command(&format!("/plan import {file}"));
        read.assert_code(1);
        assert!(!read.to_string().contains("hidden words"), "{read}");
    }
    for file in [
        &format!("{outside}/new.md"),
        "link/new.md",
        "/tmp/windlass-new.md",
        "../new.md",
        ".env.local",
        ".git/hooks/post-commit",
        ".vscode/tasks.json",
    ] {
        for verb in ["/plan export", "/export"] {
            command(&format!("{verb} {file}")).assert_code(1);
            assert!(!workspace.path().join(file).exists(), "{verb} {file}");
        }
    }
    command("/export talk.md").assert_code(0);
    assert!(workspace.read("talk.md").contains("make a"));
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
    proposed.assert_code(0).assert_says("1. make: make a");
    let command = |line: &str| run(&workspace, &["exec", "--continue", line]);
    let edited = command("/plan edit");
    command("/plan export").assert_code(0);
    let text = workspace.read("PLAN.md");
    assert_eq!(edited.assert_code(0).stdout.trim(), text.trim());
    assert!(text.starts_with("# make a and tell\n"), "{text}");
    assert!(
        text.ends_with(
            "- [ ] make: make a\n      check: test -s a\n- [ ] tell: tell about it\n      after: make\n"
        ),
        "{text}"
    );
    workspace.write(
        "PLAN.md",
        &text
            .replace("[ ] make", "[x] make")
            .replace("about it", "everybody"),
    );
    let read = command("/plan import PLAN.md");
    assert!(read.assert_code(0).stdout.contains("[x] make: make a"), "{read}");
    assert!(
        read.stdout.contains("[ ] tell: tell everybody (after make)"),
        "{read}"
    );
    command("/plan export PLAN.md").assert_code(0);
    workspace.write(
        "PLAN.md",
        &text.replace("check: test", "after: tell\n      check: test"),
    );
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
    assert!(
        set.assert_code(0).stdout.contains("2. [ ] c: d (after a)"),
        "{set}"
    );
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
    let args = [
        "exec",
        "--continue",
        "--mode",
        "auto",
        "-o",
        "stream-json",
        "/plan go",
    ];
    let done = run(&workspace, &args);
    let events = done.assert_code(0).events();
    assert_eq!(of_type(&events, "goal_turn").len(), 3, "{done}");
    assert_eq!(workspace.read("left.txt"), "l");
    assert_eq!(workspace.read("right.txt"), "r");
    let told: Vec<String> = sim
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    assert!(
        told.iter()
            .any(|body| body.contains("- `left`: make left.txt (done when"))
    );
    let alone = told.iter().find(|body| body.contains("Carry out step `think`"));
    assert!(alone.unwrap().contains("No agent named `think` worked on it"));
    let active = |event: &&&Value| {
        let steps = event["steps"].as_array().unwrap();
        steps.iter().filter(|step| step["status"] == "active").count() == 4
    };
    assert_eq!(
        of_type(&events, "plan").iter().filter(active).count(),
        1,
        "{done}"
    );
    let shown = run(&workspace, &["exec", "--continue", "/plan show"]);
    assert!(shown.stdout.contains("5 of 5 done"), "{shown}");
}

/// GOAL-6, UI-1: in a terminal, `/plan edit` hands the plan to the user's editor, which has the keyboard for itself; an
/// edit that is wrong changes nothing.
#[test]
fn a_plan_is_edited_in_an_editor() {
    let plan = json!({ "steps": [{ "id": "make", "title": "make a" }] });
    let (_sim, workspace) = goal([Reply::text(&plan.to_string())], "");
    run(&workspace, &["exec", "/plan make a"]).assert_code(0);
    let editor = workspace.write(
        "edit.sh",
        "echo editing; read -r words; sed -i \"s/^- .*/$words/\" \"$1\"\n",
    );
    let editor = format!("sh {}", editor.display());
    let run = workspace.run_on_terminal("--plain --continue").open_stdin();
    let mut running = run.env("NO_COLOR", "1").env("EDITOR", &editor).start();
    running.wait_for_stdout("> ");
    running.say("/plan edit\n");
    running.wait_for_stdout("editing");
    running.say("- [ ] all: make everything\n");
    running.wait_for_stdout("1. [ ] all: make everything");
    running.say("/exit\n");
    running.output().assert_code(0);
    let mut screen = workspace
        .run(&["--continue"])
        .env("EDITOR", &editor)
        .on_screen(100, 30);
    screen.wait_for(super::tui::EMPTY);
    super::tui::say(&mut screen, "/plan edit");
    screen.wait_for("editing");
    screen.type_keys("- [?] all: x\n");
    screen.wait_for("`[?]` is no state of a step");
    screen.wait_for("› /plan set");
    screen.press("ctrl-c");
    super::tui::leave(&mut screen);
    let shown = workspace.run(&["exec", "--continue", "/plan show"]).output();
    assert!(shown.stdout.contains("all: make everything"), "{shown}");
}
