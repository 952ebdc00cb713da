//! Every cause of a cache miss.

use bytes::Bytes;
use windlass_core::log::RecordedAnswer;
use windlass_core::tool::ToolSpec;

use super::*;

fn exchange(time: u64, frame: &str, request: &str, answer: &str) -> Exchange {
    Exchange {
        time: Timestamp(time),
        provider: "p".into(),
        model: "m".into(),
        request: Bytes::from(request.to_owned()),
        digest: String::new(),
        before: None,
        last: None,
        answer: RecordedAnswer {
            status: Some(200),
            form: String::new(),
            body: Bytes::from(answer.to_owned()),
            cut: None,
        },
        frame: Some(frame.into()),
    }
}

fn frame(name: &str) -> Option<Frame> {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema: serde_json::Value::Null.into(),
    };
    Some(Frame {
        system: name.chars().take(1).collect(),
        tools: name.chars().skip(1).map(|sign| tool(&sign.to_string())).collect(),
        max_output: None,
    })
}

fn usage(fresh: u64, read: u64) -> String {
    format!("data: {{\"usage\":{{\"input_tokens\":{fresh},\"cache_read_input_tokens\":{read}}}}}")
}

/// CTX-16: every miss has its cause and its price; a request that only appends has none.
#[test]
fn misses_have_causes() {
    let long = "x".repeat(40_000);
    let price = |_: &str| {
        Some(Price {
            input: 10.0,
            output: 0.0,
            cache_read: 1.0,
            cache_write: 12.0,
        })
    };
    let first = exchange(0, "st", &long, &usage(10_000, 0));
    let more = |text: &str| format!("{long}{text}");
    let other_provider = Exchange {
        provider: "q".into(),
        ..exchange(1, "st", &more("y"), &usage(10_000, 0))
    };
    let cases = [
        (exchange(1, "st", &more("y"), &usage(10, 10_000)), None),
        (
            exchange(1, "zt", &more("y"), &usage(10_010, 0)),
            Some(Cause::System),
        ),
        (
            exchange(1, "su", &more("y"), &usage(10_010, 0)),
            Some(Cause::Tools),
        ),
        (
            exchange(1, "st", &format!("y{long}"), &usage(10_010, 0)),
            Some(Cause::Options),
        ),
        (
            exchange(1, "st", &format!("{}y", "x".repeat(20_000)), &usage(5_000, 0)),
            Some(Cause::History),
        ),
        (
            exchange(1, "st", &more("y"), &usage(10_010, 0)),
            Some(Cause::Provider),
        ),
        (
            exchange(600_000, "st", &more("y"), &usage(10_010, 0)),
            Some(Cause::Expired),
        ),
        (other_provider, Some(Cause::Model)),
    ];
    for (second, cause) in cases {
        let lines = ledger(&[first.clone(), second], frame, price);
        assert_eq!(lines[0].cause, Some(Cause::First));
        assert_eq!(lines[1].cause, cause, "{lines:?}");
        match cause {
            None => assert_eq!(lines[1].lost_usd, None),
            Some(_) => assert!(lines[1].lost_usd.is_some_and(|lost| lost > 0.04), "{lines:?}"),
        }
    }
    let lines = ledger(
        &[first, exchange(1, "st", &more("y"), &usage(10, 10_000))],
        frame,
        price,
    );
    assert_eq!(lines[1].changed_at, long.len());
}

/// CTX-16: the tokens of an answer are read in every wire format.
#[test]
fn tokens_are_read() {
    for (answer, expected) in [
        (
            "{\"input_tokens\":5,\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":9}",
            Some((21, 9)),
        ),
        (
            "{\"prompt_tokens\": 40, \"prompt_tokens_details\": {\"cached_tokens\": 32}}",
            Some((40, 32)),
        ),
        (
            "{\"usage\":{\"input_tokens\":40,\"input_tokens_details\":{\"cached_tokens\":8}}}",
            Some((40, 8)),
        ),
        ("nothing", None),
    ] {
        assert_eq!(tokens(answer.as_bytes()), expected, "{answer}");
    }
}

/// CTX-16: a moved cache marker is not a change.
#[test]
fn marks_are_not_counted() {
    let mark = ",\"cache_control\":{\"type\":\"ephemeral\"}";
    let before = format!("abc{mark}def{mark}]}}");
    let after = format!("abcdef{mark},ghi{mark}]}}");
    assert_eq!(
        common(before.as_bytes(), after.as_bytes()),
        "abcdef".len() + mark.len()
    );
    assert_eq!(common(b"abc", b"abc"), 3);
    assert_eq!(common(b"abc", b""), 0);
}
