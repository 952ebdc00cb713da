//! Commands in the terminal UI: built-in commands, user commands, and the UI's own screens.

use std::fs;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, SimServer, Workspace, eventually};

use super::support::{script, with_replies, workspace};
use super::tui::{EMPTY, has, leave, open, say};

fn scene() -> (SimServer, Workspace) {
    with_replies(Protocol::Anthropic, [Reply::text("fine").forever()])
}

/// CMD-1, CMD-2: commands work as elsewhere, are completed while typing, and none reaches a model; a
/// misspelled one is reported with a suggestion.
#[test]
fn commands_reach_no_model() {
    let (sim, workspace) = scene();
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "/help");
    screen.wait_for("/session");
    screen.wait_for("q or esc back");
    assert!(screen.screen().alternate_screen());
    screen.press("q");
    screen.wait_for(EMPTY);
    screen.type_keys("/sta");
    screen.wait_for("▸ /status");
    screen.press("enter");
    screen.wait_for("provider     test");
    say(&mut screen, "/sessoin list");
    screen.wait_for("there is no command /sessoin; did you mean /session?");
    say(&mut screen, "!touch made; echo hi there");
    screen.wait_until("the command ran", |shown| shown.contains("\n  hi there"));
    assert!(workspace.has("made"));
    screen.wait_until("nothing runs", |shown| !shown.contains("esc stops"));
    assert_eq!(sim.count(), 0);
    say(&mut screen, "what was that?");
    screen.wait_for("fine");
    assert_eq!(sim.count(), 1);
    assert!(sim.outlines()[0].contains("hi there"), "{:?}", sim.outlines());
    leave(&mut screen);
}

/// CMD-1: user commands are prompts for the model; completion shows their description.
#[test]
fn own_commands_are_sent() {
    let (sim, workspace) = scene();
    let file = workspace.home().join("config/commands/review.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(
        &file,
        "---\ndescription: Look at a file\nargument-hint: [file]\n---\nReview $1 carefully.\n",
    )
    .unwrap();
    let mut screen = open(&workspace, &[]);
    screen.type_keys("/rev");
    screen.wait_for("Look at a file");
    screen.press("tab");
    say(&mut screen, "src/a.rs");
    screen.wait_for("fine");
    let requests = sim.requests();
    let sent = requests[0].seen.last_user_text().unwrap_or_default();
    assert!(sent.ends_with("Review src/a.rs carefully.\n"), "{sent}");
    leave(&mut screen);
}

/// UI-2: the keys are listed, and the list closes again; f1 does the same.
#[test]
fn keys_are_listed() {
    let (_sim, workspace) = scene();
    let mut screen = open(&workspace, &["-c", "tui.keys.transcript=f2"]);
    say(&mut screen, "/keys");
    screen.wait_for("stop the turn; twice with no text");
    screen.wait_until("the bound key is listed", |shown| shown.contains("f2   "));
    screen.press("esc");
    screen.wait_for(EMPTY);
    screen.press("f1");
    screen.wait_for("stop the turn; twice");
    screen.press("q");
    screen.wait_for(EMPTY);
    screen.press("f2");
    screen.wait_for("/ search");
    assert!(screen.screen().alternate_screen());
    screen.press("f2");
    leave(&mut screen);
}

/// UI-2: a theme applies immediately and in the next start; with the theme `none` there is no color.
#[test]
fn themes_are_chosen() {
    let (_sim, workspace) = scene();
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "/theme none");
    // Everything is redrawn, so later output is without color.
    screen.wait_until("it was taken", |shown| shown.contains(EMPTY));
    leave(&mut screen);
    let mut screen = open(&workspace, &[]);
    screen.wait_for("auto");
    say(&mut screen, "hello");
    screen.wait_for("fine");
    assert_eq!(colours(&screen.raw()), Vec::<String>::new());
    say(&mut screen, "/theme light");
    screen.wait_until("it was taken", |shown| shown.contains(EMPTY));
    say(&mut screen, "/theme");
    screen.wait_for("for a light background");
    screen.wait_for("▸ light");
    screen.press("esc");
    screen.wait_for(EMPTY);
    say(&mut screen, "/theme pink");
    screen.wait_for("unknown theme pink; choose");
    leave(&mut screen);
    assert_ne!(colours(&screen.raw()), Vec::<String>::new());
}

/// Returns the sequences that select a color.
pub(super) fn colours(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    let mut found = Vec::new();
    for piece in text.split("\u{1b}[").skip(1) {
        let Some((numbers, _)) = piece.split_once('m') else {
            continue;
        };
        if !numbers
            .chars()
            .all(|letter| letter.is_ascii_digit() || letter == ';' || letter == ':')
        {
            continue;
        }
        let is_colour = |number: &str| matches!(number.parse(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107));
        if numbers.split([';', ':']).any(is_colour) {
            found.push(numbers.to_owned());
        }
    }
    found
}

/// UI-2, SES-10: sessions can be searched and previewed; the chosen one is resumed with its full history.
#[test]
fn another_session_is_chosen() {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::text("Stripes."),
            Reply::text("Long necks."),
            Reply::text("Both."),
        ],
    );
    for text in ["tell me of zebras", "tell me of giraffes"] {
        workspace.run(&["exec", text]).output().assert_code(0);
    }
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "/resume");
    screen.wait_for("Sessions");
    screen.wait_for("Long necks.");
    screen.type_keys("zebra");
    screen.wait_for("Stripes.");
    screen.wait_until("the other is not listed", |shown| !shown.contains("giraffes"));
    screen.press("enter");
    screen.wait_for("── tell me of zebras ──");
    screen.wait_for("› tell me of zebras");
    screen.wait_for(EMPTY);
    say(&mut screen, "and who else?");
    screen.wait_for("Both.");
    let requests = sim.requests();
    let last = requests
        .last()
        .map(|request| request.raw.to_vec())
        .unwrap_or_default();
    assert!(
        has(&last, "zebras") && has(&last, "Stripes.") && !has(&last, "giraffes"),
        "{:?}",
        sim.outlines()
    );
    leave(&mut screen);
}

/// UI-2, SES-11: checkpoints show the file changes of each turn, and files can be restored to the state
/// before one.
#[test]
fn files_go_back_to_a_checkpoint() {
    let edit = |old: &str, new: &str| {
        Reply::call(
            "edit_file",
            json!({ "path": "a.txt", "old_string": old, "new_string": new }),
        )
    };
    let replies = [
        edit("one", "two"),
        Reply::text("First."),
        edit("two", "three"),
        Reply::text("Second."),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "one\n");
    let mut screen = open(&workspace, &[]);
    for (said, answered) in [("change it", "First."), ("change it more", "Second.")] {
        say(&mut screen, said);
        screen.wait_for(answered);
        screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    }
    assert_eq!(workspace.read("a.txt"), "three\n");
    say(&mut screen, "/checkpoint");
    screen.wait_for("Checkpoints: file changes by turn");
    screen.wait_until("the last one is shown", |shown| {
        shown.contains("-two") && shown.contains("+three")
    });
    screen.press("down");
    screen.wait_until("the first one is shown", |shown| {
        shown.contains("-one") && shown.contains("+two")
    });
    screen.press("enter");
    screen.wait_for(EMPTY);
    screen.wait_for("a.txt");
    assert!(
        eventually(PATIENCE, || workspace.read("a.txt") == "one\n"),
        "{}",
        screen.contents()
    );
    assert_eq!(sim.count(), 4);
    leave(&mut screen);
}

/// PROV-11, UI-2: a provider is set up within the session: a wrong key is reported, the right one is stored,
/// never shown, and used by the next turn.
#[test]
fn a_model_is_set_up() {
    const KEY: &str = "sk-ant-0123456789";
    let sim = SimServer::script_with_key(script([Reply::text("Real enough.").forever()]), KEY);
    let workspace = workspace();
    workspace.config("[retry]\nmax_delay_secs = 0\n");
    let mut screen = workspace
        .run(&[])
        .env("ANTHROPIC_BASE_URL", &sim.url())
        .on_screen(100, 30);
    screen.wait_for("no API key found");
    screen.wait_for(EMPTY);
    say(&mut screen, "/connect");
    screen.wait_for("Set up a model");
    screen.type_keys("anthropic");
    screen.wait_for("▸ anthropic");
    screen.press("enter");
    screen.wait_for("API key for anthropic");
    screen.type_keys("sk-ant-wrong");
    screen.wait_for("key ************");
    screen.press("enter");
    screen.wait_for("anthropic rejected the key");
    say(&mut screen, "/connect anthropic");
    screen.wait_for("API key for anthropic");
    screen.paste(KEY);
    screen.wait_for("*****************");
    screen.press("enter");
    screen.wait_for("Connected to anthropic");
    say(&mut screen, "hello");
    screen.wait_for("Real enough.");
    leave(&mut screen);
    assert!(!has(&screen.raw(), KEY) && !has(&screen.raw(), "sk-ant-wrong"));
    let history = fs::read_to_string(workspace.home().join("data/history.jsonl")).unwrap_or_default();
    assert!(
        history.contains("hello") && !history.contains("sk-ant"),
        "{history}"
    );
}

/// PROV-7, PROV-11: a provider that is set up in a later session is used by the next turn of that session.
#[test]
fn a_model_is_set_up_in_a_later_session() {
    let sim = SimServer::script(script([Reply::text("Real enough.").forever()]));
    let workspace = workspace();
    let mut screen = workspace
        .run(&[])
        .env("OLLAMA_BASE_URL", &format!("{}/v1", sim.url()))
        .on_screen(100, 30);
    screen.wait_for("no API key found");
    screen.wait_for(EMPTY);
    say(&mut screen, "/clear");
    screen.wait_for("── a new session ──");
    screen.wait_for(EMPTY);
    say(&mut screen, "/connect ollama");
    screen.wait_for("Connected to ollama: sim-1 is used from the next turn");
    say(&mut screen, "hello");
    screen.wait_for("Real enough.");
    leave(&mut screen);
}

/// CFG-2: a session that is begun later uses the settings as they are then.
#[test]
fn a_later_session_has_changed_settings() {
    let (sim, workspace) = scene();
    let mut screen = open(&workspace, &[]);
    let prompt = "\n[agent]\nsystem_prompt = \"Be brief.\"\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, prompt);
    say(&mut screen, "/clear");
    screen.wait_for("── a new session ──");
    screen.wait_for(EMPTY);
    say(&mut screen, "hello");
    screen.wait_for("fine");
    assert_eq!(sim.requests()[0].seen.system, "Be brief.");
    screen.wait_for("settings changed: agent.system_prompt");
    leave(&mut screen);
}
