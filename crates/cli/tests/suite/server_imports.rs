//! Importing sessions over HTTP.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::http;

use super::server::serve;
use super::support::{repository_file, with_replies};

const PATH: &str = "/api/sessions/import";

fn fixture(name: &str) -> String {
    repository_file(&format!("crates/cli/tests/fixtures/sessions/{name}.jsonl"))
}

/// SES-14, SRV-1: a file of each other agent, and an export of Windlass, becomes a session over HTTP that is listed and can be
/// continued.
#[test]
fn uploaded_sessions_continue() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("went on").forever()]);
    let server = serve(&workspace, &[]);
    let mut exported = String::new();
    for (name, said) in [
        ("claude-code", "I count both."),
        ("codex", "I look at the file."),
        ("pi", "The largest is big.txt."),
        ("windlass", "The largest is big.txt."),
    ] {
        let text = if name == "windlass" {
            exported.clone()
        } else {
            fixture(name)
        };
        let file = json!({ "name": format!("{name}.jsonl"), "text": text });
        let imported = server.post(PATH, &file);
        assert_eq!(imported["from"], name, "{imported}");
        assert!(imported["messages"].as_u64() > Some(1), "{imported}");
        let session = imported["id"].as_str().unwrap();
        let found = server.get(&format!("/api/sessions?q={session}"));
        assert_eq!(found["sessions"].as_array().map(Vec::len), Some(1), "{found}");
        server.say(session, "and now?");
        server.wait_idle(session);
        let requests = sim.requests();
        let seen = &requests.last().unwrap().seen;
        assert!(
            seen.turns.iter().any(|turn| turn.text.contains(said)),
            "{name}: {seen:?}"
        );
        let export = ["sessions", "export", session, "--format", "json"];
        exported = workspace.run(&export).output().assert_code(0).stdout.clone();
    }
}

/// SES-14, SRV-1: a file that is no session, or damaged, or too large is refused with what is wrong and what helps, and nothing
/// is stored; the readable part of a damaged one is imported on request; a token that may only read imports nothing.
#[test]
fn bad_files_are_refused() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let server = serve(&workspace, &[]);
    let damaged = format!("{}{{\"type\": \"user\"", fixture("claude-code"));
    let large = "x".repeat(33 << 20);
    for (body, status, field, told) in [
        (json!({}), 400, "name", "missing field"),
        (json!({ "name": "a" }), 400, "text", "missing field"),
        (
            json!({ "name": "a", "text": 1 }),
            400,
            "text",
            "expected a string",
        ),
        (
            json!({ "name": "a", "text": "", "lenient": "yes" }),
            400,
            "lenient",
            "expected a boolean",
        ),
        (
            json!({ "name": "a", "text": "", "folder": "/" }),
            400,
            "folder",
            "unknown field",
        ),
        (
            json!({ "name": " ", "text": "" }),
            400,
            "name",
            "between 1 and 500",
        ),
        (
            json!({ "name": "a.txt", "text": "hello" }),
            422,
            "text",
            "a.txt: not a session of",
        ),
        (
            json!({ "name": "a.jsonl", "text": damaged }),
            422,
            "text",
            "nothing was imported",
        ),
        (json!({ "name": "a", "text": large }), 413, "", ""),
    ] {
        let answer = server.request("POST", PATH, &body.to_string());
        let problem = answer.json();
        assert_eq!(answer.status, status, "{problem}");
        assert_eq!(problem["field"].as_str().unwrap_or_default(), field, "{problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(told), "{told}: {problem}");
        if status == 413 {
            assert_eq!(problem["fix"], "windlass sessions import FILE");
        }
    }
    assert_eq!(server.get("/api/sessions")["sessions"], json!([]));
    let lenient = json!({ "name": "a.jsonl", "text": damaged, "lenient": true });
    let imported = server.post(PATH, &lenient);
    assert_eq!(
        imported["damaged"].as_array().map(Vec::len),
        Some(1),
        "{imported}"
    );

    let token = workspace
        .run(&["token", "create", "reader", "--scope", "write"])
        .output();
    let bearer = format!("Bearer {}", token.assert_code(0).stdout.trim());
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let refused = http(&server.addr, "POST", PATH, &headers, &lenient.to_string());
    assert_eq!(refused.json()["check"], "scope", "{}", refused.body);
}
