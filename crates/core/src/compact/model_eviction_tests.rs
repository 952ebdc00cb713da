//! The side task: the outputs it lists, the outputs it removes, and its schedule.

use super::super::bed::*;
use super::super::mask::is_short;
use super::*;
use crate::provider::{Prefix, Provider};
use crate::script::Scene;

fn sidequest() -> ModelEviction {
    ModelEviction {
        turns: Arc::default(),
        summarize: Summarize {
            keep_recent: 2,
            ..Summarize::default()
        },
    }
}

fn masked(made: &Compacted) -> Vec<&str> {
    let results = made.history.iter().flat_map(|message| message.results());
    results
        .filter(|result| is_short(result))
        .map(|result| result.call_id.as_str())
        .collect()
}

/// CTX-4: a model names outputs; at most half of them are removed, rounded up, and the rest of the history
/// stays.
#[tokio::test]
async fn named_outputs_go() {
    let provider = Rule::saying("Sure: {\"del_cursors\": [3, 0, 0, 99, 1, 2]}");
    let history = exchange("one", 5, 600);
    let made = sidequest()
        .compact(job(&history, &provider, 900))
        .await
        .expect("smaller");
    assert_eq!(masked(&made), ["one-0", "one-3"]);
    assert!(made.usage.is_some());
    let seen = &provider.seen()[0];
    assert!(
        seen.contains("[0] read (153 tokens): \"output one-0 line\\noutput"),
        "{seen}"
    );
}

/// CTX-4: only the thirty largest outputs above the minimum size are shown.
#[tokio::test]
async fn few_outputs_are_shown() {
    let provider = Rule::saying("{\"del_cursors\": []}");
    let mut history = vec![user("go")];
    for number in 0..40 {
        history.extend(pair(&format!("c{number}"), &"word ".repeat(100 + number)));
    }
    history.extend([assistant("so"), user("on")]);
    let _ = sidequest().compact(job(&history, &provider, 0)).await;
    let seen = &provider.seen()[0];
    assert!(seen.contains("[29] ") && !seen.contains("[30] "), "{seen}");
    assert!(!seen.contains(&format!("({} tokens)", 100 * 5 / 4)));
}

/// CTX-4: a late or unreadable answer changes nothing; the excess is then summarized.
#[tokio::test(start_paused = true)]
async fn bad_answers_are_skipped() {
    for scene in [
        Scene::text("no idea"),
        Scene::text("{\"del_cursors\": \"all\"}"),
        Scene::text("{\"del_cursors\": [-1]}"),
        Scene::text("}{"),
        Scene::Hang(Vec::new()),
    ] {
        let provider = Rule::new(move |request| {
            let is_side = request.prefix.system.contains("del_cursors");
            if is_side {
                scene.clone()
            } else {
                Scene::text("a fine summary")
            }
        });
        let history = exchange("one", 5, 600);
        let made = sidequest()
            .compact(job(&history, &provider, 0))
            .await
            .expect("summarized");
        assert!(masked(&made).is_empty());
        assert_eq!(made.history.len(), 5);
    }
}

/// CTX-4: the side task is due once every ten user turns, whether or not the context is full.
#[tokio::test]
async fn due_every_tenth_turn() {
    let provider = Rule::saying("{\"del_cursors\": [0]}");
    let history = exchange("one", 5, 600);
    let quest = sidequest();
    let (model, prefix) = (provider.model().clone(), Prefix::default());
    let view = |iteration| IterationView {
        history: &history,
        iteration,
        last_usage: None,
        cost_usd: 0.0,
        model: &model,
        prefix: &prefix,
    };
    for turn in 1..=20 {
        let verdict = quest.turns.before_iteration(view(1)).await;
        assert_eq!(verdict == Verdict::proceed(), turn % 10 != 0, "{turn}");
        assert_eq!(quest.turns.before_iteration(view(2)).await, Verdict::proceed());
        let made = quest.compact(soft(&history, &provider)).await;
        assert_eq!(made.is_ok(), turn % 10 == 0, "{turn}");
    }
}
