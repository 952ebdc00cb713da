//! `windlass serve` with TLS, and behind a proxy that signs people in.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use serde_json::json;
use windlass_sim::Protocol;
use windlass_testkit::{HttpAnswer, PATIENCE, Running, SseEvents, Workspace, eventually, http, https};

use super::support::with_replies;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// An authority, with which clients check certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { issuer }
    }

    /// Writes a certificate for `box.test` and its key into the workspace.
    fn issue(&self, workspace: &Workspace, name: &str, years: (i32, i32)) {
        let names = ["box.test".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        workspace.write(&format!("{name}.pem"), &certificate.pem());
        workspace.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn der(&self) -> &[u8] {
        self.issuer.der()
    }
}

/// Starts a server, and returns its address and the secret of its login link.
fn started(workspace: &Workspace, arguments: &[&str]) -> (Running, String, String) {
    let run = workspace.run(&["serve", "--listen", "127.0.0.1:0"]);
    let mut running = run.args(arguments).start();
    running.wait_for_stdout("/#t=");
    running.wait_until("the link is printed", |running| running.stdout().ends_with('\n'));
    let said = running.stdout();
    let url = said.split_whitespace().find(|word| word.contains("://")).unwrap();
    let port = url.rsplit(':').next().unwrap().to_owned();
    let secret = said.trim().rsplit("#t=").next().unwrap().to_owned();
    (running, format!("127.0.0.1:{port}"), secret)
}

/// SRV-3: with certificate files, the server speaks HTTPS only, under the names of the certificate; a replaced certificate
/// is used without a restart, and one that cannot be used is not.
#[test]
fn tls_by_certificate_files() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let first = Authority::new();
    first.issue(&workspace, "box", (2020, 2120));
    let arguments = ["--tls-cert", "box.pem", "--tls-key", "box.key"];
    let (mut server, addr, secret) = started(&workspace, &arguments);
    assert!(
        server.stdout().contains("listening on https://box.test:"),
        "{}",
        server.stdout()
    );
    let plain = http(&addr, "GET", "/api/health", &[], "");
    assert_eq!(
        (plain.status, plain.body.contains("https://")),
        (400, true),
        "{plain:?}"
    );
    let ask = |authority: &Authority, headers: &[(&str, &str)], request: (&str, &str, &str)| {
        https(&addr, ("box.test", authority.der()), headers, request)
    };
    let body = json!({ "token": secret }).to_string();
    let port = addr.rsplit(':').next().unwrap();
    let host = format!("box.test:{port}");
    let answer = ask(&first, &[JSON, ("Host", &host)], ("POST", "/api/login", &body)).unwrap();
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-windlass-") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let status = |authority: &Authority| {
        ask(authority, &[("Cookie", cookie)], ("GET", "/api/sessions", "")).map(|answer| answer.status)
    };
    assert_eq!(status(&first), Ok(200));
    let other = ask(&first, &[("Host", "evil.test")], ("GET", "/api/health", "")).unwrap();
    assert_eq!(other.status, 421);

    // A terminal attaches if it knows the authority, and otherwise says what is missing.
    let token = workspace.run(&["token", "create", "terminal", "--scope", "admin"]);
    let token = token.output().stdout;
    let file = workspace.write("authority.pem", &first.issuer.pem());
    let attach = |authority: &str| {
        let url = format!("https://{addr}");
        let run = workspace.run(&["attach", &url, "--new", "--plain"]);
        let run = run
            .env("WINDLASS_TOKEN", token.trim())
            .env("SSL_CERT_FILE", authority);
        run.stdin("/mode\n").output()
    };
    let attached = attach(&file.display().to_string());
    assert!(
        attached.code == Some(0) && attached.stdout.contains("auto: "),
        "{attached:?}"
    );
    let other = workspace.write("other.pem", &Authority::new().issuer.pem());
    let refused = attach(&other.display().to_string());
    assert!(
        refused.code != Some(0) && refused.stderr.contains("SSL_CERT_FILE"),
        "{refused:?}"
    );

    let second = Authority::new();
    assert!(status(&second).is_err(), "another authority");
    second.issue(&workspace, "box", (2020, 2120));
    assert_eq!(status(&second), Ok(200));
    workspace.write("box.pem", "not a certificate");
    assert_eq!(status(&second), Ok(200));
    server.wait_for_stderr("keeping the last valid certificate");
    server.terminate();
    assert_eq!(server.output().code, Some(0));
}

/// SRV-3: files that cannot be used are refused at the start, with the file and the reason.
#[test]
fn unusable_certificates_are_refused() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let authority = Authority::new();
    authority.issue(&workspace, "good", (2020, 2120));
    authority.issue(&workspace, "old", (2020, 2021));
    authority.issue(&workspace, "early", (2110, 2120));
    workspace.write("empty.pem", "");
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    workspace.write("locked.key", locked);
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--tls-cert", "none.pem", "--tls-key", "good.key"],
            &["none.pem", "No such file"],
        ),
        (
            &["--tls-cert", "good.pem", "--tls-key", "none.key"],
            &["none.key", "No such file"],
        ),
        (
            &["--tls-cert", "empty.pem", "--tls-key", "good.key"],
            &["empty.pem", "no certificate"],
        ),
        (
            &["--tls-cert", "good.pem", "--tls-key", "locked.key"],
            &["locked.key", "encrypted"],
        ),
        (
            &["--tls-cert", "good.pem", "--tls-key", "good.pem"],
            &["good.pem", "no private key"],
        ),
        (
            &["--tls-cert", "good.pem", "--tls-key", "old.key"],
            &["old.key", "does not belong"],
        ),
        (
            &["--tls-cert", "old.pem", "--tls-key", "old.key"],
            &["old.pem", "expired"],
        ),
        (
            &["--tls-cert", "early.pem", "--tls-key", "early.key"],
            &["early.pem", "not valid for another"],
        ),
        (&["--tls-cert", "good.pem"], &["--tls-key"]),
        (&["--tls-key", "good.key"], &["--tls-cert"]),
        (
            &["--tls-cert", "good.pem", "--tls-key", "good.key", "--https"],
            &["leave --https out"],
        ),
        (&["--trust-proxy", "127.0.0.1"], &["--identity-header"]),
        (&["--identity-header", "X-User"], &["--trust-proxy"]),
        (
            &["--trust-proxy", "127.0.0.1", "--identity-header", "X-User"],
            &["--identity USER"],
        ),
        (
            &[
                "--trust-proxy",
                "127.0.0.1",
                "--identity-header",
                "X-User",
                "--identity",
                "ann=all",
            ],
            &["`all`", "approve"],
        ),
    ];
    for (arguments, expected) in cases {
        let refused = workspace
            .run(&["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .output();
        assert_ne!(refused.code, Some(0), "{arguments:?}");
        for text in *expected {
            assert!(refused.stderr.contains(text), "{arguments:?} {text}: {refused:?}");
        }
    }
    workspace.config("[server]\ntrust_proxy = \"box\"\n");
    let refused = workspace.run(&["serve", "--listen", "127.0.0.1:0"]).output();
    assert!(
        refused.stderr.contains("server.trust_proxy") && refused.stderr.contains("IP address"),
        "{refused:?}"
    );
}

/// SRV-3: the settings have the same keys as the options, and plain HTTP to other machines is said to be that.
#[test]
fn settings_and_warnings() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, []);
    let authority = Authority::new();
    authority.issue(&workspace, "box", (2020, 2120));
    let folder = workspace.path();
    let keys = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ntls_cert = \"{0}/box.pem\"\ntls_key = \"{0}/box.key\"\n",
        folder.display()
    );
    workspace.use_sim_with(&sim, Protocol::Anthropic, &keys);
    let mut secure = workspace.run(&["serve"]).start();
    secure.wait_for_stdout("listening on https://box.test:");
    secure.terminate();
    let output = secure.output();
    assert!(!output.stderr.contains("plain HTTP"), "{output:?}");
    workspace.use_sim(&sim, Protocol::Anthropic);
    let mut open = workspace.run(&["serve", "--listen", "0.0.0.0:0"]).start();
    open.wait_for_stdout("/#t=");
    open.terminate();
    let output = open.output();
    assert!(
        output.stderr.contains("plain HTTP") && output.stderr.contains("--tls-cert"),
        "{output:?}"
    );
}

fn as_user(addr: &str, user: &[&str], (method, path): (&str, &str)) -> HttpAnswer {
    let mut headers = vec![JSON, ("X-Windlass", "1")];
    headers.extend(user.iter().map(|user| ("X-Forwarded-User", *user)));
    http(addr, method, path, &headers, "{}")
}

/// SRV-3: the proxy names a user, who has the scopes of the settings; others, and requests that do not come from the proxy,
/// have none.
#[test]
fn a_proxy_names_the_user() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let identity = [
        "--identity-header",
        "X-Forwarded-User",
        "--identity",
        "ann@example.com",
    ];
    let more = ["--identity", "bob=read", "--trust-proxy"];
    let arguments: Vec<&str> = identity.into_iter().chain(more).collect();
    let trusting: Vec<&str> = arguments.iter().copied().chain(["127.0.0.1"]).collect();
    let (server, addr, _) = started(&workspace, &trusting);
    let list = ("GET", "/api/sessions");
    let create = ("POST", "/api/sessions");
    let check = |answer: &HttpAnswer| (answer.status, answer.json()["check"].as_str().map(str::to_owned));
    let is = |status: u16, check: &str| (status, Some(check.to_owned()));
    assert_eq!(as_user(&addr, &["ann@example.com"], create).status, 201);
    assert_eq!(as_user(&addr, &["bob"], list).status, 200);
    assert_eq!(check(&as_user(&addr, &["bob"], create)), is(403, "scope"));
    assert_eq!(check(&as_user(&addr, &["eve"], list)), is(403, "identity"));
    assert_eq!(check(&as_user(&addr, &["eve", "bob"], list)), is(403, "identity"));
    assert_eq!(check(&as_user(&addr, &[], list)), is(401, "credential"));
    assert_eq!(check(&as_user(&addr, &[""], list)), is(401, "credential"));
    let ann = ("X-Forwarded-User", "ann@example.com");
    // A browser sends the header's cookie by itself, so that changes need what no form can send.
    let forged = http(&addr, "POST", "/api/sessions", &[ann, JSON], "{}");
    assert_eq!(check(&forged), is(403, "header"));
    let foreign = http(
        &addr,
        "GET",
        "/api/sessions",
        &[ann, ("Origin", "http://evil.test")],
        "",
    );
    assert_eq!(check(&foreign), is(403, "origin"));
    let stream = SseEvents::open(&addr, "/api/events", &[ann]);
    as_user(&addr, &["ann@example.com"], create);
    stream.wait_for("a new session", |event| event.name == "session");
    server.terminate();
    stream.wait_for_end();
    let said = server.output();
    assert!(said.stderr.contains("every program on this machine"), "{said:?}");

    // The same requests, when another address is the proxy's.
    let other: Vec<&str> = arguments.iter().copied().chain(["127.0.0.2"]).collect();
    let (server, addr, _) = started(&workspace, &other);
    for user in [&["ann@example.com"][..], &["bob"], &["eve"]] {
        assert_eq!(
            check(&as_user(&addr, user, list)),
            is(401, "credential"),
            "{user:?}"
        );
    }
    assert!(eventually(PATIENCE, || as_user(
        &addr,
        &[],
        ("GET", "/api/health")
    )
    .status
        == 200));
    server.terminate();
    server.output();
}
