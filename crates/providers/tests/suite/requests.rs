//! Conversations in, request bodies out.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_core::clock::Timestamp;
use windlass_core::message::{
    Binary, Compaction, Compressed, Finish, FinishReason, ImageUrl, Message, Origin, Part, Reasoning, Role,
    ToolCall, ToolResult,
};
use windlass_core::provider::{Prefix, Request, ToolChoice};
use windlass_core::tool::ToolSpec;
use windlass_providers::wire::{Encoder, MaxTokensField, Quirks};
use windlass_providers::{Effort, Wire, registry};

use super::support::{golden, message, request};

pub(crate) fn call(id: &str, name: &str, input: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        name: name.to_owned(),
        input: input.to_owned(),
        finished: true,
    })
}

pub(crate) fn result(id: &str, content: &str, is_error: bool) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.into(),
        name: "grep".to_owned(),
        content: content.to_owned(),
        metadata: Some(json!({"secret": "never sent"})),
        is_error,
        images: Vec::new(),
    })
}

fn encoder(wire: Wire, model: &str, quirks: Quirks, reasoning: Option<Effort>) -> Encoder {
    Encoder::new(wire, "test", registry::lookup(model, &[]), quirks, reasoning)
}

fn body(encoder: &Encoder, request: &Request) -> Value {
    serde_json::from_slice(&encoder.body(request)).unwrap()
}

fn tools() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        schema: schema.clone().into(),
    };
    vec![tool("read_file"), tool("grep")]
}

fn conversation() -> Vec<Arc<Message>> {
    let reasoning = Part::Reasoning(Reasoning {
        text: "hmm".to_owned(),
        signature: Some("sig".to_owned()),
        redacted: None,
    });
    let finish = Part::Finish(Finish {
        reason: FinishReason::ToolUse,
        time: Timestamp(0),
    });
    let summary = Compaction {
        summary: "Earlier.".to_owned(),
        tokens_before: 9,
        tokens_after: 1,
    };
    let compressed = Compressed {
        text: "short".to_owned(),
        reference: "blob".to_owned(),
        tokens_before: 9,
        tokens_after: 1,
    };
    let image = Binary {
        path: "a.png".to_owned(),
        mime: "image/png".to_owned(),
        data: "iVBORw0=".to_owned(),
    };
    let pdf = Binary {
        path: "a.pdf".to_owned(),
        mime: "application/pdf".to_owned(),
        data: "JVBER".to_owned(),
    };
    let url = ImageUrl {
        url: "https://example.com/a.png".to_owned(),
        detail: Some("low".to_owned()),
    };
    let unknown = serde_json::from_str(r#"{"type":"hologram","data":{}}"#).unwrap();
    vec![
        Arc::new(message("m1", Role::User, vec![Part::Compaction(summary)])),
        Arc::new(message(
            "m2",
            Role::User,
            vec![
                Part::text("Look at this."),
                Part::text("  \n"),
                Part::Binary(image),
                Part::ImageUrl(url),
                Part::Binary(pdf),
                unknown,
            ],
        )),
        Arc::new(message(
            "m3",
            Role::Assistant,
            vec![
                reasoning,
                Part::text("I will."),
                call("c1", "read_file", "{\"path\": \"a\"}"),
                call("c2", "grep", "not json"),
                finish,
            ],
        )),
        Arc::new(message(
            "m4",
            Role::Tool,
            vec![result("c1", "", false), result("c2", "no such pattern", true)],
        )),
        Arc::new(message("m5", Role::Assistant, vec![Part::text(" ")])),
        Arc::new(message(
            "m6",
            Role::User,
            vec![Part::Compressed(compressed), Part::text("Go on.")],
        )),
    ]
}

/// PROV-2, PROV-3, PROV-7: every kind of part on every wire, from the history of another provider.
#[test]
fn requests_encode_as_recorded() {
    let mut request = request(conversation());
    request.prefix = Arc::new(Prefix {
        system: "Be brief.".to_owned(),
        tools: tools(),
        ..Prefix::default()
    });
    for (wire, name) in [
        (Wire::Anthropic, "anthropic"),
        (Wire::Chat, "chat"),
        (Wire::Responses, "responses"),
        (Wire::Gemini, "gemini"),
    ] {
        let encoder = encoder(wire, "sim-1", Quirks::default(), None);
        let pretty = serde_json::to_string_pretty(&body(&encoder, &request)).unwrap();
        golden(&format!("request_{name}.json"), &(pretty + "\n"));
    }
}

/// PROV-3: models that read no images get a placeholder.
#[test]
fn images_need_a_model_that_reads_them() {
    for wire in Wire::ALL {
        let text = String::from_utf8(
            encoder(wire, "deepseek-chat", Quirks::default(), None)
                .body(&request(conversation()))
                .to_vec(),
        )
        .unwrap();
        assert!(
            !text.contains("iVBORw0=") && text.contains("[attached file not shown: a.png (image/png)]"),
            "{text}"
        );
        assert!(text.contains("[image not shown: https://example.com/a.png]"));
    }
}

/// MSG-4: items this provider wrote go back byte for byte, reasoning included, and to no other provider.
#[test]
fn own_items_go_back_verbatim() {
    let items = [
        (
            Wire::Anthropic,
            vec![
                r#"{"type":"thinking","thinking":"hm","signature":"sig=="}"#,
                r#"{"type":"redacted_thinking","data":"xx"}"#,
                r#"{"type":"tool_use","id":"toolu_1","name":"grep","input":{"a": 1.0e2}}"#,
            ],
        ),
        (
            Wire::Chat,
            vec![
                r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"grep","arguments":"{\"a\": 1.0e2}"},"extra_content":{"x":1}}]}"#,
            ],
        ),
        (
            Wire::Responses,
            vec![
                r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAA"}"#,
                r#"{"id":"fc_1","type":"function_call","call_id":"toolu_1","name":"grep","arguments":"{\"a\": 1.0e2}"}"#,
            ],
        ),
        (
            Wire::Gemini,
            vec![
                r#"{"text":"hm","thought":true}"#,
                r#"{"functionCall":{"id":"toolu_1","name":"grep","args":{"a": 1.0e2}},"thoughtSignature":"gAA="}"#,
            ],
        ),
    ];
    for (wire, items) in items {
        let parts = vec![
            Part::Reasoning(Reasoning {
                text: "hm".to_owned(),
                ..Reasoning::default()
            }),
            call("toolu_1", "grep", "{\"a\": 1.0e2}"),
        ];
        let mut reply = message("m2", Role::Assistant, parts);
        let raw = items
            .iter()
            .map(|item| RawValue::from_string((*item).to_owned()).unwrap())
            .collect();
        reply.origin = Some(Origin {
            provider: "test".to_owned(),
            wire: wire.name().to_owned(),
            items: raw,
        });
        let user = Arc::new(message("m1", Role::User, vec![Part::text("x")]));
        let answer = Arc::new(message("m3", Role::Tool, vec![result("toolu_1", "y", false)]));
        let request = request(vec![user, Arc::new(reply), answer]);
        let own = String::from_utf8(
            encoder(wire, "sim-1", Quirks::default(), None)
                .body(&request)
                .to_vec(),
        )
        .unwrap();
        assert!(own.contains(&items.join(",")), "{own}");
        let other = Encoder::new(
            wire,
            "other",
            registry::lookup("sim-1", &[]),
            Quirks::default(),
            None,
        );
        let other = String::from_utf8(other.body(&request).to_vec()).unwrap();
        assert!(
            !other.contains("hm") && !other.contains("gAA") && other.contains("toolu_1"),
            "{other}"
        );
    }
}

/// MSG-4: a message changed since it arrived is encoded from its parts, not from the provider's items.
#[test]
fn changed_messages_are_what_their_parts_say() {
    let mut reply = message("m2", Role::Assistant, vec![Part::text("kept")]);
    let item = r#"{"type":"tool_use","id":"toolu_1","name":"grep","input":{}}"#;
    let items = vec![RawValue::from_string(item.to_owned()).unwrap()];
    reply.origin = Some(Origin {
        provider: "test".to_owned(),
        wire: Wire::Anthropic.name().to_owned(),
        items,
    });
    let user = Arc::new(message("m1", Role::User, vec![Part::text("x")]));
    let body = encoder(Wire::Anthropic, "sim-1", Quirks::default(), None)
        .body(&request(vec![user, Arc::new(reply)]));
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.contains("kept") && !text.contains("toolu_1"), "{text}");
}

/// PROV-2: a reply truncated while thinking goes back without the thinking at its end, or not at all.
#[test]
fn replies_do_not_end_in_thinking() {
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#;
    let text = r#"{"type":"text","text":"hi"}"#;
    for (items, expected) in [(vec![thinking], 1), (vec![thinking, text, thinking], 2)] {
        let mut reply = message("m2", Role::Assistant, vec![Part::text("hi")]);
        let raw = items
            .iter()
            .map(|item| RawValue::from_string((*item).to_owned()).unwrap())
            .collect();
        reply.origin = Some(Origin {
            provider: "test".to_owned(),
            wire: Wire::Anthropic.name().to_owned(),
            items: raw,
        });
        let user = Arc::new(message("m1", Role::User, vec![Part::text("x")]));
        let encoder = encoder(Wire::Anthropic, "sim-1", Quirks::default(), None);
        let body = body(&encoder, &request(vec![user, Arc::new(reply)]));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), expected);
        if expected == 2 {
            assert_eq!(messages[1]["content"].as_array().unwrap().len(), 2);
        }
    }
}

/// PROV-3: reasoning the provider would refuse is not sent: without encrypted content, or with nothing after
/// it.
#[test]
fn unusable_reasoning_items_are_left_out() {
    let items = [
        r#"{"id":"rs_1","type":"reasoning","summary":[]}"#,
        r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#,
        r#"{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gAA"}"#,
    ];
    let mut reply = message("m2", Role::Assistant, vec![Part::text("hi")]);
    let raw = items
        .iter()
        .map(|item| RawValue::from_string((*item).to_owned()).unwrap())
        .collect();
    reply.origin = Some(Origin {
        provider: "test".to_owned(),
        wire: Wire::Responses.name().to_owned(),
        items: raw,
    });
    let user = Arc::new(message("m1", Role::User, vec![Part::text("x")]));
    let body = body(
        &encoder(Wire::Responses, "sim-1", Quirks::default(), None),
        &request(vec![user, Arc::new(reply)]),
    );
    assert_eq!(body["input"].as_array().unwrap().len(), 2);
    assert_eq!(body["input"][1]["id"], "msg_1");
}

/// PROV-4: a server that takes only words as the tool choice is offered only the tool that has to be called.
#[test]
fn a_forced_tool_is_the_only_one_where_it_cannot_be_named() {
    let mut asked = request(vec![Arc::new(message("m1", Role::User, vec![Part::text("x")]))]);
    asked.prefix = Arc::new(Prefix {
        tools: tools(),
        ..Prefix::default()
    });
    let quirks = windlass_providers::preset::preset("llama.cpp").unwrap().quirks;
    let chat = encoder(Wire::Chat, "default", quirks, None);
    let free = body(&chat, &asked);
    assert!(free.get("tool_choice").is_none() && free["tools"].as_array().unwrap().len() > 1);
    asked.tool_choice = ToolChoice::Tool("grep".to_owned());
    let forced = body(&chat, &asked);
    assert_eq!(forced["tool_choice"], "required");
    assert_eq!(forced["tools"].as_array().unwrap().len(), 1);
    assert_eq!(forced["tools"][0]["function"]["name"], "grep");
}

/// PROV-2, PROV-3: limits, reasoning and tool choice in each wire's own terms; no tool fields without tools.
#[test]
fn heads_say_what_was_asked() {
    let mut asked = request(vec![Arc::new(message("m1", Role::User, vec![Part::text("x")]))]);
    asked.max_output = Some(5000);
    asked.tool_choice = ToolChoice::Tool("grep".to_owned());
    let openai = Quirks {
        max_tokens: MaxTokensField::MaxCompletionTokens,
        cache_key: true,
        ..Quirks::default()
    };
    let chat = encoder(Wire::Chat, "sim-1", openai, Some(Effort::High));
    let without = body(&chat, &asked);
    assert!(without.get("tool_choice").is_none() && without.get("tools").is_none());
    asked.prefix = Arc::new(Prefix {
        tools: tools(),
        ..Prefix::default()
    });
    let with = body(&chat, &asked);
    assert_eq!(
        with["tool_choice"],
        json!({"type": "function", "function": {"name": "grep"}})
    );
    assert_eq!(
        (
            &with["max_completion_tokens"],
            &with["reasoning_effort"],
            &with["prompt_cache_key"]
        ),
        (&json!(5000), &json!("high"), &json!("session-1"))
    );
    let plain = body(
        &encoder(
            Wire::Chat,
            "sim-1",
            Quirks {
                no_stream_options: true,
                ..Quirks::default()
            },
            None,
        ),
        &asked,
    );
    assert_eq!(plain["max_tokens"], 5000);
    assert!(plain.get("stream_options").is_none() && plain.get("prompt_cache_key").is_none());

    let responses = body(
        &encoder(Wire::Responses, "sim-1", Quirks::default(), Some(Effort::Low)),
        &asked,
    );
    assert_eq!(
        responses["reasoning"],
        json!({"effort": "low", "summary": "auto"})
    );
    assert_eq!(
        (&responses["store"], &responses["max_output_tokens"]),
        (&json!(false), &json!(5000))
    );
    assert_eq!(responses["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(
        responses["tool_choice"],
        json!({"type": "function", "name": "grep"})
    );

    let anthropic = encoder(Wire::Anthropic, "sim-1", Quirks::default(), Some(Effort::High));
    let forced = body(&anthropic, &asked);
    assert!(
        forced.get("thinking").is_none(),
        "the API refuses thinking with a forced tool"
    );
    asked.tool_choice = ToolChoice::Auto;
    let free = body(&anthropic, &asked);
    assert_eq!(
        (&free["max_tokens"], &free["thinking"]["budget_tokens"]),
        (&json!(5000), &json!(3976))
    );
    asked.max_output = None;
    assert_eq!(body(&anthropic, &asked)["max_tokens"], 32_000);
}

/// TOOL-2, PROV-3: an image from a tool goes with its result, in each wire's own form; in a failed result, or
/// for a model that reads no images, its name replaces it.
#[test]
fn images_of_results_go_along() {
    let shown = |is_error: bool| {
        let Part::ToolResult(mut answer) = result("c1", "a.png is a PNG image", is_error) else {
            unreachable!("a result")
        };
        let image = |path: &str, data: &str| Binary {
            path: path.to_owned(),
            mime: "image/png".to_owned(),
            data: data.to_owned(),
        };
        answer.images = vec![image("a.png", "iVBORw0="), image("broken.png", "?")];
        let messages = vec![
            message("m1", Role::User, vec![Part::text("x")]),
            message("m2", Role::Assistant, vec![call("c1", "grep", "{}")]),
            message("m3", Role::Tool, vec![Part::ToolResult(answer)]),
        ];
        request(messages.into_iter().map(Arc::new).collect())
    };
    let text = "a.png is a PNG image\n[image not shown: broken.png (image/png)]";
    let url = "data:image/png;base64,iVBORw0=";
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0="});
    let cases = [
        (
            Wire::Anthropic,
            "/messages/2/content/0/content",
            json!([{"type": "text", "text": text}, {"type": "image", "source": source}]),
        ),
        (Wire::Chat, "/messages/3/content", json!(text)),
        (
            Wire::Chat,
            "/messages/4/content",
            json!([
                {"type": "text", "text": "[image from grep: a.png]"},
                {"type": "image_url", "image_url": {"url": url}},
            ]),
        ),
        (
            Wire::Responses,
            "/input/2/output",
            json!([
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": url, "detail": "auto"},
            ]),
        ),
    ];
    for (wire, place, expected) in cases {
        let sees = body(&encoder(wire, "sim-1", Quirks::default(), None), &shown(false));
        assert_eq!(sees.pointer(place), Some(&expected), "{wire} {sees}");
        let failed = body(&encoder(wire, "sim-1", Quirks::default(), None), &shown(true));
        let blind = body(
            &encoder(wire, "deepseek-chat", Quirks::default(), None),
            &shown(false),
        );
        for body in [failed, blind] {
            let body = body.to_string();
            assert!(!body.contains("iVBORw0="), "{wire} {body}");
            assert!(
                body.contains("[image not shown: a.png (image/png)]"),
                "{wire} {body}"
            );
        }
    }
}
