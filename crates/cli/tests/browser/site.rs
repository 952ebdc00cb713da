//! A server with a simulated model, and a browser that is signed in.

use std::time::Duration;

use serde_json::json;
use windlass_sim::{Protocol, Reply, Script};
use windlass_testkit::{Browser, Running, Signal, SimServer, Workspace, key};

/// A server on a port of its own.
pub(super) struct Site {
    pub(super) sim: SimServer,
    pub(super) workspace: Workspace,
    server: Option<Running>,
    pub(super) url: String,
}

impl Site {
    /// Starts a server whose model gives these replies.
    pub(super) fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_with(replies, |_| ())
    }

    /// Like [`Self::start`], with a workspace that was prepared.
    pub(super) fn start_with(
        replies: impl IntoIterator<Item = Reply>,
        prepare: impl FnOnce(&Workspace),
    ) -> Self {
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let sim = SimServer::script(script);
        let workspace = Workspace::new(env!("CARGO_BIN_EXE_windlass"));
        workspace.use_sim_with(&sim, Protocol::Anthropic, "\n[security]\nmode = \"ask\"\n");
        prepare(&workspace);
        let mut site = Self {
            sim,
            workspace,
            server: None,
            url: String::new(),
        };
        site.serve("127.0.0.1:0");
        site
    }

    fn serve(&mut self, address: &str) {
        let run = self.workspace.run(&["serve", "--listen", address]);
        let mut server = run.limit(Duration::from_secs(600)).start();
        server.wait_for_stdout("sign in");
        let printed = server.stdout();
        let line = printed
            .lines()
            .find_map(|line| line.strip_prefix("listening on "));
        self.url = line.unwrap().trim().to_owned();
        self.server = Some(server);
    }

    /// Kills the server as the system would.
    pub(super) fn kill(&mut self) {
        let server = self.server.take().unwrap();
        server.signal(Signal::KILL);
    }

    /// Starts the server again, on the same port.
    pub(super) fn start_again(&mut self) {
        let address = self.url.trim_start_matches("http://").to_owned();
        self.serve(&address);
    }

    /// Returns a login link that nobody has used.
    pub(super) fn link(&self) -> String {
        let run = self
            .workspace
            .run(&["token", "link", "--url", &self.url])
            .output();
        run.assert_code(0);
        let mut words = run.stdout.split_whitespace();
        words.rfind(|word| word.contains("#t=")).unwrap().to_owned()
    }

    /// Opens the page in a browser of this size and signs in.
    pub(super) fn visit(&self, width: u32, height: u32) -> Browser {
        let browser = Browser::start(width, height);
        self.enter(&browser);
        browser
    }

    pub(super) fn enter(&self, browser: &Browser) {
        browser.open(&self.link());
        browser.wait_until("the page is there", "document.querySelector('.sidebar')");
    }

    /// Opens the page, signs in, and starts a session.
    pub(super) fn converse(&self) -> Browser {
        let browser = self.visit(1280, 860);
        new_session(&browser);
        browser
    }
}

/// Starts a session by the button.
#[track_caller]
pub(super) fn new_session(browser: &Browser) {
    browser.click("button.new");
    browser.wait_until(
        "a session is open",
        "location.hash.startsWith('#/s/') && document.querySelector('.session-title')?.textContent",
    );
}

/// Types a message and sends it.
#[track_caller]
pub(super) fn say(browser: &Browser, text: &str) {
    browser.click(".composer textarea");
    browser.press(text);
    browser.press(key::ENTER);
}

/// Waits for a request that can be answered: a card approves nothing before it was on the screen to its end.
#[track_caller]
pub(super) fn wait_asked(browser: &Browser) {
    browser.wait_for("Run this command?");
    browser.wait_until(
        "it can be answered",
        "document.querySelector('.ask button.primary:not(:disabled)')",
    );
}

/// Cuts the browser off the network, or connects it again.
pub(super) fn set_offline(browser: &Browser, is_offline: bool) {
    browser.cdp("Network.enable", json!({}));
    let speed =
        json!({ "offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
    browser.cdp("Network.emulateNetworkConditions", speed);
}

/// Fails the test if the page reported an error that is not about the network.
#[track_caller]
pub(super) fn assert_no_errors(browser: &Browser) {
    let lines = browser.console();
    let is_bad = |line: &&String| {
        line.starts_with("SEVERE") && !line.contains("net::ERR") && !line.contains("Failed to load resource")
    };
    let bad: Vec<&String> = lines.iter().filter(is_bad).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
