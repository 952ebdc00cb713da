//! Settings, instructions and tools are reloaded between turns.
//!
//! A run with an answer that does not match its schema has two turns; changes made while the first one waits
//! for its reply apply to the second.

use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Output, PATIENCE, SimServer, Workspace, eventually};

use super::support::with_replies;

/// Runs two turns, and performs an action while the first one is running.
fn two_turns(
    setup: impl FnOnce(&Workspace, &SimServer),
    meanwhile: impl FnOnce(&Workspace, &SimServer),
) -> (SimServer, Output) {
    let slow = Fault::new().delay_ms(600);
    let replies = [Reply::text("no JSON").fault(slow), Reply::text("{\"n\": 1}")];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    setup(&workspace, &sim);
    workspace.write("schema.json", "{\"type\": \"object\", \"required\": [\"n\"]}");
    let running = workspace
        .run(&["exec", "--output-schema", "schema.json", "go"])
        .start();
    assert!(eventually(PATIENCE, || sim.count() == 1), "nothing was asked");
    meanwhile(&workspace, &sim);
    let output = running.output();
    (sim, output)
}

fn systems(sim: &SimServer) -> Vec<String> {
    sim.requests()
        .iter()
        .map(|request| request.seen.system.clone())
        .collect()
}

/// CFG-2, EXT-1: instructions are part of the system prompt; a change applies to the next turn, with a
/// notice, and never in the middle of one.
#[test]
fn instructions_are_read_again() {
    let (sim, output) = two_turns(
        |workspace, _| {
            workspace.write("AGENTS.md", "Always say please.\n");
        },
        |workspace, _| {
            workspace.write("AGENTS.md", "Never say please.\n");
        },
    );
    output
        .assert_code(0)
        .assert_says("instructions reloaded: AGENTS.md");
    let systems = systems(&sim);
    assert!(systems[0].contains("Always say please."), "{}", systems[0]);
    assert!(
        systems[1].contains("Never say please.") && !systems[1].contains("Always"),
        "{}",
        systems[1]
    );
    sim.assert_valid();
}

/// CFG-2: changed settings apply to the next turn and are named; a notice lists those that need a restart.
#[test]
fn settings_are_read_again() {
    let (sim, output) = two_turns(
        |_, _| {},
        |workspace, sim| {
            workspace.use_sim_with(
                sim,
                Protocol::Anthropic,
                "\n[agent]\nsystem_prompt = \"Be brief.\"\n\n[timeouts]\nconnect_secs = 7\n",
            );
        },
    );
    output
        .assert_code(0)
        .assert_says("settings changed: agent.system_prompt = \"Be brief.\"")
        .assert_says("from the next start: timeouts.connect_secs = 7");
    let systems = systems(&sim);
    assert!(
        !systems[0].contains("Be brief.") && systems[1] == "Be brief.",
        "{systems:?}"
    );
}

/// CFG-2: an invalid file changes nothing, and its mistake is reported with its location.
#[test]
fn a_broken_file_changes_nothing() {
    let (sim, output) = two_turns(
        |_, _| {},
        |workspace, _| workspace.config("provider = \"test\"\n[agent]\nmax_iterations = \"many\"\n"),
    );
    output
        .assert_code(0)
        .assert_says("config.toml:3")
        .assert_says("keeping the last valid settings");
    let systems = systems(&sim);
    assert_eq!(systems[0], systems[1]);
}

/// CFG-2: the user's tools are reloaded as well.
#[test]
fn tools_are_read_again() {
    let (sim, output) = two_turns(
        |_, _| {},
        |workspace, _| {
            let file = workspace.home().join("config/tools.yaml");
            let tools = "tools:\n  - name: greet\n    description: Greets.\n    category: read\n    cmd: echo\n    args: [hello]\n";
            std::fs::write(file, tools).unwrap();
        },
    );
    output.assert_code(0);
    let has = |number: usize| {
        sim.requests()[number]
            .seen
            .tools
            .iter()
            .any(|tool| tool == "greet")
    };
    assert!(!has(0) && has(1), "{output}");
}
