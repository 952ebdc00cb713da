//! An interactive session at a terminal, which is a pseudo-terminal made by `script`.

use serde_json::json;
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{PATIENCE, Running, Signal, Workspace, eventually, processes_with};

use super::support::with_replies;

/// Bytes that a terminal sends for Ctrl-C and Ctrl-D.
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn start(workspace: &Workspace, line: &str) -> Running {
    let line = format!("--plain {}", line.trim_start_matches("--plain"));
    let run = workspace.run_on_terminal(line.trim_end()).open_stdin();
    run.env("NO_COLOR", "1").start()
}

/// Waits for the prompt to appear for the given number of times.
#[track_caller]
fn wait_for_prompt(running: &mut Running, count: usize) {
    running.wait_until(&format!("it prompts for the {count}. time"), |running| {
        let shown = running.stdout().replace('\r', "\n");
        let is_prompt = |line: &&str| line.trim_start_matches("\u{1b}[K").starts_with("> ");
        shown.split('\n').filter(is_prompt).count() >= count
    });
}

fn outside() -> Reply {
    Reply::call(
        "bash",
        json!({ "command": "curl -sS http://a.localhost:1/; echo ran" }),
    )
}

/// UI-1, SAFE-6: the user is asked before a call runs; input typed before the request is no answer to it, and
/// is sent afterwards.
#[test]
fn a_person_is_asked() {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [outside(), Reply::text("It ran."), Reply::text("You are welcome.")],
    );
    let mut running = start(&workspace, "");
    wait_for_prompt(&mut running, 1);
    running.say("go\ny\n");
    running.wait_for_stdout("Run this command?");
    assert_eq!(sim.count(), 1, "what was typed before is no answer");
    running.say("y\n");
    running.wait_for_stdout("You are welcome.");
    running.say("/exit\n");
    let output = running.output();
    output.assert_code(0);
    assert!(
        output.stdout.contains("Resume with: windlass --resume"),
        "{output}"
    );
    let outlines = sim.outlines();
    assert!(outlines[1].contains("ran"), "{outlines:?}");
    assert_eq!(sim.requests()[2].seen.last_user_text(), Some("y"));

    let (sim, workspace) = with_replies(Protocol::Anthropic, [outside(), Reply::text("fine")]);
    let mut running = start(&workspace, "--plain");
    wait_for_prompt(&mut running, 1);
    running.say("go\n");
    running.wait_for_stdout("Run this command?");
    running.say(CTRL_C);
    wait_for_prompt(&mut running, 2);
    running.say("/exit\n");
    let output = running.output();
    assert!(output.assert_code(0).stdout.contains("interrupted"), "{output}");
    assert_eq!(sim.count(), 1);
}

/// SAFE-6: session approvals and permanent approvals are listed separately.
#[test]
fn what_was_allowed_is_listed() {
    for (answer, line_begins, is_for_session) in
        [("s", "allow  bash in", true), ("a", "always bash in", false)]
    {
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [outside(), Reply::text("It ran.")]);
        let mut running = start(&workspace, "");
        wait_for_prompt(&mut running, 1);
        running.say("go\n");
        running.wait_for_stdout("Run this command?");
        running.say(&format!("{answer}\n"));
        running.wait_for_stdout("again to confirm");
        running.say(&format!("{answer}\n"));
        running.wait_for_stdout("It ran.");
        wait_for_prompt(&mut running, 2);
        running.say("/permissions\n");
        wait_for_prompt(&mut running, 3);
        running.say("/exit\n");
        let output = running.output();
        let lines = output.assert_code(0).stdout.lines();
        let granted: Vec<&str> = lines.filter(|line| line.contains("bash in /")).collect();
        assert_eq!(granted.len(), 1, "{output}");
        assert!(granted[0].starts_with(line_begins), "{output}");
        assert!(granted[0].contains("curl"), "{output}");
        assert_eq!(
            granted[0].contains("(for this session)"),
            is_for_session,
            "{output}"
        );
    }
}

/// UI-1: Ctrl-C during a turn stops it; at the prompt a second one quits, as Ctrl-D does; neither is a
/// failure.
#[test]
fn ctrl_c_and_ctrl_d() {
    let slow = Reply::text("slow").fault(Fault::new().delay_ms(60_000));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [slow, Reply::text("fine")]);
    let mut running = start(&workspace, "");
    wait_for_prompt(&mut running, 1);
    running.say("go\n");
    running.wait_until("the model was asked", |_| sim.count() == 1);
    running.say(CTRL_C);
    running.wait_for_stdout("interrupted");
    wait_for_prompt(&mut running, 2);
    running.say("and on\n");
    running.wait_for_stdout("fine");
    wait_for_prompt(&mut running, 3);
    running.say("half a line");
    running.say(CTRL_C);
    running.wait_for_stdout("Press Ctrl+C again or Ctrl+D to quit");
    running.say(CTRL_C);
    running.output().assert_code(0);

    let mut running = start(&workspace, "");
    wait_for_prompt(&mut running, 1);
    running.say(CTRL_D);
    let output = running.output();
    output.assert_code(0);
    assert!(!output.stdout.contains("--resume"), "nothing was said: {output}");
}

/// UI-1: the reply streams after a spinner; `--plain` and a dumb terminal get lines and nothing that is
/// redrawn.
#[test]
fn what_moves_depends_on_the_terminal() {
    let reply = || Reply::text("Here it is.").fault(Fault::new().delay_ms(400));
    let show = |line: &str, term: &str| {
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [reply()]);
        let run = workspace.run_on_terminal(line).open_stdin().env("TERM", term);
        let mut running = run.start();
        wait_for_prompt(&mut running, 1);
        running.say("go\n");
        running.wait_for_stdout("Here it is.");
        running.say("/exit\n");
        running.output().assert_code(0).stdout.clone()
    };
    // Standard output is redirected, so the terminal shows the progress.
    let moving = show("| cat", "xterm-256color");
    assert!(
        moving.contains("thinking") && moving.contains("\r\u{1b}[K"),
        "{moving}"
    );
    for (line, term) in [("--plain", "xterm-256color"), ("", "dumb")] {
        let still = show(line, term);
        assert!(
            !still.contains('\u{1b}') && !still.contains("thinking"),
            "{still}"
        );
    }
}

/// SAFE-6, UI-1: before a session starts in a folder with its own settings, the user sees them and is asked:
/// "yes" trusts them, "no" is not asked again until they change, and Enter is asked again.
#[test]
fn trust_is_asked_for() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    workspace.write(".windlass/config.toml", "agent.max_iterations = 17\n");
    let begin = |answer: Option<&str>| {
        let mut running = start(&workspace, "");
        if let Some(answer) = answer {
            running.wait_for_stdout("Trust this folder?");
            let shown = running.stdout();
            assert!(shown.contains("agent.max_iterations = 17"), "{shown}");
            running.say(answer);
        }
        wait_for_prompt(&mut running, 1);
        running.say("/exit\n");
        let output = running.output();
        let asked = output.assert_code(0).stdout.contains("Trust this folder?");
        assert_eq!(asked, answer.is_some(), "{output}");
        output.stdout
    };
    assert!(begin(Some("\n")).contains("not trusted"));
    assert!(begin(Some("n\n")).contains("not trusted"));
    assert!(begin(None).contains("not trusted"));
    workspace.write(".windlass/config.toml", "agent.max_iterations = 17 # more\n");
    assert!(!begin(Some("y\n")).contains("not in effect"));
    assert!(!begin(None).contains("not in effect"));
    let shown = workspace.run(&["config", "show"]).output();
    assert!(shown.stdout.contains("max_iterations = 17"), "{shown}");

    // A line that only begins with a letter of an answer is none, and a letter needs Enter.
    workspace.write(".windlass/config.toml", "agent.max_iterations = 17 # again\n");
    for options in ["", "--plain"] {
        let mut running = start(&workspace, options);
        running.wait_for_stdout("Trust this folder?");
        for (times, line) in [(1, "your turn\n"), (2, "no idea\n"), (3, "yess\n")] {
            running.say(line);
            running.wait_until("it asks again", |running| {
                running.stdout().matches("Trust this folder?").count() > times
            });
        }
        running.say("\n");
        wait_for_prompt(&mut running, 1);
        running.say("/exit\n");
        let output = running.output();
        assert!(output.assert_code(0).stdout.contains("not in effect"), "{output}");
    }
    // What was typed before the question is no answer to it.
    let mut running = start(&workspace, "");
    running.say("y\n");
    running.wait_for_stdout("Trust this folder?");
    running.say("\n");
    wait_for_prompt(&mut running, 1);
    running.say("/exit\n");
    let output = running.output();
    assert!(output.assert_code(0).stdout.contains("not in effect"), "{output}");

    // Without a terminal there is no question.
    workspace.write(".windlass/config.toml", "agent.max_iterations = 18\n");
    let piped = workspace.run(&[]).stdin("hi\n").output();
    piped
        .assert_code(0)
        .assert_says("it changed since this folder was trusted");
}

/// UI-1, UI-6: a terminal that goes away stops the turn and ends the program.
#[test]
fn a_terminal_that_goes_away_ends_it() {
    let slow = Reply::text("slow").fault(Fault::new().delay_ms(60_000));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [slow]);
    let marker = "agent.max_iterations=47113";
    for says_something in [true, false] {
        let mut running = start(&workspace, &format!("-c {marker}"));
        wait_for_prompt(&mut running, 1);
        if says_something {
            running.say("go\n");
            running.wait_until("the model was asked", |_| sim.count() == 1);
        }
        running.signal(Signal::KILL);
        let is_gone = || processes_with(marker).is_empty();
        assert!(eventually(PATIENCE, is_gone), "{}", running.stdout());
    }
    let listed = workspace.run(&["sessions", "list", "--all", "--json"]).output();
    let sessions = listed.assert_code(0).json();
    assert_eq!(sessions[0]["standing"], "canceled", "{listed}");
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{listed}");
}

/// GOAL-6: a turn in plan mode ends with a question; yes switches the mode and starts the work, anything else keeps
/// the mode.
#[test]
fn plan_mode_asks_whether_to_go_ahead() {
    let write = Reply::call("write_file", json!({ "path": "made.txt", "content": "x" }));
    let replies = ["Here is my plan.", "Here is another one."].map(Reply::text);
    let replies = replies.into_iter().chain([write, Reply::text("It is built.")]);
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut running = start(&workspace, "--mode plan");
    wait_for_prompt(&mut running, 1);
    running.say("plan it\n");
    running.wait_for_stdout("Go ahead?");
    running.say("2\n");
    wait_for_prompt(&mut running, 2);
    running.say("/mode\n");
    running.wait_for_stdout("plan: ");
    running.say("plan it again\n");
    running.wait_for_stdout("Here is another one.");
    running.wait_until("it asks again", |running| {
        running.stdout().matches("Go ahead?").count() == 2
    });
    running.say("1\n");
    running.wait_for_stdout("It is built.");
    assert!(workspace.has("made.txt"));
    wait_for_prompt(&mut running, 4);
    running.say("/mode\n");
    running.wait_for_stdout("auto: ");
    running.say("/exit\n");
    running.output().assert_code(0);
}

/// GOAL-3: in a session, work without input is shown turn by turn, and Ctrl-C pauses it.
#[test]
fn a_goal_is_paused_at_the_terminal() {
    let replies = [
        Reply::text("One."),
        Reply::call("bash", json!({ "command": "sleep 30" })),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let more = "\n[agent.goal]\nautonomous_enabled = true\nautonomous_turn_delay_ms = 0\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, more);
    let mut running = start(&workspace, "--mode auto");
    wait_for_prompt(&mut running, 1);
    running.say("/goal create --auto --check false do it\n");
    running.wait_for_stdout("Check failed: `false`");
    running.wait_for_stdout("sleep 30");
    running.say(CTRL_C);
    running.wait_for_stdout("Goal paused: you stopped it");
    wait_for_prompt(&mut running, 2);
    running.say("/goal\n");
    running.wait_for_stdout("paused, turn 2 of 50: you stopped it");
    running.say("/exit\n");
    running.output().assert_code(0);
}
