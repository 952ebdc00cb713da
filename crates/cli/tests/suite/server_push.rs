//! Web push through the binary. That a browser can read the messages is checked in `tests/sdk/test_push_sdk.py`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{HttpServer, PATIENCE, Workspace, eventually};

use super::server::serve;
use super::support::with_replies;

/// A public key of a browser, from the example of RFC 8291.
const KEY: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

/// A request that the push service got: path, head and size of the body.
type Request = (String, String, usize);

/// A push service that answers with the status in the path.
struct PushService {
    addr: String,
    got: Arc<Mutex<Vec<Request>>>,
}

impl PushService {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let got: Arc<Mutex<Vec<Request>>> = Arc::default();
        let seen = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
                let length = head
                    .lines()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let status = path.split('/').nth(1).unwrap_or_default().to_owned();
                seen.lock().unwrap().push((path, head, body.len()));
                let answer = format!(
                    "HTTP/1.1 {status} x\r\nlocation: /201/moved\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { addr, got }
    }

    fn got(&self) -> Vec<Request> {
        self.got.lock().unwrap().clone()
    }

    #[track_caller]
    fn wait_for(&self, path: &str) -> Request {
        let find = || self.got().into_iter().find(|(known, ..)| known == path);
        assert!(
            eventually(PATIENCE, || find().is_some()),
            "{path}: {:?}",
            self.got()
        );
        find().unwrap()
    }

    fn endpoint(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

fn subscription(endpoint: &str) -> String {
    let keys = json!({ "p256dh": KEY, "auth": AUTH });
    json!({ "endpoint": endpoint, "expirationTime": null, "keys": keys }).to_string()
}

fn subscribe(server: &HttpServer, endpoint: &str) {
    let answer = server.request("PUT", "/api/push/subscriptions", &subscription(endpoint));
    assert_eq!(answer.status, 204, "{}", answer.body);
}

fn stored(workspace: &Workspace) -> Value {
    let file = workspace.home().join("state/push.json");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// WEB-6: news are sent while nobody of the user follows, and not otherwise; subscriptions that are gone are dropped, and
/// redirects are not followed.
#[test]
fn news_are_pushed_while_nobody_looks() {
    let replies = [
        Reply::text("seen"),
        Reply::call("write_file", json!({ "path": "a.txt", "content": "x" })),
        Reply::text("written"),
        Reply::text("and again"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let arguments = ["--mode", "ask", "-c", "server.push_private=true"];
    let server = serve(&workspace, &arguments);
    let service = PushService::start();
    let key = server.get("/api/push/key")["key"].as_str().unwrap().to_owned();
    assert_eq!(key.len(), 87, "{key}");
    for path in [
        "/201/kept",
        "/404/gone",
        "/410/gone",
        "/302/moving",
        "/400/refused",
    ] {
        subscribe(&server, &service.endpoint(path));
    }
    assert_eq!(stored(&workspace)["subscriptions"].as_array().unwrap().len(), 5);
    let session = server.session();
    // While a client follows, it tells its user itself.
    let following = server.events("/api/events");
    server.say(&session, "one");
    following.wait_for("the end", |event| {
        event.name == "session" && event.data["standing"] == "answered" && event.data["is_busy"] == false
    });
    assert_eq!(service.got(), Vec::new());
    server.running.terminate();
    following.wait_for_end();
    server.running.output();

    // A restarted server has the same key, and knows the subscriptions.
    let server = serve(&workspace, &arguments);
    assert_eq!(server.get("/api/push/key")["key"], key.as_str());
    server.say(&session, "two");
    let (_, head, length) = service.wait_for("/201/kept");
    let head = head.to_lowercase();
    for line in ["content-encoding: aes128gcm", "ttl: 86400", "urgency: high"] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(
        head.contains("authorization: vapid t=") && head.contains(&format!("k={}", key.to_lowercase())),
        "{head}"
    );
    let kept = || {
        let list = stored(&workspace)["subscriptions"].clone();
        let list = list.as_array().unwrap();
        let endpoints = list.iter().filter_map(|known| known["endpoint"].as_str());
        endpoints
            .filter_map(|endpoint| endpoint.split(&service.addr).nth(1))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(
        eventually(PATIENCE, || kept()
            == ["/201/kept", "/302/moving", "/400/refused"]),
        "{:?}",
        kept()
    );
    let before = service
        .got()
        .iter()
        .filter(|(path, ..)| path == "/201/kept")
        .count();
    let call = server.question(&session)["call"].as_str().unwrap().to_owned();
    server.post(
        &format!("/api/sessions/{session}/replies/{call}"),
        &json!({ "answer": "once" }),
    );
    let count = || {
        service
            .got()
            .iter()
            .filter(|(path, ..)| path == "/201/kept")
            .count()
    };
    assert!(eventually(PATIENCE, || count() > before), "{:?}", service.got());
    let got = service.got();
    let last = got.iter().rfind(|(path, ..)| path == "/201/kept").unwrap();
    assert_eq!(last.2, length, "all messages have the same length");
    assert!(last.1.to_lowercase().contains("urgency: normal"), "{}", last.1);
    assert!(!service.got().iter().any(|(path, ..)| path == "/201/moved"));
    let end = json!({ "endpoint": service.endpoint("/201/kept") }).to_string();
    assert_eq!(
        server.request("DELETE", "/api/push/subscriptions", &end).status,
        204
    );
    assert_eq!(
        server.request("DELETE", "/api/push/subscriptions", &end).status,
        404
    );
    assert_eq!(kept(), ["/302/moving", "/400/refused"]);
}

/// WEB-6: a subscription cannot point into the server's own network, and wrong keys are named.
#[test]
fn subscriptions_are_checked() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let server = serve(&workspace, &[]);
    let put = |body: &str| {
        let answer = server.request("PUT", "/api/push/subscriptions", body);
        (
            answer.status,
            answer.json()["field"].as_str().unwrap_or_default().to_owned(),
        )
    };
    for endpoint in [
        "http://127.0.0.1:9/x",
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://10.1.2.3/x",
        "https://169.254.169.254/latest",
        "https://[::1]/x",
        "http://push.example/x",
        "file:///etc/passwd",
    ] {
        assert_eq!(
            put(&subscription(endpoint)),
            (400, "endpoint".to_owned()),
            "{endpoint}"
        );
    }
    let right = subscription("https://push.example/x");
    assert_eq!(put(&right.replace(AUTH, "AAAA")), (400, "keys.auth".to_owned()));
    assert_eq!(put(&right.replace(KEY, "AAAA")), (400, "keys.p256dh".to_owned()));
    assert_eq!(put(&right.replace("endpoint", "address")).0, 400);
    assert_eq!(
        server.request("PUT", "/api/push/subscriptions", &right).status,
        204
    );
}
