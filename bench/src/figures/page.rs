//! The web page in a real browser, beside opencode's: from the start of the navigation until a person can type.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use windlass_testkit::Browser;

use super::server::Running;
use super::{median, told};
use crate::lab::Lab;
use crate::peers;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Maximum number of looks at a page that loads, and the pause between two.
const LOOKS: usize = 600;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    if Command::new("chromedriver")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        bail!("the page is measured in Chromium: apt-get install chromium chromium-driver");
    }
    let samples = if lab.quick { 2 } else { 9 };
    let model = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let server = Running::start(lab, &model)?;
    let url = format!("http://{}", server.address().socket);
    let own_page = Page::new(Browser::start(1280, 800), session(&server, &url)?, "textarea");
    own_page.browser.open(&link(lab, &url)?);
    own_page.browser.wait_for("New session");
    let peer = Opencode::start(lab);
    let other = match &peer {
        Ok(opencode) => Some(Page::new(
            Browser::start(1280, 800),
            opencode.url.clone(),
            "[contenteditable=true], textarea",
        )),
        Err(error) => {
            eprintln!("  opencode is not available: {error:#}");
            None
        }
    };
    let (mut times, mut others) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        times.push(own_page.load()?);
        if let Some(page) = &other {
            others.push(page.load()?);
        }
    }
    drop(own_page);
    server.stop()?;
    model.finish()?;
    let time = median(times.clone());
    let target = if others.is_empty() {
        Target::None
    } else {
        Target::AtMost(0.2)
    };
    let ratios = times
        .iter()
        .zip(&others)
        .map(|(own, other)| own / other)
        .collect();
    Ok(vec![Figure {
        name: "page load until usable (floor: opencode)".to_owned(),
        agent: told(time),
        floor: if others.is_empty() {
            "–".to_owned()
        } else {
            told(median(others))
        },
        value: median(ratios),
        unit: "×",
        target,
    }])
}

/// Creates a session and returns its address.
fn session(server: &Running, url: &str) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let id = runtime.block_on(server.create())?;
    Ok(format!("{url}/#/s/{id}"))
}

/// Returns a link that signs a browser in.
fn link(lab: &Lab, url: &str) -> Result<String> {
    let output = lab.login_link(url).output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace();
    let link = words
        .rfind(|word| word.contains("#t="))
        .context("there is no link")?;
    Ok(link.to_owned())
}

/// A page in its own browser.
struct Page {
    browser: Browser,
    url: String,
}

impl Page {
    /// Prepares a browser to notice when `selector` matches something visible.
    fn new(browser: Browser, url: String, selector: &str) -> Self {
        let script = format!(
            "(() => {{ const look = () => {{ \
                 if (window.usableAt) return; \
                 const found = [...document.querySelectorAll({})].some(element => element.checkVisibility()); \
                 if (found) window.usableAt = performance.now(); }}; \
               new MutationObserver(look).observe(document, {{ childList: true, subtree: true, attributes: true }}); \
               addEventListener('load', look); }})()",
            json!(selector)
        );
        browser.cdp(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": script }),
        );
        Self { browser, url }
    }

    /// Loads the page without a cache and returns the time until it is usable, in milliseconds.
    fn load(&self) -> Result<f64> {
        self.browser.open("about:blank");
        self.browser.cdp("Network.clearBrowserCache", json!({}));
        self.browser.open(&self.url);
        self.wait()
    }

    fn wait(&self) -> Result<f64> {
        for _ in 0..LOOKS {
            if let Some(time) = self.browser.run("return window.usableAt || null").as_f64() {
                return Ok(time);
            }
            thread::sleep(PAUSE);
        }
        bail!(
            "the page {} does not become usable: {}",
            self.url,
            self.browser.text()
        )
    }
}

/// opencode's server.
struct Opencode {
    child: Child,
    url: String,
}

impl Opencode {
    fn start(lab: &Lab) -> Result<Self> {
        let program = peers::opencode(&lab.lasting("peers"))?;
        let mut command = lab.other(&lab.path("work"), &program.to_string_lossy());
        command.args(["serve", "--port", "0", "--hostname", "127.0.0.1"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("opencode has no output")?);
        let mut line = String::new();
        for _ in 0..20 {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                break;
            }
            if let Some((_, url)) = line.trim().split_once("listening on ") {
                let folder = base64_url(lab.path("work").to_string_lossy().as_bytes());
                let url = format!("{url}/{folder}/session");
                // The server goes on writing.
                thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
                return Ok(Self { child, url });
            }
        }
        let _ = child.kill();
        bail!("opencode does not say where it listens")
    }
}

impl Drop for Opencode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Encodes a path as opencode's page has it in its addresses: base64 for URLs, without padding.
fn base64_url(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let value = group
            .iter()
            .fold(0_u32, |value, byte| value << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            let sign = SIGNS
                .get((value >> (18 - 6 * place) & 63) as usize)
                .copied()
                .unwrap_or(b'A');
            text.push(char::from(sign));
        }
    }
    text
}
