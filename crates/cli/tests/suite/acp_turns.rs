//! Turns in an editor: tool calls, diffs, terminals, permission requests, questions, plans, commands.

use serde_json::{Value, json};
use windlass_sim::{Fault, Reply, Stop, When};
use windlass_testkit::Editor;

use super::acp::{editor, is_text};

const NOTICES: &str = r#"{ "session": { "notices": {}, "compaction": {} } }"#;

fn notices() -> Value {
    serde_json::from_str(NOTICES).unwrap()
}

/// Returns the last status of each tool call, with its title.
fn calls(editor: &Editor) -> Vec<(String, String)> {
    let mut calls: Vec<(Value, String, String)> = Vec::new();
    for (_, update) in &editor.updates {
        let text = |key: &str| update[key].as_str().map(str::to_owned);
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => calls.push((
                update["toolCallId"].clone(),
                text("title").unwrap(),
                text("status").unwrap(),
            )),
            Some("tool_call_update") => {
                let call = calls
                    .iter_mut()
                    .find(|(id, ..)| *id == update["toolCallId"])
                    .unwrap();
                call.1 = text("title").unwrap_or(call.1.clone());
                call.2 = text("status").unwrap_or(call.2.clone());
            }
            _ => {}
        }
    }
    calls
        .into_iter()
        .map(|(_, title, status)| (title, status))
        .collect()
}

/// Returns the content of the last update that has one.
fn last_content(editor: &Editor) -> Vec<Value> {
    let updates = editor.of_kind("tool_call_update");
    let last = updates
        .iter()
        .rev()
        .find_map(|update| update["content"].as_array());
    last.cloned().unwrap_or_default()
}

fn bash(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command }))
}

/// ACP-1, ACP-2: an edit is a card with kind, place and diff, and runs with our tools.
#[test]
fn an_edit_shows_its_diff() {
    let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "2" });
    let replies = [
        Reply::call("read_file", json!({ "path": "a.txt" })),
        Reply::call("edit_file", edit),
        Reply::text("done"),
    ];
    let (_sim, workspace, mut editor) = editor(json!({}), replies);
    let path = workspace
        .write("a.txt", "one\ntwo\nthree\n")
        .canonicalize()
        .unwrap();
    let session = editor.open(workspace.path());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert_eq!(workspace.read("a.txt"), "one\n2\nthree\n");
    let announced = editor.of_kind("tool_call");
    let kinds: Vec<&Value> = announced.iter().map(|call| &call["kind"]).collect();
    assert_eq!(kinds, ["read", "edit"]);
    assert_eq!(announced[1]["name"], "edit_file");
    assert_eq!(announced[1]["locations"], json!([{ "path": path }]));
    let diff =
        json!({ "type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n" });
    assert_eq!(last_content(&editor), [diff]);
    let last = editor.of_kind("tool_call_update").pop().unwrap();
    assert_eq!(last["locations"], json!([{ "path": path, "line": 2 }]));
    assert!(calls(&editor).iter().all(|(_, status)| status == "completed"));
    editor.end().assert_code(0);
}

/// ACP-1: the files that a command changed are shown as diffs too, from the checkpoint.
#[test]
fn a_command_shows_the_files_it_changed() {
    let command = "sed -i s/two/2/ a.txt; echo new > b.txt; echo made it";
    let (_sim, workspace, mut editor) = editor(json!({}), [bash(command), Reply::text("done")]);
    workspace.write("a.txt", "two\n");
    let session = editor.open(workspace.path());
    editor.prompt(&session, "go");
    assert_eq!(calls(&editor), [(command.to_owned(), "completed".to_owned())]);
    let contents = last_content(&editor);
    assert_eq!(contents[0]["content"]["text"], "```\nmade it\n```");
    let path = |name: &str| json!(workspace.path().canonicalize().unwrap().join(name));
    let changed = json!({ "type": "diff", "path": path("a.txt"), "oldText": "two\n", "newText": "2\n" });
    let created = json!({ "type": "diff", "path": path("b.txt"), "oldText": null, "newText": "new\n" });
    assert_eq!(contents[1..], [changed, created]);
    editor.end().assert_code(0);
}

/// ACP-1: a client with display terminals sees the output of a command live, and its exit code.
#[test]
fn a_command_runs_in_a_display_terminal() {
    let command = "echo first; sleep 0.4; echo second; exit 3";
    let capabilities = json!({ "_meta": { "terminal_output": true } });
    let (_sim, workspace, mut editor) = editor(capabilities, [bash(command), Reply::text("done")]);
    let session = editor.open(workspace.path());
    editor.prompt(&session, "go");
    let call = editor.of_kind("tool_call")[0].clone();
    let terminal = &call["_meta"]["terminal_info"]["terminal_id"];
    assert_eq!(
        call["content"],
        json!([{ "type": "terminal", "terminalId": terminal }])
    );
    let updates = editor.of_kind("tool_call_update");
    let pieces: Vec<&str> = updates
        .iter()
        .filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str())
        .collect();
    assert!(
        pieces.len() >= 2 && pieces.concat().contains("first\nsecond"),
        "{pieces:?}"
    );
    let last = updates.last().unwrap();
    assert_eq!(last["status"], "failed");
    assert_eq!(
        last["_meta"]["terminal_exit"],
        json!({ "terminal_id": terminal, "exit_code": 3, "signal": null })
    );
    editor.end().assert_code(0);
}

/// ACP-2, SAFE-6: a permission request shows the whole command, and each answer has its effect. A yes for the session
/// covers what was shown, and nothing else.
#[test]
fn permission_requests_bind_to_what_was_shown() {
    let long = format!("rm -rf old; {}", "echo some more words; ".repeat(30));
    let cases = [("once", 3), ("session", 2), ("always", 2)];
    for (option, asked) in cases {
        let ask = "touch x; curl -s http://a.localhost:9/";
        let replies = [
            bash(ask),
            bash(ask),
            bash("curl -s http://a.localhost:9/other"),
            Reply::text("done"),
        ];
        let (_sim, workspace, mut editor) = editor(json!({}), replies);
        let session = editor.open(workspace.path());
        editor.choosing(option);
        assert_eq!(editor.prompt(&session, "go"), "end_turn");
        assert_eq!(editor.asked.len(), asked, "{option}");
        let call = &editor.asked[0]["params"]["toolCall"];
        assert_eq!((&call["title"], &call["kind"]), (&json!(ask), &json!("execute")));
        assert_eq!(call["rawInput"]["command"], ask);
        assert_eq!(
            call["content"][0]["content"]["text"],
            format!("```\n$ {ask}\n```")
        );
        let kinds: Vec<&Value> = editor.asked[0]["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|option| &option["kind"])
            .collect();
        assert_eq!(
            kinds,
            ["allow_once", "allow_always", "allow_always", "reject_once"]
        );
        assert!(workspace.has("x"));
        editor.end().assert_code(0);
    }
    // A listed command can be allowed only this time.
    let (_sim, workspace, mut editor) = editor(json!({}), [bash(&long), Reply::text("done")]);
    let session = editor.open(workspace.path());
    editor.choosing("always");
    editor.prompt(&session, "go");
    assert_eq!(editor.asked[0]["params"]["toolCall"]["title"], long);
    let options = editor.asked[0]["params"]["options"].as_array().unwrap();
    assert_eq!(options.len(), 2, "{options:?}");
    assert_eq!(
        calls(&editor)[0].1,
        "failed",
        "an answer that was not offered is a no"
    );
    editor.end().assert_code(0);
}

/// ACP-2: a rejected call ends the turn without an error, and the call is shown as failed.
#[test]
fn a_rejection_ends_the_turn() {
    let (sim, workspace, mut editor) = editor(json!({}), [bash("curl -s http://a.localhost:9/")]);
    let session = editor.open(workspace.path());
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    assert_eq!(calls(&editor)[0].1, "failed");
    assert!(!editor.text().is_empty(), "the user is told");
    assert_eq!(sim.count(), 1);
    editor.end().assert_code(0);
}

/// ACP-2: a question goes by a form where the client has forms, and by options where it has not.
#[test]
fn questions_reach_the_user() {
    let ask = json!({ "question": "Which colour?", "options": ["red", "green"] });
    let replies = || [Reply::call("ask_user", ask.clone()), Reply::text("done")];
    let (sim, workspace, mut form) = editor(json!({ "elicitation": { "form": {} } }), replies());
    let session = form.open(workspace.path());
    form.answering(|_| Some(Ok(json!({ "action": "accept", "content": { "other": "blue" } }))));
    form.prompt(&session, "go");
    assert_eq!(form.asked[0]["method"], "elicitation/create");
    assert_eq!(form.asked[0]["params"]["message"], "Which colour?");
    assert!(super::support::results(&sim)[0].contains("blue"));
    form.end().assert_code(0);
    let (sim, workspace, mut plain) = editor(json!({}), replies());
    let session = plain.open(workspace.path());
    plain.choosing("2");
    plain.prompt(&session, "go");
    assert_eq!(plain.asked[0]["params"]["toolCall"]["title"], "Which colour?");
    assert!(super::support::results(&sim)[0].contains("green"));
    plain.end().assert_code(0);
    // Nothing to choose from, and no form: the model is told that nobody can answer.
    let open = Reply::call("ask_user", json!({ "question": "Why?" }));
    let (sim, workspace, mut none) = editor(json!({}), [open, Reply::text("done")]);
    let session = none.open(workspace.path());
    assert_eq!(none.prompt(&session, "go"), "end_turn");
    assert!(none.asked.is_empty());
    assert!(super::support::results(&sim)[0].contains("no user to answer"));
    none.end().assert_code(0);
}

/// ACP-1: todos are a plan, tokens and cost are reported, and the title is the session's.
#[test]
fn plan_usage_and_title() {
    let items =
        json!([{ "text": "look", "status": "completed" }, { "text": "fix", "status": "in_progress" }]);
    let replies = [
        Reply::call("todo", json!({ "items": items })),
        Reply::text("done").tokens(1000, 50).forever(),
    ];
    let (_sim, workspace, mut editor) = editor(json!({}), replies);
    workspace.config(&format!(
        "{}\n[models.\"sim-1\"]\ncontext_window = 200000\n",
        std::fs::read_to_string(workspace.config_file()).unwrap()
    ));
    let session = editor.open(workspace.path());
    editor.prompt(&session, "fix the bug");
    let plan = editor.of_kind("plan")[0];
    let expected = json!([
        { "content": "look", "priority": "medium", "status": "completed" },
        { "content": "fix", "priority": "medium", "status": "in_progress" },
    ]);
    assert_eq!(plan["entries"], expected);
    let usage = editor.of_kind("usage_update").pop().unwrap();
    assert_eq!(usage["size"], 200_000);
    assert!(usage["used"].as_u64().unwrap() >= 1050, "{usage}");
    editor.wait_for_update(|update| update["title"] == "fix the bug");
    editor.end().assert_code(0);
}

/// ACP-1: stop reasons tell a cut, a refusal and a failure apart.
#[test]
fn stop_reasons() {
    let cut = Reply::text("half").stop(Stop::MaxTokens).forever();
    let refusal = Reply::text("no").stop(Stop::Refusal).forever();
    for (reply, reason) in [(cut, "max_tokens"), (refusal, "refusal")] {
        let (_sim, workspace, mut editor) = editor(json!({}), [reply]);
        let session = editor.open(workspace.path());
        assert_eq!(editor.prompt(&session, "go"), reason);
        editor.end().assert_code(0);
    }
    let failure = Reply::default()
        .fault(Fault::status(400).message("no such thing"))
        .forever();
    let (_sim, workspace, mut editor) = editor(json!({}), [failure]);
    let session = editor.open(workspace.path());
    let id = editor.ask(&session, "go");
    let error = editor.wait(id).unwrap_err();
    assert_eq!(error["code"], -32603);
    assert!(
        error["message"].as_str().unwrap().contains("no such thing"),
        "{error}"
    );
    editor.end().assert_code(0);
}

/// ACP-1: a reply that starts over is a new message, and the user is told why.
#[test]
fn a_restarted_reply_is_a_new_message() {
    let broken = Reply::text("one two three four")
        .delta_chars(4)
        .fault(Fault::new().cut_after_events(5));
    let (_sim, workspace, mut editor) = editor(notices(), [broken, Reply::text("whole")]);
    let session = editor.open(workspace.path());
    editor.prompt(&session, "go");
    let chunks = editor.of_kind("agent_message_chunk");
    let (first, last) = (chunks.first().unwrap(), chunks.last().unwrap());
    assert_ne!(first["messageId"], last["messageId"]);
    assert_eq!(last["content"]["text"], "whole");
    assert!(
        editor.of_kind("notice")[0]["title"]
            .as_str()
            .unwrap()
            .starts_with("Retry 1")
    );
    editor.end().assert_code(0);
}

/// CMD-2, ACP-1: a prompt that is a command runs it, and no model is asked; an error is text as well.
#[test]
fn commands_never_reach_the_model() {
    let (sim, workspace, mut editor) = editor(json!({}), [Reply::text("hi")]);
    let session = editor.open(workspace.path());
    for (line, expected) in [
        ("/help", "/undo"),
        ("/mode", "auto:"),
        ("/stauts", "/status"),
        ("!echo from the shell", "$ echo from the shell"),
    ] {
        let before = editor.text().len();
        assert_eq!(editor.prompt(&session, line), "end_turn", "{line}");
        let said = editor.text().split_off(before);
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert!(
        calls(&editor)
            .iter()
            .any(|(title, status)| title == "echo from the shell" && status == "completed")
    );
    assert_eq!(sim.count(), 0);
    // A command that continues in another session: the editor keeps its id, the conversation is new.
    editor.prompt(&session, "/clear");
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    assert!(editor.text().ends_with("hi"));
    assert!(editor.updates.iter().all(|(of, _)| *of == session));
    editor.end().assert_code(0);
}

/// CMD-2: commands say the same in an editor and in a headless run.
#[test]
fn commands_say_the_same_everywhere() {
    const LINES: [&str; 11] = [
        "/help",
        "/help undo",
        "/mode",
        "/model",
        "/effort",
        "/provider",
        "/permissions",
        "/goal",
        "/agents",
        "/session",
        "/nonsense",
    ];
    let (sim, workspace, mut editor) = editor(json!({}), [Reply::text("hi")]);
    let session = editor.open(workspace.path());
    editor.prompt(&session, "hello");
    let mut said = Vec::new();
    for line in LINES {
        let before = editor.text().len();
        editor.prompt(&session, line);
        said.push(editor.text().split_off(before));
    }
    editor.end().assert_code(0);
    for (line, said) in LINES.iter().zip(said) {
        let output = workspace.run(&["exec", "--resume", &session, line]).output();
        let text = if output.stdout.is_empty() {
            &output.stderr
        } else {
            &output.stdout
        };
        assert!(
            text.contains(said.trim()),
            "{line}\n--- editor\n{said}\n--- exec\n{text}"
        );
    }
    assert_eq!(sim.count(), 1, "no command reached the model");
}

/// ACP-1: a compaction is reported to a client that can show it.
#[test]
fn a_compaction_is_shown() {
    let reply = Reply::text(&"some words about it. ".repeat(200)).forever();
    let (_sim, workspace, mut editor) = editor(notices(), [reply]);
    let session = editor.open(workspace.path());
    for number in 0..8 {
        editor.prompt(&session, &format!("question {number}"));
    }
    assert_eq!(editor.prompt(&session, "/compact"), "end_turn");
    let updates = editor.of_kind("compaction_update");
    let states: Vec<&Value> = updates.iter().map(|update| &update["status"]).collect();
    assert_eq!(states, ["in_progress", "completed"], "{:?}", editor.updates);
    assert_eq!(updates[0]["compactionId"], updates[1]["compactionId"]);
    editor.end().assert_code(0);
}

/// ACP-2: the editor's MCP servers are connected: the model finds their tools. One that makes no sense is reported.
#[test]
fn mcp_servers_are_connected() {
    let search = Reply::call("tool_search", json!({ "query": "repeats" }));
    let (sim, workspace, mut editor) = editor(notices(), [search, Reply::text("done")]);
    let script = workspace.write("server.py", include_str!("mcp_server.py"));
    let server = json!({ "name": "docs", "command": "/usr/bin/python3", "args": [script], "env": [] });
    let wrong = json!({ "name": "wrong" });
    let opened = editor.call(
        "session/new",
        json!({ "cwd": workspace.path(), "mcpServers": [server, wrong] }),
    );
    let notice = editor.wait_for_update(|update| update["sessionUpdate"] == "notice");
    assert!(notice["title"].as_str().unwrap().contains("wrong"), "{notice}");
    let asked = editor.ask(opened["sessionId"].as_str().unwrap(), "go");
    assert_eq!(editor.wait(asked).unwrap()["stopReason"], "end_turn");
    assert!(
        sim.outlines()[1].contains("mcp__docs__echo"),
        "{}",
        sim.outlines()[1]
    );
    editor.end().assert_code(0);
}

/// ACP-1: a second prompt waits for the first; a message can also be given to the running turn.
#[test]
fn prompts_queue_and_steer() {
    let replies = [bash("sleep 1"), Reply::text("first"), Reply::text("second")];
    let (sim, workspace, mut editor) = editor(json!({}), replies);
    let session = editor.open(workspace.path());
    let steer = |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let idle = editor.call("_session/steering", steer("x"));
    assert_eq!(idle["outcome"], "promptRequired");
    let one = editor.ask(&session, "one");
    editor.wait_for_update(|update| update["status"] == "in_progress");
    assert_eq!(
        editor.call("_session/steering", steer("and quickly"))["outcome"],
        "injected"
    );
    let two = editor.ask(&session, "two");
    assert_eq!(editor.wait(one).unwrap()["stopReason"], "end_turn");
    // The second turn may have answered already.
    assert!(editor.text().contains("first"), "{}", editor.text());
    assert_eq!(editor.wait(two).unwrap()["stopReason"], "end_turn");
    assert!(editor.text().ends_with("firstsecond"), "{}", editor.text());
    assert!(sim.outlines()[1].contains("and quickly"), "{}", sim.outlines()[1]);
    editor.end().assert_code(0);
}

/// ACP-1, ACP-2, SUB-3: calls and requests of a sub-agent say which agent makes them.
#[test]
fn sub_agents_are_named() {
    let replies = [
        Reply::call(
            "agent",
            json!({ "task": "fetch it", "name": "helper", "type": "coder", "isolation": "none" }),
        ),
        bash("touch by-agent; curl -s http://a.localhost:9/").when(When::new().user_contains("fetch it")),
        Reply::text("done").forever(),
    ];
    let (_sim, workspace, mut editor) = editor(json!({}), replies);
    let session = editor.open(workspace.path());
    editor.choosing("once");
    editor.prompt(&session, "go");
    let titles: Vec<String> = calls(&editor).into_iter().map(|(title, _)| title).collect();
    assert!(
        titles.iter().any(|title| title.starts_with("agent 1 ")),
        "{titles:?}"
    );
    let asked = &editor.asked[0]["params"]["toolCall"];
    assert!(
        asked["title"].as_str().unwrap().starts_with("agent 1 "),
        "{asked}"
    );
    assert!(
        asked["title"]
            .as_str()
            .unwrap()
            .contains("curl -s http://a.localhost:9/"),
        "{asked}"
    );
    editor.wait_for_update(is_text);
    editor.end().assert_code(0);
}

/// ACP-2, SAFE-7: nothing in a permission request is invisible or reorders it, and letters that look like others are
/// named.
#[test]
fn permission_requests_hide_nothing() {
    for (command, reason) in [
        ("curl http://a.example/\u{202e}gpj.hs\u{2066}", "nobody sees"),
        (
            "curl http://a\u{200b}.example/\u{e0063}\u{3164}\u{ad}",
            "nobody sees",
        ),
        ("curl http://ех\u{430}mple.org/", "another script"),
        ("curl http://example.org/", "It needs approval"),
    ] {
        let call = json!({ "command": command, "description": "x\u{1b}[2K" });
        let replies = [Reply::call("bash", call), Reply::text("done")];
        let (_sim, _workspace, mut editor) = editor(json!({}), replies);
        let session = editor.open_here();
        editor.prompt(&session, "go");
        let mut asked = editor.asked[0]["params"].clone();
        // The arguments themselves are data.
        asked["toolCall"]["rawInput"].take();
        let shown = asked.to_string();
        let hidden = |letter: &char| {
            letter.is_control() || "\u{202e}\u{2066}\u{200b}\u{e0063}\u{3164}\u{ad}".contains(*letter)
        };
        assert_eq!(shown.chars().filter(hidden).count(), 0, "{shown}");
        assert!(shown.contains(reason), "{shown}");
        assert!(!shown.contains("u001b"), "{shown}");
        editor.end();
    }
}
