//! Failing providers: a clean answer or a clean error, never a panic, a hang or duplicate text.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{Deviation, Fault, Framing, Protocol, Reply, Stop};
use windlass_testkit::{Output, SimServer, WIRES};

use super::support::{check_events, results, with_replies};

const STREAM: [&str; 4] = ["exec", "-o", "stream-json", "go"];

fn failing(fault: Fault) -> Reply {
    Reply::text("never seen whole").delta_chars(2).fault(fault)
}

fn run(wire: Protocol, replies: Vec<Reply>, more: &[&str]) -> (SimServer, Output) {
    let (sim, workspace) = with_replies(wire, replies);
    let output = workspace.run(&STREAM).args(more).output();
    assert!(!output.stderr.contains("panicked"), "{output}");
    sim.assert_valid();
    (sim, output)
}

/// Returns the events of a run that must succeed, with `retries` retries and the text only once.
#[track_caller]
fn check_recovered(wire: Protocol, output: &Output, retries: usize) -> Vec<Value> {
    output.assert_code(0);
    check_events(output);
    let events = output.events();
    assert_eq!(
        events.last().map(|event| event["content"].clone()),
        Some(json!("fine")),
        "{wire}\n{output}"
    );
    let told = output.events_of("retry");
    assert_eq!(told.len(), retries, "{wire}\n{output}");
    let stored = output.events_of("message");
    assert!(
        !stored
            .iter()
            .any(|event| event.to_string().contains("never seen")),
        "{wire}: stored\n{output}"
    );
    told
}

/// PROV-6: transient statuses are retried, and every retry is reported with its kind.
#[test]
fn passing_failures_are_retried() {
    for (status, kind) in [
        (408, "network"),
        (409, "provider"),
        (429, "rate_limit"),
        (500, "provider"),
        (503, "provider"),
        (529, "overloaded"),
    ] {
        for wire in WIRES {
            let (sim, output) = run(
                wire,
                vec![failing(Fault::status(status)).times(2), Reply::text("fine")],
                &[],
            );
            let told = check_recovered(wire, &output, 2);
            assert_eq!(told[0]["kind"], kind, "{status} on {wire}");
            assert_eq!(
                (&told[1]["attempt"], &told[1]["max_attempts"]),
                (&json!(2), &json!(8))
            );
            assert_eq!(told[0]["discard"], false);
            assert_eq!(sim.count(), 3);
        }
    }
}

/// DIST-3: a request that is sent again has the same idempotency key, the next request another.
#[test]
fn a_repeated_request_has_the_same_key() {
    for wire in WIRES {
        let list = Reply::call("list_directory", json!({ "path": "." }));
        let replies = vec![failing(Fault::status(503)).times(2), list, Reply::text("fine")];
        let (sim, output) = run(wire, replies, &[]);
        check_recovered(wire, &output, 2);
        let started = &output.events()[0];
        let key = |request: &windlass_sim::Logged| {
            let header = |(name, _): &&(String, String)| name == "idempotency-key";
            request
                .headers
                .iter()
                .find(header)
                .map(|(_, value)| value.clone())
        };
        let keys: Vec<String> = sim.requests().iter().filter_map(key).collect();
        assert_eq!(keys.len(), 4, "{wire}: {keys:?}");
        assert!(
            keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3],
            "{keys:?}"
        );
        let session = keys[0].split('/').next().unwrap_or_default();
        assert!(started.to_string().contains(session), "{keys:?} {started}");
    }
}

/// PROV-6, UI-1: the user sees every retry on standard error.
#[test]
fn retries_are_seen() {
    for format in ["text", "json"] {
        let (_sim, workspace) = with_replies(
            Protocol::Anthropic,
            [failing(Fault::status(529)), Reply::text("fine")],
        );
        let output = workspace.run(&["exec", "go", "-o", format]).output();
        output.assert_code(0).assert_says("retrying in 0.0 s (1 of 8)");
    }
}

/// PROV-6: `Retry-After` is obeyed, and a wait of more than two minutes is an immediate error.
#[test]
fn retry_after_wins() {
    let wait = |text: &str| failing(Fault::status(429).header("retry-after", text));
    let (_sim, output) = run(Protocol::Anthropic, vec![wait("1"), Reply::text("fine")], &[]);
    let told = check_recovered(Protocol::Anthropic, &output, 1);
    assert_eq!(told[0]["delay_ms"], 1_000);
    assert!(output.elapsed >= Duration::from_secs(1), "{output}");
    let (sim, output) = run(Protocol::Chat, vec![wait("121"), Reply::text("fine")], &[]);
    output.assert_code(8).assert_says("wait 121 s");
    assert_eq!(sim.count(), 1);
}

/// PROV-6: an exhausted quota, `x-should-retry: false` and invalid requests are reported immediately, with
/// the provider's message.
#[test]
fn lasting_failures_are_not_retried() {
    let quota = Fault::status(429).body(r#"{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}"#);
    let cases = [
        (quota, "exceeded your current quota", "quota"),
        (
            Fault::status(529)
                .header("x-should-retry", "false")
                .message("not now"),
            "not now",
            "overloaded",
        ),
        (
            Fault::status(400).message("max_tokens is odd"),
            "max_tokens is odd",
            "invalid_request",
        ),
        (Fault::status(403).message("not for you"), "not for you", "auth"),
        (Fault::status(402).message("pay first"), "pay first", "quota"),
        (
            Fault::status(400).body("<html>Bad Gateway</html>"),
            "status 400",
            "invalid_request",
        ),
    ];
    for wire in WIRES {
        for (fault, message, kind) in &cases {
            let (sim, output) = run(wire, vec![failing(fault.clone()), Reply::text("fine")], &[]);
            output.assert_code(8).assert_says(message);
            check_events(&output);
            assert_eq!(
                output.events().pop().unwrap()["reason"]["provider"],
                *kind,
                "{wire}\n{output}"
            );
            assert_eq!(sim.count(), 1, "{message}");
        }
    }
}

/// PROV-6, LOOP-17: retries are limited.
#[test]
fn retries_have_a_cap() {
    let (sim, output) = run(Protocol::Chat, vec![failing(Fault::status(500)).forever()], &[]);
    output.assert_code(8);
    assert_eq!((sim.count(), output.events_of("retry").len()), (9, 8));
    let (sim, output) = run(
        Protocol::Chat,
        vec![failing(Fault::status(500)).forever()],
        &["-c", "retry.max_retries=0"],
    );
    output.assert_code(8);
    assert_eq!(sim.count(), 1);
}

/// PROV-6: a stream that breaks after its first output restarts, without text being shown or stored twice.
#[test]
fn a_broken_stream_starts_over() {
    let faults = |wire| {
        let mut faults = vec![
            Fault::new().cut_after_events(5),
            Fault::new().cut_after_bytes(700),
            Fault::new().stall_after_events(5),
            Fault::new().no_finish(),
        ];
        // Each wire has its own words for "overloaded".
        faults.push(Fault::new().mid_stream_error(if wire == Protocol::Anthropic {
            "overloaded_error"
        } else {
            "server_error"
        }));
        faults
    };
    for wire in WIRES {
        for fault in faults(wire) {
            let replies = vec![failing(fault.clone()), Reply::text("fine")];
            let (sim, output) = run(wire, replies, &["-c", "timeouts.stream_idle_secs=0.5"]);
            let told = check_recovered(wire, &output, 1);
            // Only text that was shown can be discarded.
            let shown = output
                .stdout
                .split(r#""type":"retry""#)
                .next()
                .unwrap()
                .contains(r#""type":"delta""#);
            assert_eq!(told[0]["discard"], shown, "{wire} {fault:?}\n{output}");
            assert_eq!(sim.count(), 2);
        }
        let (_sim, workspace) = with_replies(
            wire,
            [failing(Fault::new().cut_after_events(5)), Reply::text("fine")],
        );
        let output = workspace.run(&["exec", "go"]).output();
        assert_eq!(output.assert_code(0).stdout, "fine\n", "{wire}");
    }
}

/// PROV-6, LOOP-17: a server that sends only keep-alives counts as silent after a while.
#[test]
fn keep_alives_are_not_a_reply() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
                let _ = stream.read(&mut [0; 4096]);
                let mut sent = stream.write_all(head.as_bytes());
                stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                // Until the client hangs up.
                while sent.is_ok() && !stream.read(&mut [0; 16]).is_ok_and(|read| read == 0) {
                    sent = stream.write_all(b": waiting\n\n");
                }
            });
        }
    });
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let base = format!("providers.test.base_url=\"{address}\"");
    let limits = [
        "-c",
        &base,
        "-c",
        "timeouts.stream_idle_secs=0.1",
        "-c",
        "retry.max_retries=0",
    ];
    let output = workspace.run(&["exec", "go"]).args(&limits).output();
    assert_ne!(output.code, Some(0), "{output}");
    output.assert_says("sent nothing but keep-alives for 1 s");
}

/// PROV-6, LOOP-15: a call in a broken stream does not run until it arrived completely, and then once.
#[test]
fn a_broken_call_runs_once() {
    for wire in WIRES {
        let call = || Reply::call("bash", json!({"command": "echo x >> log"})).say("I will.");
        let cut = call().delta_chars(4).fault(Fault::new().cut_after_events(8));
        let (sim, workspace) = with_replies(wire, [cut, call(), Reply::text("fine")]);
        let output = workspace.run(&["exec", "go"]).output();
        assert_eq!(output.assert_code(0).stdout, "fine\n");
        assert_eq!(
            (workspace.read("log").as_str(), sim.count()),
            ("x\n", 3),
            "{wire}"
        );
        assert_eq!(output.stderr.matches("I will.").count(), 1, "{output}");
        sim.assert_valid();
    }
}

/// PROV-12: every legal framing, byte by byte, gives the same answer.
#[test]
fn every_framing_gives_the_same_answer() {
    let framings = [
        Framing::Crlf,
        Framing::Cr,
        Framing::Bom,
        Framing::Comments,
        Framing::NoSpace,
        Framing::Multiline,
    ];
    for wire in WIRES {
        for framing in framings {
            let fault = Fault::new().framing(framing).chunk(1).pings(2);
            let call = Reply::call("bash", json!({"command": "printf 'h\u{e9}llo \u{1f30d}'"}))
                .say("Look: \u{1f30d}");
            let answer = Reply::text("It says {{last_result}}")
                .delta_chars(3)
                .fault(fault.clone());
            let (sim, workspace) = with_replies(wire, [call.fault(fault.clone()), answer]);
            let output = workspace.run(&["exec", "go"]).output();
            assert_eq!(
                output.assert_code(0).stdout,
                "It says h\u{e9}llo \u{1f30d}\n",
                "{wire} {fault:?}"
            );
            assert!(
                !output.stderr.contains("retrying in"),
                "{wire} {fault:?}\n{output}"
            );
            sim.assert_valid();
        }
    }
}

/// PROV-4: known deviations of compatible servers are tolerated.
#[test]
fn deviations_of_compatible_servers_do_not_matter() {
    use Deviation as D;
    for deviation in [
        D::SharedIndex,
        D::MissingIndex,
        D::IdPerFragment,
        D::FinishStopWithCalls,
        D::NoDone,
        D::UsageMissing,
        D::NullContent,
    ] {
        let fault = Fault::new().deviation(deviation);
        let calls = Reply::call("bash", json!({"command": "echo one"}))
            .and_call("bash", json!({"command": "echo two"}));
        let replies = [
            calls.delta_chars(5).fault(fault.clone()),
            Reply::text("fine").fault(fault),
        ];
        let (sim, workspace) = with_replies(Protocol::Chat, replies);
        let output = workspace.run(&["exec", "go"]).output();
        assert_eq!(output.assert_code(0).stdout, "fine\n", "{deviation:?}");
        let requests = sim.requests();
        let results: Vec<_> = requests[1]
            .seen
            .results()
            .map(|result| result.text.as_str())
            .collect();
        assert_eq!(results, ["one", "two"], "{deviation:?}");
        sim.assert_valid();
    }
}

/// PROV-12: bytes that are not a stream, not text or far too many end in a clean answer or a clean error.
#[test]
fn malformed_answers_end_cleanly() {
    for wire in WIRES {
        let cases = [
            Fault::new().invalid_utf8(),
            Fault::new().content_type("text/html"),
            Fault::new().content_type("application/json"),
            Fault::new().content_type("application/octet-stream"),
            Fault::new().oversized(9 * 1024 * 1024),
        ];
        for fault in cases {
            let replies = vec![
                Reply::text("some words here")
                    .delta_chars(4)
                    .fault(fault.clone())
                    .forever(),
            ];
            let (_sim, output) = run(wire, replies, &["-c", "retry.max_retries=1"]);
            check_events(&output);
            assert!(matches!(output.code, Some(0 | 8)), "{wire} {fault:?}\n{output}");
            if output.code == Some(8) {
                output.assert_says("error: ");
            } else {
                let content = output.events().pop().unwrap()["content"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                assert!(
                    content.replace('\u{fffd}', "").starts_with("some"),
                    "{wire} {fault:?}: {content}"
                );
            }
        }
    }
}

/// PROV-6, PROV-12: bytes that are not UTF-8 are a passing fault, and the reply is requested again.
#[test]
fn a_reply_that_is_not_text_is_requested_again() {
    for wire in WIRES {
        let broken = Reply::text("some words here").fault(Fault::new().invalid_utf8());
        let (sim, output) = run(wire, vec![broken, Reply::text("fine")], &[]);
        check_recovered(wire, &output, 1);
        assert_eq!(sim.count(), 2, "{wire}");
    }
}

/// Returns a stream with these events as a reply.
fn stream(events: &[Value]) -> Reply {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let fault = Fault::status(200)
        .body(&body)
        .header("content-type", "text/event-stream");
    Reply::default().fault(fault)
}

/// PROV-12: two blocks at one place make a reply ambiguous: none of its calls runs, and it is requested again.
#[test]
fn an_ambiguous_reply_is_requested_again() {
    let block = |name: &str| json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": name, "name": name, "input": {}}});
    let arguments = "{\"path\":\"made.txt\",\"content\":\"x\"}";
    let anthropic = [
        json!({"type": "message_start", "message": {"model": "sim-1"}}),
        block("read_file"),
        block("write_file"),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": arguments}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let item = |name: &str| json!({"type": "function_call", "call_id": name, "name": name, "arguments": ""});
    let added =
        |name: &str| json!({"type": "response.output_item.added", "output_index": 0, "item": item(name)});
    let responses = [
        added("write_file"),
        added("read_file"),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ];
    for (wire, events) in [
        (Protocol::Anthropic, &anthropic[..]),
        (Protocol::Responses, &responses[..]),
    ] {
        let (sim, workspace) = with_replies(wire, [stream(events), Reply::text("fine")]);
        let output = workspace.run(&STREAM).output();
        check_recovered(wire, &output, 1);
        assert_eq!(output.events_of("tool_call").len(), 0, "{wire}\n{output}");
        assert!(!workspace.has("made.txt"), "{wire}");
        sim.assert_valid();
    }
}

/// PROV-12: token counts that make no sense cost neither the reply nor another request.
#[test]
fn odd_token_counts_do_not_cost_the_reply() {
    let huge = serde_json::from_str(&format!("1{}", "0".repeat(18))).unwrap();
    for odd in [
        json!(3.7),
        json!("12"),
        json!("many"),
        json!(-5),
        huge,
        json!({}),
        json!([1]),
        json!(null),
    ] {
        for usage in [
            json!({"input_tokens": odd, "output_tokens": 7, "prompt_tokens": odd, "completion_tokens": 7, "promptTokenCount": odd, "candidatesTokenCount": 7, "input_tokens_details": odd, "prompt_tokens_details": odd}),
            odd.clone(),
        ] {
            for (wire, events) in counted(&usage) {
                let (sim, workspace) = with_replies(wire, [stream(&events)]);
                let output = workspace.run(&STREAM).output();
                check_recovered(wire, &output, 0);
                assert_eq!(sim.count(), 1, "{usage} on {wire}\n{output}");
            }
        }
    }
}

/// Returns a stream of every wire that answers "fine" with this usage.
fn counted(usage: &Value) -> [(Protocol, Vec<Value>); 3] {
    let anthropic = vec![
        json!({"type": "message_start", "message": {"model": "sim-1", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "fine"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let chat = vec![
        json!({"choices": [{"index": 0, "delta": {"content": "fine"}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}),
    ];
    let message =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "fine"}]});
    let responses = vec![
        json!({"type": "response.output_item.done", "output_index": 0, "item": message}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [message], "usage": usage}}),
    ];
    [
        (Protocol::Anthropic, anthropic),
        (Protocol::Chat, chat),
        (Protocol::Responses, responses),
    ]
}

/// PROV-12: a tool's name that comes in pieces is put together; one that is repeated is not.
#[test]
fn a_name_may_come_in_pieces() {
    let piece = |name: &str, arguments: &str| json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments}}]}}]});
    let arguments = json!({"path": "made.txt", "content": "x"}).to_string();
    for names in [
        &["write", "_file"][..],
        &["write_file", "write_file"],
        &["write", "write_file"],
    ] {
        let mut events: Vec<Value> = names.iter().map(|name| piece(name, "")).collect();
        events.push(piece("", &arguments));
        events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        let (sim, workspace) = with_replies(Protocol::Chat, [stream(&events), Reply::text("fine")]);
        workspace.run(&STREAM).output().assert_code(0);
        assert_eq!(workspace.read("made.txt"), "x", "{names:?}");
        sim.assert_valid();
    }
}

/// LOOP-6: the name of an unknown tool comes back shortened.
#[test]
fn a_long_unknown_name_is_shortened() {
    for wire in WIRES {
        let call = Reply::call(&"n".repeat(3000), json!({}));
        let (sim, output) = run(wire, vec![call, Reply::text("fine")], &[]);
        output.assert_code(0);
        let results = results(&sim);
        assert!(results[0].contains("Unknown tool 'nnn"), "{wire}: {results:?}");
        assert!(results[0].len() < 200, "{wire}: {} bytes", results[0].len());
    }
}

/// PROV-6: a request that is too large is not sent again, whether the status or an event says so.
#[test]
fn a_request_that_is_too_large_is_not_sent_again() {
    let error = json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}});
    let whole = Fault::status(413).body(&error.to_string());
    for reply in [
        stream(std::slice::from_ref(&error)),
        Reply::default().fault(whole),
    ] {
        let (sim, output) = run(Protocol::Anthropic, vec![reply, Reply::text("fine")], &[]);
        output.assert_code(8);
        check_events(&output);
        assert_eq!(sim.count(), 1, "{output}");
        assert_eq!(output.events_of("retry").len(), 0);
    }
}

/// PROV-12: a body of 200 MB is cut off at the limit and not requested again.
#[test]
fn a_huge_body_is_cut_off() {
    for wire in WIRES {
        let huge = Reply::text("x").fault(Fault::new().oversized(200 * 1024 * 1024));
        let (sim, output) = run(wire, vec![huge], &[]);
        output.assert_code(8);
        check_events(&output);
        assert_eq!(sim.count(), 1, "the next answer would not be smaller");
    }
}

/// PROV-12, PROV-11: a redirect is not followed, because its target would get the key.
#[test]
fn a_redirect_is_not_followed() {
    for wire in WIRES {
        let (elsewhere, _) = with_replies(wire, [Reply::text("stolen").forever()]);
        let target = format!("{}/v1/messages", elsewhere.url());
        let (sim, output) = run(
            wire,
            vec![failing(Fault::redirect(&target)), Reply::text("fine")],
            &[],
        );
        output
            .assert_code(8)
            .assert_says("redirects are not followed")
            .assert_says("base_url");
        assert_eq!((sim.count(), elsewhere.count()), (1, 0), "{wire}");
    }
}

/// PROV-10: after a context overflow the conversation is compacted and the request retried once.
#[test]
fn an_overflow_is_compacted_once() {
    for wire in WIRES {
        let overflow = || {
            Reply::default()
                .fault(Fault::status(400).message("prompt is too long: 300000 tokens > 200000 maximum"))
        };
        let call = |word: &str| Reply::call("bash", json!({"command": format!("echo {word}")}));
        let words = ["a", "b", "c", "d", "e"];
        let mut replies: Vec<Reply> = words.iter().map(|word| call(word)).collect();
        replies.extend([overflow(), Reply::text("a summary"), Reply::text("fine")]);
        let (sim, output) = run(wire, replies, &["-c", "context.keep_recent_messages=2"]);
        output.assert_code(0);
        check_events(&output);
        assert_eq!(output.events_of("compaction").len(), 1, "{wire}\n{output}");
        assert_eq!(sim.count(), 8, "{wire}");
    }
}

/// MSG-3: a paused reply is sent back so that the model continues it.
#[test]
fn a_paused_reply_continues() {
    let paused = Reply::text("So far.").stop(Stop::PauseTurn);
    let (sim, output) = run(Protocol::Anthropic, vec![paused, Reply::text("fine")], &[]);
    output.assert_code(0);
    assert_eq!(sim.count(), 2);
}
