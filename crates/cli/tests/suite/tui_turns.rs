//! Turns in the terminal UI: messages during a turn, stopping and rewinding, and permission modes.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, SimServer, Workspace, eventually, processes_with};

use super::support::{script, with_replies, workspace};
use super::tui::{EMPTY, held, leave, open, press_until, say};

/// A call that lasts until the test writes a file.
fn until_go() -> Reply {
    Reply::call(
        "bash",
        json!({ "command": "touch up; while [ ! -e go ]; do sleep 0.05; done" }),
    )
}

/// Returns the user's last message in a request.
fn last_said(sim: &SimServer, request: usize) -> String {
    let requests = sim.requests();
    let said = requests
        .get(request)
        .and_then(|request| request.seen.last_user_text());
    said.unwrap_or_default().to_owned()
}

#[track_caller]
fn wait_for_file(workspace: &Workspace, name: &str) {
    assert!(
        eventually(PATIENCE, || workspace.has(name)),
        "there is no file {name}"
    );
}

/// SES-3, OBS-2: during a turn, enter sends a message between two steps and tab queues one for afterwards; both are
/// visible until they are delivered, reach the model in order, and come out the same in a replay.
#[test]
fn steering_and_queueing() {
    let replies = [until_go(), Reply::text("Steered."), Reply::text("Queued.")];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "work");
    wait_for_file(&workspace, "up");
    screen.type_keys("then rest");
    screen.press("tab");
    screen.wait_for("queued  then rest");
    screen.wait_for("1 queued");
    say(&mut screen, "faster please");
    screen.wait_for("next    faster please");
    workspace.write("go", "");
    screen.wait_for("Steered.");
    screen.wait_for("Queued.");
    screen.wait_until("nothing waits", |shown| {
        !shown.contains("queued  then rest") && !shown.contains("next    faster")
    });
    assert!(
        last_said(&sim, 1).ends_with("faster please"),
        "{:?}",
        sim.outlines()
    );
    assert!(!sim.outlines()[1].contains("then rest"), "{:?}", sim.outlines());
    assert!(last_said(&sim, 2).ends_with("then rest"), "{:?}", sim.outlines());
    sim.assert_valid();
    leave(&mut screen);
    let shown = screen.scrollback();
    for text in ["› work", "› faster please", "› then rest"] {
        assert_eq!(shown.matches(text).count(), 1, "{text}\n{shown}");
    }
    let listed = workspace.run(&["sessions", "list", "--json"]).output();
    let session = listed.json()[0]["id"].as_str().unwrap().to_owned();
    let replayed = workspace.run(&["replay", &session]).output();
    replayed.assert_code(0);
    assert!(replayed.stdout.contains("the history is identical"), "{replayed}");
}

/// SES-3: a queued message can be taken back, edited and sent again; only the last version reaches the model.
#[test]
fn a_queued_message_is_taken_back() {
    let replies = [until_go(), Reply::text("First."), Reply::text("Second.")];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "work");
    wait_for_file(&workspace, "up");
    screen.type_keys("then rest");
    screen.press("tab");
    screen.wait_for("queued  then rest");
    screen.press("alt-up");
    screen.wait_for("› then rest");
    screen.wait_until("nothing waits", |shown| !shown.contains("queued  then rest"));
    screen.type_keys(" a while");
    screen.press("tab");
    screen.wait_for("queued  then rest a while");
    workspace.write("go", "");
    screen.wait_for("Second.");
    assert!(
        last_said(&sim, 2).ends_with("then rest a while"),
        "{:?}",
        sim.outlines()
    );
    assert_eq!(sim.count(), 3);
    leave(&mut screen);
}

/// UI-2, LOOP-8: esc stops the turn and all its processes; the session continues.
#[test]
fn esc_stops_the_whole_tree() {
    let workspace = workspace();
    let marker = format!("83.{}", std::process::id());
    let command = format!("touch up; (setsid sleep {marker} &); sleep {marker}");
    let replies = [
        Reply::call("bash", json!({ "command": command })),
        Reply::text("Gone."),
    ];
    let sim = SimServer::script(script(replies));
    workspace.use_sim(&sim, Protocol::Chat);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "wait");
    wait_for_file(&workspace, "up");
    screen.wait_for("◌ bash");
    screen.press("esc");
    screen.wait_for("✗ bash");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    let sleepers = || processes_with(&format!("sleep {marker}"));
    assert!(
        eventually(PATIENCE, || sleepers().is_empty()),
        "left {:?}",
        sleepers()
    );
    say(&mut screen, "and now?");
    screen.wait_for("Gone.");
    sim.assert_valid();
    leave(&mut screen);
}

/// UI-2: ctrl+c clears the input, then stops the turn; pressed twice it quits.
#[test]
fn ctrl_c_clears_stops_and_leaves() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [held()]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "wait");
    assert!(eventually(PATIENCE, || sim.count() == 1));
    screen.type_keys("half a line");
    screen.wait_for("› half a line");
    screen.press("ctrl-c");
    screen.wait_for(EMPTY);
    assert!(screen.contents().contains("esc stops"), "{}", screen.contents());
    screen.press("ctrl-c");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    screen.press("ctrl-c");
    screen.press("ctrl-c");
    assert_eq!(screen.wait_exit(), Some(0));
    super::tui::check_restored(&screen);
}

/// UI-2, SES-11: esc twice rewinds to before a message: files and conversation are restored, and the message
/// is in the input again, to be edited.
#[test]
fn esc_twice_goes_back() {
    let write = |content: &str| Reply::call("write_file", json!({ "path": "a.txt", "content": content }));
    let replies = [
        write("first\n"),
        Reply::text("One."),
        write("second\n"),
        Reply::text("Two."),
        Reply::text("Three."),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "write zebra");
    screen.wait_for("One.");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    say(&mut screen, "write giraffe");
    screen.wait_for("Two.");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    assert_eq!(workspace.read("a.txt"), "second\n");
    screen.press("esc");
    screen.wait_for("esc again to go back to an earlier message");
    screen.press("esc");
    screen.wait_for("Go back to an earlier message");
    screen.wait_until("both are listed", |shown| {
        shown.contains("write giraffe") && shown.contains("write zebra")
    });
    screen.press("enter");
    screen.wait_until("it is written again", |shown| {
        shown.contains("earlier point") && shown.matches("› write giraffe").count() == 2
    });
    assert_eq!(workspace.read("a.txt"), "first\n");
    screen.press("backspace");
    say(&mut screen, " nothing");
    screen.wait_for("Three.");
    let last = sim.outlines().pop().unwrap_or_default();
    assert!(
        last.contains("write giraff nothing") && last.contains("write zebra"),
        "{last}"
    );
    assert!(!last.contains("giraffe") && !last.contains("Two."), "{last}");
    sim.assert_valid();
    leave(&mut screen);
}

/// UI-2, SAFE-5, SAFE-11, GOAL-6: shift+tab cycles through the modes and says what each means; in plan mode a change
/// is refused, and the user who wants to go ahead gets it in mode auto at once.
#[test]
fn shift_tab_changes_the_mode() {
    let write = || Reply::call("write_file", json!({ "path": "a.txt", "content": "x" }));
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [write(), Reply::text("Planned."), write(), Reply::text("Written.")],
    );
    let mut screen = open(&workspace, &[]);
    screen.wait_for("· auto");
    screen.press("shift-tab");
    screen.wait_for("plan: only reads run");
    say(&mut screen, "write it");
    screen.wait_for("Planned.");
    screen.wait_for("Go ahead?");
    assert!(!workspace.has("a.txt"));
    assert!(sim.outlines()[1].contains("error"), "{:?}", sim.outlines());
    press_until(&mut screen, "1", |shown| !shown.contains("Press a number"));
    screen.wait_for("› Go ahead.");
    screen.wait_for("Written.");
    screen.wait_for("· auto");
    assert!(workspace.has("a.txt"));
    leave(&mut screen);
}

/// SES-3: messages that are queued when the user quits stay queued. Viewing the session does not send them;
/// the next prompt does, and is answered after them.
#[test]
fn what_was_left_in_the_queue_is_asked_first() {
    let replies = [until_go(), Reply::text("Rested."), Reply::text("New.")];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "work");
    wait_for_file(&workspace, "up");
    screen.type_keys("then rest");
    screen.press("tab");
    screen.wait_for("queued  then rest");
    // A turn runs, so it takes two presses.
    screen.press("ctrl-d");
    screen.wait_for("again");
    screen.press("ctrl-d");
    assert_eq!(screen.wait_exit(), Some(0), "{}", screen.scrollback());
    let listed = workspace.run(&["checkpoint", "list"]).output();
    listed.assert_code(0);
    assert_eq!(sim.count(), 1, "{:?}", sim.outlines());
    let answered = workspace.run(&["exec", "--continue", "something new"]).output();
    assert_eq!(answered.assert_code(0).stdout.trim(), "New.", "{answered}");
    assert!(last_said(&sim, 1).ends_with("then rest"), "{:?}", sim.outlines());
    assert!(
        last_said(&sim, 2).ends_with("something new"),
        "{:?}",
        sim.outlines()
    );
    sim.assert_valid();
}
