//! Long sessions stay light.

use serde_json::{Value, json};
use windlass_sim::Reply;
use windlass_testkit::key;

use super::site::{Site, assert_no_errors, say};

/// Entries of the session.
const ENTRIES: u64 = 10_000;

/// Makes the entries of many turns out of one: a message, a call and an answer each.
fn entries(session: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut add = |event: Value| {
        let seq = entries.len() as u64 + 1;
        let mut entry = json!({ "seq": seq, "time": 1_700_000_000_000_u64 + seq * 1_000 });
        if let (Some(entry), Value::Object(event)) = (entry.as_object_mut(), event) {
            entry.extend(event);
        }
        entries.push(entry);
    };
    for turn in 0..ENTRIES / 10 {
        let text = |text: String| json!([{ "type": "text", "data": { "text": text } }]);
        let call = format!("call-{turn}");
        let message = |role: &str, number: u64, parts: Value| {
            json!({ "type": "message", "message": {
                "id": format!("00000000-0000-4000-8000-{:012}", turn * 10 + number), "session_id": session, "role": role,
                "parts": parts, "created_at": 1_700_000_000_000_u64, "updated_at": 1_700_000_000_000_u64,
            } })
        };
        let asked = json!([{ "type": "tool_call", "data": { "id": call, "name": "bash", "input": "{\"command\":\"ls\"}", "finished": true } }]);
        let result = json!([{ "type": "tool_result", "data": { "call_id": call, "name": "bash", "content": "a file", "is_error": false } }]);
        add(message("user", 1, text(format!("question {turn}"))));
        add(json!({ "type": "start", "provider": "test", "model": "sim-1" }));
        add(message("assistant", 2, asked));
        add(json!({ "type": "step_start", "call_id": call, "title": "bash ls", "number": 1 }));
        add(json!({ "type": "tool_call", "call_id": call, "name": "bash", "args": { "command": "ls" } }));
        add(
            json!({ "type": "tool_result", "call_id": call, "name": "bash", "content": "a file", "is_error": false }),
        );
        add(json!({ "type": "step_complete", "call_id": call, "status": "completed", "duration_ms": 5 }));
        add(message("tool", 3, result));
        add(message(
            "assistant",
            4,
            text(format!("answer {turn} with **some** `words`")),
        ));
        add(
            json!({ "type": "final", "content": format!("answer {turn} with **some** `words`"), "finish": "end_turn" }),
        );
    }
    entries
}

/// WEB-4: a session of 10,000 entries opens at its end with a small document, streams without touching the rest, stays
/// where the reader is, and reaches its beginning page by page; the tab needs less than 150 MB.
#[test]
fn ten_thousand_entries_stay_light() {
    let long = "word ".repeat(2_000);
    let site = Site::start([Reply::text("short"), Reply::text(&long).delta_chars(40)]);
    // A session of this version, made long.
    site.workspace.run(&["exec", "hello"]).output().assert_code(0);
    let exported = site
        .workspace
        .run(&["exec", "--continue", "/session export json"])
        .output();
    let mut export: Value = serde_json::from_str(&exported.stdout).unwrap();
    let id = export["session"]["id"].as_str().unwrap().to_owned();
    export["entries"] = Value::Array(entries(&id));
    site.workspace.write("long.json", &export.to_string());
    let imported = site.workspace.run(&["sessions", "import", "long.json"]).output();
    imported.assert_code(0);
    let id = imported.stdout.split_whitespace().last().unwrap().to_owned();

    let browser = site.visit(1280, 860);
    browser.run(&format!("location.hash = '#/s/{id}'"));
    browser.wait_for("answer 999");
    let count = "return document.querySelectorAll('.item').length";
    assert!(
        browser.run(count).as_u64().unwrap() <= 250,
        "the document has only a window of it"
    );
    assert_eq!(browser.run("const box = document.querySelector('.scroller'); return box.scrollHeight - box.scrollTop - box.clientHeight < 80"), true);

    // What is being read stays where it is while earlier pages arrive.
    for _ in 0..3 {
        let before = browser.run("document.querySelector('.scroller').scrollTop = 300; const first = document.querySelector('.items').firstElementChild; window.first = first; return first.getBoundingClientRect().top");
        browser.wait_until("earlier items arrive", "window.first.previousElementSibling");
        let after = browser.run("return window.first.getBoundingClientRect().top");
        let moved = (before.as_f64().unwrap() - after.as_f64().unwrap()).abs();
        assert!(moved < 400.0, "it moved by {moved} pixels");
    }

    // A link to the first message leads there.
    browser.run(&format!("location.hash = '#/s/{id}/m/1'"));
    browser.wait_until(
        "the first message is shown",
        "document.querySelector('.item.found')?.textContent.includes('question 0')",
    );
    assert!(
        browser.run(count).as_u64().unwrap() <= 250,
        "only what is around it is in the document"
    );
    // Reading on from there adds what follows.
    browser.run("window.end = document.querySelector('.items').lastElementChild; document.querySelector('.scroller').scrollTop = 1e9");
    browser.wait_until("later items arrive", "window.end.nextElementSibling");

    // A piece of an answer touches nothing but the end of the conversation.
    browser.run("document.querySelector('.below')?.click()");
    browser.wait_until("it follows the end again", "(() => { const box = document.querySelector('.scroller'); return box.scrollHeight - box.scrollTop - box.clientHeight < 80 })()");
    browser.run("window.touched = 0; window.pieces = 0; const old = new Set(document.querySelector('.items').children); new MutationObserver((list) => { window.pieces += 1; window.touched += list.filter(({ target }) => [...old].some((one) => one.contains(target))).length; }).observe(document.querySelector('.items'), { childList: true, characterData: true, subtree: true })");
    say(&browser, "go on");
    browser.wait_until("the answer is complete", "document.querySelector('.items .item:last-child')?.matches('.end.final') && document.querySelector('.items').textContent.includes('go on')");
    assert_eq!(
        browser.run("return [window.touched, window.pieces > 2]"),
        json!([0, true]),
        "earlier items are left alone while an answer is written"
    );
    // Everything was on the screen once; what is still needed counts, not what the browser has yet to collect.
    browser.cdp("HeapProfiler.collectGarbage", json!({}));
    let memory = browser.memory();
    assert!(memory < 150 << 20, "the tab has {} MB", memory >> 20);

    // A reader who scrolled up is not moved by new text.
    browser.run("document.querySelector('.scroller').scrollTop -= 2000");
    browser.wait_until("it offers the end", "!document.querySelector('.below').hidden");
    let place = browser.run("return document.querySelector('.scroller').scrollTop");
    browser.click(".composer textarea");
    browser.press("/status");
    browser.press(key::ENTER);
    browser.wait_until(
        "the answer is below",
        "document.querySelector('.items').textContent.includes('sim-1')",
    );
    assert_eq!(
        browser.run("return document.querySelector('.scroller').scrollTop"),
        place
    );
    assert_no_errors(&browser);
}
