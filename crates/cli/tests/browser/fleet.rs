//! Agents, plans and the overview of all sessions.

use serde_json::json;
use windlass_sim::{Fault, Reply, When};

use super::site::{Site, assert_no_errors, new_session, say, wait_asked};

/// SUB-8, WEB-1: the agents of a session are a tree with state, cost and links; one that runs is stopped from the
/// page, and its own conversation opens.
#[test]
fn agents_are_shown_and_stopped() {
    let child = |reply: Reply| {
        reply.when(
            When::new()
                .user_contains("look for ever")
                .system_contains("started for one task"),
        )
    };
    let site = Site::start([
        child(
            Reply::call("list_directory", json!({ "path": "." }))
                .tokens(100, 10)
                .cached_tokens(0, 0),
        ),
        child(Reply::text("never").fault(Fault::new().stall_after_events(2))),
        Reply::call(
            "agent",
            json!({ "task": "look for ever", "type": "explorer", "name": "finder" }),
        ),
        Reply::text("it was stopped").forever(),
    ]);
    let browser = site.converse();
    say(&browser, "delegate it");
    browser.wait_until(
        "the call shows its agent",
        "document.querySelector('.call .lane')?.textContent.includes('finder')",
    );
    browser.run("document.querySelector('.head [aria-label=\"Tasks and plan\"]').click()");
    browser.run("document.getElementById('tab-agents').click()");
    browser.wait_until(
        "the agent runs",
        "document.querySelector('.panel .agent[data-state=running]')?.textContent.includes('look for ever')",
    );
    browser.wait_until(
        "its tokens are counted",
        "document.querySelector('.panel .agent .time')?.textContent.includes('tokens')",
    );
    let other = site.visit(1280, 860);
    other.run("location.hash = '#/fleet'");
    other.wait_until(
        "the overview shows it, too",
        "[...document.querySelectorAll('.fleet .tile')].some((one) => one.textContent.includes('1 finder'))",
    );
    browser.run("[...document.querySelectorAll('.panel .agent button')].find((one) => one.textContent.includes('Stop')).click()");
    browser.wait_until("the turn goes on", "document.querySelector('.item.end.final')");
    browser.wait_until(
        "its state is shown",
        "document.querySelector('.panel .agent:not([data-state=running])')",
    );
    browser.click(".panel .agent a");
    browser.wait_until(
        "its conversation opens",
        "document.querySelector('.items .user .words')?.textContent.includes('look for ever')",
    );
    assert_no_errors(&browser);
}

/// GOAL-6, WEB-1: a plan that the model proposed is shown step by step; a step is dropped and the rest is carried out
/// from the page.
#[test]
fn a_plan_is_edited_and_carried_out() {
    let plan = json!({ "steps": [
        { "id": "make", "title": "make the file", "check": "true" },
        { "id": "extra", "title": "not needed" },
        { "id": "tell", "title": "tell about it", "depends_on": ["make"] },
    ]});
    let site = Site::start([
        Reply::text(&format!("```json\n{plan}\n```")),
        Reply::text("step done").forever(),
    ]);
    let browser = site.converse();
    say(&browser, "/plan make it and tell");
    browser.run("document.querySelector('.head [aria-label=\"Tasks and plan\"]').click()");
    let steps = "[...document.querySelectorAll('.panel .todos li')]";
    browser.wait_until("the plan is shown", &format!("{steps}.length === 3"));
    browser.wait_until("it is idle", "document.querySelector('.composer .stop').hidden");
    browser.click(".panel [aria-label='Drop step 2']");
    browser.wait_until("it is dropped", &format!("{steps}.length === 2"));
    assert_eq!(
        browser.run(&format!("return {steps}.map((one) => one.textContent)")),
        json!(["make the file", "tell about it"])
    );
    browser.run("[...document.querySelectorAll('.panel .tools button')].find((one) => one.textContent.includes('Carry out')).click()");
    browser.wait_until(
        "all steps are done",
        &format!("{steps}.length === 2 && {steps}.every((one) => one.dataset.state === 'done')"),
    );
    assert_no_errors(&browser);
}

/// WEB-6, SUB-8: the overview shows all sessions, the one that needs a person first.
#[test]
fn the_overview_shows_who_needs_a_person() {
    let site = Site::start([
        Reply::text("done").when(When::new().user_contains("quiet")),
        Reply::call("bash", json!({ "command": "touch asked" })).when(When::new().user_contains("asking")),
        Reply::text("more").forever(),
    ]);
    let browser = site.converse();
    say(&browser, "/rename the asking one");
    say(&browser, "asking");
    wait_asked(&browser);
    new_session(&browser);
    browser.wait_until("it is another one", "!document.querySelector('.ask')");
    say(&browser, "quiet");
    browser.wait_until("it is done", "document.querySelector('.item.end.final')");
    browser.run("location.hash = '#/fleet'");
    browser.wait_until(
        "both are there",
        "document.querySelectorAll('.fleet .tile').length === 2",
    );
    let order = browser.run("return [...document.querySelectorAll('.fleet section')].map((one) => [one.querySelector('h2').firstChild.textContent.trim(), one.querySelector('.tile').dataset.state])");
    assert_eq!(order[0], json!(["Needs you", "asks"]));
    assert_eq!(order[1][0], "Earlier");
    assert_eq!(browser.run("return document.title.startsWith('(1)')"), true);
    browser.click(".fleet .tile");
    wait_asked(&browser);
    assert_no_errors(&browser);
}
