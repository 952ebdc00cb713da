//! Tools, resources and prompts of MCP servers as the model sees them, through the binary.

use std::collections::BTreeSet;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Editor, PATIENCE, SimServer, Workspace};

use super::support::{results, with_replies};

const SERVER: &str = include_str!("mcp_server.py");

/// A workspace with a server in this mode, and a model with these replies.
fn session(mode: &str, rules: &str, replies: Vec<Reply>) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("server.py", SERVER);
    let own = format!(
        "[security]\n{rules}\n[mcp]\nstartup_wait_secs = 60\n[mcp_servers.plain]\ncommand = \"python3\"\nargs = \
         [\"server.py\", \"{mode}\"]\n"
    );
    workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
    (sim, workspace)
}

/// Returns the names of a server's tools in the last request.
fn offered(sim: &SimServer) -> Vec<String> {
    let requests = sim.requests();
    let last = requests.last().expect("a request");
    let names = last.seen.tools.iter().filter(|name| name.starts_with("mcp__"));
    names.cloned().collect()
}

/// Returns the user's side of the last request.
fn last_text(sim: &SimServer) -> String {
    let requests = sim.requests();
    let last = requests.last().expect("a request");
    let texts: Vec<&str> = last.seen.turns.iter().map(|turn| turn.text.as_str()).collect();
    texts.join("\n")
}

/// MCP-4: sound is named with its type and size, and structured content that does not match the schema of its tool is
/// passed on with a warning.
#[test]
fn sound_and_structured_content() {
    let call = |tool: &str| Reply::call(&format!("mcp__plain__{tool}"), json!({}));
    let replies = vec![call("sound"), call("wrong"), Reply::text("done")];
    let (sim, workspace) = session("plain", "allow = [\"mcp__*\"]", replies);
    let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
    output.assert_code(0);
    let results = results(&sim);
    assert!(
        results[0].contains("[audio, audio/wav, 12 B]") && results[0].contains("a bell"),
        "{results:?}"
    );
    assert!(results[1].contains("{\"n\":\"one\"}"), "{results:?}");
    assert!(
        output
            .stderr
            .contains("the structured result of wrong does not match its schema"),
        "{output}"
    );
}

/// MCP-4: duplicate, odd and long names become unique names that providers accept; a schema that is cyclic or refers to
/// another document is offered, and one that is too deep, too large or no object is left out.
#[test]
fn names_and_schemas_are_bounded() {
    let (sim, workspace) = session("names", "", vec![Reply::text("done")]);
    workspace
        .run(&["exec", "go"])
        .limit(PATIENCE)
        .output()
        .assert_code(0);
    let names = offered(&sim);
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!((names.len(), unique.len()), (6, 6), "{names:?}");
    let is_valid = |name: &String| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        name.len() <= 64 && name.bytes().all(is_plain)
    };
    assert!(names.iter().all(is_valid), "{names:?}");

    let (sim, workspace) = session("schemas", "", vec![Reply::text("done")]);
    let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
    output.assert_code(0);
    assert_eq!(
        offered(&sim),
        ["mcp__plain__cyclic", "mcp__plain__remote", "mcp__plain__echo"]
    );
    for said in [
        "the tool deep is left out: its schema is nested more than",
        "the tool large is left out: its schema has more than",
        "the tool list is left out: its schema is of type",
    ] {
        assert!(output.stderr.contains(said), "{output}");
    }
}

/// MCP-6: a resource that the user names as `@server:uri` is in the request, marked as what it is, in every front end;
/// one that cannot be read is said. Words of a model or of a file name nothing.
#[test]
fn resources_are_mentioned() {
    let read = "<resource name=\"@plain:note://1\">\n[resource note://1]\nthe note\n</resource>";
    let (sim, workspace) = session("plain", "", vec![Reply::text("done").forever()]);
    let run = workspace.run(&[
        "exec",
        "compare (@plain:note://1) with @other:x and @plain:note://2.",
    ]);
    let output = run.limit(PATIENCE).output();
    output.assert_code(0);
    let text = last_text(&sim);
    assert!(text.contains(read), "{text}");
    assert!(!text.contains("name=\"@other"), "{text}");
    assert!(
        output.stderr.contains("@plain:note://2 could not be read") && output.stderr.contains("no such note"),
        "{output}"
    );

    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let session_id = editor.open(workspace.path());
    editor.prompt(&session_id, "read @plain:note://1");
    editor.end().assert_code(0);
    assert!(last_text(&sim).contains(read), "{}", last_text(&sim));

    let run = workspace
        .run(&["--plain"])
        .stdin("read @plain:note://1\n/mcp plain\n");
    let output = run.limit(PATIENCE).output();
    assert!(last_text(&sim).contains(read), "{}", last_text(&sim));
    assert!(output.stdout.contains("resources: note://1"), "{output}");
}

/// MCP-6: a rule that denies the tool for resources denies naming them as well.
#[test]
fn denied_resources_are_not_read() {
    let (sim, workspace) = session("plain", "deny = [\"mcp_resource\"]", vec![Reply::text("done")]);
    let run = workspace.run(&["exec", "read @plain:note://1"]);
    let output = run.limit(PATIENCE).output();
    assert!(!last_text(&sim).contains("the note"), "{output}");
    assert!(output.stderr.contains("a rule forbids mcp_resource"), "{output}");
}

/// MCP-6, CMD-2: prompts of a server are commands: they are listed with their arguments, and one becomes the prompt.
#[test]
fn prompts_are_commands() {
    let (sim, workspace) = session("plain", "", vec![Reply::text("done").forever()]);
    let input = "go\n/help plain:greet\n/plain:greet Ada Lovelace\n/plain:greet\n";
    let output = workspace.run(&["--plain"]).stdin(input).limit(PATIENCE).output();
    assert!(output.stdout.contains("/plain:greet <who>"), "{output}");
    assert!(
        last_text(&sim).ends_with("Greet Ada Lovelace."),
        "{}",
        last_text(&sim)
    );
    assert!(
        output.stderr.contains("the argument `who` is missing"),
        "{output}"
    );

    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let session_id = editor.open(workspace.path());
    editor.prompt(&session_id, "go");
    editor.prompt(&session_id, "/plain:greet Grace");
    editor.end().assert_code(0);
    assert!(last_text(&sim).ends_with("Greet Grace."), "{}", last_text(&sim));
}

/// MCP-3: a server that does not start is mentioned in one line of the run that it fails in, although nothing waits for
/// it.
#[test]
fn a_server_that_does_not_start_is_mentioned() {
    let search = Reply::call("tool_search", json!({ "query": "echo" }));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [search, Reply::text("done")]);
    let own = "[mcp_servers.gone]\ncommand = \"no-such-program\"\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, own);
    let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
    output.assert_code(0);
    let said = "MCP server gone: it cannot be started: there is no program no-such-program";
    assert_eq!(output.stderr.matches(said).count(), 1, "{output}");
}

/// MCP-1, HOOK-4, SKILL-1: the doctor names each server, hook and skill that does not work, with the reason.
#[test]
fn the_doctor_names_what_is_broken() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, []);
    workspace.write("server.py", SERVER);
    let own = "[mcp_servers.gone]\ncommand = \"no-such-program\"\n[mcp_servers.dead]\ncommand = \"python3\"\nargs = \
               [\"server.py\", \"dead\"]\n[mcp_servers.good]\ncommand = \"python3\"\nargs = [\"server.py\"]\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, own);
    let skill = workspace.home().join("config/skills/untitled/SKILL.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    std::fs::write(&skill, "no front matter\n").unwrap();
    let hooks = workspace.home().join("config/hooks.json");
    std::fs::write(
        &hooks,
        r#"{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "true"}]}]}}"#,
    )
    .unwrap();
    let output = workspace.run(&["doctor"]).limit(PATIENCE).output();
    for said in [
        "gone: it cannot be started: there is no program no-such-program",
        "dead: it ended with exit code 1: Traceback: no module named cheese",
        "untitled/SKILL.md",
        "hooks.json",
    ] {
        let line = output.stdout.lines().find(|line| line.contains(said));
        assert!(
            line.is_some_and(|line| line.contains("problem")),
            "{said}\n{output}"
        );
    }
    let good = output.stdout.lines().find(|line| line.contains("good"));
    assert!(
        good.is_some_and(|line| line.contains("server") && line.contains("ready")),
        "{output}"
    );
}
