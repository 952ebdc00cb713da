//! Approvals on a terminal: the text of a request, and the effect of each answer.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, Workspace};

use super::support::{elsewhere, with_replies};

const OUTSIDE: &str = "cat plain.txt; curl -sS http://a.localhost:1/";

/// Returns a model that makes the same call in two iterations.
fn scene() -> (SimServer, Workspace) {
    let call = |note: &str| {
        Reply::call(
            "bash",
            json!({ "command": OUTSIDE, "description": format!("Look {note}") }),
        )
    };
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            call("once"),
            call("twice"),
            Reply::text("fine"),
            Reply::text("fine"),
        ],
    );
    workspace.write("plain.txt", "plain\n");
    (sim, workspace)
}

/// Runs on a terminal and types each line once the next request is shown.
pub(super) fn answer(workspace: &Workspace, line: &str, answers: &[&str]) -> Output {
    let input: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    workspace.run_on_terminal(line).stdin(input).output()
}

fn questions(output: &Output) -> usize {
    output.stdout.matches("Run this command?").count()
}

/// SAFE-6: the user sees the effect of a call and the reason for the request; "yes, once" asks again, "yes,
/// for this session" does not.
#[test]
fn a_person_is_asked_what_would_happen() {
    let (sim, workspace) = scene();
    let output = answer(&workspace, "exec go", &["y", "y"]);
    assert_eq!(questions(&output), 2, "{output}");
    for shown in [
        "# Look once",
        OUTSIDE,
        "cat plain.txt · curl",
        "It reaches the network.",
    ] {
        assert!(output.stdout.contains(shown), "{shown}\n{output}");
    }
    assert!(sim.outlines()[1].contains("plain"), "the command ran");

    let (sim, workspace) = scene();
    let output = answer(&workspace, "exec go", &["s", "s"]);
    assert_eq!(questions(&output), 1, "{output}");
    assert!(
        output
            .stdout
            .contains("Do not ask again in this session about bash"),
        "{output}"
    );
    assert_eq!(sim.count(), 3);
    assert!(!workspace.home().join("data/grants.json").exists());
}

/// SAFE-6, SAFE-8: with unchanged rules, `permissions test` reports no change for calls that the user allowed, for the
/// user's own commands, and for one of them that was refused.
#[test]
fn what_was_allowed_is_no_change() {
    let calls = Reply::call("bash", json!({ "command": "rm x.txt" }))
        .and_call("read_file", json!({ "path": "/etc/hostname" }));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [calls, Reply::text("fine")]);
    workspace.write("x.txt", "x");
    answer(&workspace, "exec go", &["y", "y"]).assert_code(0);
    assert!(!workspace.has("x.txt"));
    workspace.run(&["exec", "/shell rm -rf /"]).output();
    workspace
        .run(&["exec", "/shell touch y.txt"])
        .output()
        .assert_code(0);
    let tested = workspace.run(&["permissions", "test", "--all-sessions"]).output();
    let said = &tested.assert_code(0).stdout;
    assert!(said.starts_with("4 calls in 3 sessions: 0 changed;"), "{tested}");
}

/// SAFE-6: "always" also holds in later and non-interactive runs, only for what was shown and in this folder;
/// it can be listed and revoked.
#[test]
fn a_lasting_yes_is_bound_to_what_was_shown() {
    let (sim, workspace) = scene();
    assert_eq!(questions(&answer(&workspace, "exec go", &["a", "a"])), 1);
    assert_eq!(sim.count(), 3);
    let listed = workspace.run(&["permissions", "list"]).output();
    assert!(
        listed.stdout.contains("command curl -sS http://a.localhost:1/"),
        "{listed}"
    );

    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(workspace.home().join("data/grants.json"))
            .unwrap()
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);

    let run = |command: &str, folder: &str| {
        let sim = SimServer::script(super::support::script([
            Reply::call("bash", json!({ "command": command })),
            Reply::text("fine"),
        ]));
        workspace.use_sim(&sim, Protocol::Anthropic);
        std::fs::create_dir_all(workspace.path().join(folder)).unwrap();
        let run = workspace.run(&["exec", "go"]).cwd(workspace.path().join(folder));
        run.output().code
    };
    assert_eq!(run(OUTSIDE, "."), Some(0), "the same again");
    assert_eq!(
        run("curl -sS http://a.localhost:1/", "."),
        Some(0),
        "a part of it"
    );
    assert_eq!(
        run("curl -sS http://a.localhost:2/", "."),
        Some(5),
        "another command"
    );
    assert_eq!(run(OUTSIDE, "sub"), Some(5), "another folder");
    let forgot = workspace.run(&["permissions", "forget"]).output();
    assert!(forgot.stdout.contains("forgot 1 approval"), "{forgot}");
    assert_eq!(run(OUTSIDE, "."), Some(5), "taken back");
}

/// SAFE-6, SAFE-7: a model's description cannot pass for the command, invisible characters are shown, and a
/// yes counts only after the whole text was shown.
#[test]
fn a_person_sees_what_they_agree_to() {
    let ask = |command: &str, description: &str, answers: &[&str]| {
        let call = Reply::call("bash", json!({ "command": command, "description": description }));
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        workspace.write("plain.txt", "plain\n");
        (answer(&workspace, "exec go", answers), sim.count())
    };
    let description = format!("list the files\n$ ls -la{}", "\n".repeat(90));
    let (output, _) = ask(
        "cat pl\u{200b}ain.txt; curl -sS http://a.localhost:1/",
        &description,
        &["n"],
    );
    let shown = output.stdout.replace('\r', "");
    assert!(
        shown.contains("\n  $ cat pl�ain.txt; curl -sS http://a.localhost:1/\n  # list the files $ ls -la\n"),
        "{output}"
    );

    let long = format!(
        "cat plain.txt{}curl -sS http://a.localhost:1/",
        "\n: line".repeat(90) + "\n"
    );
    let (output, count) = ask(&long, "Look", &["y", "a", "n"]);
    assert_eq!(count, 1, "{output}");
    let shown = output.stdout.replace('\r', "");
    for line in [
        "$ cat plain.txt\n",
        "more lines: v shows all\n",
        "  curl -sS",
        "Part of it is out of sight",
    ] {
        assert!(shown.contains(line), "{line}\n{output}");
    }
    let (output, count) = ask(&long, "Look", &["y", "v", "y"]);
    assert_eq!(count, 2, "{output}");
    assert!(output.stdout.matches(": line").count() >= 90 + 58, "{output}");
}

/// SAFE-6, LOOP-11: "no" ends the turn with its exit code; "no" with words goes to the model, which
/// continues.
#[test]
fn a_no_ends_the_turn_and_a_note_reaches_the_model() {
    let (sim, workspace) = scene();
    answer(&workspace, "exec go", &["n"]).assert_code(5);
    assert_eq!(sim.count(), 1);

    let (sim, workspace) = scene();
    let output = answer(&workspace, "exec go", &["use the cached copy", "n"]);
    output.assert_code(5);
    assert!(
        sim.outlines()[1].contains("said: use the cached copy"),
        "{}",
        sim.outlines()[1]
    );
    assert!(!sim.outlines()[1].contains("plain\n"));
}

/// SAFE-6, SAFE-7: the request shows the diff of an edit, without the terminal sequences hidden in it.
#[test]
fn an_edit_is_shown_as_a_diff() {
    let call = Reply::call(
        "write_file",
        json!({ "path": "plain.txt", "content": "new \u{1b}[2J line\n" }),
    );
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
    workspace.write("plain.txt", "old line\n");
    let output = answer(
        &workspace,
        "exec go -c security.auto_approve_writes=false",
        &["y"],
    );
    assert!(output.stdout.contains("-old line"), "{output}");
    assert!(output.stdout.contains("+new "), "{output}");
    assert!(!output.stdout.contains("\u{1b}[2J"), "{output}");
    assert!(workspace.read("plain.txt").contains("line"));
}

/// TOOL-2: `ask_user` is available if a user can answer, and the answer goes to the model.
#[test]
fn the_model_asks_the_user() {
    let call = || {
        Reply::call(
            "ask_user",
            json!({ "question": "SessionChoice colour?", "options": ["red", "green"] }),
        )
    };
    for (typed, told) in [("2", "green"), ("blue", "blue")] {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call(), Reply::text("fine")]);
        let output = answer(&workspace, "exec go", &[typed]);
        assert!(output.stdout.contains("2) green"), "{output}");
        assert!(sim.outlines()[1].contains(told), "{}", sim.outlines()[1]);
    }
    let (sim, workspace) = with_replies(Protocol::Anthropic, [call(), Reply::text("fine")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert!(
        sim.outlines()[1].contains("Unknown tool 'ask_user'"),
        "nobody is there"
    );
}

/// SAFE-6: words never approve, in no line; a lasting yes needs its letter twice, and unknown input gets a hint.
#[test]
fn words_approve_nothing() {
    for (typed, hint) in [
        (&["yes", "always", "", "z", "n"][..], "Words do not approve"),
        (&["s", "n"], "Type s again to confirm"),
        (&["7", "n"], "Not a valid answer"),
    ] {
        let (sim, workspace) = scene();
        let output = answer(&workspace, "exec go", typed);
        output.assert_code(5);
        assert_eq!(sim.count(), 1, "{typed:?}: {output}");
        assert!(output.stdout.contains(hint), "{typed:?}: {output}");
        assert!(output.stdout.contains("You said no."), "{output}");
    }
    let (sim, workspace) = scene();
    answer(&workspace, "exec go", &["s", "stop!", "n"]).assert_code(5);
    assert!(sim.outlines()[1].contains("said: stop!"), "{}", sim.outlines()[1]);
}

/// SAFE-5: every question has a reason in plain words.
#[test]
fn a_question_says_why() {
    for (command, reason) in [
        ("git reset --hard", "It discards uncommitted changes."),
        ("git clean -fdx", "It deletes untracked files."),
        ("docker run x", "It works with containers"),
        (
            "npm install left-pad",
            "It reaches registry.npmjs.org, and no other host.",
        ),
        ("rm plain.txt", "`rm` is on your list security.blocked_commands."),
    ] {
        let call = Reply::call("bash", json!({ "command": command }));
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        let output = answer(&workspace, "exec go", &["n"]);
        assert!(output.stdout.contains(reason), "{command}: {output}");
        assert!(!output.stdout.contains("admin"), "{output}");
    }
}

/// SAFE-2: with a person there, a listed command asks, and only for this time; what aims outside the workspace is
/// refused without a question.
#[test]
fn a_listed_command_asks_each_time() {
    let remove = |path: &str| Reply::call("bash", json!({ "command": format!("rm {path}") }));
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [remove("one.txt"), remove("one.txt"), Reply::text("fine")],
    );
    workspace.write("one.txt", "");
    let output = answer(&workspace, "exec go", &["s", "a", "y", "n"]);
    output.assert_code(5);
    assert_eq!(questions(&output), 2, "{output}");
    assert!(!workspace.has("one.txt"), "{output}");
    assert!(!output.stdout.contains("for this session"), "{output}");
    assert!(!workspace.home().join("data/grants.json").exists());
    for path in [
        "-rf /",
        "-rf ~",
        "-rf \"$HOME\"",
        "-rf ../x",
        "/etc/hostname",
        "-rf ~root",
        "-rf $(pwd)/../x /usr",
    ] {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [remove(path), Reply::text("fine")]);
        // The temporary folder may be written, and the project of a test is in it.
        let temp = workspace.path().join("temp");
        std::fs::create_dir_all(&temp).unwrap();
        let run = workspace.run_on_terminal("exec go");
        let output = run.env("TMPDIR", &temp.display().to_string()).output();
        output.assert_code(0);
        assert_eq!(questions(&output), 0, "{path}: {output}");
        let told = &sim.outlines()[1];
        assert!(told.contains("security.blocked_commands"), "{path}: {told}");
    }
}

/// SAFE-11: what a person approves outside the workspace works with every tool, for that path and that call; reading
/// there needs no question, as with `cat`.
#[test]
fn an_approval_outside_is_honoured() {
    let outside = elsewhere();
    let path = |name: &str| outside.path().join(name).display().to_string();
    std::fs::write(outside.path().join("old.txt"), "old\n").unwrap();
    let patch = format!(
        "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n",
        path("patched.txt")
    );
    let calls = [
        Reply::call("write_file", json!({ "path": path("new.txt"), "content": "x" })),
        Reply::call("read_file", json!({ "path": path("old.txt") })),
        Reply::call(
            "edit_file",
            json!({ "path": path("old.txt"), "old_string": "old", "new_string": "changed" }),
        ),
        Reply::call("apply_patch", json!({ "patch": patch })),
        Reply::text("fine"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, calls);
    let temp = workspace.path().join("temp");
    std::fs::create_dir_all(&temp).unwrap();
    let run = workspace
        .run_on_terminal("exec go")
        .env("TMPDIR", &temp.display().to_string());
    let output = run.stdin("y\ny\ny\n".to_owned()).output();
    output.assert_code(0);
    let read = |name: &str| std::fs::read_to_string(outside.path().join(name)).unwrap_or_default();
    assert_eq!(
        (read("new.txt"), read("old.txt"), read("patched.txt")),
        ("x".into(), "changed\n".into(), "x\n".into()),
        "{output}"
    );
    assert!(
        output.stdout.contains("It writes outside the workspace."),
        "{output}"
    );
    assert!(
        output.stdout.contains("-old"),
        "the diff shows what is there: {output}"
    );
    assert!(sim.outlines()[2].contains("old"), "{}", sim.outlines()[2]);
}
