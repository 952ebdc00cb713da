//! Every request of the lab could be sent as it is, and the reported numbers are correct.

use std::collections::HashSet;

use windlass_api::{Event, Part, Role, SessionEvent};
use windlass_core::clock::Timestamp;
use windlass_core::context::prepare;
use windlass_core::log::Entry;
use windlass_core::model::Price;
use windlass_core::script::call_part;
use windlass_core::tokens::Estimate;

use super::*;

fn setup(window: u64, summarizer: Summarizer) -> Experiment {
    Experiment {
        model: Model {
            id: "lab".to_owned(),
            context_window: window,
            max_output: 4_000,
            price: Some(Price {
                input: 1.0,
                output: 5.0,
                cache_read: 0.1,
                cache_write: 1.25,
            }),
            images: false,
            reasoning: false,
            known: true,
        },
        counters: |_| Arc::new(Estimate),
        summarizer,
    }
}

/// Returns the problem with a request, by a separate set of rules.
fn wrong_with(messages: &[Arc<Message>]) -> Option<String> {
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    if messages.first().is_none_or(|first| first.role != Role::User) {
        return Some("it does not begin with the user".to_owned());
    }
    for message in messages {
        let results: Vec<String> = message
            .results()
            .map(|result| result.call_id.to_string())
            .collect();
        if results != open {
            return Some(format!("{results:?} answer {open:?}"));
        }
        open = message.calls().map(|call| call.id.to_string()).collect();
        if let Some(twice) = open.iter().find(|id| !seen.insert((*id).clone())) {
            return Some(format!("{twice} is there twice"));
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} have no result"))
}

/// CTX-14: the same seed gives the same session, another seed gives another, and a session has the requested
/// size.
#[test]
fn sessions_are_made_from_a_seed() {
    let text = |seed| format!("{:?}", synthetic::generate(seed, 200).messages);
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
    let session = synthetic::generate(7, 300);
    assert_eq!(wrong_with(session.messages.split_last().unwrap().1), None);
    let results: Vec<usize> = session
        .messages
        .iter()
        .flat_map(|message| message.results())
        .filter(|result| result.name != "todo")
        .map(|result| result.content.len())
        .collect();
    assert_eq!(results.len(), 300);
    assert!(results.iter().all(|length| (200..8_400).contains(length)));
    assert!(session.needs.len() > 50, "{}", session.needs.len());
    // Every needed fact appears earlier, and the question does not contain it.
    for need in &session.needs {
        let before = session.messages.get(..need.at).unwrap();
        assert!(
            before
                .iter()
                .any(|message| format!("{message:?}").contains(&need.text)),
            "{need:?}"
        );
        assert_eq!(session.messages[need.at].role, Role::Assistant);
    }
    for tiny in [1, 2, 5] {
        assert!(!synthetic::generate(1, tiny).messages.is_empty());
    }
}

/// CTX-14, CTX-6: whatever the strategy does, each request is valid before and after the repair, and fits the
/// window.
#[tokio::test]
async fn every_request_is_valid() {
    for (seed, window) in [(1, 16_000), (2, 40_000)] {
        let session = synthetic::generate(seed, 120);
        for strategy in Strategy::ALL {
            for summarizer in [Summarizer::Extract, Summarizer::Nothing] {
                let mut wrong = Vec::new();
                let setup = setup(window, summarizer);
                let outcome = simulate_watched(&session, strategy, &setup, &mut |messages| {
                    wrong.extend(wrong_with(messages));
                    let again = prepare(messages);
                    if !again.iter().zip(messages).all(|(a, b)| Arc::ptr_eq(a, b))
                        || again.len() != messages.len()
                    {
                        wrong.push("the repair is not done".to_owned());
                    }
                })
                .await;
                assert!(wrong.is_empty(), "{strategy}: {wrong:?}");
                assert_eq!(outcome.repairs, 0, "{strategy}");
                let fits = outcome.requests.iter().all(|sent| sent.tokens <= window);
                assert!(fits || strategy == Strategy::None, "{strategy}");
                assert_eq!(outcome.compactions > 0, strategy != Strategy::None, "{strategy}");
            }
        }
    }
}

/// CTX-14: without a strategy every request contains all messages, grows, and extends the previous one.
#[tokio::test]
async fn without_a_strategy_all_is_sent() {
    let session = synthetic::generate(3, 80);
    let outcome = simulate(&session, Strategy::None, &setup(16_000, Summarizer::Extract)).await;
    assert!(
        outcome
            .requests
            .windows(2)
            .all(|pair| pair[0].tokens < pair[1].tokens)
    );
    let facts = outcome.facts;
    assert!(facts.said > 0 && facts.shown > 0);
    assert_eq!(
        (facts.said_in_sight, facts.shown_in_sight),
        (facts.said, facts.shown)
    );
    assert_eq!((outcome.compactions, outcome.side), (0, Side::default()));
    let replies = session
        .messages
        .iter()
        .filter(|message| message.role == Role::Assistant);
    assert_eq!(outcome.requests.len(), replies.count());
    let tokens: u64 = outcome.requests.iter().map(|sent| sent.tokens).sum();
    assert_eq!(outcome.usage.total_input(), tokens);
    // The new part of a request is small compared with the part it repeats.
    assert!(
        outcome.reused * 100 > outcome.bytes * 95,
        "{} {}",
        outcome.reused,
        outcome.bytes
    );
}

/// CTX-14, CTX-15: whatever the summarizer forgets, every relevant fact is in sight or can be read back, and
/// the user's messages are in sight.
#[tokio::test]
async fn facts_survive() {
    let session = synthetic::generate(4, 150);
    assert!(session.needs.iter().filter(|need| need.is_said).count() > 5);
    for summarizer in [Summarizer::Extract, Summarizer::Nothing] {
        let setup = setup(20_000, summarizer);
        for strategy in Strategy::ALL {
            let facts = simulate(&session, strategy, &setup).await.facts;
            assert_eq!(facts.readable, facts.shown, "{strategy} {facts:?}");
            assert_eq!(facts.said_in_sight, facts.said, "{strategy} {facts:?}");
        }
    }
}

/// CTX-14: the figures: masking and subgoals send less than half of what is sent without them, with every
/// fact readable, and a summary saves within five percent of the best. Readable does not mean found: a fact
/// that no call names is found only under a summary.
#[tokio::test]
async fn strategies_pay() {
    let sessions = [synthetic::generate(1, 300)];
    let report = Report::new(&sessions, &setup(64_000, Summarizer::Extract)).await;
    let row = |name: &str| report.strategies.iter().find(|row| row.strategy == name).unwrap();
    for name in [
        "mask",
        "subgoal",
        "subgoal_mig",
        "focus",
        "sidequest",
        "summarize",
    ] {
        let row = row(name);
        assert!(row.saved >= 0.5, "{name}: {}", row.saved);
        assert_eq!(row.facts.readable, row.facts.shown, "{name}");
        assert!(row.cache_reuse > 0.9, "{name}: {}", row.cache_reuse);
        assert!(row.cost_usd < report.strategies[0].cost_usd, "{name}");
        assert_eq!(row.too_large, 0, "{name}");
    }
    for name in ["summarize", "focus", "sidequest"] {
        let facts = row(name).facts;
        assert_eq!(facts.shown_in_sight + facts.found, facts.shown, "{name}");
    }
    let best = report.strategies.iter().map(|row| row.saved).fold(0.0, f64::max);
    assert!(
        row("summarize").saved >= best - 0.05,
        "{} {best}",
        row("summarize").saved
    );
}

/// CTX-14: the same experiment gives the same numbers.
#[tokio::test]
async fn runs_are_alike() {
    let session = synthetic::generate(5, 100);
    let setup = setup(16_000, Summarizer::Extract);
    for strategy in Strategy::ALL {
        let (first, second) = (
            simulate(&session, strategy, &setup).await,
            simulate(&session, strategy, &setup).await,
        );
        assert_eq!(first, second, "{strategy}");
    }
}

fn message(id: &str, role: Role, parts: Vec<Part>) -> Event {
    let mut message = Message::new(&"s".into(), role, parts, Timestamp(1));
    message.id = id.into();
    Event::Message {
        message: Arc::new(message),
    }
}

fn entries(events: Vec<Event>) -> Vec<Entry> {
    let numbered = (1..).zip(events);
    let entry = |(seq, event)| Entry {
        seq,
        time: Timestamp(seq),
        event,
    };
    numbered.map(entry).collect()
}

/// CTX-14: a recorded session is read in its original form: each message in its final version, without the
/// effects of compactions and undone turns.
#[test]
fn records_are_read_as_said() {
    let text = |text: &str| vec![Part::text(text)];
    let read = recorded(
        "mine",
        &entries(vec![
            message("1", Role::User, text("hello")),
            message("2", Role::Assistant, text("half")),
            message("2", Role::Assistant, text("half and whole")),
            message("3", Role::User, text("undone")),
            Event::Session(SessionEvent::Rewind { to: 3 }),
            message("4", Role::User, text("more")),
            message("2", Role::Assistant, text("masked")),
            Event::Session(SessionEvent::Compaction {
                before: 10,
                after: 5,
                history: vec!["2".into(), "4".into()],
                fidelity: None,
            }),
            message("5", Role::Assistant, text("done")),
        ]),
        Prefix::default(),
    );
    let said: Vec<String> = read.messages.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["hello", "half and whole", "more", "done"]);
    assert_eq!(read.needs, []);
}

/// CTX-14: facts of recorded sessions are words that the model writes into a call long after they last
/// appeared.
#[test]
fn facts_are_found() {
    let mut events = vec![message(
        "0",
        Role::User,
        vec![Part::text("the port is port_48213, use v2")],
    )];
    for number in 1..30 {
        let text = format!("step {number}");
        events.push(message(&text, Role::Assistant, vec![Part::text(&text)]));
    }
    let input = "{\"command\": \"curl port_48213 && ls new_thing\"}";
    events.push(message(
        "call",
        Role::Assistant,
        vec![call_part("c", "bash", input)],
    ));
    events.push(message(
        "again",
        Role::Assistant,
        vec![call_part("d", "bash", input)],
    ));
    let read = recorded("mine", &entries(events), Prefix::default());
    let found: Vec<(usize, &str)> = read
        .needs
        .iter()
        .map(|need| (need.at, need.text.as_str()))
        .collect();
    assert_eq!(found, [(30, "port_48213")]);
}
