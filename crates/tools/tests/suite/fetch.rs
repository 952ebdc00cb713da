//! `fetch` against a small server on this machine.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_core::permission::Subject;
use windlass_core::tool::{Category, ToolError, ToolOutput};
use windlass_tools::{FetchConfig, ToolsConfig, builtin};

use crate::desk::{Desk, SOON, until};

/// Response of the server to a request.
enum Reply {
    /// Sends this and closes.
    Whole(Vec<u8>),
    /// Sends this and keeps the connection open until the client closes it.
    Open(Vec<u8>),
    /// Sends the first piece, then repeats the second one until the client stops reading.
    Endless(Vec<u8>, Vec<u8>),
}

/// A server that ends with its test.
struct Site {
    port: u16,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start(answer: fn(&str) -> Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let paths: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&paths);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer, Arc::clone(&seen)));
            }
        });
        Self { port, paths }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn paths(&self) -> Vec<String> {
        self.paths.lock().expect("lock").clone()
    }
}

async fn serve(mut stream: TcpStream, answer: fn(&str) -> Reply, seen: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    seen.lock().expect("lock").push(path.to_owned());
    // The client may disconnect at any time.
    match answer(path) {
        Reply::Whole(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Open(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.read_u8().await;
        }
        Reply::Endless(first, again) => {
            let _ = stream.write_all(&first).await;
            while stream.write_all(&again).await.is_ok() {}
        }
    }
}

fn page(kind: &str, body: impl AsRef<[u8]>) -> Reply {
    answer("200 OK", &format!("Content-Type: {kind}\r\n"), body)
}

fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    Reply::Whole([head.as_bytes(), body].concat())
}

fn redirect(location: &str) -> Reply {
    answer("301 Moved Permanently", &format!("Location: {location}\r\n"), "")
}

fn desk(allowed_private_hosts: &[&str]) -> Desk {
    Desk::with(&ToolsConfig {
        fetch: Some(FetchConfig {
            allowed_private_hosts: allowed_private_hosts
                .iter()
                .map(|host| (*host).to_owned())
                .collect(),
        }),
        ..ToolsConfig::default()
    })
}

async fn get(desk: &Desk, url: &str) -> ToolOutput {
    desk.call("fetch", json!({ "url": url }))
        .await
        .expect("an answer")
}

/// Returns the text after the first line and the empty one.
fn body(output: &ToolOutput) -> &str {
    output.content.split_once("\n\n").map_or("", |(_, body)| body)
}

fn detail<'a>(output: &'a ToolOutput, name: &str) -> &'a Value {
    &output.details.as_ref().expect("details")[name]
}

/// TOOL-2: a page is returned as markdown, as text or as received.
#[tokio::test]
async fn a_page_is_read() {
    const PAGE: &str =
        "<html><head><title>Guide</title></head><body><p>Read <a href='/more'>more</a>.</p></body></html>";
    let site = Site::start(|_| page("text/html; charset=utf-8", PAGE)).await;
    let desk = desk(&["127.0.0.1"]);
    let url = site.url("/guide");
    let output = get(&desk, &format!("{url}#part")).await;
    let size = PAGE.len();
    let expected = format!(
        "{url} (200, text/html, {size} B)\n\n# Guide\n\nRead [more]({}).",
        site.url("/more")
    );
    assert_eq!(output.content, expected);
    assert!(!output.failed);
    let details = json!({
        "url": format!("{url}#part"),
        "final_url": url,
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "bytes": size,
        "truncated": false,
    });
    assert_eq!(output.details, Some(details));
    for (format, expected) in [("text", "Guide\n\nRead more."), ("html", PAGE)] {
        let output = desk.call("fetch", json!({ "url": url, "format": format })).await;
        assert_eq!(body(&output.expect("an answer")), expected);
    }
}

/// TOOL-2: texts are shown unchanged, in the encoding they are written in; other types are described.
#[tokio::test]
async fn every_type_is_answered() {
    let site = Site::start(|path| match path {
        "/json" => page("application/json", "{\"a\": \"<b>\"}"),
        "/latin" => page("text/plain; charset=iso-8859-1", b"gr\xfcn"),
        "/meta" => page("text/html", b"<meta charset=windows-1251><p>\xe4\xe0"),
        "/png" => page("image/png", b"\x89PNG\r\n\x1a\n"),
        "/pdf" => page("application/pdf", "%PDF-1.7"),
        "/lie" => page("text/plain", b"a\0b"),
        "/bare" => answer("200 OK", "", "<!doctype html><h1>Bare</h1>"),
        "/raw" => page("application/octet-stream", "fn main() {}"),
        "/blob" => page("application/octet-stream", b"\xff\x00\x01"),
        "/empty" => page("text/html", " \n"),
        "/script" => page("text/html", "<html><script>build()</script></html>"),
        _ => answer("204 No Content", "", ""),
    })
    .await;
    let desk = desk(&["127.0.0.1"]);
    let cases = [
        ("/json", "(200, application/json, 12 B)", "{\"a\": \"<b>\"}"),
        ("/latin", "(200, text/plain, 4 B)", "gr\u{fc}n"),
        ("/meta", "(200, text/html, 32 B)", "\u{434}\u{430}"),
        (
            "/png",
            "(200, image/png, 8 B)",
            "[image/png is not text and is not shown]",
        ),
        (
            "/pdf",
            "(200, application/pdf, 8 B)",
            "[application/pdf is not text and is not shown]",
        ),
        (
            "/lie",
            "(200, text/plain, 3 B)",
            "[binary data is not shown, although the server calls it text]",
        ),
        ("/bare", "(200, no content type, 28 B)", "# Bare"),
        ("/raw", "(200, application/octet-stream, 12 B)", "fn main() {}"),
        (
            "/blob",
            "(200, application/octet-stream, 3 B)",
            "[application/octet-stream is not text and is not shown]",
        ),
        ("/empty", "(200, text/html, 2 B)", "[the page is empty]"),
        (
            "/script",
            "(200, text/html, 37 B)",
            "[the page has no text; scripts may build it, or `format` html shows its source]",
        ),
        ("/none", "(204, no content type, 0 B)", "[the page is empty]"),
    ];
    for (path, head, expected) in cases {
        let output = get(&desk, &site.url(path)).await;
        assert_eq!(output.content, format!("{} {head}\n\n{expected}", site.url(path)));
        assert!(!output.failed, "{path}");
    }
}

/// TOOL-2: an error response is a failed call that shows the response, up to a limit.
#[tokio::test]
async fn refusals_of_a_server_are_shown() {
    let site = Site::start(|path| match path {
        "/long" => answer("500 Oops", "Content-Type: text/plain\r\n", "x".repeat(9000)),
        _ => answer(
            "404 Not Found",
            "Content-Type: text/html\r\n",
            "<h1>No such page</h1>",
        ),
    })
    .await;
    let desk = desk(&["127.0.0.1"]);
    let output = get(&desk, &site.url("/gone")).await;
    assert!(output.failed);
    let expected = format!("{} (404, text/html, 21 B)\n\n# No such page", site.url("/gone"));
    assert_eq!(output.content, expected);
    let output = get(&desk, &site.url("/long")).await;
    assert!(output.failed);
    let expected = format!("{}\n[cut: these are the first 2000 characters]", "x".repeat(2000));
    assert_eq!(body(&output), expected);
    assert_eq!(detail(&output, "truncated"), true);
}

/// TOOL-2: redirects on the same host are followed a few times, others are reported.
#[tokio::test]
async fn redirects_stay_on_their_host() {
    let site = Site::start(|path| match path {
        "/a" => redirect("/b"),
        "/b" => redirect("c?d=1"),
        "/away" => redirect("https://other.example/page"),
        "/loop" => redirect("/loop"),
        "/nowhere" => answer("302 Found", "Content-Type: text/plain\r\n", "lost"),
        _ => page("text/plain", "here"),
    })
    .await;
    let desk = desk(&["127.0.0.1"]);
    let output = get(&desk, &site.url("/a")).await;
    assert_eq!(
        output.content,
        format!("{} (200, text/plain, 4 B)\n\nhere", site.url("/c?d=1"))
    );
    assert_eq!(detail(&output, "url"), &site.url("/a"));
    assert_eq!(detail(&output, "final_url"), &site.url("/c?d=1"));

    let output = get(&desk, &site.url("/away")).await;
    let expected =
        "It redirects to another host: https://other.example/page\nCall fetch with this URL if you want it.";
    assert_eq!(body(&output), expected);
    assert_eq!(detail(&output, "redirect"), "https://other.example/page");

    let output = get(&desk, &site.url("/nowhere")).await;
    assert!(output.failed && body(&output) == "lost", "{}", output.content);

    let before = site.paths().len();
    let error = desk.error("fetch", json!({ "url": site.url("/loop") })).await;
    assert!(
        matches!(&error, ToolError::Permanent(text) if text.contains("more than 5 times")),
        "{error}"
    );
    assert_eq!(site.paths().len() - before, 6);
}

/// TOOL-3: a large page is cut with a notice, and is never read to its end.
#[tokio::test]
async fn large_pages_are_cut() {
    let site = Site::start(|path| {
        let head =
            |more: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{more}\r\n").into_bytes();
        match path {
            "/endless" => Reply::Endless(head(""), vec![b'x'; 100_000]),
            "/packed" => Reply::Whole([head("Content-Encoding: gzip\r\n"), packed_zeros()].concat()),
            "/small" => Reply::Whole([head("Content-Encoding: gzip\r\n"), packed_text()].concat()),
            _ => page("text/plain", "\u{e4}".repeat(500_000)),
        }
    })
    .await;
    let desk = desk(&["127.0.0.1"]);
    let output = get(&desk, &site.url("/endless")).await;
    let first = output.content.lines().next().expect("a line");
    assert!(first.ends_with("(200, text/plain, more than 5.0 MB)"), "{first}");
    assert!(
        output
            .content
            .ends_with("\n[cut: these are the first 400000 characters]")
    );
    assert_eq!(detail(&output, "bytes"), 5_000_000);
    assert_eq!(detail(&output, "truncated"), true);

    let output = get(&desk, &site.url("/long")).await;
    assert_eq!(
        body(&output).chars().filter(|letter| *letter == '\u{e4}').count(),
        400_000
    );
    assert_eq!(detail(&output, "bytes"), 1_000_000);

    let output = get(&desk, &site.url("/packed")).await;
    assert_eq!(detail(&output, "bytes"), 5_000_000);
    assert_eq!(body(&get(&desk, &site.url("/small")).await), "hello");
}

/// Returns a gzip stream of one stored block: `hello`.
fn packed_text() -> Vec<u8> {
    gzip(b"\x01\x05\x00\xfa\xffhello", 0x3610_a686, 5)
}

/// Returns a gzip stream of 40 KB that unpacks to 6 MB: a zero, and its repetitions. Its checksum is wrong,
/// which shows only at the end.
fn packed_zeros() -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    // The literal 0 is 00110000; the length 258 is 11000101, the distance 1 is 00000; the end is 0000000.
    let mut push = |code: &str| bits.extend(code.bytes().map(|digit| digit == b'1'));
    push("00110000");
    for _ in 0..25_000 {
        push("1100010100000");
    }
    push("0000000");
    let byte = |bits: &[bool]| {
        let places = bits.iter().enumerate();
        places.fold(0_u8, |byte, (place, bit)| byte | u8::from(*bit) << place)
    };
    let packed: Vec<u8> = bits.chunks(8).map(byte).collect();
    gzip(&packed, 0, 6_450_001)
}

fn gzip(deflated: &[u8], checksum: u32, length: u32) -> Vec<u8> {
    let head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";
    [head, deflated, &checksum.to_le_bytes(), &length.to_le_bytes()].concat()
}

/// TOOL-2: a hostile page is read like any other.
#[tokio::test]
async fn nesting_has_no_depth_limit() {
    let site = Site::start(|_| page("text/html", "<div>".repeat(200_000) + "deep")).await;
    let output = get(&desk(&["127.0.0.1"]), &site.url("/")).await;
    assert_eq!(body(&output), "deep");
}

/// TOOL-2: a server that does not answer, or does not finish, costs no more time than the call has.
#[tokio::test]
async fn time_is_limited() {
    let site = Site::start(|path| match path {
        "/silent" => Reply::Open(Vec::new()),
        _ => Reply::Open(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\npart".to_vec(),
        ),
    })
    .await;
    let desk = desk(&["127.0.0.1"]);
    for path in ["/silent", "/part"] {
        let error = desk
            .error("fetch", json!({ "url": site.url(path), "timeout_secs": 1 }))
            .await;
        let expected = "127.0.0.1 took longer than 1 s. Try again with a larger `timeout_secs` (at most 120), or look \
                        for another source.";
        assert_eq!(error, ToolError::Transient(expected.to_owned()), "{path}");
    }
}

/// LOOP-8: a call can be cancelled while it waits for a response or for the rest of one.
#[tokio::test]
async fn waiting_can_be_canceled() {
    let site = Site::start(|path| match path {
        "/silent" => Reply::Open(Vec::new()),
        _ => Reply::Open(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\npart".to_vec(),
        ),
    })
    .await;
    for path in ["/silent", "/part"] {
        let desk = desk(&["127.0.0.1"]);
        let call = desk.call("fetch", json!({ "url": site.url(path) }));
        let stop = async {
            until("the request has arrived", || {
                site.paths().contains(&path.to_owned())
            })
            .await;
            desk.cancel.cancel();
        };
        let (result, ()) = tokio::time::timeout(SOON, async { tokio::join!(call, stop) })
            .await
            .expect("it stops soon");
        assert_eq!(result, Err(ToolError::Canceled(String::new())), "{path}");
    }
}

/// TOOL-2: this machine and its network are not reachable, however they are spelled.
#[tokio::test]
async fn private_hosts_are_refused() {
    let site = Site::start(|_| page("text/plain", "secret")).await;
    let desk = desk(&["wiki.internal"]);
    let hosts = [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "localhost",
        "LocalHost.",
        "app.localhost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00:ec2::254]",
    ];
    for host in hosts {
        let error = desk
            .error("fetch", json!({ "url": format!("http://{host}:{}/", site.port) }))
            .await;
        let refused = matches!(&error, ToolError::Permanent(text) if text.starts_with("Refused: "));
        assert!(refused, "{host}: {error:?}");
    }
    assert!(site.paths().is_empty());
}

/// TOOL-1: wrong arguments are named, with the expected values.
#[tokio::test]
async fn wrong_arguments_are_explained() {
    let desk = desk(&[]);
    let cases = [
        (
            json!({ "url": "docs.rs" }),
            "`url` has no scheme; write the full URL, as in https://docs.rs.",
        ),
        (
            json!({ "url": "file:///etc/passwd" }),
            "`url` is a file: URL; only http: and https: can be fetched.",
        ),
        (
            json!({ "url": "https://a:b@docs.rs/" }),
            "`url` contains a user name or password; leave out the part before the @.",
        ),
        (
            json!({ "url": "https://docs.rs/", "timeout_secs": 0 }),
            "`timeout_secs` must be at least 1.",
        ),
    ];
    for (arguments, expected) in cases {
        let error = desk.error("fetch", arguments).await;
        assert_eq!(error, ToolError::Invalid(expected.to_owned()));
    }
    for arguments in [
        json!({}),
        json!({ "url": "x", "format": "pdf" }),
        json!({ "url": "x", "method": "POST" }),
    ] {
        assert!(
            matches!(desk.prepare("fetch", &arguments), Err(ToolError::Invalid(_))),
            "{arguments}"
        );
    }
}

/// TOOL-7: a closed port is reported as a wrong address.
#[tokio::test]
async fn a_closed_port_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}/");
    let error = desk(&["127.0.0.1"]).error("fetch", json!({ "url": url })).await;
    let expected =
        format!("127.0.0.1 refuses connections on port {port}. Check the host and the port in `url`.");
    assert_eq!(error, ToolError::Permanent(expected));
}

/// TOOL-7: a response that is not HTTP, or is incomplete, is worth a retry.
#[tokio::test]
async fn broken_answers_are_reported() {
    let site = Site::start(|path| match path {
        "/garbage" => Reply::Whole(b"SSH-2.0-OpenSSH\r\n".to_vec()),
        _ => Reply::Whole(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\npart".to_vec(),
        ),
    })
    .await;
    let desk = desk(&["127.0.0.1"]);
    for path in ["/garbage", "/part"] {
        let error = desk.error("fetch", json!({ "url": site.url(path) })).await;
        let told = matches!(&error, ToolError::Transient(text) if text.starts_with("The request to 127.0.0.1 failed: "));
        assert!(told, "{path}: {error:?}");
    }
}

/// TOOL-7: a server that does not speak TLS is reported, and a retry would not help.
#[tokio::test]
async fn a_server_without_encryption_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            // The client closes first, so that it reads the response.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let url = format!("https://127.0.0.1:{port}/");
    let error = desk(&["127.0.0.1"]).error("fetch", json!({ "url": url })).await;
    let told = matches!(&error, ToolError::Permanent(text) if text.starts_with("No secure connection to 127.0.0.1: "));
    assert!(told, "{error:?}");
}

/// TOOL-1, SAFE-6: fetching is a read, and its subject is a host that rules can name.
#[test]
fn rules_see_the_host() {
    let desk = desk(&[]);
    let prepared = desk
        .prepare(
            "fetch",
            &json!({ "url": "https://Docs.RS.:8443/x", "format": null, "timeout_secs": null }),
        )
        .expect("a call");
    assert_eq!(prepared.category, Category::Read);
    assert_eq!(prepared.subjects, [Subject::Host("docs.rs".to_owned())]);
    let prepared = desk
        .prepare("fetch", &json!({ "url": "nonsense" }))
        .expect("a call");
    assert_eq!(prepared.subjects, []);
    assert!(builtin(&ToolsConfig::default()).get("fetch").is_none());
    let config = ToolsConfig {
        fetch: Some(FetchConfig::default()),
        ..ToolsConfig::default()
    };
    let specs = builtin(&config).specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert!(
        names.windows(2).any(|pair| pair == ["grep", "fetch"]),
        "{names:?}"
    );
    let spec = specs.iter().find(|spec| spec.name == "fetch").expect("fetch");
    let bytes = serde_json::to_string(spec).expect("JSON").len();
    assert!(bytes < 600, "{bytes} {spec:?}");
}
