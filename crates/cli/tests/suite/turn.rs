//! Whole turns with real tools.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_sim::{Logged, Protocol, Reply};
use windlass_testkit::WIRES;

use super::support::{check_events, with_replies};

/// Writes, reads, searches, edits and runs: every built-in tool that a headless run offers.
fn working_day() -> Vec<Reply> {
    let todo = |status: &str| json!({"items": [{"text": "rename beta", "status": status}]});
    vec![
        Reply::call(
            "write_file",
            json!({"path": "notes/a.txt", "content": "alpha\nbeta\n"}),
        )
        .and_call("bash", json!({"command": "wc -l < notes/a.txt; exit 3"}))
        .and_call("todo", todo("in_progress"))
        .say("I begin."),
        Reply::call("read_file", json!({"path": "notes/a.txt"}))
            .and_call("grep", json!({"pattern": "be.a"}))
            .and_call("glob", json!({"pattern": "*.txt"}))
            .and_call("list_directory", json!({"path": "."})),
        Reply::call(
            "edit_file",
            json!({"path": "notes/a.txt", "old_string": "beta", "new_string": "gamma"}),
        )
        .and_call("bash", json!({"command": "cat notes/a.txt"})),
        Reply::call("todo", todo("completed")),
        Reply::text("Renamed."),
    ]
}

/// Returns the request after the instructions and the user's message.
fn conversation(request: &Logged) -> String {
    let outline = request.seen.outline();
    let lines = outline
        .lines()
        .skip_while(|line| !line.starts_with("user "))
        .skip(1);
    // Only one wire can mark a result as an error; the others state it in the text.
    lines
        .map(|line| line.replacen(" error ", " ", 1) + "\n")
        .collect()
}

/// LOOP-3, LOOP-4, TOOL-1, PROV-2, PROV-3, MSG-4: real tools change real files over every wire, and all
/// results are returned in the order of the calls.
#[test]
fn a_day_of_work_over_every_wire() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, working_day());
        let output = workspace
            .run(&["exec", "-o", "stream-json", "rename beta to gamma"])
            .output();
        output.assert_code(0);
        check_events(&output);
        sim.assert_valid();
        assert_eq!(workspace.read("notes/a.txt"), "alpha\ngamma\n", "{wire}");
        assert_eq!(sim.count(), 5);
        let last = sim.requests().pop().unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(conversation(&last), @r##"
            assistant I begin.
            call #1 write_file {"path":"notes/a.txt","content":"alpha\nbeta\n"}
            call #2 bash {"command":"wc -l < notes/a.txt; exit 3"}
            call #3 todo {"items":[{"text":"rename beta","status":"in_progress"}]}
            result #1 Created notes/a.txt (2 lines)
            result #2 2\n[exit code 3]
            result #3 1 todo: 0 completed, 1 in progress, 0 pending.
            call #4 read_file {"path":"notes/a.txt"}
            call #5 grep {"pattern":"be.a"}
            call #6 glob {"pattern":"*.txt"}
            call #7 list_directory {"path":"."}
            result #4      1	alpha\n     2	beta
            result #5 notes/a.txt:2: beta
            result #6 notes/a.txt
            result #7 notes/
            call #8 edit_file {"path":"notes/a.txt","old_string":"beta","new_string":"gamma"}
            call #9 bash {"command":"cat notes/a.txt"}
            result #8 Edited notes/a.txt (+1 −1)\n     1	alpha\n     2	gamma
            result #9 alpha\ngamma
            call #10 todo {"items":[{"text":"rename beta","status":"completed"}]}
            result #10 1 todo: 1 completed, 0 in progress, 0 pending.
            "##);
        }
        let failed: Vec<_> = output
            .events_of("tool_result")
            .iter()
            .map(|event| event["is_error"] == true)
            .collect();
        assert_eq!(
            failed,
            [
                false, true, false, false, false, false, false, false, false, false
            ],
            "{wire}"
        );
    }
}

/// Returns the parts of a body that a provider's prompt cache sees, as they appear in the bytes.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow, alias = "input")]
    messages: &'a RawValue,
}

/// Returns the bytes of a request without the cache markers, which move with its end.
fn unmarked(request: &Logged) -> String {
    let raw = String::from_utf8(request.raw.to_vec()).unwrap();
    raw.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

/// MSG-5, PROV-2: system prompt and tools are the same bytes in every request of a turn, and each request
/// starts with the bytes of the previous one, up to the end of its messages.
#[test]
fn every_request_begins_with_the_one_before() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, working_day());
        workspace.run(&["exec", "go"]).output().assert_code(0);
        let texts: Vec<String> = sim.requests().iter().map(unmarked).collect();
        assert_eq!(texts.len(), 5);
        for pair in texts.windows(2) {
            let [before, after] = pair else { unreachable!() };
            let one: Body<'_> = serde_json::from_str(before).unwrap();
            let two: Body<'_> = serde_json::from_str(after).unwrap();
            let get = |raw: Option<&RawValue>| raw.map(|raw| raw.get().to_owned());
            assert_eq!(one.tools.get(), two.tools.get(), "{wire}");
            assert_eq!(get(one.system), get(two.system), "{wire}");
            assert_eq!(get(one.instructions), get(two.instructions), "{wire}");
            let messages = one.messages.get().strip_suffix(']').unwrap();
            let start = before.find(one.messages.get()).unwrap();
            assert!(
                after.starts_with(&format!("{}{messages}", before.get(..start).unwrap())),
                "{wire}:\n{before}\n{after}"
            );
        }
    }
}

/// MSG-5: instructions and tools add little overhead on the wire.
#[test]
fn instructions_and_tools_stay_small() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, [Reply::text("fine")]);
        workspace.run(&["exec", "x"]).output().assert_code(0);
        let bytes = sim.requests()[0].bytes;
        assert!(bytes <= 10 * 1024, "{bytes} bytes on {wire}");
    }
}

/// MSG-4, PROV-2, PROV-3: reasoning is sent back as the provider signed it, readable and redacted.
#[test]
fn reasoning_goes_back_verbatim() {
    for wire in [Protocol::Anthropic, Protocol::Responses] {
        let think =
            Reply::call("bash", json!({"command": "echo hi"})).thinking("First, look: \u{e4}\u{4f60}\"\\n");
        let again = Reply::call("bash", json!({"command": "echo ho"})).redacted_thinking("a secret thought");
        let (sim, workspace) = with_replies(wire, [think, again, Reply::text("fine")]);
        let output = workspace
            .run(&["exec", "-o", "stream-json", "-c", "agent.reasoning=low", "go"])
            .output();
        output.assert_code(0);
        sim.assert_valid();
        let requests = sim.requests();
        let sent = String::from_utf8(requests[2].raw.to_vec()).unwrap();
        let mut reasoning = 0;
        for line in output
            .stdout
            .lines()
            .filter(|line| line.contains(r#""origin":{"#))
        {
            for item in items(line).iter().filter(|item| is_reasoning(item)) {
                reasoning += 1;
                assert!(sent.contains(item.as_str()), "{wire}: {item} is not in\n{sent}");
            }
        }
        assert_eq!(reasoning, 2, "{wire}\n{output}");
    }
}

/// Returns the provider's own items in an event, as text.
fn items(line: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Line {
        message: Message,
    }
    #[derive(Deserialize)]
    struct Message {
        origin: Origin,
    }
    #[derive(Deserialize)]
    struct Origin {
        items: Vec<Box<RawValue>>,
    }
    let line: Line = serde_json::from_str(line).unwrap();
    line.message
        .origin
        .items
        .iter()
        .map(|item| item.get().to_owned())
        .collect()
}

fn is_reasoning(item: &str) -> bool {
    let value: Value = serde_json::from_str(item).unwrap();
    ["thinking", "redacted_thinking", "reasoning"]
        .iter()
        .any(|kind| value["type"] == *kind)
}

/// LOOP-5: `auto` and `sequential` run writes one after the other, `parallel` lets them overlap; results
/// always keep the order of the calls.
#[test]
fn results_keep_the_order_of_the_calls() {
    for (mode, order) in [
        ("auto", "first second"),
        ("sequential", "first second"),
        ("parallel", "second first"),
    ] {
        // The first waits for the second, which only works if they overlap.
        let wait = if mode == "parallel" {
            "while [ ! -s log ]; do sleep 0.02; done; "
        } else {
            "sleep 0.1; "
        };
        let first = json!({"command": format!("{wait}echo first >> log; echo 1"), "timeout_secs": 20});
        let reply =
            Reply::call("bash", first).and_call("bash", json!({"command": "echo second >> log; echo 2"}));
        let (sim, workspace) = with_replies(Protocol::Chat, [reply, Reply::text("fine")]);
        workspace
            .run(&["exec", "go", "-c"])
            .arg(format!("tools.execution={mode}"))
            .output()
            .assert_code(0);
        let requests = sim.requests();
        let results: Vec<_> = requests[1]
            .seen
            .results()
            .map(|result| result.text.as_str())
            .collect();
        assert_eq!(results, ["1", "2"], "{mode}");
        assert_eq!(
            workspace
                .read("log")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            order,
            "{mode}"
        );
    }
}

/// TOOL-1, LOOP-6: the model learns which argument is wrong, and continues.
#[test]
fn wrong_arguments_are_named() {
    let wrong = Reply::call("bash", json!({"comand": "ls"})).and_call("read_file", json!({"path": 7}));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [wrong, Reply::text("fine")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let requests = sim.requests();
    let results: Vec<_> = requests[1].seen.results().collect();
    assert!(results.iter().all(|result| result.is_error));
    assert!(results[0].text.contains("comand"), "{}", results[0].text);
    assert!(results[1].text.contains("path"), "{}", results[1].text);
}

/// TOOL-2, PROV-2, PROV-3: an image that a tool reads reaches the model over every wire, in a format the
/// service accepts; a model without image support receives its name.
#[test]
fn images_reach_the_model_over_every_wire() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x10\x08\x06\0\0\0";
    let data = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAQCAYAAAA";
    for wire in WIRES {
        for sees in [true, false] {
            let read = |path: &str| Reply::call("read_file", json!({ "path": path }));
            let replies = [read("a.png"), read("b.txt"), Reply::text("Nice.")];
            let (sim, workspace) = with_replies(wire, replies);
            std::fs::write(workspace.path().join("a.png"), png).unwrap();
            workspace.write("b.txt", "b\n");
            let setting = format!("models.\"sim-1\".images={sees}");
            let output = workspace.run(&["exec", "-c", &setting, "look"]).output();
            output.assert_code(0);
            sim.assert_valid();
            let requests = sim.requests();
            let last = requests.last().unwrap();
            let results: Vec<_> = last.seen.results().map(|result| result.text.clone()).collect();
            let said = "a.png is a PNG image, 32×16, 29 B.";
            let text = if sees {
                said.to_owned()
            } else {
                format!("{said}\n[image not shown: a.png (image/png)]")
            };
            assert_eq!(results, [text, "     1\tb".to_owned()], "{wire}");
            assert_eq!(last.body.to_string().contains(data), sees, "{wire}");
            let images: usize = last.seen.turns.iter().map(|turn| turn.images).sum();
            assert_eq!(images, usize::from(sees), "{wire}");
        }
    }
}
