//! The real loop over real HTTP, with random faults, cancellations and provider switches: the following
//! requests are valid.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use windlass_core::agent::Agent;
use windlass_core::clock::SystemClock;
use windlass_core::event::Event;
use windlass_core::message::Message;
use windlass_core::provider::Provider;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};
use windlass_providers::{Effort, HttpProvider, RetryPolicy, Transport, Wire};
use windlass_sim::{Brain, Fault, Reply, Script, Sim, SimConfig, Stop};
use windlass_testkit::PATIENCE;

use super::histories::{WIRES, config};

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());

/// A tool that returns its input.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Say {
    text: String,
}

struct Parrot;

impl Tool for Parrot {
    type Input = Say;
    const NAME: &'static str = "parrot";

    fn category(&self, _: &Say) -> Category {
        Category::Read
    }

    async fn run(&self, input: Say, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        match input.text.as_str() {
            "fail" => Err(ToolError::Permanent("no".to_owned())),
            "panic" => panic!("a tool may panic"),
            "wait" => {
                let waited = tokio::time::timeout(Duration::from_millis(20), cx.cancel.cancelled()).await;
                if waited.is_ok() {
                    Err(ToolError::Canceled("so far".to_owned()))
                } else {
                    Ok(ToolOutput::text("waited"))
                }
            }
            text => Ok(ToolOutput::text(text)),
        }
    }
}

fn replies() -> impl Strategy<Value = Reply> {
    let say = |text: &str| Reply::call("parrot", json!({"text": text}));
    let calls = vec![
        say("hello"),
        say(""),
        say("fail"),
        say("wait"),
        say("panic"),
        say("one")
            .id("same")
            .and_call("parrot", json!({"text": "two"}))
            .id("same"),
        say("wait")
            .and_call("parrot", json!({"text": "wait"}))
            .and_call("unknown", json!({})),
        Reply::raw_call("parrot", r#"{"text": "#),
        Reply::raw_call("parrot", "words"),
        Reply::raw_call("parrot", r#"{"text": "cut"#).stop(Stop::MaxTokens),
    ];
    let words = vec![
        Reply::text("some words, in pieces"),
        Reply::default(),
        Reply::text("cut").stop(Stop::MaxTokens),
        Reply::text("no").stop(Stop::Refusal),
    ];
    let base = prop_oneof![3 => select(calls), 2 => select(words)];
    (base, any::<bool>(), any::<bool>(), any::<bool>(), faults()).prop_map(
        |(reply, thinks, hides, says, fault)| {
            let reply = if thinks {
                reply.thinking("hm, let me see")
            } else {
                reply
            };
            let reply = if hides {
                reply.redacted_thinking("a secret")
            } else {
                reply
            };
            let reply = if says { reply.say("I will") } else { reply };
            reply.delta_chars(3).fault(fault)
        },
    )
}

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        6 => Just(Fault::new()),
        2 => (0..12_usize).prop_map(|events| Fault::new().cut_after_events(events)),
        1 => (0..2_000_usize).prop_map(|bytes| Fault::new().cut_after_bytes(bytes)),
        1 => (0..8_usize).prop_map(|events| Fault::new().stall_after_events(events)),
        2 => select(vec![400, 401, 429, 500, 529]).prop_map(Fault::status),
        1 => Just(Fault::new().mid_stream_error("overloaded_error")),
        1 => Just(Fault::new().no_finish()),
        1 => Just(Fault::new().invalid_utf8().chunk(5)),
        1 => Just(Fault::new().content_type("text/html")),
    ]
}

/// One turn: its wire, and the number of events after which the user cancels.
#[derive(Debug, Clone, Copy)]
struct Plan {
    wire: Wire,
    cancel_after: Option<usize>,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let wires = select(WIRES.map(|(wire, _)| wire).to_vec());
    let plan =
        (wires, prop::option::of(0..25_usize)).prop_map(|(wire, cancel_after)| Plan { wire, cancel_after });
    prop::collection::vec(plan, 1..5)
}

fn provider(wire: Wire, url: &str) -> Arc<dyn Provider> {
    let mut config = config(wire, url, Some(Effort::Low));
    config.limits.stream_idle = Duration::from_millis(100);
    config.retry = RetryPolicy {
        max_retries: 2,
        base_delay: Duration::ZERO,
        max_delay: Duration::ZERO,
        ..RetryPolicy::default()
    };
    Arc::new(HttpProvider::new(config, Transport::new(), Arc::new(SystemClock::default())).unwrap())
}

/// Runs one turn on top of a history and returns the history after it.
async fn turn(plan: Plan, url: &str, history: Vec<Arc<Message>>) -> Result<Vec<Arc<Message>>, String> {
    let builder = Agent::builder(provider(plan.wire, url))
        .system_prompt("Be good.")
        .tool(Parrot);
    let agent = builder.history(history).max_iterations(5).build();
    let mut stream = agent.run_stream("go on");
    let cancel = stream.cancellation();
    let mut last = None;
    let mut count = 0;
    while let Some(event) = stream.next().await {
        if plan.cancel_after == Some(count) {
            cancel.cancel();
        }
        count += 1;
        last = Some(event);
    }
    // Events wait in a channel, so a turn may end with `final` although it was canceled in the meantime.
    if !last.as_ref().is_some_and(Event::is_terminal) {
        return Err(format!("the turn ended with {last:?}"));
    }
    Ok(agent.history().await)
}

async fn live_through(replies: Vec<Reply>, plans: Vec<Plan>) -> Result<(), String> {
    let script = replies
        .into_iter()
        .fold(Script::new(), Script::reply)
        .reply(Reply::text("the end").forever());
    let config = SimConfig {
        brain: Brain::script(script),
        ..SimConfig::default()
    };
    let sim = Sim::start(config).await.map_err(|error| error.to_string())?;
    let mut history = Vec::new();
    let calm = WIRES.map(|(wire, _)| Plan {
        wire,
        cancel_after: None,
    });
    for plan in plans.into_iter().chain(calm) {
        let done = tokio::time::timeout(PATIENCE, turn(plan, &sim.url(), history)).await;
        history = done.map_err(|_| "the turn hangs".to_owned())??;
        if let Some(violation) = sim.violations().first() {
            let outline = sim.requests().last().map(|request| request.seen.outline());
            return Err(format!("{violation}\n{}", outline.unwrap_or_default()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// LOOP-16, LOOP-8, PROV-6, MSG-4: after any faults, cancellations and provider switches, the next
    /// request is valid, every turn ends exactly once, and none hangs.
    #[test]
    fn every_request_after_mishaps_is_valid(replies in prop::collection::vec(replies(), 1..8), plans in plans()) {
        let lived = RUNTIME.block_on(live_through(replies, plans));
        prop_assert!(lived.is_ok(), "{}", lived.unwrap_err());
    }
}
