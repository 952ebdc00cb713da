//! Looking back: how far it goes, and that it stays where it is.

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

/// Looks back as far as it goes.
async fn look_back(stage: &mut Stage) -> String {
    for _ in 0..120 {
        stage.keys("<PageUp>").await;
        stage.screen();
        stage.settle().await;
    }
    stage.screen()
}

/// UI-2: looking back goes to the first message, also after it was there before and much was said since.
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

/// UI-2: when what came before cannot be read, that is said, and it is tried again when somebody looks back again.
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
        screen.contains("what came before cannot be read: the disk is gone"),
        "{screen}"
    );
    assert!(!stage.is_dirty(), "nothing is tried without being asked for");
    stage.set_unreadable(false);
    let screen = look_back(&mut stage).await;
    assert!(screen.contains("› m1\n"), "{screen}");
}

/// UI-2: a list of messages ends with the first of them, however many there are.
#[tokio::test]
async fn all_messages_are_listed() {
    let mut stage = Stage::new(80, 16).await;
    for number in 1..=150 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.record(final_answer("ok")).await;
    stage.keys("/rewind <Enter><End>").await;
    let screen = stage.screen();
    assert!(screen.contains("› m1\n"), "{screen}");
}

/// UI-2: what was said in one session is not written again in another.
#[tokio::test]
async fn what_was_said_stays_with_its_session() {
    let mut stage = Stage::new(80, 16).await;
    stage.record(user("said before")).await;
    stage.record(final_answer("ok")).await;
    stage.keys("/rewind <Enter>").await;
    assert!(stage.screen().contains("› said before"), "{}", stage.screen());
    stage.keys("<Esc>/clear <Enter>").await;
    stage.calls();
    stage.keys("/rewind 1<Enter>").await;
    assert!(stage.calls().contains(&"command /rewind 1".to_owned()));
    assert!(!stage.screen().contains("said before"), "{}", stage.screen());
}

/// UI-2: an input that is taken while the end of a session is still being read is told once: it is listened to from there on.
#[tokio::test]
async fn a_session_is_read_before_it_is_listened_to() {
    let mut stage = Stage::opening(80, 16);
    stage.done(Done::Submitted(Ok(()), Box::new(draft("go on"))));
    stage.settle().await;
    assert_eq!(stage.listens(), [40]);
    assert!(stage.printed().contains("said in current"), "{}", stage.printed());
}

/// UI-2: a list of files that comes late, after another session was gone on with, is of no use: its folder may be another.
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
        screen.contains("› README.md") && !screen.contains("late.rs"),
        "{screen}"
    );
}

/// UI-2: a word about a key is gone after a while, also while a turn runs.
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
        assert!(stage.screen().contains("again to leave"), "{}", stage.screen());
        stage.pass(2_000);
        stage.tick().await;
        assert!(!stage.screen().contains("again to leave"), "{}", stage.screen());
    }
}

/// UI-2: the path of an image that nothing answers for is text after a while, and what is written can be sent.
#[tokio::test]
async fn an_image_that_never_comes_holds_up_nothing() {
    let mut stage = Stage::new(80, 16).await;
    stage.paste("/hung/shot.png").await;
    stage.keys(" what is it?<Enter>").await;
    assert_eq!(stage.calls(), ["submit Steer /hung/shot.png what is it?"]);
}

/// UI-2: ctrl+c leaves a text that is read, also while something is looked for in it, and no key with ctrl writes.
#[tokio::test]
async fn ctrl_c_leaves_a_search() {
    let mut stage = Stage::new(80, 16).await;
    stage.keys("/keys <Enter>/se<C-x>nd").await;
    assert!(stage.screen().contains("/send"), "{}", stage.screen());
    stage.keys("<C-c>").await;
    assert!(!stage.screen().contains("/send"), "{}", stage.screen());
    assert!(stage.screen().contains("sim-1"), "{}", stage.screen());
}

/// UI-2: whoever looks back sees the same rows, whatever comes meanwhile: an answer piece by piece, thoughts, a call, the
/// end of the turn.
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
    // A key goes on from there.
    stage.keys("<Up>").await;
    assert_eq!(top(&stage.screen()).get(1..), before.get(..7));
    // At the end it goes along again.
    stage.keys("<PageDown><PageDown><PageDown><PageDown>").await;
    stage.hear(user("the last")).await;
    assert!(stage.screen().contains("› the last"), "{}", stage.screen());
}

/// UI-2: what was read to look back at is let go afterwards, and read again when it is wanted again.
#[tokio::test]
async fn what_was_looked_at_is_let_go() {
    let mut stage = Stage::new(80, 16).await;
    for number in 1..=350 {
        stage.record(user(&format!("m{number}"))).await;
    }
    stage.keys("<C-o>").await;
    // Out of it and back again, and down to the end.
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
