//! OBS-1 through the binary: spans and metrics at a collector, the log file, dumps.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, When};
use windlass_testkit::{CollectedSpan, OtelCollector, Run, SimServer, Workspace, decoded_spans, span_tree};

use super::support::{script, with_replies, workspace};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
const OUTSIDE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn exec(workspace: &Workspace, collector: &OtelCollector) -> Run {
    workspace
        .run(&["exec", "-o", "json", "--mode", "auto"])
        .env(ENDPOINT, collector.url())
}

/// Exports the session of a run again, as a file of this name.
fn exported(workspace: &Workspace, session: &Value, name: &str) -> Vec<CollectedSpan> {
    let path = workspace.path().join(name);
    let session = session.as_str().unwrap();
    let args = ["export", "otel", session, "--out", path.to_str().unwrap()];
    workspace.run(&args).output().assert_code(0);
    decoded_spans(&std::fs::read(path).unwrap()).unwrap()
}

fn by_id(mut spans: Vec<CollectedSpan>) -> Vec<CollectedSpan> {
    spans.sort_by(|a, b| a.id.cmp(&b.id));
    spans
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::call("list_directory", json!({"path": "."}))
            .and_call("read_file", json!({"path": "missing.txt"}))
            .tokens(100, 10)
            .cached_tokens(60, 20),
        Reply::text("done").tokens(50, 5).cached_tokens(0, 0),
    ]
}

/// OBS-1: a turn with tools gives one trace, with usage, cached tokens and failures; exporting the session
/// afterwards gives the same spans, as protobuf and as JSON.
#[test]
fn a_turn_is_a_trace() {
    for wire in windlass_testkit::WIRES {
        let (_sim, workspace) = with_replies(wire, replies());
        let collector = OtelCollector::start();
        let output = exec(&workspace, &collector).arg("go").output();
        output.assert_code(0);
        let spans = collector.spans();
        let shown = [
            "gen_ai.operation.name",
            "gen_ai.usage.output_tokens",
            "gen_ai.response.finish_reasons",
            "error.type",
        ];
        let expected = "\
invoke_agent windlass name=\"invoke_agent\" output_tokens=15 finish_reasons=[\"stop\"]
  chat sim-1 name=\"chat\" output_tokens=10 finish_reasons=[\"tool_calls\"]
  execute_tool list_directory name=\"execute_tool\"
  execute_tool read_file FAILED name=\"execute_tool\" type=\"tool_error\"
  chat sim-1 name=\"chat\" output_tokens=5 finish_reasons=[\"stop\"]
";
        assert_eq!(span_tree(&spans, &shown), expected, "{wire}");
        check_spans(&spans, &output.json()["session"]);
        let session = &output.json()["session"];
        assert_eq!(exported(&workspace, session, "trace.pb"), spans, "{wire}");
        assert_eq!(exported(&workspace, session, "trace.json"), spans, "{wire}");
        // Without consent there is no content.
        let all = format!("{spans:?}");
        assert!(!all.contains("missing.txt") && !all.contains("\"done\""), "{all}");
    }
}

/// OBS-1: a reply that arrives in pieces has the time to its first one, their number and its reasoning tokens on its span,
/// and the time between pieces is counted.
#[test]
fn the_pace_of_a_reply_is_known() {
    let reply = Reply::text("one two three four five six").thinking("Let me count the words first.");
    let (_sim, workspace) = with_replies(Protocol::Responses, [reply]);
    let collector = OtelCollector::start();
    exec(&workspace, &collector).arg("go").output().assert_code(0);
    let spans = collector.spans();
    let number = |span: &CollectedSpan, name: &str| span.attributes[name].as_f64().unwrap_or_default();
    let reasoning = "gen_ai.usage.reasoning.output_tokens";
    assert!(number(&spans[1], reasoning) > 0.0, "{spans:?}");
    assert_eq!(number(&spans[0], reasoning), number(&spans[1], reasoning));
    let chunks = number(&spans[1], "windlass.response.chunks");
    assert!(chunks > 1.0, "{spans:?}");
    let points = collector.points();
    let counted = points
        .iter()
        .find(|point| point.metric == "gen_ai.client.operation.time_per_output_chunk");
    assert_eq!(
        counted.map(|point| point.count as f64),
        Some(chunks - 1.0),
        "{points:?}"
    );
}

/// Checks what holds for the spans of the turn above.
#[track_caller]
fn check_spans(spans: &[CollectedSpan], session: &Value) {
    let root = &spans[0];
    let text = |span: &CollectedSpan, name: &str| span.attributes[name].clone();
    assert_eq!(text(root, "gen_ai.conversation.id"), *session);
    assert_eq!(root.parent, "");
    let chat = &spans[1];
    assert_eq!((root.kind, chat.kind), (1, 3));
    assert_eq!(text(chat, "gen_ai.provider.name"), "test");
    assert_eq!(text(chat, "gen_ai.request.model"), "sim-1");
    let input = text(chat, "gen_ai.usage.input_tokens").as_i64().unwrap();
    let cached = text(chat, "gen_ai.usage.cache_read.input_tokens")
        .as_i64()
        .unwrap();
    assert!(cached == 60 && input >= 100, "{chat:?}");
    for span in spans {
        assert_eq!(span.trace, root.trace);
        assert!(
            root.start <= span.start && span.start <= span.end && span.end <= root.end,
            "{span:?}"
        );
    }
}

/// OBS-1, SUB-4: the turn of a sub-agent is below the call that started it, in the same trace.
#[test]
fn agents_are_nested() {
    let replies = vec![
        super::agents::child("find it", Reply::call("list_directory", json!({"path": "."}))),
        super::agents::child("find it", Reply::text("it is 42")),
        Reply::call(
            "agent",
            json!({"task": "find it", "type": "explorer", "name": "finder"}),
        ),
        Reply::text("The child says: {{last_result}}"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let collector = OtelCollector::start();
    let output = exec(&workspace, &collector)
        .env("TRACEPARENT", OUTSIDE)
        .arg("go")
        .output();
    output.assert_code(0);
    let spans = collector.spans();
    let expected = "\
invoke_agent windlass
  chat sim-1
  execute_tool agent
    invoke_agent finder
      chat sim-1
      execute_tool list_directory
      chat sim-1
  chat sim-1
";
    assert_eq!(span_tree(&spans, &[]), expected);
    let (_, rest) = OUTSIDE.split_once('-').unwrap();
    let (trace, rest) = rest.split_once('-').unwrap();
    let (parent, _) = rest.split_once('-').unwrap();
    assert!(spans.iter().all(|span| span.trace == trace), "{spans:?}");
    let root = spans
        .iter()
        .find(|span| span.name == "invoke_agent windlass")
        .unwrap();
    assert_eq!(root.parent, parent);
    let again = exported(&workspace, &output.json()["session"], "trace.pb");
    assert_eq!(by_id(again), by_id(spans));
}

/// OBS-1: a turn that fails, and the request that failed, carry the kind of the error; retries are events.
#[test]
fn failures_are_marked() {
    let overloaded = || Reply::text("").fault(Fault::status(529));
    let replies = [overloaded(), Reply::text("better"), overloaded().forever()];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let collector = OtelCollector::start();
    exec(&workspace, &collector).arg("one").output().assert_code(0);
    let retried = collector.spans();
    assert_eq!(retried[1].events, ["windlass.retry"], "{retried:?}");
    let output = exec(&workspace, &collector).arg("two").output();
    assert_ne!(output.code, Some(0), "{output}");
    let spans = collector.spans().split_off(retried.len());
    let expected = "\
invoke_agent windlass FAILED type=\"overloaded\"
  chat sim-1 FAILED type=\"overloaded\"
";
    assert_eq!(span_tree(&spans, &["error.type"]), expected);
}

/// OBS-1: content is exported only with consent, and without keys.
#[test]
fn content_needs_consent() {
    let key = "ghp_0123456789abcdef0123";
    let replies = [
        Reply::call("bash", json!({"command": format!("echo {key}")})),
        Reply::text("that was the key"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    let collector = OtelCollector::start();
    let run = exec(&workspace, &collector).env(CONTENT, "SPAN_ONLY");
    run.arg("print it").output().assert_code(0);
    let all = format!("{:?}", collector.spans());
    for part in ["print it", "that was the key", "echo [redacted]"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!all.contains(key), "{all}");
}

/// OBS-1: commands get the span of their turn, and belong to the trace.
#[test]
fn commands_know_their_trace() {
    let replies = [
        Reply::call("bash", json!({"command": "echo parent=$TRACEPARENT"})),
        Reply::text("{{last_result}}"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    let collector = OtelCollector::start();
    let output = exec(&workspace, &collector).arg("go").output();
    output.assert_code(0);
    let root = &collector.spans()[0];
    let expected = format!("parent=00-{}-{}-01", root.trace, root.id);
    assert!(output.stdout.contains(&expected), "{expected}: {output}");
}

/// OBS-1: tokens and durations reach the collector as histograms.
#[test]
fn metrics_are_counted() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
    let collector = OtelCollector::start();
    let run = exec(&workspace, &collector).env("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental");
    run.arg("go").output().assert_code(0);
    let points = collector.points();
    let sum = |metric: &str, kind: Option<&str>| -> (u64, f64) {
        let of = points.iter().filter(|point| {
            let is_kind =
                kind.is_none_or(|kind| point.attributes.get("gen_ai.token.type") == Some(&json!(kind)));
            point.metric == metric && is_kind
        });
        of.fold((0, 0.0), |(count, sum), point| {
            assert_eq!(point.buckets.len(), point.bounds.len() + 1);
            assert_eq!(point.buckets.iter().sum::<u64>(), point.count);
            (count + point.count, sum + point.sum)
        })
    };
    assert_eq!(sum("gen_ai.client.token.usage", Some("output")), (2, 15.0));
    assert_eq!(sum("gen_ai.client.operation.duration", None).0, 2);
    assert_eq!(sum("gen_ai.client.inference.duration", None).0, 2);
    assert_eq!(sum("gen_ai.execute_tool.duration", None).0, 2);
    assert_eq!(sum("gen_ai.invoke_agent.duration", None).0, 1);
    assert_eq!(sum("gen_ai.invoke_agent.tool_calls", None), (1, 2.0));
}

/// OBS-1: a collector that never answers costs a turn nothing, and the end of the program two seconds at most.
#[test]
fn a_hanging_collector_is_left_alone() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("an answer").forever()]);
    let collector = OtelCollector::hanging();
    let run = workspace.run(&["--plain"]).env(ENDPOINT, collector.url());
    let mut session = run
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
        .open_stdin()
        .start();
    // Each export would take a minute.
    for turn in 1..=3 {
        session.say("go\n");
        session.wait_until("an answer", |session| {
            session.stdout().matches("an answer").count() >= turn
        });
    }
    let begun = Instant::now();
    session.hush();
    session.output().assert_code(0);
    let end = begun.elapsed();
    assert!(end < Duration::from_secs(10), "{end:?}");
}

/// OBS-1: only the user chooses a collector; a project cannot send anything anywhere.
#[test]
fn projects_choose_no_collector() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("hello").forever()]);
    let collector = OtelCollector::start();
    let setting = format!("[telemetry]\nendpoint = \"{}\"\n", collector.url());
    workspace.write(".windlass/config.toml", &setting);
    workspace.run(&["trust", "--yes"]).output();
    workspace.run(&["exec", "hi"]).output().assert_code(0);
    assert!(collector.spans().is_empty());
    std::fs::remove_dir_all(workspace.path().join(".windlass")).unwrap();
    let flag = format!("telemetry.endpoint={}", collector.url());
    let output = workspace.run(&["exec", "-c", &flag, "hi"]).output();
    output.assert_code(0);
    assert_eq!(collector.spans().len(), 2, "{output}");
}

/// OBS-1: bad values name what is wrong. Those of the environment are warnings, because they are often meant
/// for other programs.
#[test]
fn bad_values_are_named() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("hello").forever()]);
    let run = workspace
        .run(&["exec", "-o", "json", "hi"])
        .env(ENDPOINT, "nonsense");
    let output = run.output();
    output.assert_code(0).assert_says(ENDPOINT);
    let session = output.json()["session"].as_str().unwrap().to_owned();
    let cases: [(&[&str], i32, &str); 4] = [
        (
            &["export", "otel", &session, "--endpoint", "nonsense"],
            2,
            "--endpoint",
        ),
        (
            &["export", "otel", &session, "--endpoint", "http://127.0.0.1:9"],
            1,
            "127.0.0.1:9",
        ),
        (&["export", "otel", "no-such-session"], 2, "no-such-session"),
        (&["exec", "--log-level", "loud", "hi"], 2, "--log-level"),
    ];
    for (args, code, text) in cases {
        workspace.run(args).output().assert_code(code).assert_says(text);
    }
    let file = workspace.write("a-file", "");
    let inside = file.join("dump");
    let args = ["exec", "--debug-dump", inside.to_str().unwrap(), "hi"];
    workspace
        .run(&args)
        .output()
        .assert_code(2)
        .assert_says("--debug-dump");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// OBS-1, CTX-13: the log file has the events of the program, compactions included, and no keys. Without a
/// level there is none.
#[test]
fn the_log_tells_what_happened() {
    let summary = Reply::text("CURRENT: none\nnothing")
        .when(When::new().no_tools(true))
        .forever();
    let calls =
        (0..8).map(|number| Reply::call("bash", json!({"command": format!("seq {number}000 {number}999")})));
    let replies = std::iter::once(summary)
        .chain(calls)
        .chain([Reply::text("an answer").forever()]);
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let log = workspace.home().join("state/windlass.log");
    let window = "models.sim-1.context_window=12000";
    let args = [
        "exec",
        "-c",
        window,
        "--log-level",
        "debug",
        "-c",
        "log.format=json",
        "go",
    ];
    workspace.run(&args).output().assert_code(0);
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let find = |message: &str| lines.iter().find(|line| line["message"] == message);
    let compacted = find("compacted").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(compacted["level"], "info");
    assert!(compacted["tokens_before"].as_u64() > compacted["tokens_after"].as_u64());
    for message in [
        "session opened",
        "turn started",
        "call started",
        "call ended",
        "turn ended",
    ] {
        assert!(find(message).is_some(), "{message}: {text}");
    }
    assert_eq!(mode(&log), 0o600);
}

/// OBS-1, PROV-11: a key in an error never reaches the log.
#[test]
fn the_log_has_no_keys() {
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text("hello").forever()]);
    let file = workspace.path().join("own.log");
    let place = format!("log.file={}", file.display());
    workspace.run(&["exec", "hi"]).output().assert_code(0);
    assert!(!workspace.home().join("state/windlass.log").exists());
    let args = ["exec", "-c", &place, "-C", ".", "hi"];
    let run = workspace.run(&args).env("WINDLASS_LOG", "info");
    run.env("SOME_API_KEY", &workspace.path().display().to_string())
        .output()
        .assert_code(0);
    let text = std::fs::read_to_string(&file).unwrap();
    // The folder of the session is in the log; here it is also the value of a key.
    assert!(text.contains("place=[redacted]"), "{text}");
}

/// OBS-1: a dump has every request and reply, and the subgoals, readable only by the user and without keys.
#[test]
fn a_dump_has_every_exchange() {
    let key = "sk-ant-REDACTED";
    let sim = SimServer::script_with_key(
        script([
            Reply::call("list_directory", json!({"path": "."})),
            Reply::text("done").forever(),
        ]),
        key,
    );
    let workspace = workspace();
    workspace.use_sim_with(&sim, Protocol::Anthropic, "key_env = \"TEST_KEY\"\n");
    let folder = workspace.path().join("dump");
    let strategy = "memory.compression.pruning_strategy=subgoal";
    let args = ["exec", "-c", strategy, "--debug-dump", folder.to_str().unwrap()];
    let prompt = format!("my key is {key}");
    let run = || workspace.run(&args).env("TEST_KEY", key).arg(&prompt).output();
    run().assert_code(0);
    let names = |number: u32| {
        ["request.json", "response.txt", "subgoal-registry.txt"]
            .map(|name| folder.join(format!("{number}-{name}")))
    };
    for path in [names(1), names(2)].concat() {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(!text.contains(key), "{path:?}: {text}");
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
    assert_eq!(mode(&folder), 0o700);
    let [request, response, _] = names(1);
    let request: Value = serde_json::from_str(&std::fs::read_to_string(request).unwrap()).unwrap();
    assert_eq!(request["model"], "sim-1");
    let response = std::fs::read_to_string(response).unwrap();
    assert!(
        response.starts_with("HTTP 200") && response.contains("list_directory"),
        "{response}"
    );
    // A second run continues the numbers.
    let before = std::fs::read_dir(&folder).unwrap().count();
    run().assert_code(0);
    assert!(std::fs::read_dir(&folder).unwrap().count() > before);
}
