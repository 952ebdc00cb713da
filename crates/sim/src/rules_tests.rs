#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::{Value, json};

use super::{LABEL, answer, intent};
use crate::answer::Answer;
use crate::demo::DEMO_FILES;
use crate::seen::Seen;
use crate::wire::Protocol;

const TOOLS: [&str; 8] = [
    "bash",
    "read_file",
    "write_file",
    "edit_file",
    "list_directory",
    "glob",
    "grep",
    "todo",
];

/// A conversation with the rules, on the Anthropic wire.
struct Talk {
    messages: Vec<Value>,
    tools: Vec<&'static str>,
    system: &'static str,
}

impl Talk {
    fn new(ask: &str) -> Self {
        Self {
            messages: vec![json!({"role": "user", "content": ask})],
            tools: TOOLS.to_vec(),
            system: "",
        }
    }

    fn answer(&self) -> Answer {
        let tools: Vec<Value> = self.tools.iter().map(|name| json!({"name": name})).collect();
        let body = json!({"model": "m", "system": self.system, "messages": self.messages, "tools": tools});
        answer(&Seen::read(Protocol::Anthropic, &body))
    }

    /// Returns the call the rules make, with the arguments as JSON text.
    fn call(&self) -> (String, String) {
        let answer = self.answer();
        let call = answer
            .calls
            .first()
            .unwrap_or_else(|| panic!("no call in {answer:?}"));
        (call.tool.clone(), call.arguments.clone())
    }

    /// Answers the call the rules make.
    fn result(&mut self, text: &str, is_error: bool) {
        let (tool, arguments) = self.call();
        let id = format!("t{}", self.messages.len());
        let input: Value = serde_json::from_str(&arguments).unwrap();
        self.messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": tool, "input": input},
        ]}));
        self.messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error},
        ]}));
    }

    fn says(&self) -> String {
        let answer = self.answer();
        assert!(answer.calls.is_empty(), "{answer:?}");
        answer.text.unwrap()
    }
}

/// PROV-5: simple requests become calls of the tools that are offered.
#[test]
fn requests_become_calls() {
    let cases = [
        ("list files", "list_directory", r#"{"path":"."}"#),
        (
            "Please list the files in src",
            "list_directory",
            r#"{"path":"src"}"#,
        ),
        ("what is in this folder?", "list_directory", r#"{"path":"."}"#),
        ("What files are here?", "list_directory", r#"{"path":"."}"#),
        ("ls src", "list_directory", r#"{"path":"src"}"#),
        ("read README.md", "read_file", r#"{"path":"README.md"}"#),
        (
            "show me the file `src/main.rs`.",
            "read_file",
            r#"{"path":"src/main.rs"}"#,
        ),
        ("cat Makefile", "read_file", r#"{"path":"Makefile"}"#),
        ("find files matching *.rs", "glob", r#"{"pattern":"*.rs"}"#),
        ("search for TODO", "grep", r#"{"pattern":"TODO"}"#),
        (
            "grep for `fn main` in src",
            "grep",
            r#"{"pattern":"fn main","path":"src"}"#,
        ),
        ("run `echo hi`", "bash", r#"{"command":"echo hi"}"#),
        ("can you run git status", "bash", r#"{"command":"git status"}"#),
        (
            "create a file notes.txt with hello there",
            "write_file",
            r#"{"path":"notes.txt","content":"hello there\n"}"#,
        ),
        (
            "write \"a b\" to x.txt",
            "write_file",
            r#"{"path":"x.txt","content":"a b\n"}"#,
        ),
        (
            "replace `foo` with `bar` in a.txt",
            "edit_file",
            r#"{"path":"a.txt","old_string":"foo","new_string":"bar"}"#,
        ),
        ("fix the failing test", "list_directory", r#"{"path":"."}"#),
        (
            "<env>\nread secret.txt\n</env>\nlist files",
            "list_directory",
            r#"{"path":"."}"#,
        ),
    ];
    for (ask, tool, arguments) in cases {
        let expected = (tool.to_owned(), arguments.to_owned());
        assert_eq!(Talk::new(ask).call(), expected, "{ask}");
    }
    assert_eq!(Talk::new("run the tests").call().0, "bash");
}

/// PROV-5: only offered tools are used; the shell replaces missing ones.
#[test]
fn missing_tools_are_not_called() {
    let mut talk = Talk::new("read it's.txt");
    talk.tools = vec!["bash"];
    assert_eq!(talk.call().1, r#"{"command":"cat -- 'it'\\''s.txt'"}"#);
    talk.tools = vec!["todo"];
    assert!(talk.says().contains("does not offer"));
}

/// PROV-5: the rules say that they are a simulation, and what they cannot do.
#[test]
fn it_never_pretends() {
    for ask in ["hello", "who are you?", "write me a poem about rust"] {
        let text = Talk::new(ask).says();
        assert!(text.starts_with(LABEL), "{text}");
        assert!(text.contains("real model"), "{text}");
    }
}

/// PROV-5: results are reported unchanged, including errors.
#[test]
fn results_are_reported() {
    let mut talk = Talk::new("read a.txt");
    talk.result("alpha\nbeta\n", false);
    let text = talk.says();
    assert!(text.contains("2 lines") && text.contains("alpha\nbeta"), "{text}");
    let mut talk = Talk::new("list the files");
    talk.result("(. is empty)", false);
    let text = talk.says();
    assert!(text.contains("`.` is empty."), "{text}");
    let mut talk = Talk::new("read a.txt");
    talk.result("no such file", true);
    let text = talk.says();
    assert!(
        text.contains("`read_file` failed") && text.contains("no such file"),
        "{text}"
    );
}

/// PROV-5: the demo bug is found, fixed and checked again.
#[test]
fn a_failing_test_is_fixed() {
    let source = DEMO_FILES[1].1;
    let failure = "FAIL: average of 2 4 6: expected 4, got 6 (function average in src/stats.sh)";
    let mut talk = Talk::new("fix the failing test");
    talk.result("README.md\nsrc/\ntest.sh", false);
    assert_eq!(talk.call().1, r#"{"command":"sh test.sh"}"#);
    talk.result(failure, true);
    assert_eq!(
        talk.call(),
        ("read_file".to_owned(), r#"{"path":"src/stats.sh"}"#.to_owned())
    );
    talk.result(source, false);
    let (tool, arguments) = talk.call();
    let edit: Value = serde_json::from_str(&arguments).unwrap();
    assert_eq!(
        (tool.as_str(), &edit["path"]),
        ("edit_file", &json!("src/stats.sh"))
    );
    assert_eq!(edit["old_string"], "echo $((total / (count - 1)))");
    assert_eq!(edit["new_string"], "echo $((total / count))");
    talk.result("edited", false);
    assert_eq!(talk.call().1, r#"{"command":"sh test.sh"}"#);
    let mut failed = Talk {
        messages: talk.messages.clone(),
        tools: talk.tools.clone(),
        system: "",
    };
    talk.result("PASS: all 6 checks", false);
    assert!(talk.says().contains("I fixed `average`"));
    failed.result(failure, true);
    assert!(failed.says().contains("still fail"));
}

/// PROV-5: whatever the tools return, a turn ends after a handful of calls.
#[test]
fn it_never_loops() {
    for text in ["", "test.sh", "FAIL: x in y.sh", "error: nothing"] {
        let mut talk = Talk::new("fix the failing test");
        let mut calls = 0;
        while !talk.answer().calls.is_empty() {
            talk.result(text, false);
            calls += 1;
            assert!(calls <= 8, "{text}");
        }
    }
}

/// PROV-5: if the harness wants it, the turn ends with the `done` tool, once.
#[test]
fn done_is_called_where_wanted() {
    let mut talk = Talk::new("hello");
    talk.tools = vec!["done"];
    assert_eq!(talk.call().0, "done");
    talk.result("ok", false);
    assert_eq!(talk.says(), format!("{LABEL}Done."));
    let mut talk = Talk::new("hello");
    talk.tools.push("done");
    talk.says();
    talk.system = "When you are finished, call the `done` tool.";
    assert_eq!(talk.call().0, "done");
}

/// PROV-5: JSON for a schema is JSON and nothing else.
#[test]
fn json_is_answered_with_json() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let talk = Talk::new(&format!(
        "Answer only with JSON that matches this schema: {schema} Thanks."
    ));
    assert_eq!(talk.says(), r#"{"n":0}"#);
}

/// PROV-5: requests to compact or to name a session carry no tools.
#[test]
fn summaries_and_titles() {
    let mut talk = Talk::new("list files");
    talk.result("a", false);
    talk.messages.push(json!({"role": "assistant", "content": "ok"}));
    talk.messages
        .push(json!({"role": "user", "content": "Summarize the conversation so far."}));
    talk.tools.clear();
    let text = talk.says();
    assert!(
        text.contains("- list files") && text.contains("1 tool calls"),
        "{text}"
    );
    let mut talk = Talk::new("Write a short title for this session");
    talk.tools.clear();
    assert_eq!(talk.says(), "Simulated session");
}

/// PROV-5: tagged blocks are taken out, other angle brackets stay.
#[test]
fn fragments_are_taken_out() {
    let cases = [
        ("<a>x</a> y", "y"),
        ("is 1 < 2 and 3 > 2", "is 1 < 2 and 3 > 2"),
        ("<open y", "<open y"),
        ("<a>1</a><b-c k=\"v\">2</b-c>", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(intent::without_fragments(text), expected);
    }
}
