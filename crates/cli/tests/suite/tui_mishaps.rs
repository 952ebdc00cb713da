//! The terminal UI when its terminal, or the machine around it, misbehaves.

use std::fs;

use serde_json::json;
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{PATIENCE, Run, Screen, Signal, Workspace, eventually, processes_with};

use super::support::with_replies;
use super::tui::{EMPTY, check_restored, held, leave, open, say};

/// A long-running command with a marker to find its processes, which leaves a file when it runs.
fn lasting(marker: &str) -> Reply {
    Reply::call(
        "bash",
        json!({ "command": format!("touch up; (setsid sleep {marker} &); sleep {marker}") }),
    )
}

#[track_caller]
fn wait_for_file(workspace: &Workspace, name: &str) {
    assert!(
        eventually(PATIENCE, || workspace.has(name)),
        "there is no file {name}"
    );
}

/// Checks that an interrupted turn is shown after resuming, and that the session continues.
#[track_caller]
fn check_kept(workspace: &Workspace) {
    let mut screen = open(workspace, &["--continue"]);
    screen.wait_for("› remember me");
    say(&mut screen, "are you there?");
    screen.wait_for("I am back.");
    leave(&mut screen);
}

/// UI-2, SES-1: a signal ends the program with its exit code, the terminal is restored, processes are gone,
/// the session is saved.
#[test]
fn a_signal_ends_it() {
    for (number, signal) in [(1, Signal::TERM), (2, Signal::INT)] {
        let marker = format!("81.{number}{}", std::process::id());
        let (sim, workspace) =
            with_replies(Protocol::Anthropic, [lasting(&marker), Reply::text("I am back.")]);
        let mut screen = open(&workspace, &[]);
        say(&mut screen, "remember me");
        wait_for_file(&workspace, "up");
        screen.wait_for("◌ bash");
        screen.signal(signal);
        assert_eq!(screen.wait_exit(), Some(130), "{}", screen.scrollback());
        check_restored(&screen);
        let shown = screen.scrollback();
        assert!(
            shown.contains("Resume with: windlass --resume") && !shown.contains(EMPTY),
            "{shown}"
        );
        let left = || processes_with(&format!("sleep {marker}"));
        assert!(eventually(PATIENCE, || left().is_empty()), "left {:?}", left());
        check_kept(&workspace);
        sim.assert_valid();
    }
}

/// UI-2, SES-1: a closed terminal ends the program soon, with all its processes; the session is saved.
#[test]
fn a_closed_terminal_ends_it() {
    let marker = format!("82.{}", std::process::id());
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [lasting(&marker), Reply::text("I am back.")]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "remember me");
    wait_for_file(&workspace, "up");
    screen.hang_up();
    assert!(matches!(screen.wait_exit(), Some(130 | 141)));
    let left = || processes_with(&format!("sleep {marker}"));
    assert!(eventually(PATIENCE, || left().is_empty()), "left {:?}", left());
    check_kept(&workspace);

    // The same while idle, and in full-screen mode.
    for args in [&[][..], &["--full-screen"]] {
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
        let mut screen = open(&workspace, args);
        screen.hang_up();
        assert!(matches!(screen.wait_exit(), Some(130 | 141)), "{args:?}");
    }
}

/// UI-2: a terminal that is no controlling terminal closes without a signal, and this is detected all the
/// same.
#[test]
fn a_terminal_that_ends_silently_ends_it() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    let folder = workspace.path().display().to_string();
    let args = ["--wait", env!("CARGO_BIN_EXE_windlass"), "--cd", &folder];
    let run = Run::new(std::path::Path::new("setsid"), &args)
        .env("HOME", &workspace.user_home().display().to_string())
        .env("WINDLASS_HOME", &workspace.home().display().to_string());
    let mut screen = run.on_screen(100, 30);
    screen.wait_for(EMPTY);
    let left = || processes_with(&folder);
    assert!(!left().is_empty());
    screen.hang_up();
    assert!(eventually(PATIENCE, || left().is_empty()), "left {:?}", left());
}

/// UI-2, SES-1: killed in the middle of an answer, the program leaves a session that can be resumed.
#[test]
fn a_killed_one_is_resumed() {
    let stalled = Reply::text("a first part of an answer")
        .delta_chars(4)
        .fault(Fault::new().stall_after_events(5));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [stalled, Reply::text("I am back.")]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "remember me");
    screen.wait_for("a fir");
    screen.signal(Signal::KILL);
    assert_eq!(screen.wait_exit(), None);
    check_kept(&workspace);
    sim.assert_valid();
}

/// A shell on a terminal, with the terminal UI in the foreground.
#[track_caller]
fn within_a_shell(workspace: &Workspace) -> Screen {
    let run = Run::new(std::path::Path::new("bash"), &["--norc", "--noprofile", "-i"]).cwd(workspace.path());
    let run = run
        .env("HOME", &workspace.user_home().display().to_string())
        .env("WINDLASS_HOME", &workspace.home().display().to_string());
    // The shell must not mark pastes itself, or the test could not tell which program did.
    let quiet = workspace.write("inputrc", "set enable-bracketed-paste off\n");
    let run = run.env("INPUTRC", &quiet.display().to_string());
    let mut shell = run.env("PS1", "shell: ").on_screen(100, 30);
    shell.wait_for("shell: ");
    shell.type_keys(&format!("'{}'\n", env!("CARGO_BIN_EXE_windlass")));
    shell.wait_for(EMPTY);
    shell
}

/// UI-2: a terminal that was resized while the shell was in the foreground is drawn in its new size.
#[test]
fn a_size_that_changed_in_the_shell_counts() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    let mut shell = within_a_shell(&workspace);
    let rules = |shown: &str| -> Vec<usize> {
        let lines = shown.lines().map(str::trim_end);
        let rules = lines.filter(|line| !line.is_empty() && line.chars().all(|letter| letter == '─'));
        rules.map(|line| line.chars().count()).collect()
    };
    shell.press("ctrl-o");
    shell.wait_until("the rule is as wide as the terminal", |shown| {
        rules(shown) == [100]
    });
    shell.press("ctrl-z");
    shell.wait_until("the shell is back", |shown| shown.trim_end().ends_with("shell:"));
    shell.resize(60, 20);
    shell.type_keys("fg\n");
    shell.wait_until("the rule is as wide as the terminal", |shown| {
        rules(shown) == [60] && shown.contains(EMPTY)
    });
}

/// UI-2: ctrl+z returns to the shell with the terminal restored, also from full-screen mode; fg returns to
/// the text being typed. Without a shell to return to, the UI continues.
#[test]
fn ctrl_z_goes_back_to_the_shell() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let mut shell = within_a_shell(&workspace);
    for is_full in [false, true] {
        if is_full {
            shell.press("ctrl-o");
            shell.wait_for("/ search");
        }
        shell.type_keys("draft");
        shell.wait_for("› draft");
        shell.press("ctrl-z");
        shell.wait_until("the shell is back", |shown| shown.trim_end().ends_with("shell:"));
        let terminal = shell.screen();
        assert!(!terminal.alternate_screen() && !terminal.bracketed_paste() && !terminal.hide_cursor());
        shell.type_keys("echo $((40 + 2)) in the shell\n");
        shell.wait_for("42 in the shell");
        shell.type_keys("fg\n");
        shell.wait_for("› draft");
        shell.press("ctrl-c");
        shell.wait_for(EMPTY);
    }
    shell.press("ctrl-d");
    shell.wait_until("the shell is back", |shown| shown.trim_end().ends_with("shell:"));
    shell.type_keys("echo code $?; exit\n");
    shell.wait_until("it ended well", |shown| shown.contains("code 0"));
    shell.wait_exit();

    let mut screen = open(&workspace, &[]);
    screen.type_keys("draft");
    screen.wait_for("› draft");
    screen.press("ctrl-z");
    screen.type_keys(" and more");
    screen.wait_for("› draft and more");
    screen.press("ctrl-c");
    leave(&mut screen);
}

fn numbered(count: usize) -> String {
    (1..=count)
        .map(|number| format!("item {number} of the list\n\n"))
        .collect()
}

/// UI-2: however often a terminal is resized during an answer, the final screen is right, and typed text is
/// not lost.
#[test]
fn a_storm_of_sizes() {
    for term in ["linux", "xterm-256color"] {
        let reply = Reply::text(&(numbered(3_000) + "The end of it.")).delta_chars(12);
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [reply]);
        let mut screen = workspace.run(&[]).env("TERM", term).on_screen(100, 30);
        screen.wait_for(EMPTY);
        say(&mut screen, "list");
        screen.wait_for("item");
        for number in 0..100_u16 {
            screen.resize(30 + number * 37 % 120, 5 + number * 13 % 50);
            if number % 10 == 0 {
                screen.type_keys("x");
            }
        }
        screen.resize(100, 30);
        screen.wait_for("The end of it.");
        screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
        screen.wait_for("› xxxxxxxxxx");
        let shown = screen.contents();
        assert_eq!(shown.matches("test/sim-1").count(), 1, "{term}\n{shown}");
        assert_eq!(shown.matches("The end of it.").count(), 1, "{term}\n{shown}");
        screen.press("ctrl-c");
        leave(&mut screen);
    }
}

/// UI-2: printed text stays, however the width changes while more arrives. A frame in progress may leave a
/// trace on a terminal that became narrower; nothing may be missing.
#[test]
fn nothing_is_lost() {
    let reply = Reply::text(&(numbered(3_000) + "The end of it.")).delta_chars(6);
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [reply]);
    // The screen of this test does not reflow lines, and this is the name of a terminal that does not.
    let mut screen = workspace.run(&[]).env("TERM", "linux").on_screen(100, 30);
    screen.wait_for(EMPTY);
    say(&mut screen, "list");
    screen.wait_for("item");
    for number in 0..40_u16 {
        let before = screen.raw().len();
        screen.resize(40 + number * 37 % 120, 30);
        assert!(
            eventually(PATIENCE, || screen.raw().len() > before),
            "it is drawn again"
        );
    }
    screen.wait_for("The end of it.");
    leave(&mut screen);
    let shown = screen.scrollback();
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let is_missing = |number: &usize| !lines.contains(&format!("item {number} of the list").as_str());
    let missing: Vec<usize> = (1..=3_000).filter(is_missing).collect();
    assert_eq!(missing, Vec::<usize>::new());
}

/// Returns the memory use of a process in kilobytes.
fn resident(screen: &Screen) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", screen.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

/// UI-2: a terminal that does not read delays only its own screen: the turn continues, memory stays small,
/// and when the terminal reads again it shows the end.
#[test]
fn a_terminal_that_does_not_read() {
    let text = "word ".repeat(20_000);
    let replies = [
        Reply::call("bash", json!({ "command": "touch made" }))
            .say(&text)
            .delta_chars(5),
        Reply::text("The end of it."),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "talk");
    screen.wait_for("› talk");
    screen.pause_reading();
    assert!(
        eventually(2 * PATIENCE, || workspace.has("made")),
        "the turn goes on"
    );
    assert!(eventually(PATIENCE, || sim.count() == 2));
    let resident = resident(&screen);
    assert!(resident < 150 * 1024, "{resident} KB");
    screen.resume_reading();
    screen.wait_for("The end of it.");
    leave(&mut screen);
    assert_eq!(screen.scrollback().matches("The end of it.").count(), 1);
}

/// UI-2: a signal ends the program soon, even if the terminal does not read.
#[test]
fn a_terminal_that_does_not_read_can_be_left() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::text(&numbered(20_000)).delta_chars(40), held()],
    );
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "talk");
    screen.wait_for("item");
    screen.pause_reading();
    screen.signal(Signal::TERM);
    assert_eq!(screen.wait_exit(), Some(130));
}
