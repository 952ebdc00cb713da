use std::net::IpAddr;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_core::tool::{CallModel, ExecutionContext, Person, Progress};

use super::guard::Lookup;
use super::*;

/// A name service with fixed answers that records its queries.
#[derive(Default)]
struct Told {
    /// Names and the addresses of the first, second, … lookup; the last one repeats.
    names: Vec<(&'static str, Vec<&'static str>)>,
    asked: Mutex<Vec<String>>,
}

impl Told {
    fn new(names: &[(&'static str, &[&'static str])]) -> Arc<Self> {
        Arc::new(Self {
            names: names
                .iter()
                .map(|(name, answers)| (*name, answers.to_vec()))
                .collect(),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl NameService for Told {
    fn look_up(&self, host: &str) -> Lookup {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.iter().filter(|name| *name == host).count();
        asked.push(host.to_owned());
        let known = self.names.iter().find(|(name, _)| *name == host);
        let answer = known.and_then(|(_, answers)| answers.get(before).or(answers.last()).copied());
        let addresses: Vec<IpAddr> = answer
            .unwrap_or_default()
            .split_whitespace()
            .map(|address| address.parse().unwrap())
            .collect();
        Box::pin(async move { Ok(addresses) })
    }
}

/// Starts a server that answers every request by its path and host, and records the requests. It ends with
/// the test.
async fn serve(answer: impl Fn(&str, &str) -> String + Send + 'static) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let host = head
                .split("host: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next());
            let answer = answer(&path, host.unwrap_or_default());
            record.lock().unwrap().push(head);
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, seen)
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

fn tool(names: &Arc<Told>, allowed: &[&str]) -> Fetch {
    let config = FetchConfig {
        allowed_private_hosts: allowed.iter().map(|host| (*host).to_owned()).collect(),
    };
    Fetch::with_names(&config, Arc::clone(names) as Arc<dyn NameService>)
}

async fn get(tool: &Fetch, url: &str) -> Result<String, ToolError> {
    let input = FetchInput {
        url: url.to_owned(),
        format: Format::Markdown,
        timeout_secs: None,
    };
    let cx = ToolContext {
        call_id: "call-1".into(),
        cancel: CancellationToken::new(),
        execution: Arc::new(ExecutionContext::default()),
        progress: Progress::none(),
        person: Person::nobody(),
        model: CallModel::none(),
        confirmed: false,
        places: Arc::default(),
    };
    tool.run(input, cx).await.map(|output| output.content)
}

/// TOOL-2: a name is refused if any of its addresses is private, and nothing is sent.
#[tokio::test]
async fn one_private_address_is_enough() {
    let (port, seen) = serve(|_, _| ok("secret")).await;
    for answer in [
        "127.0.0.1",
        "8.8.8.8 127.0.0.1",
        "127.0.0.1 8.8.8.8",
        "::ffff:127.0.0.1",
        "::1 2606:4700::1",
    ] {
        let names = Told::new(&[("mixed.example", &[answer])]);
        let error = get(&tool(&names, &[]), &format!("http://mixed.example:{port}/"))
            .await
            .unwrap_err();
        let ToolError::Permanent(text) = &error else {
            panic!("{error:?}")
        };
        assert!(text.starts_with("Refused: mixed.example is "), "{answer}: {text}");
        assert!(text.contains("loopback"), "{answer}: {text}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

/// TOOL-2: the checked address is the one that is used: there is one lookup per request, so a name that
/// changes its address in between gains nothing.
#[tokio::test]
async fn a_judged_address_is_the_one_used() {
    let (port, _) = serve(|path, _| if path == "/" { to("/next") } else { ok("page") }).await;
    let url = format!("http://site.example:{port}/");
    let names = Told::new(&[("site.example", &["127.0.0.1"])]);
    let content = get(&tool(&names, &["SITE.example"]), &url).await.unwrap();
    assert!(content.ends_with("\n\npage"), "{content}");
    assert_eq!(names.asked(), ["site.example", "site.example"]);
}

/// TOOL-2: every redirect is judged like the first request.
#[tokio::test]
async fn redirects_are_judged() {
    let (port, seen) = serve(|path, host| match path {
        "/www" => to(&format!("http://www.{host}/page")),
        "/metadata" => to("http://169.254.169.254/latest/meta-data/"),
        "/localhost" => to("http://app.localhost/"),
        "/file" => to("file:///etc/passwd"),
        _ => ok("page"),
    })
    .await;
    let names = Told::new(&[
        ("site.example", &["127.0.0.1"]),
        ("www.site.example", &["127.0.0.1"]),
    ]);
    let url = |path: &str| format!("http://site.example:{port}{path}");

    let open = tool(&names, &["site.example", "www.site.example"]);
    let content = get(&open, &url("/www")).await.unwrap();
    assert_eq!(
        content,
        format!("http://www.site.example:{port}/page (200, text/plain, 4 B)\n\npage")
    );
    seen.lock().unwrap().clear();

    let half = tool(&names, &["site.example"]);
    let cases = [
        ("/www", "Refused: www.site.example is 127.0.0.1"),
        ("/metadata", "Refused: 169.254.169.254 is 169.254.169.254"),
        ("/localhost", "Refused: app.localhost is this machine"),
        ("/file", "site.example redirects to a URL that is a file: URL"),
    ];
    for (path, expected) in cases {
        let error = get(&half, &url(path)).await.unwrap_err();
        assert!(matches!(error, ToolError::Permanent(_)), "{path} {error:?}");
        assert!(error.to_string().starts_with(expected), "{path} {error}");
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), cases.len(), "only the first request of each was sent");
}

/// TOOL-2: a name without an address is reported as wrong.
#[tokio::test]
async fn unknown_names_are_reported() {
    let names = Told::new(&[]);
    let error = get(&tool(&names, &[]), "http://nowhere.example/")
        .await
        .unwrap_err();
    let expected =
        "The name nowhere.example has no address: the name has no address. Check the host in `url`.";
    assert_eq!(error, ToolError::Permanent(expected.to_owned()));
}

/// TOOL-2: requests identify the program and carry nothing else about the user.
#[tokio::test]
async fn requests_carry_nothing() {
    let (port, seen) = serve(|_, _| ok("page")).await;
    let names = Told::new(&[("site.example", &["127.0.0.1"])]);
    get(
        &tool(&names, &["site.example"]),
        &format!("http://site.example:{port}/a?b#c"),
    )
    .await
    .unwrap();
    let expected = format!(
        "get /a?b http/1.1\r\naccept: {ACCEPTED}\r\nuser-agent: windlass/{}\r\naccept-encoding: gzip\r\n\
         host: site.example:{port}\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let seen = seen.lock().unwrap().concat();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.to_lowercase().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&seen), sorted(&expected));
}
