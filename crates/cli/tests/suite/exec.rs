//! `windlass exec`: its inputs and outputs.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, WIRES};

use super::support::{check_events, with_replies};

/// Returns the prompt that the model received, without the environment fragment.
fn asked(args: &[&str], stdin: Option<&str>) -> (Output, String) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    let run = workspace.run(args);
    let output = match stdin {
        Some(text) => run.stdin(text).output(),
        None => run.output(),
    };
    sim.assert_valid();
    let requests = sim.requests();
    let text = requests
        .first()
        .and_then(|request| request.seen.last_user_text())
        .unwrap_or_default();
    let text = text
        .split("</environment>\n")
        .last()
        .unwrap_or_default()
        .to_owned();
    (output, text)
}

/// UI-3, EXT-6: a prompt comes from the arguments, from standard input, or from both.
#[test]
fn a_prompt_has_several_ways_in() {
    let cases: [(&[&str], Option<&str>, &str); 9] = [
        (&["exec", "do it"], None, "do it"),
        (&["exec", "do", "it"], None, "do it"),
        (&["exec"], Some("from a pipe\n"), "from a pipe\n"),
        (&["exec", "-"], Some("from a pipe"), "from a pipe"),
        (
            &["exec", "explain"],
            Some("line 1\nline 2\n"),
            "explain\n\n<stdin>\nline 1\nline 2\n</stdin>",
        ),
        (&["exec", "explain"], Some("  \n"), "explain"),
        (&["-p", "do it"], None, "do it"),
        (&["-p"], Some("from a pipe"), "from a pipe"),
        (
            &["--print", "explain"],
            Some("x"),
            "explain\n\n<stdin>\nx\n</stdin>",
        ),
    ];
    for (args, stdin, expected) in cases {
        let (output, text) = asked(args, stdin);
        output.assert_code(0);
        assert_eq!(output.stdout, "fine\n", "{args:?}");
        assert_eq!(text, expected, "{args:?} with {stdin:?}");
    }
}

/// UI-3: options work before and after the prompt, and with `-p`.
#[test]
fn options_stand_anywhere() {
    let cases: [&[&str]; 4] = [
        &["exec", "-o", "json", "hi"],
        &["exec", "hi", "--output-format", "json"],
        &["-p", "hi", "-o", "json"],
        &["-o", "json", "-p", "hi"],
    ];
    for args in cases {
        let (output, _) = asked(args, None);
        assert_eq!(output.assert_code(0).json()["result"], "fine", "{args:?}");
    }
}

/// UI-3: invalid bytes on standard input are replaced, with a warning.
#[test]
fn input_that_is_not_utf8_is_read_all_the_same() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine")]);
    let output = workspace
        .run(&["exec"])
        .stdin(b"caf\xe9 au lait".to_vec())
        .output();
    output.assert_code(0).assert_says("not valid UTF-8");
    assert!(
        sim.requests()[0]
            .seen
            .last_user_text()
            .unwrap()
            .contains("caf\u{fffd} au lait")
    );
}

/// UI-1, UI-3: piped text output is only the answer; progress goes to standard error.
#[test]
fn text_output_is_the_answer() {
    for wire in WIRES {
        let look = Reply::call("bash", json!({"command": "echo seen"})).say("I will look.");
        let (sim, workspace) = with_replies(wire, [look, Reply::text("It says {{last_result}}")]);
        let output = workspace.run(&["exec", "look"]).output();
        output
            .assert_code(0)
            .assert_says("I will look.")
            .assert_says("● bash echo seen")
            .assert_says("│ seen");
        output.assert_says("2 model calls · 1 tool call ·");
        assert_eq!(output.stdout, "It says seen\n", "{wire}");
        sim.assert_valid();
    }
}

/// UI-3: calls that failed look different from those that worked, without colours as well.
#[test]
fn failed_calls_are_marked() {
    let calls = Reply::call("bash", json!({"command": "echo seen"}))
        .and_call("read_file", json!({"path": "absent.txt"}));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [calls, Reply::text("fine")]);
    let output = workspace.run(&["exec", "look"]).output();
    output
        .assert_code(0)
        .assert_says("  │ seen")
        .assert_says("  ✗ Error: absent.txt");
}

/// UI-7: examples in the help stand in columns, and a negative limit is a wrong value, not an unknown flag.
#[test]
fn help_and_limits_are_read_right() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let help = workspace.run(&["--help"]).output();
    let described = |line: &&str| line.starts_with("  windlass") && line.contains("   ");
    let (_, examples) = help.stdout.split_once("Start an interactive session:").unwrap();
    let column = |line: &str| {
        let (_, text) = line.trim_start().split_once("   ").unwrap();
        line.len() - text.trim_start().len()
    };
    let columns = examples.lines().filter(described).map(column);
    let columns: std::collections::HashSet<usize> = columns.take(4).collect();
    assert_eq!(columns.len(), 1, "{examples}");
    let refused = workspace.run(&["exec", "--max-cost", "-1", "hi"]).output();
    refused.assert_code(2).assert_says("--max-cost");
    assert!(!refused.stderr.contains("unexpected argument"), "{refused}");
}

/// UI-3: `--quiet` leaves standard error empty unless there is an error.
#[test]
fn quiet_says_nothing() {
    let (_sim, workspace) = with_replies(
        Protocol::Chat,
        [Reply::call("bash", json!({"command": "ls"})), Reply::text("fine")],
    );
    let output = workspace.run(&["exec", "--quiet", "hi"]).output();
    output.assert_code(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("fine\n", ""));
    let output = workspace.run(&["exec", "--quiet", "hi"]).output();
    output
        .assert_code(8)
        .assert_says("error: the script has no reply");
}

/// EXT-6: colors are off without a terminal, on if forced, and `NO_COLOR` takes precedence.
#[test]
fn colours_follow_the_conventions() {
    let cases: [(&[(&str, &str)], bool); 6] = [
        (&[], false),
        (&[("FORCE_COLOR", "1")], true),
        (&[("FORCE_COLOR", "0")], false),
        (&[("FORCE_COLOR", "")], false),
        (&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], false),
        (&[("FORCE_COLOR", "1"), ("NO_COLOR", "")], true),
    ];
    for (variables, coloured) in cases {
        let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine")]);
        let run = variables
            .iter()
            .fold(workspace.run(&["exec", "hi"]), |run, (name, value)| {
                run.env(name, value)
            });
        let output = run.output();
        assert_eq!(
            output.assert_code(0).stderr.contains('\x1b'),
            coloured,
            "{variables:?}\n{output}"
        );
        assert_eq!(output.stdout, "fine\n");
    }
}

/// UI-1: control sequences from a model or a file do not reach the terminal through standard error.
#[test]
fn what_tools_print_cannot_steer_the_terminal() {
    let evil = Reply::call(
        "bash",
        json!({"command": "printf '\\033]0;owned\\007\\033[2J\\n'"}),
    );
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [evil.say("look \u{1b}[31mred"), Reply::text("fine")],
    );
    let output = workspace.run(&["exec", "hi"]).output();
    assert!(!output.assert_code(0).stderr.contains('\x1b'), "{output}");
}

/// UI-3: one JSON object with the answer, the usage and the cost.
#[test]
fn json_output_is_one_object() {
    for wire in WIRES {
        let call = Reply::call("bash", json!({"command": "true"}))
            .tokens(1_000, 100)
            .cached_tokens(0, 0);
        let answer = Reply::text("fine").tokens(2_000, 50).cached_tokens(0, 0);
        let (_sim, workspace) = with_replies(wire, [call, answer]);
        let prices = [
            "-c",
            "models.\"sim-1\".price.input=10",
            "-c",
            "models.\"sim-1\".price.output=100",
        ];
        let output = workspace
            .run(&["exec", "-o", "json", "hi"])
            .args(&prices)
            .output();
        let object = output.assert_code(0).json();
        assert_eq!(output.stdout.lines().count(), 1);
        for (key, expected) in [
            ("type", json!("result")),
            ("ok", json!(true)),
            ("exit_code", json!(0)),
            ("result", json!("fine")),
            ("structured", json!(null)),
            ("error", json!(null)),
            ("provider", json!("test")),
            ("model", json!("sim-1")),
            ("model_calls", json!(2)),
            ("tool_calls", json!(1)),
            (
                "usage",
                json!({"input": 3_000, "output": 150, "cache_read": 0, "cache_write": 0}),
            ),
        ] {
            assert_eq!(object[key], expected, "{key} on {wire}\n{output}");
        }
        // 3,000 tokens at 10 dollars a million and 150 at 100.
        assert!(
            (object["cost_usd"].as_f64().unwrap() - 0.045).abs() < 1e-9,
            "{output}"
        );
        assert!(
            object["session"].is_string() && object["duration_ms"].is_u64(),
            "{output}"
        );
    }
}

/// UI-3: a failed run still prints its one object, with the kind of failure and the exit code.
#[test]
fn json_output_tells_failures() {
    let (_sim, workspace) = with_replies(Protocol::Chat, []);
    let output = workspace.run(&["exec", "-o", "json", "hi"]).output();
    let object = output.assert_code(8).json();
    assert_eq!(
        (&object["ok"], &object["exit_code"], &object["result"]),
        (&json!(false), &json!(8), &json!(null))
    );
    assert!(
        object["error"]["message"].as_str().unwrap().contains("no reply"),
        "{output}"
    );
}

/// EVT-2, EVT-6, UI-3: every line is an event of the published schema, in order, with one terminal event.
#[test]
fn stream_json_is_one_event_per_line() {
    for wire in WIRES {
        let first = Reply::call("bash", json!({"command": "echo one"}))
            .say("First.")
            .thinking("hm");
        let first = first
            .and_call("glob", json!({"pattern": "*.md"}))
            .and_call("glob", json!({"pattern": "*.rs"}));
        let (sim, workspace) = with_replies(wire, [first, Reply::text("The answer.")]);
        let output = workspace
            .run(&["exec", "-o", "stream-json", "-c", "agent.reasoning=low", "hi"])
            .output();
        output.assert_code(0);
        check_events(&output);
        let step = ["step_start", "tool_call", "tool_result", "step_complete"];
        let expected = [
            &[
                "message",
                "goal",
                "start",
                "usage",
                "reasoning",
                "message",
                "text",
            ][..],
            &step,
            &step,
            &step,
            &["message", "usage", "message", "final"],
        ];
        assert_eq!(output.story(), expected.concat(), "{wire}");
        let last = output.events().pop().unwrap();
        assert_eq!(
            (&last["content"], &last["finish"]),
            (&json!("The answer."), &json!("end_turn"))
        );
        // The final answer is streamed in pieces as well.
        let deltas = output.events_of("delta");
        let text: String = deltas
            .iter()
            .filter(|d| d["kind"] == "text")
            .filter_map(|d| d["text"].as_str())
            .collect();
        assert_eq!(text, "First.The answer.", "{wire}");
        assert_eq!(output.stderr, "", "{wire}");
        sim.assert_valid();
    }
}

/// UI-3: `--cd` changes the working folder, relative to the current one.
#[test]
fn cd_moves_the_work() {
    let write = Reply::call("write_file", json!({"path": "made.txt", "content": "x\n"}));
    let (_sim, workspace) = with_replies(Protocol::Chat, [write, Reply::text("fine")]);
    workspace.write("deep/er/keep", "");
    workspace
        .run(&["exec", "--cd", "deep/er", "hi"])
        .output()
        .assert_code(0);
    assert!(workspace.has("deep/er/made.txt") && !workspace.has("made.txt"));
}

/// UI-3: `exec` waits for input piped alongside a prompt; a pipe that is never closed is reported, and Ctrl-C
/// ends the wait.
#[test]
fn an_open_pipe_is_named() {
    let (sim, workspace) = with_replies(Protocol::Chat, [Reply::text("fine")]);
    let mut run = workspace.run(&["exec", "hi"]).open_stdin().start();
    run.wait_for_stderr("reading standard input until it ends");
    assert_eq!(sim.count(), 0);
    run.interrupt();
    run.output().assert_code(130);
}
