//! Input in the terminal UI: history, files, pastes, external editor.

use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Run, SimServer, Workspace};

use super::support::with_replies;
use super::tui::{EMPTY, has, leave, open, say};

fn scene() -> (SimServer, Workspace) {
    with_replies(Protocol::Anthropic, [Reply::text("fine").forever()])
}

fn said(sim: &SimServer) -> String {
    let requests = sim.requests();
    let said = requests.last().and_then(|request| request.seen.last_user_text());
    said.unwrap_or_default().to_owned()
}

/// UI-2: an input from an earlier start is found by a few letters and sent again; up recalls the last one.
#[test]
fn the_history_is_searched() {
    let (sim, workspace) = scene();
    let mut screen = open(&workspace, &[]);
    for text in ["paint the giraffe", "feed the zebra"] {
        say(&mut screen, text);
        screen.wait_for(&format!("› {text}"));
        screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    }
    leave(&mut screen);

    let mut screen = open(&workspace, &[]);
    screen.press("up");
    screen.wait_for("› feed the zebra");
    screen.press("ctrl-c");
    screen.wait_for(EMPTY);
    screen.press("ctrl-r");
    screen.type_keys("giraf");
    screen.wait_for("paint the giraffe");
    screen.press("enter");
    screen.wait_for("› paint the giraffe");
    assert_eq!(sim.count(), 2, "found is not sent");
    screen.type_keys(" green");
    screen.press("enter");
    screen.wait_for("fine");
    assert!(said(&sim).ends_with("paint the giraffe green"), "{}", said(&sim));
    leave(&mut screen);
}

/// UI-2: inputs of a session that is not saved are not in the history either; earlier inputs still are.
#[test]
fn an_ephemeral_session_leaves_no_history() {
    let (_sim, workspace) = scene();
    for (arguments, text) in [
        (&[][..], "feed the zebra"),
        (&["--ephemeral"], "hide the giraffe"),
    ] {
        let mut screen = open(&workspace, arguments);
        say(&mut screen, text);
        screen.wait_for("fine");
        screen.press("up");
        screen.wait_for(&format!("› {text}"));
        screen.press("up");
        screen.wait_for("› feed the zebra");
        screen.press("ctrl-c");
        screen.wait_for(EMPTY);
        leave(&mut screen);
    }
    let history = std::fs::read_to_string(workspace.home().join("data/history.jsonl")).unwrap();
    assert_eq!(history, "\"feed the zebra\"\n");
}

/// UI-2: `@` finds a file by a few letters; its path goes to the model.
#[test]
fn files_are_completed() {
    let (sim, workspace) = scene();
    workspace.write("source/deep/parser.rs", "");
    workspace.write("source/deep/lexer.rs", "");
    let mut screen = open(&workspace, &[]);
    screen.type_keys("look at @parsrs");
    screen.wait_for("▸ source/deep/parser.rs");
    assert!(!screen.contents().contains("lexer"), "{}", screen.contents());
    screen.press("tab");
    screen.wait_for("› look at @source/deep/parser.rs");
    say(&mut screen, "please");
    screen.wait_for("fine");
    assert!(
        said(&sim).ends_with("look at @source/deep/parser.rs please"),
        "{}",
        said(&sim)
    );
    leave(&mut screen);
}

/// UI-2: fifty pasted lines are one item in the input, and the model gets all of them; a short paste is text,
/// and neither is sent automatically.
#[test]
fn a_long_paste_is_one_piece() {
    let (sim, workspace) = scene();
    let mut screen = open(&workspace, &[]);
    let lines: Vec<String> = (1..=50).map(|number| format!("line {number} of many")).collect();
    screen.type_keys("explain ");
    screen.paste(&lines.join("\r"));
    screen.wait_for("[pasted 50 lines");
    assert!(
        !screen.contents().contains("line 7 of many"),
        "{}",
        screen.contents()
    );
    screen.paste("short\rpaste");
    screen.wait_for("paste");
    assert_eq!(sim.count(), 0);
    screen.press("enter");
    screen.wait_for("fine");
    let said = said(&sim);
    for line in &lines {
        assert!(
            said.contains(&format!("{line}\n")) || said.contains(&format!("{line}short")),
            "{line}: {said}"
        );
    }
    assert!(said.ends_with("short\npaste"), "{said}");
    leave(&mut screen);
}

/// UI-2: alt+enter, ctrl+j, shift+enter and a backslash insert line breaks; enter sends all lines.
#[test]
fn messages_have_lines() {
    let (sim, workspace) = scene();
    let mut screen = open(&workspace, &[]);
    for (key, text) in [
        ("alt-enter", "one"),
        ("ctrl-j", "two"),
        ("shift-enter", "three"),
        ("enter", "four\\"),
    ] {
        screen.type_keys(text);
        screen.press(key);
    }
    screen.type_keys("five");
    screen.wait_for("five");
    assert_eq!(sim.count(), 0, "{}", screen.contents());
    screen.press("enter");
    screen.wait_for("fine");
    assert!(
        said(&sim).ends_with("one\ntwo\nthree\nfour\nfive"),
        "{}",
        said(&sim)
    );
    leave(&mut screen);
}

/// UI-2: ctrl+g opens the text in the user's editor, which gets the terminal; an editor that fails changes
/// nothing, and keys work afterwards.
#[test]
fn the_editor_has_the_text() {
    let (sim, workspace) = scene();
    let editor = workspace.write(
        "editor.sh",
        "#!/bin/sh\nread -r line\nprintf '%s and %s' \"$(cat \"$1\")\" \"$line\" > \"$1\"\n",
    );
    let start = |editor: &str| -> windlass_testkit::Screen {
        let run: Run = workspace.run(&[]).env("EDITOR", editor);
        let mut screen = run.on_screen(100, 30);
        screen.wait_for(EMPTY);
        screen
    };
    let mut screen = start(&format!("echo editing; sh {}", editor.display()));
    screen.type_keys("draft");
    screen.wait_for("› draft");
    screen.press("ctrl-g");
    screen.wait_for("editing");
    assert!(!screen.screen().bracketed_paste(), "the terminal is the editor's");
    screen.type_keys("more\n");
    screen.wait_for("› draft and more");
    assert!(screen.screen().bracketed_paste());
    say(&mut screen, "!");
    screen.wait_for("fine");
    assert!(said(&sim).ends_with("draft and more!"), "{}", said(&sim));
    leave(&mut screen);

    let mut screen = start("false");
    screen.type_keys("kept");
    screen.wait_for("› kept");
    screen.press("ctrl-g");
    screen.wait_for("the editor `false` failed");
    screen.wait_for("› kept");
    screen.press("ctrl-c");
    leave(&mut screen);
}

/// UI-2: a copy goes to the terminal's own clipboard, unformatted.
#[test]
fn an_answer_is_copied() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::text("Use **this**:\n\n```sh\nls -l\n```\n")],
    );
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "how?");
    screen.wait_for("ls -l");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    say(&mut screen, "/copy");
    screen.wait_for("characters copied.");
    // `Use **this**:` in base64, up to the last complete group.
    assert!(
        has(&screen.raw(), "\u{1b}]52;c;VXNlICoqdGhpcyoq"),
        "{}",
        screen.contents()
    );
    say(&mut screen, "/copy code");
    screen.wait_for("5 characters copied.");
    assert!(has(&screen.raw(), "\u{1b}]52;c;bHMgLWw=\u{7}"));
    leave(&mut screen);
}
