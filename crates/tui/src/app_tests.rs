//! Keystrokes in, screen out, without a terminal.

use serde_json::json;
use windlass_api::{Event, StepStatus, Wait, WaitOn, Waiting};

use super::Done;
use super::stage::{Stage, call, delta, entry, final_answer, question, queue, request, user};

/// UI-2: enter sends the text, and it is shown once accepted.
#[tokio::test]
async fn enter_sends() {
    let mut stage = Stage::new(60, 12).await;
    stage.keys("hello<S-Enter>there").await;
    assert!(stage.screen().contains("› hello\n  there"), "{}", stage.screen());
    stage.keys("<Enter>").await;
    assert_eq!(stage.calls(), ["submit Steer hello\nthere"]);
    stage.hear(user("hello\nthere")).await;
    assert!(
        stage.printed().contains("› hello\n  there"),
        "{}",
        stage.printed()
    );
}

/// UI-2, SES-3: while a turn runs, enter steers it and tab queues for later; both stay visible until
/// delivered.
#[tokio::test]
async fn enter_steers_and_tab_queues() {
    let mut stage = Stage::new(70, 20).await;
    stage.hear(user("work")).await;
    stage
        .hear(Event::Start {
            provider: "sim".into(),
            model: "m".into(),
        })
        .await;
    stage.keys("faster<Enter>").await;
    stage.keys("then rest<Tab>").await;
    assert_eq!(stage.calls(), ["submit Steer faster", "submit Queue then rest"]);
    let (Event::Waiting(Waiting::Queue { messages, .. }), id) = queue(&["then rest"]) else {
        panic!("no queue");
    };
    let faster = user("faster");
    let Event::Message { message } = faster.clone() else {
        panic!("no message");
    };
    let steers = vec![message];
    let waiting = Waiting::Queue { messages, steers };
    stage.hear(Event::Waiting(waiting)).await;
    let screen = stage.screen();
    assert!(screen.contains("next    faster"), "{screen}");
    assert!(screen.contains("queued  then rest"), "{screen}");
    assert!(screen.contains("1 queued"), "{screen}");
    stage.hear(faster).await;
    assert!(!stage.screen().contains("next    faster"));
    // SES-3: a queued message can be edited.
    stage.keys("<A-Up>").await;
    assert_eq!(stage.calls(), [format!("take_back {id}")]);
    assert!(stage.screen().contains("› taken back"), "{}", stage.screen());
}

/// UI-2, SES-3: messages queued when a turn is stopped are held, and the screen says so; enter with an empty
/// composer sends them, and does nothing while a turn runs.
#[tokio::test]
async fn what_waits_after_a_stop_is_reported() {
    let mut stage = Stage::new(100, 20).await;
    stage.hear(user("work")).await;
    let (waiting, _) = queue(&["then rest"]);
    stage.hear(waiting).await;
    stage.keys("<Enter><Esc>").await;
    assert_eq!(stage.calls(), ["cancel"]);
    let message = "Canceled by the user.".to_owned();
    stage.hear(Event::Canceled { message }).await;
    let screen = stage.screen();
    assert!(
        screen.contains("stopped; queued messages wait for your next message"),
        "{screen}"
    );
    assert!(
        screen.contains("queued  then rest") && screen.contains("enter sends now"),
        "{screen}"
    );
    stage.calls();
    stage.keys("<Enter>").await;
    assert_eq!(stage.calls(), ["go_on"]);
}

/// UI-2, SES-7: a compaction on demand is visible, and esc stops it.
#[tokio::test]
async fn compacting_can_be_stopped() {
    let mut stage = Stage::new(100, 20).await;
    let compacting = windlass_api::SessionEvent::Compacting { before: 1 };
    stage.hear(Event::Session(compacting)).await;
    assert!(
        stage.screen().contains("Compacting context… · 0"),
        "{}",
        stage.screen()
    );
    stage.keys("<Esc>").await;
    assert_eq!(stage.calls(), ["cancel"]);
    stage.hear(final_answer("The conversation was summarized.")).await;
    assert!(
        !stage.screen().contains("Compacting context…"),
        "{}",
        stage.screen()
    );
}

/// UI-2: esc stops the turn; ctrl+c clears, then stops, and quits when pressed twice.
#[tokio::test]
async fn esc_stops_and_ctrl_c_leaves() {
    let mut stage = Stage::new(70, 12).await;
    stage.hear(user("work")).await;
    stage.keys("<Esc>").await;
    assert_eq!(stage.calls(), ["cancel"]);
    stage.keys("draft<C-c>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    assert!(!stage.screen().contains("draft"));
    stage
        .hear(Event::Canceled {
            message: "Canceled by the user.".into(),
        })
        .await;
    stage.keys("<C-c>").await;
    assert!(
        stage.screen().contains("press ctrl+c again to quit"),
        "{}",
        stage.screen()
    );
    assert!(!stage.has_left());
    stage.keys("<C-c>").await;
    assert!(stage.has_left());
}

/// UI-2, SES-11: esc twice lists the messages of the current branch, and going back to one puts it into the
/// composer.
#[tokio::test]
async fn esc_twice_goes_back() {
    let mut stage = Stage::new(70, 20).await;
    stage.hear(user("first thing")).await;
    stage.hear(final_answer("done")).await;
    stage.calls();
    stage.keys("<Esc><Esc>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("Go back to an earlier message") && screen.contains("▸ first thing"),
        "{screen}"
    );
    assert!(!screen.contains("left behind"), "{screen}");
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"command /rewind 1".to_owned()));
    assert!(stage.screen().contains("› first thing"), "{}", stage.screen());
}

/// UI-2: shift+tab cycles through the modes. While a turn runs, the new mode is set at once, so that it
/// applies to queued messages, and the status line shows both modes until the turn ends.
#[tokio::test]
async fn shift_tab_changes_the_mode() {
    let mut stage = Stage::new(70, 12).await;
    stage.keys("<S-Tab>").await;
    assert_eq!(stage.calls(), ["command /mode plan", "overview"]);
    assert!(
        stage.screen().contains("plan: only reads run"),
        "{}",
        stage.screen()
    );
    stage.hear(user("work")).await;
    stage.keys("<S-Tab>").await;
    assert_eq!(stage.calls(), ["command /mode ask", "overview"]);
    let screen = stage.screen();
    assert!(screen.contains("ask: every edit and every command"), "{screen}");
    stage.keys("<End>").await;
    let screen = stage.screen();
    assert!(screen.contains("· plan → ask"), "{screen}");
    stage.keys("/mode full<Enter>").await;
    assert!(stage.screen().contains("· plan → full"), "{}", stage.screen());
    stage.calls();
    stage.hear(final_answer("ok")).await;
    let screen = stage.screen();
    assert!(screen.contains("· full") && !screen.contains("→"), "{screen}");
    assert_eq!(stage.calls(), ["overview"], "nothing is left to be set");
}

/// UI-2: a request appears above the composer, and y answers it.
#[tokio::test]
async fn a_request_is_answered() {
    let mut stage = Stage::new(100, 20).await;
    stage.hear(user("clean up")).await;
    stage.hear(request("1", "rm -r build")).await;
    let screen = stage.screen();
    stage.answer("y").await;
    assert_eq!(stage.calls(), Vec::<String>::new(), "nobody has seen it yet");
    stage.pass(2_000);
    assert!(
        screen.contains("▲ Run this command?") && screen.contains("  rm -r build"),
        "{screen}"
    );
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 1 Permission(Once)"]);
    assert!(!stage.screen().contains("Run this command?"));
    stage.hear(request("2", "rm -r dist")).await;
    stage.screen();
    stage.pass(2_000);
    stage.answer("t").await;
    stage.keys("use make clean<Enter>").await;
    assert_eq!(
        stage.calls(),
        ["reply 2 Permission(NoBecause(\"use make clean\"))"]
    );
}

/// CMD-1, CMD-2: a slash lists the commands with their help; the selected one goes to the backend, not to a
/// model.
#[tokio::test]
async fn a_slash_lists_commands() {
    let mut stage = Stage::new(90, 20).await;
    stage.keys("/sta").await;
    let screen = stage.screen();
    assert!(
        screen.contains("▸ /status") && screen.contains("Say how this session stands"),
        "{screen}"
    );
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"command /status".to_owned()));
    assert!(stage.printed().contains("told: /status"), "{}", stage.printed());
    stage.keys("/nonsense<Esc><Enter>").await;
    assert!(
        stage.printed().contains("there is no command /nonsense"),
        "{}",
        stage.printed()
    );
    assert!(!stage.calls().iter().any(|call| call.starts_with("submit")));
}

/// UI-2: `!` runs a shell command, like `/shell`.
#[tokio::test]
async fn an_exclamation_mark_runs_a_shell_command() {
    let mut stage = Stage::new(90, 20).await;
    stage.keys("!ls -la<Enter>").await;
    assert!(stage.calls().contains(&"command /shell ls -la".to_owned()));
}

/// UI-2: `@` finds files by a few letters and inserts the path.
#[tokio::test]
async fn an_at_sign_finds_files() {
    let mut stage = Stage::new(90, 20).await;
    stage.keys("look at @mai").await;
    let screen = stage.screen();
    assert!(screen.contains("▸ src/main.rs"), "{screen}");
    stage.keys("<Tab>please<Enter>").await;
    assert_eq!(
        stage.calls().last().map(String::as_str),
        Some("submit Steer look at @src/main.rs please")
    );
}

/// OBS-3: the end condition of a wait is visible even on a narrow screen and with a long description.
#[tokio::test]
async fn when_a_wait_ends_is_not_cut() {
    let mut stage = Stage::new(50, 20).await;
    stage.hear(user("work")).await;
    stage.waits(vec![Wait {
        on: WaitOn::Provider,
        what: "a model with a very long name that fills the whole row".to_owned(),
        for_ms: 11_000,
        ends: "when it answers, or in 4 min 49 s".to_owned(),
    }]);
    stage.pass(11_000);
    stage.tick().await;
    let screen = stage.screen();
    let rows =
        "\n  waiting for provider: a model with a ver… · 11 s\n    ends when it answers, or in 4 min 49 s\n";
    assert!(screen.contains(rows), "{screen}");
    stage.check_fits();
}

/// OBS-3: after ten seconds without events the reason is shown; the next event removes it.
#[tokio::test]
async fn after_ten_seconds_the_reason_is_shown() {
    let mut stage = Stage::new(100, 20).await;
    stage.hear(user("work")).await;
    stage.waits(vec![Wait {
        on: WaitOn::Provider,
        what: "anthropic/claude".to_owned(),
        for_ms: 11_000,
        ends: "when it answers".to_owned(),
    }]);
    stage.pass(9_000);
    stage.tick().await;
    assert!(!stage.screen().contains("waiting for"), "{}", stage.screen());
    stage.pass(2_000);
    stage.tick().await;
    let screen = stage.screen();
    assert!(
        screen.contains("waiting for provider: anthropic/claude · 11 s · ends when it answers"),
        "{screen}"
    );
    stage.hear(delta("hello")).await;
    assert!(!stage.screen().contains("waiting for"));
}

/// UI-2: nothing is animated while nothing runs, so an idle terminal is never redrawn.
#[tokio::test]
async fn nothing_moves_when_nothing_runs() {
    let mut stage = Stage::new(80, 12).await;
    stage.screen();
    assert!(!stage.is_dirty());
    assert_eq!(stage.next_tick(), None);
    stage.hear(user("work")).await;
    assert!(stage.next_tick().is_some());
    stage.hear(final_answer("ok")).await;
    stage.screen();
    assert_eq!(stage.next_tick(), None);
    assert!(!stage.is_dirty());
}

/// UI-2: the full-screen transcript shows everything unfolded, and reads older entries on demand.
#[tokio::test]
async fn the_whole_screen_shows_everything() {
    let mut stage = Stage::new(80, 16).await;
    let output: String = (0..40).map(|line| format!("line {line}\n")).collect();
    stage.hear(user("run it")).await;
    for event in call(
        "1",
        "bash make",
        &output,
        StepStatus::Completed,
        Some(json!({ "exit_code": 0 })),
    ) {
        stage.hear(event).await;
    }
    stage.hear(final_answer("It ran.")).await;
    assert!(stage.printed().contains("more lines"), "{}", stage.printed());
    stage.keys("<C-o>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("line 39") && screen.contains("It ran."),
        "{screen}"
    );
    stage
        .keys("<PageUp><PageUp><PageUp><PageUp><PageUp><PageUp><PageUp>")
        .await;
    let screen = stage.screen();
    assert!(screen.contains("› run it"), "{screen}");
    stage.keys("<C-o>").await;
    assert!(!stage.screen().contains("line 39"));
}

/// UI-2: a rejected message is restored to the composer: nothing is lost.
#[tokio::test]
async fn what_was_not_taken_is_written_again() {
    let mut stage = Stage::new(80, 12).await;
    stage.refuse();
    stage.keys("precious words<Enter>").await;
    assert!(stage.screen().contains("› precious words"), "{}", stage.screen());
    assert!(
        stage.printed().contains("too many inputs waiting"),
        "{}",
        stage.printed()
    );
}

/// UI-2: every frame fits its terminal, however small.
#[tokio::test]
async fn every_picture_fits_its_terminal() {
    let mut stage = Stage::new(80, 24).await;
    stage.hear(user("a long message with 日本語 and 👩‍👩‍👧 in it")).await;
    stage
        .hear(call("1", "bash make", "", StepStatus::Completed, None).remove(0))
        .await;
    stage.hear(queue(&["one", "two"]).0).await;
    stage.keys("some text").await;
    for asks in [false, true] {
        if asks {
            stage.hear(request("1", "rm -r build")).await;
        }
        for (columns, rows) in [(1, 1), (1, 5), (2, 2), (5, 3), (10, 4), (20, 1), (200, 60)] {
            stage.resize(columns, rows);
            stage.check_fits();
            stage.keys("<C-o>").await;
            stage.check_fits();
            stage.keys("<C-o>").await;
        }
    }
    for command in ["/keys", "/theme", "/resume", "/connect"] {
        stage.resize(80, 24);
        stage
            .hear(Event::Waiting(Waiting::PermissionAnswer {
                call_id: "1".into(),
                allowed: true,
            }))
            .await;
        stage.keys(&format!("<C-c>{command} <Enter>")).await;
        for (columns, rows) in [(1, 1), (3, 2), (9, 5), (80, 24)] {
            stage.resize(columns, rows);
            stage.check_fits();
        }
        stage.keys("<Esc>").await;
    }
}

/// UI-2: sessions can be searched, previewed, resumed and forked.
#[tokio::test]
async fn sessions_are_chosen_from_a_list() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("/resume <Enter>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("▸ fix the parser") && screen.contains("said in s-1"),
        "{screen}"
    );
    stage.keys("write").await;
    assert!(stage.calls().contains(&"sessions write".to_owned()));
    stage.keys("<Down><C-f>").await;
    assert!(stage.calls().contains(&"fork s-2".to_owned()));
    assert!(stage.printed().contains("write the docs"), "{}", stage.printed());
}

/// UI-2: checkpoints are a timeline with the changes of each turn, and can be restored.
#[tokio::test]
async fn checkpoints_are_chosen_from_a_list() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("/checkpoint <Enter>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("make the parser faster") && screen.contains("+fast"),
        "{screen}"
    );
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"command /checkpoint rewind 1".to_owned()));
}

/// UI-2: a model is set up from a list; the key is typed hidden and goes only to the port for it.
#[tokio::test]
async fn a_model_is_set_up() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("/connect <Enter>").await;
    assert!(stage.screen().contains("▸ anthropic"), "{}", stage.screen());
    stage.keys("<Enter>sk-secret").await;
    let screen = stage.screen();
    assert!(
        screen.contains("API key for anthropic") && screen.contains("*********"),
        "{screen}"
    );
    assert!(!screen.contains("sk-secret"));
    stage.keys("<Enter>").await;
    assert!(stage.calls().contains(&"connect anthropic sk-secret".to_owned()));
    assert!(
        stage.printed().contains("anthropic answers"),
        "{}",
        stage.printed()
    );
    assert!(!stage.printed().contains("sk-secret"));
}

/// UI-2: text from the editor replaces the draft; without an editor nothing is lost.
#[tokio::test]
async fn the_editor_changes_what_is_written() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("draft<C-g>").await;
    stage.edited(Ok("draft, edited\n".to_owned()));
    assert!(stage.screen().contains("› draft, edited"), "{}", stage.screen());
    stage.keys("<C-g>").await;
    stage.edited(Err("no editor".to_owned()));
    assert!(stage.screen().contains("› draft, edited"), "{}", stage.screen());
    assert!(stage.printed().contains("no editor"));
}

/// UI-2: the last answer is copied as written, not as drawn.
#[tokio::test]
async fn answers_are_copied_as_they_were_written() {
    let mut stage = Stage::new(40, 12).await;
    stage.hear(final_answer("**Bold** and `code`.")).await;
    stage.keys("/copy <Enter>").await;
    assert_eq!(stage.copied(), Some("**Bold** and `code`.".to_owned()));
}

/// UI-2: a pasted image is sent with the message.
#[tokio::test]
async fn images_go_with_the_message() {
    let mut stage = Stage::new(60, 12).await;
    stage.keys("<C-v>").await;
    assert!(
        stage.screen().contains("[image 1: clipboard]"),
        "{}",
        stage.screen()
    );
    stage.paste("/tmp/shot.png").await;
    stage.keys(" what is this?<Enter>").await;
    let calls = stage.calls();
    assert!(
        calls
            .last()
            .is_some_and(|call| call.ends_with("+ clipboard image/png + shot.png image/png")),
        "{calls:?}"
    );
}

/// UI-2: a resumed session shows its last entries, and how many come before them.
#[tokio::test]
async fn a_session_that_is_resumed_shows_its_end() {
    let mut stage = Stage::resumed(60, 20).await;
    let printed = stage.printed();
    assert!(printed.contains("39 earlier entries"), "{printed}");
    assert!(printed.contains("said in current"), "{printed}");
    assert_eq!(stage.listens(), [40]);
}

/// UI-2: a session whose turn is still running is resumed as it is: its requests are shown, and it can be
/// stopped.
#[tokio::test]
async fn a_turn_that_still_runs_is_resumed() {
    let mut stage = Stage::waiting(80, 20).await;
    assert!(stage.screen().contains("Run this command?"), "{}", stage.screen());
    let waits = "waiting for your approval";
    assert!(stage.screen().contains(waits), "{}", stage.screen());
    assert!(!stage.screen().contains("steers"), "{}", stage.screen());
    stage.pass(2_000);
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 7 Permission(Once)"]);
    stage.keys("<Esc>").await;
    assert_eq!(stage.calls(), ["cancel"]);
}

/// UI-2: a command that is typed before the list of commands has arrived is completed as soon as it has.
#[tokio::test]
async fn the_menu_opens_when_the_commands_arrive() {
    let mut stage = Stage::opening(80, 20);
    stage.type_now("/sta");
    assert!(!stage.screen().contains("▸ /status"), "{}", stage.screen());
    stage.settle().await;
    assert!(stage.screen().contains("▸ /status"), "{}", stage.screen());
}

/// UI-2: late results for another session change nothing in this one.
#[tokio::test]
async fn late_answers_are_of_no_use() {
    let mut stage = Stage::new(80, 20).await;
    stage.hear(user("work")).await;
    stage.keys("/").await;
    stage.late(Done::Opening(Ok(vec![entry(9, user("said elsewhere"))])));
    stage.late(Done::Why(vec![Wait {
        on: WaitOn::Tool,
        what: "waited for elsewhere".to_owned(),
        for_ms: 1,
        ends: String::new(),
    }]));
    stage.late(Done::Catalog(Vec::new()));
    stage.keys("sta").await;
    let screen = stage.screen();
    assert!(screen.contains("▸ /status"), "{screen}");
    assert!(!screen.contains("elsewhere"), "{screen}");
    assert!(!stage.printed().contains("elsewhere"), "{}", stage.printed());
}

/// UI-2: a draft in progress when a question arrives is not an answer to it, and is restored afterwards.
#[tokio::test]
async fn a_draft_is_no_answer() {
    let mut stage = Stage::new(80, 20).await;
    stage.hear(user("paint")).await;
    stage.keys("half a thou").await;
    stage.hear(question("3")).await;
    stage.screen();
    // Typing continues, enter included: nothing is answered.
    stage.keys("ght<Enter>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    stage.pass(2_000);
    stage.keys("blue<Enter>").await;
    assert_eq!(stage.calls(), ["reply 3 Text(\"blue\")"]);
    assert!(stage.screen().contains("› half a thought"), "{}", stage.screen());
}

/// UI-2: an API key typed after a provider's name is neither shown nor taken for a name.
#[tokio::test]
async fn a_key_behind_a_name_is_not_shown() {
    let mut stage = Stage::new(80, 20).await;
    stage.keys("/connect nobody sk-secret<Esc><Enter>").await;
    assert!(
        stage.printed().contains("unknown provider nobody"),
        "{}",
        stage.printed()
    );
    assert!(!stage.printed().contains("sk-secret"));
}

/// UI-2: a mode requested in one session is not set in another.
#[tokio::test]
async fn a_mode_stays_with_its_session() {
    let mut stage = Stage::new(80, 24).await;
    stage.hear(user("work")).await;
    stage.keys("<S-Tab>").await;
    stage.keys("/resume <Enter><C-f>").await;
    stage.hear(final_answer("ok")).await;
    let calls = stage.calls();
    let modes = calls.iter().filter(|call| call.contains("/mode")).count();
    assert_eq!(modes, 1, "{calls:?}");
}
