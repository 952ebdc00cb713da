//! An interactive session over pipes: each line is a message, the answers are on standard output.

use std::path::Path;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Output, PATIENCE, Run, SimServer, WIRES, Workspace, eventually};

use super::support::{script, with_replies, workspace};

/// Runs a session with these input lines and returns its output.
fn talk(workspace: &Workspace, args: &[&str], said: impl Into<Vec<u8>>) -> Output {
    workspace.run(args).stdin(said).output()
}

fn sessions(workspace: &Workspace) -> Vec<Value> {
    let listed = workspace.run(&["sessions", "list", "--all", "-n", "0", "--json"]);
    listed.output().assert_code(0).json().as_array().unwrap().clone()
}

/// Runs a shell command line in which `$WINDLASS` is the binary.
fn shell(workspace: &Workspace, line: &str) -> Output {
    let run = Run::new(Path::new("sh"), &["-c", line]).cwd(workspace.path());
    run.env("WINDLASS", env!("CARGO_BIN_EXE_windlass"))
        .env("HOME", &workspace.user_home().display().to_string())
        .env("WINDLASS_HOME", &workspace.home().display().to_string())
        .output()
}

#[track_caller]
fn wait_for_requests(sim: &SimServer, count: usize) {
    assert!(eventually(PATIENCE, || sim.count() == count));
}

/// A reply that takes long enough to be interrupted.
fn slow() -> Reply {
    Reply::text("slow").fault(Fault::new().delay_ms(60_000))
}

/// UI-1, UI-6: lines become turns of one session, in order; answers go to standard output, everything else to
/// standard error; and the session can be resumed.
#[test]
fn lines_are_turns_of_one_session() {
    for wire in WIRES {
        let replies = ["one", "two", "three"].map(Reply::text);
        let (sim, workspace) = with_replies(wire, replies);
        let output = talk(&workspace, &[], "first\n\n  \nsecond \\\nhalf\n");
        assert_eq!(output.assert_code(0).stdout, "one\ntwo\n", "{output}");
        let kept = sessions(&workspace);
        assert_eq!(kept.len(), 1);
        let id = kept[0]["id"].as_str().unwrap();
        output.assert_says(&format!("Resume with: windlass --resume {id}"));
        assert!(!output.stderr.contains("> "), "nobody types: {output}");

        let again = talk(&workspace, &["--resume", id], "third");
        assert_eq!(again.assert_code(0).stdout, "three\n", "{again}");
        again.assert_says("resuming");
        let outlines = sim.outlines();
        assert!(
            outlines[1].contains("first") && outlines[1].contains("second \\nhalf"),
            "{outlines:?}"
        );
        assert!(outlines[2].contains("second \\nhalf"), "{outlines:?}");
        // Only the first message contains the working folder.
        let told = |outline: &str| outline.matches("working directory:").count();
        assert_eq!(
            outlines.iter().map(|outline| told(outline)).collect::<Vec<_>>(),
            [1, 1, 1]
        );
        assert_eq!(sessions(&workspace).len(), 1);
        sim.assert_valid();
    }
}

/// SES-10: `--continue` resumes the latest session with messages, even if an empty session was started since.
#[test]
fn an_empty_session_is_not_resumed() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("ok").forever()]);
    talk(&workspace, &[], "alpha\n").assert_code(0);
    let id = sessions(&workspace)[0]["id"].as_str().unwrap().to_owned();
    let lines = format!("/clear\n/session resume {id}\n");
    talk(&workspace, &["--continue"], lines).assert_code(0);
    talk(&workspace, &["--continue"], "beta\n").assert_code(0);
    let asked = sim.outlines().pop().unwrap();
    assert!(asked.contains("alpha") && asked.contains("beta"), "{asked}");
}

/// SES-11: after a rewind to before the first message, the model receives the environment again.
#[test]
fn going_back_to_the_beginning_tells_the_place() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("ok").forever()]);
    talk(&workspace, &[], "alpha\nbeta\n/rewind 1\ngamma\n").assert_code(0);
    let requests = sim.requests();
    let asked = requests
        .iter()
        .map(|request| String::from_utf8_lossy(&request.raw));
    let places = asked.map(|asked| asked.matches("<environment>").count());
    assert_eq!(places.collect::<Vec<_>>(), [1, 1, 1]);
    let last = sim.outlines().pop().unwrap();
    assert!(last.contains("gamma") && !last.contains("alpha"), "{last}");
}

/// UI-1, SES-10: `--continue` and `--fork` choose the session, `--ephemeral` saves nothing, and settings
/// apply.
#[test]
fn options_choose_the_session() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let none = talk(&workspace, &["--continue"], "hi\n");
    none.assert_code(2).assert_says("there is no session in ");
    assert_eq!(sessions(&workspace).len(), 0);
    talk(&workspace, &["--mode", "plan"], "alpha\n/mode\n").assert_code(0);
    talk(&workspace, &["--continue"], "beta\n").assert_code(0);
    assert_eq!(sessions(&workspace).len(), 1);
    assert!(sim.outlines()[1].contains("alpha"));
    talk(&workspace, &["--continue", "--fork"], "gamma\n").assert_code(0);
    assert_eq!(sessions(&workspace).len(), 2);
    let kept = talk(&workspace, &["--ephemeral"], "delta\n");
    assert!(!kept.assert_code(0).stderr.contains("--resume"), "{kept}");
    assert_eq!(sessions(&workspace).len(), 2);
    for args in [
        &["--fork"][..],
        &["--require-done"],
        &["-o", "json"],
        &["--full-screen"],
        &["--plain", "--full-screen"],
        &["--plain", "-p", "hi"],
        &["--resume", "nothing"],
    ] {
        talk(&workspace, args, "hi\n").assert_code(2);
    }
    assert_eq!(sim.count(), 4);
}

/// CMD-2, UI-1: commands work as elsewhere, none reaches a model, and a misspelled one is reported with a
/// suggestion.
#[test]
fn commands_reach_no_model() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine")]);
    let output = talk(
        &workspace,
        &[],
        "/help\n/status\n/mode plan\n/mode\n/sessoin list\n/cost\n",
    );
    for text in ["/session", "provider     test", "plan: ", "No costs"] {
        assert!(output.assert_code(0).stdout.contains(text), "{text}: {output}");
    }
    output.assert_says("there is no command /sessoin; did you mean /session?");
    assert!(
        !output.stderr.contains("--resume"),
        "nothing was said to a model: {output}"
    );
    assert_eq!((sim.count(), sessions(&workspace).len()), (0, 0));

    let last = talk(&workspace, &[], "/sessoin\n");
    last.assert_code(2);
    let left = talk(&workspace, &[], "hi\n/exit\nnever said\n");
    assert_eq!(left.assert_code(0).stdout, "fine\n", "{left}");
    assert_eq!(sim.count(), 1);

    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("a"), Reply::text("b")]);
    let output = talk(&workspace, &[], "tell zebras\n/clear\nho\n/etc/hosts is odd\n");
    output.assert_code(8);
    assert_eq!(sessions(&workspace).len(), 2);
    assert!(
        !sim.outlines()[1].contains("zebras"),
        "a new session: {:?}",
        sim.outlines()
    );
    assert!(
        sim.outlines()[1].contains("working directory:"),
        "{:?}",
        sim.outlines()
    );
}

/// UI-1: the exit code is that of the last turn, as in `exec`; a failed turn does not end the session.
#[test]
fn the_exit_code_is_that_of_the_last_turn() {
    let failing = || Reply::default().fault(Fault::status(400).message("not like this"));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [failing(), Reply::text("fine"), failing()]);
    let output = talk(&workspace, &[], "one\ntwo\n");
    assert_eq!(output.assert_code(0).stdout, "fine\n", "{output}");
    output.assert_says("not like this");
    talk(&workspace, &[], "three\n").assert_code(8);

    let denied = || Reply::call("bash", json!({ "command": "curl -sS http://a.localhost:1/" }));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [denied(), Reply::text("fine"), denied()]);
    let output = talk(&workspace, &[], "go\ny\n");
    assert_eq!(
        output.assert_code(0).stdout,
        "fine\n",
        "no line of a pipe is an answer: {output}"
    );
    output
        .assert_says("allow it with -c 'security.allow=[\"bash(curl -sS http://a.localhost:1/, network)\"]'");
    talk(&workspace, &[], "go\n").assert_code(5);
}

/// UI-1: Ctrl-C stops the turn and the session continues; lines that arrived in the meantime are processed in
/// order.
#[test]
fn an_interrupt_stops_the_turn_only() {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [slow(), Reply::text("on"), Reply::text("and on")],
    );
    let mut running = workspace.run(&[]).open_stdin().start();
    running.say("wait for it\nnext\n");
    wait_for_requests(&sim, 1);
    running.interrupt();
    running.wait_for_stdout("on\n");
    running.wait_for_stderr("interrupted");
    running.say("last\n");
    running.hush();
    let output = running.output();
    assert_eq!(output.assert_code(0).stdout, "on\nand on\n", "{output}");
    let asked = |index: usize| sim.requests()[index].seen.last_user_text().map(str::to_owned);
    assert!(asked(1).unwrap().ends_with("next") && asked(2).unwrap().ends_with("last"));

    // The exit code is that of an interruption, both after a stopped turn and after a termination signal.
    let (sim, workspace) = with_replies(Protocol::Anthropic, [slow()]);
    let running = workspace.run(&[]).stdin("wait for it\n").start();
    wait_for_requests(&sim, 1);
    running.interrupt();
    running.output().assert_code(130).assert_says("--resume");

    let (sim, workspace) = with_replies(Protocol::Anthropic, [slow()]);
    let mut running = workspace.run(&[]).open_stdin().start();
    running.say("wait for it\nnever asked\n");
    wait_for_requests(&sim, 1);
    running.terminate();
    running.output().assert_code(130);
    assert_eq!(sim.count(), 1);

    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    let mut running = workspace.run(&[]).open_stdin().start();
    running.say("hi\n");
    running.wait_for_stdout("fine\n");
    running.wait_for_stderr("model call");
    running.interrupt();
    running.output().assert_code(130);
}

/// UI-1: a standard input that is closed, empty or not a byte stream is reported, with the exit code of wrong
/// usage.
#[test]
fn nothing_can_be_said() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    for line in [
        "exec \"$WINDLASS\" <&-",
        "exec \"$WINDLASS\" < /dev/null",
        "printf '' | \"$WINDLASS\"",
        "printf '\\n  \\n' | \"$WINDLASS\"",
    ] {
        let output = shell(&workspace, line);
        output.assert_code(2).assert_says("no input: standard input");
    }
    let folder = shell(&workspace, "\"$WINDLASS\" < /");
    folder.assert_code(2).assert_says("standard input cannot be read");
    assert_eq!((sim.count(), sessions(&workspace).len()), (0, 0));
}

/// UI-1: invalid UTF-8 is replaced with a warning; a line that is too long is rejected, and the next one is
/// used.
#[test]
fn odd_lines_are_reported() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let output = talk(&workspace, &[], b"caf\xe9 au lait\n".to_vec());
    assert_eq!(output.assert_code(0).stdout, "fine\n");
    output.assert_says("not valid UTF-8");
    assert!(
        sim.outlines()[0].contains("caf\u{fffd} au lait"),
        "{:?}",
        sim.outlines()
    );

    let long = "x".repeat((1 << 20) + 1);
    let output = talk(&workspace, &[], format!("{long}\nshort\n"));
    assert_eq!(output.assert_code(0).stdout, "fine\n");
    output.assert_says("this line is longer than 1 MB");
    talk(&workspace, &[], long)
        .assert_code(2)
        .assert_says("longer than 1 MB");
    assert_eq!(sim.count(), 2);
}

/// UI-1: without a key the simulated model answers, with a notice; a missing key of a requested provider is
/// reported, and commands still work.
#[test]
fn no_key_is_needed() {
    let workspace = workspace();
    let output = talk(&workspace, &[], "hello\n");
    output
        .assert_code(0)
        .assert_says("no API key found: using the simulated model. /connect sets up a real one\n");
    assert!(output.stdout.contains("[simulated model]"), "{output}");
    let exec = workspace.run(&["exec", "hello"]).output();
    exec.assert_code(8).assert_says("no model is configured");

    let output = talk(&workspace, &["--provider", "anthropic"], "/mode\nhello\n");
    output.assert_code(8).assert_says("ANTHROPIC_API_KEY");
    assert!(output.stdout.contains("auto: "), "{output}");
    talk(&workspace, &["--provider", "nonsense"], "hello\n").assert_code(3);
}

/// UI-1: when the reader of the output is gone, the turn is stopped and the session ends with the matching
/// exit code.
#[test]
fn a_reader_that_leaves_ends_it() {
    let long = "a long answer ".repeat(50_000);
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text(&long), Reply::text("more")]);
    let line = "{ printf 'go\\nand on\\n' | \"$WINDLASS\"; echo \"code $?\" >&2; } | head -c 5";
    let output = shell(&workspace, line);
    output.assert_code(0).assert_says("code 141");
    assert_eq!(sim.count(), 1);
}

/// SAFE-7: no control sequence from a model reaches a reader, terminal or not.
#[test]
fn answers_are_clean() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("a\u{1b}]0;evil\u{7}b\u{1b}[2J")]);
    let output = talk(&workspace, &[], "hi\n");
    assert_eq!(output.assert_code(0).stdout, "ab\n");
}

/// UI-1: with `--plain`, progress is reported in complete lines, one per call, with the reason of a failure.
#[test]
fn plain_lines_tell_each_call() {
    let replies = [
        Reply::call("read_file", json!({ "path": "a.txt" })).say("Let me look."),
        Reply::call("read_file", json!({ "path": "none.txt" })),
        Reply::call(
            "bash",
            json!({ "command": "echo; printf 'x%.0s' $(seq 500); echo; echo second; exit 3" }),
        ),
        Reply::text("It says alpha."),
    ];
    let sim = SimServer::script(script(replies));
    let workspace = workspace();
    workspace.use_sim(&sim, Protocol::Anthropic);
    workspace.write("a.txt", "alpha\n");
    let output = workspace
        .run(&["--plain"])
        .env("FORCE_COLOR", "1")
        .stdin("what is in a.txt\n")
        .output();
    assert_eq!(
        output.assert_code(0).stdout,
        "Let me look.\nIt says alpha.\n",
        "{output}"
    );
    output.assert_says("[read_file] a.txt … done in ");
    let failed = |title: &str| {
        let line = output.stderr.lines().find(|line| line.starts_with(title));
        let (_, after) = line.unwrap_or_default().split_once("… failed after ").unwrap();
        after.split_once(" s: ").unwrap().1.to_owned()
    };
    assert!(failed("[read_file] none.txt").contains("none.txt"), "{output}");
    let long = failed("[bash]");
    assert!(long.starts_with("xxx") && long.chars().count() < 130, "{output}");
    assert!(!long.contains("second"), "{output}");
    assert!(
        !output.stderr.contains('\u{1b}') && !output.stderr.contains('│'),
        "{output}"
    );
}

/// UI-1, CMD-2: a line that starts with an exclamation mark is a shell command: its output is the answer, no
/// model is called, and the model sees it with the next message.
#[test]
fn an_exclamation_mark_runs_a_command() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("I see")]);
    let output = talk(&workspace, &[], "!echo hi there\nwhat did it say?\n");
    assert_eq!(output.assert_code(0).stdout, "hi there\nI see\n", "{output}");
    let outlines = sim.outlines();
    assert_eq!(outlines.len(), 1);
    assert!(outlines[0].contains("echo hi there"), "{outlines:?}");
    sim.assert_valid();
}
