//! Pages and searches.

use serde_json::json;
use windlass_sim::{Protocol, Reply};

use super::egress::Server;
use super::support::{results, with_replies};

fn fetch(url: &str) -> Reply {
    Reply::call("fetch", json!({ "url": url }))
}

/// TOOL-10: `fetch` asks about a host, once for the session if the user says so.
#[test]
fn a_page_asks_about_its_host() {
    for (answers, expected) in [("s\ns\n", 1), ("y\ny\n", 2)] {
        let replies = [
            fetch("http://pages.invalid/a?note=abc"),
            fetch("http://pages.invalid/b"),
            Reply::text("fine"),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let output = workspace.run_on_terminal("exec go").stdin(answers).output();
        let asked = output
            .stdout
            .matches("sends this address to another machine")
            .count();
        assert_eq!(asked, expected, "{output}");
        assert_eq!(sim.requests().len(), 3, "{output}");
    }
}

/// TOOL-10: a list of hosts allows these pages without a question; others are refused where nobody can be asked.
/// Without a list, a rule or a person, the tool is not offered.
#[test]
fn hosts_are_allowed_by_a_list() {
    let server = Server::start(|_| ("text/plain".to_owned(), b"a page".to_vec()));
    let url = format!("http://localhost:{}/x", server.port);
    let replies = || {
        [
            fetch(&url),
            fetch("http://example.org/?note=abc"),
            Reply::text("fine"),
        ]
    };
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies());
    let allowed = ["exec", "go", "-c", "security.network=[\"localhost\"]"];
    workspace.run(&allowed).output().assert_code(0);
    let results = results(&sim);
    assert!(results[0].contains("a page"), "{results:?}");
    assert!(results[1].contains("no rule allows this host"), "{results:?}");
    let tools = sim.requests()[0].body["tools"].to_string();
    assert!(tools.contains("\"fetch\""), "{tools}");

    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let tools = sim.requests()[0].body["tools"].to_string();
    assert!(!tools.contains("\"fetch\""), "{tools}");
}

/// TOOL-10, TOOL-2: `web_search` asks the configured engine, and is not offered without one.
#[test]
fn a_search_goes_to_the_configured_engine() {
    let found = json!({ "title": "Ropes", "url": "https://ropes.example/", "content": "All about\n ropes.",
        "description": "All about ropes." });
    let answer = json!({ "results": [found], "web": { "results": [found] } }).to_string();
    let server = Server::start(move |_| ("application/json".to_owned(), answer.clone().into_bytes()));
    for (engine, path, line) in [
        ("searxng", "", "GET /search?q=strong+rope&format=json"),
        ("brave", "/web", "GET /web?q=strong+rope&count=3"),
        ("tavily", "/find", "POST /find"),
    ] {
        let call = Reply::call("web_search", json!({ "query": "strong rope", "count": 3 }));
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        let engine_setting = format!("tools.web_search.engine={engine}");
        let url = format!("tools.web_search.url=http://127.0.0.1:{}{path}", server.port);
        let run = workspace.run(&["exec", "go", "-c", &engine_setting, "-c", &url]);
        let run = run.env("BRAVE_API_KEY", "b").env("TAVILY_API_KEY", "t");
        run.output().assert_code(0);
        assert_eq!(
            results(&sim)[0],
            "1. Ropes\n   https://ropes.example/\n   All about ropes.",
            "{engine}"
        );
        let asked = server.asked.lock().unwrap().last().cloned().unwrap_or_default();
        assert!(asked.starts_with(line), "{engine}: {asked}");
    }
    let call = || Reply::call("web_search", json!({ "query": "strong rope" }));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [call(), Reply::text("fine")]);
    let output = workspace
        .run(&["exec", "go", "-c", "tools.web_search.engine=brave"])
        .output();
    output.assert_code(0);
    assert!(results(&sim)[0].contains("BRAVE_API_KEY"), "{:?}", results(&sim));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [call(), Reply::text("fine")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let tools = sim.requests()[0].body["tools"].to_string();
    assert!(!tools.contains("web_search"), "{tools}");
}
