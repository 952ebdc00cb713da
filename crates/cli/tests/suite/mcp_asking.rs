//! Questions, progress and log messages of MCP servers, through the binary.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Editor, PATIENCE, SimServer, Workspace, eventually};

use super::approvals::answer;
use super::mcp_http::{Site, call};
use super::support::{results, with_replies};

const SERVER: &str = include_str!("mcp_server.py");

/// A workspace with a server whose calls are allowed, and a model that calls one of its tools.
fn session(tool: &str, keys: &str) -> (SimServer, Workspace) {
    let called = Reply::call(&format!("mcp__plain__{tool}"), json!({}));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [called, Reply::text("done")]);
    workspace.write("server.py", SERVER);
    let own = format!(
        "[security]\nallow = [\"mcp__*\"]\n[mcp]\nstartup_wait_secs = 60\n[mcp_servers.plain]\ncommand = \
         \"python3\"\nargs = [\"server.py\"]\n{keys}\n"
    );
    workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
    (sim, workspace)
}

/// MCP-5: a form of a server is shown with the server's name at the terminal, in both eras; the answer reaches the
/// server, and so does a refusal.
#[test]
fn a_form_is_answered_at_the_terminal() {
    let accepted = "{\"action\": \"accept\", \"content\": {\"colour\": \"blue\"}}";
    for (typed, told) in [("blue", accepted), ("decline", "{\"action\": \"decline\"}")] {
        let (sim, workspace) = session("ask", "");
        let output = answer(&workspace, "exec go", &[typed]);
        assert!(
            output.stdout.contains("The MCP server plain asks: Which colour?"),
            "{output}"
        );
        assert_eq!(results(&sim), [format!("answer: {told}")]);

        let site = Site::start();
        let replies = vec![call("modern", "ask", ""), Reply::text("done")];
        let (sim, workspace) = site.session(&["modern"], "", replies);
        let output = answer(&workspace, "exec go", &[typed]);
        assert!(
            output
                .stdout
                .contains("The MCP server at-modern asks: Which colour?"),
            "{output}"
        );
        assert_eq!(results(&sim), [format!("{told} s1")]);
    }
}

/// MCP-5, ACP-2: a form of a server reaches the person in an editor.
#[test]
fn a_form_is_answered_in_an_editor() {
    let (sim, workspace) = session("ask", "");
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({ "elicitation": { "form": {} } }));
    let session = editor.open(workspace.path());
    editor.answering(|_| {
        Some(Ok(
            json!({ "action": "accept", "content": { "other": "blue", "answer": "blue" } }),
        ))
    });
    editor.prompt(&session, "go");
    let asked = editor.asked[0]["params"]["message"].as_str().unwrap_or_default();
    assert!(
        asked.contains("The MCP server plain asks: Which colour?"),
        "{asked}"
    );
    assert!(
        results(&sim)[0].contains("\"colour\": \"blue\""),
        "{:?}",
        results(&sim)
    );
    editor.end().assert_code(0);
}

/// MCP-5: progress of a call is shown while it runs, log messages are kept as plain text, the workspace is told only
/// to a server that may know it, and nobody may use the model.
#[test]
fn a_server_talks_during_a_call() {
    for (keys, knows) in [("", false), ("roots = true", true)] {
        let (sim, workspace) = session("chat", keys);
        let run = workspace.run(&["exec", "--output-format", "stream-json", "go"]);
        let output = run.limit(PATIENCE).output();
        output.assert_code(0);
        assert!(output.stdout.contains("1/2 half the cheese"), "{output}");
        let told = &results(&sim)[0];
        let folder = format!("file://{}", workspace.path().display());
        assert_eq!(told.contains(&folder), knows, "{told}");
        assert!(told.contains("\"sampling/createMessage\": \"refused\""), "{told}");
    }
    let (_sim, workspace) = session("chat", "");
    let run = workspace.run(&["--plain"]).stdin("go\n/mcp plain\n");
    let output = run.limit(PATIENCE).output();
    assert!(output.stdout.contains("cheese is [31mready"), "{output}");
}

/// MCP-5: a page that a server wants to be opened is shown with its whole address, and only a yes is one; an address that
/// is no web page is declined without a question.
#[test]
fn a_page_of_a_server_is_shown() {
    for (typed, told) in [("1", "accept"), ("2", "decline")] {
        let (sim, workspace) = session("page", "");
        let output = answer(&workspace, "exec go", &[typed]);
        assert!(
            output
                .stdout
                .contains("The MCP server plain asks you to open this page")
                && output.stdout.contains("https://example.org/log-in?a=1"),
            "{output}"
        );
        assert_eq!(results(&sim), [format!("answer: {{\"action\": \"{told}\"}}")]);
    }
    let (sim, workspace) = session("local", "");
    workspace
        .run(&["exec", "go"])
        .limit(PATIENCE)
        .output()
        .assert_code(0);
    assert_eq!(results(&sim), ["answer: {\"action\": \"decline\"}"]);
}

/// MCP-5, LOOP-8: a server is told that a call was canceled, with the id of the call.
#[test]
fn a_canceled_call_is_reported() {
    let (_sim, workspace) = session("wait", "");
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let session = editor.open(workspace.path());
    let prompt = editor.ask(&session, "go");
    assert!(eventually(PATIENCE, || workspace.has("begun")));
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.wait(prompt), Ok(json!({ "stopReason": "cancelled" })));
    assert!(eventually(PATIENCE, || workspace.has("cancelled")));
    editor.end().assert_code(0);
}
