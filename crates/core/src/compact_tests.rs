//! Compaction in the loop: recorded events, notices and figures.

use std::sync::Mutex;

use futures_util::StreamExt;
use serde_json::json;

use super::bed::*;
use super::*;
use crate::agent::{Agent, CompactionConfig};
use crate::clock::SystemClock;
use crate::event::{EventSink, SinkError};
use crate::hook::MiddlewareHook;
use crate::log::History;
use crate::middleware::{IterationView, Middleware, Verdict};
use crate::permission::NobodyToAsk;
use crate::provider::ProviderErrorKind;
use crate::run::{Config, EmptyInbox, Ports, run};
use crate::script::Scene;
use crate::turn::{Limits, Outcome, TurnInput, TurnReport};

/// Collects recorded events.
#[derive(Default)]
struct Record(Mutex<Vec<Event>>);

#[async_trait]
impl EventSink for Record {
    fn live(&self, event: Event) {
        self.0.lock().expect("record").push(event);
    }

    async fn record(&self, event: Event) -> Result<(), SinkError> {
        self.live(event);
        Ok(())
    }
}

/// Runs a turn over this history, without tools.
async fn turn(
    history: &[Arc<Message>],
    provider: &Arc<impl Provider + 'static>,
    compactor: Option<Arc<dyn Compactor>>,
    middleware: &[Arc<dyn Middleware>],
) -> (TurnReport, Vec<Event>) {
    let events = Arc::new(Record::default());
    let mut config = Config::default();
    for middleware in middleware {
        config.hooks.push(MiddlewareHook(Arc::clone(middleware)));
    }
    let ports = Ports {
        provider: Arc::clone(provider) as _,
        compactor,
        approver: Arc::new(NobodyToAsk),
        outputs: None,
        inbox: Arc::new(EmptyInbox),
        clock: Arc::new(SystemClock::default()),
        events: Arc::clone(&events) as _,
        cancel: CancellationToken::new(),
        tasks: tokio_util::task::TaskTracker::new(),
    };
    let input = TurnInput {
        session: "s".into(),
        history: history.to_vec(),
        limits: Limits::default(),
        price: None,
        provider: "p".to_owned(),
        model: "m".to_owned(),
    };
    let report = run(input, &config, &ports).await;
    let events = std::mem::take(&mut *events.0.lock().expect("record"));
    (report, events)
}

fn statuses(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Status { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn warnings(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Overflows once, then answers; summaries succeed.
fn overflowing() -> Rule {
    let first = Mutex::new(true);
    Rule::new(move |request| {
        if request.prefix.system.starts_with("You condense") {
            return Scene::text("a fine summary");
        }
        if std::mem::take(&mut *first.lock().expect("first")) {
            return Scene::fail(ProviderErrorKind::ContextOverflow, "too long");
        }
        Scene::text("answer")
    })
}

/// CTX-13: after a compaction its figures are shown, reported and recorded, and the record yields the same
/// history.
#[tokio::test]
async fn figures_of_a_compaction() {
    let mut history = exchange("one", 6, 2_000);
    history.push(user("go on"));
    for strategy in Strategy::ALL.into_iter().skip(1) {
        let compactor = strategy.compactor(Parts {
            keep_recent: 3,
            ..Parts::default()
        });
        let (report, events) = turn(&history, &Arc::new(overflowing()), compactor, &[]).await;
        assert!(
            matches!(report.outcome, Outcome::Answered(_)),
            "{strategy}: {:?}",
            report.outcome
        );
        let context = report.context;
        let (before, after) = (context.compaction_last_before, context.compaction_last_after);
        assert!(
            after < before && context.compaction_last_at_ms > 0,
            "{strategy}: {context:?}"
        );
        assert_eq!(
            (context.context_max_tokens, context.repairs),
            (100_000, 0),
            "{strategy}"
        );
        let shown = format!("Compacting: {before}→{after} tokens");
        let starts = events.iter().filter_map(|event| match event {
            Event::Session(SessionEvent::Compacting { before }) => Some(*before),
            _ => None,
        });
        assert_eq!(starts.collect::<Vec<_>>(), [before], "{strategy}");
        assert_eq!(statuses(&events), [shown.as_str()], "{strategy}");

        let mut told = History::default();
        for message in &history {
            told.apply(&Event::Message {
                message: Arc::clone(message),
            });
        }
        events.iter().for_each(|event| told.apply(event));
        assert_eq!(told.messages(), report.history, "{strategy}");
        let recorded = |event: &&Event| matches!(event, Event::Session(SessionEvent::Compaction { .. }));
        assert_eq!(events.iter().filter(recorded).count(), 1, "{strategy}");
        let Some(Event::Session(SessionEvent::Compaction { fidelity, .. })) = events.iter().find(recorded)
        else {
            panic!("{strategy}: nothing recorded");
        };
        let fidelity = fidelity.expect("a report");
        assert_eq!(
            (fidelity.tokens_before, fidelity.tokens_after),
            (before, after),
            "{strategy}"
        );
        assert_eq!((fidelity.said, fidelity.said_kept), (2, 2), "{strategy}");
        assert!(fidelity.references > 0, "{strategy}");
    }
}

/// CTX-15: a notice about how a summary was made is shown.
#[tokio::test]
async fn notices_are_reported() {
    let overflow = Mutex::new(true);
    let provider = Arc::new(Rule::new(move |request| {
        if request.prefix.system.starts_with("You condense") {
            return Scene::fail(ProviderErrorKind::Overloaded, "busy");
        }
        if std::mem::take(&mut *overflow.lock().expect("first")) {
            return Scene::fail(ProviderErrorKind::ContextOverflow, "too long");
        }
        Scene::text("answer")
    }));
    let mut history = exchange("one", 6, 2_000);
    history.push(user("go on"));
    let compactor = Strategy::Summarize.compactor(Parts::default());
    let (_, events) = turn(&history, &provider, compactor, &[]).await;
    let said = "Compaction: the summary is an outline made without a model, because busy.";
    assert_eq!(warnings(&events), [said]);
}

/// CTX-5: a context that cannot be compacted ends in a clear error, after one attempt and one request.
#[tokio::test]
async fn nothing_can_be_done() {
    let provider = Arc::new(Rule::new(|_| {
        Scene::fail(ProviderErrorKind::ContextOverflow, "too long")
    }));
    let history = vec![user(&"a long question ".repeat(50))];
    let compactor = Strategy::Summarize.compactor(Parts::default());
    let (report, _) = turn(&history, &provider, compactor, &[]).await;
    let Outcome::Failed(failure) = report.outcome else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(
        failure.message,
        "too long (compaction had no effect: there is nothing to summarize yet)"
    );
    assert_eq!(provider.seen().len(), 1);
    assert_eq!(report.history, history, "nothing is lost");
}

struct Hangs;

#[async_trait]
impl Middleware for Hangs {
    async fn before_iteration(&self, _: IterationView<'_>) -> Verdict {
        std::future::pending().await
    }
}

#[async_trait]
impl Compactor for Hangs {
    async fn compact(&self, _: Job<'_>) -> Result<Compacted, CompactError> {
        std::future::pending().await
    }
}

struct Asks;

#[async_trait]
impl Middleware for Asks {
    async fn before_iteration(&self, _: IterationView<'_>) -> Verdict {
        Verdict::compact("always")
    }
}

/// CTX-12: if the compaction takes too long, the context is used unchanged.
#[tokio::test(start_paused = true)]
async fn preparing_has_a_limit() {
    let history = exchange("one", 2, 500);
    for (middleware, warning) in [
        (
            Arc::new(Hangs) as Arc<dyn Middleware>,
            Some("the hook `middleware` did not answer within 30 s"),
        ),
        (
            Arc::new(Asks) as _,
            Some("Compaction had no effect: it took longer than 30 s"),
        ),
    ] {
        let provider = Arc::new(Rule::saying("answer"));
        let (report, events) = turn(&history, &provider, Some(Arc::new(Hangs)), &[middleware]).await;
        assert!(matches!(report.outcome, Outcome::Answered(_)));
        assert_eq!(warnings(&events).first().copied(), warning);
        assert_eq!(report.history.len(), history.len() + 1);
    }
}

/// CTX-2: above the soft share, ready summaries are applied at once and without a model; the turn continues.
#[tokio::test]
async fn ready_summaries_are_applied_under_pressure() {
    let history = exchange("one", 8, 2_000);
    let deferred = Arc::new(Deferred::default());
    for message in history.iter().take(10) {
        for result in message.results() {
            deferred.put_for_test(message.id.as_str(), result.call_id.as_str(), "It was read.");
        }
    }
    let parts = Parts {
        deferred: Some(Arc::clone(&deferred)),
        ..Parts::default()
    };
    let pressure = Pressure {
        gauge: Arc::clone(&parts.gauge),
        deferred: Some(deferred),
        ..Pressure::default()
    };
    let provider = Arc::new(Rule::saying("answer").with_window(6_000));
    let compactor = Strategy::Summarize.compactor(parts);
    let (report, events) = turn(&history, &provider, compactor, &[Arc::new(pressure)]).await;
    assert_eq!(provider.seen().len(), 1, "only the question itself");
    assert_eq!(provider.seen()[0].matches("[summarized: ").count(), 4);
    assert_eq!(statuses(&events).len(), 1);
    assert!(report.context.compaction_last_after < report.context.compaction_last_before);
}

/// CTX-2: a long turn of an agent stays below its window, whatever it reads.
#[tokio::test]
async fn a_long_turn_stays_below_the_window() {
    let step = Mutex::new(0);
    let provider = Arc::new(
        Rule::new(move |request| {
            if request.prefix.system.starts_with("You condense") {
                return Scene::text("a fine summary");
            }
            let mut step = step.lock().expect("step");
            *step += 1;
            let size: u64 = request
                .messages
                .iter()
                .map(|message| crate::tokens::of_message(&crate::tokens::Estimate, message))
                .sum();
            assert!(size < 8_000, "step {step}: {size}");
            let mut scene = match *step {
                60 => Scene::text("done"),
                step => Scene::call(
                    &format!("c{step}"),
                    "nothing",
                    json!({"x": format!("{step}{}", "y".repeat(2_000))}),
                ),
            };
            if let Scene::Reply(completion) = &mut scene {
                completion.usage.input = size;
                completion.usage.output = 500;
            }
            scene
        })
        .with_window(8_000),
    );
    let agent = Agent::builder(Arc::clone(&provider) as Arc<dyn Provider>)
        .compaction(Some(CompactionConfig::default()))
        .build();
    let mut stream = agent.run_stream("go");
    let (mut compactions, mut last) = (0, None);
    while let Some(event) = stream.next().await {
        compactions += u32::from(matches!(event, Event::Session(SessionEvent::Compaction { .. })));
        last = Some(event);
    }
    assert!(matches!(last, Some(Event::Final { .. })), "{last:?}");
    assert!((5..30).contains(&compactions), "{compactions}");
}

/// Collects logged fields.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Logged {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields(String);
        impl tracing::field::Visit for Fields {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!(" {field}={value:?}"));
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.lock().expect("logged").push(fields.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// CTX-13: a compaction is logged at level INFO, with its figures.
#[tokio::test]
async fn a_compaction_is_logged() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let mut history = exchange("one", 6, 2_000);
    history.push(user("go on"));
    let compactor = Strategy::Mask.compactor(Parts {
        keep_recent: 3,
        ..Parts::default()
    });
    let (report, _) = turn(&history, &Arc::new(overflowing()), compactor, &[]).await;
    let (before, after) = (
        report.context.compaction_last_before,
        report.context.compaction_last_after,
    );
    let line = format!(
        "INFO message=compacted tokens_before={before} tokens_after={after} saved={}",
        before - after
    );
    let lines = logged.0.lock().expect("logged").clone();
    assert!(lines.contains(&line), "{line}\n{lines:?}");
}
