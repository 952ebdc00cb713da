//! Keystrokes in, screen out: typing while a request is open, and how the text is interpreted.

use std::sync::Arc;

use windlass_api::{Binary, Event, Message, Part, SessionId, StepStatus, Timestamp};

use super::Done;
use super::stage::{Stage, call, question, request, user};

/// A running turn with this text typed before a request appears.
async fn written(keys: &str) -> Stage {
    let mut stage = Stage::new(80, 24).await;
    stage.hear(user("work")).await;
    stage.keys(keys).await;
    stage.calls();
    stage
}

fn settled(id: &str) -> Event {
    call(id, "bash make", "", StepStatus::Completed, None).remove(1)
}

/// UI-2: a request closes a history search, which it would hide.
#[tokio::test]
async fn a_request_ends_a_search() {
    let mut stage = written("<C-r>wo").await;
    stage.hear(request("1", "rm -r build")).await;
    stage.look();
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 1 Permission(Once)"]);
    stage.hear(request("2", "rm -r dist")).await;
    stage.look();
    stage.keys("<C-r>").await;
    stage.look();
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 2 Permission(Once)"]);
    assert!(
        !stage.screen().contains("Run this command?"),
        "{}",
        stage.screen()
    );
}

/// UI-2, SAFE-6: words typed when a request has just appeared, or long after, do not answer it, and the hint
/// says so; a single key after reading does.
#[tokio::test]
async fn words_answer_no_request() {
    const NOT_YET: &str = "ignored: read the request first";
    for (before, after_ms) in [("", 100), ("", 650), ("a draft", 650), ("", 5_000)] {
        let mut stage = written(before).await;
        stage.pass(5_000);
        stage.hear(request("1", "rm -r build")).await;
        stage.screen();
        stage.pass(after_ms);
        for letter in ["a", "l", "s", "o", " ", "A", "n", "y"] {
            stage.keys(letter).await;
            stage.pass(150);
        }
        assert_eq!(stage.calls(), Vec::<String>::new(), "{before:?} {after_ms}");
        let screen = stage.look();
        if after_ms < 5_000 {
            assert!(screen.contains(NOT_YET), "{screen}");
        } else {
            assert!(screen.contains("› also Any"), "{screen}");
            assert!(screen.contains("Tell it what to do instead"), "{screen}");
            stage.keys("<Esc>").await;
        }
        stage.answer("a").await;
        assert_eq!(stage.calls(), Vec::<String>::new());
        let screen = stage.look();
        let kept = "a or enter confirms, esc goes back: Never ask again in this folder";
        assert!(screen.contains(kept) && !screen.contains(NOT_YET), "{screen}");
        stage.answer("a").await;
        assert_eq!(stage.calls(), ["reply 1 Permission(Always)"]);
        assert!(
            stage.screen().contains(&format!("› {before}\n")) || before.is_empty(),
            "{}",
            stage.screen()
        );
    }
}

/// UI-2: two presses of esc with a message sent in between are not a double press.
#[tokio::test]
async fn what_is_sent_comes_between_two_keys() {
    for sent in ["/status <Enter>", "!ls<Enter>"] {
        let mut stage = Stage::new(80, 24).await;
        stage.keys("<Esc>").await;
        stage.keys(sent).await;
        stage.keys("<Esc>").await;
        let screen = stage.screen();
        assert!(screen.contains("esc again to go back"), "{sent}: {screen}");
        stage.keys("<Esc>").await;
        assert!(
            !stage.screen().contains("esc again"),
            "{sent}: {}",
            stage.screen()
        );
    }
}

/// UI-2: the history can be searched for an answer.
#[tokio::test]
async fn an_answer_can_be_searched_for() {
    let mut stage = written("1 warm blue<Enter>draft").await;
    stage.hear(question("1")).await;
    stage.look();
    stage.keys("<C-r>1<Enter>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    stage.keys("<Enter>").await;
    assert_eq!(stage.calls(), ["reply 1 Text(\"1 warm blue\")"]);
    assert!(stage.screen().contains("› draft"), "{}", stage.screen());
}

/// UI-2: enter runs the command as written, whatever an outdated menu offered.
#[tokio::test]
async fn a_found_command_is_what_runs() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("/status <Enter>").await;
    stage.calls();
    stage.keys("/chec<C-r>").await;
    assert!(
        !stage.screen().contains("See what turns did"),
        "{}",
        stage.screen()
    );
    stage.keys("stat<Enter>").await;
    assert!(stage.screen().contains("› /status"), "{}", stage.screen());
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"command /status".to_owned()));
}

/// UI-2: the same for a draft that is restored after an answer.
#[tokio::test]
async fn a_draft_that_comes_back_is_what_runs() {
    let mut stage = written("/sta").await;
    stage.hear(question("1")).await;
    stage.look();
    stage.keys("/chec").await;
    stage.hear(settled("1")).await;
    assert!(stage.screen().contains("› /sta\n"), "{}", stage.screen());
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"command /status".to_owned()));
}

/// UI-2: an answer can be pasted, and a path in it stays text.
#[tokio::test]
async fn an_answer_can_be_pasted() {
    for (pasted, expected) in [("green", "green"), ("/tmp/a.png", "/tmp/a.png")] {
        let mut stage = written("my draft").await;
        stage.hear(question("1")).await;
        stage.look();
        stage.paste(pasted).await;
        stage.keys("<Enter>").await;
        assert_eq!(stage.calls(), [format!("reply 1 Text({expected:?})")]);
        assert!(stage.screen().contains("› my draft"), "{}", stage.screen());
    }
}

/// UI-2: a draft keeps its pasted text and images while a question is answered.
#[tokio::test]
async fn a_draft_keeps_what_was_pasted() {
    let mut stage = written("<C-v>").await;
    stage.paste(&"line\n".repeat(6)).await;
    stage.hear(question("1")).await;
    stage.look();
    stage.keys("blue<Enter>").await;
    assert_eq!(stage.calls(), ["reply 1 Text(\"blue\")"]);
    let screen = stage.screen();
    assert!(
        screen.contains("[image 1: clipboard][pasted 6 lines]"),
        "{screen}"
    );
    stage.keys("<Enter>").await;
    let text = "line\n".repeat(6);
    assert_eq!(
        stage.calls(),
        [format!(
            "submit Steer [image 1: clipboard]{text} + clipboard image/png"
        )]
    );
}

/// UI-2: leaving and reopening a note does not lose the draft.
#[tokio::test]
async fn a_note_does_not_replace_the_draft() {
    let mut stage = written("my draft").await;
    stage.hear(request("1", "rm -r build")).await;
    stage.look();
    stage.answer("t").await;
    stage.keys("foo<Esc>").await;
    stage.answer("t").await;
    assert!(stage.screen().contains("› foo"), "{}", stage.screen());
    stage.keys("<Enter>").await;
    assert_eq!(stage.calls(), ["reply 1 Permission(NoBecause(\"foo\"))"]);
    assert!(stage.screen().contains("› my draft"), "{}", stage.screen());
}

/// UI-2: the draft is restored however a question ends, and a partial answer is not lost.
#[tokio::test]
async fn a_draft_comes_back_however_a_question_ends() {
    let mut stage = written("my draft").await;
    stage.hear(question("1")).await;
    stage.hear(request("2", "rm -r build")).await;
    stage.look();
    stage.keys("half").await;
    // Another request is answered elsewhere: the answer in progress stays.
    stage.hear(settled("2")).await;
    assert!(stage.screen().contains("› half"), "{}", stage.screen());
    stage.hear(settled("1")).await;
    assert!(stage.screen().contains("› my draft"), "{}", stage.screen());
    stage.keys("<Up>").await;
    assert!(stage.screen().contains("› half"), "{}", stage.screen());

    let mut stage = written("my draft").await;
    stage.hear(question("1")).await;
    stage.look();
    stage.keys("half").await;
    stage.silence();
    assert!(stage.screen().contains("› my draft"), "{}", stage.screen());
}

/// UI-2: while a permission request is open, nothing is sent and nothing is typed out of sight.
#[tokio::test]
async fn a_request_leaves_the_draft_alone() {
    let mut stage = Stage::bound(80, 24, &[("send", "alt+enter"), ("queue", "ctrl+q")]).await;
    stage.hear(user("work")).await;
    stage.keys("earlier<A-Enter>my draft").await;
    stage.calls();
    stage.hear(request("1", "rm -r build")).await;
    stage.look();
    stage.keys("<Up><C-u><C-w><A-Enter><C-q>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 1 Permission(Once)"]);
    assert!(stage.screen().contains("› my draft"), "{}", stage.screen());
}

/// UI-2: tab does not queue an answer as a message.
#[tokio::test]
async fn tab_queues_no_answer() {
    let mut stage = written("").await;
    stage.hear(question("1")).await;
    stage.look();
    stage.keys("blue<Tab>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    stage.keys("<Enter>").await;
    assert_eq!(stage.calls(), ["reply 1 Text(\"blue\")"]);
}

/// CMD-2: a text that starts with a space, or was pasted as a whole, is not run as a command.
#[tokio::test]
async fn text_is_not_run() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys(" !echo hi<Enter> /status<Enter>").await;
    stage.paste("![logo](x)\n\na\nb\nc\n").await;
    stage.keys("<Enter>").await;
    assert_eq!(
        stage.calls(),
        [
            "submit Steer  !echo hi",
            "submit Steer  /status",
            "submit Steer ![logo](x)\n\na\nb\nc\n"
        ]
    );
    // The arguments of a command may be pasted.
    stage.keys("!").await;
    stage.paste("echo a\necho b\necho c\necho d").await;
    stage.keys("<Enter>").await;
    assert_eq!(
        stage.calls().first().map(String::as_str),
        Some("command /shell echo a\necho b\necho c\necho d")
    );
}

/// UI-2: a lone exclamation mark is neither command nor message: a hint explains it, and typing can continue.
#[tokio::test]
async fn an_exclamation_mark_says_what_it_is_for() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("! <Enter>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    let screen = stage.screen();
    assert!(screen.contains("! runs a shell command, as in !ls"), "{screen}");
    stage.keys("ls<Enter>").await;
    assert_eq!(
        stage.calls().first().map(String::as_str),
        Some("command /shell ls")
    );
}

/// UI-2: a bound key performs its action even if it would type a character; enter then inserts line breaks.
#[tokio::test]
async fn bound_keys_come_before_the_text() {
    let mut stage = Stage::bound(80, 24, &[("send", "alt+enter"), ("mode", "ctrl+t")]).await;
    stage.keys("a<Enter>b<A-Enter>").await;
    assert_eq!(stage.calls(), ["submit Steer a\nb"]);
    stage.keys("/vim on<A-Enter>").await;
    stage.calls();
    stage.keys("ab<C-t>").await;
    assert!(stage.calls().contains(&"command /mode plan".to_owned()));
    assert!(stage.screen().contains("› ab\n"), "{}", stage.screen());
    // In normal mode, vim's own keys take precedence.
    stage.keys("<Esc>x<C-r>").await;
    assert!(stage.screen().contains("› a\n"), "{}", stage.screen());
    stage.keys("u<C-r>").await;
    assert!(stage.screen().contains("› a\n"), "{}", stage.screen());
}

/// UI-2: a request that arrives while an overlay is open is announced there.
#[tokio::test]
async fn a_request_behind_a_screen_is_announced() {
    const WAITS: &str = "a request is waiting for your answer · esc shows it";
    let mut stage = written("<F1>").await;
    assert!(!stage.screen().contains(WAITS), "{}", stage.screen());
    stage.hear(request("1", "rm -r build")).await;
    assert!(stage.screen().ends_with(WAITS), "{}", stage.screen());
    stage.keys("<Esc>").await;
    assert!(stage.look().contains("Run this command?"), "{}", stage.screen());
    // No announcement while the request itself is being viewed.
    stage.answer("v").await;
    let screen = stage.screen();
    assert!(
        screen.contains("Full request") && !screen.contains(WAITS),
        "{screen}"
    );
}

/// UI-2: a small screen shows a request; cut parts must be viewed before it can be approved.
#[tokio::test]
async fn a_small_screen_shows_requests() {
    let mut stage = written("").await;
    stage.resize(24, 10);
    stage.hear(request("1", "rm -r build")).await;
    assert!(stage.look().contains("  rm -r build\n"), "{}", stage.screen());
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 1 Permission(Once)"]);
    stage.resize(20, 6);
    stage.hear(request("2", "rm -r dist")).await;
    stage.look();
    for letter in ["y", "s", "a"] {
        stage.answer(letter).await;
    }
    assert_eq!(stage.calls(), Vec::<String>::new());
    stage.look();
    stage.answer("v").await;
    assert!(stage.screen().contains("rm -r dist"), "{}", stage.screen());
    stage.keys("<Esc>").await;
    stage.look();
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 2 Permission(Once)"]);
}

/// UI-2, SES-3: a message that is taken back keeps its images in place, however often it is taken back.
#[tokio::test]
async fn images_are_taken_back_once() {
    let image = |name: &str| {
        Part::Binary(Binary {
            path: name.to_owned(),
            mime: "image/png".to_owned(),
            data: "AQID".to_owned(),
        })
    };
    let mut stage = Stage::new(80, 24).await;
    let mut said = "look [image 2: b.png] and [image 1: a.png]".to_owned();
    for _ in 0..3 {
        let mut message = Message::user(&SessionId::from("current"), &*said, Timestamp(0));
        message
            .parts
            .extend([image("a.png"), image("b.png"), image("c.png")]);
        stage.done(Done::TakenBack(Some(Arc::new(message))));
        let screen = stage.screen();
        for name in ["a.png", "b.png", "c.png"] {
            assert_eq!(screen.matches(name).count(), 1, "{screen}");
        }
        stage.keys("<Enter>").await;
        let sent = stage.calls().remove(0);
        let (text, images) = sent.split_once(" + ").unwrap();
        assert_eq!(images.matches("image/png").count(), 3, "{sent}");
        said = text.trim_start_matches("submit Steer ").to_owned();
    }
}

/// UI-2: completions that arrive late do not apply to a changed text.
#[tokio::test]
async fn late_completions_are_of_no_use() {
    let mut stage = Stage::new(80, 24).await;
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    stage.keys("/model g").await;
    stage.done(Done::Completions("/model ".to_owned(), lines(&["/model claude"])));
    assert!(!stage.screen().contains("claude"), "{}", stage.screen());
    stage.done(Done::Completions("/model g".to_owned(), lines(&["/model gpt"])));
    assert!(stage.screen().contains("▸ /model gpt"), "{}", stage.screen());
    stage.done(Done::Completions(
        "/model g".to_owned(),
        lines(&["/model gemini"]),
    ));
    assert!(stage.screen().contains("▸ /model gemini"), "{}", stage.screen());
    // Nor do they reopen a dismissed menu.
    stage.keys("<Esc>").await;
    stage.done(Done::Completions("/model g".to_owned(), lines(&["/model gpt"])));
    assert!(!stage.screen().contains("/model gpt"), "{}", stage.screen());
}
