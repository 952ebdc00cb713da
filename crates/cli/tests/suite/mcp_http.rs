//! MCP servers behind a URL, through the binary: both eras, the old transport, and failures.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, PATIENCE, SimServer, Workspace, eventually};

use super::support::{results, with_replies};

const SERVER: &str = include_str!("mcp_http_server.py");

/// A server with many paths, each with a behaviour of its own.
pub(super) struct Site {
    child: Child,
    port: String,
    folder: tempfile::TempDir,
}

impl Site {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server.py");
        std::fs::write(&program, SERVER).unwrap();
        let mut child = Command::new("python3")
            .arg(&program)
            .arg(folder.path().join("log"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut port).unwrap();
        let port = port.trim().to_owned();
        Self { child, port, folder }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Returns the requests so far.
    pub(super) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the settings of servers, each with its path in its name.
    fn servers(&self, paths: &[&str], keys: &str) -> String {
        let entry = |path: &&str| format!("[mcp_servers.at-{path}]\nurl = \"{}\"\n{keys}\n", self.url(path));
        paths.iter().map(entry).collect()
    }

    /// A workspace with servers, whose calls are allowed, and a model with these replies.
    pub(super) fn session(&self, paths: &[&str], keys: &str, replies: Vec<Reply>) -> (SimServer, Workspace) {
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let own = format!(
            "[security]\nallow = [\"mcp__*\"]\n[mcp]\nstartup_wait_secs = 60\n{}",
            self.servers(paths, keys)
        );
        workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
        (sim, workspace)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn call(path: &str, tool: &str, text: &str) -> Reply {
    Reply::call(&format!("mcp__at-{path}__{tool}"), json!({ "text": text }))
}

#[track_caller]
pub(super) fn exec(workspace: &Workspace) -> Output {
    let output = workspace.run(&["exec", "go"]).limit(PATIENCE).output();
    output.assert_code(0);
    output
}

/// EXT-4, MCP-2, DIST-3: servers of both eras and of the transport before them are found out and called, with the headers
/// of the configuration and a key for each call; a redirect within the server is followed.
#[test]
fn every_era_works_behind_a_url() {
    let site = Site::start();
    for (path, version) in [
        ("modern", "2026-07-28"),
        ("legacy", "2025-11-25"),
        ("old", "2025-11-25"),
        ("moved", "2026-07-28"),
    ] {
        let keys = "headers = { \"X-Key\" = \"${NO_SUCH:-cheese}\" }";
        let replies = vec![
            call(path, "echo", path),
            call(path, "echo", "again"),
            Reply::text("done"),
        ];
        let (sim, workspace) = site.session(&[path], keys, replies);
        exec(&workspace);
        assert_eq!(results(&sim), [format!("echo: {path}"), "echo: again".to_owned()]);
        let tested = workspace.run(&["mcp", "test"]).limit(PATIENCE).output();
        let expected = format!("at-{path}: ready, fake 1 (protocol {version})");
        assert!(tested.assert_code(0).stdout.contains(&expected), "{tested}");
    }
    let log = site.log();
    assert!(
        log.iter().all(|request| request["headers"]["x-key"] == "cheese"),
        "{log:?}"
    );
    let is_call = |request: &&Value| request["headers"]["mcp-method"] == "tools/call";
    let called = log.iter().find(is_call).expect("a stateless call");
    assert_eq!(called["headers"]["mcp-name"], "echo");
    // A redirected request comes again at its new address, with the same key.
    let calls = log
        .iter()
        .filter(|request| request["path"] != "/moved" && request["body"].to_string().contains("tools/call"));
    let mut keys = Vec::new();
    for call in calls {
        let body: Value = serde_json::from_str(call["body"].as_str().expect("a body")).expect("JSON");
        let key = &body["params"]["_meta"]["windlass/idempotency-key"];
        assert!(key.is_string(), "{call}");
        if !call["headers"]["idempotency-key"].is_null() {
            assert_eq!(&call["headers"]["idempotency-key"], key);
            keys.push(key.to_string());
        }
    }
    let all = keys.len();
    keys.dedup();
    assert!(all >= 6 && keys.len() == all, "{keys:?}");
}

/// MCP-2, MCP-3: each failure of a server behind a URL at the start has a line that says so, and costs the others
/// nothing. A redirect to another server is not followed, so that it gets no keys.
#[test]
fn failures_at_the_start_are_reported() {
    let site = Site::start();
    let failing = [
        ("401", "it asks for a login; run: windlass mcp login at-401"),
        ("403", "it answered 403 Forbidden: no cheese"),
        ("500", "it answered 500 Internal Server Error: no cheese"),
        ("away", "it redirects to another address (307"),
        ("html", "the content type \"text/html\""),
        ("huge", "the server sent too much"),
        ("hang", "starting took longer than 5 s"),
    ];
    let paths: Vec<&str> = failing.iter().map(|(path, _)| *path).collect();
    let (_sim, workspace) = site.session(&paths, "startup_timeout = 5", Vec::new());
    let gone = "[mcp_servers.gone]\nurl = \"http://127.0.0.1:1/\"\n";
    let config = std::fs::read_to_string(workspace.config_file()).unwrap();
    workspace.config(&format!("{config}\n{gone}{}", site.servers(&["modern"], "")));
    let tested = workspace.run(&["mcp", "test"]).limit(PATIENCE).output();
    let line = |name: &str| {
        let begins = format!("{name}: ");
        let mut lines = tested.stdout.lines();
        lines.find(|line| line.starts_with(&begins)).unwrap_or_default()
    };
    for (path, said) in failing {
        // On a loaded machine, a large answer may take longer than the server may.
        let line = line(&format!("at-{path}"));
        let is_late = path == "huge" && line.contains("took longer");
        assert!(line.contains(said) || is_late, "{path}: {tested}");
    }
    assert!(line("gone").contains("refused"), "{tested}");
    assert!(line("at-modern").contains("ready"), "{tested}");
    tested.assert_code(1);
    let went_away = |request: &Value| {
        let host = request["headers"]["host"].as_str().unwrap_or_default();
        host.starts_with("localhost")
    };
    assert!(!site.log().iter().any(went_away), "{:?}", site.log());
}

/// MCP-2, MCP-3: each failure during a call is its result, and the next call works, also after the server forgot the
/// session.
#[test]
fn failures_during_a_call_are_results() {
    let site = Site::start();
    for path in ["modern", "legacy"] {
        let failing = [
            ("fail", "it answered 500 Internal Server Error: out of cheese"),
            ("html", "the content type \"text/html\""),
            ("cut", "MCP server at-"),
            ("huge", "it sent too much"),
            ("flood", "it sent too much"),
            ("login", "it asks for a login"),
            ("forget", "forgotten"),
        ];
        let mut replies: Vec<Reply> = failing
            .iter()
            .flat_map(|(tool, _)| [call(path, tool, ""), call(path, "echo", tool)])
            .collect();
        replies.push(Reply::text("done"));
        let (sim, workspace) = site.session(&[path], "", replies);
        exec(&workspace);
        let texts = results(&sim);
        for ((tool, said), pair) in failing.iter().zip(texts.chunks(2)) {
            assert!(pair[0].contains(said), "{path} {tool}: {texts:?}");
            assert_eq!(pair[1], format!("echo: {tool}"), "{path}: {texts:?}");
        }
    }
    // A call that takes too long is canceled: the server sees the end of the connection.
    let (sim, workspace) = site.session(
        &["modern"],
        "timeout = 1",
        vec![call("modern", "hang", ""), Reply::text("done")],
    );
    exec(&workspace);
    let texts = results(&sim);
    assert!(texts[0].contains("the call took longer than 1 s"), "{texts:?}");
    let hung_up = || site.log().iter().any(|request| request["body"] == "hung up");
    assert!(eventually(PATIENCE, hung_up), "the call goes on");
}
