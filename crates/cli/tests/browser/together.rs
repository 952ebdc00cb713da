//! Several clients on one session.

use std::time::Duration;

use serde_json::json;
use windlass_sim::Reply;
use windlass_testkit::eventually;

use super::site::{Site, assert_no_errors, say, wait_asked};

/// WEB-2, SRV-4: two browsers see the same session; the first answer to a request counts, and the card goes
/// everywhere.
#[test]
fn two_browsers_see_the_same() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch together" })),
        Reply::text("seen by both"),
    ]);
    let first = site.converse();
    let address = first.run("return location.hash");
    let second = site.visit(390, 844);
    second.run(&format!("location.hash = {address}"));
    second.wait_until(
        "it is open",
        "document.querySelector('.session-title')?.textContent",
    );
    say(&first, "make it");
    for browser in [&first, &second] {
        wait_asked(browser);
    }
    second.click(".ask button.primary");
    for browser in [&first, &second] {
        browser.wait_for("seen by both");
        browser.wait_until("the card is gone", "!document.querySelector('.ask')");
        assert_no_errors(browser);
    }
    assert!(site.workspace.has("together"));
}

/// WEB-2, SRV-4: a terminal and two browsers on one session see the same; the terminal answers a request and writes,
/// a browser writes, and when the terminal leaves, the turn goes on.
#[test]
fn a_terminal_beside_two_browsers() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch together" })),
        Reply::text("seen by all three"),
        Reply::text("to the terminal"),
        Reply::text("goes on alone").delta_chars(2),
    ]);
    let first = site.converse();
    let address = first.run("return location.hash");
    let second = site.visit(390, 844);
    second.run(&format!("location.hash = {address}"));
    second.wait_until(
        "it is open",
        "document.querySelector('.session-title')?.textContent",
    );
    let session = address.as_str().unwrap().trim_start_matches("#/s/").to_owned();
    let attach = ["attach", &site.url, "--session", &session];
    let mut terminal = site.workspace.run(&attach).on_screen(100, 30);
    terminal.wait_until("it is ready", |screen| screen.contains("sim-1"));
    say(&first, "make it");
    terminal.wait_for("Yes, once");
    for browser in [&first, &second] {
        wait_asked(browser);
    }
    // A request that was just shown ignores answers, so that nobody approves by accident.
    let is_answered = (0..30).any(|_| {
        terminal.press("y");
        eventually(Duration::from_secs(2), || {
            !terminal.contents().contains("Yes, once")
        })
    });
    assert!(is_answered, "{}", terminal.contents());
    terminal.wait_for("seen by all three");
    for browser in [&first, &second] {
        browser.wait_for("seen by all three");
        browser.wait_until("the card is gone", "!document.querySelector('.ask')");
    }
    assert!(site.workspace.has("together"));
    terminal.type_keys("from the terminal");
    terminal.press("enter");
    for browser in [&first, &second] {
        browser.wait_for("from the terminal");
        browser.wait_for("to the terminal");
    }
    say(&second, "go on");
    terminal.wait_for("go on");
    terminal.hang_up();
    for browser in [&first, &second] {
        browser.wait_for("goes on alone");
        assert_no_errors(browser);
    }
}

/// WEB-6: a link to a request opens the session that asks, and needs no more than the call's id.
#[test]
fn a_link_opens_the_request() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch linked" })).id("toolu_link"),
        Reply::text("done"),
    ]);
    let browser = site.converse();
    say(&browser, "make it");
    wait_asked(&browser);
    let call = browser.run("return document.querySelector('.ask').dataset.call");
    let phone = site.visit(390, 844);
    phone.open(&format!("{}/approve/{}", site.url, call.as_str().unwrap()));
    phone.wait_for("touch linked");
    wait_asked(&phone);
    phone.click(".ask button.primary");
    browser.wait_until("it is done", "document.querySelector('.item.end.final')");
    phone.open(&format!("{}/approve/{}", site.url, call.as_str().unwrap()));
    phone.wait_for("already answered");
}
