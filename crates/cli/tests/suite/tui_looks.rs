//! The terminal UI's surroundings on a real terminal: header, status line, menus, pickers, diffs, the title.

use std::fs;

use serde_json::json;
use windlass_sim::{Protocol, Reply};

use super::support::with_replies;
use super::tui::{EMPTY, has, held, leave, open, say};

/// UI-2, EXT-1: the header names version, folder, branch, model, mode and the instructions that were read; the
/// status line has folder and branch; the terminal's title names the folder and is given back.
#[test]
fn the_first_screen_says_where_one_is() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    workspace.write(".git/HEAD", "ref: refs/heads/topic\n");
    workspace.write("AGENTS.md", "Be brief.\n");
    let mut screen = open(&workspace, &[]);
    for text in [
        concat!("Windlass ", env!("CARGO_PKG_VERSION")),
        "folder",
        "(topic)",
        "shift+tab changes it",
        "instructions  AGENTS.md",
    ] {
        screen.wait_for(text);
    }
    let shown = screen.contents();
    let status = shown.trim_end().lines().last().unwrap_or_default();
    assert!(status.contains("(topic)"), "{shown}");
    say(&mut screen, "hello");
    screen.wait_for("fine");
    assert!(
        !screen.contents().contains("instructions read"),
        "the header names them"
    );
    say(&mut screen, "/status");
    screen.wait_for("instructions AGENTS.md");
    // What was typed stays above what it printed.
    screen.wait_for("› /status");
    leave(&mut screen);
    let raw = screen.raw();
    assert!(has(&raw, "\x1b]2;windlass: "), "a title");
    assert!(
        has(&raw, "\x1b[22;2t") && has(&raw, "\x1b[23;2t"),
        "the old title returns"
    );
}

/// UI-2: a short list takes the place of the input, and the conversation stays in sight.
#[test]
fn short_lists_leave_the_conversation_in_sight() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "hello");
    screen.wait_for("fine");
    say(&mut screen, "/theme");
    screen.wait_until("the list is below the conversation", |shown| {
        shown.contains("enter choose") && shown.contains("› hello") && shown.contains("fine")
    });
    assert!(
        !has(&screen.raw(), "\x1b[?1049h"),
        "the other screen is not needed"
    );
    screen.press("esc");
    leave(&mut screen);
}

/// UI-2: after a tall request the conversation fills the screen again, and stands in the scrollback once.
#[test]
fn the_screen_is_full_after_a_tall_request() {
    let long: String = (1..=60).map(|line| format!("row {line}\n")).collect();
    let tall = Reply::call("write_file", json!({"path": "tall.txt", "content": long}));
    let talk: Vec<String> = (1..=40).map(|line| format!("- item {line}.")).collect();
    let replies = [Reply::text(&talk.join("\n")), tall, Reply::text("as you like")];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &["--mode", "ask"]);
    say(&mut screen, "talk");
    screen.wait_for("item 40.");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    say(&mut screen, "write");
    screen.wait_for("v show everything");
    super::tui::press_until(&mut screen, "n", |shown| shown.contains("You said no"));
    screen.wait_until("the screen is full", |shown| {
        let last = shown.lines().nth(29).unwrap_or_default();
        last.contains("ask") && shown.contains("item 40.")
    });
    let all = screen.scrollback();
    leave(&mut screen);
    let ended = screen.scrollback();
    for item in ["item 3.", "item 20.", "item 40."] {
        assert_eq!(ended.matches(item).count(), 1, "{item}\n{all}\n-----\n{ended}");
    }
}

/// UI-2: the menu of commands has whole descriptions, a counter, and the arguments of the selected command; case
/// does not matter; an unknown model is warned about.
#[test]
fn menus_and_pickers_show_what_there_is() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    workspace.write("src/deep/main.rs", "fn main() {}\n");
    let mut screen = open(&workspace, &[]);
    screen.type_keys("/");
    screen.wait_for("▸ /help");
    screen.wait_for("1/");
    screen.type_keys("Effort");
    screen.wait_for("[off|low|medium|high]");
    screen.press("enter");
    screen.wait_for("Reasoning effort from the next turn on");
    screen.press("down");
    screen.press("enter");
    screen.wait_for("Effort low from the next turn");
    say(&mut screen, "/model");
    screen.wait_for("Model from the next turn on");
    screen.wait_for("in use");
    screen.press("esc");
    screen.wait_for(EMPTY);
    say(&mut screen, "/model never-heard-of-it");
    screen.wait_for("is not in the registry");
    screen.type_keys("look at @de");
    screen.wait_for("src/deep/");
    screen.type_keys("zzz");
    screen.wait_for("no file or folder matches");
    screen.press("ctrl-c");
    screen.type_keys("see @src/deep/main.rs:1-2");
    screen.wait_for("▸ src/deep/main.rs");
    screen.press("ctrl-c");
    assert_eq!(sim.count(), 0);
    screen.wait_for(EMPTY);
    say(&mut screen, "exit");
    assert_eq!(screen.wait_exit(), Some(0), "{}", screen.scrollback());
}

/// UI-2, CMD-1: a change has line numbers; `/diff` shows it again, `/export` writes the session to a file, and
/// `/fork` continues in a copy.
#[test]
fn changes_are_shown_and_sessions_written() {
    let edit = json!({ "path": "a.rs", "old_string": "let x = 1;", "new_string": "let x = 2;" });
    let replies = [
        Reply::call("read_file", json!({ "path": "a.rs" })).and_call("edit_file", edit),
        Reply::text("Changed."),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    workspace.write("a.rs", "fn main() {\n    let x = 1;\n}\n");
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "change it");
    screen.wait_for("Changed.");
    screen.wait_for("2 -    let x = 1;");
    screen.wait_for("2 +    let x = 2;");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    say(&mut screen, "/diff");
    screen.wait_for("diff a.rs: modified");
    screen.wait_for("q or esc back");
    screen.press("q");
    screen.wait_for(EMPTY);
    say(&mut screen, "/export talk.md");
    screen.wait_for("to talk.md");
    let written = fs::read_to_string(workspace.path().join("talk.md")).unwrap();
    assert!(
        written.contains("change it") && written.contains("Changed."),
        "{written}"
    );
    say(&mut screen, "/export talk.md");
    screen.wait_for("already exists; name a new file");
    say(&mut screen, "/fork");
    screen.wait_until("a copy", |shown| shown.contains("── "));
    leave(&mut screen);
}

/// CMD-1: `/init` and `/review` send their prompts to the model, with the user's words.
#[test]
fn init_and_review_are_prompts() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "/init mention the tests");
    screen.wait_for("fine");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    say(&mut screen, "/Review main..topic");
    screen.wait_until("two turns", |_| sim.count() >= 2);
    let requests = sim.requests();
    let said = |index: usize| {
        requests[index]
            .seen
            .last_user_text()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        said(0).contains("Write AGENTS.md") && said(0).contains("mention the tests"),
        "{}",
        said(0)
    );
    assert!(said(1).contains("What to review: main..topic"), "{}", said(1));
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    leave(&mut screen);
}

/// UI-2: quitting while a turn runs takes two presses, and the wheel scrolls in full screen only.
#[test]
fn leaving_a_turn_takes_two_presses() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [held()]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "hello");
    screen.wait_for("esc stops");
    assert!(!has(&screen.raw(), "\x1b[?1000h"), "the terminal has the mouse");
    screen.press("ctrl-o");
    screen.wait_for("/ search");
    assert!(
        has(&screen.raw(), "\x1b[?1000h\x1b[?1006h"),
        "the wheel is reported"
    );
    screen.press("ctrl-o");
    screen.wait_for("esc stops");
    screen.press("ctrl-d");
    screen.wait_for("a turn is running: ctrl+d again stops it and quits");
    screen.press("ctrl-d");
    assert_eq!(screen.wait_exit(), Some(0), "{}", screen.scrollback());
}
