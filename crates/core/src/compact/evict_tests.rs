//! Order of eviction, and the messages that are never evicted.

use proptest::prelude::*;

use super::super::bed::*;
use super::super::mask::is_short;
use super::*;
use crate::clock::Timestamp;
use crate::message::Role;

/// A session with `done` pairs of a completed subgoal and `now` pairs of the active one.
async fn session(done: usize, now: usize) -> (Vec<Arc<Message>>, Arc<Subgoals>) {
    let subgoals = Arc::new(Subgoals::default());
    let mut history = exchange("before", 2, 2_000);
    for (name, pairs) in [("done", done), ("now", now)] {
        // A subgoal starts with a message of the user.
        subgoals.tell_for_test(history.len(), name);
        history.extend(exchange(name, pairs, 2_000));
    }
    subgoals.at(history.len());
    (history, subgoals)
}

fn evict(subgoals: &Arc<Subgoals>, weighs_repetition: bool) -> Evict {
    Evict {
        subgoals: Arc::clone(subgoals),
        weighs_repetition,
        summarize: Summarize {
            keep_recent: 2,
            ..Summarize::default()
        },
    }
}

fn masked(history: &[Arc<Message>]) -> Vec<&str> {
    let results = history.iter().flat_map(|message| message.results());
    results
        .filter(|result| is_short(result))
        .map(|result| result.call_id.as_str())
        .collect()
}

/// CTX-7: outputs are evicted by tier and then by age, no more than necessary; outputs of the active subgoal
/// stay.
#[tokio::test]
async fn the_least_worth_goes_first() {
    let provider = Rule::failing();
    let (history, subgoals) = session(3, 3).await;
    let all = Gauge::default().tokens(&history);
    for (free, expected) in [
        (100, vec!["before-0"]),
        (900, vec!["before-0", "before-1"]),
        (1_400, vec!["before-0", "before-1", "done-0"]),
        (2_200, vec!["before-0", "before-1", "done-0", "done-1", "done-2"]),
    ] {
        let made = evict(&subgoals, false)
            .compact(job(&history, &provider, all - free))
            .await
            .expect("smaller");
        assert_eq!(masked(&made.history), expected, "{free}");
    }
}

/// CTX-7: a remaining excess is summarized, but the messages of the active subgoal stay unchanged, and the
/// registry tracks their new positions.
#[tokio::test]
async fn the_active_subgoal_stays_word_for_word() {
    let provider = Rule::saying("a fine summary");
    for weighs in [false, true] {
        let (history, subgoals) = session(3, 6).await;
        let made = evict(&subgoals, weighs)
            .compact(job(&history, &provider, 10))
            .await
            .expect("smaller")
            .history;
        let active = history.len() - 14;
        assert_eq!(made.len(), 2 + 14);
        for (before, after) in history.iter().skip(active).zip(made.iter().skip(2)) {
            assert!(Arc::ptr_eq(before, after));
        }
        let registry = subgoals.at(made.len());
        assert_eq!(registry.active().map(|goal| goal.span.clone()), Some(2..16));
        assert_eq!(registry.subgoals().len(), 1, "what is gone has no span");
    }
}

/// CTX-8: of two outputs with the same content, the lower-scoring one is evicted first, even if another is
/// older.
#[tokio::test]
async fn repetition_counts_against_an_output() {
    let provider = Rule::failing();
    let subgoals = Arc::new(Subgoals::default());
    let mut history = vec![user("go")];
    let text = |words: &str| format!("{words} ").repeat(40);
    history.extend(pair("own", &text("alpha beta gamma delta")));
    history.extend(pair("copy", &text("parser error line seven")));
    history.extend(pair("better", &text("parser error line seven")));
    history.extend([assistant("so"), user("on")]);
    let target = Gauge::default().tokens(&history) - 50;
    let made = evict(&subgoals, false)
        .compact(job(&history, &provider, target))
        .await
        .expect("smaller");
    assert_eq!(masked(&made.history), ["own"], "the oldest");
    let made = evict(&subgoals, true)
        .compact(job(&history, &provider, target))
        .await
        .expect("smaller");
    assert_eq!(
        masked(&made.history),
        ["copy"],
        "the one that is said better later"
    );
}

/// CTX-5: among equals, the output with the lowest retention is evicted first: old and not read again.
#[tokio::test]
async fn what_fades_goes_first() {
    let day = 86_400_000;
    let aged = |parts: Vec<crate::message::Part>, age: u64| {
        let mut message = Message::new(&"s".into(), Role::Tool, parts, Timestamp(10 * day - age));
        message.updated_at = message.created_at;
        Arc::new(message)
    };
    let result = |id: &str| crate::message::Part::ToolResult(result(id, &"x".repeat(900)));
    let history = vec![
        user("go"),
        aged(vec![result("a"), result("b")], day),
        named_pair("r", RECALL, "{\"ref\": \"a\"}", "again")[0].clone(),
        user("on"),
        user("and on"),
    ];
    let provider = Rule::failing();
    let mut job = job(&history, &provider, 0);
    job.now = Timestamp(10 * day);
    let evict = evict(&Arc::default(), false);
    let order = evict.order(&job, &Registry::default(), 3).await;
    let places: Vec<Place> = order.iter().map(|candidate| candidate.place).collect();
    assert_eq!(places, [(1, 1), (1, 0)], "what was read again stays longer");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// CTX-7: the active tier is never evicted by score, however much it repeats and however little room
    /// there is.
    #[test]
    fn active_outputs_are_never_masked(done in 0usize..4, now in 1usize..5, target in 0u64..6_000, weighs: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            let (history, subgoals) = session(done, now).await;
            let provider = Rule::saying("a fine summary");
            if let Ok(made) = evict(&subgoals, weighs).compact(job(&history, &provider, target)).await {
                let active = masked(&made.history).iter().filter(|id| id.starts_with("now")).count();
                assert_eq!(active, 0);
            }
        });
    }
}
