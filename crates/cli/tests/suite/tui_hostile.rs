//! The terminal UI with hostile texts and unusual terminals.

use serde_json::json;
use windlass_sim::{Fault, Protocol, Reply, When};
use windlass_testkit::{PATIENCE, Run, Screen, Workspace, eventually};

use super::support::with_replies;
use super::tui::{EMPTY, answer_with, check_restored, has, leave, open, outside, say};
use super::tui_commands::colours;

/// Sequences that take over a terminal: its clipboard, its title, its screen, its text direction.
const PAYLOADS: [&str; 8] = [
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}]0;evil-title\u{7}",
    "\u{1b}[7;7f",
    "\u{1b}[?1049h\u{1b}[5m",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{202e}",
    "\u{9b}35m",
    "\u{2066}",
];

/// Sequences that must not reach the terminal.
const TRACES: [&str; 9] = [
    "ZXZpbA==",
    "\u{1b}]52",
    "evil-title",
    "\u{1b}[7;7f",
    "\u{1b}[5m",
    "+q544e",
    "\u{202e}",
    "\u{9b}",
    "\u{2066}",
];

fn hostile(before: &str) -> String {
    PAYLOADS
        .iter()
        .map(|payload| format!("{before}{payload} "))
        .collect::<String>()
        + "end."
}

#[track_caller]
fn check_clean(screen: &Screen) {
    check(screen, &TRACES);
}

/// The same where everything must be visible: the sequences are shown, and not executed.
#[track_caller]
fn check_harmless(screen: &Screen) {
    let is_command = |trace: &&str| trace.contains(|letter: char| !letter.is_ascii_graphic());
    let commands: Vec<&str> = TRACES.into_iter().filter(is_command).collect();
    check(screen, &commands);
}

#[track_caller]
fn check(screen: &Screen, traces: &[&str]) {
    let raw = screen.raw();
    for trace in traces {
        assert!(
            !has(&raw, trace),
            "{trace:?} reached the terminal\n{}",
            screen.scrollback()
        );
    }
}

/// SAFE-7: replies, reasoning, tool output, requests and errors never reach the terminal as control
/// sequences.
#[test]
fn no_text_commands_the_terminal() {
    let printed = "printf 'out\\033]52;c;ZXZp''bA==\\007\\033]0;evil-''title\\007\\033[7;7f\\342\\200\\256 end of it\\n'; sleep 0.3";
    let asks = json!({ "command": "curl -sS http://a.localhost:1/", "description": hostile("asked ") });
    let replies = [
        Reply::call(
            "bash",
            json!({ "command": printed, "description": hostile("what") }),
        )
        .say(&hostile("said "))
        .thinking(&hostile("thought "))
        .delta_chars(2),
        Reply::text(&hostile("again ")).delta_chars(1),
        Reply::default().fault(Fault::status(400).message(&hostile("wrong "))),
        Reply::call("bash", asks).fault(Fault::new().delay_ms(900)),
        Reply::text("Never."),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &[]);
    screen.paste(&hostile("title "));
    screen.press("enter");
    screen.wait_for("end of it");
    screen.wait_for("again");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    say(&mut screen, "once more");
    screen.wait_for("wrong");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    check_clean(&screen);
    say(&mut screen, "and ask");
    screen.wait_for("Run this command?");
    // A request hides nothing from the user.
    screen.wait_for("␛]0;evil-title␇");
    answer_with(&mut screen, "n");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    for look in ["/resume", "/rewind"] {
        say(&mut screen, look);
        screen.wait_for("title");
        screen.press("esc");
        screen.wait_for(EMPTY);
    }
    screen.press("ctrl-o");
    screen.wait_for("/ search");
    screen.press("ctrl-o");
    leave(&mut screen);
    check_harmless(&screen);
}

/// SAFE-7, SAFE-6: invisible characters in a command are shown as a sign in a request.
#[test]
fn what_cannot_be_seen_is_shown() {
    let command = "cat pl\u{200b}ain\u{e0041}.txt\u{a0}x; curl -sS http://a.localhost:1/\u{2060}a\u{200f}";
    let asks = Reply::call("bash", json!({ "command": command })).fault(Fault::new().delay_ms(900));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [asks]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "go");
    screen.wait_for("Run this command?");
    // The terminal of these tests omits the sign itself from its screen.
    let shown = "$ cat pl�ain�.txt�x; curl -sS http://a.localhost:1/�a�";
    let is_shown = || has(&screen.raw(), shown);
    assert!(eventually(PATIENCE, is_shown), "{}", screen.scrollback());
    answer_with(&mut screen, "n");
    leave(&mut screen);
}

/// SAFE-7: the same for the title that a model gives a session, wherever it is shown.
#[test]
fn no_title_commands_the_terminal() {
    let title = Reply::text("Named\u{1b}]0;t\u{7}\u{202e}by\u{9b}5m a model");
    let title = title.when(When::new().no_tools(true)).forever();
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [title, Reply::text("fine")]);
    let mut screen = open(&workspace, &["-c", "session.title_model=sim-1"]);
    say(&mut screen, "hello");
    screen.wait_for("fine");
    leave(&mut screen);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "/resume");
    screen.wait_for("Named");
    screen.press("enter");
    screen.wait_for("── Named");
    leave(&mut screen);
    let raw = screen.raw();
    for trace in ["\u{1b}]0", "\u{202e}", "\u{9b}"] {
        assert!(
            !has(&raw, trace),
            "{trace:?} reached the terminal\n{}",
            screen.scrollback()
        );
    }
}

/// SAFE-7: the same for file names, which anybody can choose.
#[test]
fn no_name_commands_the_terminal() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    workspace.write(&format!("bad{}name.txt", PAYLOADS[1]), "x");
    let mut screen = open(&workspace, &[]);
    screen.type_keys("@bad");
    screen.wait_for("badname.txt");
    screen.press("tab");
    screen.wait_for("› @bad");
    screen.press("enter");
    screen.wait_for("fine");
    leave(&mut screen);
    check_clean(&screen);
}

fn start(workspace: &Workspace, size: (u16, u16)) -> Screen {
    workspace.run(&[]).on_screen(size.0, size.1)
}

/// UI-2: a terminal of one or a few cells does not fail: the user can work in it, and quit.
#[test]
fn tiny_terminals_are_terminals() {
    for size in [(1, 1), (5, 3), (2, 40), (200, 1)] {
        let (sim, workspace) = with_replies(
            Protocol::Anthropic,
            [outside(), Reply::text("A long answer. ").forever()],
        );
        let mut screen = start(&workspace, size);
        screen.wait_until("something is drawn", |_| true);
        // A terminal that is ready marks pastes.
        wait_ready(&screen);
        say(&mut screen, "go");
        assert!(eventually(PATIENCE, || sim.count() == 1), "{size:?}");
        screen.resize(80, 24);
        screen.wait_for("Run this command?");
        screen.resize(size.0, size.1);
        screen.press("esc");
        screen.resize(60, 10);
        screen.wait_until("the turn has ended", |shown| {
            !shown.contains("esc stops") && shown.contains(EMPTY)
        });
        screen.resize(size.0, size.1);
        screen.press("ctrl-d");
        assert_eq!(screen.wait_exit(), Some(0), "{size:?}\n{}", screen.scrollback());
        check_restored(&screen);
    }
}

#[track_caller]
fn wait_ready(screen: &Screen) {
    let is_ready = || screen.screen().bracketed_paste();
    assert!(eventually(PATIENCE, is_ready));
}

/// A conversation with everything that has a color or a sign.
fn everything(run: impl Fn(&Workspace) -> Run) -> Screen {
    let answer = "# Title\n\n`code` and [link](http://x)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn a() {}\n```\n";
    let replies = [
        Reply::call("write_file", json!({ "path": "a.txt", "content": "new\n" })),
        outside(),
        Reply::text(&format!("{answer}\nDone — 日本語 “quoted”.\n\nThe end.")).delta_chars(5),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "old\n");
    let mut screen = run(&workspace).on_screen(100, 40);
    screen.wait_for(EMPTY);
    say(&mut screen, "go");
    screen.wait_for("Run this command?");
    answer_with(&mut screen, "y");
    screen.wait_for("The end.");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    for look in ["/theme", "/resume", "/keys"] {
        say(&mut screen, look);
        screen.wait_until("it is another screen", |shown| !shown.contains(EMPTY));
        screen.press("esc");
        screen.wait_for(EMPTY);
    }
    screen.press("ctrl-o");
    screen.press("ctrl-o");
    leave(&mut screen);
    screen
}

/// UI-2: with colors off there are none, and otherwise there are.
#[test]
fn no_color_means_none() {
    let plain = everything(|workspace| workspace.run(&[]).env("NO_COLOR", "1"));
    assert_eq!(colours(&plain.raw()), Vec::<String>::new());
    let coloured = everything(|workspace| workspace.run(&[]));
    assert_ne!(colours(&coloured.raw()), Vec::<String>::new());
}

/// UI-2: a terminal without UTF-8 gets only ASCII.
#[test]
fn ascii_terminals_get_ascii() {
    let screen = everything(|workspace| workspace.run(&[]).env("LANG", "C"));
    let raw = screen.raw();
    let odd = raw.iter().position(|byte| !byte.is_ascii());
    assert_eq!(odd, None, "{}", screen.scrollback());
    assert!(screen.scrollback().contains("> go"), "{}", screen.scrollback());
}

/// UI-2, UI-1: a dumb terminal, and `--plain`, get line-by-line output.
#[test]
fn dumb_terminals_get_lines() {
    for (args, term) in [(&[][..], "dumb"), (&["--plain"], "xterm-256color")] {
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
        let mut screen = workspace.run(args).env("TERM", term).on_screen(80, 24);
        screen.wait_for("> ");
        screen.type_keys("hi\n");
        screen.wait_for("fine");
        screen.type_keys("/exit\n");
        assert_eq!(screen.wait_exit(), Some(0));
        assert!(!screen.raw().contains(&0x1b), "{}", screen.scrollback());
    }
}

/// UI-2, CFG-3: an unknown key, an unknown action and a key bound to two actions are reported, with the exit
/// code for settings.
#[test]
fn wrong_keys_are_reported() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    for (setting, text) in [
        ("tui.keys.transcript=hyper+x", "`hyper+x` is not a key"),
        ("tui.keys.transcipt=f2", "unknown action `transcipt`"),
        (
            "tui.keys.transcript=ctrl+r",
            "is bound to both `history` and `transcript`",
        ),
    ] {
        let mut screen = workspace.run(&["-c", setting]).on_screen(160, 24);
        assert_eq!(screen.wait_exit(), Some(3), "{setting}\n{}", screen.contents());
        let shown = screen.contents();
        assert!(
            shown.contains(text) && shown.contains("tui.keys"),
            "{setting}\n{shown}"
        );
        check_restored(&screen);
    }
}

/// UI-2: with a closed standard input the session does not start, terminal or not.
#[test]
fn a_closed_input_is_reported() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    let line = format!("exec '{}' <&-", env!("CARGO_BIN_EXE_windlass"));
    let run = Run::new(std::path::Path::new("sh"), &["-c", &line]).cwd(workspace.path());
    let run = run.env("HOME", &workspace.user_home().display().to_string());
    let mut screen = run
        .env("WINDLASS_HOME", &workspace.home().display().to_string())
        .on_screen(80, 24);
    assert_eq!(screen.wait_exit(), Some(2), "{}", screen.contents());
    assert!(
        screen.contents().contains("no input: standard input is closed"),
        "{}",
        screen.contents()
    );
}
