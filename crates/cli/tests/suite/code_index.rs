//! The code index: `windlass code`, the tool `code_search`, the map before a turn, and the second source.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, WIRES, Workspace};

use super::support::{results, with_replies, workspace};

/// Waits for the index as long as a loaded machine needs.
const PATIENT: [&str; 2] = ["-c", "code.map_wait_ms=60000"];

fn plant(workspace: &Workspace) {
    workspace.write(".gitignore", "generated/\n");
    workspace.write("generated/retry.py", "class RetryPolicy: pass\n");
    workspace.write(".env", "RETRY_POLICY_SECRET=1\n");
    workspace.write(
        "src/net/retry.py",
        "import math\n\n\nclass RetryPolicy:\n    def next_delay(self, attempt):\n        return math.pow(2, attempt)\n",
    );
    workspace.write(
        "src/shop/cart.py",
        "class Cart:\n    def add_item(self, item):\n        pass\n",
    );
    workspace.write(
        "lib/parser.rb",
        "class RecipeParser\n  def parse_line(text)\n  end\nend\n",
    );
}

/// Makes the workspace large enough for a map.
fn enlarge(workspace: &Workspace) {
    for number in 0..230 {
        workspace.write(
            &format!("filler/module_{number}.py"),
            &format!("def filler_{number}():\n    pass\n"),
        );
    }
}

fn code(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(&[&["code"], args].concat()).output()
}

fn index_file(workspace: &Workspace) -> PathBuf {
    let printed = code(workspace, &["index", "--json"]).json();
    PathBuf::from(printed["file"].as_str().unwrap())
}

/// MEM-9, MEM-5: `windlass code` indexes what is neither ignored nor denied, finds files by split identifiers with their
/// best lines, maps them with their definitions, and reads only what changed.
#[test]
fn the_index_finds_files_and_follows_changes() {
    let workspace = workspace();
    plant(&workspace);
    let first = code(&workspace, &["index", "--json"]).json();
    assert_eq!(
        (first["files"].as_u64(), first["read"].as_u64()),
        (Some(4), Some(4)),
        "{first}"
    );
    let second = code(&workspace, &["index", "--json"]).json();
    assert_eq!(
        (second["read"].as_u64(), second["removed"].as_u64()),
        (Some(0), Some(0)),
        "{second}"
    );

    let found = code(&workspace, &["search", "which", "delay", "after a retry?"]);
    let text = &found.assert_code(0).stdout;
    assert!(text.starts_with("src/net/retry.py\n"), "{found}");
    assert!(
        text.contains("  5:     def next_delay(self, attempt):"),
        "{found}"
    );
    assert!(!text.contains("generated") && !text.contains(".env"), "{found}");
    let found = code(&workspace, &["search", "--json", "--path", "lib", "parse line"]).json();
    assert_eq!(found[0]["path"], "lib/parser.rb", "{found}");
    assert_eq!(found[0]["lines"][1]["line"], 2, "{found}");
    let map = code(&workspace, &["map", "RetryPolicy waits too long"]);
    assert!(
        map.assert_code(0)
            .stdout
            .starts_with("src/net/retry.py\n  4: class RetryPolicy:\n"),
        "{map}"
    );

    workspace.write(
        "src/shop/cart.py",
        "class Basket:\n    def frobnicate(self):\n        pass\n",
    );
    fs::remove_file(workspace.path().join("lib/parser.rb")).unwrap();
    let found = code(&workspace, &["search", "--json", "frobnicate"]).json();
    assert_eq!(found[0]["path"], "src/shop/cart.py", "{found}");
    code(&workspace, &["search", "RecipeParser"]).assert_code(1);
    // Denied since: the stored index must not show the file any more.
    let denied = code(
        &workspace,
        &[
            "search",
            "-c",
            "security.denied_paths=[\"cart.py\"]",
            "frobnicate",
        ],
    );
    assert!(!denied.assert_code(1).stdout.contains("cart"), "{denied}");
}

/// MEM-9: a damaged or foreign index file is reported once, and built again.
#[test]
fn a_damaged_index_is_reported_once_and_rebuilt() {
    let workspace = workspace();
    plant(&workspace);
    let file = index_file(&workspace);
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [
        flipped,
        whole[..40].to_vec(),
        b"SQLite format 3\0".to_vec(),
        Vec::new(),
    ] {
        fs::write(&file, damaged).unwrap();
        let first = code(&workspace, &["search", "RetryPolicy"]);
        assert!(
            first.assert_code(0).stdout.starts_with("src/net/retry.py\n"),
            "{first}"
        );
        assert!(
            first.stderr.contains("could not be used") && first.stderr.contains("built again"),
            "{first}"
        );
        let second = code(&workspace, &["search", "RetryPolicy"]);
        assert!(second.assert_code(0).stderr.is_empty(), "{second}");
    }
}

/// MEM-9: wrong arguments are refused with the argument's name.
#[test]
fn wrong_arguments_are_refused() {
    let workspace = workspace();
    plant(&workspace);
    code(&workspace, &["search"]).assert_code(2);
    let outside = code(&workspace, &["search", "--path", "/", "x"]);
    assert!(outside.assert_code(2).stderr.contains("--path /"), "{outside}");
    let missing = code(&workspace, &["search", "--path", "nowhere", "x"]);
    assert!(
        missing.assert_code(2).stderr.contains("--path nowhere"),
        "{missing}"
    );
}

/// TOOL-2, MEM-9: the model searches the workspace with `code_search`, on every wire, within its budget of lines, and
/// never sees an ignored or denied file.
#[test]
fn the_model_searches_the_workspace() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(
            wire,
            [
                Reply::call(
                    "code_search",
                    json!({"query": "how long is the delay of a retry policy"}),
                ),
                Reply::call(
                    "code_search",
                    json!({"query": "add an item", "path": "src/shop", "lines": 1}),
                ),
                Reply::call("code_search", json!({"query": " "})),
                Reply::call("code_search", json!({"query": "x", "path": "/etc"})),
                Reply::call("code_search", json!({"query": "RetryPolicy", "path": "**/*.rb"})),
                Reply::text("done"),
            ],
        );
        plant(&workspace);
        workspace
            .run(&["exec", "--mode", "full", "find it"])
            .output()
            .assert_code(0);
        let results = results(&sim);
        assert!(results[0].starts_with("src/net/retry.py\n"), "{}", results[0]);
        assert!(results[0].contains("  5:     def next_delay"), "{}", results[0]);
        assert!(
            !results[0].contains("generated") && !results[0].contains(".env"),
            "{}",
            results[0]
        );
        assert_eq!(results[1], "src/shop/cart.py\n  2:     def add_item(self, item):");
        assert!(results[2].contains("`query` is empty"), "{}", results[2]);
        assert!(results[3].contains("outside"), "{}", results[3]);
        assert!(results[4].contains("No file fits"), "{}", results[4]);
        sim.assert_valid();
    }
}

/// MEM-9: within a turn, the index follows what tools and commands change: new files, moved ones, and those that are gone.
#[test]
fn the_index_follows_the_changes_of_a_turn() {
    let search = || Reply::call("code_search", json!({"query": "zephyr_gate"}));
    let content = "def zephyr_gate():\n    pass\n";
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call("code_search", json!({"query": "RetryPolicy"})),
            search(),
            Reply::call("write_file", json!({"path": "src/zephyr.py", "content": content})),
            search(),
            Reply::call(
                "bash",
                json!({"command": "mv src/zephyr.py src/mistral.py && cp src/mistral.py generated/"}),
            ),
            search(),
            Reply::call("bash", json!({"command": "rm src/mistral.py"})),
            search(),
            Reply::text("done"),
        ],
    );
    plant(&workspace);
    workspace
        .run(&["exec", "--mode", "full", "find it"])
        .output()
        .assert_code(0);
    let results = results(&sim);
    assert!(results[0].starts_with("src/net/retry.py\n"), "{}", results[0]);
    assert!(results[1].contains("No file fits"), "{}", results[1]);
    assert!(results[3].starts_with("src/zephyr.py\n"), "{}", results[3]);
    assert!(results[5].starts_with("src/mistral.py\n"), "{}", results[5]);
    assert!(
        !results[5].contains("zephyr.py") && !results[5].contains("generated"),
        "{}",
        results[5]
    );
    assert!(results[7].contains("No file fits"), "{}", results[7]);
    sim.assert_valid();
}

/// Returns the text of the fragment with the map in a request, if there is one.
fn map_in(request: &Value) -> Option<String> {
    let text = request.to_string();
    let (_, rest) = text.split_once("<memory name=\\\"code map\\\">")?;
    Some(rest.split_once("</memory>").unwrap().0.to_owned())
}

/// MEM-5, MEM-9: in a large workspace a turn starts with a map of the files that fit the prompt, within its budget and
/// after the cached prefix; in a small one, and for a prompt that names nothing, there is none.
#[test]
fn a_map_of_matching_files_precedes_a_turn_in_a_large_workspace() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    plant(&workspace);
    let exec = |more: &[&str]| {
        let args = [&["exec"], PATIENT.as_slice(), more].concat();
        workspace.run(&args).output().assert_code(0);
    };
    code(&workspace, &["index"]).assert_code(0);
    exec(&["the RetryPolicy delay is wrong"]);
    enlarge(&workspace);
    code(&workspace, &["index"]).assert_code(0);
    exec(&["the RetryPolicy delay is wrong"]);
    exec(&["--continue", "yes, go on"]);
    exec(&["-c", "code.map_tokens=0", "the RetryPolicy delay is wrong"]);
    exec(&[
        "-c",
        "code.map_tokens=120",
        "which filler module has the RetryPolicy delay?",
    ]);
    let bodies: Vec<Value> = sim
        .requests()
        .iter()
        .map(|request| request.body.clone())
        .collect();
    let maps: Vec<Option<String>> = bodies.iter().map(map_in).collect();
    assert_eq!(maps[0], None, "a small workspace");
    let map = maps[1].clone().unwrap();
    assert!(
        map.contains("src/net/retry.py\\n  4: class RetryPolicy:"),
        "{map}"
    );
    assert!(!map.contains("generated") && !map.contains(".env"), "{map}");
    // The earlier turn still has its map; the prompt that names nothing brought none.
    assert_eq!(bodies[2].to_string().matches("code map").count(), 1);
    assert_eq!(maps[3], None, "turned off");
    let small = maps[4].clone().unwrap();
    assert!(
        small.contains("src/net/retry.py") && small.len() < 120 * 4,
        "{small}"
    );
    for body in &bodies {
        assert_eq!(
            (&body["system"], &body["tools"]),
            (&bodies[0]["system"], &bodies[0]["tools"])
        );
    }
    sim.assert_valid();
}

/// MEM-9: a large workspace is indexed by a session in the background, and `code.index` turns everything off.
#[test]
fn a_session_indexes_a_large_workspace_in_the_background() {
    let (sim, workspace) = with_replies(
        Protocol::Chat,
        [
            Reply::call("code_search", json!({"query": "RetryPolicy"})),
            Reply::text("done"),
            Reply::text("off"),
        ],
    );
    plant(&workspace);
    enlarge(&workspace);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert!(
        results(&sim)[0].starts_with("src/net/retry.py\n"),
        "{:?}",
        results(&sim)
    );
    assert_eq!(code(&workspace, &["index", "--json"]).json()["read"], 0);
    let off = workspace
        .run(&["exec", "-c", "code.index=false", "the RetryPolicy delay"])
        .output();
    off.assert_code(0);
    let last = sim.requests().last().unwrap().body.to_string();
    assert!(
        !last.contains("code_search") && !last.contains("code map"),
        "{last}"
    );
}

/// Serves one search like Sourcegraph; returns the address, and the request.
fn sourcegraph(answer: Value) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer = answer.to_string();
        let head_out = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
        write!(
            reader.get_mut(),
            "{head_out}Content-Length: {}\r\n\r\n{answer}",
            answer.len()
        )
        .unwrap();
        format!("{head}{}", String::from_utf8(body).unwrap())
    });
    (address, server)
}

/// TOOL-2: a Sourcegraph-compatible server is a second source of `code_search`, off until it is configured and the network
/// is allowed.
#[test]
fn a_sourcegraph_server_is_a_second_source_when_the_network_is_allowed() {
    let call = || Reply::call("code_search", json!({"query": "retry\npolicy", "remote": true}));
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            call(),
            Reply::text("1"),
            call(),
            Reply::text("2"),
            call(),
            Reply::text("3"),
        ],
    );
    let (address, server) = sourcegraph(json!({"data": {"search": {"results": {"results": [
        {"__typename": "Repository", "name": "x"},
        {"__typename": "FileMatch", "repository": {"name": "acme/net"}, "file": {"path": "retry.go"},
         "lineMatches": [{"preview": "type RetryPolicy struct {\u{1b}[2J", "lineNumber": 6}]},
    ]}}}}));
    let url = format!("code.sourcegraph_url={address}");
    let run = |more: &[&str]| {
        let args = [&["exec", "--mode", "full"], more, &["find it"]].concat();
        workspace
            .run(&args)
            .env("SRC_ACCESS_TOKEN", "sgp_test")
            .output()
            .assert_code(0);
    };
    run(&[]);
    run(&["-c", &url]);
    run(&["-c", &url, "-c", "security.network=true"]);
    let requests = sim.requests();
    let answered = requests.iter().filter_map(|request| request.seen.last_result());
    let results: Vec<String> = answered.map(|result| result.text.clone()).collect();
    assert!(results[0].contains("code.sourcegraph_url"), "{}", results[0]);
    assert!(results[1].contains("access to the network"), "{}", results[1]);
    assert_eq!(results[2], "acme/net/retry.go\n  7: type RetryPolicy struct {[2J");
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /.api/graphql "), "{request}");
    assert!(
        request.to_lowercase().contains("authorization: token sgp_test"),
        "{request}"
    );
    assert!(request.contains("retry policy count:8"), "{request}");
    let wrong = workspace
        .run(&["exec", "-c", "code.sourcegraph_url=ftp://x", "hi"])
        .output();
    assert!(
        wrong.assert_code(3).stderr.contains("code.sourcegraph_url"),
        "{wrong}"
    );
    sim.assert_valid();
}
