//! MCP servers, through the binary: a scriptable server that behaves well, badly, or not at all.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, PATIENCE, Signal, SimServer, Workspace, eventually, processes_with};

use super::support::{results, with_replies, workspace};

const SERVER: &str = include_str!("mcp_server.py");

/// Returns the settings of servers, each with its mode as its name.
fn servers(modes: &[&str]) -> String {
    let entry = |mode: &&str| {
        format!(
            "[mcp_servers.{mode}]\ncommand = \"python3\"\nargs = [\"server.py\", \"{mode}\"]\nstartup_timeout = 30\n"
        )
    };
    modes.iter().map(entry).collect()
}

/// A workspace with servers, whose calls are allowed, and a model with these replies.
fn session(modes: &[&str], more: &str, replies: Vec<Reply>) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("server.py", SERVER);
    let own = format!("[security]\nallow = [\"mcp__*\"]\n{more}\n{}", servers(modes));
    workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
    (sim, workspace)
}

const WAIT: &str = "[mcp]\nstartup_wait_secs = 60\n";

fn echo(server: &str, text: &str) -> Reply {
    Reply::call(&format!("mcp__{server}__echo"), json!({ "text": text }))
}

#[track_caller]
fn exec(workspace: &Workspace) -> Output {
    let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
    output.assert_code(0);
    output
}

/// EXT-4, MCP-2, MCP-4: a server of the settings is started, and its tools are called by the names
/// `mcp__server__tool`; an image and structured content reach the model.
#[test]
fn a_tool_of_a_server_is_called() {
    let picture = Reply::call("mcp__plain__picture", json!({}));
    let replies = vec![echo("plain", "hello"), picture, Reply::text("done")];
    let (sim, workspace) = session(&["plain"], WAIT, replies);
    exec(&workspace);
    let results = results(&sim);
    assert_eq!(results[0], "echo: hello");
    assert!(
        results[1].contains("image/png") && results[1].contains("{\"n\":1}"),
        "{results:?}"
    );
}

/// MCP-4, SAFE-6: a rule for a server covers no other whose name begins like it, and of servers whose tools would have
/// the same names only the first is used.
#[test]
fn no_server_passes_for_another() {
    let entry = |name: &str| {
        format!(
            "[mcp_servers.\"{name}\"]\ncommand = \"python3\"\nargs = [\"server.py\", \"plain\"]\nstartup_timeout = 30\n"
        )
    };
    let names = ["plain", "plain__evil", "plain.evil"];
    let own = format!(
        "[security]\nallow = [\"mcp__plain__*\"]\n{WAIT}{}",
        names.map(entry).concat()
    );
    for (tool, code) in [("mcp__plain__echo", 0), ("mcp__plain_evil__echo", 5)] {
        let replies = [Reply::call(tool, json!({ "text": "hello" })), Reply::text("done")];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        workspace.write("server.py", SERVER);
        workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
        let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
        output
            .assert_code(code)
            .assert_says("and their tools would have the same names");
    }
}

/// MCP-3, MCP-4, TOOL-2: nothing waits for servers; `tool_search` finds their tools, and `mcp_call` runs one.
#[test]
fn tools_are_found_without_waiting() {
    let replies = vec![
        Reply::call("tool_search", json!({ "query": "repeats text" })),
        Reply::call(
            "mcp_call",
            json!({ "tool": "mcp__plain__echo", "arguments": { "text": "found" } }),
        ),
        Reply::text("done"),
    ];
    let (sim, workspace) = session(&["plain", "dead"], "", replies);
    exec(&workspace);
    let results = results(&sim);
    assert!(
        results[0].contains("mcp__plain__echo") && results[0].contains("\"text\""),
        "{results:?}"
    );
    assert!(
        results[0].contains("dead is not available") && results[0].contains("cheese"),
        "{results:?}"
    );
    assert_eq!(results[1], "echo: found");
}

/// MCP-4, SAFE-9, SAFE-5: a call needs approval whatever the hints of the server say, by either way in; a rule for
/// the real tool decides about `mcp_call`.
#[test]
fn calls_need_approval() {
    let write = json!({ "text": "x" });
    let by_name = Reply::call("mcp__plain__write", write.clone());
    let wrapped = Reply::call(
        "mcp_call",
        json!({ "tool": "mcp__plain__write", "arguments": write }),
    );
    for (call, rules, runs) in [
        (by_name.clone(), "", false),
        (wrapped.clone(), "", false),
        (by_name, "allow = [\"mcp__plain__write\"]", true),
        (wrapped.clone(), "allow = [\"mcp__plain__write\"]", true),
        (wrapped.clone(), "allow = [\"mcp_call\"]", false),
        (wrapped, "allow = [\"mcp__*\"]\ndeny = [\"mcp__plain__*\"]", false),
    ] {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("done")]);
        workspace.write("server.py", SERVER);
        let own = format!("[security]\n{rules}\n{WAIT}{}", servers(&["plain"]));
        workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
        workspace.run(&["exec", "go"]).limit(PATIENCE).output();
        assert_eq!(workspace.has("effect"), runs, "{rules}");
    }
}

/// MCP-3, MCP-4: servers that die, say nonsense, send bad schemas, or have odd names cost the turn nothing: the good
/// server works, and one line says what is wrong.
#[test]
fn hostile_servers_cost_nothing() {
    for (mode, said) in [
        ("dead", "MCP server dead: it ended with exit code 1"),
        ("schemas", "the tool deep is left out: its schema is nested"),
        ("flood", "MCP server flood: "),
        ("lying", "MCP server lying: "),
    ] {
        let replies = vec![echo("plain", mode), Reply::text("done")];
        let (sim, workspace) = session(&["plain", mode], WAIT, replies);
        let output = exec(&workspace);
        assert_eq!(results(&sim), [format!("echo: {mode}")]);
        output.assert_says(said);
        assert_eq!(
            output.stderr.matches(&format!("MCP server {mode}")).count(),
            1,
            "{output}"
        );
    }
    for (mode, tool) in [("names", "mcp__names__echo"), ("schemas", "mcp__schemas__cyclic")] {
        let replies = vec![Reply::call(tool, json!({ "text": "x" })), Reply::text("done")];
        let (sim, workspace) = session(&[mode], WAIT, replies);
        exec(&workspace);
        assert_eq!(results(&sim), ["echo: x"], "{mode}");
    }
}

/// MCP-3: a server that never answers, or ends during a call, is the result of that call; the server is started
/// again for the next one.
#[test]
fn a_crash_is_the_result_of_its_call() {
    let replies = vec![
        Reply::call("mcp__plain__exit", json!({})),
        echo("plain", "again"),
        Reply::text("done"),
    ];
    let (sim, workspace) = session(&["plain"], WAIT, replies);
    exec(&workspace);
    let texts = results(&sim);
    assert!(
        texts[0].contains("stopped during the call") && texts[0].contains("out of cheese"),
        "{texts:?}"
    );
    assert_eq!(texts[1], "echo: again");

    let replies = vec![Reply::call("mcp__plain__hang", json!({})), Reply::text("done")];
    let more =
        format!("{WAIT}[mcp_servers.plain]\ntimeout = 0.5\ncommand = \"python3\"\nargs = [\"server.py\"]\n");
    let (sim, workspace) = session(&[], &more, replies);
    exec(&workspace);
    assert!(
        results(&sim)[0].contains("longer than 0.5 s"),
        "{:?}",
        results(&sim)
    );
}

/// MCP-3: after SIGKILL, no server is left running.
#[test]
fn nothing_is_left_running() {
    let replies = vec![Reply::call("mcp__marked__hang", json!({})), Reply::text("done")];
    let mark = format!("mcp-mark-{}", std::process::id());
    let more = format!(
        "{WAIT}[mcp_servers.marked]\ncommand = \"python3\"\nargs = [\"server.py\", \"plain\", \"{mark}\"]\n"
    );
    let (sim, workspace) = session(&[], &more, replies);
    let mut running = workspace.run(&["exec", "go"]).start();
    running.wait_until("the call has begun", |_| {
        sim.count() > 0 && !processes_with(&mark).is_empty()
    });
    running.signal(Signal::KILL);
    running.output();
    assert!(
        eventually(PATIENCE, || processes_with(&mark).is_empty()),
        "a server is left running"
    );
}

/// MCP-4: a tool that changed since it was used is not run without a person, whatever the rules allow.
#[test]
fn a_changed_tool_asks_again() {
    let replies = || vec![echo("changing", "x"), Reply::text("done")];
    let (sim, workspace) = session(&["changing"], WAIT, replies());
    exec(&workspace);
    assert_eq!(results(&sim), ["echo: x"]);
    workspace.write("changed", "");
    let sim = SimServer::script(super::support::script(replies()));
    let own = format!(
        "[security]\nallow = [\"mcp__*\"]\n{WAIT}{}",
        servers(&["changing"])
    );
    workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
    let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
    assert_eq!(sim.count(), 1, "{output}");
    output.assert_says("changed the definition");
}

/// MCP-4: many tools are not in the requests, which stay small and the same; they are found and called all the same.
#[test]
fn many_tools_are_deferred() {
    let modes: Vec<String> = (0..4).map(|n| format!("many{n}")).collect();
    let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
    let call = json!({ "tool": "mcp__many3__echo_many3_7", "arguments": { "text": "x" } });
    let replies = vec![
        Reply::call("tool_search", json!({ "query": "many3_7" })),
        Reply::call("mcp_call", call),
        Reply::text("done"),
    ];
    let (sim, workspace) = session(&modes, WAIT, replies);
    exec(&workspace);
    assert_eq!(results(&sim)[1], "echo: x");
    let outline = sim.outlines().join("\n");
    assert!(
        !outline.contains("Tool number 7. xxx") || results(&sim)[0].contains("many3_7"),
        "{outline}"
    );
}

/// MCP-1, SAFE-6: a project's `.mcp.json` does nothing before it is trusted; the review shows command, network and
/// environment of each server.
#[test]
fn servers_of_a_project_need_trust() {
    let file = json!({ "mcpServers": { "plain": {
        "command": "python3", "args": ["server.py", "plain"], "env": { "TOKEN": "${HOME}" }, "network": false,
    } } });
    let replies = || {
        vec![
            Reply::call("tool_search", json!({ "query": "echo" })),
            Reply::text("done"),
        ]
    };
    let (sim, workspace) = session(&[], "", replies());
    workspace.write(".mcp.json", &file.to_string());
    let output = workspace.run(&["exec", "go"]).output();
    output.assert_says(".mcp.json: not in effect, because this folder is not trusted");
    assert!(results(&sim)[0].contains("Unknown tool"), "{:?}", results(&sim));
    let listed = workspace.run(&["mcp", "list"]).output();
    assert!(!listed.assert_code(0).stdout.contains("plain"), "{listed}");

    let review = workspace.run(&["trust", "--yes"]).output();
    for text in ["python3 server.py plain", "no network", "TOKEN=${HOME}"] {
        assert!(
            review.assert_code(0).stdout.contains(text) || review.stderr.contains(text),
            "{text}\n{review}"
        );
    }
    let listed = workspace.run(&["mcp", "list"]).output();
    assert!(
        listed.assert_code(0).stdout.contains("plain  [project]"),
        "{listed}"
    );
    // A changed program ends the trust.
    workspace.write("server.py", "print('other')");
    let listed = workspace.run(&["mcp", "list"]).output();
    assert!(!listed.stdout.contains("plain"), "{listed}");
}

/// MCP-1: servers are added, listed, tested, removed, and imported from other agents; mistakes name file, line and
/// key.
#[test]
fn servers_are_managed() {
    let workspace = workspace();
    workspace.write("server.py", SERVER);
    let say = |arguments: &[&str]| workspace.run(arguments).limit(PATIENCE).output();
    say(&["mcp", "add", "fake", "--env", "A=b", "--", "python3", "server.py"]).assert_code(0);
    say(&["mcp", "add", "fake", "--", "x"])
        .assert_code(3)
        .assert_says("there is a server fake already");
    let listed = say(&["mcp", "list"]);
    assert!(
        listed
            .assert_code(0)
            .stdout
            .contains("fake  [user] python3 server.py"),
        "{listed}"
    );
    let tested = say(&["mcp", "test", "fake"]);
    assert!(
        tested
            .assert_code(0)
            .stdout
            .contains("fake: ready, fake 1 (protocol 2024-11-05)"),
        "{tested}"
    );
    assert!(tested.stdout.contains("mcp__fake__echo"), "{tested}");
    let doctor = say(&["doctor"]);
    assert!(doctor.stdout.contains("fake: ready"), "{doctor}");
    workspace.write(
        "codex.toml",
        "[mcp_servers.other]\ncommand = \"true\"\ntool_timeout_sec = 5\n",
    );
    say(&["mcp", "import", "codex", "codex.toml"]).assert_code(0);
    workspace.write(
        "claude.json",
        &json!({ "mcpServers": { "web": { "type": "http", "url": "http://127.0.0.1:1/" } } }).to_string(),
    );
    say(&["mcp", "import", "claude", "claude.json"]).assert_code(0);
    let listed = say(&["mcp", "list"]);
    assert!(
        listed.stdout.contains("other  [user] true") && listed.stdout.contains("web  [user]"),
        "{listed}"
    );
    assert!(
        say(&["mcp", "test", "other"])
            .assert_code(1)
            .stdout
            .contains("exit code 0")
    );
    say(&["mcp", "remove", "fake"]).assert_code(0);
    say(&["mcp", "remove", "fake"])
        .assert_code(3)
        .assert_says("there is no server fake");
    std::fs::write(
        workspace.home().join("config/mcp.json"),
        "{\"mcpServers\": {\n\"a\": {\"args\": []}}}",
    )
    .unwrap();
    say(&["mcp", "list"])
        .assert_code(3)
        .assert_says("mcp.json:2: mcpServers.a: a server needs");
}

/// MCP-1, CMD-1, MCP-6: `/mcp` shows state, tools, last error and log; a prompt of a server starts a turn, and its
/// resource is read.
#[test]
fn commands_show_and_use_servers() {
    let read = Reply::call("mcp_resource", json!({ "server": "plain", "uri": "note://1" }));
    let (sim, workspace) = session(&["plain", "dead"], WAIT, vec![read, Reply::text("done")]);
    let rule = "[security]\nallow = [\"mcp_resource\"]\n";
    let own = format!("{rule}{WAIT}{}", servers(&["plain", "dead"]));
    workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
    let shown = workspace.run(&["exec", "/mcp"]).limit(PATIENCE).output();
    shown.assert_code(0);
    assert!(
        shown.stdout.contains("plain") && shown.stdout.contains("[user] python3 server.py dead"),
        "{shown}"
    );
    let output = workspace
        .run(&["exec", "/plain:greet the world"])
        .limit(PATIENCE)
        .output();
    output.assert_code(0);
    assert!(
        sim.outlines()[0].contains("Greet the world"),
        "{}",
        sim.outlines()[0]
    );
    assert_eq!(results(&sim), ["[resource note://1]\nthe note"]);
    let missing = workspace.run(&["exec", "/mcp nobody"]).output();
    assert!(
        missing.stderr.contains("there is no MCP server nobody"),
        "{missing}"
    );
}

/// MCP-5: without a person, a server that asks gets no answer but a refusal, and the call goes on.
#[test]
fn nobody_to_ask_means_no() {
    let replies = vec![Reply::call("mcp__plain__ask", json!({})), Reply::text("done")];
    let (sim, workspace) = session(&["plain"], WAIT, replies);
    exec(&workspace);
    assert_eq!(results(&sim), ["answer: {\"action\": \"cancel\"}"]);
}

/// MCP-3: a server without a sandbox is not started before the user approves it, and is told what that gives up.
#[test]
fn no_sandbox_needs_approval() {
    let more = format!(
        "{WAIT}[mcp_servers.bare]\ncommand = \"python3\"\nargs = [\"server.py\"]\nsandbox = \"off\"\n"
    );
    let (sim, workspace) = session(&[], &more, vec![echo("bare", "x"), Reply::text("done")]);
    let output = exec(&workspace);
    output.assert_says("could read and change all your files");
    assert!(results(&sim)[0].contains("Unknown tool"), "{:?}", results(&sim));
    workspace.run(&["mcp", "approve", "bare"]).output().assert_code(0);
    let tested = workspace.run(&["mcp", "test", "bare"]).limit(PATIENCE).output();
    assert!(tested.assert_code(0).stdout.contains("bare: ready"), "{tested}");
}
