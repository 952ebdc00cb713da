//! The scenarios S6.1 to S6.14, each under its name and through the binary.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, SimServer, Workspace, eventually, processes_with};

use super::support::{elsewhere, with_replies};

/// Returns a model that makes one call and then answers.
fn scene(tool: &str, arguments: Value) -> (SimServer, Workspace) {
    with_replies(
        Protocol::Anthropic,
        [Reply::call(tool, arguments), Reply::text("done")],
    )
}

/// Runs it, and returns the result that the model received.
fn told(sim: &SimServer, workspace: &Workspace, more: &[&str]) -> String {
    let temp = workspace.path().join("temp");
    std::fs::create_dir_all(&temp).unwrap();
    let run = workspace.run(&["exec", "go"]).args(more);
    run.env("TMPDIR", &temp.display().to_string())
        .env("MY_TOKEN", "hunter2")
        .output();
    sim.assert_valid();
    let requests = sim.requests();
    let results = requests.last().unwrap().seen.results();
    results.map(|result| result.text.clone()).collect()
}

fn declare(workspace: &Workspace, tools: &str) {
    let file = workspace.home().join("config/tools.yaml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, tools).unwrap();
}

/// TOOL-1 (S6.1): a tool with valid parameters runs, and its output goes to the model.
#[test]
fn s6_1_valid_parameters_run() {
    let (sim, workspace) = scene("bash", json!({ "command": "echo it ran" }));
    assert_eq!(told(&sim, &workspace, &[]), "it ran");
}

/// TOOL-1 (S6.2): invalid parameters become an error that names the field.
#[test]
fn s6_2_invalid_parameters_are_named() {
    let (sim, workspace) = scene("read_file", json!({ "path": 7 }));
    let text = told(&sim, &workspace, &[]);
    assert!(text.contains("Invalid arguments for read_file: `path`"), "{text}");
}

/// TOOL-3 (S6.3): a long output is truncated with a notice.
#[test]
fn s6_3_long_output_is_cut() {
    let (sim, workspace) = scene("bash", json!({ "command": "seq 1 20000" }));
    let text = told(&sim, &workspace, &[]);
    assert!(text.ends_with("characters from bash]"), "{}", text.len());
    assert!(
        text.contains("[OUTPUT TRUNCATED: Showing 40,000 of"),
        "{}",
        text.len()
    );
}

/// TOOL-4 (S6.4): a tool that exceeds its timeout is killed with all its processes, and the result reports
/// it.
#[test]
fn s6_4_a_timeout_kills() {
    let marker = format!("87.{}", std::process::id());
    let command = format!("echo begun; sleep {marker} & sleep {marker}");
    let (sim, workspace) = scene("bash", json!({ "command": command, "timeout_secs": 1 }));
    let text = told(&sim, &workspace, &[]);
    assert!(
        text.contains("begun") && text.contains("[timed out after 1 s]"),
        "{text}"
    );
    let sleepers = || processes_with(&format!("sleep {marker}"));
    assert!(eventually(PATIENCE, || sleepers().is_empty()));
}

/// SAFE-2 (S6.5): a dangerous command is refused, and the message names the rule.
#[test]
fn s6_5_dangerous_commands_are_refused() {
    let (sim, workspace) = scene("bash", json!({ "command": "rm -rf /" }));
    let text = told(&sim, &workspace, &["--mode", "full"]);
    assert!(
        text.contains("Refused (security.blocked_commands)") && text.contains("rm"),
        "{text}"
    );
}

/// SAFE-1 (S6.6): a command sees only the allowed variables.
#[test]
fn s6_6_no_secret_is_passed_on() {
    let (sim, workspace) = scene("bash", json!({ "command": "env" }));
    let text = told(&sim, &workspace, &[]);
    assert!(
        text.contains("PATH=") && text.contains("WINDLASS_SESSION="),
        "{text}"
    );
    assert!(!text.contains("hunter2") && !text.contains("MY_TOKEN"), "{text}");
}

/// TOOL-5 (S6.7): a tool declared in YAML is available and can be called.
#[test]
fn s6_7_a_declared_tool_is_called() {
    let (sim, workspace) = scene("greet", json!({ "name": "Ann" }));
    declare(
        &workspace,
        "tools:\n  - { name: greet, description: Greets., category: read, cmd: echo, args: [\"hello {{name}}\"], \
         parameters: { name: { type: string } } }\n",
    );
    assert_eq!(told(&sim, &workspace, &[]), "hello Ann");
}

/// TOOL-6 (S6.8): there is no shell; shell syntax stays literal.
#[test]
fn s6_8_metacharacters_stay_literal() {
    let nasty = "a; touch pwned $(touch pwned) `touch pwned` > pwned | touch pwned";
    let (sim, workspace) = scene("greet", json!({ "name": nasty }));
    declare(
        &workspace,
        "tools:\n  - { name: greet, description: Greets., category: read, cmd: echo, args: [\"{{name}}\"], \
         parameters: { name: { type: string } } }\n",
    );
    assert_eq!(told(&sim, &workspace, &[]), nasty);
    assert!(!workspace.has("pwned"));
}

/// TOOL-6 (S6.9): a value outside its list or pattern is rejected.
#[test]
fn s6_9_injections_are_refused() {
    for parameter in [
        "{ type: string, enum: [pods, nodes] }",
        "{ type: string, pattern: \"[a-z]+\" }",
    ] {
        let (sim, workspace) = scene("get", json!({ "resource": "pods; rm -rf ~" }));
        declare(
            &workspace,
            &format!(
                "tools:\n  - {{ name: get, description: Gets., category: read, cmd: echo, args: [\"{{{{resource}}}}\"], \
                 parameters: {{ resource: {parameter} }} }}\n"
            ),
        );
        let text = told(&sim, &workspace, &[]);
        assert!(text.contains("Invalid arguments for get: `resource`"), "{text}");
    }
}

/// SAFE-3 (S6.10): reading outside the allowed paths is refused.
#[test]
fn s6_10_reading_outside_is_refused() {
    let outside = elsewhere();
    std::fs::write(outside.path().join("a.txt"), "hunter2").unwrap();
    let path = outside.path().join("a.txt");
    let (sim, workspace) = scene("read_file", json!({ "path": path }));
    let text = told(&sim, &workspace, &[]);
    assert!(text.contains("Path is outside allowed paths"), "{text}");
}

/// SAFE-3 (S6.11): a denied path takes precedence over an allowed one.
#[test]
fn s6_11_denied_wins_over_allowed() {
    let (sim, workspace) = scene("write_file", json!({ "path": "private/a.txt", "content": "x" }));
    workspace.write("private/keep", "");
    let text = told(&sim, &workspace, &["-c", "security.denied_paths=[\"./private\"]"]);
    assert!(text.contains("Path is denied by security policy"), "{text}");
    assert!(!workspace.has("private/a.txt"));
}

/// SAFE-3 (S6.12): a link that leads outside is refused.
#[test]
fn s6_12_links_may_not_lead_out() {
    let outside = elsewhere();
    std::fs::write(outside.path().join("a.txt"), "hunter2").unwrap();
    let (sim, workspace) = scene("read_file", json!({ "path": "link/a.txt" }));
    symlink(outside.path(), workspace.path().join("link")).unwrap();
    let text = told(&sim, &workspace, &[]);
    assert!(text.contains("Path is outside allowed paths"), "{text}");
}

/// SAFE-1 (S6.13): variables that a tool declares are passed to it, and only to it.
#[test]
fn s6_13_declared_variables_are_passed() {
    let (sim, workspace) = scene("show", json!({}));
    declare(
        &workspace,
        "tools:\n  - { name: show, description: Shows., category: read, cmd: env, env: { REGION: eu, TOKEN: \"${MY_TOKEN}\" } }\n",
    );
    let text = told(&sim, &workspace, &[]);
    assert!(
        text.contains("REGION=eu") && text.contains("TOKEN=hunter2"),
        "{text}"
    );
}

/// SAFE-5 (S6.14): in an unattended run, an `admin` tool is blocked unless it is listed.
#[test]
fn s6_14_admin_needs_to_be_listed() {
    for (listed, runs) in [("[]", false), ("[\"deploy\"]", true)] {
        let (sim, workspace) = scene("deploy", json!({}));
        declare(
            &workspace,
            "tools:\n  - { name: deploy, description: Deploys., category: admin, cmd: echo, args: [deployed] }\n",
        );
        let allow = format!("security.allow={listed}");
        let text = told(&sim, &workspace, &["--mode", "unattended", "-c", &allow]);
        assert_eq!(text.contains("deployed"), runs, "{listed}: {text}");
        assert_eq!(text.contains("Permission denied"), !runs, "{listed}: {text}");
    }
}
