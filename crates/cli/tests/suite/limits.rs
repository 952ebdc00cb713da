//! Continuation and end of turns: errors as content, limits, denials, unfinished work.

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply, SeenResult, Stop, When};
use windlass_testkit::{Output, SimServer, WIRES};

use super::support::{check_events, with_replies};

/// Returns the results in the last request.
fn last_results(sim: &SimServer) -> Vec<SeenResult> {
    let requests = sim.requests();
    let results = requests
        .last()
        .map(|request| request.seen.results().cloned().collect());
    results.unwrap_or_default()
}

fn last_event(output: &Output) -> Value {
    output.events().pop().unwrap()
}

fn list() -> Reply {
    Reply::call("list_directory", json!({"path": "."}))
}

const STREAM: [&str; 3] = ["exec", "-o", "stream-json"];

/// LOOP-2 (S5.1): without a tool call there is one request, and its text is the answer.
#[test]
fn no_call_is_one_request() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, [Reply::text("fine")]);
        assert_eq!(
            workspace.run(&["exec", "hi"]).output().assert_code(0).stdout,
            "fine\n"
        );
        assert_eq!(sim.count(), 1);
    }
}

/// LOOP-6 (S5.4): an unknown tool, a failing tool and a timeout become results, and the loop continues.
#[test]
fn errors_are_content() {
    for wire in WIRES {
        let calls = Reply::call("frobnicate", json!({}))
            .and_call("read_file", json!({"path": "nowhere.txt"}))
            .and_call("bash", json!({"command": "echo begun; sleep 30"}));
        let (sim, workspace) = with_replies(wire, [calls, Reply::text("fine")]);
        let output = workspace
            .run(&STREAM)
            .args(&["go", "-c", "tools.timeout_secs=0.5"])
            .output();
        output.assert_code(0);
        check_events(&output);
        let results = last_results(&sim);
        assert_eq!(results[0].text, "Error: Unknown tool 'frobnicate'", "{wire}");
        assert!(
            results[1].text.contains("nowhere.txt"),
            "{wire}: {}",
            results[1].text
        );
        assert!(results[2].text.contains("begun"), "{wire}: {}", results[2].text);
        let statuses = output.events_of("step_complete");
        assert!(
            statuses.iter().all(|event| event["status"] == "error"),
            "{output}"
        );
        sim.assert_valid();
    }
}

/// LOOP-7: arguments that are not JSON, or have a duplicate key, are shown unchanged and rejected with a
/// reason.
#[test]
fn raw_arguments_are_told_and_refused() {
    let cases = [
        (r#"{"command": "touch made"#, Some("_raw")),
        ("touch made", Some("_raw")),
        (r#"{"command": "touch made", "command": "touch made"}"#, None),
    ];
    for wire in WIRES {
        for (raw, key) in cases {
            let (sim, workspace) = with_replies(wire, [Reply::raw_call("bash", raw), Reply::text("fine")]);
            let output = workspace.run(&STREAM).arg("go").output();
            output.assert_code(0);
            check_events(&output);
            let call = &output.events_of("tool_call")[0];
            if let Some(key) = key {
                assert_eq!(call["args"][key], raw, "{wire}\n{output}");
            }
            let results = last_results(&sim);
            assert_eq!(results.len(), 1, "{wire} {raw}");
            assert_eq!(
                output.events_of("tool_result")[0]["is_error"],
                true,
                "{wire} {raw}"
            );
            assert!(!workspace.has("made"), "{wire} {raw}");
            sim.assert_valid();
        }
    }
}

/// LOOP-9 (S5.7), EXT-6: at the limit the model summarizes without tools; an error event gives the reason,
/// and the exit code is 6.
#[test]
fn the_iteration_limit_asks_for_a_summary() {
    for wire in WIRES {
        let summary = Reply::text("Half done.").when(When::new().user_contains("limit of steps"));
        let look = |command: &str| Reply::call("bash", json!({"command": command}));
        let (sim, workspace) = with_replies(wire, [summary, look("echo 1"), look("echo 2"), look("echo 3")]);
        let output = workspace
            .run(&STREAM)
            .args(&["go", "--max-iterations", "2"])
            .output();
        output.assert_code(6);
        check_events(&output);
        assert_eq!(sim.count(), 3, "{wire}");
        let last = last_event(&output);
        assert_eq!(
            (&last["content"], &last["finish"]),
            (&json!("Half done."), &json!("max_iterations"))
        );
        assert!(
            output.events_of("error")[0]["message"]
                .as_str()
                .unwrap()
                .contains("2 iterations")
        );
        let stored = output.events_of("message");
        assert!(
            !stored
                .iter()
                .any(|event| event.to_string().contains("limit of steps")),
            "the question is not stored"
        );
        let request = sim.requests().pop().unwrap();
        assert!(
            request.seen.tools.is_empty() || request.seen.tool_choice.as_deref() == Some("none"),
            "{wire}"
        );
        sim.assert_valid();
    }
}

/// LOOP-9: the fixed text is used if the summary fails or is disabled; `--max-turns` is an alias.
#[test]
fn the_iteration_limit_has_a_fixed_text() {
    let cases: [(&[&str], usize); 2] = [(&["-c", "agent.on_max_iterations=message"], 1), (&[], 2)];
    for (more, requests) in cases {
        let (sim, workspace) = with_replies(Protocol::Chat, [list()]);
        let output = workspace
            .run(&["exec", "go", "--max-turns", "1"])
            .args(more)
            .output();
        assert_eq!(
            output.assert_code(6).stdout,
            "Stopped: maximum iteration limit reached.\n"
        );
        assert_eq!(sim.count(), requests, "{more:?}");
    }
}

/// LOOP-9: a turn that finishes on its last iteration is a normal finish.
#[test]
fn finishing_on_the_last_iteration_is_normal() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [list(), Reply::text("fine")]);
    let output = workspace.run(&["exec", "go", "--max-iterations", "2"]).output();
    assert_eq!(output.assert_code(0).stdout, "fine\n");
}

/// LOOP-10: with `--require-done` only the `done` tool ends the work, and its message is the answer.
#[test]
fn done_ends_the_turn() {
    for wire in WIRES {
        let done = Reply::call("done", json!({"message": "All green."})).say("Finishing.");
        let (sim, workspace) = with_replies(wire, [list(), done]);
        let output = workspace.run(&STREAM).args(&["go", "--require-done"]).output();
        output.assert_code(0);
        check_events(&output);
        assert_eq!(last_event(&output)["content"], "All green.", "{wire}");
        assert!(sim.requests()[0].seen.offers("done"));
        // The tool message stays in the history.
        let tools = output
            .events_of("message")
            .into_iter()
            .filter(|event| event["message"]["role"] == "tool");
        assert_eq!(tools.count(), 2, "{wire}");
    }
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert!(!sim.requests()[0].seen.offers("done"));
}

/// LOOP-10, LOOP-13, EXT-6: an answer without `done` is sent back twice, then the run fails with code 1.
#[test]
fn an_answer_without_done_is_not_enough() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("I think so.").times(3)]);
    let output = workspace.run(&["exec", "go", "--require-done"]).output();
    output.assert_code(1).assert_says("without calling `done`");
    assert_eq!(sim.count(), 3);
    assert!(sim.requests()[1].seen.last_user_text().unwrap().contains("done"));
    sim.assert_valid();
}

/// LOOP-13: the model is reminded of open todos before an answer is accepted, as often as the settings allow.
#[test]
fn open_todos_are_brought_up() {
    for (limit, requests) in [("0", 2), ("1", 3), ("2", 4)] {
        let todo = Reply::call(
            "todo",
            json!({"items": [{"text": "write the docs", "status": "pending"}]}),
        );
        let (sim, workspace) = with_replies(Protocol::Chat, [todo, Reply::text("Done, I believe.").times(9)]);
        let run = workspace
            .run(&["exec", "go", "-c"])
            .arg(format!("agent.max_incomplete_prompts={limit}"));
        assert_eq!(run.output().assert_code(0).stdout, "Done, I believe.\n");
        assert_eq!(sim.count(), requests);
        let asked = sim.outlines().pop().unwrap();
        assert_eq!(
            asked.contains("write the docs\\n") && asked.contains("still open"),
            limit != "0",
            "{asked}"
        );
        sim.assert_valid();
    }
}

/// LOOP-11, EXT-6: in a non-interactive run, a write that needs approval is denied; later calls do not run,
/// and the exit code is 5.
#[test]
fn a_denied_call_ends_the_turn() {
    for wire in WIRES {
        let calls = list()
            .and_call("bash", json!({"command": "touch made"}))
            .and_call("list_directory", json!({"path": "."}));
        let (sim, workspace) = with_replies(wire, [calls]);
        let output = workspace
            .run(&STREAM)
            .args(&["go", "-c", "security.auto_approve_writes=false"])
            .output();
        output.assert_code(5);
        check_events(&output);
        assert!(!workspace.has("made"));
        let contents = output.events_of("tool_result");
        let contents: Vec<_> = contents
            .iter()
            .map(|event| event["content"].as_str().unwrap())
            .collect();
        assert_eq!(
            contents[1..],
            ["Permission denied", "Tool execution canceled by user"],
            "{wire}"
        );
        let last = last_event(&output);
        assert_eq!(
            (&last["type"], &last["finish"]),
            (&json!("failed"), &json!("permission_denied"))
        );
        assert_eq!(sim.count(), 1);
    }
}

/// LOOP-15: an incomplete call never runs; the model is informed and continues.
#[test]
fn half_a_call_is_never_executed() {
    for wire in WIRES {
        let half = Reply::raw_call("bash", r#"{"command": "touch made"#).stop(Stop::MaxTokens);
        // Cut off at the limit right after its last brace: still incomplete.
        let whole = Reply::call("bash", json!({"command": "touch made"})).stop(Stop::MaxTokens);
        let (sim, workspace) = with_replies(wire, [half, whole, Reply::text("fine")]);
        let output = workspace.run(&STREAM).arg("go").output();
        output.assert_code(0);
        check_events(&output);
        assert_eq!(sim.count(), 3, "{wire}");
        let results = last_results(&sim);
        assert!(
            results.iter().any(|result| result.text.contains("output limit")),
            "{wire}: {results:?}"
        );
        assert!(!workspace.has("made"), "{wire}");
        sim.assert_valid();
    }
}

/// LOOP-15: replies that are cut off repeatedly end the turn after three more tries.
#[test]
fn cut_replies_have_a_cap() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, [Reply::text("and so on").stop(Stop::MaxTokens).forever()]);
        workspace
            .run(&["exec", "go"])
            .output()
            .assert_code(1)
            .assert_says("cut at the output limit");
        assert_eq!(sim.count(), 4, "{wire}");
        sim.assert_valid();
    }
}

/// LOOP-15, EXT-6: a reply that the provider pauses again and again ends the turn after three more tries, and is not said to
/// be cut.
#[test]
fn paused_replies_have_a_cap() {
    let reply = Reply::text("and so on").stop(Stop::PauseTurn).forever();
    let (sim, workspace) = with_replies(Protocol::Anthropic, [reply]);
    let output = workspace.run(&["exec", "go"]).output();
    output
        .assert_code(1)
        .assert_says("The provider paused its reply 4 times in a row.");
    assert!(!output.stderr.contains("max_output_tokens"), "{output}");
    assert_eq!(sim.count(), 4);
    sim.assert_valid();
}

/// LOOP-15, EXT-6: an empty reply is retried once, then the turn fails with a clear error.
#[test]
fn empty_replies_have_a_cap() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, [Reply::default(), Reply::text("fine")]);
        assert_eq!(
            workspace.run(&["exec", "go"]).output().assert_code(0).stdout,
            "fine\n",
            "{wire}"
        );
        sim.assert_valid();
        let (sim, workspace) = with_replies(wire, [Reply::default().forever()]);
        let output = workspace.run(&["exec", "go"]).output();
        output.assert_code(1).assert_says("empty reply twice");
        assert_eq!((sim.count(), output.stdout.as_str()), (2, ""), "{wire}");
        sim.assert_valid();
    }
}

/// LOOP-17: the same call with the same result gets a note after three times, and ends the turn after five.
#[test]
fn repetition_is_noticed() {
    for wire in WIRES {
        let again = Reply::call("bash", json!({"command": "echo x >> log; echo same"}));
        let (sim, workspace) = with_replies(wire, [again.forever()]);
        let output = workspace.run(&STREAM).arg("go").output();
        output.assert_code(1);
        check_events(&output);
        assert_eq!(
            (last_event(&output)["reason"].as_str(), sim.count()),
            (Some("repetition"), 5),
            "{wire}\n{output}"
        );
        assert!(
            last_event(&output)["message"]
                .as_str()
                .unwrap()
                .contains("`bash` was called 5 times")
        );
        assert_eq!(
            workspace.read("log").lines().count(),
            3,
            "the fourth and fifth are not run"
        );
        assert!(last_results(&sim)[3].text.contains("Not run"), "{wire}");
        sim.assert_valid();
    }
}

/// LOOP-17, EXT-6: the cost limit ends the turn with code 7, and a limit that cannot be measured is rejected.
#[test]
fn cost_has_a_cap() {
    for wire in WIRES {
        let costly = list().tokens(400_000, 1).cached_tokens(0, 0).forever();
        let (sim, workspace) = with_replies(wire, [costly]);
        let prices = [
            "-c",
            "models.\"sim-1\".price.input=1",
            "-c",
            "models.\"sim-1\".price.output=1",
        ];
        let output = workspace
            .run(&["exec", "go", "--max-cost", "0.5"])
            .args(&prices)
            .output();
        output.assert_code(7).assert_says("cost limit");
        assert_eq!(sim.count(), 2, "{wire}");
    }
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine")]);
    let output = workspace
        .run(&["exec", "go", "--max-cost", "0.5", "--model", "nobody-knows"])
        .output();
    output
        .assert_code(2)
        .assert_says("models.\"nobody-knows\".price.input");
    assert_eq!(sim.count(), 0);
}

/// LOOP-15, MSG-3: a refusal ends the turn and is reported.
#[test]
fn a_refusal_is_reported() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(wire, [Reply::text("I will not.").stop(Stop::Refusal)]);
        let output = workspace.run(&STREAM).arg("go").output();
        output.assert_code(1).assert_says("I will not.");
        check_events(&output);
        assert_eq!(
            (&last_event(&output)["reason"], sim.count()),
            (&json!("refusal"), 1),
            "{wire}"
        );
    }
}
