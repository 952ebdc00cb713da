//! Thresholds for compaction, and the measured load.

use super::super::bed::*;
use super::*;
use crate::message::Message;
use crate::middleware::Flow;
use crate::model::{Model, Usage};
use crate::provider::{Prefix, Provider};

fn model(window: u64) -> Model {
    Rule::failing().with_window(window).model().clone()
}

async fn look(pressure: &Pressure, history: &[Arc<Message>], used: Option<u64>, window: u64) -> Verdict {
    let (model, prefix) = (model(window), Prefix::default());
    let usage = used.map(|input| Usage {
        input,
        ..Usage::default()
    });
    pressure
        .before_iteration(IterationView {
            history,
            iteration: 2,
            last_usage: usage,
            cost_usd: 0.0,
            model: &model,
            prefix: &prefix,
        })
        .await
}

fn flow(depth: Depth, target: u64) -> Flow {
    Flow::Compact(Shrink {
        depth,
        target: Some(target),
    })
}

/// CTX-2: above the hard share the context is compacted below the soft share; above the soft share only ready
/// summaries are applied.
#[tokio::test]
async fn two_shares_of_the_window() {
    let history = vec![user("go"), assistant("yes")];
    for (used, has_ready, expected) in [
        (599, true, Flow::Continue),
        (600, true, Flow::Continue),
        (601, true, flow(Depth::Soft, 600 - (601 - 10))),
        (601, false, Flow::Continue),
        (900, false, Flow::Continue),
        // What is outside the conversation leaves 900 - (901 - 10) tokens, half of which is the least to go for.
        (901, false, flow(Depth::Hard, 4)),
        (901, true, flow(Depth::Hard, 4)),
    ] {
        let deferred = Arc::new(Deferred::default());
        if has_ready {
            deferred.put_for_test("m", "c", "short");
        }
        let pressure = Pressure {
            deferred: Some(deferred),
            ..Pressure::default()
        };
        let verdict = look(&pressure, &history, Some(used), 1_000).await;
        assert_eq!(verdict.flow, expected, "{used} {has_ready}");
    }
}

/// CTX-2: tokens outside the conversation are not part of its target; a window of 0 means unknown.
#[tokio::test]
async fn the_target_leaves_room_for_the_rest() {
    let history = vec![user(&"x".repeat(3_600)), assistant("yes")];
    // 905 and 5 tokens of conversation; the other 90 are outside it.
    let verdict = look(&Pressure::default(), &history, Some(1_000), 1_000).await;
    assert_eq!(verdict.flow, flow(Depth::Hard, 600 - 91));
    assert_eq!(verdict.metadata["old_tokens"], 1_000);
    assert_eq!(
        look(&Pressure::default(), &history, Some(1_000), 0).await.flow,
        Flow::Continue
    );
}

/// CTX-1: without a report everything is counted, with a report only later messages; a report of another
/// model counts as well.
#[tokio::test]
async fn new_things_add_to_what_was_reported() {
    let pressure = Pressure::default();
    let mut history = vec![user("go"), assistant("yes")];
    assert_eq!(
        look(&pressure, &history, Some(880), 1_000).await.flow,
        Flow::Continue
    );
    history.push(user(&"x".repeat(100)));
    let verdict = look(&pressure, &history, None, 1_000).await;
    assert_eq!(
        verdict.metadata["old_tokens"],
        880 + 29,
        "what was reported in an earlier turn still holds"
    );
    assert_eq!(
        look(&Pressure::default(), &history, None, 1_000).await.flow,
        Flow::Continue
    );
}

/// CTX-2: instructions that do not fit the window end the turn with an explanation, and no request is made.
#[tokio::test]
async fn instructions_larger_than_the_window() {
    let mut model = model(1_000);
    let prefix = Prefix {
        system: "obey ".repeat(2_000),
        ..Prefix::default()
    };
    let history = vec![user("go")];
    let pressure = Pressure::default();
    for (known, expected) in [(true, Flow::Stop), (false, flow(Depth::Hard, 0))] {
        model.known = known;
        let view = IterationView {
            history: &history,
            iteration: 1,
            last_usage: None,
            cost_usd: 0.0,
            model: &model,
            prefix: &prefix,
        };
        let verdict = pressure.before_iteration(view).await;
        assert_eq!(verdict.flow, expected);
        if known {
            assert_eq!(
                verdict.reason,
                "Stopped: the system prompt and the tools take 2500 tokens, but the context window of scripted is 1000."
            );
        }
    }
}

/// CTX-1: far below the shares no tokenizer is needed, however many requests are reported; near them the counts
/// decide, corrected by what was reported before.
#[tokio::test]
async fn nothing_is_counted_when_there_is_room() {
    use std::sync::atomic::{AtomicU64, Ordering};

    static COUNTED: AtomicU64 = AtomicU64::new(0);
    struct Noting(Arc<str>);
    impl crate::tokens::TokenCounter for Noting {
        fn key(&self) -> &Arc<str> {
            &self.0
        }
        fn count(&self, text: &str) -> u64 {
            COUNTED.fetch_add(1, Ordering::Relaxed);
            (text.len() as u64).div_ceil(4)
        }
    }
    let pressure = Pressure {
        gauge: Arc::new(Gauge::new(|_| Arc::new(Noting(Arc::from("noting"))))),
        ..Pressure::default()
    };
    let mut history = Vec::new();
    let mut used = 10_000;
    assert_eq!(
        look(&pressure, &history, None, 100_000).await.flow,
        Flow::Continue
    );
    for _ in 0..50 {
        history.extend(exchange("one", 1, 1_600));
        // Half as many tokens again as are counted.
        used += 600;
        let verdict = look(&pressure, &history, Some(used), 100_000).await;
        assert_eq!(verdict.flow, Flow::Continue);
    }
    assert_eq!(COUNTED.load(Ordering::Relaxed), 0);

    history.push(user(&"x".repeat(180_000)));
    let verdict = look(&pressure, &history, None, 100_000).await;
    let (sum, factor) = (
        pressure.gauge.tokens(&history[history.len() - 1..]),
        pressure.gauge.factor(),
    );
    assert!(COUNTED.load(Ordering::Relaxed) > 0);
    assert!((1.3..1.6).contains(&factor), "{factor}");
    assert_eq!(verdict.metadata["old_tokens"], used + sum);
    assert!(matches!(
        verdict.flow,
        Flow::Compact(Shrink {
            depth: Depth::Hard,
            ..
        })
    ));
    *history.last_mut().unwrap() = user(&"x".repeat(100_000));
    let verdict = look(&pressure, &history, None, 100_000).await;
    assert_eq!(
        verdict.flow,
        Flow::Continue,
        "the bytes alone would be too many, the tokens are not"
    );
}
