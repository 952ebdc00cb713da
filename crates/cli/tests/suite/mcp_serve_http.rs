//! `windlass mcp serve --http`: tokens, sessions of the protocol, streams, approvals.

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{HttpAnswer, Running, SimServer, Workspace, http};

use super::support::with_replies;

struct McpHttp {
    running: Running,
    addr: String,
    token: String,
    _sim: SimServer,
    workspace: Workspace,
}

impl McpHttp {
    fn start(scopes: &[&str], replies: impl IntoIterator<Item = Reply>) -> Self {
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let mut create = vec!["token", "create", "test"];
        scopes.iter().for_each(|scope| create.extend(["--scope", scope]));
        let token = workspace.run(&create).output().stdout.trim().to_owned();
        let mut running = workspace.run(&["mcp", "serve", "--http", "127.0.0.1:0"]).start();
        running.wait_for_stdout("/mcp\n");
        let addr = running.stdout();
        let addr = addr
            .split("http://")
            .nth(1)
            .unwrap()
            .split('/')
            .next()
            .unwrap()
            .to_owned();
        Self {
            running,
            addr,
            token,
            _sim: sim,
            workspace,
        }
    }

    fn send(&self, headers: &[(&str, &str)], body: &Value) -> HttpAnswer {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Authorization", bearer.as_str()),
        ];
        all.extend(headers);
        http(&self.addr, "POST", "/mcp", &all, &body.to_string())
    }

    /// Sends a stateless request with its headers.
    fn stateless(&self, method: &str, mut params: Value, capabilities: Value) -> HttpAnswer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "progressToken": 1,
        });
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .unwrap_or_default()
            .to_owned();
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", &name),
        ];
        self.send(&headers, &request(method, params.clone()))
    }

    fn end(self) {
        self.running.terminate();
        self.running.output();
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Returns the last message of a stream.
fn last(answer: &HttpAnswer) -> Value {
    let mut data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.next_back().unwrap()).unwrap()
}

/// MCP-8: requests without a token, with a wrong one, under another name or from another page are refused.
#[test]
fn only_tokens_get_in() {
    let server = McpHttp::start(&["write"], []);
    let body = request("ping", json!({})).to_string();
    let kind = ("Content-Type", "application/json");
    let refused = |headers: &[(&str, &str)]| http(&server.addr, "POST", "/mcp", headers, &body).status;
    assert_eq!(refused(&[kind]), 401);
    assert_eq!(refused(&[kind, ("Authorization", "Bearer wl_x_y")]), 401);
    let bearer = format!("Bearer {}", server.token);
    let good = ("Authorization", bearer.as_str());
    assert_eq!(refused(&[kind, good, ("Origin", "http://evil.example")]), 403);
    assert_eq!(refused(&[("Content-Type", "text/plain"), good]), 415);
    let answer = server.send(&[("Mcp-Session-Id", "none")], &request("ping", json!({})));
    assert_eq!(answer.status, 404);
    server.end();
}

/// MCP-8: a client with a handshake has a session, which ends with a DELETE.
#[test]
fn a_handshake_over_http() {
    let server = McpHttp::start(&["write"], [Reply::text("hello")]);
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} });
    let begun = server.send(&[], &request("initialize", params));
    assert_eq!(begun.json()["result"]["protocolVersion"], "2025-06-18");
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let session = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(
        server.send(&session, &request("ping", json!({}))).json()["result"],
        json!({})
    );
    let call = json!({ "name": "start_session", "arguments": { "prompt": "hi" }, "_meta": { "progressToken": "p" } });
    let answer = server.send(&session, &request("tools/call", call));
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream"),
        "{}",
        answer.body
    );
    assert!(answer.body.contains("notifications/progress"));
    assert_eq!(last(&answer)["result"]["structuredContent"]["answer"], "hello");
    let bearer = format!("Bearer {}", server.token);
    let headers = [session[0], ("Authorization", bearer.as_str())];
    assert_eq!(http(&server.addr, "DELETE", "/mcp", &headers, "").status, 204);
    assert_eq!(server.send(&session, &request("ping", json!({}))).status, 404);
    server.end();
}

/// MCP-8: a token without the scope `approve` has nobody to ask; with it, the stateless call is asked and repeated.
#[test]
fn approvals_need_their_scope() {
    let command = json!({ "command": "curl http://a.localhost:9/; touch asked.txt" });
    for (scopes, is_asked) in [(&["write"][..], false), (&["write", "approve"], true)] {
        let server = McpHttp::start(
            scopes,
            [Reply::call("bash", command.clone()), Reply::text("done")],
        );
        let call = json!({ "name": "start_session", "arguments": { "prompt": "go" } });
        let answer = server.stateless("tools/call", call.clone(), json!({ "elicitation": {} }));
        let result = last(&answer)["result"].clone();
        assert_eq!(result["resultType"] == "input_required", is_asked, "{result}");
        if is_asked {
            let key = result["inputRequests"]
                .as_object()
                .unwrap()
                .keys()
                .next()
                .unwrap();
            let mut again = call;
            again["inputResponses"] =
                json!({ key.as_str(): { "action": "accept", "content": { "decision": "once" } } });
            again["requestState"] = result["requestState"].clone();
            let answer = server.stateless("tools/call", again, json!({ "elicitation": {} }));
            assert_eq!(last(&answer)["result"]["structuredContent"]["answer"], "done");
        }
        assert_eq!(server.workspace.path().join("asked.txt").exists(), is_asked);
        server.end();
    }
}
