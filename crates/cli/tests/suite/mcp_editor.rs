//! MCP servers that an editor hands over, through `windlass acp`.

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Editor, PATIENCE, SimServer, Workspace, eventually, processes_with};

use super::mcp_http::Site;
use super::support::{results, script, with_replies};

const SERVER: &str = include_str!("mcp_server.py");
const WAIT: &str = "[mcp]\nstartup_wait_secs = 60\n";

fn scene(replies: Vec<Reply>) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("server.py", SERVER);
    workspace.use_sim_with(&sim, Protocol::Anthropic, WAIT);
    (sim, workspace)
}

fn echo(server: &str, text: &str) -> Reply {
    Reply::call(&format!("mcp__{server}__echo"), json!({ "text": text }))
}

/// A server in the form of an editor.
fn given(workspace: &Workspace, name: &str, mark: &str) -> Value {
    let path = workspace.path().join("server.py");
    json!({ "name": name, "command": "python3", "args": [path, "plain", mark], "env": [] })
}

/// Opens a session with these servers, and returns its id.
fn open(editor: &mut Editor, workspace: &Workspace, servers: &[Value]) -> String {
    let params = json!({ "cwd": workspace.path(), "mcpServers": servers });
    let result = editor.call("session/new", params);
    result["sessionId"].as_str().unwrap_or_default().to_owned()
}

/// ACP-2, MCP-3, SAFE-5: servers of the editor, programs and addresses, are connected for their session alone; a call of
/// theirs asks like any other, runs after a yes, and they end with the editor.
#[test]
fn servers_of_an_editor_are_connected() {
    let site = Site::start();
    let replies = vec![
        echo("given", "hello"),
        echo("remote", "there"),
        Reply::text("done").forever(),
    ];
    let (sim, workspace) = scene(replies);
    let mark = format!("acp-mark-{}", std::process::id());
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let remote = json!({ "type": "http", "name": "remote", "url": site.url("modern"), "headers": [] });
    let servers = [given(&workspace, "given", &mark), remote];
    let session = open(&mut editor, &workspace, &servers);
    editor.choosing("once");
    editor.prompt(&session, "go");
    assert_eq!(results(&sim)[0], "echo: hello");
    assert!(results(&sim)[1].contains("there"), "{:?}", results(&sim));
    assert_eq!(editor.asked.len(), 2, "{:?}", editor.asked);
    let asked = editor.asked[0].to_string();
    assert!(asked.contains("mcp__given__echo"), "{asked}");

    let other = open(&mut editor, &workspace, &[]);
    editor.prompt(&other, "go");
    let tools = sim.requests().last().expect("a request").seen.tools.clone();
    assert!(!tools.iter().any(|tool| tool.starts_with("mcp__")), "{tools:?}");
    assert!(!processes_with(&mark).is_empty());
    editor.end().assert_code(0);
    assert!(eventually(PATIENCE, || processes_with(&mark).is_empty()));
}

/// ACP-2: a session that is loaded or resumed has the servers that the editor hands over then, and a no means no. A
/// server that cannot be used is named, and costs the session nothing.
#[test]
fn servers_come_with_load_and_resume() {
    let (sim, workspace) = scene(vec![Reply::text("first")]);
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let session = open(&mut editor, &workspace, &[]);
    editor.prompt(&session, "go");
    editor.end().assert_code(0);
    drop(sim);
    for (method, choice, result) in [
        ("session/load", "once", "echo: again"),
        ("session/resume", "once", "echo: again"),
        ("session/resume", "reject", "Permission denied"),
    ] {
        let sim = SimServer::script(script([echo("given", "again"), Reply::text("done").forever()]));
        workspace.use_sim_with(&sim, Protocol::Anthropic, WAIT);
        let mut editor = Editor::connect(workspace.run(&["acp"]), json!({ "session": { "notices": {} } }));
        let broken = json!({ "name": "broken", "command": "no-such-program", "args": [], "env": [] });
        let servers = [given(&workspace, "given", "x"), broken];
        let params = json!({ "sessionId": session, "cwd": workspace.path(), "mcpServers": servers });
        editor.call(method, params);
        editor.choosing(choice);
        editor.prompt(&session, "go");
        if choice == "reject" {
            // A denial returns to the person; the next message shows what the model got.
            editor.prompt(&session, "and now?");
        }
        assert_eq!(results(&sim).last().map(String::as_str), Some(result), "{method}");
        editor.prompt(&session, "/mcp");
        let shown = editor.text();
        assert!(shown.contains("there is no program no-such-program"), "{shown}");
        editor.end().assert_code(0);
    }
}
