//! The loop through its library interface, with a scripted model and test tools.

#[path = "agent_tools_tests.rs"]
mod tools;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use self::tools::{Admin, Done, Echo, Hang, Note};
use crate::middleware::Middleware;
use crate::permission::PermissionHook;
use crate::provider::ToolChoice;

use super::*;
use crate::event::SessionEvent;
use crate::middleware::{IterationView, Verdict};
use crate::model::{Model, ModelRegistry};
use crate::permission::{Decision, Denial, Proposal};
use crate::provider::{ProviderErrorKind, ProviderEvent, StopReason};
use crate::script::{Scene, ScriptedProvider, call_part};
use crate::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};
use crate::turn::CANCELED_TEXT;

fn provider(scenes: impl IntoIterator<Item = Scene>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(scenes))
}

fn builder(provider: &Arc<ScriptedProvider>) -> AgentBuilder {
    let provider: Arc<dyn Provider> = Arc::clone(provider) as Arc<dyn Provider>;
    Agent::builder(provider)
        .tool(Echo)
        .tool(Note)
        .tool(Done)
        .tool(Hang)
}

async fn events(agent: &Agent, input: &str) -> Vec<Event> {
    agent.run_stream(input).collect().await
}

fn kinds(events: &[Event]) -> Vec<String> {
    let state = events.iter().filter(|event| !event.is_live());
    let value = state.filter_map(|event| serde_json::to_value(event).ok());
    value
        .filter_map(|value| value["type"].as_str().map(str::to_owned))
        .collect()
}

/// Returns the result texts of the last tool message.
async fn last_results(agent: &Agent) -> Vec<(String, bool)> {
    let history = agent.history().await;
    let last = history.iter().rev().find(|message| message.role == Role::Tool);
    last.into_iter()
        .flat_map(|message| message.results())
        .map(|result| (result.content.clone(), result.is_error))
        .collect()
}

/// LOOP-1, LOOP-3, MSG-5: the loop gets everything from outside; system prompt and tools come first, once,
/// and are the same in every request of a turn.
#[tokio::test]
async fn a_whole_turn() {
    let provider = provider([
        Scene::reply(
            vec![Part::text("I look."), call_part("c1", "echo", r#"{"word":"hi"}"#)],
            StopReason::ToolUse,
        ),
        Scene::text("It said hi."),
    ]);
    let agent = builder(&provider).system_prompt("Be brief.").build();
    assert_eq!(agent.run("say hi").await, Ok("It said hi.".to_owned()));
    let seen = provider.seen();
    assert_eq!(
        seen[0],
        "system: Be brief.\ntools: echo, note, done, hang\nuser: say hi"
    );
    let grown = "\nassistant: I look.\nassistant: echo({\"word\":\"hi\"})#c1\ntool: #c1: hi";
    assert_eq!(
        seen[1],
        format!("{}{grown}", seen[0]),
        "the second request is the first and what is new"
    );
}

/// EVT-2: the order of events of an iteration, and exactly one terminal event.
#[tokio::test]
async fn order_of_events() {
    let thought = Part::Reasoning(crate::message::Reasoning {
        text: "hm".into(),
        ..Default::default()
    });
    let provider = provider([
        Scene::reply(
            vec![
                thought,
                Part::text("both"),
                call_part("a", "echo", r#"{"word":"x"}"#),
                call_part("b", "nope", "{}"),
            ],
            StopReason::ToolUse,
        ),
        Scene::text("done"),
    ]);
    let events = events(&builder(&provider).build(), "go").await;
    assert_eq!(
        kinds(&events),
        [
            "message",
            "start",
            "usage",
            "reasoning",
            "message",
            "text",
            "step_start",
            "tool_call",
            "tool_result",
            "step_complete",
            "step_start",
            "tool_call",
            "tool_result",
            "step_complete",
            "message",
            "usage",
            "message",
            "final"
        ]
    );
    assert!(
        events.iter().any(|event| matches!(event, Event::Delta { .. })),
        "live deltas are separate events"
    );
}

/// EVT-3: `run` is `run_stream` read to its first `final`.
#[tokio::test]
async fn run_is_a_fold() {
    let scenes = || {
        [
            Scene::call("c1", "echo", json!({"word": "x"})),
            Scene::text("the end"),
        ]
    };
    let streamed = events(&builder(&provider(scenes())).build(), "go").await;
    let last = streamed.iter().find_map(|event| match event {
        Event::Final { content, .. } => Some(content.clone()),
        _ => None,
    });
    assert_eq!(builder(&provider(scenes())).build().run("go").await.ok(), last);
}

/// LOOP-6 (S5.4), LOOP-7: errors are content; the loop continues. Arguments that are not JSON reach only a
/// tool that takes text.
#[tokio::test]
async fn errors_are_content() {
    let cases = [
        ("nope", "{}", "Error: Unknown tool 'nope'", true),
        (
            "echo",
            r#"{"word": 3}"#,
            "Invalid arguments for echo: `word`: found the number `3`, expected a text",
            true,
        ),
        (
            "echo",
            r#"{"wort": "x"}"#,
            "Invalid arguments for echo: `wort`: unknown field `wort`, expected `word`",
            true,
        ),
        (
            "echo",
            r#"{"word": "a", "word": "b"}"#,
            "Invalid arguments for echo: not valid JSON (duplicate key `word` at line 1 column 20). Send one JSON object that matches the tool's schema.",
            true,
        ),
        (
            "echo",
            "rm -rf /",
            "Invalid arguments for echo: not valid JSON (expected value at line 1 column 1). Send one JSON object that matches the tool's schema.",
            true,
        ),
        (
            "echo",
            r#"{"word": "panic"}"#,
            "Error: the tool `echo` failed inside (the tool fell over)",
            true,
        ),
        ("echo", r#"{"word": "fail"}"#, "Error: it broke", true),
        (
            "echo",
            r#"{"word": "later"}"#,
            "Error (may work when tried again): busy",
            true,
        ),
        ("note", "free text", "noted free text", false),
    ];
    for (tool, input, expected, is_error) in cases {
        let provider = provider([
            Scene::reply(vec![call_part("c1", tool, input)], StopReason::ToolUse),
            Scene::text("I see"),
        ]);
        let agent = builder(&provider).build();
        let events = events(&agent, "go").await;
        assert_eq!(
            last_results(&agent).await,
            [(expected.to_owned(), is_error)],
            "{tool} {input}"
        );
        assert!(matches!(events.last(), Some(Event::Final { .. })));
        let args = events.iter().find_map(|event| match event {
            Event::ToolCall { args, .. } => Some(args.clone()),
            _ => None,
        });
        if crate::tool::parse_strict(input).is_err() {
            assert_eq!(args, Some(json!({ "_raw": input })));
        }
    }
}

/// LOOP-8 (S5.5, S5.8): a canceled turn stops the running call, answers the rest, and keeps a valid history.
#[tokio::test(start_paused = true)]
async fn cancel_in_a_tool() {
    for deaf in [false, true] {
        let provider = provider([
            Scene::calls(vec![
                ("c1", "hang", json!({"deaf": deaf})),
                ("c2", "echo", json!({"word": "never"})),
            ]),
            Scene::text("after"),
        ]);
        let agent = builder(&provider).build();
        let mut stream = agent.run_stream("go");
        let cancel = stream.cancellation();
        let mut all = Vec::new();
        let begun = tokio::time::Instant::now();
        while let Some(event) = stream.next().await {
            if matches!(event, Event::ToolOutput { .. }) {
                cancel.cancel();
            }
            all.push(event);
        }
        assert!(
            begun.elapsed() < Duration::from_millis(300),
            "idle again within 300 ms"
        );
        assert!(matches!(all.last(), Some(Event::Canceled { .. })));
        assert!(!all.iter().any(|event| matches!(event, Event::Final { .. })));
        let results = last_results(&agent).await;
        assert!(results[0].0.starts_with(CANCELED_TEXT), "{}", results[0].0);
        assert_eq!(results[0].0.contains("half a line"), !deaf);
        assert_eq!(results[1], (CANCELED_TEXT.to_owned(), true));
        let finishes: Vec<_> = agent
            .history()
            .await
            .iter()
            .filter_map(|message| message.finish())
            .collect();
        assert_eq!(finishes, [FinishReason::Canceled]);
        assert_eq!(
            agent.run("again").await,
            Ok("after".to_owned()),
            "the next request is accepted"
        );
    }
}

/// LOOP-8: cancellation reaches the model's stream; the partial reply is kept, and the caller gets
/// `Canceled`.
#[tokio::test]
async fn cancel_in_the_stream() {
    let provider = provider([
        Scene::Hang(vec![ProviderEvent::ContentDelta("Once upon".to_owned())]),
        Scene::text("after"),
    ]);
    let agent = builder(&provider).build();
    let mut stream = agent.run_stream("go");
    let cancel = stream.cancellation();
    while let Some(event) = stream.next().await {
        if matches!(event, Event::Delta { .. }) {
            cancel.cancel();
        }
    }
    let history = agent.history().await;
    let last = history.last().expect("the partial reply");
    assert_eq!(
        (last.text().as_str(), last.finish()),
        ("Once upon", Some(FinishReason::Canceled))
    );

    let waiting = builder(&super::tests::provider([Scene::Hang(Vec::new())])).build();
    let mut stream = waiting.run_stream("go");
    stream.cancellation().cancel();
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(Event::Canceled { .. })));
}

/// LOOP-6: a call that takes too long is stopped and reports it, and the loop continues.
#[tokio::test(start_paused = true)]
async fn timed_out_call() {
    let provider = provider([Scene::call("c1", "hang", json!({})), Scene::text("moving on")]);
    let agent = builder(&provider).build();
    assert_eq!(agent.run("go").await, Ok("moving on".to_owned()));
    let expected = "Error: timed out after 30 s\nOutput so far:\nhalf a line";
    assert_eq!(last_results(&agent).await, [(expected.to_owned(), true)]);
}

/// LOOP-10: `done` ends the turn with its message; its result stays in history, and so do results for the
/// calls after it.
#[tokio::test]
async fn done_ends_the_turn() {
    let provider = provider([Scene::calls(vec![
        ("c1", "done", json!({"message": "All green."})),
        ("c2", "echo", json!({"word": "late"})),
    ])]);
    let agent = builder(&provider).build();
    assert_eq!(agent.run("go").await, Ok("All green.".to_owned()));
    let results = last_results(&agent).await;
    assert_eq!(results[0], ("Task complete".to_owned(), false));
    assert!(results[1].1, "the later call did not run: {}", results[1].0);
}

struct Answering(Result<(), Denial>);

#[async_trait::async_trait]
impl Approver for Answering {
    async fn approve(&self, _: &Proposal) -> Result<(), Denial> {
        self.0.clone()
    }
}

/// LOOP-11: a denial ends the turn and answers the other calls as canceled; with feedback it is a result and
/// the loop continues.
#[tokio::test]
async fn denial() {
    let scenes = || {
        [
            Scene::calls(vec![
                ("c1", "echo", json!({"word": "before"})),
                ("c2", "admin", json!({})),
                ("c3", "echo", json!({"word": "after"})),
            ]),
            Scene::text("understood"),
        ]
    };
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = builder(&provider(scenes())).tool(Admin(Arc::clone(&ran))).build();
    let error = agent.run("go").await.expect_err("nobody is there to ask");
    assert!(
        matches!(
            error,
            RunError::Failed {
                reason: FailureKind::PermissionDenied,
                ..
            }
        ),
        "{error:?}"
    );
    let results = last_results(&agent).await;
    let texts: Vec<_> = results.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["before", "Permission denied", CANCELED_TEXT]);
    let finishes: Vec<_> = agent
        .history()
        .await
        .iter()
        .filter_map(|message| message.finish())
        .collect();
    assert_eq!(finishes, [FinishReason::PermissionDenied]);

    let feedback = Denial {
        reason: None,
        feedback: Some("use the staging server".to_owned()),
    };
    let told = builder(&provider(scenes()))
        .tool(Admin(Arc::clone(&ran)))
        .approver(Answering(Err(feedback)))
        .build();
    assert_eq!(told.run("go").await, Ok("understood".to_owned()));
    let results = last_results(&told).await;
    assert_eq!(results[1], ("use the staging server".to_owned(), true));
    assert_eq!(results[2], ("after".to_owned(), false));
    assert_eq!(ran.load(Ordering::SeqCst), 0);

    let yes = builder(&provider(scenes()))
        .tool(Admin(Arc::clone(&ran)))
        .approver(Answering(Ok(())))
        .build();
    assert_eq!(yes.run("go").await, Ok("understood".to_owned()));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

struct NeverAnswers(Arc<tokio::sync::Notify>);

#[async_trait::async_trait]
impl Approver for NeverAnswers {
    async fn approve(&self, _: &Proposal) -> Result<(), Denial> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// LOOP-8: waiting for an approval can be canceled.
#[tokio::test(start_paused = true)]
async fn cancel_while_asking() {
    let asked = Arc::new(tokio::sync::Notify::new());
    let provider = provider([Scene::call("c1", "admin", json!({}))]);
    let agent = builder(&provider)
        .tool(Admin(Arc::default()))
        .approver(NeverAnswers(Arc::clone(&asked)))
        .build();
    let mut stream = agent.run_stream("go");
    let cancel = stream.cancellation();
    tokio::spawn(async move {
        asked.notified().await;
        cancel.cancel();
    });
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(Event::Canceled { .. })));
    assert_eq!(last_results(&agent).await, [(CANCELED_TEXT.to_owned(), true)]);
}

struct Strict;

impl PermissionHook for Strict {
    fn can_execute_tool(&self, proposal: &Proposal) -> Option<Decision> {
        match (proposal.tool.as_str(), proposal.arguments["word"].as_str()) {
            ("echo", Some("secret")) => {
                let feedback = Some("that word is not said here".to_owned());
                Some(Decision::Deny(Denial {
                    reason: None,
                    feedback,
                }))
            }
            ("echo", Some("careful")) => Some(Decision::Ask),
            ("admin", _) => Some(Decision::Allow),
            _ => None,
        }
    }
}

/// LOOP-14: the embedder's hook comes before the built-in rules: allow, deny or ask.
#[tokio::test]
async fn permission_hook() {
    let provider = provider([
        Scene::calls(vec![
            ("c1", "admin", json!({})),
            ("c2", "echo", json!({"word": "secret"})),
            ("c3", "echo", json!({"word": "plain"})),
        ]),
        Scene::call("c4", "echo", json!({"word": "careful"})),
    ]);
    let agent = builder(&provider)
        .tool(Admin(Arc::default()))
        .permission_hook(Strict)
        .build();
    let error = agent
        .run("go")
        .await
        .expect_err("`careful` asks, and nobody answers");
    assert!(matches!(
        error,
        RunError::Failed {
            reason: FailureKind::PermissionDenied,
            ..
        }
    ));
    let history = agent.history().await;
    let texts: Vec<_> = history
        .iter()
        .flat_map(|message| message.results())
        .map(|result| result.content.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "administered",
            "that word is not said here",
            "plain",
            "Permission denied"
        ]
    );
}

struct Watch {
    log: Arc<std::sync::Mutex<Vec<String>>>,
    stop_after: u32,
}

#[async_trait::async_trait]
impl Middleware for Watch {
    async fn before_iteration(&self, view: IterationView<'_>) -> Verdict {
        self.log
            .lock()
            .expect("log")
            .push(format!("before {}", view.iteration));
        Verdict::proceed()
    }
    async fn after_iteration(&self, view: IterationView<'_>) -> Verdict {
        self.log
            .lock()
            .expect("log")
            .push(format!("after {}", view.iteration));
        if view.iteration >= self.stop_after {
            Verdict::stop("that is enough")
        } else {
            Verdict::proceed()
        }
    }
}

/// LOOP-12: middleware runs around every iteration, in order, and may stop the turn.
#[tokio::test]
async fn middleware_around_iterations() {
    let scenes = || (0..4).map(|i| Scene::call("c", "echo", json!({"word": format!("w{i}")})));
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let agent = builder(&provider(scenes()))
        .middleware(Watch {
            log: Arc::clone(&log),
            stop_after: 2,
        })
        .build();
    let error = agent.run("go").await.expect_err("it is stopped");
    assert_eq!(error.to_string(), "that is enough");
    assert_eq!(
        *log.lock().expect("log"),
        ["before 1", "after 1", "before 2", "after 2"]
    );
}

/// LOOP-12: auto-compaction is a middleware; the summary replaces the middle, calls and results stay
/// together, and the next compaction receives the summary of the last.
#[tokio::test]
async fn auto_compaction() {
    let long = "x".repeat(4_000);
    let mut scenes: Vec<Scene> = Vec::new();
    for i in 0..12 {
        scenes.push(Scene::call(
            &format!("c{i}"),
            "echo",
            json!({"word": format!("{i}{long}")}),
        ));
    }
    scenes.push(Scene::text("finished"));
    // Summaries are requests to the same model, so they are scenes as well: one after each two rounds that
    // overflow.
    let provider = Arc::new(ScriptedProvider::new(with_summaries(scenes)).with_context_window(12_000));
    let agent = builder(&provider)
        .compaction(Some(CompactionConfig {
            threshold: 0.8,
            keep_recent: 2,
        }))
        .build();
    let events = events(&agent, "go").await;
    let compactions: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, Event::Session(SessionEvent::Compaction { .. })))
        .collect();
    assert!(!compactions.is_empty(), "{:?}", kinds(&events));
    assert!(
        matches!(events.last(), Some(Event::Final { .. })),
        "{:?}",
        events.last()
    );
    let mut summaries = provider.seen();
    summaries.retain(|seen| seen.contains("Summarize this part"));
    assert_eq!(summaries.len(), compactions.len());
    let second = summaries.get(1).expect("a second summary");
    assert!(second.contains("[Earlier summary]: the story so far"), "{second}");
}

/// The usage every scripted reply reports is small, so the pressure comes from the estimate: five rounds fill
/// the window.
fn with_summaries(scenes: Vec<Scene>) -> Vec<Scene> {
    let usage = |n: u64| crate::model::Usage {
        input: n,
        output: 10,
        ..Default::default()
    };
    let mut all = Vec::new();
    let mut filled = 0;
    for scene in scenes {
        let Scene::Reply(mut completion) = scene else {
            continue;
        };
        if filled >= 9_600 {
            all.push(Scene::text("the story so far"));
            filled = 2_000;
        }
        filled += 2_000;
        completion.usage = usage(filled);
        all.push(Scene::Reply(completion));
        // The next pressure is this usage plus the result that follows it.
        filled += 1_000;
    }
    all
}

struct OneModel;

impl ModelRegistry for OneModel {
    fn lookup(&self, id: &str) -> Option<Model> {
        let model = Model {
            id: id.to_owned(),
            context_window: 1,
            max_output: 1,
            price: Some(crate::model::Price {
                input: 1_000_000.0,
                ..Default::default()
            }),
            images: false,
            reasoning: false,
            known: true,
        };
        Some(model)
    }
}

/// LIB-1: usage tracking, model registry, output cap, tool choice, iteration limit and switching compaction
/// off.
#[tokio::test]
async fn builder_choices() {
    let provider = provider([
        Scene::call("c1", "echo", json!({"word": "0123456789"})),
        Scene::text("one"),
        Scene::call("c2", "echo", json!({"word": "x"})),
        Scene::text("summed up"),
    ]);
    let agent = builder(&provider)
        .compaction(None)
        .model_registry(&OneModel)
        .output_cap(Some(4))
        .tool_choice(ToolChoice::Required)
        .max_iterations(2)
        .build();
    assert_eq!(agent.run("a").await, Ok("one".to_owned()));
    assert_eq!(
        last_results(&agent).await[0].0,
        "0123\n\n[OUTPUT TRUNCATED: Showing 4 of 10 characters from echo]"
    );
    assert!(provider.seen()[0].contains("tool choice: Required"));
    let spent = agent.usage();
    assert_eq!((spent.turns, spent.usage.input, spent.cost_usd), (1, 200, 200.0));

    let limited = builder(&super::tests::provider([
        Scene::call("c", "echo", json!({"word": "x"})),
        Scene::text("summed up"),
    ]))
    .max_iterations(1)
    .usage_tracking(false)
    .build();
    let events = events(&limited, "b").await;
    assert!(matches!(
        events.last(),
        Some(Event::Final {
            finish: FinishReason::MaxIterations,
            ..
        })
    ));
    assert_eq!(limited.usage(), UsageSummary::default());
}

/// LOOP-9: the last-word request has no tools, and its prompt is not stored.
#[tokio::test]
async fn last_word_request() {
    let provider = provider([
        Scene::call("c", "echo", json!({"word": "x"})),
        Scene::text("summed up"),
    ]);
    let agent = builder(&provider).max_iterations(1).build();
    assert_eq!(agent.run("go").await, Ok("summed up".to_owned()));
    let seen = provider.seen();
    assert!(
        !seen[1].contains("tools:") && seen[1].contains("tool choice: None"),
        "{}",
        seen[1]
    );
    assert!(seen[1].contains("Sum up where you stand"));
    assert!(
        !agent
            .history()
            .await
            .iter()
            .any(|message| message.text().contains("Sum up"))
    );
}

/// LOOP-6: a provider failure ends the turn with its own message and hint, and the history can be continued.
#[tokio::test]
async fn provider_failure() {
    let provider = provider([
        Scene::fail(ProviderErrorKind::Auth, "invalid x-api-key"),
        Scene::text("better"),
    ]);
    let agent = builder(&provider).build();
    let error = agent.run("go").await.expect_err("no key");
    assert_eq!(error.to_string(), "invalid x-api-key");
    assert_eq!(agent.run("again").await, Ok("better".to_owned()));
}

/// Looks up
/// a word.
///
/// In two paragraphs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct LookUpInput {
    /// The word, with
    /// its accents.
    word: String,
    limit: Option<u32>,
}

struct LookUp;

impl Tool for LookUp {
    type Input = LookUpInput;
    const NAME: &'static str = "look_up";
    fn category(&self, _: &LookUpInput) -> Category {
        Category::Read
    }
    async fn run(&self, _: LookUpInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

/// TOOL-1 (S6.1): name, description and JSON Schema of a tool come from one Rust type, without details that a
/// model does not need.
#[test]
fn schema_from_the_type() {
    let tool = crate::tool::erase(LookUp);
    let spec = tool.spec();
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("look_up", "Looks up a word.\n\nIn two paragraphs.")
    );
    assert_eq!(
        *spec.schema,
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "word": { "description": "The word, with its accents.", "type": "string" },
                "limit": { "type": "integer" },
            },
            "required": ["word"],
        })
    );
}

/// LOOP-8: canceled while an overflowing context is being compacted, a turn ends as canceled and not as
/// failed.
#[tokio::test]
async fn cancel_while_compacting() {
    let mut scenes: Vec<Scene> = (0..4)
        .map(|i| Scene::call(&format!("c{i}"), "echo", json!({ "word": format!("w{i}") })))
        .collect();
    scenes.push(Scene::fail(ProviderErrorKind::ContextOverflow, "too long"));
    scenes.push(Scene::Hang(Vec::new()));
    let agent = builder(&provider(scenes))
        .compaction(Some(CompactionConfig {
            threshold: 0.9,
            keep_recent: 2,
        }))
        .build();
    let mut stream = agent.run_stream("go");
    let cancel = stream.cancellation();
    let mut last = None;
    while let Some(event) = stream.next().await {
        if matches!(&event, Event::Session(SessionEvent::Compacting { .. })) {
            cancel.cancel();
        }
        last = Some(event);
    }
    assert!(matches!(last, Some(Event::Canceled { .. })), "{last:?}");
}
