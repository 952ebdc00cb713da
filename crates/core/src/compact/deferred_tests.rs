//! Background summaries, applied all at once.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::bed::*;
use super::*;
use crate::clock::SystemClock;
use crate::provider::{Prefix, ProviderErrorKind};
use crate::script::Scene;

impl Deferred {
    /// Adds a summary without a model call.
    pub(in crate::compact) fn put_for_test(&self, message: &str, call: &str, summary: &str) {
        let key = (message.into(), call.into());
        self.waiting().ready.insert(key, summary.to_owned());
    }
}

struct Bed {
    work: PairSummaries,
    used: Arc<AtomicU64>,
    provider: Arc<Rule>,
}

fn bed(provider: Rule) -> Bed {
    let provider = Arc::new(provider);
    let used = Arc::new(AtomicU64::new(0));
    let books = Arc::clone(&used);
    let work = PairSummaries {
        deferred: Arc::default(),
        provider: Arc::clone(&provider) as _,
        clock: Arc::new(SystemClock::default()),
        tasks: TaskTracker::new(),
        cancel: CancellationToken::new(),
        report: Arc::new(move |usage| {
            books.fetch_add(usage.input, Ordering::Relaxed);
        }),
    };
    Bed { work, used, provider }
}

impl Bed {
    async fn iteration(&self, history: &[Arc<Message>]) {
        let model = self.provider.model().clone();
        let view = IterationView {
            history,
            iteration: 1,
            last_usage: None,
            cost_usd: 0.0,
            model: &model,
            prefix: &Prefix::default(),
        };
        assert_eq!(
            self.work.after_iteration(view).await,
            Verdict::proceed(),
            "nobody waits"
        );
    }

    async fn wait(&self) {
        self.work.tasks.close();
        self.work.tasks.wait().await;
        self.work.tasks.reopen();
    }
}

/// CTX-3: pairs older than the newest six get a summary, the oldest first, each once; usage is reported.
#[tokio::test]
async fn old_pairs_are_summarized_once() {
    let bed = bed(Rule::new(|request| {
        let text = request.messages[0].text();
        Scene::text(&format!("Read {}.", text.lines().next().unwrap_or_default()))
    }));
    let mut history = exchange("one", 6, 2_000);
    bed.iteration(&history).await;
    bed.wait().await;
    assert!(bed.provider.seen().is_empty(), "six are left alone");
    history.extend(exchange("two", 2, 2_000));
    for _ in 0..3 {
        bed.iteration(&history).await;
        bed.wait().await;
    }
    let seen = bed.provider.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[0].contains("one-0") && seen[1].contains("one-1"), "{seen:?}");
    assert_eq!(bed.used.load(Ordering::Relaxed), 200);
    assert!(bed.work.deferred.has_ready());

    let made = bed.work.deferred.apply(&history).expect("applied");
    let short: Vec<String> = made
        .iter()
        .flat_map(|message| message.results())
        .filter(|result| is_short(result))
        .map(|result| result.content.clone())
        .collect();
    assert_eq!(
        short[0],
        "[summarized: 2016 bytes, 112 lines of `read`; recall {\"ref\": \"one-0\"} shows it]\n\
         Read read({\"path\":\"one-0\"})."
    );
    assert_eq!(short.len(), 2);
    assert!(!bed.work.deferred.has_ready());
    assert!(bed.work.deferred.apply(&made).is_none());
}

/// CTX-3: a failure ends the batch; the remaining pairs are retried after the next iteration, one batch at a
/// time.
#[tokio::test(start_paused = true)]
async fn a_failure_ends_the_batch() {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let bed = bed(Rule::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 | 3 => Scene::text("Something short was read."),
        1 => Scene::fail(ProviderErrorKind::Overloaded, "busy"),
        2 => Scene::Hang(Vec::new()),
        4 => Scene::text(""),
        _ => Scene::text("Something short was read."),
    }));
    let history = exchange("one", 10, 2_000);
    for expected in [2, 3, 5, 7] {
        bed.iteration(&history).await;
        bed.iteration(&history).await;
        bed.wait().await;
        assert_eq!(calls.load(Ordering::Relaxed), expected);
    }
    let made = bed.work.deferred.apply(&history).expect("applied");
    assert_eq!(
        made.iter()
            .flat_map(|message| message.results())
            .filter(|result| is_short(result))
            .count(),
        4
    );
}

/// CTX-3: results of one message are summarized one by one; finished ones are not requested again.
#[tokio::test]
async fn several_results_in_a_message() {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let bed = bed(Rule::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        1 => Scene::fail(ProviderErrorKind::Overloaded, "busy"),
        _ => Scene::text("Something short was read."),
    }));
    let results = ["a", "b", "c"].map(|id| crate::message::Part::ToolResult(result(id, &"x".repeat(900))));
    let mut history = vec![user("go"), message(crate::message::Role::Tool, results.to_vec())];
    history.extend(exchange("newer", 6, 500));
    for expected in [2, 4, 4] {
        bed.iteration(&history).await;
        bed.wait().await;
        assert_eq!(calls.load(Ordering::Relaxed), expected);
    }
    let made = bed.work.deferred.apply(&history).expect("applied");
    assert_eq!(made[1].results().filter(|result| is_short(result)).count(), 3);
}

/// CTX-3: a history without those pairs is left unchanged.
#[test]
fn summaries_are_for_their_own_pairs() {
    let deferred = Deferred::default();
    deferred.put_for_test("elsewhere", "one-0", "short");
    assert!(deferred.apply(&exchange("one", 3, 2_000)).is_none());
}
