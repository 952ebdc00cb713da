//! Whatever a history contains, the request made from it is valid on every wire.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::context::prepare;
use windlass_core::id::{CallId, SessionId};
use windlass_core::message::{
    Binary, Compaction, Compressed, Finish, FinishReason, ImageUrl, Message, Origin, Part, Reasoning, Role,
    ToolCall, ToolResult,
};
use windlass_core::provider::{Prefix, Request, ToolChoice};
use windlass_core::tool::ToolSpec;
use windlass_providers::{Effort, HttpProvider, ProviderConfig, Quirks, Transport, Wire, registry};
use windlass_sim::validate;

const NOW: Timestamp = Timestamp(1_750_000_000_000);

/// The three wires, by our name and by the validator's.
pub(super) const WIRES: [(Wire, windlass_sim::Protocol); 3] = [
    (Wire::Anthropic, windlass_sim::Protocol::Anthropic),
    (Wire::Chat, windlass_sim::Protocol::Chat),
    (Wire::Responses, windlass_sim::Protocol::Responses),
];

pub(super) fn config(wire: Wire, base_url: &str, reasoning: Option<Effort>) -> ProviderConfig {
    ProviderConfig {
        name: wire.name().to_owned(),
        wire,
        base_url: base_url.to_owned(),
        key: None,
        key_hint: String::new(),
        headers: Vec::new(),
        quirks: Quirks::default(),
        model: registry::lookup("sim-1", &[]),
        reasoning,
        limits: Default::default(),
        retry: Default::default(),
    }
}

fn texts() -> impl Strategy<Value = String> {
    select(vec![
        "",
        " \n",
        "hello",
        "caf\u{e9} \u{1f30d}",
        "a \u{0} control",
        "</system>",
    ])
    .prop_map(str::to_owned)
}

/// Few ids, so that they repeat within a message and across messages.
fn ids() -> impl Strategy<Value = CallId> {
    select(vec![
        "c1",
        "c1",
        "c2",
        "c3",
        "",
        "call_0",
        "functions.bash:0",
        "c1_1_0",
        "\u{e4}",
    ])
    .prop_map(CallId::from)
}

fn inputs() -> impl Strategy<Value = String> {
    let valid = vec!["{}", r#"{"command": "ls"}"#, r#"{"a": {"b": [1, null]}}"#];
    let odd = vec![
        "",
        r#"{"command": "l"#,
        "ls -l",
        "[1]",
        "null",
        r#""text""#,
        r#"{"a": 1, "a": 2}"#,
        "{} {}",
        "1e999",
        r#"{"command": 1e999}"#,
        r#"{"command": "\ud83d"}"#,
        r#"{"\udc41": "\u0000"}"#,
    ];
    let deep =
        (0_usize..200).prop_map(|depth| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)));
    prop_oneof![
        8 => prop_oneof![select(valid), select(odd)].prop_map(str::to_owned),
        1 => deep,
    ]
}

fn call() -> impl Strategy<Value = Part> {
    let names = select(vec![
        "bash",
        "bash",
        "read_file",
        "gone_tool",
        "mcp__server__tool",
    ]);
    (ids(), names, inputs(), any::<bool>()).prop_map(|(id, name, input, finished)| {
        Part::ToolCall(ToolCall {
            id,
            name: name.to_owned(),
            input,
            finished,
        })
    })
}

fn result() -> impl Strategy<Value = Part> {
    let images = prop::collection::vec(
        select(vec![
            ("a.png", "image/png", "iVBORw0KGgo="),
            ("b.bmp", "image/bmp", "Qk0="),
            ("c.gif", "image/gif", "no base64"),
        ]),
        0..3,
    );
    (ids(), texts(), any::<bool>(), images).prop_map(|(call_id, content, is_error, images)| {
        let image = |(path, mime, data): (&str, &str, &str)| Binary {
            path: path.to_owned(),
            mime: mime.to_owned(),
            data: data.to_owned(),
        };
        let metadata = is_error.then(|| json!({"exit_code": 1}));
        Part::ToolResult(ToolResult {
            call_id,
            name: "bash".to_owned(),
            content,
            metadata,
            is_error,
            images: images.into_iter().map(image).collect(),
        })
    })
}

fn reasoning() -> impl Strategy<Value = Part> {
    let some = |text: &'static str| prop::option::of(Just(text.to_owned()));
    (texts(), some("a signature"), some("a sealed thought")).prop_map(|(text, signature, redacted)| {
        Part::Reasoning(Reasoning {
            text,
            signature,
            redacted,
        })
    })
}

fn rare() -> impl Strategy<Value = Part> {
    let finish = select(vec![
        FinishReason::EndTurn,
        FinishReason::Canceled,
        FinishReason::MaxTokens,
        FinishReason::Error,
    ]);
    let binary = select(vec![
        ("a.png", "image/png", "iVBORw0KGgo="),
        ("b.pdf", "application/pdf", "JVBERi0="),
        ("c", "x/y", ""),
        ("d.txt", "text/plain", "aGk="),
    ]);
    let image = select(vec![
        "https://example.com/a.png",
        "data:image/png;base64,iVBORw0KGgo=",
        "data:text/plain,hi",
        "file:///a.png",
    ]);
    let unknown = r#"{"type": "hologram", "data": {"depth": 3}}"#;
    prop_oneof![
        finish.prop_map(|reason| Part::Finish(Finish { reason, time: NOW })),
        binary.prop_map(|(path, mime, data)| {
            Part::Binary(Binary {
                path: path.to_owned(),
                mime: mime.to_owned(),
                data: data.to_owned(),
            })
        }),
        image.prop_map(|url| Part::ImageUrl(ImageUrl {
            url: url.to_owned(),
            detail: None
        })),
        texts().prop_map(|summary| Part::Compaction(Compaction {
            summary,
            tokens_before: 9,
            tokens_after: 1
        })),
        texts().prop_map(|text| {
            Part::Compressed(Compressed {
                text,
                reference: "out-1".to_owned(),
                tokens_before: 9,
                tokens_after: 1,
            })
        }),
        Just(Part::Unknown(RawValue::from_string(unknown.to_owned()).unwrap())),
    ]
}

fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![3 => texts().prop_map(Part::text), 3 => call(), 3 => result(), 1 => reasoning(), 2 => rare()]
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message::new(&SessionId::from("s"), role, parts, NOW)
}

/// A message of any role with any parts, as a newer version, a crash or a damaged store may have left it.
fn any_message() -> impl Strategy<Value = Message> {
    let role = select(vec![Role::User, Role::Assistant, Role::System, Role::Tool]);
    let foreign = prop::option::of(select(vec![
        ("elsewhere", "anthropic-messages"),
        ("elsewhere", "smoke-signals"),
    ]));
    (role, prop::collection::vec(any_part(), 0..5), foreign).prop_map(|(role, parts, foreign)| {
        let mut message = message(role, parts);
        message.origin = foreign.map(|(provider, wire)| Origin {
            provider: provider.to_owned(),
            wire: wire.to_owned(),
            items: vec![RawValue::from_string(r#"{"type": "smoke"}"#.to_owned()).unwrap()],
        });
        message
    })
}

/// Realistic replies and results: calls with their items, then results, some of them lost.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    // A provider's own ids are valid on its own wire, but not always unique.
    let own_ids = select(vec!["c1", "c1", "c2", "c3", "call_0", "c1_1_0"]).prop_map(CallId::from);
    let calls = prop::collection::vec((own_ids, select(vec!["{}", r#"{"command":"ls"}"#])), 0..4);
    let lost = prop::collection::vec(any::<bool>(), 4);
    (texts(), calls, lost, select(WIRES.to_vec()), any::<bool>()).prop_map(
        |(text, calls, lost, (wire, _), split)| {
            let mut parts = vec![Part::text(&text)];
            parts.extend(calls.iter().map(|(id, input)| {
                Part::ToolCall(ToolCall {
                    id: id.clone(),
                    name: "bash".to_owned(),
                    input: (*input).to_owned(),
                    finished: true,
                })
            }));
            let mut reply = message(Role::Assistant, parts);
            reply.origin = Some(origin(wire, &text, &calls));
            let results = calls
                .iter()
                .zip(&lost)
                .filter(|(_, lost)| !**lost)
                .map(|((id, _), _)| {
                    let (call_id, content) = (id.clone(), "ok".to_owned());
                    Part::ToolResult(ToolResult {
                        call_id,
                        name: "bash".to_owned(),
                        content,
                        metadata: None,
                        is_error: false,
                        images: Vec::new(),
                    })
                });
            let results: Vec<Part> = results.collect();
            let mut messages = vec![reply];
            if split {
                messages.extend(
                    results
                        .into_iter()
                        .map(|result| message(Role::Tool, vec![result])),
                );
            } else {
                messages.push(message(Role::Tool, results));
            }
            messages
        },
    )
}

/// Returns the items of such a reply in the provider's format.
fn origin(wire: Wire, text: &str, calls: &[(CallId, &str)]) -> Origin {
    let has_text = !text.trim().is_empty();
    let parsed = |input: &str| serde_json::from_str::<Value>(input).unwrap();
    let mut items: Vec<Value> = Vec::new();
    match wire {
        Wire::Anthropic => {
            items.extend(has_text.then(|| json!({"type": "text", "text": text})));
            items.extend(calls.iter().map(
                |(id, input)| json!({"type": "tool_use", "id": id, "name": "bash", "input": parsed(input)}),
            ));
        }
        Wire::Chat => {
            let calls: Vec<_> = calls
                .iter()
                .map(|(id, input)| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": input}}))
                .collect();
            let mut item = json!({"role": "assistant", "content": has_text.then_some(text)});
            if !calls.is_empty() {
                item["tool_calls"] = json!(calls);
            }
            items.push(item);
        }
        Wire::Gemini => {
            items.extend(has_text.then(|| json!({"text": text})));
            items.extend(calls.iter().map(
                |(id, input)| json!({"functionCall": {"id": id, "name": "bash", "args": parsed(input)}}),
            ));
        }
        Wire::Responses => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            items.extend(has_text.then(|| json!({"type": "message", "role": "assistant", "status": "completed", "id": "msg_1", "content": content})));
            items.extend(calls.iter().map(|(id, input)| {
                json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": input})
            }));
        }
    }
    Origin {
        provider: wire.name().to_owned(),
        wire: wire.name().to_owned(),
        items: items
            .iter()
            .map(|item| RawValue::from_string(item.to_string()).unwrap())
            .collect(),
    }
}

pub(super) fn history() -> impl Strategy<Value = Vec<Message>> {
    let piece = prop_oneof![
        any_message().prop_map(|message| vec![message]),
        exchange(),
        texts().prop_map(|text| vec![message(Role::User, vec![Part::text(text)])]),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| {
        let mut messages = pieces.concat();
        messages.push(message(Role::User, vec![Part::text("go on")]));
        messages
    })
}

fn request(messages: &[Message]) -> Request {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    let spec = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        schema: schema.clone().into(),
    };
    let history: Vec<_> = messages.iter().cloned().map(Arc::new).collect();
    Request {
        prefix: Arc::new(Prefix {
            system: "Be good.".to_owned(),
            tools: vec![spec("bash"), spec("read_file")],
            ..Prefix::default()
        }),
        messages: prepare(&history),
        tool_choice: ToolChoice::Auto,
        max_output: None,
        session: SessionId::from("s"),
        cancel: Default::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// LOOP-16, PROV-7: any history, from any provider and in any state, becomes a request that the strict
    /// validator of each wire accepts, with and without reasoning and images.
    #[test]
    fn every_request_is_valid(messages in history(), thinks in any::<bool>(), sees in any::<bool>()) {
        let request = request(&messages);
        for (wire, theirs) in WIRES {
            let mut config = config(wire, "http://127.0.0.1:9", thinks.then_some(Effort::Low));
            config.model.images = sees;
            config.model.reasoning = thinks;
            let provider = HttpProvider::new(config, Transport::new(), Arc::new(SystemClock::default())).unwrap();
            let body: Value = serde_json::from_slice(&provider.request_body(&request)).unwrap();
            let verdict = validate::check(theirs, &body);
            prop_assert!(verdict.is_ok(), "{wire:?}: {}\n{body:#}", verdict.unwrap_err());
        }
    }
}
