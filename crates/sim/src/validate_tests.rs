#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "validate/tests/anthropic_table.rs"]
mod anthropic_table;
#[path = "validate/tests/chat_table.rs"]
mod chat_table;
#[path = "validate/tests/gemini_table.rs"]
mod gemini_table;
#[path = "validate/tests/responses_table.rs"]
mod responses_table;

use serde_json::{Value, json};

use super::check;
use crate::wire::Protocol;

/// A change to a valid request, and a part of the expected message; empty if the request stays valid.
struct Case {
    path: &'static str,
    value: Value,
    expected: &'static str,
}

fn case(path: &'static str, value: Value, expected: &'static str) -> Case {
    Case {
        path,
        value,
        expected,
    }
}

/// Applies each change to the base, by JSON pointer, and compares the outcome.
fn run(wire: Protocol, base: &Value, cases: Vec<Case>) {
    assert_eq!(check(wire, base), Ok(()), "the base must be valid");
    for Case {
        path,
        value,
        expected,
    } in cases
    {
        let mut body = base.clone();
        match body.pointer_mut(path) {
            Some(place) => *place = value.clone(),
            None => {
                let (parent, key) = path.rsplit_once('/').unwrap();
                body.pointer_mut(parent).unwrap()[key] = value.clone();
            }
        }
        let outcome = check(wire, &body).map_err(|violation| violation.to_string());
        match (expected, &outcome) {
            ("", outcome) => assert_eq!(*outcome, Ok(()), "{path} = {value}"),
            (expected, Err(message)) => {
                assert!(message.contains(expected), "{path} = {value}: {message}");
            }
            (expected, Ok(())) => panic!("{path} = {value} was accepted, not refused as: {expected}"),
        }
    }
}

/// LOOP-16: a body that is not an object, or lacks a required key, is refused on every wire.
#[test]
fn required_keys_are_required() {
    for wire in [Protocol::Anthropic, Protocol::Chat, Protocol::Responses] {
        assert!(check(wire, &json!([])).is_err());
        assert!(check(wire, &json!({})).is_err());
        assert!(check(wire, &json!({"model": "m"})).is_err());
        let unlimited = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
        assert_eq!(check(wire, &unlimited).is_ok(), wire == Protocol::Chat);
    }
}
