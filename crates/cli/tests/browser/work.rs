//! Working in a session: search, changes of the whole session, rules, settings, images.

use serde_json::json;
use windlass_sim::Reply;
use windlass_testkit::{Browser, key};

use super::site::{Site, assert_no_errors, say, wait_asked};

/// An image of one red pixel.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// Waits until this many turns are over.
#[track_caller]
fn wait_ends(browser: &Browser, count: usize) {
    browser.wait_until(
        "the turns are over",
        &format!("document.querySelectorAll('.item.end').length === {count}"),
    );
}

/// Switches to a permission mode.
#[track_caller]
fn set_mode(browser: &Browser, mode: &str) {
    say(browser, &format!("/mode {mode}"));
    browser.wait_until(
        "the mode is shown",
        &format!("document.querySelector('.mode')?.textContent === '{mode}'"),
    );
}

/// WEB-1: Ctrl+K also finds what was said and done in the open session, and jumps there.
#[test]
fn a_session_is_searched() {
    let site = Site::start_with(
        [
            Reply::call("read_file", json!({ "path": "notes.txt" })),
            Reply::text("the first answer"),
            Reply::text("later words").forever(),
        ],
        |workspace| drop(workspace.write("notes.txt", "a Needle in the file\n")),
    );
    let browser = site.converse();
    say(&browser, "read it");
    wait_ends(&browser, 1);
    say(&browser, "go on");
    wait_ends(&browser, 2);
    browser.chord(key::CONTROL, "k");
    browser.wait_until(
        "the search is open",
        "document.activeElement?.matches('dialog input')",
    );
    browser.press("needle");
    browser.wait_until(
        "it is found",
        "document.querySelector('.palette-list [aria-selected=true]')?.textContent.includes('Needle in the file')",
    );
    browser.press(key::ENTER);
    browser.wait_until(
        "the call is shown",
        "document.querySelector('.item.call.found')?.textContent.includes('notes.txt')",
    );
    assert_eq!(
        browser.run("return /\\/m\\/\\d+$/.test(location.hash)"),
        true,
        "the place has an address"
    );
    browser.run("location.reload()");
    browser.wait_until(
        "the address leads there",
        "document.querySelector('.item.call.found')?.textContent.includes('notes.txt')",
    );
    assert_no_errors(&browser);
}

/// WEB-1: the changes of the whole session are one diff per file, without what was only in between.
#[test]
fn the_changes_of_the_whole_session() {
    let edit = |old: &str, new: &str| {
        Reply::call(
            "edit_file",
            json!({ "path": "notes.txt", "old_string": old, "new_string": new }),
        )
    };
    let site = Site::start_with(
        [
            Reply::call("read_file", json!({ "path": "notes.txt" })),
            edit("one", "two"),
            Reply::text("edited once"),
            edit("two", "three"),
            Reply::text("edited twice"),
        ],
        |workspace| drop(workspace.write("notes.txt", "head\none\ntail\n")),
    );
    let browser = site.converse();
    set_mode(&browser, "edits");
    say(&browser, "change it");
    wait_ends(&browser, 1);
    say(&browser, "change it again");
    wait_ends(&browser, 2);
    browser.chord(key::CONTROL, "b");
    browser.wait_for("The whole session");
    browser.run("document.querySelector('.panel .turn summary').click()");
    let lines = |kind: &str| {
        format!(
            "[...document.querySelector('.panel .turn').querySelectorAll('.line.{kind} code')].map((line) => line.textContent)"
        )
    };
    browser.wait_until("it is shown", &format!("{}.length", lines("added")));
    assert_eq!(
        browser.run(&format!("return {}", lines("added"))),
        json!(["three"])
    );
    assert_eq!(
        browser.run(&format!("return {}", lines("removed"))),
        json!(["one"])
    );
    assert_no_errors(&browser);
}

/// WEB-1, SAFE-6: the rule of a lasting approval can be edited before it is stored; one that does not match is
/// refused, and one that does allows other calls, too.
#[test]
fn the_rule_of_a_lasting_approval_is_edited() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch first" })),
        Reply::call("bash", json!({ "command": "touch second" })),
        Reply::text("both are there"),
    ]);
    let browser = site.converse();
    say(&browser, "make them");
    wait_asked(&browser);
    browser.run("document.querySelector('.scroller').focus()");
    browser.press("a");
    browser.wait_until(
        "the rule is shown",
        "document.querySelector('.lasting input')?.value === 'bash(touch first)'",
    );
    let write = |rule: &str| {
        browser.run(&format!(
            "document.querySelector('.lasting input').value = '{rule}'"
        ));
        browser.click(".lasting .primary");
    };
    write("bash(ls *)");
    browser.wait_for("no rule matches `touch first`");
    assert!(!site.workspace.has("first"));
    write("bash(touch *)");
    wait_ends(&browser, 1);
    browser.wait_for("both are there");
    assert!(site.workspace.has("second"), "it was not asked about");
    say(&browser, "/permissions");
    browser.wait_for("bash(touch *)");
    assert_no_errors(&browser);
}

/// WEB-1, CMD-2: model, reasoning and permissions of the open session are changed in the settings.
#[test]
fn settings_of_a_session_are_changed() {
    let site = Site::start([Reply::text("unused").forever()]);
    let browser = site.converse();
    browser.run("document.querySelector('[aria-label=Settings]').click()");
    browser.wait_until(
        "the settings are shown",
        "document.querySelectorAll('dialog .field select').length === 3",
    );
    assert_eq!(
        browser.run("return document.querySelector('dialog .field select').value"),
        "sim-1"
    );
    browser.run("const select = document.querySelectorAll('dialog .field select')[2]; select.value = 'edits'; select.dispatchEvent(new Event('change'))");
    browser.wait_until(
        "the mode is shown",
        "document.querySelector('.mode')?.textContent === 'edits'",
    );
    assert_no_errors(&browser);
}

/// WEB-1: an image that is pasted or dropped goes to the model and is shown in the conversation, also when the page
/// is loaded anew; other files are refused with a reason.
#[test]
fn an_image_is_pasted_and_shown() {
    let site = Site::start([Reply::text("I see a dot").forever()]);
    let browser = site.converse();
    let give = |event: &str, files: &str| {
        browser.run(&format!(
            "const bytes = Uint8Array.from(atob('{DOT}'), (letter) => letter.charCodeAt(0)); const data = new DataTransfer(); for (const file of [{files}]) data.items.add(file); document.querySelector('.composer textarea').dispatchEvent({event})"
        ));
    };
    let paste = "new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })";
    let drop = "new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })";
    give(paste, "new File([bytes], 'dot.png', { type: 'image/png' })");
    browser.wait_until(
        "it is a chip",
        "document.querySelector('.chip img')?.naturalWidth === 1",
    );
    give(
        drop,
        "new File([bytes], 'other.png', { type: 'image/png' }), new File(['x'], 'notes.pdf', { type: 'application/pdf' })",
    );
    browser.wait_until("both are", "document.querySelectorAll('.chip img').length === 2");
    browser.wait_for("notes.pdf is not an image");
    browser.click(".chip:nth-child(2) [aria-label=Remove]");
    browser.wait_until("one is left", "document.querySelectorAll('.chip').length === 1");
    say(&browser, "what is this?");
    wait_ends(&browser, 1);
    let seen = site.sim.requests();
    assert!(
        String::from_utf8_lossy(&seen[0].raw).contains(DOT),
        "the model got the image"
    );
    let shown = "document.querySelector('.items .user img')?.naturalWidth === 1";
    browser.wait_until("it is shown", shown);
    browser.run("location.reload()");
    browser.wait_until("it is shown again", shown);
    assert_no_errors(&browser);
}
