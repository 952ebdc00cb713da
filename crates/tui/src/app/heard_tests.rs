//! Tests of session events and their effect on the screen.

use std::sync::Arc;

use windlass_api::{Event, Message, Part, Role, SessionId, StepStatus, Timestamp, Waiting, own_call};

use super::Done;
use super::stage::{Stage, call, delta, entry, final_answer, request, user};

fn answer(call: &str) -> Event {
    Event::Waiting(Waiting::PermissionAnswer {
        call_id: call.into(),
        allowed: true,
    })
}

fn start() -> Event {
    Event::Start {
        provider: "sim".into(),
        model: "m".into(),
    }
}

/// UI-2: a request disappears when it is answered elsewhere or its call ends; requests of other calls stay.
#[tokio::test]
async fn what_was_answered_elsewhere_is_gone() {
    let result = call("1", "bash rm", "", StepStatus::Completed, None).remove(1);
    for event in [answer("1"), result] {
        let mut stage = Stage::new(100, 24).await;
        stage.hear(user("clean up")).await;
        stage.hear(request("1", "rm -r build")).await;
        stage.hear(request("2", "rm -r dist")).await;
        assert!(stage.screen().contains("  rm -r build"), "{}", stage.screen());
        stage.hear(event).await;
        let screen = stage.screen();
        assert!(!screen.contains("  rm -r build"), "{screen}");
        assert!(screen.contains("  rm -r dist"), "{screen}");
    }
}

/// UI-2: a resumed session shows a request unless it was answered or its turn has ended.
#[tokio::test]
async fn only_what_is_still_open_is_asked_again() {
    let result = call("7", "bash rm", "", StepStatus::Completed, None).remove(1);
    let cases = [
        (start(), true),
        (answer("7"), false),
        (result, false),
        (final_answer("ok"), false),
    ];
    for (event, is_asked) in cases {
        let mut stage = Stage::resumed(100, 24).await;
        let entries = vec![
            entry(41, user("clean up")),
            entry(42, request("7", "rm -r build")),
            entry(43, event.clone()),
        ];
        stage.reported(Done::Opening(Ok(entries))).await;
        let screen = stage.screen();
        assert_eq!(
            screen.contains("Run this command?"),
            is_asked,
            "{event:?}\n{screen}"
        );
    }
}

/// UI-2: an unfocused terminal rings the bell for a request and at the end of a turn; a focused one does not.
#[tokio::test]
async fn people_who_look_elsewhere_are_notified() {
    for (is_focused, is_called) in [(false, true), (true, false)] {
        let mut stage = Stage::new(80, 20).await;
        stage.focus(false);
        stage.focus(is_focused);
        stage.hear(user("work")).await;
        assert!(!stage.was_called());
        stage.hear(request("1", "rm -r build")).await;
        assert_eq!(stage.was_called(), is_called);
        stage.hear(final_answer("ok")).await;
        assert_eq!(stage.was_called(), is_called);
    }
}

/// UI-2: a closed session shows no activity and no requests; the next input resubscribes where the stream
/// ended.
#[tokio::test]
async fn a_session_that_was_left_is_heard_again() {
    let mut stage = Stage::new(80, 20).await;
    stage.hear(user("work")).await;
    stage.hear(request("1", "rm -r build")).await;
    stage.screen();
    stage.silence();
    assert!(stage.is_dirty());
    assert!(
        !stage.screen().contains("Run this command?"),
        "{}",
        stage.screen()
    );
    assert_eq!(stage.next_tick(), None);
    assert_eq!(
        stage.listens().last().copied(),
        Some(0),
        "nobody listens before there is something to hear"
    );
    stage.keys("hello<Enter>").await;
    assert_eq!(stage.calls(), ["submit Steer hello"]);
    assert_eq!(stage.listens().last().copied(), Some(2));
}

/// UI-2: a turn that starts without a message runs like any other, and its status is visible until its next
/// step.
#[tokio::test]
async fn a_turn_may_begin_without_a_message() {
    let mut stage = Stage::new(80, 20).await;
    stage.hear(start()).await;
    assert!(stage.is_dirty(), "what is heard is drawn");
    assert!(stage.screen().contains("working"), "{}", stage.screen());
    let text = "compacting".to_owned();
    stage.hear(Event::Status { text }).await;
    assert!(stage.screen().contains("compacting"), "{}", stage.screen());
    stage.hear(start()).await;
    assert!(!stage.screen().contains("compacting"), "{}", stage.screen());
}

/// UI-2: a call that still runs when its session is resumed is shown as running.
#[tokio::test]
async fn a_call_that_still_runs_is_shown_as_running() {
    let mut stage = Stage::resumed(80, 20).await;
    let begun = call("1", "bash make", "", StepStatus::Completed, None).remove(0);
    let entries = vec![entry(41, user("build")), entry(42, begun)];
    stage.reported(Done::Opening(Ok(entries))).await;
    assert!(stage.screen().contains("◌ bash make"), "{}", stage.screen());
}

/// UI-2, SES-7: a user command that was killed with the program is not shown as running when its session is
/// resumed.
#[tokio::test]
async fn a_killed_command_does_not_run_any_more() {
    let mut stage = Stage::resumed(80, 20).await;
    let id = own_call(&Message::user(&SessionId::generate(), "", Timestamp(0)).id);
    let begun = call(id.as_str(), "bash sleep 9", "", StepStatus::Completed, None).remove(0);
    stage
        .reported(Done::Opening(Ok(vec![
            entry(41, final_answer("done")),
            entry(42, begun),
        ])))
        .await;
    assert!(!stage.screen().contains("working"), "{}", stage.screen());
    assert!(!stage.screen().contains("◌ bash"), "{}", stage.screen());
}

/// UI-2: older entries are read as far as the user scrolls, once, and no further than the start of the
/// session.
#[tokio::test]
async fn what_is_older_is_read_when_it_is_wanted() {
    let mut stage = Stage::resumed(60, 8).await;
    stage.keys("<C-o>").await;
    for _ in 0..30 {
        stage.keys("<PageUp>").await;
        stage.screen();
    }
    let screen = stage.screen();
    assert!(screen.contains("› said first of all"), "{screen}");
    assert!(screen.contains("rows below"), "{screen}");
    assert_eq!(stage.calls(), ["older than 40", "older than 20"]);
    // Scrolling past the start is not remembered: the way back is as long as the conversation.
    for _ in 0..4 {
        stage.keys("<PageUp>").await;
    }
    stage.screen();
    let below = |screen: &str| -> Option<usize> {
        let (before, _) = screen.split_once(" rows below")?;
        before.rsplit(char::is_whitespace).next()?.parse().ok()
    };
    assert_eq!(below(&stage.screen()), below(&screen), "{}", stage.screen());
}

/// UI-2: redrawing a screen with room to spare requests older entries only once.
#[tokio::test]
async fn what_is_older_is_asked_for_once() {
    let mut stage = Stage::resumed(60, 30).await;
    stage.keys("<C-o>").await;
    for _ in 0..4 {
        // Redrawn before the answer arrives.
        stage.screen();
        stage.screen();
        stage.keys("<PageDown>").await;
    }
    let screen = stage.screen();
    assert!(screen.contains("› said first of all"), "{screen}");
    assert_eq!(stage.calls(), ["older than 40", "older than 20"]);
}

/// UI-2: the rewind list has all messages of the user, even old ones, but neither answers nor shell commands.
#[tokio::test]
async fn what_was_said_long_ago_can_be_gone_back_to() {
    let mut stage = Stage::new(80, 20).await;
    let session = SessionId::from("current");
    let message = |role, text: &str| Message::new(&session, role, vec![Part::text(text)], Timestamp(0));
    let own = message(Role::User, "ls -la");
    let begun = Event::StepStart {
        call_id: own_call(&own.id),
        title: "ls -la".to_owned(),
        number: 1,
    };
    let said = |message| Event::Message {
        message: Arc::new(message),
    };
    let entries = vec![
        entry(5, said(message(Role::User, "said long ago"))),
        entry(6, said(message(Role::Assistant, "an answer"))),
        entry(7, said(own)),
        entry(8, begun),
    ];
    stage.keys("<Esc><Esc>").await;
    stage.reported(Done::Messages(Ok(entries))).await;
    let screen = stage.screen();
    assert!(screen.contains("▸ said long ago"), "{screen}");
    assert!(
        !screen.contains("an answer") && !screen.contains("ls -la"),
        "{screen}"
    );
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"command /rewind 5".to_owned()));
    assert!(stage.screen().contains("› said long ago"), "{}", stage.screen());
}

/// UI-2: a long live area fits the terminal, and its end is visible.
#[tokio::test]
async fn a_long_answer_leaves_room() {
    let mut stage = Stage::new(60, 12).await;
    stage.hear(user("count")).await;
    // An unfinished list stays in the live area, where it can be redrawn.
    let lines: String = (0..60).map(|line| format!("- item {line}\n")).collect();
    stage.hear(delta(&lines)).await;
    let screen = stage.screen();
    assert!(screen.split('\n').count() <= 12, "{screen}");
    assert!(screen.contains("item 59"), "{screen}");
}

/// UI-2: the cursor is at the insertion point in the composer; a long text takes a third of the screen.
#[tokio::test]
async fn the_cursor_is_where_one_writes() {
    let mut stage = Stage::new(60, 30).await;
    stage.hear(user("work")).await;
    stage.keys("one<S-Enter>two").await;
    assert_eq!(stage.before_cursor().as_deref(), Some("  two"));
    let lines = "<S-Enter>more".repeat(40);
    stage.keys(&lines).await;
    assert_eq!(stage.before_cursor().as_deref(), Some("  more"));
    let screen = stage.screen();
    assert!(screen.matches("more").count() <= 10, "{screen}");
}

/// UI-2: after the screen was cleared, as much of the conversation as fits is printed again.
#[tokio::test]
async fn an_emptied_screen_is_filled_again() {
    let mut stage = Stage::new(60, 12).await;
    for number in 0..30 {
        stage.hear(final_answer(&format!("answer {number}"))).await;
    }
    assert!(stage.printed().contains("answer 0"), "{}", stage.printed());
    stage.emptied();
    assert!(stage.is_dirty());
    let screen = stage.screen();
    let printed = stage.printed();
    assert!(printed.contains("answer 29"), "{printed}");
    assert!(!printed.contains("answer 0\n"), "{printed}");
    let rows = printed.trim_end().split('\n').count() + screen.split('\n').count();
    assert!(rows <= 12, "{rows}: {printed}\n{screen}");
}
