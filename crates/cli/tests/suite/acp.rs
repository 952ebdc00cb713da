//! The Agent Client Protocol, check by check. The names of the tests carry the ids of the protocol's test kit; the
//! [`Editor`] validates every line of the agent against the published schema (TRANSPORT-001, -002, SCHEMA-001, -002).

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Editor, PATIENCE, SimServer, Workspace, eventually};

use super::support::{with_replies, workspace};

/// A workspace with these replies, and an editor that is connected to it.
pub(super) fn editor(
    capabilities: Value,
    replies: impl IntoIterator<Item = Reply>,
) -> (SimServer, Workspace, Editor) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let editor = Editor::connect(workspace.run(&["acp"]), capabilities);
    (sim, workspace, editor)
}

/// A reply that hangs in the middle.
pub(super) fn endless() -> Reply {
    Reply::text("one two three four")
        .delta_chars(4)
        .fault(Fault::new().stall_after_events(5))
}

pub(super) fn is_text(update: &Value) -> bool {
    update["sessionUpdate"] == "agent_message_chunk"
}

/// Returns everything that the model read.
fn said(sim: &SimServer) -> String {
    let requests = sim.requests();
    let turns = requests.iter().flat_map(|request| &request.seen.turns);
    turns.map(|turn| turn.text.as_str()).collect()
}

fn cancel(editor: &mut Editor, session: &str) {
    editor.notify("session/cancel", json!({ "sessionId": session }));
}

/// UI-5, ACP-1, ACP-3 (INIT-001, -002, -004, AUTH-001, -002): the handshake says who we are and what we can do.
#[test]
fn init_001_002_004_the_handshake() {
    let workspace = workspace();
    let mut editor = Editor::start(workspace.run(&["acp"]));
    let result = editor.initialize(json!({}));
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["agentInfo"]["name"], "windlass");
    let abilities = &result["agentCapabilities"];
    assert_eq!(abilities["loadSession"], true);
    assert_eq!(
        abilities["promptCapabilities"],
        json!({ "image": true, "audio": false, "embeddedContext": true })
    );
    assert_eq!(
        abilities["sessionCapabilities"],
        json!({ "list": {}, "delete": {}, "resume": {}, "close": {} })
    );
    assert!(result["authMethods"][0].get("type").is_none());
    let result = editor.initialize(json!({ "auth": { "terminal": true } }));
    assert_eq!(result["authMethods"][0]["type"], "terminal");
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (INIT-003): an unknown version is answered with ours, never echoed; a wrong type is refused.
#[test]
fn init_003_other_versions() {
    let workspace = workspace();
    let mut editor = Editor::start(workspace.run(&["acp"]));
    let early = editor.refused("session/new", json!({ "cwd": "/", "mcpServers": [] }));
    assert_eq!(early["code"], -32600);
    let params = json!({ "protocolVersion": 65535, "info": { "name": "x", "version": "1" } });
    assert_eq!(editor.call("initialize", params)["protocolVersion"], 1);
    let error = editor.refused("initialize", json!({ "protocolVersion": "1" }));
    assert_eq!(error["code"], -32602);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (JSONRPC-001 to -005, EXT-001): ids come back as they were, notifications have no answer, and the
/// connection survives every error.
#[test]
fn jsonrpc_001_to_005() {
    let (_sim, _workspace, mut editor) = editor(json!({}), []);
    for id in [json!("seven"), json!(4_000_000_000_u64), json!(-3)] {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": "_x/y" });
        editor.line(&line.to_string());
        let answer = editor.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32601)));
    }
    editor.notify("no/such", json!({}));
    editor.notify("session/cancel", json!({ "sessionId": "none" }));
    editor.notify("session/cancel", json!([1]));
    for (line, code) in [("{", -32700), (r#"{"foo":1}"#, -32600), ("[1]", -32600), ("", 0)] {
        editor.line(line);
        if code != 0 {
            let answer = editor.receive();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&Value::Null, &json!(code))
            );
        }
    }
    let error = editor.refused("session/new", json!({ "cwd": 7 }));
    assert_eq!(error["code"], -32602);
    assert_eq!(editor.call("session/list", json!({})), json!({ "sessions": [] }));
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (SESSION-001, -002, MODES-001, CONFIG-001, -003): sessions have their own ids, modes and options.
#[test]
fn session_001_002_modes_001_config_001() {
    let (_sim, workspace, mut editor) = editor(json!({}), []);
    let params = json!({ "cwd": workspace.path(), "mcpServers": [] });
    let (one, other) = (
        editor.call("session/new", params.clone()),
        editor.call("session/new", params),
    );
    assert_ne!(one["sessionId"], other["sessionId"]);
    let ids: Vec<&Value> = one["modes"]["availableModes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mode| &mode["id"])
        .collect();
    assert_eq!(ids, ["plan", "ask", "edits", "auto", "full"]);
    assert_eq!(one["modes"]["currentModeId"], "auto");
    let options = one["configOptions"].as_array().unwrap();
    let categories: Vec<&Value> = options.iter().map(|option| &option["category"]).collect();
    assert_eq!(categories, ["mode", "model", "thought_level"]);
    for option in options {
        assert_eq!(option["type"], "select");
        let values = option["options"].as_array().unwrap();
        assert!(
            values
                .iter()
                .any(|value| value["value"] == option["currentValue"]),
            "{option}"
        );
    }
    let commands = editor.wait_for_update(|update| update["sessionUpdate"] == "available_commands_update");
    let names: Vec<&str> = commands["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect();
    assert!(
        names.contains(&"help") && names.contains(&"undo") && !names.contains(&"exit"),
        "{names:?}"
    );
    for (cwd, expected) in [("relative", "absolute"), ("/no/such/folder", "No such file")] {
        let error = editor.refused("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (PROMPT-001, -002, -003, META-001): a prompt streams updates of its session and ends with a reason.
#[test]
fn prompt_001_002_003() {
    let reply = Reply::text("Hello from the model.")
        .delta_chars(3)
        .thinking("hm, hello");
    let (sim, workspace, mut editor) = editor(json!({}), [reply, Reply::text("again")]);
    let session = editor.open(workspace.path());
    let prompt = json!([
        { "type": "text", "text": "look at " },
        { "type": "resource_link", "uri": "file:///tmp/a.txt", "name": "a.txt" },
    ]);
    let params = json!({ "sessionId": session, "prompt": prompt, "_meta": { "traceparent": "x" } });
    let result = editor.call("session/prompt", params);
    assert_eq!(result, json!({ "stopReason": "end_turn" }));
    assert_eq!(editor.text(), "Hello from the model.");
    assert_eq!(editor.text_of("agent_thought_chunk"), "hm, hello");
    let chunks = editor.of_kind("agent_message_chunk");
    let id = chunks[0]["messageId"].clone();
    assert!(id.is_string() && chunks.iter().all(|chunk| chunk["messageId"] == id));
    assert!(editor.updates.iter().all(|(of, _)| *of == session));
    assert!(said(&sim).contains("look at /tmp/a.txt"));
    assert_eq!(editor.prompt(&session, "more"), "end_turn");
    let last = editor.of_kind("agent_message_chunk").pop().unwrap();
    assert_ne!(last["messageId"], id, "another message has another id");
    sim.assert_valid();
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (PROMPTCAP-001, -003): images and embedded files reach the model; other content is refused by name.
#[test]
fn promptcap_001_003_images_and_files() {
    let (sim, workspace, mut editor) = editor(json!({}), [Reply::text("seen")]);
    let session = editor.open(workspace.path());
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let prompt = json!([
        { "type": "image", "data": pixel, "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "file:///x/notes.md", "text": "remember the milk" } },
    ]);
    editor.call(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    assert!(said(&sim).contains("remember the milk"), "{}", said(&sim));
    let requests = sim.requests();
    assert_eq!(
        requests[0]
            .seen
            .turns
            .iter()
            .map(|turn| turn.images)
            .sum::<usize>(),
        1
    );
    let prompt = json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]);
    let error = editor.refused(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    assert!(
        error["message"].as_str().unwrap().contains("prompt[0]"),
        "{error}"
    );
    let error = editor.refused("session/prompt", json!({ "sessionId": session, "prompt": [] }));
    assert_eq!(error["code"], -32602);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (CANCEL-001, -002): a canceled prompt ends with its reason, and no update follows it.
#[test]
fn cancel_001_002() {
    let (_sim, workspace, mut editor) = editor(json!({}), [endless(), Reply::text("next")]);
    let session = editor.open(workspace.path());
    let id = editor.ask(&session, "go");
    editor.wait_for_update(is_text);
    cancel(&mut editor, &session);
    assert_eq!(editor.wait(id).unwrap(), json!({ "stopReason": "cancelled" }));
    let (_, updates) = *editor.answered.last().unwrap();
    assert_eq!(
        editor.call("session/list", json!({}))["sessions"][0]["sessionId"],
        session
    );
    assert_eq!(editor.updates.len(), updates, "{:?}", editor.updates.last());
    assert_eq!(editor.prompt(&session, "go on"), "end_turn");
    editor.end().assert_code(0);
}

/// ACP-1: a cancellation that directly follows its prompt is not lost; `$/cancel_request` does the same.
#[test]
fn a_prompt_is_canceled_before_it_runs() {
    let (_sim, workspace, mut editor) = editor(json!({}), [endless().forever()]);
    let session = editor.open(workspace.path());
    for _ in 0..5 {
        let id = editor.ask(&session, "go");
        cancel(&mut editor, &session);
        assert_eq!(editor.wait(id).unwrap()["stopReason"], "cancelled");
        let id = editor.ask(&session, "go");
        editor.notify("$/cancel_request", json!({ "requestId": id }));
        assert_eq!(editor.wait(id).unwrap()["stopReason"], "cancelled");
    }
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (LOAD-001, -002, -003): the whole past comes before the answer, and nothing after it.
#[test]
fn load_001_002_003() {
    let call = Reply::call("read_file", json!({ "path": "a.txt" })).say("I will look.");
    let (_sim, workspace, mut editor) = editor(json!({}), [call, Reply::text("It says hello.")]);
    workspace.write("a.txt", "hello\n");
    let session = editor.open(workspace.path());
    editor.prompt(&session, "what does a.txt say?");
    editor.end().assert_code(0);
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let params = json!({ "sessionId": session, "cwd": workspace.path(), "mcpServers": [] });
    let result = editor.call("session/load", params.clone());
    assert_eq!(result["modes"]["currentModeId"], "auto");
    let (_, count) = *editor.answered.last().unwrap();
    assert_eq!(editor.text_of("user_message_chunk"), "what does a.txt say?");
    assert_eq!(editor.text(), "I will look.It says hello.");
    let kinds: Vec<&Value> = editor
        .updates
        .iter()
        .map(|(_, update)| &update["sessionUpdate"])
        .collect();
    let position = |kind: &str| kinds.iter().position(|found| *found == kind);
    assert!(
        position("user_message_chunk") < position("tool_call"),
        "{kinds:?}"
    );
    let ended = editor.of_kind("tool_call_update").pop().unwrap();
    assert_eq!(ended["status"], "completed");
    editor.call("session/list", json!({}));
    assert_eq!(editor.updates.len(), count, "nothing follows the answer");
    // Loaded again, as by an editor whose window was reloaded.
    editor.call("session/load", params);
    assert_eq!(
        editor.text_of("user_message_chunk"),
        "what does a.txt say?".repeat(2)
    );
    let error = editor.refused(
        "session/load",
        json!({ "sessionId": "none", "cwd": workspace.path(), "mcpServers": [] }),
    );
    assert_eq!(
        (&error["code"], &error["data"]["sessionId"]),
        (&json!(-32002), &json!("none"))
    );
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (RESUME-001, -002): a resumed session goes on without showing its past.
#[test]
fn resume_001_002() {
    let (sim, workspace, mut editor) = editor(json!({}), [Reply::text("one"), Reply::text("two")]);
    let session = editor.open(workspace.path());
    editor.prompt(&session, "first");
    editor.end().assert_code(0);
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    editor.call(
        "session/resume",
        json!({ "sessionId": session, "cwd": workspace.path() }),
    );
    assert_eq!(editor.text(), "");
    assert_eq!(editor.prompt(&session, "second"), "end_turn");
    assert_eq!(editor.text(), "two");
    assert!(said(&sim).contains("second"), "the model knows the past");
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (LIST-001, -002): used sessions are listed by folder, page by page.
#[test]
fn list_001_002() {
    let (_sim, workspace, mut editor) = editor(json!({}), [Reply::text("hi").forever()]);
    assert_eq!(editor.call("session/list", json!({})), json!({ "sessions": [] }));
    for number in 0..52 {
        let session = editor.open(workspace.path());
        editor.prompt(&session, &format!("task {number}"));
    }
    let page = editor.call("session/list", json!({ "cwd": workspace.path() }));
    let first = page["sessions"].as_array().unwrap();
    assert_eq!(first.len(), 50);
    assert_eq!(first[0]["title"], "task 51");
    assert!(first[0]["updatedAt"].as_str().unwrap().ends_with('Z'));
    let rest = editor.call("session/list", json!({ "cursor": page["nextCursor"] }));
    assert_eq!(rest["sessions"].as_array().unwrap().len(), 2);
    assert!(rest.get("nextCursor").is_none());
    let other = editor.call("session/list", json!({ "cwd": "/no/such/folder" }));
    assert_eq!(other, json!({ "sessions": [] }));
    let error = editor.refused("session/list", json!({ "cursor": "nonsense" }));
    assert_eq!(error["code"], -32602);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (DELETE-001, -002): a deleted session is gone, even an open one; an unknown one is no error.
#[test]
fn delete_001_002() {
    let (_sim, workspace, mut editor) = editor(json!({}), [Reply::text("hi")]);
    let session = editor.open(workspace.path());
    editor.prompt(&session, "hello");
    for id in [session.as_str(), session.as_str(), "none"] {
        assert_eq!(
            editor.call("session/delete", json!({ "sessionId": id })),
            json!({})
        );
    }
    assert_eq!(editor.call("session/list", json!({})), json!({ "sessions": [] }));
    let error = editor.refused(
        "session/prompt",
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] }),
    );
    assert_eq!(error["code"], -32002);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (CLOSE-001, -002): closing ends a running prompt first, and lets others have the session.
#[test]
fn close_001_002() {
    let (_sim, workspace, mut editor) =
        editor(json!({}), [Reply::text("hi"), endless(), Reply::text("mine")]);
    let session = editor.open(workspace.path());
    editor.prompt(&session, "hello");
    let id = editor.ask(&session, "go");
    editor.wait_for_update(|update| {
        update["content"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("one"))
    });
    let close = editor.send("session/close", json!({ "sessionId": session }));
    assert_eq!(editor.wait(close).unwrap(), json!({}));
    assert_eq!(editor.wait(id).unwrap()["stopReason"], "cancelled");
    let order: Vec<u64> = editor.answered.iter().map(|(id, _)| *id).collect();
    assert!(order.ends_with(&[id, close]), "{order:?}");
    let run = || workspace.run(&["exec", "--resume", &session, "go on"]).output();
    assert!(
        eventually(PATIENCE, || run().code == Some(0)),
        "another process can use it"
    );
    let error = editor.refused("session/close", json!({ "sessionId": session }));
    assert_eq!(error["code"], -32002);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (MODES-002, CONFIG-002): modes and options change together, by either method and by command.
#[test]
fn modes_002_config_002() {
    let (_sim, workspace, mut editor) = editor(json!({}), []);
    let session = editor.open(workspace.path());
    let set = json!({ "sessionId": session, "modeId": "plan" });
    assert_eq!(editor.call("session/set_mode", set), json!({}));
    let update = editor.wait_for_update(|update| update["sessionUpdate"] == "config_option_update");
    assert_eq!(update["configOptions"][0]["currentValue"], "plan");
    let set = json!({ "sessionId": session, "configId": "mode", "value": "edits" });
    let result = editor.call("session/set_config_option", set);
    let options = result["configOptions"].as_array().unwrap();
    assert_eq!((options.len(), &options[0]["currentValue"]), (3, &json!("edits")));
    let is_mode = |name: &'static str| {
        move |update: &Value| {
            update["sessionUpdate"] == "current_mode_update" && update["currentModeId"] == name
        }
    };
    editor.wait_for_update(is_mode("edits"));
    assert_eq!(editor.prompt(&session, "/mode full"), "end_turn");
    editor.wait_for_update(is_mode("full"));
    for (id, value) in [
        ("mode", "unattended"),
        ("mode", "x"),
        ("model", "nobody/x"),
        ("thought_level", "max"),
        ("x", "y"),
    ] {
        let set = json!({ "sessionId": session, "configId": id, "value": value });
        assert_eq!(
            editor.refused("session/set_config_option", set)["code"],
            -32602,
            "{id} {value}"
        );
    }
    let set = json!({ "sessionId": session, "configId": "thought_level", "value": "high" });
    let changed = editor.call("session/set_config_option", set);
    assert_eq!(changed["configOptions"][2]["currentValue"], "high");
    let model = &options[1]["currentValue"];
    let set = json!({ "sessionId": session, "configId": "model", "value": model });
    editor.call("session/set_config_option", set);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-3 (AUTH-003, -005): without a model, a session is refused with the way to set one up; a known method
/// tells whether that was done.
#[test]
fn auth_003_005_no_model() {
    let workspace = workspace();
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let error = editor.refused(
        "session/new",
        json!({ "cwd": workspace.path(), "mcpServers": [] }),
    );
    assert_eq!(error["code"], -32000, "{error}");
    assert_eq!(
        editor.refused("authenticate", json!({ "methodId": "connect" }))["code"],
        -32000
    );
    assert_eq!(
        editor.refused("authenticate", json!({ "methodId": "x" }))["code"],
        -32602
    );
    workspace.config("provider = \"sim\"\n");
    assert_eq!(
        editor.call("authenticate", json!({ "methodId": "connect" })),
        json!({})
    );
    let session = editor.open(workspace.path());
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    assert!(editor.text().contains("[simulated model]"), "{}", editor.text());
    editor.end().assert_code(0);
}
