//! `windlass serve`: sessions over HTTP.

use std::net::TcpStream;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{HttpServer, PATIENCE, Signal, SimServer, SseEvents, Workspace, eventually, http};

use super::support::{repository_file, with_replies};

/// Headers of a request.
type Headers<'a> = &'a [(&'a str, &'a str)];

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Starts a server on a free port.
pub(super) fn serve(workspace: &Workspace, more: &[&str]) -> HttpServer {
    let run = workspace.run(&["serve", "--listen", "127.0.0.1:0"]);
    HttpServer::start(run.args(more))
}

fn served(replies: impl IntoIterator<Item = Reply>, more: &[&str]) -> (SimServer, Workspace, HttpServer) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let server = serve(&workspace, more);
    (sim, workspace, server)
}

fn write(path: &str) -> Reply {
    Reply::call("write_file", json!({ "path": path, "content": "new\n" }))
}

/// SRV-1, SRV-2, EVT-6: a turn over HTTP has the same events as in the terminal, in order and once, for a client that
/// was there from the start and for one that comes back in the middle.
#[test]
fn events_arrive_in_order_and_are_resumed_exactly() {
    let (_sim, _workspace, server) = served([write("a.txt"), Reply::text("finished")], &["--mode", "auto"]);
    let session = server.session();
    let all = server.events(&format!("/api/events?session={session}&after=0"));
    let sent = server.say(&session, "go");
    assert_eq!((&sent["seq"], &sent["is_waiting"]), (&json!(1), &json!(false)));
    all.wait_for("the end", |event| event.data["type"] == "final");
    let states = all.states();
    let numbers: Vec<u64> = states.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=states.len() as u64).collect::<Vec<_>>());
    let schema: Value = serde_json::from_str(&repository_file("docs/events.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let events = all.so_far();
    for event in events.iter().filter(|event| event.name.is_empty()) {
        assert!(schema.is_valid(&event.data), "{event:?}");
        let is_live = matches!(
            event.data["type"].as_str(),
            Some("delta" | "tool_output" | "status")
        );
        assert_eq!(event.id.is_none(), is_live, "{event:?}");
    }
    let hello = all.wait_for("the hello", |event| event.name == "hello");
    for after in [0, 3, states.len() as u64] {
        let later = server.events(&format!("/api/sessions/{session}/events?after={after}"));
        let expected: Vec<_> = states
            .iter()
            .filter(|(number, _)| *number > after)
            .cloned()
            .collect();
        later.wait_for("what is written now", |event| event.name == "live");
        assert_eq!(later.states(), expected, "after {after}");
        let again = later.wait_for("the hello", |event| event.name == "hello");
        assert_eq!(again.data["epoch"], hello.data["epoch"]);
        assert_eq!(again.data["seq"], json!(states.len()));
    }
    // By the header of a browser that reconnects by itself.
    let cookie = [("Cookie", server.cookie.as_str()), ("Last-Event-ID", "3")];
    let path = format!("/api/events?session={session}&after=0");
    let later = SseEvents::open(&server.addr, &path, &cookie);
    later.wait_for("what is written now", |event| event.name == "live");
    assert_eq!(later.states().first().map(|(number, _)| *number), Some(4));
    // A number of the future, and one of another run of the server.
    for query in ["after=999", "after=1&epoch=other"] {
        let lost = server.events(&format!("/api/sessions/{session}/events?{query}"));
        let resync = lost.wait_for("a resync", |event| event.name == "resync");
        assert_eq!(resync.data["seq"], json!(states.len()));
        lost.wait_for_end();
    }
    let state = server.get(&format!("/api/sessions/{session}/state"));
    assert_eq!(state["seq"], json!(states.len()));
    assert_eq!(state["entries"].as_array().unwrap().len(), states.len());
    let page = server.get(&format!("/api/sessions/{session}/entries?before=4&limit=2"));
    let numbers: Vec<_> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["seq"])
        .collect();
    assert_eq!(
        (numbers, &page["has_more"]),
        (vec![&json!(2), &json!(3)], &json!(true))
    );
}

/// SRV-1: a message that is sent again is accepted once, also after the server was killed.
#[test]
fn a_repeated_message_is_accepted_once() {
    let (sim, workspace, server) = served([Reply::text("one"), Reply::text("two")], &[]);
    let session = server.session();
    let path = format!("/api/sessions/{session}/messages");
    let message = json!({ "id": "0b9d6f0e-8f6c-4d0e-9a53-6c9a6a5f0a11", "text": "hi" });
    let first = server.post(&path, &message);
    assert_eq!(server.post(&path, &message), first);
    server.wait_idle(&session);
    server.running.signal(Signal::KILL);
    server.running.output();
    let server = serve(&workspace, &[]);
    assert_eq!(server.post(&path, &message), first);
    server.wait_idle(&session);
    assert_eq!(sim.count(), 1);
    let other = json!({ "id": "0b9d6f0e-8f6c-4d0e-9a53-6c9a6a5f0a12", "text": "hi" });
    assert_ne!(server.post(&path, &other)["seq"], first["seq"]);
    server.wait_idle(&session);
    assert_eq!(sim.count(), 2);
}

/// SRV-2, SRV-4: a question is state: every client sees it, the first answer counts, and a later one hears who was
/// first.
#[test]
fn the_first_answer_counts() {
    let (_sim, workspace, server) = served([write("a.txt"), Reply::text("finished")], &["--mode", "ask"]);
    let session = server.session();
    let list = server.events("/api/events");
    let watching = server.events(&format!("/api/sessions/{session}/events?after=0"));
    server.say(&session, "go");
    let question = server.question(&session);
    assert_eq!(question["request"]["type"], "permission_request");
    assert_eq!(question["is_interrupted"], false);
    list.wait_for("the badge", |event| {
        event.name == "session" && event.data["asks"] == 1
    });
    let call = question["call"].as_str().unwrap();
    assert_eq!(server.get("/api/questions")["questions"][0]["call"], call);
    let path = format!("/api/sessions/{session}/replies/{call}");
    let wrong = server.request("POST", &path, &json!({ "text": "yes" }).to_string());
    assert_eq!(
        (wrong.status, wrong.json()["field"].clone()),
        (400, json!("text"))
    );
    server.post(&path, &json!({ "answer": "once" }));
    let late = server.request("POST", &path, &json!({ "answer": "no" }).to_string());
    assert_eq!(
        (late.status, late.json()["by"].clone()),
        (409, json!("test browser"))
    );
    let told = watching.wait_for("who answered", |event| event.name == "answered");
    assert_eq!(
        (&told.data["call"], &told.data["by"]),
        (&json!(call), &json!("test browser"))
    );
    let unknown = server.request(
        "POST",
        &format!("/api/sessions/{session}/replies/none"),
        "{\"answer\":\"no\"}",
    );
    assert_eq!(unknown.status, 404);
    server.wait_idle(&session);
    assert_eq!(workspace.read("a.txt"), "new\n");
}

/// SRV-2: a question outlives the process that asked it. Its answer continues the work, and allows that call only.
#[test]
fn a_question_outlives_the_server() {
    let replies = [
        write("a.txt"),
        write("a.txt"),
        write("b.txt"),
        Reply::text("finished"),
    ];
    let (_sim, workspace, server) = served(replies, &["--mode", "ask"]);
    let session = server.session();
    server.say(&session, "go");
    let before = server.question(&session);
    server.running.signal(Signal::KILL);
    server.running.output();
    let server = serve(&workspace, &["--mode", "ask"]);
    let after = server.question(&session);
    assert_eq!(
        (&after["call"], &after["is_interrupted"]),
        (&before["call"], &json!(true))
    );
    let path = format!(
        "/api/sessions/{session}/replies/{}",
        before["call"].as_str().unwrap()
    );
    server.post(&path, &json!({ "answer": "once" }));
    let late = server.request("POST", &path, "{\"answer\":\"no\"}");
    assert_eq!(late.status, 409);
    // The second file is another call.
    let next = || server.get(&format!("/api/sessions/{session}/state"))["questions"][0].clone();
    assert!(
        eventually(PATIENCE, || next()["request"]["subjects"] == json!(["b.txt"])),
        "{}",
        next()
    );
    assert!(workspace.has("a.txt") && !workspace.has("b.txt"));
    let call = next()["call"].as_str().unwrap().to_owned();
    server.post(
        &format!("/api/sessions/{session}/replies/{call}"),
        &json!({ "answer": "no" }),
    );
    server.wait_idle(&session);
    assert!(!workspace.has("b.txt"));
}

/// SRV-2: an answer to an interrupted question reaches its call also if nobody watches the session: the answer is the
/// first that the new process hears of it.
#[test]
fn an_answer_needs_no_watcher() {
    let replies = [write("a.txt"), write("a.txt"), Reply::text("finished")];
    let (_sim, workspace, server) = served(replies, &["--mode", "ask"]);
    let session = server.session();
    server.say(&session, "go");
    let call = server.question(&session)["call"].as_str().unwrap().to_owned();
    server.running.signal(Signal::KILL);
    server.running.output();
    let server = serve(&workspace, &["--mode", "ask"]);
    server.post(
        &format!("/api/sessions/{session}/replies/{call}"),
        &json!({ "answer": "once" }),
    );
    assert!(eventually(PATIENCE, || workspace.has("a.txt")));
}

/// SRV-2: an interrupted question that is refused is closed for good.
#[test]
fn a_question_can_be_refused_after_a_restart() {
    let (_sim, workspace, server) = served([write("a.txt")], &["--mode", "ask"]);
    let session = server.session();
    server.say(&session, "go");
    let call = server.question(&session)["call"].as_str().unwrap().to_owned();
    server.running.signal(Signal::KILL);
    server.running.output();
    let server = serve(&workspace, &["--mode", "ask"]);
    server.question(&session);
    server.post(
        &format!("/api/sessions/{session}/replies/{call}"),
        &json!({ "answer": "no" }),
    );
    let state = server.get(&format!("/api/sessions/{session}/state"));
    assert_eq!(state["questions"], json!([]));
    assert_eq!(server.get("/api/questions")["questions"], json!([]));
    assert!(!workspace.has("a.txt"));
}

/// SRV-1, SES-10: messages to a busy session wait, can be taken back, and a turn can be stopped.
#[test]
fn the_queue_and_the_turn_are_controlled() {
    let (_sim, _workspace, server) = served([write("a.txt"), Reply::text("next")], &["--mode", "ask"]);
    let session = server.session();
    server.say(&session, "go");
    server.question(&session);
    let path = format!("/api/sessions/{session}");
    let busy = server.request(
        "POST",
        &format!("{path}/messages"),
        "{\"text\":\"x\",\"on_busy\":\"refuse\"}",
    );
    assert_eq!((busy.status, busy.json()["title"].clone()), (409, json!("busy")));
    let first = server.say(&session, "dropped");
    let second = server.say(&session, "kept");
    assert_eq!(first["is_waiting"], true);
    let queue = |server: &HttpServer| server.get(&format!("{path}/state"))["overview"]["queue"].clone();
    assert_eq!(queue(&server).as_array().unwrap().len(), 2);
    let dropped = format!("{path}/queue/{}", first["id"].as_str().unwrap());
    assert_eq!(server.request("DELETE", &dropped, "").status, 200);
    assert_eq!(server.request("DELETE", &dropped, "").status, 404);
    assert_eq!(queue(&server)[0]["id"], second["id"]);
    let waits = server.get(&format!("{path}/why"));
    assert_eq!(waits["waits"][1]["on"], "approval", "{waits}");
    assert_eq!(
        server.post(&format!("{path}/cancel"), &json!({})),
        json!({ "was_running": true })
    );
    server.wait_idle(&session);
    server.post(&format!("{path}/queue"), &json!({}));
    assert!(eventually(PATIENCE, || queue(&server) == json!([])));
    server.wait_idle(&session);
    assert_eq!(
        server.post(&format!("{path}/cancel"), &json!({})),
        json!({ "was_running": false })
    );
}

/// SRV-1, UNDO-1: checkpoints, diffs in parts, undo and redo.
#[test]
fn changes_are_shown_and_undone() {
    let edit = json!({ "path": "a.txt", "old_string": "old", "new_string": "new" });
    let replies = [
        Reply::call("read_file", json!({ "path": "a.txt" })),
        Reply::call("edit_file", edit),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "one\nold\n");
    let server = serve(&workspace, &["--mode", "auto"]);
    let session = server.session();
    server.say(&session, "go");
    server.wait_idle(&session);
    let path = format!("/api/sessions/{session}");
    let checkpoints = server.get(&format!("{path}/checkpoints"));
    let number = checkpoints["checkpoints"][0]["number"].as_u64().unwrap();
    let changes = server.get(&format!("{path}/changes/{number}"));
    let change = &changes["changes"][0];
    assert_eq!(
        (&change["path"], &change["what"]),
        (&json!("a.txt"), &json!("modified"))
    );
    let lines = change["hunks"][0]["lines"].as_array().unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| (line["kind"].as_str().unwrap(), line["text"].as_str().unwrap()))
        .collect();
    assert_eq!(lines, [("context", "one"), ("removed", "old"), ("added", "new")]);
    assert_eq!(
        server.request("GET", &format!("{path}/changes/99"), "").status,
        404
    );
    server.post(&format!("{path}/undo"), &json!({}));
    assert_eq!(workspace.read("a.txt"), "one\nold\n");
    server.post(&format!("{path}/redo"), &json!({}));
    assert_eq!(workspace.read("a.txt"), "one\nnew\n");
    assert!(
        server.get(&format!("{path}/context"))["report"]
            .as_str()
            .unwrap()
            .contains("system prompt")
    );
    let next = server.get(&format!("{path}/context"))["next"].clone();
    let spans = next["spans"].as_array().unwrap();
    let origins: Vec<&str> = spans.iter().filter_map(|span| span["origin"].as_str()).collect();
    for origin in ["options", "system", "tools", "message", "frame"] {
        assert!(origins.contains(&origin), "{origin}: {origins:?}");
    }
    let sum = |key: &str| spans.iter().map(|span| span[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (Some(sum("bytes")), Some(sum("tokens"))),
        (next["bytes"].as_u64(), next["tokens"].as_u64())
    );
    let said = spans
        .iter()
        .find(|span| span["role"] == "user" && span["what"].as_str().unwrap().contains("go"));
    assert!(
        said.is_some_and(|span| span["age_ms"].is_u64() && span["message"].is_string()),
        "{next}"
    );
    assert!(
        next["used_tokens"].as_u64() > Some(0) && next["window"].as_u64() > Some(0),
        "{next}"
    );
    assert!(server.get(&format!("{path}/cost?by=cause"))["spent"].is_array());
    let page = server.request("GET", &format!("/s/{session}/plain"), "");
    assert!(
        page.body.contains("<h2>You</h2>") && page.body.contains("done"),
        "{}",
        page.body
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("default-src 'none';")
    );
}

/// SAFE-3: no session works in a folder of the kernel, whose entries tell about processes, or in a denied one; those of a process
/// cannot be read as files either.
#[test]
fn folders_of_sessions_are_checked() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let keys = workspace.user_home().join(".ssh");
    std::fs::create_dir_all(keys.join("below")).unwrap();
    std::os::unix::fs::symlink("/proc/self", workspace.path().join("me")).unwrap();
    let server = serve(&workspace, &[]);
    for place in [
        "/proc".to_owned(),
        "/proc/self".to_owned(),
        "/sys".to_owned(),
        "/dev/shm".to_owned(),
        workspace.path().join("me").display().to_string(),
        keys.display().to_string(),
        keys.join("below").display().to_string(),
    ] {
        for body in [
            json!({ "place": place }),
            json!({ "key": "agent:desk:main", "place": place }),
        ] {
            let answer = server.request("POST", "/api/sessions", &body.to_string());
            assert_eq!(answer.json()["field"], "place", "{place}: {}", answer.body);
        }
    }
    let session = server.session();
    for path in ["me/environ", "/proc/self/environ", "/proc/1/status"] {
        let read = format!("/api/files/content?session={session}&path={path}");
        assert_eq!(server.request("GET", &read, "").status, 403, "{path}");
    }
}

/// SRV-1, SAFE-3: files are found and read under the limits of the file tools; images are known by their content.
#[test]
fn files_have_the_limits_of_the_tools() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("seen")]);
    workspace.write("src/main.rs", "fn main() {}\n");
    workspace.write(".env", "SECRET=1\n");
    workspace.write("page.html", "<script>1</script>");
    let server = serve(&workspace, &[]);
    let session = server.session();
    let found = server.get(&format!("/api/files?session={session}&q=main"));
    assert_eq!(found["files"], json!(["src/main.rs"]));
    let read = |path: &str| {
        server.request(
            "GET",
            &format!("/api/files/content?session={session}&path={path}"),
            "",
        )
    };
    let page = read("page.html");
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    assert_eq!(page.header("content-disposition"), Some("attachment"));
    for denied in [
        ".env",
        "/etc/shadow",
        "../../../../etc/hostname",
        "%2fetc%2fpasswd",
        "none.txt",
    ] {
        let answer = read(denied);
        assert_eq!(
            (answer.status, answer.json()["field"].clone()),
            (403, json!("path")),
            "{denied}"
        );
        assert!(!answer.body.contains("SECRET=1"));
    }
    let image = json!({ "name": "x.png", "data": "iVBORw0KGgo=" });
    let upload = server.post("/api/uploads", &image);
    assert_eq!(upload["mime"], "image/png");
    let message = json!({ "text": "look", "uploads": [upload["id"]] });
    server.post(&format!("/api/sessions/{session}/messages"), &message);
    let state = server.wait_idle(&session);
    assert!(state.to_string().contains("image/png"));
    for (body, field) in [
        (json!({ "name": "x.svg", "data": "PHN2Zz4=" }), "data"),
        (json!({ "name": "x", "data": "%%%" }), "data"),
        (json!({ "name": "x" }), "data"),
    ] {
        let refused = server.request("POST", "/api/uploads", &body.to_string());
        assert_eq!(
            (refused.status, refused.json()["field"].clone()),
            (400, json!(field)),
            "{body}"
        );
    }
    let file = |mime: &str, data: &str| json!({ "type": "binary", "data": { "path": "x", "mime": mime, "data": data } });
    for odd in [
        file("image/png", "!!!!"),
        file("image/png", "PHN2Zz4="),
        file("image/png\r\nX-Evil: 1", "iVBORw0KGgo="),
        file("", "iVBORw0KGgo="),
    ] {
        let message = json!({ "parts": [odd] }).to_string();
        let refused = server.request("POST", &format!("/api/sessions/{session}/messages"), &message);
        assert_eq!(
            (refused.status, refused.json()["field"].clone()),
            (400, json!("parts[0].data")),
            "{message}: {}",
            refused.body
        );
    }
}

/// SRV-3: each check refuses with its own status and names itself, in the order of the checks.
#[test]
fn checks_refuse_in_order() {
    let (_sim, _workspace, server) = served([], &[]);
    let cookie = ("Cookie", server.cookie.as_str());
    let evil = ("Origin", "http://evil.example");
    let own = format!("http://{}", server.addr);
    let cases: &[(Headers<'_>, u16, &str)] = &[
        (&[("Host", "evil.example"), evil], 421, "host"),
        (&[("Host", "evil.example:4747"), cookie], 421, "host"),
        (&[evil, cookie], 403, "origin"),
        (&[("Origin", "null"), cookie], 403, "origin"),
        (
            &[("Origin", &own), ("Sec-Fetch-Site", "cross-site"), cookie],
            403,
            "sec_fetch_site",
        ),
        (&[("Sec-Fetch-Site", "same-site"), cookie], 403, "sec_fetch_site"),
        (&[("Origin", &own), evil, cookie, JSON], 403, "origin"),
        (
            &[
                ("Sec-Fetch-Site", "none"),
                ("Sec-Fetch-Site", "cross-site"),
                cookie,
            ],
            403,
            "sec_fetch_site",
        ),
        (&[("Origin", &own)], 401, "credential"),
        (
            &[("Authorization", "Bearer wl_0123456789ab_00")],
            401,
            "credential",
        ),
        (&[cookie], 415, "content_type"),
        (&[cookie, ("Content-Type", "text/plain")], 415, "content_type"),
        (
            &[cookie, ("Content-Type", "application/x-www-form-urlencoded")],
            415,
            "content_type",
        ),
        (&[cookie, JSON], 403, "header"),
    ];
    for (headers, status, check) in cases {
        let answer = http(&server.addr, "POST", "/api/sessions", headers, "{}");
        let problem = answer.json();
        assert_eq!(
            (answer.status, problem["check"].as_str()),
            (*status, Some(*check)),
            "{headers:?}"
        );
        assert!(problem["fix"].is_string(), "{problem}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    // A whole address in the first line counts like a `Host`.
    for (host, status) in [("evil.example", 421), (server.addr.as_str(), 200)] {
        let target = format!("http://{host}/api/sessions");
        let answer = http(&server.addr, "GET", &target, &[cookie], "");
        assert_eq!(answer.status, status, "{target}");
    }
    assert_eq!(server.get("/api/sessions")["sessions"], json!([]));
    for (body, found) in [
        ("[]", "a list"),
        ("null", "null"),
        (" \"x\"", "a string"),
        ("-1", "a number"),
        ("true", "a truth value"),
    ] {
        let refused = server.request("POST", "/api/sessions", body);
        let expected = format!("expected a JSON object, found {found}");
        assert_eq!(
            (refused.status, refused.json()["detail"].as_str()),
            (400, Some(expected.as_str())),
            "{body}"
        );
    }
    let good = [
        cookie,
        JSON,
        ("X-Windlass", "1"),
        ("Origin", own.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    assert_eq!(
        http(&server.addr, "POST", "/api/sessions", &good, "{}").status,
        201
    );
}

/// SRV-3: of many requests without, with wrong, revoked or borrowed credentials, or from wrong places, none succeeds on
/// any route; valid credentials work all the while.
#[test]
fn nobody_gets_in() {
    let proxy = [
        "--trust-proxy",
        "127.0.0.2",
        "--identity-header",
        "X-Forwarded-User",
    ];
    let arguments: Vec<&str> = proxy.into_iter().chain(["--identity", "*", "--openai"]).collect();
    let (_sim, workspace, server) = served([], &arguments);
    let token = workspace
        .run(&["token", "create", "gone", "--scope", "admin"])
        .output()
        .stdout;
    workspace.run(&["token", "revoke", "gone"]).output();
    let revoked = format!("Bearer {}", token.trim());
    let stolen = format!("Bearer {}", server.cookie.split_once('=').unwrap().1);
    let link = workspace.run(&["token", "link"]).output().stdout;
    let link = format!("Bearer {}", link.trim().split_once("#t=").unwrap().1);
    let half = format!("{}0", server.cookie.get(..server.cookie.len() - 1).unwrap());
    let fakes: &[&[(&str, &str)]] = &[
        &[],
        &[("Authorization", "Bearer ")],
        &[("Authorization", "Basic d2luZGxhc3M6")],
        &[("Authorization", &revoked)],
        &[("Authorization", &stolen)],
        &[("Authorization", &link)],
        &[("Cookie", &half)],
        &[("Cookie", "windlass=1")],
        &[("X-Forwarded-User", "ann")],
        &[("X-Forwarded-User", "ann"), ("X-Forwarded-For", "127.0.0.2")],
        &[("Cookie", &server.cookie), ("Host", "evil.example")],
        &[("Cookie", &server.cookie), ("Origin", "https://evil.example")],
        &[("Cookie", &server.cookie), ("Sec-Fetch-Site", "cross-site")],
    ];
    let document: Value = serde_json::from_str(&repository_file("docs/openapi.json")).unwrap();
    let mut count = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let filled = path
            .replace("{id}", "x")
            .replace("{call}", "x")
            .replace("{message}", "x")
            .replace("{number}", "1");
        for (method, operation) in operations.as_object().unwrap() {
            if operation["security"].is_null() {
                continue;
            }
            for fake in fakes {
                let headers: Vec<_> = fake.iter().copied().chain([JSON, ("X-Windlass", "1")]).collect();
                let answer = http(&server.addr, &method.to_uppercase(), &filled, &headers, "{}");
                assert!(
                    matches!(answer.status, 401 | 403 | 421 | 429),
                    "{method} {path} {fake:?}: {}",
                    answer.status
                );
                count += 1;
            }
        }
    }
    assert!(count > 300, "{count}");
    assert_eq!(server.request("GET", "/api/sessions", "").status, 200);
    assert_eq!(server.request("GET", "/api/none", "").status, 404);
    let wrong = [("Authorization", "Bearer wl_0_0")];
    assert_eq!(http(&server.addr, "GET", "/api/none", &wrong, "").status, 429);
}

/// SRV-3: a token has the scopes it was given, and stops working when it is revoked, in open streams too.
#[test]
fn tokens_have_scopes_and_can_be_revoked() {
    let (_sim, workspace, server) = served([], &[]);
    let session = server.session();
    let create = |scope: &str| {
        let made = workspace
            .run(&["token", "create", scope, "--scope", scope])
            .output();
        format!("Bearer {}", made.stdout.trim())
    };
    let (read, write, approve) = (create("read"), create("write"), create("approve"));
    let status = |token: &str, method: &str, path: &str| {
        http(
            &server.addr,
            method,
            path,
            &[("Authorization", token), JSON],
            "{}",
        )
        .status
    };
    let messages = format!("/api/sessions/{session}/messages");
    let replies = format!("/api/sessions/{session}/replies/x");
    assert_eq!(status(&read, "GET", "/api/sessions"), 200);
    assert_eq!(status(&read, "POST", "/api/sessions"), 403);
    assert_eq!(status(&read, "POST", &replies), 403);
    assert_eq!(status(&write, "POST", &messages), 400);
    assert_eq!(status(&write, "POST", &replies), 403);
    assert_eq!(status(&approve, "POST", &replies), 400);
    assert_eq!(status(&approve, "GET", "/api/credentials"), 403);
    let listed = workspace.run(&["token", "list"]).output().stdout;
    assert!(
        listed.contains("test browser") && listed.contains("approve"),
        "{listed}"
    );
    assert!(!listed.contains(read.trim_start_matches("Bearer ")));
    let stream = SseEvents::open(&server.addr, "/api/events", &[("Authorization", &read)]);
    assert_eq!(workspace.run(&["token", "revoke", "read"]).output().code, Some(0));
    assert_eq!(status(&read, "GET", "/api/sessions"), 401);
    assert_eq!(
        stream.wait_for("the end", |event| event.name == "bye").data["reason"],
        "revoked"
    );
    stream.wait_for_end();
    assert_eq!(workspace.run(&["token", "revoke", "read"]).output().code, Some(2));
    let own = server.get("/api/credentials")["own"].as_str().unwrap().to_owned();
    assert_eq!(
        server
            .request("DELETE", &format!("/api/credentials/{own}"), "")
            .status,
        204
    );
    assert_eq!(server.request("GET", "/api/sessions", "").status, 401);
}

/// SES-9: a session is opened by a channel's key, and the same key gives the same session.
#[test]
fn sessions_are_opened_by_key() {
    let (_sim, _workspace, server) = served([], &[]);
    let body = json!({ "key": "main:work:signal:dm:+491234" });
    let first = server.post("/api/sessions", &body);
    assert_eq!(
        server.post("/api/sessions", &body)["session"]["id"],
        first["session"]["id"]
    );
    assert_eq!(first["session"]["label"]["key"], body["key"]);
    let bad = server.request("POST", "/api/sessions", &json!({ "key": "a::b" }).to_string());
    assert_eq!((bad.status, bad.json()["field"].clone()), (400, json!("key")));
    let two = json!({ "key": "main:work:signal:dm:x", "fork": "y" });
    assert_eq!(
        server.request("POST", "/api/sessions", &two.to_string()).status,
        400
    );
}

/// SRV-1: bad input gets a problem that names the field; unknown ids and routes are not found.
#[test]
fn bad_input_names_the_field() {
    let (_sim, _workspace, server) = served([], &[]);
    let session = server.session();
    let messages = format!("/api/sessions/{session}/messages");
    let reply = format!("/api/sessions/{session}/replies/none");
    let commands = format!("/api/sessions/{session}/commands");
    let long_title = format!("{{\"title\": \"{}\"}}", "x".repeat(501));
    let search = |query: &str| format!("/api/sessions/{session}/search?{query}");
    let cases = [
        ("POST", messages.as_str(), "{", 400, "body"),
        ("POST", &messages, "{\"text\": 1}", 400, "text"),
        ("POST", &messages, "{\"text\": \"x\", \"id\": \"x\"}", 400, "id"),
        (
            "POST",
            &messages,
            "{\"text\": \"x\", \"on_busy\": \"wait\"}",
            400,
            "on_busy",
        ),
        (
            "POST",
            &messages,
            "{\"parts\": [{\"type\": \"tool_call\", \"data\": {\"id\":\"1\",\"name\":\"x\",\"input\":\"\",\"finished\":true}}]}",
            400,
            "parts[0].type",
        ),
        (
            "POST",
            &messages,
            "{\"text\": \"x\", \"uploads\": [\"y\"]}",
            400,
            "uploads[0]",
        ),
        ("POST", "/api/sessions", "{\"place\": \"here\"}", 400, "place"),
        ("POST", "/api/sessions", "{\"place\": \"/none\"}", 400, "place"),
        ("POST", "/api/sessions", "{\"id\": \"x\"}", 400, "id"),
        ("POST", "/api/sessions", "{\"colour\": 1}", 400, "colour"),
        ("POST", "/api/sessions", "[]", 400, "body"),
        ("POST", "/api/sessions", &long_title, 400, "title"),
        ("POST", &commands, "{}", 400, "line"),
        (
            "PUT",
            "/api/push/subscriptions",
            "{\"endpoint\": \"https://a.example\"}",
            400,
            "keys",
        ),
        ("GET", "/api/sessions?limit=0", "", 400, "limit"),
        ("GET", "/api/sessions?limit=x", "", 400, "limit"),
        ("GET", "/api/sessions?colour=red", "", 400, "colour"),
        ("GET", "/api/files/content", "", 400, "path"),
        ("GET", "/api/sessions/%ff", "", 400, "path"),
        ("GET", "/api/events?after=x", "", 400, "after"),
        ("GET", "/api/events?after=1", "", 400, "after"),
        ("GET", &search("q=%20"), "", 400, "q"),
        ("GET", &search("q=x&limit=0"), "", 400, "limit"),
        (
            "POST",
            &reply,
            "{\"answer\": \"always\", \"rules\": [\"bash(\"]}",
            400,
            "rules[0]",
        ),
        (
            "POST",
            &reply,
            "{\"answer\": \"once\", \"rules\": [\"bash\"]}",
            400,
            "rules",
        ),
    ];
    for (method, path, body, status, field) in cases {
        let answer = server.request(method, path, body);
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (status, Some(field)),
            "{path} {body}"
        );
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
    for path in [
        "/api/sessions/none",
        "/api/sessions/none/state",
        "/api/sessions/none/events",
        "/api/none",
        "/none",
    ] {
        assert_eq!(server.request("GET", path, "").status, 404, "{path}");
    }
    assert_eq!(server.request("PATCH", "/api/health", "{}").status, 405);
    let long = format!("{{\"text\": \"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(server.request("POST", &messages, &long).status, 413);
}

/// SRV-3: connections that send nothing do not keep others out.
#[test]
fn idle_connections_make_room() {
    let (_sim, _workspace, server) = served([], &[]);
    let idle: Vec<TcpStream> = (0..600)
        .map(|_| TcpStream::connect(&server.addr).unwrap())
        .collect();
    assert_eq!(server.request("GET", "/api/sessions", "").status, 200);
    drop(idle);
}

/// SRV-6: a stop tells the streams, ends with success, and loses no session.
#[test]
fn a_stop_is_reported() {
    let (_sim, workspace, server) = served([Reply::text("hello")], &[]);
    let session = server.session();
    server.say(&session, "hi");
    server.wait_idle(&session);
    let stream = server.events("/api/events");
    server.running.terminate();
    assert_eq!(
        stream.wait_for("the end", |event| event.name == "bye").data["reason"],
        "stopping"
    );
    stream.wait_for_end();
    assert_eq!(server.running.output().code, Some(0));
    let shown = workspace.run(&["sessions", "show", &session]).output();
    assert!(shown.stdout.contains("hello"), "{}", shown.stdout);
}

/// SRV-1: the server publishes the document in `docs/openapi.json`.
#[test]
fn the_published_document_is_served() {
    let (_sim, _workspace, server) = served([], &[]);
    let published: Value = serde_json::from_str(&repository_file("docs/openapi.json")).unwrap();
    assert_eq!(server.get("/api/openapi.json"), published);
}

/// SRV-4: `windlass attach` and `windlass --resume` use a session that the server has open; both and the browser see
/// the same.
#[test]
fn a_terminal_attaches() {
    let replies = [
        Reply::text("first answer"),
        Reply::text("second answer"),
        Reply::text("third answer"),
    ];
    let (sim, workspace, server) = served(replies, &[]);
    let session = server.session();
    server.say(&session, "one");
    server.wait_idle(&session);
    let url = format!("http://{}", server.addr);
    let attached = workspace
        .run(&["attach", &url, "--plain"])
        .stdin("two\n")
        .output();
    assert_eq!(
        (attached.code, attached.stdout.contains("second answer")),
        (Some(0), true),
        "{attached:?}"
    );
    let resumed = workspace
        .run(&["--resume", &session, "--plain"])
        .stdin("/status\nthree\n")
        .output();
    assert_eq!(
        (resumed.code, resumed.stdout.contains("third answer")),
        (Some(0), true),
        "{resumed:?}"
    );
    assert_eq!(sim.count(), 3);
    let state = server.wait_idle(&session);
    assert!(state["entries"].to_string().contains("three"));
    // The terminal's own token is gone.
    let listed = workspace.run(&["token", "list"]).output().stdout;
    assert!(!listed.contains("terminal"), "{listed}");
    let link = workspace.run(&["token", "link", "--url", &url]).output().stdout;
    let other = workspace
        .run(&["attach", link.trim(), "--plain", "--session", "none"])
        .stdin("x\n")
        .output();
    assert_eq!(other.code, Some(2), "{other:?}");
    let refused = workspace
        .run(&["attach", "http://127.0.0.1:9", "--plain"])
        .stdin("x\n")
        .output();
    assert!(refused.stderr.contains("WINDLASS_TOKEN"), "{refused:?}");
}

/// CMD-2: a command has the same result over HTTP as in a headless run.
#[test]
fn commands_are_the_same() {
    let (_sim, workspace, server) = served([Reply::text("hello")], &[]);
    let session = server.session();
    server.say(&session, "hi");
    server.wait_idle(&session);
    let path = format!("/api/sessions/{session}/commands");
    let lines = [
        "/help",
        "/help cost",
        "/permissions",
        "/mode",
        "/cost",
        "/checkpoint list",
        "/nonsense",
        "/session list",
    ];
    let over_http: Vec<(u16, String)> = lines
        .iter()
        .map(|line| {
            let answer = server.request("POST", &path, &json!({ "line": line }).to_string());
            let json = answer.json();
            let text = json["text"]
                .as_str()
                .or(json["detail"].as_str())
                .unwrap()
                .to_owned();
            (answer.status, text)
        })
        .collect();
    let catalog = server.get(&path);
    assert!(
        catalog["commands"]
            .as_array()
            .unwrap()
            .iter()
            .any(|command| command["name"] == "undo")
    );
    let completions = server.get(&format!("{path}?complete=/mo"));
    assert!(
        completions["completions"]
            .as_array()
            .unwrap()
            .contains(&json!("/mode")),
        "{completions}"
    );
    server.running.terminate();
    server.running.output();
    for (line, (status, text)) in lines.iter().zip(over_http) {
        let headless = workspace.run(&["exec", line, "--resume", &session]).output();
        assert_eq!(
            status == 200,
            headless.code == Some(0),
            "{line}: {status} {headless:?}"
        );
        let shown = if status == 200 {
            &headless.stdout
        } else {
            &headless.stderr
        };
        assert!(
            shown.contains(text.trim()),
            "{line}\n--- HTTP\n{text}\n--- exec\n{shown}"
        );
    }
}

/// SRV-5: a session answers as an OpenAI server, only if it was asked to.
#[test]
fn openai_is_an_option() {
    let (_sim, workspace, server) = served([], &[]);
    assert_eq!(server.request("GET", "/v1/models", "").status, 404);
    server.running.terminate();
    server.running.output();
    let server = serve(&workspace, &["--openai"]);
    assert_eq!(server.get("/v1/models")["data"][0]["id"], "windlass");
    assert_eq!(http(&server.addr, "GET", "/v1/models", &[], "").status, 401);
}

/// SRV-5: nobody can be asked, so a call that needs approval is refused, and the answer says so.
#[test]
fn openai_answers_say_what_was_refused() {
    let (_sim, workspace, server) = served([write("a.txt")], &["--mode", "ask", "--openai"]);
    let ask = json!({ "model": "windlass", "messages": [{ "role": "user", "content": "go" }] });
    let answer = server.post("/v1/chat/completions", &ask);
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(
        text.contains("Refused") && text.contains("write_file a.txt"),
        "{text}"
    );
    assert!(!workspace.has("a.txt"));
}

/// SRV-5: a turn as OpenAI's Responses, whole and streamed; `previous_response_id` continues the session, and after an
/// older response a copy of it.
#[test]
fn responses_continue_and_branch() {
    let replies = [
        Reply::text("first answer"),
        Reply::text("second answer"),
        Reply::text("another second answer"),
        write("a.txt"),
        Reply::text("done"),
    ];
    let (sim, workspace, server) = served(replies, &["--openai", "--mode", "auto"]);
    let ask = |more: Value| {
        let mut body = json!({ "model": "windlass", "input": "one" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        server.request("POST", "/v1/responses", &body.to_string())
    };
    let first = ask(json!({ "instructions": "be brief", "metadata": { "a": "b" } }));
    let session = first.header("x-windlass-session").unwrap().to_owned();
    let first = first.json();
    assert_eq!(
        (
            &first["status"],
            &first["output"][0]["content"][0]["text"],
            &first["metadata"]["a"]
        ),
        (&json!("completed"), &json!("first answer"), &json!("b"))
    );
    assert!(first["usage"]["output_tokens"].as_u64() > Some(0), "{first}");
    assert!(format!("{:?}", sim.requests()[0].seen).contains("be brief"));
    let more = json!({ "input": "two", "previous_response_id": first["id"] });
    let second = ask(more.clone());
    assert_eq!(second.header("x-windlass-session"), Some(session.as_str()));
    assert_eq!(second.json()["output"][0]["content"][0]["text"], "second answer");
    // The session has gone on: this is a branch.
    let branch = ask(more);
    assert_ne!(branch.header("x-windlass-session"), Some(session.as_str()));
    assert_eq!(
        branch.json()["output"][0]["content"][0]["text"],
        "another second answer"
    );
    let branched = sim.outlines()[2].clone();
    assert!(
        branched.contains("first answer") && !branched.contains("second answer"),
        "{branched}"
    );
    for (more, field) in [
        (
            json!({ "previous_response_id": "resp_none_1" }),
            "previous_response_id",
        ),
        (json!({ "previous_response_id": "x" }), "previous_response_id"),
        (json!({ "tools": [{ "type": "web_search" }] }), "tools"),
    ] {
        let refused = ask(more.clone());
        assert!((400..500).contains(&refused.status), "{more}: {}", refused.body);
        let is_unknown = refused.status == 404;
        assert!(
            is_unknown || refused.json()["error"]["param"] == field,
            "{more}: {}",
            refused.body
        );
    }
    let stream = ask(json!({ "stream": true }));
    assert!(workspace.has("a.txt"));
    let frames: Vec<Value> = stream
        .body
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"response.created"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"response.completed"), "{kinds:?}");
    let numbers: Vec<u64> = frames
        .iter()
        .filter_map(|frame| frame["sequence_number"].as_u64())
        .collect();
    assert_eq!(numbers, (0..frames.len() as u64).collect::<Vec<_>>());
    let deltas = frames.iter().filter_map(|frame| frame["delta"].as_str());
    let last = &frames.last().unwrap()["response"];
    assert_eq!(
        deltas.collect::<String>(),
        last["output"][0]["content"][0]["text"].as_str().unwrap()
    );
    assert!(stream.body.contains(": tool "), "{}", stream.body);
}

/// SRV-1: a session that this server has open is deleted with its running turn; one that another process has open is not.
#[test]
fn an_open_session_is_deleted() {
    let (sim, workspace, server) = served([write("a.txt"), Reply::text("fine")], &["--mode", "ask"]);
    let session = server.session();
    let list = server.events("/api/events");
    server.say(&session, "go");
    server.question(&session);
    let path = format!("/api/sessions/{session}");
    assert_eq!(server.request("DELETE", &path, "").status, 204);
    list.wait_for("the deletion", |event| {
        event.name == "deleted" && event.data["session"] == session.as_str()
    });
    assert_eq!(server.request("GET", &path, "").status, 404);
    assert_eq!(server.request("DELETE", &path, "").status, 404);
    assert!(!workspace.has("a.txt"));
    assert_eq!(server.get("/api/questions")["questions"], json!([]));

    let mut other = workspace.run(&["--plain", "--mode", "ask"]).open_stdin().start();
    other.say("hello\n");
    other.wait_for_stdout("fine");
    let held = server.get("/api/sessions")["sessions"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = server.request("DELETE", &format!("/api/sessions/{held}"), "");
    assert_eq!(refused.status, 409, "{}", refused.body);
    other.hush();
    assert_eq!(other.output().code, Some(0));
    assert_eq!(
        server
            .request("DELETE", &format!("/api/sessions/{held}"), "")
            .status,
        204
    );
    assert_eq!(sim.count(), 2);
}

/// SRV-6: counts are there for Prometheus.
#[test]
fn metrics_count() {
    let (_sim, _workspace, server) = served([Reply::text("done")], &[]);
    let stream = server.events("/api/events");
    http(&server.addr, "GET", "/api/sessions", &[], "");
    server.say(&server.session(), "go");
    let counts_tokens = eventually(PATIENCE, || {
        let text = server.request("GET", "/metrics", "").body;
        text.contains("gen_ai_client_token_usage")
    });
    assert!(counts_tokens, "{}", server.request("GET", "/metrics", "").body);
    let text = server.request("GET", "/metrics", "").body;
    assert!(
        text.contains("windlass_event_streams 1\n") && text.contains("windlass_http_refused_total 1\n"),
        "{text}"
    );
    drop(stream);
}
