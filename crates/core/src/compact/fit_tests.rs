//! A history that does not fit becomes one that does, or the result is a clear error.

use super::super::bed::*;
use super::super::{Parts, Strategy};
use super::*;

fn stepwise(strategy: Strategy, deferred: Option<Arc<Deferred>>) -> Arc<dyn Compactor> {
    let parts = Parts {
        keep_recent: 4,
        deferred,
        ..Parts::default()
    };
    strategy.compactor(parts).expect("one that does something")
}

fn tokens(history: &[Arc<Message>]) -> u64 {
    Gauge::default().tokens(history)
}

/// CTX-15: a single result larger than the window is cut to its start and end, even if it is the newest, with
/// a notice.
#[tokio::test]
async fn a_result_larger_than_the_window() {
    let provider = Rule::saying("a fine summary").with_window(8_000);
    for strategy in Strategy::ALL.into_iter().skip(1) {
        let mut history = vec![user("read it")];
        history.extend(pair("big", &"all of it ".repeat(20_000)));
        let made = stepwise(strategy, None)
            .compact(job(&history, &provider, 4_000))
            .await
            .expect("smaller");
        assert!(
            tokens(&made.history) <= 6_000,
            "{strategy}: {}",
            tokens(&made.history)
        );
        let result = made.history[2].results().next().expect("result");
        assert!(
            result.content.starts_with("[shortened: 200000 bytes"),
            "{strategy}"
        );
        assert!(result.content.contains("recall {\"ref\": \"big\"}"), "{strategy}");
        assert!(
            made.notice.expect("said").contains("cut to their start and end"),
            "{strategy}"
        );
    }
}

/// CTX-15: if nothing can be compacted, the result is a readable error and the history is untouched.
#[tokio::test]
async fn nothing_to_make_smaller() {
    let provider = Rule::saying("a fine summary").with_window(100);
    for strategy in Strategy::ALL.into_iter().skip(1) {
        let history = vec![user(&"words ".repeat(2_000))];
        let made = stepwise(strategy, None)
            .compact(job(&history, &provider, 0))
            .await;
        assert_eq!(made, Err(CompactError::NothingToDo), "{strategy}");
        let made = stepwise(strategy, None).compact(job(&[], &provider, 0)).await;
        assert_eq!(made, Err(CompactError::NothingToDo), "{strategy}");
    }
}

/// CTX-4: a strategy that frees too little is followed by a plain summary.
#[tokio::test]
async fn the_last_resort_is_a_summary() {
    let provider = Rule::saying("a fine summary");
    let mut history = vec![user("go")];
    history.extend((0..40).flat_map(|n| {
        [
            assistant(&format!("{n} {}", "thinking aloud ".repeat(40))),
            user("on"),
        ]
    }));
    let made = stepwise(Strategy::Mask, None)
        .compact(job(&history, &provider, 1_000))
        .await
        .expect("smaller");
    assert_eq!(made.history.len(), 6);
    assert_eq!(provider.seen().len(), 1);
}

/// CTX-15: a conversation in a small window continues for as long as its user wants: references, cut words and a summary
/// of summaries do not fill it up.
#[tokio::test]
async fn a_small_window_never_fills_up() {
    let provider = Rule::saying("a fine summary").with_window(4_000);
    for strategy in Strategy::ALL.into_iter().skip(1) {
        let mut history = vec![user("go")];
        for turn in 0..40 {
            let wish = format!("Part {turn}: {}", "the ship sailed on. ".repeat(40));
            history.extend([
                user(&wish),
                assistant("It sails."),
                user("Go on."),
                assistant("It did."),
            ]);
            if tokens(&history) > 1_000 {
                let made = stepwise(strategy, None)
                    .compact(job(&history, &provider, 500))
                    .await
                    .unwrap_or_else(|error| panic!("{strategy}, turn {turn}: {error}"));
                history = made.history;
            }
            assert!(tokens(&history) <= 1_000, "{strategy}: {}", tokens(&history));
        }
    }
}
