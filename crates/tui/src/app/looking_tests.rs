//! Tests of scrolling back: how far it reaches, and that it stays in place.

use windlass_api::{DeltaKind, Event, StepStatus};

use super::Done;
use super::stage::{Stage, call, delta, final_answer, queue, user};
use crate::composer::Draft;

fn draft(text: &str) -> Draft {
    Draft {
        text: text.to_owned(),
        shown: text.to_owned(),
        remembered: text.to_owned(),
        images: Vec::new(),
    }
}

/// Scrolls back as far as possible.
async fn look_back(stage: &mut Stage) -> String {
    for _ in 0..120 {
        stage.keys("<PageUp>").await;
        stage.screen();
        stage.settle().await;
    }
    stage.screen()
}

/// UI-2: scrolling back reaches the first message, even a second time and after many new messages.
#[tokio::test]
async fn looking_back_goes_to_the_first_message() {
    let mut stage = Stage::new(80, 16).await;
    stage.record(user("m1")).await;
    stage.keys("<C-o><PageUp>").await;
    stage.screen();
    stage.keys("<C-o>").await;
    for number in 2..=350 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.record(final_answer("ok")).await;
    stage.keys("<C-o>").await;
    let screen = look_back(&mut stage).await;
    assert!(screen.contains("› m1\n"), "{screen}");
}

/// UI-2: if reading older entries fails, the error is shown, and scrolling up retries.
#[tokio::test]
async fn a_failed_read_is_tried_again() {
    let mut stage = Stage::new(80, 16).await;
    for number in 1..=350 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.keys("<C-o>").await;
    stage.set_unreadable(true);
    let screen = look_back(&mut stage).await;
    assert!(
        screen.contains("cannot read earlier entries: the disk is gone"),
        "{screen}"
    );
    assert!(!stage.is_dirty(), "nothing is tried without being asked for");
    stage.set_unreadable(false);
    let screen = look_back(&mut stage).await;
    assert!(screen.contains("› m1\n"), "{screen}");
}

/// UI-2: a list of messages ends with the first one, however many there are.
#[tokio::test]
async fn all_messages_are_listed() {
    let mut stage = Stage::new(80, 16).await;
    for number in 1..=150 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.record(final_answer("ok")).await;
    stage.keys("/rewind <Enter><End>").await;
    let screen = stage.screen();
    assert!(screen.contains("▸ m1\n"), "{screen}");
}

/// UI-2: a message of one session is not restored into another.
#[tokio::test]
async fn what_was_said_stays_with_its_session() {
    let mut stage = Stage::new(80, 16).await;
    stage.record(user("said before")).await;
    stage.record(final_answer("ok")).await;
    stage.keys("/rewind <Enter>").await;
    assert!(stage.screen().contains("▸ said before"), "{}", stage.screen());
    stage.keys("<Esc>/clear <Enter>").await;
    stage.calls();
    stage.keys("/rewind 1<Enter>").await;
    assert!(stage.calls().contains(&"command /rewind 1".to_owned()));
    assert!(!stage.screen().contains("said before"), "{}", stage.screen());
}

/// UI-2: a message sent while the end of a session is still being read is shown once.
#[tokio::test]
async fn a_session_is_read_before_it_is_listened_to() {
    let mut stage = Stage::opening(80, 16);
    stage.done(Done::Submitted(Ok(()), Box::new(draft("go on"))));
    stage.settle().await;
    assert_eq!(stage.listens(), [40]);
    assert!(stage.printed().contains("said in current"), "{}", stage.printed());
}

/// UI-2: a file list that arrives after switching sessions is dropped: its folder may be another one.
#[tokio::test]
async fn late_files_are_of_no_use() {
    let mut stage = Stage::new(80, 16).await;
    let release = stage.hold_files();
    stage.keys("@<C-c>/clear <Enter>").await;
    release.send(()).unwrap();
    stage.settle().await;
    stage.keys("@").await;
    let screen = stage.screen();
    assert!(
        screen.contains("  README.md") && !screen.contains("late.rs"),
        "{screen}"
    );
}

/// UI-2: a hint disappears after a while, even while a turn is running.
#[tokio::test]
async fn hints_go_away() {
    for is_busy in [false, true] {
        let mut stage = Stage::new(80, 16).await;
        if is_busy {
            stage.hear(user("work")).await;
        }
        stage.keys("<C-c>").await;
        stage.pass(100);
        stage.tick().await;
        assert!(stage.screen().contains("again to quit"), "{}", stage.screen());
        stage.pass(2_000);
        stage.tick().await;
        assert!(!stage.screen().contains("again to quit"), "{}", stage.screen());
    }
}

/// UI-2: the path of an image that cannot be read becomes text after a timeout, and the draft can be sent.
#[tokio::test]
async fn an_image_that_never_comes_holds_up_nothing() {
    let mut stage = Stage::new(80, 16).await;
    stage.paste("/hung/shot.png").await;
    stage.keys(" what is it?<Enter>").await;
    assert_eq!(stage.calls(), ["submit Steer /hung/shot.png what is it?"]);
}

/// UI-2: ctrl+c closes the pager even during a search, and no key with ctrl types a letter.
#[tokio::test]
async fn ctrl_c_leaves_a_search() {
    let mut stage = Stage::new(80, 16).await;
    stage.keys("/keys <Enter>/se<C-x>nd").await;
    assert!(stage.screen().contains("/send"), "{}", stage.screen());
    stage.keys("<C-c>").await;
    assert!(!stage.screen().contains("/send"), "{}", stage.screen());
    assert!(stage.screen().contains("sim-1"), "{}", stage.screen());
}

/// UI-2: while the user scrolls back, the visible rows stay in place whatever arrives: a streaming answer,
/// thoughts, a call, the end of the turn.
#[tokio::test]
async fn nothing_moves_under_a_reader() {
    let mut stage = Stage::new(80, 24).await;
    for number in 1..=40 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.keys("<C-o><PageUp>").await;
    let top = |screen: &str| screen.lines().take(8).map(str::to_owned).collect::<Vec<_>>();
    let before = top(&stage.screen());
    assert!(before.iter().any(|line| line.contains("› m")), "{before:?}");
    let mut coming = call("1", "bash make", "one\ntwo\n", StepStatus::Completed, None);
    let rest = coming.split_off(1);
    let thought = Event::Delta {
        kind: DeltaKind::Thinking,
        text: "What now?\nWell.".to_owned(),
    };
    coming.extend([queue(&["later"]).0]);
    coming.extend(rest);
    coming.extend([thought, delta("One.\n\nTwo.\n\n"), delta("Three.")]);
    coming.push(final_answer("One.\n\nTwo.\n\nThree."));
    for event in coming {
        let told = format!("{event:?}");
        stage.hear(event).await;
        assert_eq!(top(&stage.screen()), before, "{told}");
    }
    // A key scrolls from there.
    stage.keys("<Up>").await;
    assert_eq!(top(&stage.screen()).get(1..), before.get(..7));
    // At the end, the view follows the conversation again.
    stage.keys("<PageDown><PageDown><PageDown><PageDown>").await;
    stage.hear(user("the last")).await;
    assert!(stage.screen().contains("› the last"), "{}", stage.screen());
}

/// UI-2: older entries that were read for scrolling back are dropped afterwards, and read again on demand.
#[tokio::test]
async fn what_was_looked_at_is_let_go() {
    let mut stage = Stage::new(80, 16).await;
    for number in 1..=350 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.keys("<C-o>").await;
    // Leaves the transcript, returns, and scrolls to the end.
    for (key, times) in [("<C-o>", 2), ("<PageDown>", 120)] {
        let screen = look_back(&mut stage).await;
        assert!(screen.contains("› m1\n"), "{screen}");
        assert!(stage.calls().iter().any(|call| call.starts_with("tail")), "{key}");
        for _ in 0..times {
            stage.keys(key).await;
            stage.screen();
        }
    }
    look_back(&mut stage).await;
    assert!(stage.calls().iter().any(|call| call.starts_with("tail")));
}

/// UI-2: a search in the whole conversation scrolls to the row that it finds; the mouse wheel scrolls, too.
#[tokio::test]
async fn the_conversation_is_searched() {
    let mut stage = Stage::new(60, 16).await;
    for number in 0..40 {
        stage.hear(user(&format!("message {number} end"))).await;
    }
    stage.hear(final_answer("done")).await;
    stage.keys("<C-o>").await;
    assert!(stage.screen().contains("/ search"), "{}", stage.screen());
    stage.keys("/message 7 <Enter>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("message 7 end") && !screen.contains("message 39"),
        "{screen}"
    );
    stage.keys("n").await;
    assert!(stage.screen().contains("no more matches"), "{}", stage.screen());
    stage.keys("<Esc>x").await;
    assert!(
        stage.screen().contains("› x"),
        "letters are written again: {}",
        stage.screen()
    );
}

/// UI-2: ctrl+c counts twice only without another key in between, and leaving a running turn takes two presses.
#[tokio::test]
async fn quitting_needs_the_same_key_twice() {
    let mut stage = Stage::new(60, 16).await;
    stage.keys("<C-c>a<C-c><C-c>").await;
    assert!(!stage.has_left(), "the letter came between");
    stage.keys("<C-c>").await;
    assert!(stage.has_left());
    let mut stage = Stage::new(60, 16).await;
    stage.hear(user("work")).await;
    stage.keys("<C-d>").await;
    assert!(!stage.has_left());
    assert!(
        stage.screen().contains("ctrl+d again stops it and quits"),
        "{}",
        stage.screen()
    );
    stage.keys("<C-d>").await;
    assert!(stage.has_left());
}
