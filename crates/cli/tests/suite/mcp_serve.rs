//! `windlass mcp serve` over standard input and output: handshakes, tools, resources, bad input.

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{McpClient, PATIENCE, SimServer, Workspace, eventually, processes_with};

use super::support::{with_replies, workspace};

const NEWEST: &str = "2025-11-25";

/// A workspace with these replies, and a client with a handshake.
fn client(
    capabilities: Value,
    replies: impl IntoIterator<Item = Reply>,
) -> (SimServer, Workspace, McpClient) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let client = McpClient::connect(workspace.run(&["mcp", "serve"]), NEWEST, capabilities);
    (sim, workspace, client)
}

/// A reply that hangs in the middle.
fn endless() -> Reply {
    Reply::text("one two three four")
        .delta_chars(4)
        .fault(Fault::new().stall_after_events(5))
}

fn asking() -> Reply {
    Reply::call(
        "bash",
        json!({ "command": "curl http://a.localhost:9/ > made.txt; touch asked.txt" }),
    )
}

/// MCP-8, EXT-5: every revision with a handshake is spoken, and an unknown one is answered with our newest.
#[test]
fn handshakes_of_all_revisions() {
    let workspace = workspace();
    for version in [NEWEST, "2025-06-18", "2025-03-26", "2024-11-05"] {
        let mut client = McpClient::start(workspace.run(&["mcp", "serve"]));
        let result = client.initialize(version, json!({}));
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "windlass");
        assert_eq!(client.call("ping", json!({})), json!({}));
        let names: Vec<Value> = client.call("tools/list", json!({}))["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(
            names,
            [
                "start_session",
                "continue_session",
                "steer_session",
                "cancel_session",
                "wait_for_session",
                "read_session",
                "list_sessions"
            ]
        );
        client.end().assert_code(0);
    }
    let mut client = McpClient::start(workspace.run(&["mcp", "serve"]));
    let early = client.refused("tools/list", json!({}));
    assert_eq!(early["code"], -32600);
    assert_eq!(
        client.initialize("1999-01-01", json!({}))["protocolVersion"],
        NEWEST
    );
    assert_eq!(client.refused("initialize", json!({}))["code"], -32602);
    client.end().assert_code(0);
}

/// MCP-8: the stateless revision needs no handshake; each request says what its client can do.
#[test]
fn the_stateless_revision() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("hello")]);
    let mut client = McpClient::stateless(workspace.run(&["mcp", "serve"]), json!({}));
    let found = client.call("server/discover", json!({}));
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["resultType"], "complete");
    assert_eq!(
        found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "windlass"
    );
    let listed = client.call("tools/list", json!({}));
    assert_eq!(
        (&listed["cacheScope"], listed["ttlMs"].as_u64().is_some()),
        (&json!("public"), true)
    );
    let result = client.tool("start_session", json!({ "prompt": "hi" }));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"]["answer"], "hello");
    for removed in ["ping", "initialize", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(client.refused(removed, json!({}))["code"], -32601, "{removed}");
    }
    let other = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2030-01-01" } });
    client.line(&json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": other }).to_string());
    let answer = client.receive();
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["requested"], "2030-01-01");
    client.end().assert_code(0);
}

/// MCP-8, EXT-5: a session is started, continued, read and listed; results carry its id and cost, and progress is
/// reported meanwhile.
#[test]
fn sessions_are_started_continued_and_read() {
    let replies = [
        Reply::call("read_file", json!({ "path": "a.txt" })),
        Reply::text("it says one"),
        Reply::text("and two"),
    ];
    let (sim, workspace, mut client) = client(json!({}), replies);
    workspace.write("a.txt", "one\n");
    let result = client.tool(
        "start_session",
        json!({ "prompt": "read a.txt", "name": "reader" }),
    );
    let content = result["structuredContent"].clone();
    assert_eq!(
        (&content["status"], &content["answer"]),
        (&json!("answered"), &json!("it says one"))
    );
    assert!(
        content["cost_usd"].is_number() && content["input_tokens"].as_u64().unwrap() > 0,
        "{content}"
    );
    assert_eq!(result["isError"], false);
    let session = content["session_id"].as_str().unwrap().to_owned();
    assert!(result["content"][0]["text"].as_str().unwrap().contains(&session));
    let progress: Vec<u64> = client
        .notices
        .iter()
        .filter(|notice| notice["method"] == "notifications/progress")
        .map(|notice| notice["params"]["progress"].as_u64().unwrap())
        .collect();
    assert!(progress.len() >= 2 && progress.is_sorted(), "{progress:?}");
    assert!(
        client
            .notices
            .iter()
            .any(|notice| notice["params"]["message"].to_string().contains("a.txt"))
    );

    let result = client.tool(
        "continue_session",
        json!({ "session_id": session, "prompt": "more" }),
    );
    assert_eq!(result["structuredContent"]["answer"], "and two");
    assert_eq!(result["structuredContent"]["session_id"], session);
    let last = client.tool("wait_for_session", json!({ "session_id": session }));
    assert_eq!(last["structuredContent"]["answer"], "and two");

    let read = client.tool("read_session", json!({ "session_id": session }));
    let text = read["structuredContent"]["transcript"]
        .as_str()
        .unwrap()
        .to_owned();
    for part in [
        "## User\n\nread a.txt",
        "## Call of read_file",
        "## Answer\n\nit says one",
        "and two",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let listed = client.tool("list_sessions", json!({ "query": "reader" }));
    assert_eq!(listed["structuredContent"]["sessions"][0]["session_id"], session);

    let uri = format!("windlass://sessions/{session}");
    let resources = client.call("resources/list", json!({}));
    let uris: Vec<&Value> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["uri"])
        .collect();
    assert_eq!(uris, ["windlass://sessions", uri.as_str()]);
    let transcript = client.call("resources/read", json!({ "uri": uri }));
    assert_eq!(transcript["contents"][0]["text"], text);
    let all = client.call("resources/read", json!({ "uri": "windlass://sessions" }));
    assert!(all["contents"][0]["text"].as_str().unwrap().contains(&session));
    let templates = client.call("resources/templates/list", json!({}));
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "windlass://sessions/{session_id}"
    );
    let missing = client.refused("resources/read", json!({ "uri": "windlass://sessions/none" }));
    assert_eq!(missing["code"], -32002);
    sim.assert_valid();
    client.end().assert_code(0);
}

/// MCP-8: text of a client is never a command, neither of Windlass nor of a shell.
#[test]
fn a_prompt_is_never_a_command() {
    let (sim, workspace, mut client) = client(json!({}), [Reply::text("one"), Reply::text("two")]);
    for prompt in ["!touch made.txt", "/mode full"] {
        let result = client.tool("start_session", json!({ "prompt": prompt }));
        assert_eq!(result["structuredContent"]["status"], "answered", "{result}");
    }
    assert!(!workspace.path().join("made.txt").exists());
    assert_eq!(sim.count(), 2);
    client.end().assert_code(0);
}

/// MCP-8: a permission request is a form of the client; only a yes lets the call run.
#[test]
fn approvals_are_elicitations() {
    for (answer, runs) in [("once", true), ("no", false)] {
        let (_sim, workspace, mut client) =
            client(json!({ "elicitation": {} }), [asking(), Reply::text("done")]);
        client.accepting(json!({ "decision": answer, "instead": "" }));
        let result = client.tool("start_session", json!({ "prompt": "go" }));
        assert_eq!(client.asked.len(), 1, "{result}");
        let asked = &client.asked[0];
        assert_eq!(asked["method"], "elicitation/create");
        assert!(
            asked["params"]["message"]
                .as_str()
                .unwrap()
                .contains("curl http://a.localhost:9/")
        );
        assert_eq!(workspace.path().join("asked.txt").exists(), runs, "{result}");
        client.end().assert_code(0);
    }
}

/// MCP-8: if the client has no forms, nobody can be asked, and the answer is no.
#[test]
fn nobody_to_ask_means_no() {
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let (_sim, workspace, mut client) = client(capabilities, [asking(), Reply::text("then not")]);
        let result = client.tool("start_session", json!({ "prompt": "go" }));
        assert!(client.asked.is_empty());
        assert!(!workspace.path().join("asked.txt").exists());
        let content = &result["structuredContent"];
        assert_eq!(content["answer"], "then not", "{result}");
        assert!(
            content["denied"][0].as_str().unwrap().contains("bash"),
            "{content}"
        );
        client.end().assert_code(0);
    }
}

/// MCP-8: a stateless client gets the question as the result of its call, and repeats the call with the answer. Another
/// state than the server's answers nothing.
#[test]
fn a_stateless_client_repeats_its_call_with_the_answer() {
    for (decision, runs) in [("once", true), ("no", false)] {
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [asking(), Reply::text("done")]);
        let mut client = McpClient::stateless(workspace.run(&["mcp", "serve"]), json!({ "elicitation": {} }));
        let asked = client.tool("start_session", json!({ "prompt": "go" }));
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["method"], "elicitation/create");
        let answer = json!({ key.as_str(): { "action": "accept", "content": { "decision": decision } } });
        let call = |state: &Value| json!({ "name": "start_session", "arguments": { "prompt": "go" }, "inputResponses": answer, "requestState": state });
        assert_eq!(
            client.refused("tools/call", call(&json!("forged.state")))["code"],
            -32602
        );
        assert!(!workspace.path().join("asked.txt").exists());
        let result = client.call("tools/call", call(&asked["requestState"]));
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(workspace.path().join("asked.txt").exists(), runs, "{result}");
        assert!(client.asked.is_empty(), "the server sends no requests");
        client.end().assert_code(0);
    }
}

/// MCP-8: a turn runs in the background, is steered, waited for, and canceled.
#[test]
fn a_running_turn_is_watched_steered_and_canceled() {
    let (_sim, _workspace, mut client) = client(json!({}), [endless()]);
    let started = client.tool("start_session", json!({ "prompt": "go", "wait": false }));
    assert_eq!(started["structuredContent"]["status"], "running");
    let session = started["structuredContent"]["session_id"].clone();
    let waited = client.tool(
        "wait_for_session",
        json!({ "session_id": session, "timeout_seconds": 0 }),
    );
    assert_eq!(waited["structuredContent"]["status"], "running");
    let busy = client.tool(
        "continue_session",
        json!({ "session_id": session, "prompt": "x" }),
    );
    assert!(
        busy["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("steer_session"),
        "{busy}"
    );
    assert_eq!(busy["isError"], true);
    let steered = client.tool(
        "steer_session",
        json!({ "session_id": session, "prompt": "left" }),
    );
    assert_eq!(steered["structuredContent"]["status"], "running");
    let waiting = client.start_tool("wait_for_session", json!({ "session_id": session }));
    let canceled = client.tool("cancel_session", json!({ "session_id": session }));
    assert_eq!(canceled["structuredContent"]["status"], "canceled");
    let ended = client.wait(waiting).unwrap();
    assert_eq!(ended["structuredContent"]["status"], "canceled", "{ended}");
    let again = client.tool("steer_session", json!({ "session_id": session, "prompt": "x" }));
    assert_eq!(again["isError"], true);
    client.end().assert_code(0);
}

/// MCP-8: a withdrawn call stops its turn, and has no answer.
#[test]
fn a_withdrawn_call_stops_its_turn() {
    let (_sim, _workspace, mut client) = client(json!({}), [endless()]);
    let id = client.start_tool("start_session", json!({ "prompt": "go", "name": "withdrawn" }));
    client.wait_for_notice(|notice| notice["params"]["message"].to_string().contains("asking"));
    client.notify(
        "notifications/cancelled",
        json!({ "requestId": id, "reason": "test" }),
    );
    let is_canceled = eventually(PATIENCE, || {
        let listed = client.tool("list_sessions", json!({ "query": "withdrawn" }));
        listed["structuredContent"]["sessions"][0]["status"] == "canceled"
    });
    assert!(is_canceled);
    client.end().assert_code(0);
}

/// MCP-8: wrong arguments name the field, and say what is right.
#[test]
fn wrong_arguments_name_the_field() {
    let (sim, _workspace, mut client) = client(json!({}), []);
    for (tool, arguments, expected) in [
        ("start_session", json!({}), "prompt"),
        ("start_session", json!({ "prompt": 7 }), "prompt: "),
        ("start_session", json!({ "prompt": " " }), "prompt: it is empty"),
        (
            "start_session",
            json!({ "prompt": "x", "folder": "/no/such" }),
            "folder: /no/such",
        ),
        (
            "start_session",
            json!({ "prompt": "x", "timeout_seconds": 100_000 }),
            "timeout_seconds: ",
        ),
        ("start_session", json!({ "prompt": "x", "cwd": "/" }), "cwd"),
        (
            "continue_session",
            json!({ "session_id": "none", "prompt": "x" }),
            "session_id: there is no session none",
        ),
        (
            "continue_session",
            json!({ "session_id": "n", "prompt": "x", "when_busy": "now" }),
            "when_busy: ",
        ),
        (
            "read_session",
            json!({ "session_id": "none" }),
            "session_id: there is no session none",
        ),
        (
            "list_sessions",
            json!({ "limit": 0 }),
            "limit: it is 0, not 1 to 200",
        ),
    ] {
        let result = client.tool(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{tool} {arguments}: {text}");
    }
    let error = client.refused("tools/call", json!({ "name": "no_such", "arguments": {} }));
    assert_eq!(
        (
            &error["code"],
            error["message"].as_str().unwrap().contains("no_such")
        ),
        (&json!(-32602), true)
    );
    assert_eq!(client.refused("tools/call", json!({}))["code"], -32602);
    assert_eq!(sim.count(), 0);
    client.end().assert_code(0);
}

/// MCP-8: lines that are no messages are answered with an error, and the connection goes on; a huge message is read.
#[test]
fn malformed_and_huge_messages() {
    let (_sim, _workspace, mut client) = client(json!({}), [Reply::text("long")]);
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","id":1}"#, -32600),
        ("\u{1b}[2J", -32700),
    ] {
        client.line(line);
        assert_eq!(client.receive()["error"]["code"], code, "{line}");
    }
    client.line("");
    client.notify("no/such", json!([1]));
    client.line(r#"{"jsonrpc":"2.0","id":999,"result":{}}"#);
    assert_eq!(client.refused("no/such", json!({}))["code"], -32601);
    let result = client.tool("start_session", json!({ "prompt": "x".repeat(300_000) }));
    assert_eq!(result["structuredContent"]["answer"], "long", "{result}");
    client.end().assert_code(0);
}

/// MCP-8: when the client disappears, its turns are stopped and no process is left.
#[test]
fn a_client_that_disappears_leaves_nothing() {
    let marker = format!("62.{}", std::process::id());
    let command = Reply::call("bash", json!({ "command": format!("sleep {marker}") }));
    let (_sim, _workspace, mut client) = client(json!({}), [command]);
    client.start_tool("start_session", json!({ "prompt": "go" }));
    let sleepers = || processes_with(&marker);
    assert!(
        eventually(PATIENCE, || !sleepers().is_empty()),
        "the command runs"
    );
    client.end().assert_code(0);
    assert!(eventually(PATIENCE, || sleepers().is_empty()), "{:?}", sleepers());
}

/// MCP-8: two clients have servers of their own over the same sessions; one that is in use elsewhere is refused.
#[test]
fn two_clients_share_the_sessions() {
    let (_sim, workspace, mut one) = client(json!({}), [Reply::text("first"), endless()]);
    let mut other = McpClient::connect(workspace.run(&["mcp", "serve"]), NEWEST, json!({}));
    let result = one.tool("start_session", json!({ "prompt": "go" }));
    let session = result["structuredContent"]["session_id"].clone();
    let read = other.tool("read_session", json!({ "session_id": session }));
    assert!(
        read["structuredContent"]["transcript"]
            .as_str()
            .unwrap()
            .contains("first")
    );
    one.tool(
        "continue_session",
        json!({ "session_id": session, "prompt": "more", "wait": false }),
    );
    let refused = other.tool(
        "continue_session",
        json!({ "session_id": session, "prompt": "me too" }),
    );
    assert_eq!(refused["isError"], true, "{refused}");
    one.end().assert_code(0);
    other.end().assert_code(0);
}
