use std::path::Path;

use super::*;

fn shell(script: &str, columns: u16, rows: u16) -> Screen {
    Run::new(Path::new("sh"), &["-c", script]).on_screen(columns, rows)
}

/// UI-2: keys reach the program, and its output and exit code are seen.
#[test]
fn a_program_is_seen_and_typed_to() {
    let mut screen = shell(
        "stty -echo; echo $TERM $LANG; read line; printf '\\033[31mgot %s\\033[m' $line; exit 3",
        40,
        5,
    );
    screen.wait_for("xterm-256color C.UTF-8");
    screen.type_keys("it");
    screen.press("enter");
    screen.wait_for("got it");
    assert_eq!(screen.wait_exit(), Some(3));
    assert_eq!(screen.contents(), "xterm-256color C.UTF-8\ngot it");
    let cell = screen.screen();
    assert_eq!(cell.cell(1, 0).unwrap().fgcolor(), vt100::Color::Idx(1));
    assert!(String::from_utf8(screen.raw()).unwrap().contains("\u{1b}[31mgot"));
}

/// UI-2: rows that scrolled away are still available.
#[test]
fn what_scrolled_away_is_kept() {
    let mut screen = shell("for i in 1 2 3 4 5 6 7; do echo line $i; done", 20, 3);
    screen.wait_exit();
    assert_eq!(screen.contents(), "line 6\nline 7");
    let lines: Vec<String> = (1..=7).map(|line| format!("line {line}")).collect();
    assert_eq!(screen.scrollback(), lines.join("\n"));
}

/// UI-2: the program receives new sizes, signals and hang-ups.
#[test]
fn sizes_signals_and_hang_ups_arrive() {
    let mut screen = shell(
        "trap 'stty size' WINCH; trap 'echo user' USR1; stty size; while :; do sleep 0.02; done",
        30,
        5,
    );
    screen.wait_for("5 30");
    screen.resize(50, 9);
    screen.wait_for("9 50");
    screen.signal(Signal::USR1);
    screen.wait_for("user");
    screen.hang_up();
    assert_eq!(screen.wait_exit(), None);
}

/// UI-2: a terminal that does not read blocks the program, which continues later.
#[test]
fn reading_can_be_paused() {
    let mut screen = shell(
        "read line; i=0; while [ $i -lt 4000 ]; do echo row $i; i=$((i+1)); done; echo all",
        30,
        5,
    );
    screen.pause_reading();
    screen.press("enter");
    let before = screen.raw().len();
    assert!(before < 100);
    screen.resume_reading();
    screen.wait_for("all");
    assert_eq!(screen.wait_exit(), Some(0));
    assert!(screen.raw().len() > 4000 * 8);
}

/// UI-2: a test that waits in vain shows the screen.
#[test]
#[should_panic(expected = "│only this")]
fn a_vain_wait_shows_the_screen() {
    shell("echo only this", 30, 5).wait_for("something else");
}

/// UI-2: escape is unambiguous if the program asked for that.
#[test]
fn escape_is_told_apart_on_request() {
    let mut screen = shell(
        "stty raw -echo; printf '\\033[>1uready'; head -c 5 | od -c; sleep 60",
        60,
        5,
    );
    screen.wait_for("ready");
    screen.press("esc");
    screen.wait_for("033   [   2   7   u");
}
