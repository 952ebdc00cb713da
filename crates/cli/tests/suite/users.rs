//! DIST-7: several users of one server.

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{HttpAnswer, HttpServer, PATIENCE, SimServer, SseEvents, Workspace, eventually, http};

use super::support::with_replies;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const NOBODYS: &str = "7f9c24e8-3b12-4fef-91e0-a2b6c8d0e4f1";

/// A user with a token for everything that is not administration.
struct User<'a> {
    addr: &'a str,
    token: String,
}

impl<'a> User<'a> {
    fn new(workspace: &Workspace, server: &'a HttpServer, name: &str, scopes: &[&str]) -> Self {
        let mut arguments = vec!["token", "create", name, "--user", name];
        scopes
            .iter()
            .for_each(|scope| arguments.extend(["--scope", scope]));
        let made = workspace.run(&arguments).output();
        assert_eq!(made.code, Some(0), "{made:?}");
        Self {
            addr: &server.addr,
            token: format!("Bearer {}", made.stdout.trim()),
        }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.with(method, path, body, &[])
    }

    fn with(&self, method: &str, path: &str, body: &str, more: &[(&str, &str)]) -> HttpAnswer {
        let mut headers = vec![("Authorization", self.token.as_str()), JSON];
        headers.extend(more);
        http(self.addr, method, path, &headers, body)
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let answer = self.request("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.request("POST", path, &body.to_string());
        assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
        if answer.body.is_empty() {
            Value::Null
        } else {
            answer.json()
        }
    }

    #[track_caller]
    fn session(&self) -> String {
        let begun = self.post("/api/sessions", &json!({}));
        begun["session"]["id"].as_str().unwrap().to_owned()
    }

    /// Sends a message, and waits for the end of its turn. Returns the last event.
    #[track_caller]
    fn say(&self, session: &str, text: &str) -> Value {
        let before = self.get(&format!("/api/sessions/{session}/state"))["seq"]
            .as_u64()
            .unwrap();
        self.post(
            &format!("/api/sessions/{session}/messages"),
            &json!({ "text": text }),
        );
        self.end_after(session, before)
    }

    #[track_caller]
    fn end_after(&self, session: &str, before: u64) -> Value {
        let path = format!("/api/sessions/{session}/events?after={before}");
        let stream = SseEvents::open(self.addr, &path, &[("Authorization", &self.token)]);
        let is_end = |kind: &Value| matches!(kind.as_str(), Some("final" | "failed" | "canceled"));
        stream
            .wait_for("the end", |event| is_end(&event.data["type"]))
            .data
    }

    #[track_caller]
    fn command(&self, session: &str, line: &str) -> String {
        let path = format!("/api/sessions/{session}/commands");
        let answer = self.request("POST", &path, &json!({ "line": line }).to_string());
        let json = answer.json();
        let text = json["text"].as_str().or_else(|| json["detail"].as_str());
        text.unwrap_or_default().to_owned()
    }
}

const ALL: &[&str] = &["read", "write", "approve"];

fn served(
    replies: impl IntoIterator<Item = Reply>,
    settings: &str,
    more: &[&str],
) -> (SimServer, Workspace, HttpServer) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.use_sim_with(&sim, Protocol::Anthropic, settings);
    let run = workspace.run(&["serve", "--listen", "127.0.0.1:0"]).args(more);
    // The other tests of this suite do without.
    let server = HttpServer::start(run.env("WINDLASS_MEMORY_ENABLED", "true"));
    (sim, workspace, server)
}

/// Fills the parameters of a path of the description.
fn filled(path: &str, session: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{id}" => session,
        "{call}" | "{message}" => NOBODYS,
        "{number}" => "1",
        part => {
            assert!(!part.starts_with('{'), "{path}: say here whose {part} this is");
            part
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// DIST-7, SAFE-9: every route of the server, tried with the session of another user, answers as if there were no such
/// session. Routes are taken from the description, so a new one is among them.
#[test]
fn another_users_session_does_not_exist() {
    let (_sim, workspace, server) = served([Reply::text("the answer")], "", &["--openai"]);
    let ann = User::new(&workspace, &server, "ann", ALL);
    let bob = User::new(&workspace, &server, "bob", ALL);
    let session = ann.session();
    ann.say(&session, "a zebra crosses");
    let description = ann.get("/api/openapi.json");
    let mut tried = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, route) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let parameters = route["parameters"].as_array().cloned().unwrap_or_default();
            let names_session = parameters
                .iter()
                .any(|one| one["in"] == "query" && one["name"] == "session");
            let of_path = path.contains("{id}") && !path.starts_with("/api/credentials");
            let mut attempts = Vec::new();
            if of_path {
                attempts.push(format!("{}?", filled(path, "SESSION")));
            }
            if names_session {
                attempts.push(format!("{}?session=SESSION", filled(path, NOBODYS)));
                attempts.push(format!("{}?%73ession=SESSION", filled(path, NOBODYS)));
            }
            for attempt in attempts {
                let answer = |id: &str| bob.request(&method, &attempt.replace("SESSION", id), "{}");
                let (other, none) = (answer(&session), answer(NOBODYS));
                // A description that two handlers read differently may refuse the spelling instead.
                let is_spelling = attempt.contains("%73") && other.status == 400;
                assert!(
                    other.status == 404 || is_spelling,
                    "{method} {attempt}: {other:?}"
                );
                assert_eq!(
                    other.body.replace(&session, NOBODYS),
                    none.body,
                    "{method} {attempt} tells another user's session from none"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 25, "{tried} attempts");

    // Sessions that a body or a header names.
    for body in [
        json!({ "resume": session }),
        json!({ "fork": session }),
        json!({ "id": session }),
    ] {
        assert_eq!(
            bob.request("POST", "/api/sessions", &body.to_string()).status,
            404,
            "{body}"
        );
    }
    let chat = json!({ "model": "windlass", "messages": [{ "role": "user", "content": "hi" }] });
    let named = [("X-Windlass-Session", session.as_str())];
    assert_eq!(
        bob.with("POST", "/v1/chat/completions", &chat.to_string(), &named)
            .status,
        404
    );
    let next =
        json!({ "model": "windlass", "input": "hi", "previous_response_id": format!("resp_{session}_1") });
    assert_eq!(
        bob.request("POST", "/v1/responses", &next.to_string()).status,
        404
    );

    // Lists, searches and commands.
    for path in [
        "/api/sessions",
        "/api/sessions?q=zebra",
        "/api/agents",
        "/api/questions",
    ] {
        let answer = bob.request("GET", path, "");
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains(&session), "{path}: {}", answer.body);
    }
    assert!(
        ann.request("GET", "/api/sessions?q=zebra", "")
            .body
            .contains(&session)
    );
    assert_eq!(bob.request("GET", "/api/sessions?user=ann", "").status, 403);
    assert_eq!(bob.request("GET", "/api/audit", "").status, 403);
    let own = bob.session();
    let start = session.get(..8).unwrap();
    for line in [
        "/session list --all".to_owned(),
        "/session search zebra".to_owned(),
        format!("/session show {session}"),
        format!("/session resume {start}"),
        format!("/session delete {session} --yes"),
        "/cost session --all".to_owned(),
    ] {
        let text = bob.command(&own, &line);
        assert!(
            !text.contains("crosses") && !text.contains("Resumed"),
            "{line}: {text}"
        );
    }
    assert_eq!(
        ann.request("GET", &format!("/api/sessions/{session}"), "").status,
        200
    );

    // The stream of the list.
    let list = SseEvents::open(&server.addr, "/api/events", &[("Authorization", &bob.token)]);
    let later = ann.session();
    let seen = bob.session();
    let renamed = bob.request("PATCH", &format!("/api/sessions/{seen}"), "{\"name\":\"seen\"}");
    assert_eq!(renamed.status, 200, "{renamed:?}");
    list.wait_for("bob's session", |event| event.data["id"] == json!(seen));
    assert!(!list.so_far().iter().any(|event| event.data["id"] == json!(later)));

    // The user of this machine sees own sessions, and reads others as an administrator, which is recorded.
    assert!(!server.get("/api/sessions").to_string().contains(&session));
    assert!(server.get("/api/sessions?user=*").to_string().contains(&session));
    assert!(
        server
            .get(&format!("/api/sessions/{session}/state"))
            .to_string()
            .contains("zebra")
    );
    let path = format!("/api/sessions/{session}/messages");
    assert_eq!(server.request("POST", &path, "{\"text\":\"hi\"}").status, 404);
    let audit = server.get(&format!("/api/audit?of_session={session}&action=admin_read"));
    assert_eq!(audit["rows"][0]["detail"]["of"], "ann", "{audit}");
    assert_eq!(audit["rows"][0]["credential"], "test browser", "{audit}");
    let listed = workspace.run(&["sessions", "list"]).output().stdout;
    assert!(!listed.contains(start), "{listed}");
    let listed = workspace
        .run(&["sessions", "list", "--user", "ann"])
        .output()
        .stdout;
    assert!(listed.contains(start) && listed.contains("[ann]"), "{listed}");
    let refused = workspace.run(&["exec", "--resume", &session, "hi"]).output();
    assert!(refused.stderr.contains("belongs to ann"), "{refused:?}");
}

/// DIST-7: the same key, the same memory and the same lasting answer mean each user's own.
#[test]
fn keys_memory_and_grants_are_the_users() {
    let touch = || Reply::call("bash", json!({ "command": "touch made.txt" }));
    let replies = [
        touch(),
        Reply::text("one"),
        touch(),
        Reply::text("two"),
        touch(),
        Reply::text("three"),
    ];
    let (sim, workspace, server) = served(replies, "", &["--mode", "ask"]);
    let ann = User::new(&workspace, &server, "ann", ALL);
    let bob = User::new(&workspace, &server, "bob", ALL);
    let key = json!({ "key": "main:work:signal:dm:+491234" });
    let opened = |user: &User<'_>| user.post("/api/sessions", &key)["session"]["id"].clone();
    let (of_ann, of_bob) = (opened(&ann), opened(&bob));
    assert_ne!(of_ann, of_bob);
    assert_eq!(opened(&ann), of_ann);

    let (of_ann, of_bob) = (ann.session(), bob.session());
    let saved = ann.command(&of_ann, "/memory save the launch code word is pelican");
    assert!(saved.contains("Saved") || saved.contains("saved"), "{saved}");
    assert!(ann.command(&of_ann, "/memory search pelican").contains("pelican"));
    for line in ["/memory", "/memory search pelican", "/memory list"] {
        let text = bob.command(&of_bob, line);
        assert!(
            !text.contains("pelican") || text.contains("search pelican"),
            "{line}: {text}"
        );
    }

    // Ann's lasting answer does not answer for Bob.
    let asks = |user: &User<'_>, session: &str| {
        let path = format!("/api/sessions/{session}/messages");
        user.post(&path, &json!({ "text": "make it" }));
        let mut call = None;
        eventually(PATIENCE, || {
            let state = user.get(&format!("/api/sessions/{session}/state"));
            call = state["questions"][0]["call"].as_str().map(str::to_owned);
            call.is_some()
        });
        call.unwrap()
    };
    let call = asks(&ann, &of_ann);
    ann.post(
        &format!("/api/sessions/{of_ann}/replies/{call}"),
        &json!({ "answer": "always" }),
    );
    assert_eq!(ann.end_after(&of_ann, 0)["type"], "final");
    let again = ann.session();
    assert_eq!(ann.say(&again, "make it")["type"], "final");
    let call = asks(&bob, &of_bob);
    bob.post(
        &format!("/api/sessions/{of_bob}/replies/{call}"),
        &json!({ "answer": "once" }),
    );
    assert_eq!(bob.end_after(&of_bob, 0)["type"], "final");
    let sent = sim.outlines().join("\n");
    assert_eq!(sent.matches("pelican").count(), 0, "{sent}");

    // Everything that was asked, answered and done is in the audit log, in order, and the chain is whole.
    let rows = server.get(&format!("/api/audit?of_session={of_ann}&limit=100"));
    let actions: Vec<&str> = rows["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].as_str().unwrap())
        // Reading them is recorded too.
        .filter(|action| *action != "admin_read")
        .collect();
    assert_eq!(
        actions,
        [
            "approval_asked",
            "answer_given",
            "approval_answered",
            "call_started",
            "call_ended"
        ]
    );
    assert_eq!(rows["rows"][0]["detail"]["command"], "touch made.txt");
    assert_eq!(rows["rows"][1]["detail"]["answer"], "always");
    assert_eq!(rows["rows"][1]["credential"], "ann");
    assert_eq!(rows["rows"][4]["detail"]["exit_code"], 0);
    let mut of_ann = rows["rows"].as_array().unwrap().iter().take(actions.len());
    assert!(of_ann.all(|row| row["user"] == "ann"), "{rows}");
    let verified = workspace.run(&["audit", "verify"]).output();
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let head = verified
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("head: "))
        .unwrap();
    assert_eq!(
        workspace.run(&["audit", "verify", "--head", head]).output().code,
        Some(0)
    );
    let longer = format!("99999:{}", head.split_once(':').unwrap().1);
    assert_eq!(
        workspace
            .run(&["audit", "verify", "--head", &longer])
            .output()
            .code,
        Some(1)
    );
    let listed = workspace
        .run(&["audit", "list", "--user", "bob", "--since", "1h"])
        .output()
        .stdout;
    assert!(
        listed.contains("call_started") && !listed.contains("  ann"),
        "{listed}"
    );
    let all = workspace.run(&["audit", "export"]).output().stdout;
    assert!(all.contains("token_created") && all.contains("login"), "{all}");
    assert!(!all.contains("wl_"), "{all}");
}

/// DIST-7: a user whose day is spent makes no further model calls, in any session; others do.
#[test]
fn limits_per_day() {
    let read = || Reply::call("read_file", json!({ "path": "a.txt" }));
    let replies = [read(), Reply::text("one"), Reply::text("of ann")];
    let settings = "[server.users.bob]\nmax_turns_per_day = 1\n";
    let (sim, workspace, server) = served(replies, settings, &["--mode", "auto"]);
    workspace.write("a.txt", "text\n");
    let ann = User::new(&workspace, &server, "ann", ALL);
    let bob = User::new(&workspace, &server, "bob", ALL);
    let session = bob.session();
    let end = bob.say(&session, "read it");
    assert_eq!(
        (&end["type"], &end["reason"]),
        (&json!("failed"), &json!("cost_limit")),
        "{end}"
    );
    let message = end["message"].as_str().unwrap();
    assert!(
        message.contains("1 of 1 requests") && message.contains("UTC"),
        "{message}"
    );
    assert_eq!(sim.count(), 1);
    let other = bob.session();
    assert_eq!(bob.say(&other, "again")["reason"], "cost_limit");
    assert_eq!(sim.count(), 1);
    let today = bob.get("/api/me");
    assert_eq!(
        (&today["user"], &today["today"]["turns"]),
        (&json!("bob"), &json!(1)),
        "{today}"
    );
    assert!(
        bob.command(&session, "/cost")
            .contains("Today: 0 of 1 requests left")
    );
    let free = ann.session();
    assert_eq!(ann.say(&free, "hi")["type"], "final");
    assert_eq!(ann.get("/api/me")["today"], Value::Null);
    let by_user = workspace
        .run(&["sessions", "cost", "--by", "user"])
        .output()
        .stdout;
    assert!(by_user.contains("ann") && by_user.contains("bob"), "{by_user}");
    let refused = server.get("/api/audit?user=bob&action=budget_refused");
    assert!(!refused["rows"].as_array().unwrap().is_empty());
}
