//! Keys set up with `connect`: tested, stored for one user, and used from then on.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, Workspace};

use super::support::{script, with_replies, workspace};

const KEY: &str = "sk-ant-0123456789";
const ADDRESS: &str = "ANTHROPIC_BASE_URL";

/// A provider with Anthropic's wire that only accepts [`KEY`], and a workspace without configuration for it.
fn locked() -> (SimServer, Workspace) {
    let sim = SimServer::script_with_key(script([Reply::text("fine").forever()]), KEY);
    let workspace = workspace();
    workspace.config("[retry]\nmax_delay_secs = 0\n");
    (sim, workspace)
}

fn keys_file(workspace: &Workspace) -> PathBuf {
    workspace.home().join("config/keys.toml")
}

fn run(workspace: &Workspace, address: &str, args: &[&str]) -> Output {
    workspace.run(args).env(ADDRESS, address).output()
}

fn connect(workspace: &Workspace, address: &str, key: &str) -> Output {
    let run = workspace.run(&["connect", "anthropic"]).env(ADDRESS, address);
    run.stdin(key).output()
}

/// PROV-11: a working key is stored readable only by this user and used by later runs; it is never shown.
#[test]
fn a_key_that_works_is_kept() {
    let (sim, workspace) = locked();
    let address = sim.url();
    let connected = connect(&workspace, &address, &format!("  {KEY}\n"));
    let told = &connected.assert_code(0).stdout;
    assert!(
        told.contains("Connected to anthropic") && told.contains("keys.toml"),
        "{connected}"
    );
    let file = keys_file(&workspace);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains(KEY));
    let answered = run(&workspace, &address, &["exec", "hello"]);
    assert_eq!(answered.assert_code(0).stdout, "fine\n");
    // Also in a folder without a stored choice.
    let elsewhere = workspace
        .run(&["exec", "--allow-home", "hello"])
        .env(ADDRESS, &address);
    let elsewhere = elsewhere.cwd(workspace.user_home()).output();
    assert_eq!(elsewhere.assert_code(0).stdout, "fine\n");
    let doctor = run(&workspace, &address, &["doctor", "--offline"]);
    assert!(
        doctor.assert_code(0).stdout.contains("keys.toml: anthropic"),
        "{doctor}"
    );
    let listed = run(&workspace, &address, &["exec", "/connect"]);
    assert!(
        listed.assert_code(0).stdout.contains("key from keys.toml"),
        "{listed}"
    );
    for output in [&connected, &answered, &doctor, &listed] {
        assert!(!output.to_string().contains(KEY), "{output}");
    }
    // The environment takes precedence.
    let other = workspace.run(&["exec", "hello"]).env(ADDRESS, &address);
    other.env("ANTHROPIC_API_KEY", "another").output().assert_code(8);
}

/// PROV-11: a key that is rejected or cannot be tested is not stored, and the error tells these cases apart.
#[test]
fn a_key_that_does_not_work_is_not_kept() {
    let (sim, workspace) = locked();
    let cases = [
        (sim.url(), "sk-ant-wrong", 1, "anthropic rejected the key"),
        (
            "http://127.0.0.1:1".to_owned(),
            KEY,
            1,
            "anthropic could not be reached at http://127.0.0.1:1",
        ),
        (sim.url(), "two words", 1, "no white space"),
        (sim.url(), "contr\u{1}ol", 1, "no control characters"),
        (sim.url(), "  \n", 2, "standard input contains no key"),
    ];
    for (address, key, code, text) in cases {
        let refused = connect(&workspace, &address, key);
        refused.assert_code(code).assert_says(text);
        assert!(!keys_file(&workspace).exists(), "{refused}");
    }
    let unknown = workspace.run(&["connect", "nobody"]).stdin(KEY).output();
    unknown
        .assert_code(1)
        .assert_says("there is no provider `nobody`");
    run(&workspace, &sim.url(), &["exec", "hello"]).assert_code(8);
}

/// PROV-11: a key file that others can read, or that is broken, is reported and not used.
#[test]
fn a_wrong_file_of_keys_is_reported() {
    let (sim, workspace) = locked();
    let address = sim.url();
    connect(&workspace, &address, KEY).assert_code(0);
    let file = keys_file(&workspace);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let wide = run(&workspace, &address, &["exec", "hello"]);
    wide.assert_code(3).assert_says("chmod 600");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, format!("[keys]\nanthropic = {KEY}\n")).unwrap();
    let broken = run(&workspace, &address, &["exec", "hello"]);
    broken.assert_code(3).assert_says("keys.toml: line 2");
    assert!(!broken.to_string().contains(KEY), "{broken}");
}

/// PROV-7, PROV-11: a server that needs no key is only probed; the simulated model is always available;
/// commands show how to set up each provider.
#[test]
fn what_needs_no_key_is_connected_without() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine").forever()]);
    let connected = workspace.run(&["connect", "test"]).output();
    assert!(
        connected
            .assert_code(0)
            .stdout
            .contains("sim-1 is used from the next turn"),
        "{connected}"
    );
    assert_eq!(sim.count(), 0);
    let simulated = workspace.run(&["connect", "sim"]).output();
    assert!(
        simulated.assert_code(0).stdout.contains("Connected to sim"),
        "{simulated}"
    );
    assert!(!keys_file(&workspace).exists());
    let listed = workspace.run(&["connect"]).output();
    let lines: Vec<&str> = listed.assert_code(0).stdout.lines().collect();
    let place = |name: &str| lines.iter().position(|line| line.starts_with(name)).unwrap();
    assert!(place("sim ") < place("anthropic "), "{listed}");
    let how = workspace.run(&["exec", "/connect anthropic"]).output();
    assert!(
        how.assert_code(0).stdout.contains("set ANTHROPIC_API_KEY"),
        "{how}"
    );
    let unknown = workspace.run(&["exec", "/connect nobody"]).output();
    unknown.assert_code(1).assert_says("Unknown provider 'nobody'");
}

/// Returns a server that answers every request with this body.
fn serving(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A probe connects without sending anything.
            if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        }
    });
    address
}

fn list(names: &[&str]) -> String {
    let models: Vec<String> = names.iter().map(|name| format!(r#"{{"id":"{name}"}}"#)).collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, models.join(","))
}

/// PROV-7: a local server without a configured model is asked for its list; the first model, or the named
/// one, is used from then on.
#[test]
fn a_local_server_says_its_models() {
    let sim = SimServer::script(script([Reply::text("fine").forever()]));
    let workspace = workspace();
    let run = |args: &[&str], address: &str| workspace.run(args).env("OLLAMA_BASE_URL", address).output();
    let address = format!("{}/v1", sim.url());
    let connected = run(&["connect", "ollama"], &address);
    let told = &connected.assert_code(0).stdout;
    assert!(told.contains("Connected to ollama: sim-1 is used"), "{connected}");
    assert!(!told.contains("It also has"), "{connected}");
    assert_eq!(run(&["exec", "hello"], &address).assert_code(0).stdout, "fine\n");

    let names = ["a:1b", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    let address = serving("200 OK", list(&names));
    let connected = run(&["connect", "ollama"], &address);
    let told = &connected.assert_code(0).stdout;
    assert!(told.contains("Connected to ollama: a:1b is used"), "{connected}");
    let others = "It also has b, c, d, e, f, g, h, i and 2 more: choose one with `/model ollama/NAME`.";
    assert!(told.contains(others), "{connected}");
    let active = || run(&["exec", "/provider status"], &address);
    assert!(
        active().assert_code(0).stdout.contains("Model: a:1b"),
        "{}",
        active()
    );
    run(&["connect", "ollama", "--model", "c"], &address).assert_code(0);
    assert!(
        active().assert_code(0).stdout.contains("Model: c"),
        "{}",
        active()
    );
}

/// PROV-7: a server without models, or without a list of them, is reported with a fix; nothing is stored.
#[test]
fn a_server_without_models_is_reported() {
    let workspace = workspace();
    let cases = [
        (
            "200 OK",
            list(&[]),
            "has no models: get one with `ollama pull NAME`",
        ),
        (
            "200 OK",
            "<html>".to_owned(),
            "did not list its models: the list of models cannot be read",
        ),
        (
            "500 Oops",
            "broken".to_owned(),
            "did not list its models: broken (HTTP 500)",
        ),
        ("200 OK", " ".repeat(3 * 1024 * 1024), "did not list its models"),
    ];
    for (status, body, text) in cases {
        let address = serving(status, body);
        let refused = workspace
            .run(&["connect", "ollama"])
            .env("OLLAMA_BASE_URL", &address)
            .output();
        refused
            .assert_code(1)
            .assert_says(text)
            .assert_says("Nothing was stored.");
    }
    let nobody = workspace
        .run(&["connect", "ollama"])
        .env("OLLAMA_BASE_URL", "http://127.0.0.1:1/v1")
        .output();
    nobody
        .assert_code(1)
        .assert_says("ollama could not be reached at http://127.0.0.1:1/v1");
    let listed = workspace.run(&["connect"]).output();
    let line = listed
        .assert_code(0)
        .stdout
        .lines()
        .find(|line| line.starts_with("ollama "));
    assert!(line.unwrap().contains("a server must run at"), "{listed}");
}
