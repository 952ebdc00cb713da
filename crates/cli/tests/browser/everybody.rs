//! For everybody: keyboard, screen readers, contrast, phones.

use serde_json::{Value, json};
use windlass_sim::Reply;
use windlass_testkit::{Browser, key};

use super::site::{Site, assert_no_errors, say, wait_asked};

/// Returns the findings of axe-core, one line each.
fn findings(browser: &Browser) -> Vec<String> {
    let path = std::env::var("WINDLASS_AXE")
        .expect("WINDLASS_AXE names axe.min.js; `cargo xtask test --only browser` sets it");
    let axe = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    if browser.run("return typeof axe") == "undefined" {
        browser.cdp("Runtime.evaluate", json!({ "expression": axe }));
    }
    let found = browser.run_async(
        "const done = arguments[0]; axe.run(document, { resultTypes: ['violations'] }).then((result) => done(result.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.failureSummary}`))), (error) => done([String(error)]))",
    );
    let lines = found.as_array().cloned().unwrap_or_default();
    lines
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn set_scheme(browser: &Browser, scheme: &str) {
    // Without transitions, or colours would be measured halfway between two themes.
    let feature = |name: &str, value: &str| json!({ "name": name, "value": value });
    let features = [
        feature("prefers-color-scheme", scheme),
        feature("prefers-reduced-motion", "reduce"),
    ];
    let features = json!({ "features": features });
    browser.cdp("Emulation.setEmulatedMedia", features);
}

/// WEB-5: axe-core finds nothing, in both themes, with calls, a failed command, an answer, a request and
/// its rule, an empty session, the panel, the overview, the settings and the search.
#[test]
fn axe_finds_nothing() {
    let site = Site::start_with(
        [
            Reply::call("read_file", json!({ "path": "notes.txt" }))
                .thinking("hm")
                .say("I look first."),
            Reply::call(
                "todo",
                json!({ "items": [{ "text": "look", "status": "completed" }, { "text": "change", "status": "completed" }] }),
            ),
            Reply::call("bash", json!({ "command": "echo hello; false" })),
            Reply::text(
                "# Done\n\nSee `x` and [this](https://example.invalid).\n\n```rust\nfn main() { let x = \"y\"; } // end\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
            ),
            Reply::call("bash", json!({ "command": "touch made" })),
            Reply::text("done").forever(),
        ],
        |workspace| drop(workspace.write("notes.txt", "first\n")),
    );
    let browser = site.converse();
    browser.wait_for("What should I do?");
    let mut all = Vec::new();
    let mut check = |name: &str| {
        for scheme in ["light", "dark"] {
            set_scheme(&browser, scheme);
            all.extend(
                findings(&browser)
                    .into_iter()
                    .map(|line| format!("{name}, {scheme}: {line}")),
            );
        }
    };
    check("empty session");
    say(&browser, "look");
    browser.wait_until("the turn is over", "document.querySelector('.item.end.final')");
    say(&browser, "make it");
    wait_asked(&browser);
    check("session");
    browser.run("[...document.querySelectorAll('.ask .answers button')].find((one) => one.textContent.startsWith('Always')).click()");
    browser.wait_until("its rule is shown", "document.querySelector('.lasting input')");
    check("rule");
    browser.run("document.querySelector('.gauge').click()");
    browser.wait_until("the panel is open", "!document.querySelector('.panel').hidden");
    check("context");
    browser.run("document.getElementById('tab-cost').click()");
    browser.wait_until("the cost is shown", "document.querySelector('.panel .context')");
    check("cost");
    browser.run("document.querySelector('.panel [aria-label=\"Close the panel\"]').click()");
    browser.chord(key::CONTROL, "k");
    browser.wait_until("the search is open", "document.querySelector('dialog[open]')");
    check("search");
    browser.press(key::ESCAPE);
    browser.run("document.querySelector('[aria-label=Settings]').click()");
    browser.wait_until(
        "the settings are open",
        "document.querySelector('dialog[open] fieldset')",
    );
    check("settings");
    browser.press(key::ESCAPE);
    browser.run("location.hash = '#/fleet'");
    browser.wait_until("the overview is shown", "document.querySelector('.fleet .tile')");
    check("overview");
    browser.run("location.hash = '#/'");
    browser.wait_until("the start is shown", "document.querySelector('.welcome .hello')");
    check("start");
    assert_eq!(all, Vec::<String>::new());
    assert_no_errors(&browser);
}

/// WEB-5: everything can be done by keyboard alone: start a session, write, answer a request, open and close the
/// changes, find a session.
#[test]
fn the_keyboard_is_enough() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch typed" })),
        Reply::text("done by keys"),
    ]);
    let browser = site.visit(1280, 860);
    browser.chord(key::ALT, "n");
    browser.wait_until(
        "the field has the focus",
        "document.activeElement?.matches('.composer textarea')",
    );
    browser.press("make it");
    browser.press(key::ENTER);
    wait_asked(&browser);
    for _ in 0..40 {
        if browser.run("return document.activeElement?.textContent.startsWith('Yes, once')") == true {
            break;
        }
        browser.chord(key::SHIFT, key::TAB);
    }
    browser.press(key::ENTER);
    browser.wait_for("done by keys");
    assert!(site.workspace.has("typed"));
    browser.chord(key::CONTROL, "b");
    browser.wait_until("the panel is open", "!document.querySelector('.panel').hidden");
    browser.chord(key::CONTROL, "b");
    browser.wait_until("the panel is closed", "document.querySelector('.panel').hidden");
    browser.chord(key::CONTROL, "k");
    browser.wait_until(
        "the search has the focus",
        "document.activeElement?.matches('dialog input')",
    );
    browser.press("overview");
    browser.wait_until(
        "it is found",
        "document.querySelector('.palette-list [aria-selected=true]')?.textContent.includes('Overview')",
    );
    browser.press(key::ENTER);
    browser.wait_until("it is shown", "location.hash === '#/fleet'");
    let stops = browser.run("return [...document.querySelectorAll('button, a[href], input, textarea')].filter((one) => one.checkVisibility() && !one.textContent.trim() && !one.getAttribute('aria-label') && !one.labels?.length).length");
    assert_eq!(stops, 0, "every control has a name");
}

/// WEB-5: streaming text is not announced; the finished answer is, once, and messages are headings.
#[test]
fn a_screen_reader_hears_the_end_once() {
    let site = Site::start([Reply::text("a complete answer").delta_chars(1)]);
    let browser = site.converse();
    browser.run("window.heard = []; new MutationObserver(() => { const text = document.getElementById('announcer').textContent; if (text) window.heard.push(text) }).observe(document.getElementById('announcer'), { childList: true, characterData: true, subtree: true })");
    say(&browser, "go");
    browser.wait_until(
        "the end is announced",
        "window.heard.some((text) => text.includes('a complete answer'))",
    );
    let heard = browser.run("return window.heard.filter((text) => text.includes('answer'))");
    assert_eq!(heard, json!(["Finished. a complete answer"]));
    assert_eq!(
        browser.run("return document.querySelector('.log').getAttribute('aria-live')"),
        "off"
    );
    assert_eq!(
        browser.run("return [...document.querySelectorAll('.log h2')].map((one) => one.textContent)"),
        json!(["You", "Windlass"])
    );
}

/// WEB-5: on a phone nothing is wider than the screen, controls are large enough to hit, and the list and the session
/// are two pages with a working Back.
#[test]
fn a_phone_shows_one_thing_at_a_time() {
    let site = Site::start([
        Reply::call("bash", json!({ "command": "touch phone" })),
        Reply::text("done"),
    ]);
    let browser = site.visit(390, 844);
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
    browser.cdp("Emulation.setDeviceMetricsOverride", phone);
    browser.cdp("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }));
    browser.click("button.new");
    browser.wait_until("the session is shown alone", "document.querySelector('.composer')?.checkVisibility() && !document.querySelector('.sidebar').checkVisibility()");
    browser.click(".composer textarea");
    browser.press("make it");
    browser.click(".composer .send");
    wait_asked(&browser);
    assert_eq!(browser.run("return document.documentElement.scrollWidth <= 390 && [...document.querySelectorAll('.ask, .composer, .head')].every((one) => one.getBoundingClientRect().right <= 391)"), true);
    let small = browser.run("return [...document.querySelectorAll('.ask button, .composer button, .head .icon-button')].filter((one) => one.checkVisibility()).map((one) => [one.textContent || one.getAttribute('aria-label'), one.getBoundingClientRect().height]).filter(([, height]) => height < 44)");
    assert_eq!(small, json!([]));
    browser.click(".ask button.primary");
    browser.wait_for("done");
    browser.run("history.back()");
    browser.wait_until(
        "the list is back",
        "document.querySelector('.sidebar').checkVisibility()",
    );
}
