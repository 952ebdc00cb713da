//! JSON of others is kept, and repaired where it must be understood.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// MSG-7: only what parsers refuse is changed.
#[test]
fn the_unreadable_is_repaired_and_nothing_else() {
    let cases = [
        (r#"{"a":"\udc41"}"#, r#"{"a":"\ufffd"}"#),
        (r#"{"a":"\ud83d\ude00 \ud83d"}"#, r#"{"a":"\ud83d\ude00 \ufffd"}"#),
        (r#"{"\ud83d\ud83d\ude00":1}"#, r#"{"\ufffd\ud83d\ude00":1}"#),
        (r#"["\\ud83d","\\\ud83d"]"#, r#"["\\ud83d","\\\ufffd"]"#),
        (
            "[1e400,-1E+999,1e-400]",
            "[1.7976931348623157e308,-1.7976931348623157e308,1e-400]",
        ),
        (r#"[ 1.10, 12345678901234567890123, "1e400" , "é\u00e9\/" ]"#, ""),
        (r#"{"a":1,"a":2,"\u0000":"\u0000"}"#, ""),
    ];
    for (text, expected) in cases {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(repaired(text), expected);
        assert!(serde_json::from_str::<Value>(&repaired(text)).is_ok(), "{text}");
    }
    let huge = "9".repeat(500);
    assert_eq!(repaired(&huge), LARGEST);
}

/// MSG-7: a value that is nested too deep becomes its text below the limit.
#[test]
fn depth_is_limited() {
    let nested = |depth: usize| format!("{}\"\\udc41]\"{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(
        repaired(&nested(MAX_DEPTH)),
        nested(MAX_DEPTH).replace("\\udc41", "\\ufffd")
    );
    let text = nested(100_000);
    let mut value: Value = serde_json::from_str(&repaired(&text)).unwrap();
    for _ in 0..MAX_DEPTH {
        value = value[0].take();
    }
    assert_eq!(value, json!(nested(100_000 - MAX_DEPTH)));
    let deep = (0..126).fold(json!(1), |inner, _| json!([inner]));
    let stored = json!({"a": {"b": bounded(deep)}}).to_string();
    assert!(serde_json::from_str::<Value>(&stored).is_ok());
    assert_eq!(lenient(&nested(200)), lenient(&repaired(&nested(200))));
    assert_eq!(lenient("nonsense"), json!("nonsense"));
}

/// MSG-7: replacing strings changes nothing beside them.
#[test]
fn strings_are_replaced() {
    let change = |text: &str| (text == "a\nb").then(|| "c\"".to_owned());
    let text = r#"{ "a\nb" : [1.10, "a\u000ab", "a\\nb", "\udc41"] }"#;
    assert_eq!(
        map_strings(text, change),
        r#"{ "c\"" : [1.10, "c\"", "a\\nb", "\udc41"] }"#
    );
}

proptest! {
    /// MSG-7: repairing never fails, and repairs everything that is JSON at all.
    #[test]
    fn repaired_json_is_readable(text in r#"[\[{"\\ud8cf0-9eE,:.+\-\]}é]{0,40}"#) {
        let fixed = repaired(&text);
        if serde_json::from_str::<&RawValue>(&text).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&fixed).is_ok(), "{text} → {fixed}");
        }
    }
}
