//! Conversations: streaming, approvals, diffs, undo, queue, commands.

use serde_json::json;
use windlass_sim::{Fault, Reply, When};
use windlass_testkit::{Browser, key};

use super::site::{Site, assert_no_errors, new_session, say, wait_asked};

/// WEB-1, UI-4: a link signs in once; a message streams an answer with formatted Markdown, and the session appears
/// in the list with its title.
#[test]
fn a_conversation_from_the_link_to_the_answer() {
    let answer =
        "## Findings\n\n- **one** thing\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    let site = Site::start([Reply::text(answer).delta_chars(7).forever()]);
    let link = site.link();
    let browser = Browser::start(1280, 860);
    browser.open(&link);
    browser.wait_until("the page is there", "document.querySelector('.sidebar')");
    assert_eq!(
        browser.run("return location.hash"),
        "",
        "the secret leaves the address"
    );
    new_session(&browser);
    say(&browser, "look around");
    browser.wait_until(
        "the answer is complete",
        "document.querySelector('.item.end.final')",
    );
    assert_eq!(
        browser.run("return document.querySelector('.prose h3').textContent"),
        "Findings"
    );
    assert_eq!(
        browser.run("return document.querySelector('.prose pre .hl-word').textContent"),
        "fn"
    );
    assert_eq!(
        browser.run("return document.querySelectorAll('.prose td').length"),
        2
    );
    assert_eq!(
        browser.run("return document.querySelector('.user .words').textContent"),
        "look around"
    );
    browser.wait_until(
        "the list has it",
        "document.querySelector('.session[aria-current]')",
    );
    assert_no_errors(&browser);

    let other = Browser::start(800, 600);
    other.open(&link);
    other.wait_for("was used already");
    other.wait_for("windlass token link");
}

/// WEB-1, WEB-4: a call that needs approval waits on a card with the whole command; a letter answers it, the card
/// goes, and the output is shown.
#[test]
fn an_approval_is_answered_by_a_letter() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch made && echo it-was-made" })),
        Reply::text("done"),
    ]);
    let browser = site.converse();
    say(&browser, "make it");
    wait_asked(&browser);
    assert!(browser.text().contains("touch made && echo it-was-made"));
    browser.wait_until("the title asks for attention", "document.title.startsWith('(1)')");
    // Letters in the composer are text, and answer nothing.
    browser.press("y");
    assert!(!site.workspace.has("made"));
    browser.run("document.querySelector('.composer textarea').value = ''; document.querySelector('.scroller').focus()");
    browser.press("y");
    browser.wait_until("the answer is there", "document.querySelector('.item.end.final')");
    assert!(site.workspace.has("made"));
    assert!(!browser.text().contains("Run this command?"));
    browser.click(".call-head");
    browser.wait_for("it-was-made");
    assert_no_errors(&browser);
}

/// WEB-1: a refusal with a note tells the model what to do instead.
#[test]
fn a_refusal_carries_a_note() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch made" })),
        Reply::text("heard: {{last_result}}"),
    ]);
    let browser = site.converse();
    say(&browser, "make it");
    wait_asked(&browser);
    browser.run("document.querySelector('.scroller').focus()");
    browser.press("t");
    browser.wait_until(
        "the note can be written",
        "document.activeElement.placeholder?.includes('instead')",
    );
    browser.press("use the other folder");
    browser.press(key::ENTER);
    browser.wait_until("the turn went on", "document.querySelector('.item.end.final')");
    browser.wait_for("use the other folder");
    assert!(!site.workspace.has("made"));
}

/// WEB-1: an edit shows its diff in its card and per turn, and undo puts the file back.
#[test]
fn an_edit_is_shown_and_undone() {
    let edit = json!({ "path": "notes.txt", "old_string": "old words", "new_string": "new words" });
    let site = Site::start_with(
        [
            Reply::call("read_file", json!({ "path": "notes.txt" })),
            Reply::call("edit_file", edit),
            Reply::text("edited"),
        ],
        |workspace| drop(workspace.write("notes.txt", "first\nold words\nlast\n")),
    );
    let browser = site.converse();
    say(&browser, "/mode edits");
    browser.wait_until(
        "the mode is shown",
        "document.querySelector('.mode')?.textContent === 'edits'",
    );
    say(&browser, "change the notes");
    browser.wait_until("the turn is over", "document.querySelector('.item.end.final')");
    assert_eq!(site.workspace.read("notes.txt"), "first\nnew words\nlast\n");
    assert_eq!(
        browser.run("return document.querySelector('.call .line.added code').textContent"),
        "new words"
    );
    assert_eq!(
        browser.run("return document.querySelector('.call .line.removed mark').textContent"),
        "old"
    );
    browser.wait_for("1 file changed");
    browser.click(".turn-changes button");
    browser.wait_until(
        "the panel shows it",
        "document.querySelector('.panel .line.added')",
    );
    browser.run("[...document.querySelectorAll('.panel button')].find((one) => one.textContent.includes('Undo')).click()");
    browser.click("dialog .danger");
    browser.wait_until(
        "it is marked",
        "document.querySelector('.panel')?.textContent.includes('undone')",
    );
    assert_eq!(site.workspace.read("notes.txt"), "first\nold words\nlast\n");
    assert_no_errors(&browser);
}

/// WEB-1: messages sent while a turn runs wait in a list, where they can be edited and removed; Stop ends the turn.
#[test]
fn the_queue_can_be_changed_and_the_turn_stopped() {
    let slow = || Reply::text("slow").fault(Fault::new().stall_after_events(2));
    let site = Site::start([
        slow().when(When::new().user_contains("start")),
        Reply::text("next").forever(),
    ]);
    let browser = site.converse();
    say(&browser, "start");
    browser.wait_until("it works", "!document.querySelector('.composer .stop').hidden");
    say(&browser, "second thing");
    browser.wait_until("it waits", "document.querySelectorAll('.queue li').length === 1");
    say(&browser, "third thing");
    browser.wait_until("two wait", "document.querySelectorAll('.queue li').length === 2");
    browser.click(".queue li:nth-child(2) [aria-label=Remove]");
    browser.wait_until(
        "one is removed",
        "document.querySelectorAll('.queue li').length === 1",
    );
    browser.click(".queue li [aria-label=Edit]");
    browser.wait_until(
        "it is back in the field",
        "document.querySelector('.composer textarea').value === 'second thing'",
    );
    browser.wait_until("nothing waits", "document.querySelector('.queue').hidden");
    browser.run("document.querySelector('.composer textarea').value = ''");
    browser.click(".composer .stop");
    browser.wait_until(
        "the turn was stopped",
        "document.querySelector('.item.end.canceled')",
    );
    browser.wait_until("it is idle", "document.querySelector('.composer .stop').hidden");
    say(&browser, "again");
    browser.wait_until("it answers", "document.querySelector('.item.end.final')");
    assert_no_errors(&browser);
}

/// WEB-1, CMD-2: commands run, and are completed as they are typed.
#[test]
fn commands_are_completed_and_run() {
    let site = Site::start([Reply::text("unused").forever()]);
    let browser = site.converse();
    browser.click(".composer textarea");
    browser.press("/stat");
    browser.wait_until(
        "a command is offered",
        "document.querySelector('.completions li')?.textContent.includes('/status')",
    );
    browser.press(key::TAB);
    browser.wait_until(
        "it is taken",
        "document.querySelector('.composer textarea').value === '/status '",
    );
    browser.press(key::ENTER);
    browser.wait_for("sim-1");
    assert_eq!(site.sim.count(), 0, "a command reaches no model");
    say(&browser, "/nonsense");
    browser.wait_until("the error is shown", "document.querySelector('.note.bad')");
    assert_no_errors(&browser);
}
