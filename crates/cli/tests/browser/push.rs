//! Web push: the switch, the messages, and where they lead.

use serde_json::json;
use windlass_sim::Reply;
use windlass_testkit::{Browser, eventually};

use super::site::{Site, assert_no_errors, say, wait_asked};

fn allow_notifications(browser: &Browser, site: &Site) {
    let permission = json!({ "permissions": ["notifications"], "origin": site.url });
    browser.cdp("Browser.grantPermissions", permission);
}

/// WEB-6: the switch asks for the server's key, subscribes with it, gives the subscription to the server, and takes
/// it back.
#[test]
fn push_is_switched_on_and_off() {
    let site = Site::start([Reply::text("unused").forever()]);
    let browser = site.visit(1280, 860);
    allow_notifications(&browser, &site);
    // The push service of the browser's maker is not reachable from a test.
    browser.run(
        "window.asked = []; let known = null; \
         PushManager.prototype.getSubscription = async () => known; \
         PushManager.prototype.subscribe = async (options) => known = { endpoint: 'https://push.invalid/1', toJSON: () => ({ endpoint: 'https://push.invalid/1', keys: { p256dh: 'p', auth: 'a' }, key: options.applicationServerKey }), unsubscribe: async () => { known = null; return true; } }; \
         const fetched = window.fetch; window.fetch = (url, options) => String(url).includes('api/push/') ? (window.asked.push([options.method, String(url), options.body ?? '']), Promise.resolve(Response.json({ key: 'BKey' }))) : fetched(url, options)",
    );
    browser.run("document.querySelector('[aria-label=Settings]').click()");
    browser.wait_until(
        "the switch can be used",
        "(() => { const label = [...document.querySelectorAll('dialog label')].find((one) => one.textContent.includes('when this page is closed')); window.push = label?.querySelector('input'); return window.push && !window.push.disabled && !window.push.checked })()",
    );
    browser.run("window.push.click()");
    browser.wait_until("it is on", "window.asked.length === 2 && !window.push.disabled");
    let asked = browser.run("return window.asked");
    assert_eq!(
        (&asked[0][0], &asked[0][1]),
        (&json!("GET"), &json!("api/push/key"))
    );
    assert_eq!(
        (&asked[1][0], &asked[1][1]),
        (&json!("PUT"), &json!("api/push/subscriptions"))
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(asked[1][2].as_str().unwrap()).unwrap(),
        json!({ "endpoint": "https://push.invalid/1", "keys": { "p256dh": "p", "auth": "a" }, "key": "BKey" })
    );
    browser.run("window.push.click()");
    browser.wait_until("it is off", "window.asked.length === 3 && !window.push.checked");
    let asked = browser.run("return window.asked[2]");
    assert_eq!(asked[0], "DELETE");
    assert!(asked[2].as_str().unwrap().contains("push.invalid"), "{asked}");
    assert_no_errors(&browser);
}

/// WEB-6: a push message becomes a notification while nobody looks at the page, unless its kind is switched off;
/// opening it leads to the request.
#[test]
fn a_push_message_becomes_a_notification() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch pushed" })).id("toolu_push"),
        Reply::text("done"),
    ]);
    let browser = site.converse();
    allow_notifications(&browser, &site);
    say(&browser, "make it");
    wait_asked(&browser);
    let call = browser.run("return document.querySelector('.ask').dataset.call");
    let address = browser.run("return location.href");
    browser.run_async("navigator.serviceWorker.ready.then(() => arguments[0]())");
    browser.run("localStorage.setItem('windlass.notify', '{}')");
    browser.run_async("const done = arguments[0]; caches.open('windlass').then((cache) => cache.put('settings', new Response('{\"finished\":false}'))).then(() => done())");
    // Nobody looks at it.
    browser.open("about:blank");
    browser.cdp("ServiceWorker.enable", json!({}));
    for message in [
        json!({ "kind": "finished", "session": "s" }),
        json!({ "kind": "asks", "session": "s", "call": call }),
    ] {
        // The first registration of a new profile has the number 0.
        browser.cdp(
            "ServiceWorker.deliverPushMessage",
            json!({ "origin": site.url, "registrationId": "0", "data": message.to_string() }),
        );
    }
    browser.open(address.as_str().unwrap());
    wait_asked(&browser);
    let mut shown = json!([]);
    let is_there = eventually(windlass_testkit::PATIENCE, || {
        shown = browser.run_async("const done = arguments[0]; navigator.serviceWorker.ready.then((worker) => worker.getNotifications()).then((all) => done(all.map((one) => [one.title, one.body, one.data.hash])))");
        shown.as_array().is_some_and(|shown| !shown.is_empty())
    });
    let hash = format!("#/approve/{}", call.as_str().unwrap());
    assert_eq!(
        (is_there, &shown),
        (true, &json!([["Windlass", "Needs your answer", hash]]))
    );
    // The worker tells an open page where to go.
    browser.run("location.hash = '#/'");
    browser.wait_until("it left", "!document.querySelector('.ask')");
    browser.run(&format!(
        "navigator.serviceWorker.dispatchEvent(new MessageEvent('message', {{ data: {{ hash: '{hash}' }} }}))"
    ));
    wait_asked(&browser);
    assert_no_errors(&browser);
}
