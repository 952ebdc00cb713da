//! Lost links: no network, a frozen tab, a killed server.

use serde_json::json;
use windlass_sim::{Fault, Reply, When};

use super::site::{Site, assert_no_errors, say, set_offline, wait_asked};

/// WEB-2: without a network the page says since when, keeps what is sent, and sends it once when the network is
/// back; nothing is reloaded.
#[test]
fn a_lost_network_loses_nothing() {
    let site = Site::start([Reply::text("one").delta_chars(1), Reply::text("two")]);
    let browser = site.converse();
    say(&browser, "first");
    browser.wait_until(
        "it answers",
        "document.querySelectorAll('.item.end.final').length === 1",
    );
    browser.run("window.isSame = true");
    set_offline(&browser, true);
    browser.wait_for("Reconnecting since");
    let first = browser.run("return document.querySelector('.banner .elapsed').textContent");
    browser.wait_until(
        "the time goes on",
        &format!("document.querySelector('.banner .elapsed').textContent !== {first}"),
    );
    say(&browser, "second");
    browser.wait_for("sent automatically");
    assert_eq!(site.sim.count(), 1);
    set_offline(&browser, false);
    browser.wait_until(
        "it is answered",
        "document.querySelectorAll('.item.end.final').length === 2",
    );
    browser.wait_until("the banner is gone", "document.querySelector('.banner').hidden");
    assert_eq!(
        browser.run("return document.querySelectorAll('.item.user').length"),
        2
    );
    assert_eq!(
        browser.run("return window.isSame"),
        true,
        "the page was not reloaded"
    );
    assert_eq!(site.sim.count(), 2);
}

/// WEB-2: a tab that was frozen during a turn shows all of it when it wakes up.
#[test]
fn a_frozen_tab_catches_up() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "echo working" })).fault(Fault::new().delay_ms(3_000)),
        Reply::text("finished while frozen"),
    ]);
    let browser = site.converse();
    say(&browser, "go");
    browser.wait_until("it works", "!document.querySelector('.composer .stop').hidden");
    browser.cdp("Page.setWebLifecycleState", json!({ "state": "frozen" }));
    let count = || site.sim.count() == 2;
    assert!(
        windlass_testkit::eventually(windlass_testkit::PATIENCE, count),
        "the turn goes on"
    );
    browser.cdp("Page.setWebLifecycleState", json!({ "state": "active" }));
    // The reader looks at it again: without this, a tab that was frozen stays hidden and draws nothing.
    browser.cdp("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
    browser.wait_for("finished while frozen");
    browser.wait_until(
        "nothing is missing",
        "document.querySelectorAll('.item.call').length === 1 && document.querySelector('.item.end.final')",
    );
    assert_no_errors(&browser);
}

/// WEB-2, SRV-2: a server that is killed in the middle of a turn and started again on its port gets its page back
/// by itself; the page shows what happened, and the next message works.
#[test]
fn a_killed_server_gets_its_page_back() {
    let mut site = Site::start([
        Reply::text("never finished")
            .delta_chars(2)
            .fault(Fault::new().stall_after_events(6))
            .when(When::new().user_contains("begin")),
        Reply::text("works again").forever(),
    ]);
    let browser = site.converse();
    say(&browser, "begin");
    browser.wait_for("never");
    browser.run("window.isSame = true");
    site.kill();
    browser.wait_for("Reconnecting since");
    say(&browser, "and then this");
    browser.wait_for("sent automatically");
    site.start_again();
    browser.wait_until(
        "the turn was interrupted",
        "document.querySelector('.item.end.failed')",
    );
    browser.wait_for("works again");
    browser.wait_until("the banner is gone", "document.querySelector('.banner').hidden");
    assert_eq!(
        browser.run("return document.querySelectorAll('.item.user').length"),
        2
    );
    assert_eq!(
        browser.run("return window.isSame"),
        true,
        "the page was not reloaded"
    );
}

/// WEB-2, SRV-2: a permission request survives the death of the server, and can be answered afterwards.
#[test]
fn a_request_survives_a_killed_server() {
    let mut site = Site::start([
        Reply::call("bash", json!({ "command": "touch survived" })),
        Reply::call("bash", json!({ "command": "touch survived" })),
        Reply::text("all done").forever(),
    ]);
    let browser = site.converse();
    say(&browser, "make it");
    wait_asked(&browser);
    site.kill();
    site.start_again();
    browser.wait_for("Windlass was stopped while it waited");
    wait_asked(&browser);
    assert!(!site.workspace.has("survived"));
    browser.run("document.querySelector('.ask button.primary').click()");
    browser.wait_until(
        "it went on",
        "document.querySelectorAll('.item.end').length > 1 || document.querySelector('.ask')",
    );
    browser.wait_until(
        "its card is gone",
        "!document.body.innerText.includes('Windlass was stopped while it waited')",
    );
}

/// WEB-2: a draft is kept per session, while another one is open and when the page is loaded anew.
#[test]
fn a_draft_is_kept() {
    let site = Site::start([Reply::text("unused").forever()]);
    let browser = site.converse();
    browser.click(".composer textarea");
    browser.press("half a thought");
    let address = browser.run("return location.hash");
    browser.click("button.new");
    let field = "document.querySelector('.composer textarea')";
    browser.wait_until(
        "another session is open",
        &format!("location.hash !== {address} && {field}.value === ''"),
    );
    browser.click(".composer textarea");
    browser.press("another one");
    browser.run(&format!("location.hash = {address}"));
    browser.wait_until("it is back", &format!("{field}.value === 'half a thought'"));
    browser.run("location.reload()");
    browser.wait_until(
        "it is still there",
        "document.querySelector('.composer textarea')?.value === 'half a thought'",
    );
}
