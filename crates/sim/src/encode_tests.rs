#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::{Value, json};

use super::{Context, Frame};
use crate::answer::{Answer, AnswerCall, Stop, Thinking};
use crate::fault::{Deviation, Fault};
use crate::usage::Usage;
use crate::wire::Protocol;

fn answer() -> Answer {
    let call = |tool: &str, arguments: &str| AnswerCall {
        id: Some(format!("id_{tool}")),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
    };
    Answer {
        thinking: vec![Thinking {
            text: "hm".to_owned(),
            redacted: false,
        }],
        text: Some("hello".to_owned()),
        calls: vec![call("a", r#"{"x":1}"#), call("b", "{\"broken")],
        ..Answer::default()
    }
}

fn frames(wire: Protocol, body: &Value, answer: &Answer) -> Vec<Frame> {
    let context = Context {
        wire,
        model: "m".to_owned(),
        usage: Usage::default(),
        body,
    };
    context.frames(answer)
}

fn events(wire: Protocol, answer: &Answer) -> Vec<&'static str> {
    frames(wire, &json!({}), answer)
        .iter()
        .map(|frame| frame.event.unwrap())
        .collect()
}

fn chunks(body: &Value, answer: &Answer) -> Vec<Value> {
    frames(Protocol::Chat, body, answer)
        .iter()
        .filter_map(|frame| serde_json::from_str(&frame.data).ok())
        .collect()
}

/// PROV-2: the complete sequence of events.
#[test]
fn anthropic_events_come_in_order() {
    let start = "content_block_start";
    let delta = "content_block_delta";
    let stop = "content_block_stop";
    let expected = [
        "message_start",
        start,
        "ping",
        delta,
        delta,
        stop,
        start,
        delta,
        stop,
        start,
        delta,
        delta,
        stop,
        start,
        delta,
        delta,
        stop,
        "message_delta",
        "message_stop",
    ];
    assert_eq!(events(Protocol::Anthropic, &answer()), expected);
}

/// PROV-3: the complete sequence of events, numbered without gaps.
#[test]
fn responses_events_come_in_order() {
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(events(Protocol::Responses, &answer()), expected);
    for (index, frame) in frames(Protocol::Responses, &json!({}), &answer())
        .iter()
        .enumerate()
    {
        let data: Value = serde_json::from_str(&frame.data).unwrap();
        assert_eq!(data["sequence_number"], json!(index));
        assert_eq!(data["type"].as_str(), frame.event);
    }
}

/// PROV-3: refusals and limits have events of their own.
#[test]
fn responses_end_in_other_ways() {
    let refusal = Answer {
        stop: Some(Stop::Refusal),
        ..Answer::text("no")
    };
    assert!(events(Protocol::Responses, &refusal).contains(&"response.refusal.delta"));
    let cut = Answer {
        stop: Some(Stop::MaxTokens),
        ..Answer::text("and th")
    };
    assert_eq!(
        events(Protocol::Responses, &cut).last(),
        Some(&"response.incomplete")
    );
}

/// PROV-3: role first, then text, calls by index, the reason, usage if requested, and the end mark.
#[test]
fn chat_chunks_come_in_order() {
    let body = json!({"stream_options": {"include_usage": true}});
    let chunks = chunks(&body, &answer());
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunks[1]["choices"][0]["delta"]["reasoning_content"], "hm");
    assert_eq!(chunks[2]["choices"][0]["delta"]["content"], "hello");
    let indexes: Vec<_> = chunks[3..7]
        .iter()
        .map(|chunk| {
            chunk["choices"][0]["delta"]["tool_calls"][0]["index"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(indexes, [0, 0, 1, 1]);
    assert_eq!(chunks[7]["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(chunks[8]["choices"], json!([]));
    assert!(chunks[8]["usage"]["prompt_tokens"].is_u64());
    let last = frames(Protocol::Chat, &body, &answer()).pop().unwrap();
    assert_eq!(last.data, "[DONE]");
}

/// PROV-4: the known deviations of compatible servers.
#[test]
fn chat_deviates_on_demand() {
    let with = |deviation| {
        let answer = Answer {
            fault: Fault::new().deviation(deviation),
            ..answer()
        };
        let body = json!({"stream_options": {"include_usage": true}});
        (chunks(&body, &answer), frames(Protocol::Chat, &body, &answer))
    };
    let call = |chunk: &Value| chunk["choices"][0]["delta"]["tool_calls"][0].clone();
    let (shared, _) = with(Deviation::SharedIndex);
    assert!(shared[3..7].iter().all(|chunk| call(chunk)["index"] == 0));
    let (missing, _) = with(Deviation::MissingIndex);
    assert!(
        missing[3..7]
            .iter()
            .all(|chunk| call(chunk).get("index").is_none())
    );
    let (ids, _) = with(Deviation::IdPerFragment);
    assert!(call(&ids[3])["id"] != call(&ids[4])["id"] && call(&ids[4])["id"].is_string());
    let (stop, _) = with(Deviation::FinishStopWithCalls);
    assert_eq!(stop[7]["choices"][0]["finish_reason"], "stop");
    let (_, done) = with(Deviation::NoDone);
    assert_ne!(done.last().unwrap().data, "[DONE]");
    let (usage, _) = with(Deviation::UsageMissing);
    assert!(usage.iter().all(|chunk| chunk.get("usage").is_none()));
    let (null, _) = with(Deviation::NullContent);
    assert!(null[0]["choices"][0]["delta"]["content"].is_null());
}
