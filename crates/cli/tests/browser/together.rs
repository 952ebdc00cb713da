//! Several clients on one session.

use serde_json::json;
use windlass_sim::Reply;

use super::site::{Site, assert_no_errors, say};

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
        browser.wait_for("Run this command?");
    }
    second.click(".ask button.primary");
    for browser in [&first, &second] {
        browser.wait_for("seen by both");
        browser.wait_until("the card is gone", "!document.querySelector('.ask')");
        assert_no_errors(browser);
    }
    assert!(site.workspace.has("together"));
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
    browser.wait_for("Run this command?");
    let call = browser.run("return document.querySelector('.ask').dataset.call");
    let phone = site.visit(390, 844);
    phone.open(&format!("{}/approve/{}", site.url, call.as_str().unwrap()));
    phone.wait_for("touch linked");
    phone.click(".ask button.primary");
    browser.wait_until("it is done", "document.querySelector('.item.end.final')");
    phone.open(&format!("{}/approve/{}", site.url, call.as_str().unwrap()));
    phone.wait_for("already answered");
}
