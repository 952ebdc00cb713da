//! Requests are valid whatever ids a history contains.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use windlass_core::message::{Message, Part, Role};
use windlass_core::provider::ProviderEvent;
use windlass_providers::sse::StreamLimits;
use windlass_providers::wire::{Encoder, Quirks, ReplyDecoder};
use windlass_providers::{Wire, registry};

use super::requests::{call, result};
use super::support::{data, message, request};

/// One turn: the ids of the assistant's calls.
type Turn = Vec<&'static str>;

fn history(turns: &[Turn]) -> Vec<Arc<Message>> {
    let mut messages = vec![Arc::new(message("u", Role::User, vec![Part::text("go")]))];
    for (number, ids) in turns.iter().enumerate() {
        let calls = ids.iter().map(|id| call(id, "grep", "{}")).collect::<Vec<_>>();
        let results = ids
            .iter()
            .map(|id| result(id, "found", false))
            .collect::<Vec<_>>();
        messages.push(Arc::new(message(&format!("a{number}"), Role::Assistant, calls)));
        messages.push(Arc::new(message(&format!("t{number}"), Role::Tool, results)));
    }
    messages
}

/// Returns the ids of calls and of results, in order.
fn ids(wire: Wire, body: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let items = match wire {
        Wire::Anthropic => list(&body["messages"])
            .iter()
            .flat_map(|message| list(&message["content"]))
            .collect(),
        Wire::Chat => list(&body["messages"])
            .iter()
            .flat_map(|message| {
                let calls = list(&message["tool_calls"]);
                if calls.is_empty() {
                    vec![message.clone()]
                } else {
                    calls
                }
            })
            .collect(),
        Wire::Responses => list(&body["input"]),
        Wire::Gemini => list(&body["contents"])
            .iter()
            .flat_map(|content| list(&content["parts"]))
            .collect(),
    };
    for item in items {
        match (wire, item["type"].as_str()) {
            (Wire::Anthropic, Some("tool_use")) => calls.push(text(&item["id"])),
            (Wire::Anthropic, Some("tool_result")) => results.push(text(&item["tool_use_id"])),
            (Wire::Chat, Some("function")) => calls.push(text(&item["id"])),
            (Wire::Chat, None) if item["role"] == "tool" => results.push(text(&item["tool_call_id"])),
            (Wire::Responses, Some("function_call")) => calls.push(text(&item["call_id"])),
            (Wire::Gemini, _) if item["functionCall"].is_object() => {
                calls.push(text(&item["functionCall"]["id"]));
            }
            (Wire::Gemini, _) if item["functionResponse"].is_object() => {
                results.push(text(&item["functionResponse"]["id"]));
            }
            (Wire::Responses, Some("function_call_output")) => results.push(text(&item["call_id"])),
            _ => {}
        }
    }
    (calls, results)
}

proptest! {
    /// LOOP-16: ids are unique, valid for the wire, and the same for a call and its result.
    #[test]
    fn ids_are_always_valid(
        turns in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec!["call_0", "call_1", "", "functions.grep:0", "ä", "toolu_01A09q90qw90lq917835lq9",
                    "0123456789012345678901234567890123456789012345678901234567890123456789"]),
                1..4,
            ),
            0..6,
        ),
        short in any::<bool>(),
    ) {
        for wire in Wire::ALL {
            let quirks = Quirks { short_call_ids: short, ..Quirks::default() };
            let encoder = Encoder::new(wire, "test", registry::lookup("sim-1", &[]), quirks, None);
            let body: Value = serde_json::from_slice(&encoder.body(&request(history(&turns)))).unwrap();
            let (calls, results) = ids(wire, &body);
            prop_assert_eq!(&calls, &results);
            prop_assert_eq!(calls.len(), turns.iter().map(Vec::len).sum::<usize>());
            prop_assert_eq!(calls.iter().collect::<HashSet<_>>().len(), calls.len());
            for id in &calls {
                let most = if wire == Wire::Chat { 40 } else { 64 };
                prop_assert!((1..=most).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
                prop_assert!(!short || id.len() == 9, "{}", id);
            }
        }
    }
}

/// PROV-12: a reply that repeats an id of the conversation gets a new one, in its parts and its items.
#[test]
fn repeated_ids_are_replaced_when_they_arrive() {
    for (wire, stream, id) in [
        (
            Wire::Anthropic,
            "anthropic_full.sse",
            "toolu_01A09q90qw90lq917835lq9",
        ),
        (Wire::Chat, "chat_parallel.sse", "call_aAbBcCdDeEfFgGhHiIjJkKlL"),
        (Wire::Responses, "responses_full.sse", "call_q1W2e3R4t5Y6u7I8o9P0"),
        (Wire::Gemini, "gemini_full.sse", "fc_1"),
    ] {
        let history = vec![Arc::new(message(
            "a",
            Role::Assistant,
            vec![call(id, "grep", "{}")],
        ))];
        let mut decoder =
            ReplyDecoder::new(wire, "test", &Quirks::default(), StreamLimits::default(), history);
        let mut events = Vec::new();
        decoder.push(&data(stream), &mut events).unwrap();
        let completion = decoder.finish(&mut events).unwrap();
        let new = completion
            .parts
            .iter()
            .find_map(|part| match part {
                Part::ToolCall(call) => Some(call.id.as_str()),
                _ => None,
            })
            .unwrap();
        assert_ne!(new, id);
        let items: String = completion
            .origin
            .iter()
            .flat_map(|origin| &origin.items)
            .map(|item| item.get())
            .collect();
        assert!(items.contains(new) && !items.contains(id), "{items}");
        assert!(
            events
                .iter()
                .any(|event| matches!(event, ProviderEvent::ToolUseStop { id } if id == new))
        );
    }
}

/// LOOP-16: a conversation starts with the user even when the first message has no content on the wire.
#[test]
fn a_silent_first_message_is_stood_in_for() {
    for wire in Wire::ALL {
        let encoder = Encoder::new(
            wire,
            "test",
            registry::lookup("sim-1", &[]),
            Quirks::default(),
            None,
        );
        let silent = Arc::new(message("u", Role::User, vec![Part::text(" ")]));
        let reply = Arc::new(message("a", Role::Assistant, vec![Part::text("hi")]));
        for messages in [vec![silent.clone(), reply], vec![silent]] {
            let mut asked = request(messages);
            asked.prefix = Arc::default();
            let body: Value = serde_json::from_slice(&encoder.body(&asked)).unwrap();
            let list = match wire {
                Wire::Responses => &body["input"],
                Wire::Gemini => &body["contents"],
                Wire::Anthropic | Wire::Chat => &body["messages"],
            };
            assert_eq!(list[0]["role"], "user", "{body}");
        }
    }
}

/// LOOP-16, PROV-2: a reply in last place ends without blanks, which the API refuses there and only there.
#[test]
fn a_last_reply_has_no_trailing_blank() {
    let encoder = Encoder::new(
        Wire::Anthropic,
        "test",
        registry::lookup("sim-1", &[]),
        Quirks::default(),
        None,
    );
    let user = Arc::new(message("u", Role::User, vec![Part::text("go")]));
    let reply = Arc::new(message("a", Role::Assistant, vec![Part::text("well \n")]));
    let body = |messages| serde_json::from_slice::<Value>(&encoder.body(&request(messages))).unwrap();
    let last = body(vec![user.clone(), reply.clone()]);
    assert_eq!(last["messages"][1]["content"][0]["text"], "well");
    let inner = body(vec![user.clone(), reply, user]);
    assert_eq!(inner["messages"][1]["content"][0]["text"], "well \n");
}
