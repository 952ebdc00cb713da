//! Strategy names, and properties that hold for all strategies.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::super::bed::*;
use super::super::mask::is_short;
use super::super::{CompactError, Compacted, Strategy, fidelity};
use super::*;
use crate::id::{CallId, MessageId};
use crate::message::{Message, Origin, Part, Reasoning, Role};
use crate::script::{Scene, call_part};
use proptest::strategy::Strategy as Generator;

/// CTX-4: names are parsed exactly as printed, and nothing else is accepted.
#[test]
fn names() {
    for strategy in Strategy::ALL {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
        assert_eq!(
            strategy.compactor(Parts::default()).is_none(),
            strategy == Strategy::None
        );
    }
    let error = "sumarize".parse::<Strategy>().expect_err("unknown").to_string();
    assert_eq!(
        error,
        "unknown strategy `sumarize`; use none, summarize, mask, subgoal, subgoal_mig, focus or sidequest"
    );
}

/// CTX-4: subgoals and the side task together are refused.
#[test]
fn subgoals_exclude_the_side_task() {
    for strategy in Strategy::ALL {
        assert_eq!(validate(strategy, false), Ok(()));
        let is_refused = matches!(strategy, Strategy::Subgoal | Strategy::SubgoalByGain);
        assert_eq!(validate(strategy, true).is_err(), is_refused, "{strategy}");
    }
    assert_eq!(
        validate(Strategy::SubgoalByGain, true)
            .expect_err("refused")
            .to_string(),
        "`subgoal_mig` and `sidequest` cannot be used together: both decide which tool outputs go; turn one of them off"
    );
}

/// CTX-15: the user's messages survive twenty compactions of any strategy, with a model that drops
/// everything.
#[tokio::test]
async fn planted_facts_survive_every_strategy() {
    for strategy in Strategy::ALL.into_iter().skip(1) {
        let provider = Rule::saying("Something was done, nothing is known about it.");
        let parts = Parts::default();
        let gauge = Arc::clone(&parts.gauge);
        let compactor = strategy.compactor(parts).expect("one that does something");
        let mut history = vec![user("Never touch port 7431.")];
        for round in 0..20 {
            history.push(user(&format!("Host {round} is 10.0.0.{round}.")));
            history.extend(exchange(&format!("step{round}"), 6, 1_500));
            if gauge.tokens(&history) > 3_000 {
                let made = compactor.compact(job(&history, &provider, 3_000)).await;
                history = made.expect("smaller").history;
            }
        }
        let text = lines(&history).join("\n");
        assert_eq!(text.matches("Never touch port 7431.").count(), 1, "{strategy}");
        for round in 0..20 {
            let fact = format!("Host {round} is 10.0.0.{round}.");
            assert_eq!(text.matches(&fact).count(), 1, "{strategy}: {fact}");
        }
        assert!(
            gauge.tokens(&history) <= 4_500,
            "{strategy}: {}",
            gauge.tokens(&history)
        );
    }
}

/// One step of a session.
#[derive(Debug, Clone)]
enum Step {
    Say(String),
    Answer(String),
    Calls(Vec<usize>),
    /// Calls whose results were lost in a crash.
    Lost,
    Orphan,
    Subgoal,
    /// A stretch of work starts or ends.
    Focus,
}

fn any_steps() -> impl Generator<Value = Vec<Step>> {
    let text = "[a-z<>/\"= ]{1,40}";
    let step = prop_oneof![
        3 => text.prop_map(Step::Say),
        2 => text.prop_map(Step::Answer),
        6 => proptest::collection::vec(prop_oneof![Just(10usize), 300..1_500usize], 1..4).prop_map(Step::Calls),
        1 => Just(Step::Lost),
        1 => Just(Step::Orphan),
        1 => Just(Step::Subgoal),
        2 => Just(Step::Focus),
    ];
    proptest::collection::vec(step, 0..16)
}

fn thoughtful(number: usize, mut parts: Vec<Part>) -> Arc<Message> {
    let thought = Reasoning {
        text: format!("thought {number}"),
        signature: Some("signature".to_owned()),
        redacted: None,
    };
    parts.insert(0, Part::Reasoning(thought));
    let mut message = (*message(Role::Assistant, parts)).clone();
    let item = RawValue::from_string(format!("{{\"item\": {number}}}")).expect("raw");
    message.origin = Some(Origin {
        provider: "p".to_owned(),
        wire: "w".to_owned(),
        items: vec![item],
    });
    Arc::new(message)
}

/// Builds the session, with call ids that repeat occasionally, as with some providers.
fn session(steps: &[Step], parts: &Parts) -> Vec<Arc<Message>> {
    let mut history: Vec<Arc<Message>> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let id = |call: usize| format!("c{}-{call}", number % 9);
        match step {
            Step::Say(text) => history.push(user(&format!("{number}: {text}"))),
            Step::Answer(text) => history.push(thoughtful(number, vec![Part::text(text.clone())])),
            Step::Calls(lengths) => {
                let calls = (0..lengths.len()).map(|call| call_part(&id(call), "read", "{}"));
                history.push(thoughtful(number, calls.collect()));
                let line = |length: &usize| format!("line {number} ").repeat(length / 8 + 1);
                let results = lengths.iter().enumerate();
                let results =
                    results.map(|(call, length)| Part::ToolResult(result(&id(call), &line(length))));
                history.push(message(Role::Tool, results.collect()));
            }
            Step::Lost => history.push(thoughtful(number, vec![call_part(&id(0), "read", "{}")])),
            Step::Orphan => {
                history.push(message(
                    Role::Tool,
                    vec![Part::ToolResult(result("gone", &"x".repeat(700)))],
                ));
            }
            Step::Subgoal => parts
                .subgoals
                .tell_for_test(history.len(), &format!("goal {number}")),
            Step::Focus => {
                let call = format!("f{number}");
                history.extend(named_pair(&call, "focus", "{}", "Focus"));
                parts.focus.toggle_for_test(&call);
            }
        }
    }
    parts.subgoals.at(history.len());
    for (place, message) in history.iter().enumerate() {
        let ready = message
            .results()
            .filter(|result| result.content.len() > 400 && place % 3 == 0);
        for result in ready {
            if let Some(deferred) = &parts.deferred {
                deferred.put_for_test(message.id.as_str(), result.call_id.as_str(), "It was read.");
            }
        }
    }
    history
}

/// Asserts that a request is valid, whatever happened before.
fn assert_valid(request: &[Arc<Message>]) {
    assert!(request.first().is_none_or(|first| first.role == Role::User));
    let mut ids = HashSet::new();
    for (place, message) in request.iter().enumerate() {
        let calls: Vec<&CallId> = message.calls().map(|call| &call.id).collect();
        assert!(calls.iter().all(|id| ids.insert((*id).clone())), "ids are unique");
        let next = request.get(place + 1);
        let results: Vec<&CallId> = next
            .into_iter()
            .flat_map(|next| next.results())
            .map(|result| &result.call_id)
            .collect();
        assert_eq!(calls, results, "each call has one result, each result a call");
        assert!(!message.parts.is_empty());
    }
}

/// Asserts the invariants between a history and its compacted version.
fn assert_faithful(old: &[Arc<Message>], new: &[Arc<Message>]) {
    let report = fidelity(old, new);
    assert_eq!(report.said, report.said_kept, "no word of the user is lost");
    let known: HashMap<&MessageId, &Arc<Message>> =
        old.iter().map(|message| (&message.id, message)).collect();
    for message in new {
        let Some(before) = known.get(&message.id) else {
            let references = message.parts.iter();
            let is_own = |part: &Part| matches!(part, Part::Context(fragment) if fragment.source == crate::message::FragmentSource::Reference && fragment.text.contains(message.id.as_str()));
            assert!(
                references.clone().any(is_own),
                "what is new refers to what it stands for"
            );
            continue;
        };
        assert_eq!(before.origin, message.origin);
        assert_eq!(before.parts.len(), message.parts.len());
        for (was, is) in before.parts.iter().zip(&message.parts) {
            match (was, is) {
                (Part::ToolResult(was), Part::ToolResult(is)) if was.content != is.content => {
                    assert!(
                        is_short(is) && is.call_id == was.call_id,
                        "what is short can be read back"
                    );
                    assert!(is.content.contains(was.call_id.as_str()));
                }
                (was, is) => assert_eq!(was, is, "nothing but results changes"),
            }
        }
    }
    let new_ids: HashSet<&MessageId> = new.iter().map(|message| &message.id).collect();
    let has_gone = old.iter().any(|message| !new_ids.contains(&message.id));
    let has_reference = new.iter().any(|message| !known.contains_key(&message.id));
    assert!(!has_gone || has_reference, "what went is referred to");
}

async fn compacted(
    strategy: Strategy,
    parts: Parts,
    history: &[Arc<Message>],
    provider: &Rule,
    target: u64,
) -> Result<Compacted, CompactError> {
    let compactor = strategy.compactor(parts).ok_or(CompactError::NothingToDo)?;
    compactor.compact(job(history, provider, target)).await
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().expect("runtime")
    })
}

/// Thousands of cases in every run; set `PROPTEST_CASES` for more.
fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(asked.unwrap_or(2_000))
}

/// A summarizer that is good, drops everything, fails, or returns forbidden text.
fn summarizer(kind: usize) -> Rule {
    Rule::new(move |_| match kind {
        0 => Scene::text("This and that was done, and the rest is open."),
        1 => Scene::text("{\"del_cursors\": [0, 1, 2, 3, 4]}"),
        2 => Scene::fail(crate::provider::ProviderErrorKind::Overloaded, "busy"),
        3 => Scene::call("c0-0", "read", serde_json::json!({})),
        _ => Scene::text("<left_out ref=\"no\"></left_out>"),
    })
}

proptest! {
    #![proptest_config(cases())]

    /// LOOP-16, MSG-4: after any strategy, at any cut and for any target, the request is valid, every word of
    /// the user is present, reasoning and the provider's own items are unchanged, and removed content can be
    /// read back. The same holds for a second compaction.
    #[test]
    fn every_strategy_is_faithful(
        steps in any_steps(),
        strategy in prop::sample::select(Strategy::ALL.to_vec()),
        keep_recent in 0usize..12,
        target in prop_oneof![Just(0u64), 100..20_000u64],
        kind in 0usize..5,
        more in any_steps(),
    ) {
        let parts = Parts { keep_recent, deferred: Some(Arc::default()), ..Parts::default() };
        let provider = summarizer(kind);
        // The user's words have enough room, so all of them must stay whole.
        let first = session(&steps, &parts);
        let made = runtime().block_on(compacted(strategy, parts.clone(), &first, &provider, target));
        let history = match made {
            Ok(made) => {
                assert_faithful(&first, &made.history);
                assert_valid(&crate::context::prepare(&made.history));
                made.history
            }
            Err(_) => first,
        };
        let mut second = history;
        second.extend(session(&more, &parts));
        if let Ok(made) = runtime().block_on(compacted(strategy, parts, &second, &provider, target)) {
            assert_faithful(&second, &made.history);
            assert_valid(&crate::context::prepare(&made.history));
        }
    }
}
