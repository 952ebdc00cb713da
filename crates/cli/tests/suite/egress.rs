//! Egress by host: commands reach the hosts they were given, and no others.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass_sim::{Protocol, Reply};

use super::support::{results, with_replies};

/// A server on this machine that answers every request, and the first lines of what it was asked.
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers with what `answer` returns for a path: the content type and the body.
    pub(super) fn start(answer: impl Fn(&str) -> (String, Vec<u8>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut head = vec![0; 8192];
                let count = stream.read(&mut head).unwrap_or_default();
                let text = String::from_utf8_lossy(&head[..count]).into_owned();
                let line = text.lines().next().unwrap_or_default().to_owned();
                let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.lock().expect("no panic").push(line);
                let (kind, body) = answer(&path);
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            }
        });
        Self { port, asked }
    }

    fn count(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }
}

fn hello(_: &str) -> (String, Vec<u8>) {
    ("text/plain".to_owned(), b"hello from outside".to_vec())
}

/// SAFE-12: with a list of hosts, commands reach these through the proxy without a question, and nothing else;
/// the result says what was asked for.
#[test]
fn commands_reach_the_hosts_they_were_given() {
    let (allowed, other) = (Server::start(hello), Server::start(hello));
    let fetch = |port: u16| {
        let script = format!(
            "import urllib.request\ntry: print(urllib.request.urlopen('http://localhost:{port}/x').read().decode())\n\
             except Exception as error: print('failed:', error)\n"
        );
        Reply::call(
            "bash",
            json!({ "command": format!("python3 -c \"{script}\""), "write": true }),
        )
    };
    // Around the proxy there is nothing.
    let direct = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {}), 2)\" && echo REA''CHED",
        allowed.port
    );
    let replies = [
        fetch(allowed.port),
        fetch(other.port),
        Reply::call("bash", json!({ "command": direct, "write": true })),
        Reply::text("done"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let setting = format!("security.network=[\"localhost:{}\"]", allowed.port);
    workspace
        .run(&["exec", "go", "--mode", "full", "-c", &setting])
        .output()
        .assert_code(0);
    let outlines = sim.outlines();
    assert!(outlines[1].contains("hello from outside"), "{}", outlines[1]);
    assert!(outlines[2].contains("403"), "{}", outlines[2]);
    assert!(
        outlines[2].contains(&format!("not reached: localhost:{}", other.port)),
        "{}",
        outlines[2]
    );
    assert!(!outlines[3].contains("REACHED"), "{}", outlines[3]);
    assert_eq!((allowed.count(), other.count()), (1, 0));
}

/// SAFE-12: rules name the domains that commands reach without a question, and those they never reach; a denied
/// or asked one is closed even if another entry covers it.
#[test]
fn rules_name_domains() {
    let server = Server::start(hello);
    let fetch = |name: &str| {
        let script = format!(
            "import urllib.request\ntry: print(urllib.request.urlopen('http://{name}:{}/x').read().decode())\n\
             except Exception as error: print('failed:', error)\n",
            server.port
        );
        Reply::call(
            "bash",
            json!({ "command": format!("python3 -c \"{script}\""), "write": true }),
        )
    };
    let names = ["localhost", "a.localhost", "b.localhost", "c.localhost"];
    let replies = names.map(fetch).into_iter().chain([Reply::text("done")]);
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let allow = format!("security.allow=[\"bash(domain:localhost:{})\"]", server.port);
    let deny = "security.deny=[\"bash(domain:b.localhost)\"]";
    let ask = "security.ask=[\"bash(domain:c.localhost)\"]";
    workspace
        .run(&["exec", "go", "-c", &allow, "-c", deny, "-c", ask])
        .output()
        .assert_code(0);
    let outlines = sim.outlines();
    assert!(outlines[1].contains("hello from outside"), "{}", outlines[1]);
    // Covered by the rule, and let through: this name may not resolve on every machine.
    assert!(!outlines[2].contains("403"), "{}", outlines[2]);
    for outline in &outlines[3..5] {
        assert!(outline.contains("403"), "{outline}");
    }
}

/// SAFE-6, SAFE-12: with a rule for its registry a package manager runs; a rule that denies or asks about the
/// registry prevails.
#[test]
fn rules_about_a_registry() {
    let run = |settings: &[&str]| {
        let replies = [
            Reply::call("bash", json!({ "command": "npm install --offline left-pad" })),
            Reply::text("done"),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let mut args = vec!["exec", "go"];
        args.extend(settings.iter().flat_map(|setting| ["-c", setting]));
        (workspace.run(&args).output(), sim.outlines())
    };
    let allow = "security.allow=[\"bash(domain:npmjs.org)\"]";
    let (output, _) = run(&[]);
    output.assert_code(5);
    let (output, _) = run(&[allow]);
    output.assert_code(0);
    let (output, outlines) = run(&[allow, "security.deny=[\"bash(domain:registry.npmjs.org)\"]"]);
    output.assert_code(0);
    assert!(
        outlines[1].contains("the rule `bash(domain:registry.npmjs.org)` forbids this"),
        "{}",
        outlines[1]
    );
    let (output, _) = run(&[allow, "security.ask=[\"bash(domain:*.npmjs.org)\"]"]);
    output.assert_code(5);
    let (output, _) = run(&["security.allow=[\"bash(domain:*)\"]"]);
    output.assert_code(3).assert_says("a domain is a host name");
}

/// SAFE-12: a package manager asks for its registry, not for the internet; headless, the call is denied and the
/// message names the registry.
#[test]
fn a_package_manager_asks_for_its_registry() {
    let replies = [Reply::call("bash", json!({ "command": "npm install left-pad" }))];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let output = workspace.run(&["exec", "-o", "stream-json", "go"]).output();
    output.assert_code(5);
    let reasons = output
        .stdout
        .contains("it reaches registry.npmjs.org, and no other host");
    assert!(reasons, "{output}");
}

/// SAFE-12: a real package manager installs from a registry through the proxy, and reaches nothing else.
#[test]
fn pip_installs_from_its_registry() {
    let path = path_with("python3", &["-m", "pip", "--version"]);
    let wheel = wheel();
    let server = Server::start(move |path| match path {
        path if path.ends_with(".whl") => ("application/octet-stream".to_owned(), wheel.clone()),
        _ => {
            let link = "<a href=\"/tiny_thing-1.0-py3-none-any.whl\">tiny_thing-1.0-py3-none-any.whl</a>";
            ("text/html".to_owned(), link.as_bytes().to_vec())
        }
    });
    let command = format!(
        "python3 -m pip install --no-cache-dir --disable-pip-version-check --target ./lib --trusted-host localhost \
         --index-url http://localhost:{}/simple tiny-thing && cat lib/tiny_thing.py",
        server.port
    );
    let replies = [
        Reply::call("bash", json!({ "command": command })),
        Reply::text("done"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let setting = format!("security.network=[\"localhost:{}\"]", server.port);
    let rule = "security.allow=[\"bash(python3 *, network, outside)\",\"bash(cat *)\"]";
    let output = workspace
        .run(&["exec", "go", "--mode", "full", "-c", &setting, "-c", rule])
        .env("PATH", &path)
        .output();
    output.assert_code(0);
    assert_eq!(
        workspace.read("lib/tiny_thing.py"),
        "value = 42\n",
        "{}",
        sim.outlines()[1]
    );
    assert!(server.count() >= 2);
}

/// SAFE-12: npm installs from a registry through the proxy, with a cache that it may write, and a package from another
/// host is refused.
#[test]
fn npm_installs_from_its_registry() {
    let path = path_with("npm", &["--version"]);
    let elsewhere = Server::start(hello);
    let (package, other) = (npm_package(), elsewhere.port);
    let port = Arc::new(AtomicU16::new(0));
    let own = Arc::clone(&port);
    let server = Server::start(move |path| match path.trim_start_matches('/') {
        path if path.ends_with(".tgz") => ("application/octet-stream".to_owned(), package.clone()),
        name => {
            let port = match name {
                "tiny-thing" => own.load(Ordering::Relaxed),
                _ => other,
            };
            let tarball = format!("http://localhost:{port}/{name}-1.0.0.tgz");
            let version = json!({ "name": name, "version": "1.0.0", "dist": { "tarball": tarball } });
            let page =
                json!({ "name": name, "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } });
            ("application/json".to_owned(), page.to_string().into_bytes())
        }
    });
    port.store(server.port, Ordering::Relaxed);
    let install = |name: &str| {
        let options = "--no-audit --no-fund --no-update-notifier --fetch-retries 0 --loglevel error";
        let command = format!(
            "npm install {options} --registry http://localhost:{}/ {name}",
            server.port
        );
        Reply::call("bash", json!({ "command": command }))
    };
    let replies = [install("tiny-thing"), install("other-thing"), Reply::text("done")];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write(
        "package.json",
        "{ \"name\": \"project\", \"version\": \"1.0.0\" }\n",
    );
    let setting = format!("security.network=[\"localhost:{}\"]", server.port);
    let rule = "security.allow=[\"bash(npm *, network)\"]";
    let output = workspace
        .run(&["exec", "go", "--mode", "full", "-c", &setting, "-c", rule])
        .env("PATH", &path)
        .output();
    output.assert_code(0);
    let results = results(&sim);
    let installed = |name: &str| workspace.has(&format!("node_modules/{name}/index.js"));
    assert!(
        installed("tiny-thing") && !installed("other-thing"),
        "{results:?}"
    );
    let refused = format!("not reached: localhost:{other}");
    assert!(results[1].contains(&refused), "{results:?}");
    assert_eq!(elsewhere.count(), 0);
}

/// Returns a PATH with a program that works. The test command installs what the machine does not have.
fn path_with(program: &str, arguments: &[&str]) -> String {
    let machine = std::env::var("PATH").expect("a path");
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("sdk-venv/bin");
    let works = |path: &String| {
        let output = Command::new(program).args(arguments).env("PATH", path).output();
        output.is_ok_and(|output| output.status.success())
    };
    let paths = [machine.clone(), format!("{}:{machine}", own.display())];
    let found = paths.into_iter().find(works);
    found.unwrap_or_else(|| {
        panic!("{program} {arguments:?} does not work; `cargo xtask test --only prerequisites` installs it")
    })
}

/// A package with one file, as npm reads it.
fn npm_package() -> Vec<u8> {
    python(
        "import io, sys, tarfile\n\
         out = io.BytesIO()\n\
         with tarfile.open(fileobj=out, mode='w:gz') as t:\n\
         \x20for name, text in [('package.json', '{\"name\": \"tiny-thing\", \"version\": \"1.0.0\"}'), ('index.js', 'exports.value = 42')]:\n\
         \x20\x20data = text.encode()\n\
         \x20\x20info = tarfile.TarInfo('package/' + name)\n\
         \x20\x20info.size = len(data)\n\
         \x20\x20t.addfile(info, io.BytesIO(data))\n\
         sys.stdout.buffer.write(out.getvalue())\n",
    )
}

/// A package with one file, as pip reads it.
fn wheel() -> Vec<u8> {
    python(
        "import base64, io, sys, zipfile\n\
        out = io.BytesIO()\n\
        with zipfile.ZipFile(out, 'w') as z:\n\
        \x20z.writestr('tiny_thing.py', 'value = 42\\n')\n\
        \x20z.writestr('tiny_thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny-thing\\nVersion: 1.0\\n')\n\
        \x20z.writestr('tiny_thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20z.writestr('tiny_thing-1.0.dist-info/RECORD', '')\n\
        sys.stdout.buffer.write(out.getvalue())\n",
    )
}

/// Returns the output of a script.
fn python(script: &str) -> Vec<u8> {
    let output = Command::new("python3")
        .args(["-c", script])
        .output()
        .expect("python");
    assert!(output.status.success());
    output.stdout
}
