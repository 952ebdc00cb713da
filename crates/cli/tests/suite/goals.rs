//! Goals of sessions.

use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{check_events, with_replies, workspace};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

fn goal(workspace: &Workspace) -> String {
    let told = run(workspace, &["exec", "--continue", "/goal"]);
    told.assert_code(0).stdout.trim_end().to_owned()
}

/// GOAL-1, CMD-1: a new session has no goal, and showing it leaves nothing behind; a goal that was set can be
/// shown.
#[test]
fn goals_need_nobody() {
    let workspace = workspace();
    let idle = run(&workspace, &["exec", "/goal"]);
    assert!(idle.assert_code(0).stdout.starts_with("No goal."), "{idle}");
    let listed = run(&workspace, &["sessions", "list", "--all", "--json"]);
    assert_eq!(listed.assert_code(0).stdout.trim(), "[]");
    let none = run(&workspace, &["exec", "/done"]);
    none.assert_code(1).assert_says("there is no active goal");
    let auto = run(&workspace, &["exec", "/goal create --auto --turns 3 win"]);
    auto.assert_code(1).assert_says("(--auto) is off");
    let set = run(&workspace, &["exec", "/goal ship it"]);
    assert_eq!(set.assert_code(0).stdout, "Goal: ship it\n");
    assert_eq!(goal(&workspace), "Goal: ship it");
    let done = run(&workspace, &["exec", "--continue", "/done"]);
    assert_eq!(
        done.assert_code(0).stdout,
        "Goal completed. Your next message is a new goal, or /goal TEXT.\n"
    );
}

/// GOAL-1, GOAL-2, EVT-4: the second message extends the goal of the first; `goal` and `goal_completed` are
/// separate events, the latter just before the terminal event.
#[test]
fn a_goal_is_reached_in_the_stream() {
    let replies = [
        Reply::text("I look into it."),
        Reply::text("All tests pass. Task complete."),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let first = run(&workspace, &["exec", "-o", "stream-json", "fix the bug"]);
    check_events(first.assert_code(0));
    let events = first.events();
    let goals: Vec<_> = events.iter().filter(|event| event["type"] == "goal").collect();
    assert!(goals.len() == 1 && goals[0]["text"] == "fix the bug", "{first}");
    assert!(
        events.iter().all(|event| event["type"] != "goal_completed"),
        "{first}"
    );
    assert_eq!(goal(&workspace), "Goal: fix the bug");
    let second = run(
        &workspace,
        &["exec", "--continue", "-o", "stream-json", "and now?"],
    );
    let events = second.assert_code(0).events();
    let state: Vec<_> = events
        .iter()
        .rev()
        .take(2)
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(state, ["final", "goal_completed"], "{second}");
    let reached = &events[events.len() - 2];
    assert_eq!(
        (&reached["text"], &reached["how"]),
        (&"fix the bug\nand now?".into(), &"phrase".into())
    );
    assert!(goal(&workspace).starts_with("Goal reached: fix the bug\nand now?\n"));
    for request in sim.requests() {
        assert!(!request.seen.system.contains("fix the bug"), "no model is told");
    }
}

/// GOAL-2: users see the notice after the answer; piped output does not contain it.
#[test]
fn people_are_told_that_a_goal_is_reached() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("Done.").forever()]);
    let told = run(&workspace, &["exec", "fix the bug"]);
    assert_eq!(told.assert_code(0).stdout, "Done.\n");
    told.assert_says("Goal reached: fix the bug");
    workspace.use_sim_with(&sim, Protocol::Chat, "\n[agent.goal]\nenabled = false\n");
    let off = run(&workspace, &["exec", "fix the bug"]);
    assert!(!off.assert_code(0).stderr.contains("Goal"), "{off}");
    run(&workspace, &["exec", "/goal"])
        .assert_code(1)
        .assert_says("agent.goal.enabled is false");
}

/// GOAL-1, MSG-5: a system prompt contains the goal if the setting is on; it stays the same within a turn,
/// and until the goal changes.
#[test]
fn a_system_prompt_may_tell_the_goal() {
    let list = serde_json::json!({ "path": "." });
    let replies = [
        Reply::call("list_directory", list),
        Reply::text("I look into it."),
        Reply::text("Task complete."),
        Reply::text("{current_goal}, you say."),
        Reply::text("not told"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let settings = |tracks: bool| {
        let prompt = "system_prompt = \"The goal: [{current_goal}]\"";
        let more = format!("\n[agent]\n{prompt}\n\n[agent.goal]\ntrack_in_system_prompt = {tracks}\n");
        workspace.use_sim_with(&sim, Protocol::Anthropic, &more);
    };
    settings(true);
    run(&workspace, &["exec", "fix it"]).assert_code(0);
    for text in ["and this", "then ship {current_goal}"] {
        run(&workspace, &["exec", "--continue", text]).assert_code(0);
    }
    settings(false);
    run(&workspace, &["exec", "--continue", "again"]).assert_code(0);
    let told = sim.requests();
    let told: Vec<&str> = told
        .iter()
        .filter_map(|request| request.seen.system.split(['[', ']']).nth(1))
        .collect();
    assert_eq!(
        told,
        [
            "fix it",
            "fix it",
            "fix it\nand this",
            "then ship {current_goal}",
            "{current_goal}"
        ]
    );
    sim.assert_valid();
}

/// GOAL-2: an answer right after a failed call completes nothing, whatever it says.
#[test]
fn a_failed_call_completes_nothing() {
    let failing = Reply::call("bash", serde_json::json!({ "command": "false" }));
    let replies = [failing, Reply::text("Done."), Reply::text("Done.")];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let told = run(&workspace, &["exec", "--mode", "auto", "fix it"]);
    assert!(!told.assert_code(0).stderr.contains("Goal reached"), "{told}");
    run(&workspace, &["exec", "--continue", "and?"])
        .assert_code(0)
        .assert_says("Goal reached: fix it");
}
