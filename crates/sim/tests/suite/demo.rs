//! The demo with real tools: a minimal agent carries out the calls in a scratch directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use windlass_sim::{Brain, DEMO_FILES, Protocol, Sim, SimConfig, demo_script};

use crate::client::{path, post};

const TOOLS: [&str; 4] = ["list_directory", "bash", "read_file", "edit_file"];

/// A directory with the demo project, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("windlass-sim-{}", uuid::Uuid::new_v4()));
        for (path, content) in DEMO_FILES {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self(root)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn carry_out(root: &Path, tool: &str, input: &Value) -> (String, bool) {
    let file = root.join(input["path"].as_str().unwrap_or_default());
    match tool {
        "list_directory" => {
            let entries = std::fs::read_dir(file).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            (names.collect::<Vec<_>>().join("\n"), false)
        }
        "read_file" => (std::fs::read_to_string(file).unwrap(), false),
        "edit_file" => {
            let (old, new) = (
                input["old_string"].as_str().unwrap(),
                input["new_string"].as_str().unwrap(),
            );
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(text.matches(old).count(), 1);
            std::fs::write(file, text.replace(old, new)).unwrap();
            ("edited".to_owned(), false)
        }
        _ => {
            let command = input["command"].as_str().unwrap();
            let output = Command::new("sh")
                .args(["-c", command])
                .current_dir(root)
                .output()
                .unwrap();
            (
                String::from_utf8(output.stdout).unwrap(),
                !output.status.success(),
            )
        }
    }
}

/// Runs the session until no call is left; returns the tools called and the last text.
async fn session(brain: Brain, root: &Path) -> (Vec<String>, String) {
    let config = SimConfig {
        brain,
        ..SimConfig::default()
    };
    let sim = Sim::start(config).await.unwrap();
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|name| json!({"name": name, "input_schema": {"type": "object"}}))
        .collect();
    let mut messages = vec![json!({"role": "user", "content": "fix the failing test"})];
    let mut called = Vec::new();
    loop {
        let body = json!({"model": "sim-1", "max_tokens": 999, "messages": messages, "tools": tools});
        let answer = post(&sim, path(Protocol::Anthropic), &body.to_string(), &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let content = answer.json()["content"].clone();
        let results: Vec<Value> = content
            .as_array()
            .unwrap()
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| {
                let tool = block["name"].as_str().unwrap();
                called.push(tool.to_owned());
                let (text, is_error) = carry_out(root, tool, &block["input"]);
                json!({"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": is_error})
            })
            .collect();
        if results.is_empty() {
            assert!(sim.violations().is_empty());
            let last = content.as_array().unwrap().last().unwrap()["text"]
                .as_str()
                .unwrap();
            return (called, last.to_owned());
        }
        messages.push(json!({"role": "assistant", "content": content}));
        messages.push(json!({"role": "user", "content": results}));
        assert!(called.len() < 10);
    }
}

/// PROV-5: script and rules both fix the demo project, with real commands on real files.
#[tokio::test]
async fn the_demo_bug_is_fixed() {
    let steps = ["list_directory", "bash", "read_file", "edit_file", "bash"];
    for brain in [Brain::script(demo_script()), Brain::rules()] {
        let scratch = Scratch::new();
        let (called, text) = session(brain, &scratch.0).await;
        assert_eq!(called, steps);
        assert!(
            text.starts_with("[simulated model]") && text.contains("PASS: all 6 checks"),
            "{text}"
        );
        let source = std::fs::read_to_string(scratch.0.join("src/stats.sh")).unwrap();
        assert!(source.contains("total / count)"));
    }
}

/// PROV-5: the script reports it when the project is not in the expected state.
#[tokio::test]
async fn the_demo_is_honest_about_surprises() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("test.sh"), "echo broken\nexit 1\n").unwrap();
    let (called, text) = session(Brain::script(demo_script()), &scratch.0).await;
    assert_eq!(called, ["list_directory", "bash"]);
    assert!(
        text.contains("did not go as planned") && !text.contains("Fixed"),
        "{text}"
    );
}
