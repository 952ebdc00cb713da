//! The terminal UI on a real terminal: a first start, answers and calls on screen, full-screen mode.

use std::time::Duration;

use serde_json::json;
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Screen, Workspace, eventually};

use super::support::{with_replies, workspace};

/// Placeholder of the empty input.
pub(super) const EMPTY: &str = "What should I do?";

/// Starts the terminal UI and waits until it accepts input.
#[track_caller]
pub(super) fn open(workspace: &Workspace, args: &[&str]) -> Screen {
    let mut screen = workspace.run(args).on_screen(100, 30);
    screen.wait_for(EMPTY);
    screen
}

/// Types a text and sends it.
#[track_caller]
pub(super) fn say(screen: &mut Screen, text: &str) {
    screen.type_keys(text);
    screen.press("enter");
}

/// Presses a key until the screen shows its effect: a request that was just shown ignores answers.
#[track_caller]
pub(super) fn press_until(screen: &mut Screen, key: &str, test: impl Fn(&str) -> bool) {
    for _ in 0..30 {
        screen.press(key);
        if eventually(Duration::from_millis(800), || test(&screen.contents())) {
            return;
        }
    }
    panic!("{key} came to nothing\n{}", screen.contents());
}

/// Answers the request on the screen.
#[track_caller]
pub(super) fn answer_with(screen: &mut Screen, key: &str) {
    press_until(screen, key, |shown| !shown.contains("Run this command?"));
}

/// Quits with Ctrl+D, which is no failure and restores the terminal.
#[track_caller]
pub(super) fn leave(screen: &mut Screen) {
    screen.wait_for(EMPTY);
    // While a turn runs, one press is not enough.
    screen.wait_until("nothing runs", |shown| !shown.contains("esc stops"));
    screen.press("ctrl-d");
    assert_eq!(screen.wait_exit(), Some(0), "{}", screen.scrollback());
    check_restored(screen);
}

/// Checks that the terminal is restored: the main screen, a visible cursor, no modes switched on.
#[track_caller]
pub(super) fn check_restored(screen: &Screen) {
    let terminal = screen.screen();
    let shown = screen.scrollback();
    assert!(!terminal.alternate_screen(), "the other screen\n{shown}");
    assert!(!terminal.hide_cursor(), "no cursor\n{shown}");
    assert!(!terminal.bracketed_paste(), "pastes are marked\n{shown}");
    let raw = screen.raw();
    let count = |sequence: &[u8]| {
        raw.windows(sequence.len())
            .filter(|bytes| *bytes == sequence)
            .count()
    };
    assert_eq!(count(b"\x1b[>1u"), count(b"\x1b[<1u"), "keyboard flags\n{shown}");
    for (on, off) in [
        (&b"\x1b[?1004h"[..], &b"\x1b[?1004l"[..]),
        (b"\x1b[?2026h", b"\x1b[?2026l"),
    ] {
        let last = |sequence: &[u8]| raw.windows(sequence.len()).rposition(|bytes| bytes == sequence);
        assert!(last(on) <= last(off), "a mode stays on\n{shown}");
    }
}

/// A call that needs approval. It comes late enough not to surprise a user who has just typed.
pub(super) fn outside() -> Reply {
    let command = "cat plain.txt; curl -sS http://a.localhost:1/";
    let call = Reply::call(
        "bash",
        json!({ "command": command, "description": "Look outside" }),
    );
    call.fault(Fault::new().delay_ms(900))
}

/// A reply that never comes.
pub(super) fn held() -> Reply {
    Reply::text("late").fault(Fault::new().delay_ms(120_000))
}

/// Returns true if the terminal received this output.
pub(super) fn has(raw: &[u8], piece: &str) -> bool {
    raw.windows(piece.len()).any(|bytes| bytes == piece.as_bytes())
}

/// UI-2: a first start needs no settings and no key: the model is named, a call is shown, quitting restores
/// the terminal and prints how to resume; resuming shows the end of the conversation.
#[test]
fn a_first_start_needs_nothing() {
    let workspace = workspace();
    workspace.write("notes.txt", "remember the milk\n");
    let mut screen = open(&workspace, &[]);
    screen.wait_for("no API key found: using the simulated model. /connect sets up a real one");
    screen.wait_for("auto");
    say(&mut screen, "read notes.txt");
    screen.wait_for("● read_file notes.txt");
    screen.wait_for("[simulated model]");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    leave(&mut screen);
    let shown = screen.scrollback();
    let last = shown.trim_end().lines().last().unwrap_or_default();
    assert!(last.starts_with("Resume with: windlass --resume "), "{shown}");
    assert!(!shown.contains(EMPTY), "the live area is gone\n{shown}");
    assert_eq!(shown.matches("› read notes.txt").count(), 1, "{shown}");

    let mut screen = open(&workspace, &["--continue"]);
    screen.wait_for("› read notes.txt");
    screen.wait_for("● read_file notes.txt");
    screen.wait_for("[simulated model]");
    leave(&mut screen);

    // Without messages there is nothing to resume.
    let mut screen = open(&workspace, &[]);
    leave(&mut screen);
    assert!(
        !screen.scrollback().contains("--resume"),
        "{}",
        screen.scrollback()
    );
}

const ANSWER: &str = "# Findings\n\nIt is **done**.\n\n| name | 値段 | note |\n|---|---:|---|\n| apple | 1 | small |\n\
    | 日本語 | 2000 | wide |\n\n```rust\nfn main() {\n    let answer = 42;\n}\n```\n\nThe end.";

/// UI-2: an answer that arrives in small pieces is in the scrollback once and in order, with its table
/// aligned, even with wide characters, and its code unchanged.
#[test]
fn a_streamed_answer_is_printed_once() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text(ANSWER).delta_chars(3)]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "what did you find?");
    screen.wait_for("The end.");
    leave(&mut screen);
    let shown = screen.scrollback();
    for text in [
        "Findings",
        "It is done.",
        "apple",
        "日本語",
        "let answer = 42;",
        "The end.",
    ] {
        assert_eq!(shown.matches(text).count(), 1, "{text}\n{shown}");
    }
    let places: Vec<_> = ["Findings", "apple", "日本語", "let answer", "The end."]
        .map(|text| shown.find(text))
        .into_iter()
        .collect();
    assert!(places.is_sorted(), "{shown}");
    assert!(shown.contains("    let answer"), "code keeps its indent\n{shown}");
    // The last column starts at the same place in every row, measured in terminal columns.
    let column = |word: &str| {
        let line = shown.lines().find(|line| line.contains(word)).unwrap_or_default();
        let before = line
            .split_once(word)
            .map(|(before, _)| before)
            .unwrap_or_default();
        before
            .chars()
            .map(|letter| {
                if letter.is_ascii() || letter == '│' {
                    1
                } else {
                    2
                }
            })
            .sum::<usize>()
    };
    let columns = ["note", "small", "wide"].map(column);
    assert!(
        columns[0] > 0 && columns.iter().all(|at| *at == columns[0]),
        "{columns:?}\n{shown}"
    );
}

/// UI-2: a call that changes a file shows its diff and its size, next to the neighboring calls.
#[test]
fn a_change_is_shown_as_a_diff() {
    let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "zwei" });
    let replies = [
        Reply::call("read_file", json!({ "path": "a.txt" })).and_call("edit_file", edit),
        Reply::call("bash", json!({ "command": "seq 1 50; false" })),
        Reply::text("Changed."),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    workspace.write("a.txt", "one\ntwo\nthree\n");
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "translate");
    screen.wait_for("Changed.");
    leave(&mut screen);
    let shown = screen.scrollback();
    for text in [
        "● read_file a.txt",
        "● edit_file a.txt (+1 -1)",
        "-two",
        "+zwei",
        "✗ bash seq 1 50; false",
    ] {
        assert_eq!(shown.matches(text).count(), 1, "{text}\n{shown}");
    }
    assert!(
        shown.contains("more lines") && !shown.contains("\n  25"),
        "long outputs are folded\n{shown}"
    );
    assert_eq!(workspace.read("a.txt"), "one\nzwei\nthree\n");
}

/// UI-2: full-screen mode shows the conversation unfolded and can be scrolled; leaving it, or quitting from
/// it, restores the terminal with the conversation in the scrollback.
#[test]
fn the_whole_screen_comes_and_goes() {
    let replies = || {
        [
            Reply::call("bash", json!({ "command": "seq 1 60" })),
            Reply::text("Counted."),
            Reply::text("Again."),
        ]
    };
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "count");
    screen.wait_for("Counted.");
    screen.wait_for("more lines");
    screen.press("ctrl-o");
    screen.wait_until("everything is unfolded", |shown| shown.contains("\n  40\n"));
    assert!(screen.screen().alternate_screen());
    for _ in 0..5 {
        screen.press("pageup");
    }
    screen.wait_for("› count");
    screen.wait_for("rows below");
    screen.press("ctrl-o");
    screen.wait_for("more lines");
    assert!(!screen.screen().alternate_screen());
    leave(&mut screen);
    assert_eq!(
        screen.scrollback().matches("Counted.").count(),
        1,
        "{}",
        screen.scrollback()
    );

    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
    let mut screen = open(&workspace, &["--full-screen"]);
    assert!(screen.screen().alternate_screen());
    say(&mut screen, "count");
    screen.wait_for("Counted.");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    leave(&mut screen);
    let shown = screen.scrollback();
    for text in [
        "› count",
        "● bash seq 1 60",
        "Counted.",
        "Resume with: windlass --resume",
    ] {
        assert_eq!(shown.matches(text).count(), 1, "{text}\n{shown}");
    }
}

/// UI-2: scrolling back reaches the first message, even if the user scrolled back to it before and much has
/// happened since.
#[test]
fn looking_back_goes_to_the_first_message() {
    let call = |reply: Reply| reply.and_call("read_file", json!({ "path": "a.txt" }));
    let many = (0..350).fold(
        Reply::call("read_file", json!({ "path": "a.txt" })),
        |reply, _| call(reply),
    );
    let replies = [Reply::text("Good."), many, Reply::text("Read them all.")];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "one\n");
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "the very first");
    screen.wait_for("Good.");
    screen.press("ctrl-o");
    screen.wait_until("it is on the whole screen", |shown| shown.contains("/ search"));
    screen.press("ctrl-o");
    screen.wait_until("it is not any more", |shown| !shown.contains("/ search"));
    say(&mut screen, "read them");
    screen.wait_for("Read them all.");
    screen.press("ctrl-o");
    screen.wait_until("it is on the whole screen", |shown| shown.contains("/ search"));
    let is_there = (0..60).any(|_| {
        (0..20).for_each(|_| screen.press("pageup"));
        eventually(Duration::from_millis(500), || {
            screen.contents().contains("› the very first")
        })
    });
    assert!(is_there, "{}", screen.contents());
    screen.press("ctrl-o");
    leave(&mut screen);
}

/// EXT-6: `--resume` offers the sessions of the folder; the arrow keys select one, Enter opens it, and Esc, Ctrl+C or a
/// termination leaves the terminal as it was.
#[test]
fn a_session_is_chosen_with_the_arrow_keys() {
    let replies = ["first answer", "second answer", "third answer"].map(Reply::text);
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    for wish in ["the first wish", "the second wish"] {
        workspace.run(&["exec", wish]).output().assert_code(0);
    }
    for key in ["esc", "ctrl-c"] {
        let mut screen = workspace.run(&["--resume"]).on_screen(100, 30);
        screen.wait_for("Esc cancels");
        screen.press(key);
        assert_eq!(screen.wait_exit(), Some(130), "{}", screen.scrollback());
        let shown = screen.scrollback();
        assert!(
            shown.contains("no session chosen") && !shown.contains("Esc cancels"),
            "{shown}"
        );
        check_restored(&screen);
    }
    let mut screen = workspace.run(&["--resume"]).on_screen(100, 30);
    screen.wait_until("the newest is selected", |shown| {
        shown
            .lines()
            .any(|line| line.starts_with('❯') && line.contains("the second wish"))
    });
    screen.press("down");
    screen.wait_until("the next one is selected", |shown| {
        shown
            .lines()
            .any(|line| line.starts_with('❯') && line.contains("the first wish"))
    });
    screen.press("enter");
    screen.wait_for("first answer");
    say(&mut screen, "go on");
    screen.wait_for("third answer");
    leave(&mut screen);
}
