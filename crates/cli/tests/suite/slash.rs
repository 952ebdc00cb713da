//! Slash commands as a prompt: they run without calling a model.

use std::fs;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{check_events, with_replies, workspace};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

fn sessions(workspace: &Workspace) -> Vec<Value> {
    let listed = run(workspace, &["sessions", "list", "--all", "-n", "0", "--json"]);
    listed.assert_code(0).json().as_array().unwrap().clone()
}

/// Writes a user command.
fn define(workspace: &Workspace, name: &str, text: &str) {
    let file = workspace.home().join("config/commands").join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// CMD-1, CMD-2: commands need no provider and no settings, print their text, and leave no session behind.
#[test]
fn commands_need_nobody() {
    let workspace = workspace();
    let cases: [(&[&str], &str); 9] = [
        (&["exec", "/help"], "/session"),
        (&["exec", "/help", "undo"], "/undo [--conversation] [--force]"),
        (&["exec", "/status"], "no model is configured"),
        (&["exec", "/cost"], "No costs"),
        (&["exec", "/tools"], "read_file"),
        (&["exec", "/permissions"], "mode   auto"),
        (&["exec", "/session", "list"], "No sessions found."),
        (&["-p", "/mode"], "auto: "),
        (&["exec", "/exit"], ""),
    ];
    for (args, text) in cases {
        let output = run(&workspace, args);
        assert!(output.assert_code(0).stdout.contains(text), "{args:?}: {output}");
    }
    assert_eq!(sessions(&workspace), Vec::<Value>::new());
}

/// CMD-1: an unknown command ends with code 2 and a suggestion, a failing command with code 1, and text that
/// only looks like a command goes to the model.
#[test]
fn what_is_wrong_is_reported() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("it is").forever()]);
    let unknown = run(&workspace, &["exec", "/sessoin", "list"]);
    unknown.assert_code(2).assert_says("did you mean /session?");
    let usage = run(&workspace, &["exec", "/cost everything"]);
    usage
        .assert_code(2)
        .assert_says("/cost [session|model|cause|day]");
    let failed = run(&workspace, &["exec", "/session resume nothing"]);
    failed.assert_code(1).assert_says("Session not found: nothing");
    let none = run(&workspace, &["exec", "--continue", "/status"]);
    none.assert_code(2).assert_says("there is no session in ");
    assert_eq!(sim.count(), 0);
    for text in ["/etc/hosts is odd", " /help"] {
        let answered = run(&workspace, &["exec", text]);
        assert_eq!(answered.assert_code(0).stdout, "it is\n", "{text}");
    }
    let piped = workspace.run(&["exec"]).stdin("/help").output();
    assert_eq!(piped.assert_code(0).stdout, "it is\n", "what is piped in is text");
    assert_eq!(sim.count(), 3);
}

/// CMD-2: the reply of a command has the shape of any other answer, in every format.
#[test]
fn replies_have_a_shape() {
    let workspace = workspace();
    let json = run(&workspace, &["exec", "-o", "json", "/mode"]);
    let object = json.assert_code(0).json();
    assert_eq!(
        (&object["ok"], &object["model_calls"]),
        (&Value::Bool(true), &Value::from(0))
    );
    assert!(object["result"].as_str().unwrap().starts_with("auto: "), "{json}");
    let stream = run(&workspace, &["exec", "-o", "stream-json", "/mode"]);
    check_events(stream.assert_code(0));
    assert_eq!(stream.story(), ["final"]);
    let wrong = run(&workspace, &["exec", "-o", "json", "/moed"]);
    let object = wrong.assert_code(2).json();
    assert_eq!(object["error"]["kind"], "usage");
}

/// CMD-2, SES-10: with `--continue` and `--resume` a command applies to that session, and does not call its
/// model.
#[test]
fn commands_are_about_a_session() {
    let (sim, workspace) = with_replies(
        Protocol::Chat,
        [Reply::text("about \u{1b}[31m zebras"), Reply::text("more")],
    );
    run(&workspace, &["exec", "tell me"]).assert_code(0);
    for line in [
        "/session name stripes",
        "/cost",
        "/status",
        "/session show",
        "/session export",
    ] {
        run(&workspace, &["exec", "--continue", line]).assert_code(0);
    }
    let shown = run(&workspace, &["exec", "--resume", "stripes", "/session show"]);
    assert!(
        shown.stdout.contains("tell me") && !shown.stdout.contains('\u{1b}'),
        "{shown}"
    );
    let found = run(&workspace, &["exec", "/session search zebras"]);
    assert!(found.stdout.contains("[zebras]"), "{found}");
    assert_eq!((sim.count(), sessions(&workspace).len()), (1, 1));
    let kept = run(&workspace, &["exec", "/session delete stripes"]);
    kept.assert_code(1).assert_says("--yes");
    assert_eq!(sessions(&workspace).len(), 1);
    let fresh = run(&workspace, &["exec", "-o", "json", "--continue", "/clear"]);
    let fresh = fresh.assert_code(0).json()["session"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(
        sessions(&workspace)
            .iter()
            .filter(|info| info["id"] == fresh.as_str())
            .count(),
        0
    );
    run(
        &workspace,
        &["exec", "--resume", &fresh, "/session delete stripes --yes"],
    )
    .assert_code(0);
    assert_eq!(sessions(&workspace).len(), 1);
}

/// CMD-1: user commands are prompts for the model; a broken or large file is reported and affects only
/// itself; changes apply immediately.
#[test]
fn own_commands_are_sent() {
    let (sim, workspace) = with_replies(
        Protocol::Responses,
        [Reply::text("reviewed"), Reply::text("committed")],
    );
    define(
        &workspace,
        "review.md",
        "---\ndescription: Look at a file\nargument-hint: [file]\n---\nReview $1: !`date`\n",
    );
    define(&workspace, "git/commit.md", "Commit with $$: $ARGUMENTS");
    define(&workspace, "broken.md", "---\ndescription: [\n---\ntext");
    define(&workspace, "large.md", &"x".repeat(64 * 1024 + 1));
    define(&workspace, "cost.md", "Mine.");
    let help = run(&workspace, &["exec", "/help"]);
    for part in [
        "/review [file]",
        "Look at a file",
        "/git:commit",
        "broken.md: the part between `---`",
        "large.md: it is larger than 64 KB",
        "cost.md: not used, because /cost is a built-in command",
    ] {
        assert!(help.assert_code(0).stdout.contains(part), "{part}: {help}");
    }
    assert_eq!(sim.count(), 0);
    let reviewed = run(&workspace, &["exec", "/review", "src/a.rs"]);
    assert_eq!(reviewed.assert_code(0).stdout, "reviewed\n");
    run(&workspace, &["exec", "/git:commit", "all", "of it"]).assert_code(0);
    let requests = sim.requests();
    let said = |index: usize| requests[index].seen.last_user_text().unwrap_or_default();
    assert!(said(0).ends_with("Review src/a.rs: !`date`\n"), "{}", said(0));
    assert!(said(1).ends_with("Commit with $: all of it"), "{}", said(1));
    run(&workspace, &["exec", "/broken"]).assert_code(2);
    sim.assert_valid();
}

/// CMD-1, SAFE-6: a project's commands are available while the folder is trusted, not before, and not after a
/// change.
#[test]
fn a_projects_commands_need_trust() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("done")]);
    workspace.write(".windlass/commands/ship.md", "Ship $1.");
    let untrusted = run(&workspace, &["exec", "/ship it"]);
    untrusted.assert_code(2).assert_says("there is no command /ship");
    untrusted.assert_says("is not trusted");
    let review = run(&workspace, &["trust", "--yes"]);
    assert!(review.assert_code(0).stdout.contains("  /ship\n"), "{review}");
    let help = run(&workspace, &["exec", "/help"]);
    assert!(
        help.assert_code(0).stdout.contains("Ship $1. (project)"),
        "{help}"
    );
    run(&workspace, &["exec", "/ship it"]).assert_code(0);
    let sent = sim.requests()[0].seen.last_user_text().map(str::to_owned);
    assert!(sent.unwrap().ends_with("Ship it."));
    workspace.write(".windlass/commands/ship.md", "Ship everything.");
    run(&workspace, &["exec", "/ship it"]).assert_code(2);
    assert_eq!(sim.count(), 1);
}

/// SES-11: `undo`, `redo` and `checkpoint` are subcommands: they need no provider, and report when there is
/// nothing to do.
#[test]
fn undo_is_a_command() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("hello")]);
    run(&workspace, &["undo"])
        .assert_code(2)
        .assert_says("there is no session in ");
    run(&workspace, &["exec", "hi"]).assert_code(0);
    workspace.config("");
    for args in [
        &["undo"][..],
        &["redo", "--force"],
        &["checkpoint", "show", "7"],
        &["checkpoint", "rewind", "7"],
    ] {
        run(&workspace, args).assert_code(1);
    }
    run(&workspace, &["undo", "--session", "nothing"]).assert_code(2);
    assert_eq!(sim.count(), 1);
}

/// SES-11, OBS-1: `checkpoint list` and `context show` only read, so they work while the session is open elsewhere, and
/// leave no session behind.
#[test]
fn reading_needs_no_lease() {
    let write = Reply::call("write_file", json!({ "path": "a.txt", "content": "x" }));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [write, Reply::text("done")]);
    run(&workspace, &["exec", "go"]).assert_code(0);
    let args = ["context", "show"];
    let alone = run(&workspace, &args).assert_code(0).stdout.clone();
    let mut open = workspace.run(&["--plain", "--continue"]).open_stdin().start();
    open.say("/status\n");
    open.wait_for_stdout("idle");
    run(&workspace, &["undo"]).assert_code(4);
    let listed = run(&workspace, &["checkpoint", "list"]);
    assert!(listed.assert_code(0).stdout.contains("write_file"), "{listed}");
    let shown = run(&workspace, &args);
    assert_eq!(
        shown.assert_code(0).stdout.lines().count(),
        alone.lines().count(),
        "{shown}"
    );
    assert_eq!(sessions(&workspace).len(), 1);
    open.say("/exit\n");
    open.output().assert_code(0);
}

/// UI-2, CMD-1: a shell command of the user runs in the session's folder without a model and without
/// approval; its output is printed, and the model sees it with the next prompt.
#[test]
fn own_commands_run_without_a_model() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("I see it").forever()]);
    workspace.write("a.txt", "one");
    let output = run(
        &workspace,
        &[
            "exec",
            "--mode",
            "plan",
            "/shell echo hi > b.txt && cat a.txt b.txt",
        ],
    );
    assert_eq!(output.assert_code(0).stdout, "onehi\n");
    let failed = run(&workspace, &["exec", "--continue", "/shell ls nowhere-at-all"]);
    assert!(
        failed.assert_code(1).stdout.contains("nowhere-at-all"),
        "{failed}"
    );
    assert_eq!(sim.count(), 0);
    let answered = run(&workspace, &["exec", "--continue", "what was that?"]);
    assert_eq!(answered.assert_code(0).stdout, "I see it\n");
    let outline = sim.outlines().concat();
    for text in ["I ran this command myself", "echo hi > b.txt", "onehi"] {
        assert!(outline.contains(text), "{text}: {outline}");
    }
    sim.assert_valid();
    let undone = run(&workspace, &["exec", "--continue", "/undo"]);
    assert!(undone.assert_code(0).stdout.contains("b.txt"), "{undone}");
    assert!(!workspace.path().join("b.txt").exists());
}

/// UI-2, SAFE-1: denied paths are denied to the user's shell commands as well; the events are those of any
/// call.
#[test]
fn own_commands_keep_to_denials() {
    let workspace = workspace();
    let denied = run(
        &workspace,
        &[
            "exec",
            "-c",
            "security.deny=[\"bash(touch *)\"]",
            "/shell touch x",
        ],
    );
    assert!(denied.assert_code(1).stdout.contains("forbids this"), "{denied}");
    assert!(!workspace.path().join("x").exists());
    let events = run(
        &workspace,
        &["exec", "-o", "stream-json", "/shell echo one; echo two"],
    );
    check_events(events.assert_code(0));
}

/// CMD-1: every command of the register is there.
#[test]
fn all_commands_are_listed() {
    let text = workspace().run(&["exec", "/help"]).output().stdout;
    let expected = "help exit clear compact init diff review fork export effort hooks session checkpoint voice provider \
                    model status goal done plan agents cost context tools permissions memory skills mcp cron undo";
    for name in expected.split_whitespace() {
        let is_listed = text.lines().any(|line| {
            let word = line.split_whitespace().next().unwrap_or_default();
            word == format!("/{name}")
        });
        assert!(is_listed, "/{name} is not in\n{text}");
    }
}
