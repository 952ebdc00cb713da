//! Egress by host: commands reach the hosts they were given, and no others.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass_sim::{Protocol, Reply};

use super::support::with_replies;

/// A server on this machine that answers every request, and the first lines of what it was asked.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers with what `answer` returns for a path: the content type and the body.
    fn start(answer: impl Fn(&str) -> (String, Vec<u8>) + Send + 'static) -> Self {
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
    let pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|output| output.status.success()) {
        return;
    }
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

/// A package with one file, as pip reads it.
fn wheel() -> Vec<u8> {
    let script = "import base64, io, sys, zipfile\n\
        out = io.BytesIO()\n\
        with zipfile.ZipFile(out, 'w') as z:\n\
        \x20z.writestr('tiny_thing.py', 'value = 42\\n')\n\
        \x20z.writestr('tiny_thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny-thing\\nVersion: 1.0\\n')\n\
        \x20z.writestr('tiny_thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20z.writestr('tiny_thing-1.0.dist-info/RECORD', '')\n\
        sys.stdout.buffer.write(out.getvalue())\n";
    let output = Command::new("python3")
        .args(["-c", script])
        .output()
        .expect("python");
    assert!(output.status.success());
    output.stdout
}
