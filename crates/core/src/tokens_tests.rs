//! Counting once, and correction by reported usage.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::tool::ToolSpec;

fn message(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::new(
        &"s".into(),
        role,
        vec![Part::text(text)],
        Timestamp(1),
    ))
}

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

fn model(id: &str) -> Model {
    Model {
        id: id.to_owned(),
        context_window: 1_000,
        max_output: 100,
        price: None,
        images: true,
        reasoning: false,
        known: true,
    }
}

static COUNTED: AtomicU64 = AtomicU64::new(0);

struct Noting(Arc<str>);

impl TokenCounter for Noting {
    fn key(&self) -> &Arc<str> {
        &self.0
    }

    fn count(&self, text: &str) -> u64 {
        COUNTED.fetch_add(1, Ordering::Relaxed);
        text.len() as u64
    }
}

/// CTX-1: a message is counted once per counter, and a changed copy is counted again.
#[test]
fn counted_once() {
    let counter = Noting(Arc::from("noting"));
    let history: Vec<_> = (0..100).map(|_| message(Role::User, "12345678")).collect();
    for _ in 0..3 {
        let sum: u64 = history.iter().map(|message| of_message(&counter, message)).sum();
        assert_eq!(sum, 100 * 12);
    }
    assert_eq!(COUNTED.load(Ordering::Relaxed), 100);
    assert_eq!(
        of_message(&Estimate, &history[0]),
        6,
        "another counter has its own number"
    );
    let mut changed = (*history[0]).clone();
    changed.parts.push(Part::text("more"));
    assert_eq!(of_message(&counter, &changed), 16);
}

/// CTX-1: the next request is the reported usage plus later messages; without a report everything is counted.
#[test]
fn a_request_is_what_was_reported_and_what_is_new() {
    let gauge = Gauge::default();
    gauge.meant_for(&model("a"));
    let prefix = Prefix {
        system: "x".repeat(400),
        tools: vec![ToolSpec {
            name: "name".to_owned(),
            description: "words".repeat(8),
            schema: serde_json::json!({}).into(),
        }],
        ..Prefix::default()
    };
    let mut history = vec![message(Role::User, &"a".repeat(40))];
    assert_eq!(gauge.request(&prefix, &history), 100 + 4 + 1 + 10 + 1 + 14);
    history.push(message(Role::Assistant, "fine"));
    gauge.report(&history, usage(500, 7));
    assert_eq!(gauge.request(&prefix, &history), 507);
    history.push(message(Role::Tool, &"b".repeat(40)));
    assert_eq!(gauge.request(&prefix, &history), 507 + 14);
    assert!(gauge.is_surely_below(507 + 45, &prefix, &history));
    assert!(!gauge.is_surely_below(507 + 44, &prefix, &history));
    gauge.forget();
    assert_eq!(gauge.request(&prefix, &history), 116 + 14 + 5 + 14);
    gauge.report(&history, usage(0, 0));
    assert_eq!(
        gauge.request(&prefix, &history),
        116 + 14 + 5 + 14,
        "nothing was reported"
    );
}

/// CTX-1: the estimate moves towards the reported usage in bounded steps; another model starts over.
#[test]
fn reports_correct_the_estimate() {
    let gauge = Gauge::default();
    gauge.meant_for(&model("a"));
    let mut history = Vec::new();
    let mut input = 1_000;
    for round in 0..30 {
        history.push(message(Role::User, &"x".repeat(396)));
        history.push(message(Role::Assistant, "ok"));
        gauge.report(&history, usage(input, 0));
        // Each user message is 103 tokens by the estimate, and about 154 by the provider.
        input += 154;
        if round == 1 {
            assert!((1.1..1.2).contains(&gauge.factor()), "{}", gauge.factor());
        }
    }
    assert!((1.45..1.55).contains(&gauge.factor()), "{}", gauge.factor());
    gauge.meant_for(&model("a"));
    assert!(gauge.factor() > 1.4);
    gauge.meant_for(&model("b"));
    assert_eq!(gauge.factor(), 1.0);
}

proptest! {
    /// CTX-1: whatever is reported, the correction stays between one half and two.
    #[test]
    fn corrections_are_bounded(reports in proptest::collection::vec((0u64..1_000_000, 0u64..1_000_000), 0..50)) {
        let mut factor = 1.0;
        for (counted, reported) in reports {
            factor = corrected(factor, counted, reported);
            prop_assert!((0.5..=2.0).contains(&factor));
        }
    }
}
