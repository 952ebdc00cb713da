//! `windlass lab context`: every strategy side by side, without a model.

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{with_replies, workspace};

const STRATEGIES: [&str; 7] = [
    "none",
    "summarize",
    "mask",
    "subgoal",
    "subgoal_mig",
    "focus",
    "sidequest",
];

fn lab(workspace: &Workspace, args: &[&str]) -> Output {
    let all: Vec<&str> = ["lab", "context"].iter().chain(args).copied().collect();
    workspace.run(&all).output()
}

/// Returns the names of elements in the order of their end tags, if all elements are nested correctly.
fn elements(svg: &str) -> Result<Vec<&str>, String> {
    let (mut open, mut done) = (Vec::new(), Vec::new());
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').ok_or(piece)?;
        if text.contains('>') || tag.matches('"').count() % 2 != 0 {
            return Err(format!("not escaped: {piece}"));
        }
        let name = tag.trim_matches('/').split_whitespace().next().ok_or(piece)?;
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) if open.pop() == Some(name) => done.push(name),
            (true, _) => return Err(format!("{name} ends where it should not")),
            (false, true) => done.push(name),
            (false, false) => open.push(name),
        }
    }
    if open.is_empty() {
        Ok(done)
    } else {
        Err(format!("{open:?} do not end"))
    }
}

/// CTX-14: a generated session runs through all strategies, and the table, the JSON and the chart show each
/// of them.
#[test]
fn made_up_sessions_are_compared() {
    let workspace = workspace();
    let small = ["--synthetic", "1", "--calls", "40", "--window", "12000"];
    let args: Vec<&str> = small.iter().copied().chain(["--svg", "plot.svg"]).collect();
    let shown = lab(&workspace, &args);
    let table = &shown.assert_code(0).stdout;
    for name in STRATEGIES {
        let row = table
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name));
        assert!(row.is_some_and(|row| row.contains('$')), "{name}\n{shown}");
    }
    assert!(
        table.contains("none:") && table.contains("larger than the window"),
        "{shown}"
    );
    let svg = std::fs::read_to_string(workspace.path().join("plot.svg")).unwrap();
    let elements = elements(&svg).unwrap();
    assert_eq!(elements.iter().filter(|name| **name == "polyline").count(), 7);
    assert_eq!(elements.last(), Some(&"svg"));
    for name in STRATEGIES {
        assert!(svg.contains(&format!("<title>{name}</title>")), "{name}");
    }
    let args: Vec<&str> = small.iter().copied().chain(["--json"]).collect();
    let json = lab(&workspace, &args).assert_code(0).json();
    let names: Vec<&str> = json["strategies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["strategy"].as_str().unwrap())
        .collect();
    assert_eq!(names, STRATEGIES);
    assert_eq!(json["window"], 12_000);
    // A summarizer that keeps nothing loses nothing that can be read back.
    let args: Vec<&str> = small
        .iter()
        .copied()
        .chain(["--json", "--summarizer", "nothing"])
        .collect();
    let json = lab(&workspace, &args).assert_code(0).json();
    for row in json["strategies"].as_array().unwrap() {
        let facts = |name: &str| row["facts"][name].as_u64().unwrap();
        assert_eq!(facts("readable"), facts("shown"), "{row}");
        assert_eq!(facts("said_in_sight"), facts("said"), "{row}");
    }
}

/// CTX-14: recorded sessions are compared without a server; missing ones are named.
#[test]
fn recorded_sessions_are_compared() {
    let call = |last: u32| Reply::call("bash", json!({ "command": format!("seq 1 {last}") }));
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [call(4_001), call(4_002), call(4_003), Reply::text("counted")],
    );
    workspace.run(&["exec", "count"]).output().assert_code(0);
    let requests = sim.requests().len();
    let listed = workspace
        .run(&["sessions", "list", "--all", "--json"])
        .output()
        .json();
    let id = listed[0]["id"].as_str().unwrap();
    let shown = lab(&workspace, &[id, "--json", "--window", "4000"]);
    let json = shown.assert_code(0).json();
    assert_eq!(json["calls"], 3, "{shown}");
    let rows = json["strategies"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    assert_eq!(rows[0]["requests"], 4, "{shown}");
    assert!(rows[0]["input_tokens"].as_u64().unwrap() > 4_000, "{shown}");
    assert_eq!(sim.requests().len(), requests, "no model is asked");
    let both = lab(&workspace, &[id, "--synthetic", "1", "--calls", "10"]);
    assert!(both.assert_code(0).stdout.starts_with("2 sessions"), "{both}");
    lab(&workspace, &["nothing"])
        .assert_code(2)
        .assert_says("there is no session nothing");
}

/// CTX-14: errors explain what is possible instead.
#[test]
fn wrong_wishes_are_reported() {
    let workspace = workspace();
    lab(&workspace, &[]).assert_code(2).assert_says("--synthetic");
    for (args, said) in [
        (["--synthetic", "0"].as_slice(), "0 is not in"),
        (&["--synthetic", "--window", "3"], "3 is not in"),
        (
            &["--synthetic", "1", "--calls", "5", "--model", "claude-sonnet-9x"],
            "did you mean claude-sonnet",
        ),
        (
            &["--synthetic", "1", "--model", "zzz"],
            "no prices are known for zzz",
        ),
    ] {
        lab(&workspace, args).assert_code(2).assert_says(said);
    }
    let args = ["--synthetic", "1", "--calls", "5", "--svg", "no/such/folder.svg"];
    lab(&workspace, &args)
        .assert_code(1)
        .assert_says("no/such/folder.svg");
}

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

/// CTX-14: the documents show the lab's results. `UPDATE_DOCS=1` rewrites them.
#[test]
fn the_documented_figures_are_true() {
    let workspace = workspace();
    let print = |args: &[&str]| lab(&workspace, args).assert_code(0).stdout.clone();
    let (table, nothing) = std::thread::scope(|scope| {
        let nothing = scope.spawn(|| print(&["--synthetic", "1", "--summarizer", "nothing"]));
        (
            print(&["--synthetic", "--svg", "lab.svg"]),
            nothing.join().unwrap(),
        )
    });
    let svg = std::fs::read_to_string(workspace.path().join("lab.svg")).unwrap();
    let mut text = std::fs::read_to_string(docs("context.md")).unwrap();
    let old = text.clone();
    for (mark, table) in [("table", table), ("nothing", nothing)] {
        let (begin, end) = (format!("<!-- lab: {mark} -->\n"), "<!-- lab: end -->");
        let (head, rest) = text.split_once(&begin).unwrap();
        let (_, tail) = rest.split_once(end).unwrap();
        text = format!("{head}{begin}```\n{table}```\n{end}{tail}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(docs("context.md"), text).unwrap();
        std::fs::write(docs("context-lab.svg"), svg).unwrap();
        return;
    }
    assert_eq!(
        old, text,
        "docs/context.md is out of date: run the tests once with UPDATE_DOCS=1"
    );
    let stored = std::fs::read_to_string(docs("context-lab.svg")).unwrap_or_default();
    assert!(
        stored == svg,
        "docs/context-lab.svg is out of date: run the tests once with UPDATE_DOCS=1"
    );
}
