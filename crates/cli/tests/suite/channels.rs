//! The webhook channel through the binary: signed messages in, signed answers out.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use windlass_core::clock::Timestamp;
use windlass_providers::key::Secret;
use windlass_providers::{WebhookGuard, sign};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, Running, Workspace, eventually};

use super::support::{repository_file, with_replies, workspace};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const KEY: &str = "agent:main:test:group:ann";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Reads a request or a response: its head, and as many bytes as the head says.
fn read_message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            let start = head.len() + 4;
            if bytes.len() >= start + length {
                return (head, bytes[start..start + length].to_vec());
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return (text, Vec::new()),
            Ok(count) => bytes.extend(&piece[..count]),
        }
    }
}

/// A bridge: checks every message that it gets, and refuses the first few.
struct Bridge {
    url: String,
    got: Arc<Mutex<Vec<Value>>>,
}

impl Bridge {
    fn refusing(mut refusals: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = Arc::clone(&got);
        std::thread::spawn(move || {
            let mut guard = WebhookGuard::new(Secret::new(SECRET));
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (head, body) = read_message(&mut stream);
                if refusals > 0 {
                    refusals -= 1;
                    let _ = stream
                        .write_all(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    continue;
                }
                let header = |name: &'static str| {
                    head.lines()
                        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                };
                // The head was lowered, which a signature does not survive; it is checked by its length.
                let is_signed = header("webhook-signature").is_some_and(|text| text.len() == 47);
                let id = header("webhook-id").unwrap().to_owned();
                let time: u64 = header("webhook-timestamp").unwrap().parse().unwrap();
                let right = sign(&Secret::new(SECRET), &id, time, &body);
                let is_right = header("webhook-signature") == Some(right.to_ascii_lowercase().as_str());
                let again = guard.accept(
                    |name| match name {
                        "webhook-signature" => Some(right.as_str()),
                        name => header(name),
                    },
                    &body,
                    Timestamp(now() * 1000),
                );
                assert!(is_signed && is_right && again.is_ok(), "{head}");
                seen.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                let _ =
                    stream.write_all(b"HTTP/1.1 200 ok\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<Value> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) -> Vec<Value> {
        assert!(
            eventually(PATIENCE, || self.got().len() >= count),
            "{:?}",
            self.got()
        );
        self.got()
    }
}

/// A running channel.
struct Served {
    address: String,
    running: Running,
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn serve(workspace: &Workspace, bridge: &Bridge) -> Served {
    serve_with(workspace, bridge, &[])
}

fn serve_with(workspace: &Workspace, bridge: &Bridge, more: &[&str]) -> Served {
    let address = free_address();
    let args = [
        "channel",
        "webhook",
        "--listen",
        &address,
        "--to",
        &bridge.url,
        "-c",
        "security.mode=ask",
    ];
    let mut running = workspace
        .run(&args)
        .args(more)
        .env("WINDLASS_WEBHOOK_SECRET", SECRET)
        .start();
    running.wait_for_stderr("listening on");
    Served { address, running }
}

impl Served {
    /// Posts a body with these headers. Returns the status.
    fn post(&self, headers: &str, body: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let length = body.len();
        let request = format!(
            "POST /messages HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (head, _) = read_message(&mut stream);
        head.split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }

    fn say(&self, id: &str, text: &str) -> u16 {
        self.say_as("ann", id, text)
    }

    fn say_as(&self, sender: &str, id: &str, text: &str) -> u16 {
        let body = json!({"key": KEY, "text": text, "sender": sender}).to_string();
        self.post(&signed(id, now(), &body, SECRET), &body)
    }
}

fn signed(id: &str, time: u64, body: &str, secret: &str) -> String {
    let signature = sign(&Secret::new(secret), id, time, body.as_bytes());
    format!("webhook-id: {id}\r\nwebhook-timestamp: {time}\r\nwebhook-signature: {signature}\r\n")
}

/// UI-6, SES-9: messages with a key reach one session, answers come back signed and are sent again until the bridge
/// takes them, and commands work.
#[test]
fn a_conversation_through_a_bridge() {
    let replies = [Reply::text("first answer"), Reply::text("second answer")];
    let (sim, workspace) = with_replies(Protocol::Chat, replies);
    let bridge = Bridge::refusing(1);
    let served = serve(&workspace, &bridge);
    assert_eq!(served.say("1", "hello"), 202);
    let got = bridge.wait_for(1);
    assert_eq!(
        (&got[0]["type"], &got[0]["text"], &got[0]["key"]),
        (&json!("answer"), &json!("first answer"), &json!(KEY))
    );
    // The same request again is one message.
    assert_eq!(served.say("2", "and now?"), 202);
    assert_eq!(served.say("2", "and now?"), 200);
    let got = bridge.wait_for(2);
    assert_eq!(got[1]["text"], "second answer");
    assert_eq!(got[0]["session"], got[1]["session"]);
    assert_eq!(served.say("3", "/cost"), 202);
    let got = bridge.wait_for(3);
    assert_eq!(got[2]["type"], "answer");
    assert_eq!(sim.count(), 2);
    served.running.interrupt();
    served.running.output().assert_code(0);
}

/// UI-6, TOOL-7: a permission request is a question, and the next message answers it.
#[test]
fn questions_are_answered() {
    let replies = [
        Reply::call("write_file", json!({"path": "a.txt", "content": "hi"})),
        Reply::text("written"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    let bridge = Bridge::refusing(0);
    let served = serve(&workspace, &bridge);
    assert_eq!(served.say("1", "write it"), 202);
    let got = bridge.wait_for(1);
    assert_eq!(got[0]["type"], "question", "{got:?}");
    assert!(!workspace.has("a.txt"));
    // Words allow nothing.
    let letter = got[0]["choices"][0]["letter"].as_str().unwrap();
    assert_eq!(served.say("2", letter), 202);
    let got = bridge.wait_for(2);
    assert_eq!(got[1]["text"], "written", "{got:?}");
    assert_eq!(workspace.read("a.txt"), "hi");
    served.running.interrupt();
    served.running.output().assert_code(0);
}

/// UI-6, SES-9: in a group, only the person who sent the message can answer its permission requests. What others write
/// meanwhile allows nothing, and is read after the turn.
#[test]
fn others_of_a_group_cannot_approve() {
    let replies = [
        Reply::call("write_file", json!({"path": "a.txt", "content": "hi"})),
        Reply::text("written"),
        Reply::text("hello bob"),
    ];
    let (sim, workspace) = with_replies(Protocol::Chat, replies);
    let bridge = Bridge::refusing(0);
    let served = serve(&workspace, &bridge);
    assert_eq!(served.say("1", "write it"), 202);
    let got = bridge.wait_for(1);
    let letter = got[0]["choices"][0]["letter"].as_str().unwrap().to_owned();
    assert_eq!(served.say_as("bob", "2", &letter), 202);
    let got = bridge.wait_for(2);
    assert_eq!(got[1]["type"], "status", "{got:?}");
    assert!(got[1]["text"].as_str().unwrap().contains("Only ann"), "{got:?}");
    assert!(!workspace.has("a.txt"));
    assert_eq!(served.say("3", &letter), 202);
    let got = bridge.wait_for(4);
    assert_eq!(got[2]["text"], "written", "{got:?}");
    assert_eq!(workspace.read("a.txt"), "hi");
    // Bob's letter was a message of its own.
    assert_eq!(got[3]["text"], "hello bob", "{got:?}");
    assert_eq!(sim.count(), 3);
    served.running.interrupt();
    served.running.output().assert_code(0);
}

/// UI-6: with approvers, only they answer and use commands, whoever wrote; a conversation whose bridge names nobody has
/// nobody to ask.
#[test]
fn approvers_are_named() {
    let write = || Reply::call("write_file", json!({"path": "a.txt", "content": "hi"}));
    let replies = [
        write(),
        Reply::text("written"),
        write(),
        Reply::text("not written"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    let bridge = Bridge::refusing(0);
    let served = serve_with(&workspace, &bridge, &["-c", "channel.approvers=[\"carol\"]"]);
    assert_eq!(served.say("1", "/mode full"), 202);
    let got = bridge.wait_for(1);
    assert!(
        got[0]["text"]
            .as_str()
            .unwrap()
            .contains("only carol can use commands"),
        "{got:?}"
    );
    assert_eq!(served.say("2", "write it"), 202);
    let got = bridge.wait_for(2);
    let letter = got[1]["choices"][0]["letter"].as_str().unwrap().to_owned();
    // The one who asked is no approver.
    assert_eq!(served.say("3", &letter), 202);
    let got = bridge.wait_for(3);
    assert!(got[2]["text"].as_str().unwrap().contains("Only carol"), "{got:?}");
    assert!(!workspace.has("a.txt"));
    assert_eq!(served.say_as("carol", "4", &letter), 202);
    let got = bridge.wait_for(4);
    assert_eq!(got[3]["text"], "written", "{got:?}");
    assert_eq!(workspace.read("a.txt"), "hi");
    served.running.interrupt();
    served.running.output().assert_code(0);

    let (_sim, workspace) = with_replies(Protocol::Chat, [write(), Reply::text("not written")]);
    let bridge = Bridge::refusing(0);
    let served = serve(&workspace, &bridge);
    let body = json!({"key": KEY, "text": "write it"}).to_string();
    assert_eq!(served.post(&signed("1", now(), &body, SECRET), &body), 202);
    let got = bridge.wait_for(2);
    assert_eq!(got[0]["type"], "status", "{got:?}");
    assert!(got[0]["text"].as_str().unwrap().contains("`sender`"), "{got:?}");
    assert!(!workspace.has("a.txt"));
    served.running.interrupt();
    served.running.output().assert_code(0);
}

/// UI-6: nothing that is unsigned, changed, old or malformed reaches a session.
#[test]
fn others_are_refused() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("hello").forever()]);
    let bridge = Bridge::refusing(0);
    let served = serve(&workspace, &bridge);
    let body = json!({"key": KEY, "text": "hello"}).to_string();
    let cases = [
        (String::new(), body.clone(), 401),
        (signed("1", now(), "{}", SECRET), body.clone(), 401),
        (signed("2", now() - 301, &body, SECRET), body.clone(), 401),
        (signed("3", now(), &body, "another secret"), body, 401),
    ];
    for (headers, body, status) in cases {
        assert_eq!(served.post(&headers, &body), status, "{headers}");
    }
    let bad = [
        "not json".to_owned(),
        json!({"key": "nonsense key", "text": "hello"}).to_string(),
        json!({"key": KEY, "text": " "}).to_string(),
        json!({"key": KEY, "text": "hello", "more": 1}).to_string(),
    ];
    for (number, body) in bad.into_iter().enumerate() {
        let headers = signed(&format!("bad-{number}"), now(), &body, SECRET);
        assert_eq!(served.post(&headers, &body), 400, "{body}");
    }
    let long = json!({"key": KEY, "text": "x".repeat(2 << 20)}).to_string();
    let refused = served.post(&signed("long", now(), &long, SECRET), &long);
    assert!(matches!(refused, 413 | 0), "{refused}");
    assert_eq!(sim.count(), 0);
    served.running.interrupt();
    served.running.output().assert_code(0);
}

/// A fake Bot API of Telegram: messages of users in, messages of the bot out.
#[derive(Default)]
struct BotApi {
    updates: Mutex<Vec<Value>>,
    arrived: Condvar,
    sent: Mutex<Vec<Value>>,
}

impl BotApi {
    fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let api = Arc::new(Self::default());
        let this = Arc::clone(&api);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let this = Arc::clone(&this);
                std::thread::spawn(move || this.answer(stream.unwrap()));
            }
        });
        (api, url)
    }

    fn answer(&self, mut stream: TcpStream) {
        let (head, body) = read_message(&mut stream);
        let Ok(asked) = serde_json::from_slice::<Value>(&body) else {
            return;
        };
        let result = match head.split(' ').nth(1) {
            Some("/bot1:test/getupdates") => {
                let offset = asked["offset"].as_u64().unwrap();
                let is_new = |update: &Value| update["update_id"].as_u64() >= Some(offset);
                let updates = self.updates.lock().unwrap();
                let wait = Duration::from_millis(500);
                let waiting = |updates: &mut Vec<Value>| !updates.iter().any(is_new);
                let (updates, _) = self.arrived.wait_timeout_while(updates, wait, waiting).unwrap();
                updates.iter().filter(|update| is_new(update)).cloned().collect()
            }
            Some("/bot1:test/sendmessage") => {
                self.sent.lock().unwrap().push(asked);
                json!({})
            }
            other => panic!("{other:?}"),
        };
        let body = json!({"ok": true, "result": result}).to_string();
        let answer = format!(
            "HTTP/1.1 200 ok\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes());
    }

    fn write(&self, user: u64, text: &str) {
        let mut updates = self.updates.lock().unwrap();
        let id = updates.len() + 1;
        let message = json!({"text": text, "from": {"id": user}, "chat": {"id": -77}});
        updates.push(json!({"update_id": id, "message": message}));
        self.arrived.notify_all();
    }

    #[track_caller]
    fn wait_for(&self, count: usize) -> Vec<String> {
        let sent = || self.sent.lock().unwrap().clone();
        assert!(eventually(PATIENCE, || sent().len() >= count), "{:?}", sent());
        let text = |message: &Value| {
            assert_eq!(message["chat_id"], "-77", "{message}");
            message["text"].as_str().unwrap().to_owned()
        };
        sent().iter().map(text).collect()
    }
}

/// A process that ends with the test.
struct Bridging(std::process::Child);

impl Drop for Bridging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// UI-6, SES-9: the bridge in `docs/channels.md` works as printed: answers, commands, approval by the one who asked, and
/// silence for strangers.
#[test]
fn the_documented_bridge_works() {
    let replies = [
        Reply::text("hello from the model"),
        Reply::call("write_file", json!({"path": "a.txt", "content": "hi"})),
        Reply::text("written"),
    ];
    let (sim, workspace) = with_replies(Protocol::Chat, replies);
    let documentation = repository_file("docs/channels.md");
    let (_, rest) = documentation.split_once("```python\n").unwrap();
    let script = workspace.write("bridge.py", rest.split_once("```").unwrap().0);
    let port = free_address().rsplit(':').next().unwrap().to_owned();
    let bridge = Bridge {
        url: format!("http://127.0.0.1:{port}/"),
        got: Arc::default(),
    };
    let served = serve(&workspace, &bridge);
    let (api, url) = BotApi::start();
    let started = std::process::Command::new("python3")
        .arg(script)
        .env("WINDLASS_WEBHOOK_SECRET", SECRET)
        .env("WINDLASS_CHANNEL", format!("http://{}", served.address))
        .env("TELEGRAM_API", url)
        .env("TELEGRAM_TOKEN", "1:test")
        .env("TELEGRAM_USERS", "11,12")
        .env("BRIDGE_PORT", port)
        .env("no_proxy", "*")
        .stderr(std::process::Stdio::null())
        .spawn();
    let _bridging = Bridging(started.unwrap());
    api.write(99, "let me in");
    api.write(11, "hi");
    assert_eq!(api.wait_for(1), ["hello from the model"]);
    assert_eq!(sim.count(), 1);
    api.write(11, "write it");
    let question = api.wait_for(2)[1].clone();
    assert!(
        question.contains("a.txt") && question.contains("\ny: "),
        "{question}"
    );
    api.write(12, "y");
    assert!(api.wait_for(3)[2].contains("Only 11 can answer"));
    assert!(!workspace.has("a.txt"));
    api.write(11, "y");
    assert_eq!(api.wait_for(4)[3], "written");
    assert_eq!(workspace.read("a.txt"), "hi");
    served.running.interrupt();
    served.running.output().assert_code(0);
}

/// UI-6: without a secret there is no channel, and a bad address is named.
#[test]
fn a_secret_is_required() {
    let workspace = workspace();
    let args = ["channel", "webhook", "--to", "http://127.0.0.1:9"];
    workspace
        .run(&args)
        .output()
        .assert_code(2)
        .assert_says("WINDLASS_WEBHOOK_SECRET");
    let args = ["channel", "webhook", "--to", "nonsense"];
    let run = workspace.run(&args).env("WINDLASS_WEBHOOK_SECRET", SECRET);
    run.output().assert_code(2).assert_says("--to");
}
