//! A real browser: Chromium without a window, driven over the WebDriver protocol.
//!
//! The client is a few requests over loopback, so it needs no HTTP library. Commands of the browser's own protocol
//! (network loss, frozen tabs, screenshots) go through [`Browser::cdp`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{PATIENCE, eventually, must};

/// Time in which the browser answers a command.
const ANSWER: Duration = Duration::from_secs(60);

/// Options of the browser: no window, no requests of its own, and no sandbox, which needs rights that root in a
/// container does not have.
const OPTIONS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--enable-precise-memory-info",
];

/// A browser with one tab.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with a window of this size. Fails the test if there is no Chromium.
    pub fn start(width: u32, height: u32) -> Self {
        let profile = must(tempfile::tempdir(), "create a folder for the browser");
        let mut command = Command::new("chromedriver");
        command
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // Its own group, so that the browser ends with it.
        let mut driver = must(
            command.process_group(0).spawn(),
            "start chromedriver (on Debian: apt-get install chromium chromium-driver)",
        );
        let port = match driver.stdout.take() {
            Some(stdout) => port(BufReader::new(stdout)),
            None => panic!("chromedriver has no output"),
        };
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let folder = format!("--user-data-dir={}", browser._profile.path().display());
        let size = format!("--window-size={width},{height}");
        let options: Vec<&str> = OPTIONS.iter().copied().chain([&*folder, &*size]).collect();
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": options }, "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let answer = browser.request("POST", "/session", &wanted);
        browser.session = answer["sessionId"].as_str().unwrap_or_default().to_owned();
        assert!(!browser.session.is_empty(), "no browser: {answer}");
        browser
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
    }

    /// Runs a script, whose result is the value it returns.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that answers later, by calling its last argument.
    #[track_caller]
    pub fn run_async(&self, script: &str) -> Value {
        self.command("execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Runs a command of the browser's own protocol.
    #[track_caller]
    pub fn cdp(&self, command: &str, parameters: Value) -> Value {
        self.command(
            "goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        )
    }

    /// Waits until an expression is true; `what` describes it for the failure message.
    #[track_caller]
    pub fn wait_until(&self, what: &str, expression: &str) {
        let script = format!("return Boolean({expression})");
        if !eventually(PATIENCE, || self.run(&script) == true) {
            let (text, console) = (self.text(), self.console());
            panic!(
                "after {PATIENCE:?} it is still not true that {what}\n--- page\n{text}\n--- console\n{console:#?}"
            );
        }
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let expression = format!("document.body.innerText.includes({})", json!(text));
        self.wait_until(&format!("the page shows `{text}`"), &expression);
    }

    /// Waits until no text like this is on the page.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        let expression = format!("!document.body.innerText.includes({})", json!(text));
        self.wait_until(&format!("the page no longer shows `{text}`"), &expression);
    }

    /// Returns the visible text.
    pub fn text(&self) -> String {
        let text = self.run("return document.body.innerText");
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first element of a selector, as a person would, once it is there.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.wait_until(
            &format!("there is `{selector}`"),
            &format!("document.querySelector({})?.checkVisibility()", json!(selector)),
        );
        let found = self.command("element", &json!({ "using": "css selector", "value": selector }));
        let element = found.as_object().and_then(|element| element.values().next());
        let element = element.and_then(Value::as_str).unwrap_or_default().to_owned();
        self.command(&format!("element/{element}/click"), &json!({}));
    }

    /// Types keys into whatever has the focus. Special keys are those of WebDriver, such as [`key::ENTER`].
    pub fn press(&self, keys: &str) {
        let mut actions = Vec::new();
        for key in keys.chars() {
            actions.push(json!({ "type": "keyDown", "value": key.to_string() }));
            actions.push(json!({ "type": "keyUp", "value": key.to_string() }));
        }
        self.keys(&actions);
    }

    /// Presses a key together with a modifier.
    pub fn chord(&self, modifier: &str, key: &str) {
        let action = |kind: &str, value: &str| json!({ "type": kind, "value": value });
        self.keys(&[
            action("keyDown", modifier),
            action("keyDown", key),
            action("keyUp", key),
            action("keyUp", modifier),
        ]);
    }

    fn keys(&self, actions: &[Value]) {
        let device = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.command("actions", &json!({ "actions": [device] }));
    }

    /// Returns what the page wrote to the console since the last call, worst first.
    pub fn console(&self) -> Vec<String> {
        let lines = self.command("se/log", &json!({ "type": "browser" }));
        let lines = lines.as_array().cloned().unwrap_or_default();
        lines
            .iter()
            .map(|line| {
                format!(
                    "{}: {}",
                    line["level"].as_str().unwrap_or_default(),
                    line["message"].as_str().unwrap_or_default()
                )
            })
            .collect()
    }

    /// Returns the memory of the largest tab process in bytes, shared pages counted by their share.
    pub fn memory(&self) -> u64 {
        let renderers = crate::processes_with("--type=renderer");
        let own = renderers
            .into_iter()
            .filter(|pid| group(*pid) == Some(self.driver.id()));
        let size = |pid: u32| {
            let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            kilobytes.unwrap_or_default() * 1024
        };
        let largest = own.map(size).max().unwrap_or_default();
        assert!(largest > 0, "the browser has a tab process");
        largest
    }

    #[track_caller]
    fn command(&self, path: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}/{path}", self.session), body)
    }

    #[track_caller]
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let text = must(
            send(self.port, method, path, &body.to_string()),
            "talk to chromedriver",
        );
        let answer: Value = must(serde_json::from_str(&text), "read the answer of chromedriver");
        let value = &answer["value"];
        assert!(value.get("error").is_none(), "{path} {body}: {value}");
        value.clone()
    }
}

/// Keys that are no characters, as WebDriver writes them.
pub mod key {
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// Tab.
    pub const TAB: &str = "\u{e004}";
    /// Escape.
    pub const ESCAPE: &str = "\u{e00c}";
    /// The arrow that points down.
    pub const DOWN: &str = "\u{e015}";
    /// Control.
    pub const CONTROL: &str = "\u{e009}";
    /// Shift.
    pub const SHIFT: &str = "\u{e008}";
    /// Alt.
    pub const ALT: &str = "\u{e00a}";
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = send(self.port, "DELETE", &format!("/session/{}", self.session), "");
        let group = i32::try_from(self.driver.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.driver.wait();
    }
}

/// Returns the process group of a process.
fn group(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets and may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

/// Reads the port that chromedriver chose, and keeps reading on a thread so that it never waits for us.
fn port(mut output: BufReader<impl Read + Send + 'static>) -> u16 {
    let mut line = String::new();
    let mut found = None;
    while found.is_none() && output.read_line(&mut line).is_ok_and(|length| length > 0) {
        let number = line.trim().trim_end_matches('.').rsplit(' ').next();
        found = number
            .filter(|_| line.contains("successfully on port"))
            .and_then(|number| number.parse().ok());
        line.clear();
    }
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    match found {
        Some(port) => port,
        None => panic!("chromedriver did not say its port"),
    }
}

/// Sends one request and returns the body of the answer.
fn send(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let header = line.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}
