//! `--output-schema`: the answer must be JSON that matches, or the run fails.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, WIRES};

use super::support::with_replies;

const SCHEMA: &str = r#"{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"], "additionalProperties": false}"#;

fn run(wire: Protocol, replies: Vec<Reply>, format: &str) -> (SimServer, Output) {
    let (sim, workspace) = with_replies(wire, replies);
    workspace.write("schema.json", SCHEMA);
    let output = workspace
        .run(&["exec", "count", "--output-schema", "schema.json", "-o", format])
        .output();
    sim.assert_valid();
    (sim, output)
}

/// UI-3: a matching answer is printed as plain JSON, without any text the model put around it.
#[test]
fn an_answer_that_matches() {
    for wire in WIRES {
        for answer in ["{\"count\": 3}", "```json\n{\"count\": 3}\n```\n"] {
            let (sim, output) = run(wire, vec![Reply::text(answer)], "text");
            assert_eq!(output.assert_code(0).stdout, "{\"count\":3}\n");
            assert_eq!(sim.count(), 1);
            assert!(
                sim.requests()[0]
                    .seen
                    .last_user_text()
                    .unwrap()
                    .contains("additionalProperties")
            );
        }
        let (_sim, output) = run(wire, vec![Reply::text("{\"count\": 3}")], "json");
        assert_eq!(output.assert_code(0).json()["structured"], json!({"count": 3}));
    }
}

/// UI-3: an invalid answer is sent back once with the reasons, and the corrected one counts.
#[test]
fn a_wrong_answer_is_repaired_once() {
    for wire in WIRES {
        for (wrong, complaint) in [
            ("three", "not JSON"),
            ("{\"count\": \"three\"}", "/count"),
            ("{}", "required"),
        ] {
            let (sim, output) = run(
                wire,
                vec![Reply::text(wrong), Reply::text("{\"count\": 3}")],
                "text",
            );
            assert_eq!(output.assert_code(0).stdout, "{\"count\":3}\n");
            assert_eq!(sim.count(), 2);
            let asked = sim.requests()[1].seen.last_user_text().unwrap().to_owned();
            assert!(asked.contains(complaint), "{asked}");
        }
    }
}

/// UI-3, EXT-6: an answer that stays invalid fails with code 9 and the reasons.
#[test]
fn an_answer_that_stays_wrong() {
    let wrong = || vec![Reply::text("three"), Reply::text("{\"count\": 1, \"extra\": 2}")];
    let (sim, output) = run(Protocol::Anthropic, wrong(), "text");
    output
        .assert_code(9)
        .assert_says("does not match schema.json")
        .assert_says("extra");
    assert_eq!(sim.count(), 2);
    let (_sim, output) = run(Protocol::Chat, wrong(), "json");
    let object = output.assert_code(9).json();
    assert_eq!(
        (&object["ok"], &object["structured"], &object["error"]["kind"]),
        (&json!(false), &json!(null), &json!("schema"))
    );
}

/// UI-3: the answer may follow tool calls and come through `done`.
#[test]
fn the_answer_may_come_through_done() {
    let replies = [Reply::call("done", json!({"message": "{\"count\": 3}"}))];
    let (_sim, workspace) = with_replies(Protocol::Responses, replies);
    workspace.write("schema.json", SCHEMA);
    let output = workspace
        .run(&[
            "exec",
            "count",
            "--require-done",
            "--output-schema",
            "schema.json",
        ])
        .output();
    assert_eq!(output.assert_code(0).stdout, "{\"count\":3}\n");
}
