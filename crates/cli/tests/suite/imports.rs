//! Importing and resuming sessions of other agents and machines.

use serde_json::Value;
use windlass_core::log::INTERRUPTED_TEXT;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, WIRES, Workspace};

use super::support::{Dice, repository_file, with_replies};

fn fixture(name: &str) -> String {
    repository_file(&format!("crates/cli/tests/fixtures/sessions/{name}.jsonl"))
}

fn import(workspace: &Workspace, content: &str, more: &[&str]) -> Output {
    let file = workspace.write("past.jsonl", content).display().to_string();
    let mut args = vec!["sessions", "import", &file];
    args.extend(more);
    workspace.run(&args).output()
}

fn exported(workspace: &Workspace, id: &str, format: &str) -> Output {
    let export = ["sessions", "export", id, "--format", format];
    workspace.run(&export).output()
}

/// Returns the roles of a session's messages.
fn roles(record: &Value) -> Vec<&str> {
    let entries = record["entries"].as_array().unwrap().iter();
    entries
        .filter_map(|entry| entry["message"]["role"].as_str())
        .collect()
}

/// SES-14: a file of each agent becomes a session that can be resumed: undone messages and sub-agents are
/// skipped, results are matched with their calls, calls without a result are reported as interrupted, and the
/// next request is valid on every wire.
#[test]
fn sessions_of_other_agents_continue() {
    let cases = [
        (
            "claude-code",
            "Count the words of notes",
            vec!["user", "assistant", "tool", "assistant", "tool"],
            vec![
                "12 notes.txt",
                "File does not exist.",
                "I count both.",
                INTERRUPTED_TEXT,
            ],
            vec!["undone", "sub-agent", "Caveat"],
        ),
        (
            "codex",
            "Rename alpha to beta in a.txt.",
            vec![
                "user",
                "assistant",
                "tool",
                "assistant",
                "tool",
                "assistant",
                "tool",
            ],
            vec!["I look at the file.", "alpha\\n", "Begin Patch", INTERRUPTED_TEXT],
            vec!["environment_context", "permissions instructions"],
        ),
        (
            "pi",
            "the largest file",
            vec!["user", "assistant", "tool", "assistant"],
            vec!["big.txt", "no such file", "The largest is big.txt."],
            vec!["undone", INTERRUPTED_TEXT],
        ),
    ];
    for wire in WIRES {
        for (name, title, expected, told, untold) in &cases {
            let (sim, workspace) = with_replies(wire, [Reply::text("went on")]);
            let output = import(&workspace, &fixture(name), &[]);
            let id = output.assert_code(0).stdout.trim().to_owned();
            let record = exported(&workspace, &id, "json").json();
            assert_eq!(roles(&record), *expected, "{name}");
            assert_eq!(record["session"]["label"]["title"], *title);
            let resumed = workspace.run(&["exec", "--resume", &id, "go on"]).output();
            assert_eq!(resumed.assert_code(0).stdout, "went on\n", "{name}");
            sim.assert_valid();
            let request = sim.requests().pop().unwrap();
            let request = String::from_utf8_lossy(&request.raw).into_owned();
            for text in told {
                assert!(
                    request.contains(text),
                    "{name} over {wire}: `{text}` is missing\n{request}"
                );
            }
            for text in untold {
                assert!(
                    !request.contains(text),
                    "{name} over {wire}: `{text}` is there\n{request}"
                );
            }
        }
    }
}

/// SES-14: skipped content is counted, and an imported session is the latest one of its folder.
#[test]
fn what_is_left_out_is_counted() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("went on")]);
    let output = import(&workspace, &fixture("claude-code"), &["--from", "claude-code"]);
    output.assert_code(0).assert_says("1 file-history-snapshot");
    output.assert_says("1 progress").assert_says("1 undone");
    let again = workspace.run(&["exec", "--continue", "go on"]).output();
    assert_eq!(again.assert_code(0).stdout, "went on\n");
}

/// SES-14: a damaged line is reported with its file and number, and nothing is imported; with `--lenient` the
/// rest is.
#[test]
fn a_damaged_file_is_not_taken_in_part() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("went on")]);
    let whole = fixture("pi");
    let cut = whole.trim_end().len() - 20;
    let damaged = format!("{}\n", whole.get(..cut).unwrap());
    let output = import(&workspace, &damaged, &[]);
    output
        .assert_code(1)
        .assert_says("past.jsonl:11:")
        .assert_says("--lenient");
    let none = workspace.run(&["sessions", "list", "--all", "--json"]).output();
    assert_eq!(none.json(), serde_json::json!([]));
    let output = import(&workspace, &damaged, &["--lenient"]);
    let id = output
        .assert_code(0)
        .assert_says("skipped damaged content (1)")
        .stdout
        .trim()
        .to_owned();
    workspace
        .run(&["exec", "--resume", &id, "go on"])
        .output()
        .assert_code(0);
    sim.assert_valid();
    for (content, code) in [("", 2), ("{}\n", 2), ("hello\n", 2), ("[1]\n", 2)] {
        assert_eq!(import(&workspace, content, &[]).code, Some(code), "{content}");
    }
    let empty = import(&workspace, "{}\n", &["--from", "codex"]);
    empty.assert_code(1).assert_says("nothing to import");
    workspace
        .run(&["sessions", "import", "not-there.jsonl"])
        .output()
        .assert_code(2);
}

/// SES-10, SES-14: a Windlass export is restored without loss, under the same id if that is free.
#[test]
fn an_export_comes_back() {
    let calls = serde_json::json!({ "command": "echo hi" });
    let replies = [
        Reply::call("bash", calls).thinking("hm").say("I say hi."),
        Reply::text("done"),
        Reply::text("went on"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let listed = workspace.run(&["sessions", "list", "--json"]).output().json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let first = exported(&workspace, &id, "json").json();
    let content = exported(&workspace, &id, "json").stdout;
    workspace
        .run(&["sessions", "delete", "--yes", &id])
        .output()
        .assert_code(0);
    let back = import(&workspace, &content, &[]);
    assert_eq!(back.assert_code(0).stdout.trim(), id);
    let second = exported(&workspace, &id, "json").json();
    assert_eq!(first["entries"], second["entries"]);
    // The second import gets a new id.
    let copy = import(&workspace, &content, &[]);
    assert_ne!(copy.assert_code(0).stdout.trim(), id);
    let resumed = workspace.run(&["exec", "--resume", &id, "go on"]).output();
    assert_eq!(resumed.assert_code(0).stdout, "went on\n");
    sim.assert_valid();
    let spoiled = content.replacen("\"type\": \"final\"", "\"type\": \"finale\"", 1);
    let refused = import(&workspace, &spoiled, &[]);
    refused.assert_code(1).assert_says("entry ");
    import(&workspace, &spoiled, &["--lenient"]).assert_code(0);
}

/// Damages a file: lines are lost, duplicated, swapped or corrupted.
fn spoiled(whole: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    for _ in 0..1 + dice.roll(4) {
        let (one, other) = (dice.roll(lines.len() as u64), dice.roll(lines.len() as u64));
        let (one, other) = (usize::try_from(one).unwrap(), usize::try_from(other).unwrap());
        match dice.roll(5) {
            0 if lines.len() > 3 => drop(lines.remove(one)),
            1 => lines.insert(one, lines[other].clone()),
            2 => lines.swap(one, other),
            3 => lines[one] = lines[one].replacen("\"id\":", "\"di\":", 1),
            _ => lines[one] = lines[one].chars().take(90).collect(),
        }
    }
    lines.join("\n")
}

/// SES-14: whatever a file has lost, its readable part becomes a session that can be resumed.
#[test]
fn spoiled_files_become_sound_sessions() {
    for (number, name) in (0..).zip(["claude-code", "codex", "pi"]) {
        let (sim, workspace) = with_replies(WIRES[number], [Reply::text("went on").forever()]);
        let mut dice = Dice::new(7 + number as u64);
        for _ in 0..12 {
            let content = spoiled(&fixture(name), &mut dice);
            let output = import(&workspace, &content, &["--lenient", "--from", name]);
            if output.code == Some(1) {
                output.assert_says("nothing to import");
                continue;
            }
            let id = output.assert_code(0).stdout.trim().to_owned();
            let resumed = workspace.run(&["exec", "--resume", &id, "go on"]).output();
            assert_eq!(resumed.assert_code(0).stdout, "went on\n", "{content}");
        }
        sim.assert_valid();
        workspace.run(&["db", "check"]).output().assert_code(0);
    }
}
