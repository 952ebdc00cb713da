//! The page below a sub-path of a proxy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use windlass_sim::Reply;
use windlass_testkit::Browser;

use super::site::{Site, assert_no_errors, new_session, say};

/// Path below which the proxy has the page.
const BELOW: &str = "/tools/windlass";

/// Passes a request on: without the path of the proxy, as a request to the server itself.
fn pass(mut browser: TcpStream, server: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        browser.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    if !first.contains(BELOW) {
        return browser
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let mut passed = format!("{}\r\nConnection: close\r\n", first.replacen(BELOW, "", 1));
    for line in lines {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        match &*name {
            "connection" => {}
            "host" => passed += &format!("Host: {server}\r\n"),
            "origin" => passed += &format!("Origin: http://{server}\r\n"),
            _ => passed += &format!("{line}\r\n"),
        }
    }
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(format!("{passed}\r\n").as_bytes())?;
    let (mut body, mut to) = (browser.try_clone()?, upstream.try_clone()?);
    thread::spawn(move || std::io::copy(&mut body, &mut to));
    std::io::copy(&mut upstream, &mut browser)?;
    browser.shutdown(std::net::Shutdown::Both)
}

/// WEB-1: below a sub-path everything works: signing in, a conversation, a plain view, a link to a request.
#[test]
fn it_works_below_a_sub_path() {
    let site = Site::start([Reply::text("an answer from below").forever()]);
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = format!("http://{}{BELOW}/", proxy.local_addr().unwrap());
    let server = site.url.trim_start_matches("http://").to_owned();
    thread::spawn(move || {
        for browser in proxy.incoming().flatten() {
            let server = server.clone();
            thread::spawn(move || pass(browser, &server));
        }
    });
    let link = site.link();
    let token = link.split_once('#').unwrap().1;
    let browser = Browser::start(1280, 860);
    browser.open(&format!("{own}#{token}"));
    browser.wait_until("the page is there", "document.querySelector('.sidebar')");
    new_session(&browser);
    say(&browser, "hello");
    browser.wait_until("it answers", "document.querySelector('.item.end.final')");
    let outside = format!(
        "return performance.getEntriesByType('resource').map((one) => one.name).filter((one) => !one.startsWith('{own}'))"
    );
    assert_eq!(browser.run(&outside), serde_json::json!([]));
    let worker =
        browser.run_async("navigator.serviceWorker.ready.then((worker) => arguments[0](worker.scope))");
    assert_eq!(worker, *own);
    browser.run("window.open = (address) => { location.href = address; }; document.querySelector('.head [aria-label=More]').click(); [...document.querySelectorAll('.menu button')].find((one) => one.textContent.includes('Plain')).click()");
    browser.wait_until("the plain view is there", "location.pathname.endsWith('/plain')");
    browser.wait_for("an answer from below");
    browser.open(&format!("{own}approve/unknown"));
    browser.wait_for("already answered");
    assert_no_errors(&browser);
}
