//! Tests of the commands of the terminal UI, as they are typed.

use super::Done;
use super::stage::{Stage, request, user};

/// CMD-1, UI-2: long output opens in a pager, and the help lists the terminal's commands with all others.
#[tokio::test]
async fn what_is_read_has_a_screen() {
    let mut stage = Stage::new(100, 24).await;
    stage.keys("/help <Enter>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("told: /help") && screen.contains("In this terminal"),
        "{screen}"
    );
    assert!(screen.contains("  /vim [on|off]"), "{screen}");
    stage.keys("q/cost <Enter>").await;
    let screen = stage.screen();
    assert!(
        screen.contains("told: /cost") && screen.contains("q or esc back"),
        "{screen}"
    );
    assert!(!screen.contains("In this terminal"), "{screen}");
    stage.keys("q").await;
    assert!(!stage.printed().contains("told:"), "{}", stage.printed());
}

/// UI-2: `/keys` lists the keys, `/rewind` the messages to go back to, and `/resume` with a name resumes that
/// session.
#[tokio::test]
async fn commands_open_screens() {
    let mut stage = Stage::new(100, 24).await;
    stage.keys("/keys <Enter>").await;
    assert!(stage.screen().contains("stop the turn"), "{}", stage.screen());
    stage.keys("q/rewind <Enter>").await;
    let screen = stage.screen();
    assert!(screen.contains("Go back to an earlier message"), "{screen}");
    stage.keys("<Esc>").await;
    stage.calls();
    stage.keys("/resume s-9<Enter>").await;
    assert_eq!(
        stage.calls().first().map(String::as_str),
        Some("command /session resume s-9")
    );
}

/// UI-2: the session list does not switch away from a running turn; it shows a warning instead.
#[tokio::test]
async fn a_running_turn_is_not_left() {
    for choose in ["<Enter>", "<C-f>"] {
        let mut stage = Stage::new(100, 24).await;
        stage.hear(user("work")).await;
        stage.keys("/resume <Enter>").await;
        stage.calls();
        stage.keys(choose).await;
        assert_eq!(stage.calls(), Vec::<String>::new());
        let printed = stage.printed() + &stage.screen();
        assert!(
            printed.contains("a turn is running: stop it with esc"),
            "{printed}"
        );
    }
}

/// UI-2: `/full` toggles full screen.
#[tokio::test]
async fn the_whole_screen_is_had_by_name() {
    let mut stage = Stage::new(60, 12).await;
    stage.keys("/full <Enter>").await;
    let screen = stage.screen();
    assert!(
        screen.split('\n').count() == 12 && screen.contains("────"),
        "{screen}"
    );
    stage.keys("/full <Enter>").await;
    assert!(!stage.screen().contains("────"), "{}", stage.screen());
}

/// UI-2: `/vim` switches vim keys on and off; the mode is visible, and an invalid argument is reported.
#[tokio::test]
async fn vims_keys_are_switched() {
    let mut stage = Stage::new(80, 12).await;
    for (line, is_on) in [
        ("/vim ", true),
        ("/vim ", false),
        ("/vim on", true),
        ("/vim on", true),
        ("/vim off", false),
        ("/vim off", false),
    ] {
        stage.keys(line).await;
        stage.keys("<Enter>").await;
        let screen = stage.screen();
        assert_eq!(screen.contains("  insert"), is_on, "{line}\n{screen}");
    }
    stage.keys("/vim maybe<Enter>").await;
    assert!(stage.printed().contains("usage: /vim, /vim on"));
    assert!(!stage.screen().contains("  insert"), "{}", stage.screen());
}

/// UI-2: a provider that is ready is selected without asking for a key; one that needs no key is tried at
/// once.
#[tokio::test]
async fn a_provider_that_is_ready_needs_no_key() {
    let mut stage = Stage::new(80, 24).await;
    stage.keys("/connect openai<Enter>").await;
    let calls = stage.calls();
    assert!(
        calls.contains(&"command /provider openai".to_owned()),
        "{calls:?}"
    );
    stage.keys("/connect ollama<Enter>").await;
    let calls = stage.calls();
    assert!(calls.contains(&"connect ollama ".to_owned()), "{calls:?}");
    stage.keys("/connect anthropic<Enter>").await;
    assert!(
        stage.screen().contains("API key for anthropic"),
        "{}",
        stage.screen()
    );
}

/// UI-2: a provider that was set up for a session the user has left is not reported as that of the shown one.
#[tokio::test]
async fn a_provider_of_a_session_that_was_left() {
    let mut stage = Stage::new(80, 24).await;
    let text = || Ok("Connected to ollama.".to_owned());
    stage.reported(Done::Connected("left".into(), text())).await;
    let printed = stage.printed();
    assert!(
        printed.contains("In the session you left: Connected to ollama."),
        "{printed}"
    );
}

/// CMD-1, UI-2: argument completions are only suggestions: enter sends the text as written, unless the user
/// selected one.
#[tokio::test]
async fn what_follows_a_name_is_only_offered() {
    for (keys, sent) in [
        ("<Enter>", "command /status x"),
        ("<Down><Enter>", "command /status xyz"),
        ("<Up><Enter>", "command /status xyz"),
        ("<Down><Down><Enter>", "command /status xray"),
    ] {
        let mut stage = Stage::new(80, 20).await;
        stage.keys("/status x").await;
        let lines = ["/status xray", "/status xyz"].map(str::to_owned).to_vec();
        stage
            .reported(Done::Completions("/status x".to_owned(), lines))
            .await;
        let screen = stage.screen();
        assert!(screen.contains("▸ /status xray"), "{screen}");
        stage.keys(keys).await;
        assert_eq!(stage.calls().first().map(String::as_str), Some(sent));
    }
}

/// UI-2: completions for an outdated text are dropped.
#[tokio::test]
async fn late_offers_are_of_no_use() {
    let mut stage = Stage::new(80, 20).await;
    stage.keys("/status x").await;
    let lines = vec!["/theme dark".to_owned()];
    stage
        .reported(Done::Completions("/theme d".to_owned(), lines))
        .await;
    assert!(!stage.screen().contains("/theme dark"), "{}", stage.screen());
}

/// UI-2, SAFE-6: a letter pressed with ctrl or alt does not answer a request.
#[tokio::test]
async fn a_letter_with_ctrl_is_no_answer() {
    let mut stage = Stage::new(100, 20).await;
    stage.hear(user("clean up")).await;
    stage.hear(request("1", "rm -r build")).await;
    stage.screen();
    stage.pass(2_000);
    stage.keys("<C-y><A-y><C-s><A-a>").await;
    assert_eq!(stage.calls(), Vec::<String>::new());
    assert!(stage.screen().contains("Run this command?"), "{}", stage.screen());
    stage.answer("y").await;
    assert_eq!(stage.calls(), ["reply 1 Permission(Once)"]);
}

/// SUB-8: `/agents` opens the fleet: each agent with its state, time, tokens, cost and burn rate, and their sum; keys attach, stop and
/// steer the selected one.
#[tokio::test]
async fn the_fleet_has_a_screen() {
    let mut stage = Stage::new(120, 24).await;
    stage.keys("/agents <Enter>").await;
    let screen = stage.screen();
    for part in [
        "Fleet · 2 agents: 1 running · 1 done · 2400 tokens · $0.5000",
        "● running   1 scout  find the bug",
        "✓ done      2 scout  write the tests",
        "1:00  1200 tokens  $0.2500",
        "/min",
        "ctrl+s steer",
    ] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    stage.calls();
    stage.keys("<C-f>").await;
    assert!(stage.calls().contains(&"command /agents stop agent-1".to_owned()));
    stage.keys("/agents <Enter><Down><C-s>").await;
    assert!(stage.screen().contains("/agents send 2"), "{}", stage.screen());
    stage.keys("<C-u>/agents <Enter><Enter>").await;
    assert!(
        stage.calls().iter().any(|call| call.contains("agent-1")),
        "attached to the agent"
    );
}
