//! Content that parsers refuse or change: stored as it came, sent in a form that every provider accepts.

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Output, WIRES, Workspace};

use super::support::with_replies;

/// Returns lists nested this deep.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Arguments that a model may write, and no parser or only some can read.
fn odd_arguments() -> Vec<String> {
    let mut all: Vec<String> = [
        r#"{"path":"notes\udc41.txt"}"#,
        r#"{"path":"\ud83d"}"#,
        r#"{"\ud83d":"a.txt"}"#,
        r#"{"path":"a.txt","limit":1e400}"#,
        r#"{"path":"a.txt","limit":-1E+999}"#,
        r#"{"path":"a.txt","path":"b.txt"}"#,
        r#"{ "path" : "\u0061.txt" , "limit" : 1.10 }"#,
        r#"{"path":"a\u0000b"}"#,
        r#"{"limit":123456789012345678901234567890,"path":"a.txt"}"#,
        r#"["a.txt"]"#,
        "\"a.txt\"",
        "{\"path\":\"a.txt\"} {\"path\":\"b.txt\"}",
        "{\"path\":\"a\u{1}\u{202e}.txt",
    ]
    .map(str::to_owned)
    .into();
    for depth in [100, 109, 110, 111, 125, 126, 127, 128, 150, 20_000] {
        all.push(format!("{{\"path\":{}}}", nested(depth)));
    }
    all.push(format!("{{\"path\":\"{}\"}}", "x".repeat(300_000)));
    all
}

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    let output = workspace.run(args).output();
    output.assert_code(0);
    output
}

/// Returns the id of the session that changed last.
fn latest(workspace: &Workspace) -> String {
    let listed = run(workspace, &["sessions", "list", "--json"]).json();
    listed[0]["id"].as_str().unwrap().to_owned()
}

fn exported(workspace: &Workspace, id: &str) -> String {
    run(
        workspace,
        &["sessions", "export", "--secrets", "--format", "json", id],
    )
    .stdout
}

/// Returns the entries of an export as text.
fn entries(export: &str) -> &str {
    export.split_once("\"entries\": [").unwrap().1
}

/// MSG-2, MSG-7: whatever a model writes as arguments, the session can be resumed, forked, exported and
/// imported, every request is valid, and the arguments come back as they were written.
#[test]
fn no_argument_costs_the_session() {
    for wire in WIRES {
        let odd = odd_arguments();
        let calls = odd.iter().map(|raw| Reply::raw_call("read_file", raw));
        let replies = calls.chain([Reply::text("fine").forever()]);
        let (sim, workspace) = with_replies(wire, replies);
        run(&workspace, &["exec", "go"]);
        let id = latest(&workspace);
        run(&workspace, &["exec", "--continue", "again"]);
        run(&workspace, &["exec", "--continue", "--fork", "elsewhere"]);
        let export = exported(&workspace, &id);
        let record: Value = serde_json::from_str(&export).unwrap();
        let parts = record["entries"].as_array().unwrap().iter();
        let inputs: Vec<&str> = parts
            .filter_map(|entry| entry["message"]["parts"].as_array())
            .flatten()
            .filter(|part| part["type"] == "tool_call")
            .filter_map(|part| part["data"]["input"].as_str())
            .collect();
        assert_eq!(inputs, odd, "{wire}");
        run(&workspace, &["sessions", "export", "--format", "markdown", &id]);
        run(&workspace, &["sessions", "delete", "--yes", &id]);
        let file = workspace.write("past.json", &export).display().to_string();
        assert_eq!(run(&workspace, &["sessions", "import", &file]).stdout.trim(), id);
        assert!(entries(&exported(&workspace, &id)) == entries(&export), "{wire}");
        run(&workspace, &["exec", "--resume", &id, "and again"]);
        run(&workspace, &["db", "check"]);
        sim.assert_valid();
    }
}

/// Returns a reply with an item that this version does not read.
fn odd_reply(wire: Protocol, item: &str) -> (String, &'static str) {
    let sse = "text/event-stream";
    match wire {
        Protocol::Anthropic => {
            let events = [
                r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"sim-1","content":[]}}"#.to_owned(),
                format!(r#"{{"type":"content_block_start","index":0,"content_block":{item}}}"#),
                r#"{"type":"content_block_stop","index":0}"#.to_owned(),
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"said"}}"#.to_owned(),
                r#"{"type":"content_block_stop","index":1}"#.to_owned(),
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#.to_owned(),
                r#"{"type":"message_stop"}"#.to_owned(),
            ];
            (events.map(|event| format!("data: {event}\n\n")).concat(), sse)
        }
        _ => (
            format!(r#"{{"id":"r","status":"completed","model":"sim-1","output":[{item}]}}"#),
            "application/json",
        ),
    }
}

/// MSG-4, MSG-7: items of a provider keep every byte through a restart, a fork, an export and an import, and
/// go back repaired only where no parser could read them.
#[test]
fn items_of_a_provider_keep_their_form() {
    let values = [
        (r#"{"a": 1.10, "b" : 12345678901234567890123, "c":1E5 }"#, None),
        (r#""caf\u00e9 \/ \ud83d\ude00 \u0000""#, None),
        (r#"{"a":1,"a":2}"#, None),
        (r#""\ud83d""#, Some(r#""\ufffd""#)),
        ("1e400", Some("1.7976931348623157e308")),
        (&nested(500), Some("[[[")),
    ];
    for wire in [Protocol::Anthropic, Protocol::Responses] {
        for (value, sent) in values {
            let item = match wire {
                Protocol::Anthropic => format!(r#"{{"type":"web_search_tool_result",  "content":{value}}}"#),
                _ => format!(
                    r#"{{"type":"message","role":"assistant",  "content":[{{"type":"output_text","text":"said","annotations":[{value}]}}]}}"#
                ),
            };
            let (body, form) = odd_reply(wire, &item);
            let odd = Fault::status(200).body(&body).header("content-type", form);
            let replies = [Reply::text("").fault(odd), Reply::text("fine").forever()];
            let (sim, workspace) = with_replies(wire, replies);
            run(&workspace, &["exec", "go"]);
            let id = latest(&workspace);
            let export = exported(&workspace, &id);
            assert!(export.contains(&item), "{wire} {value}\n{export}");
            run(&workspace, &["exec", "--continue", "--fork", "elsewhere"]);
            assert!(
                exported(&workspace, &latest(&workspace)).contains(&item),
                "{wire} {value}"
            );
            run(&workspace, &["sessions", "delete", "--yes", &id]);
            let file = workspace.write("past.json", &export).display().to_string();
            run(&workspace, &["sessions", "import", &file]);
            assert_eq!(entries(&exported(&workspace, &id)), entries(&export), "{wire}");
            run(&workspace, &["exec", "--resume", &id, "again"]);
            let request = String::from_utf8(sim.requests().pop().unwrap().raw.to_vec()).unwrap();
            let expected = item.replace(value, sent.unwrap_or(value));
            let expected = expected.trim_end_matches(['}', ']']);
            assert!(
                request.contains(expected),
                "{wire}: {expected} is not in\n{request}"
            );
            run(&workspace, &["db", "check"]);
        }
    }
}

/// PROV-6, MSG-7, OBS-2: a field of another form than its wire says costs neither the text nor the call beside it, and the reply
/// is not asked for again. The session can be replayed.
#[test]
fn fields_in_odd_forms_do_not_cost_the_reply() {
    let item = |item: &str| {
        format!(
            r#"{{"id":"r","status":"completed","model":"sim-1","output":[{item}],"usage":{{"input_tokens":1}}}}"#
        )
    };
    let delta = |delta: &str, end: &str| {
        let first = format!(r#"{{"id":"c","model":5,"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        let last = format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{{}},"finish_reason":"{end}"}}]}}"#);
        format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n")
    };
    let call = |index: &str| {
        let function = r#"{"name":"read_file","arguments":{"path":"a.txt"}}"#;
        format!(r#"{{"tool_calls":[{{"index":{index},"id":"c1","type":"function","function":{function}}}]}}"#)
    };
    let (json, sse) = ("application/json", "text/event-stream");
    let (chat, responses) = (Protocol::Chat, Protocol::Responses);
    let cases = [
        (
            responses,
            json,
            item(
                r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"read_file","arguments":{"path":"a.txt"}}"#,
            ),
        ),
        (
            responses,
            json,
            item(
                r#"{"type":"message","role":"assistant","content":[5,null,{"type":"output_text","text":"said","annotations":[]}]}"#,
            ),
        ),
        (
            responses,
            json,
            item(r#"{"type":"message","role":"assistant","content":"said"}"#),
        ),
        (chat, sse, delta(&call("\"0\""), "tool_calls")),
        (chat, sse, delta(&call("0").replace("c1", ""), "tool_calls")),
        (chat, sse, delta(&call("-1"), "tool_calls")),
        (
            chat,
            sse,
            delta(
                r#"{"content":"said","reasoning_details":"x","refusal":{}}"#,
                "stop",
            ),
        ),
    ];
    for (wire, form, body) in cases {
        let odd = Fault::status(200).body(&body).header("content-type", form);
        let replies = [Reply::text("").fault(odd), Reply::text("fine").forever()];
        let (sim, workspace) = with_replies(wire, replies);
        workspace.write("a.txt", "hello from the file");
        let output = run(&workspace, &["exec", "go"]);
        if body.contains("read_file") {
            assert_eq!(sim.count(), 2, "{body}\n{output}");
            assert!(sim.outlines()[1].contains("hello from the file"), "{body}");
        } else {
            assert_eq!(
                (sim.count(), output.stdout.trim()),
                (1, "said"),
                "{body}\n{output}"
            );
        }
        run(&workspace, &["exec", "--continue", "again"]);
        run(&workspace, &["replay", &latest(&workspace)]);
        run(&workspace, &["db", "check"]);
    }
}

/// MSG-2, MSG-7: parts of a newer version come back byte for byte.
#[test]
fn unknown_parts_keep_their_form() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    run(&workspace, &["exec", "go"]);
    let id = latest(&workspace);
    let export = exported(&workspace, &id);
    let part = format!(
        r#"{{ "type":"hologram","data": {{"x":1.10,"y":[1e400,"\udc41",{}]}} }}"#,
        nested(200)
    );
    let known = json!({"type": "text", "data": {"text": "fine"}});
    let pretty = serde_json::to_string_pretty(&known).unwrap();
    let indented = pretty.replace('\n', "\n          ");
    assert!(export.contains(&indented), "{export}");
    let changed = export.replace(&indented, &format!("{indented}, {part}"));
    run(&workspace, &["sessions", "delete", "--yes", &id]);
    let file = workspace.write("past.json", &changed).display().to_string();
    run(&workspace, &["sessions", "import", &file]);
    run(&workspace, &["exec", "--resume", &id, "again"]);
    run(&workspace, &["exec", "--resume", &id, "--fork", "elsewhere"]);
    assert!(exported(&workspace, &id).contains(&part));
    assert!(exported(&workspace, &latest(&workspace)).contains(&part));
    run(&workspace, &["db", "check"]);
    sim.assert_valid();
}

/// MSG-2: bytes of a command that are not text do not harm the session.
#[test]
fn no_output_costs_the_session() {
    let command = r"printf 'a\0b\377\355\240\200c\033[31m'";
    let replies = [
        Reply::call("bash", json!({ "command": command })),
        Reply::text("fine").forever(),
    ];
    let (sim, workspace) = with_replies(Protocol::Chat, replies);
    run(&workspace, &["exec", "go"]);
    run(&workspace, &["exec", "--continue", "again"]);
    let id = latest(&workspace);
    let export = exported(&workspace, &id);
    let file = workspace.write("past.json", &export).display().to_string();
    let imported = run(&workspace, &["sessions", "import", &file]);
    let copy = imported.stdout.trim();
    let again = exported(&workspace, copy).replace(copy, &id);
    assert_eq!(entries(&again), entries(&export));
    run(&workspace, &["db", "check"]);
    sim.assert_valid();
}

/// SES-14: a session whose id is not a UUID is refused: ids are printed, and shown in commands to copy.
#[test]
fn an_id_that_is_not_a_uuid_is_refused() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    run(&workspace, &["exec", "go"]);
    let id = latest(&workspace);
    let export = exported(&workspace, &id);
    for odd in [
        r"\u001b[31mred\u0007",
        "x; touch made",
        "$(touch made)",
        "../../etc",
        "",
        &id.to_uppercase(),
        &format!("{{{id}}}"),
        &id.replace('-', ""),
    ] {
        let file = workspace.write("past.json", &export.replace(&id, odd));
        let output = workspace
            .run(&["sessions", "import", &file.display().to_string()])
            .output();
        output.assert_code(1).assert_says("not a UUID");
        assert_eq!(output.stdout, "");
        assert!(!output.stderr.contains('\u{1b}'), "{output}");
    }
    assert_eq!(latest(&workspace), id);
}
