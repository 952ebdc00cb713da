//! Long and failed results, as the model, the record and the store see them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::agent::{Agent, AgentBuilder};
use crate::clock::{Clock, SystemClock};
use crate::event::Event;
use crate::id::CallId;
use crate::message::ToolResult;
use crate::provider::Provider;
use crate::script::{Scene, ScriptedProvider};
use crate::tool::{
    AnyTool, Category, Kept, Outputs, Prepared, TOOL_OUTPUT, ToolError, ToolOutput, ToolSet, ToolSpec,
    ToolTraits,
};

type Answer = Result<ToolOutput, ToolError>;

/// Answers its calls from a list.
struct Scripted {
    spec: ToolSpec,
    category: Category,
    answers: Mutex<VecDeque<Answer>>,
}

impl Scripted {
    fn new(name: &str, category: Category, answers: Vec<Answer>) -> Arc<Self> {
        Arc::new(Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                schema: json!({"type": "object"}).into(),
            },
            category,
            answers: Mutex::new(answers.into()),
        })
    }

    fn left(&self) -> usize {
        self.answers.lock().expect("answers").len()
    }
}

impl AnyTool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn traits(&self) -> ToolTraits {
        ToolTraits::default()
    }
    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let (category, value) = (self.category, crate::tool::raw_arguments(arguments));
        Ok(Prepared::new(category, value, move |_| {
            Box::pin(async move {
                self.answers
                    .lock()
                    .expect("answers")
                    .pop_front()
                    .expect("an answer")
            })
        }))
    }
}

/// Remembers the stored outputs.
#[derive(Default)]
struct Shelf {
    full: bool,
    kept: Mutex<Vec<(String, String, usize)>>,
}

#[async_trait::async_trait]
impl Outputs for Shelf {
    async fn keep(&self, call: &CallId, tool: &str, content: &str) -> Option<String> {
        let mut kept = self.kept.lock().expect("kept");
        kept.push((call.to_string(), tool.to_owned(), content.chars().count()));
        (!self.full).then(|| format!("{tool}-{}", kept.len()))
    }
}

/// Calls the tool once. Returns its result, and all events.
async fn called(
    tool: &Arc<Scripted>,
    change: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> (ToolResult, Vec<Event>) {
    let name = tool.spec.name.clone();
    let provider: Arc<dyn Provider> = Arc::new(ScriptedProvider::new([
        Scene::call("c1", &name, json!({})),
        Scene::text("done"),
    ]));
    let mut tools = ToolSet::new();
    tools.insert(Arc::clone(tool) as Arc<dyn AnyTool>);
    let agent = change(Agent::builder(provider).tools(tools)).build();
    let events: Vec<Event> = agent.run_stream("go").collect().await;
    let history = agent.history().await;
    let result = history
        .iter()
        .flat_map(|message| message.results())
        .next()
        .cloned();
    (result.expect("a result"), events)
}

fn warnings(events: &[Event]) -> Vec<&str> {
    let mut found = Vec::new();
    for event in events {
        if let Event::Warning { message } = event {
            found.push(message.as_str());
        }
    }
    found
}

fn long(characters: usize) -> Answer {
    Ok(ToolOutput::text("é".repeat(characters)))
}

const NOTICE: &str = "[OUTPUT TRUNCATED: Showing 40,000 of 50,000 characters from big]";

/// TOOL-3 (S6.3), CTX-11: a long result is truncated between characters, stored whole, and reported once,
/// after its step.
#[tokio::test]
async fn a_long_result_is_cut_and_kept() {
    let shelf = Arc::new(Shelf::default());
    let tool = Scripted::new("big", Category::Write, vec![long(50_000)]);
    let (result, events) = called(&tool, |agent| agent.outputs(Arc::clone(&shelf) as _)).await;
    let shown = "é".repeat(40_000);
    let expected =
        format!("{shown}\n\n[The whole output is kept; read it with tool_output, id \"big-1\"]\n{NOTICE}");
    assert_eq!(result.content, expected);
    let kept = shelf.kept.lock().expect("kept").clone();
    assert_eq!(kept, [("c1".to_owned(), "big".to_owned(), 50_000)]);
    assert_eq!(
        warnings(&events),
        ["the output of big was cut for the model: 40,000 of 50,000 characters"]
    );
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted).expect("the event");
    let after = place(|event| matches!(event, Event::StepComplete { .. })) + 1;
    assert_eq!(place(|event| matches!(event, Event::Warning { .. })), after);
}

/// TOOL-3: without a store, with a full one, and for the reader of the store itself, only the notice is
/// added.
#[tokio::test]
async fn what_cannot_be_kept_is_cut_all_the_same() {
    let full = Arc::new(Shelf {
        full: true,
        ..Shelf::default()
    });
    let plain = format!("{}\n\n{NOTICE}", "é".repeat(40_000));
    let tool = Scripted::new("big", Category::Write, vec![long(50_000), long(50_000)]);
    let (result, events) = called(&tool, |agent| agent).await;
    assert_eq!(result.content, plain);
    assert_eq!(warnings(&events).len(), 1);
    let (result, _) = called(&tool, |agent| agent.outputs(Arc::clone(&full) as _)).await;
    assert_eq!(result.content, plain);
    assert_eq!(full.kept.lock().expect("kept").len(), 1);

    let shelf = Arc::new(Shelf::default());
    let reader = Scripted::new(TOOL_OUTPUT, Category::Read, vec![long(50_000)]);
    let (result, _) = called(&reader, |agent| agent.outputs(Arc::clone(&shelf) as _)).await;
    assert!(!result.content.contains("is kept"), "it was kept again");
    assert!(shelf.kept.lock().expect("kept").is_empty());
}

/// TOOL-3: a tool that stored its output itself is trusted about the location and the size.
#[tokio::test]
async fn an_output_is_kept_once() {
    let shelf = Arc::new(Shelf::default());
    for (whole, words) in [(true, "whole output"), (false, "beginning of the output")] {
        let output = ToolOutput {
            kept: Some(Kept {
                id: "bash-7".to_owned(),
                characters: 3_100_000,
                whole,
            }),
            ..ToolOutput::text("x".repeat(41_000))
        };
        let tool = Scripted::new("big", Category::Write, vec![Ok(output)]);
        let (result, events) = called(&tool, |agent| agent.outputs(Arc::clone(&shelf) as _)).await;
        let end = format!(
            "\n\n[The {words} is kept; read it with tool_output, id \"bash-7\"]\n\
             [OUTPUT TRUNCATED: Showing 40,000 of 3,100,000 characters from big]"
        );
        assert!(result.content.ends_with(&end), "{words}");
        assert_eq!(
            warnings(&events),
            ["the output of big was cut for the model: 40,000 of 3,100,000 characters"]
        );
    }
    assert!(shelf.kept.lock().expect("kept").is_empty());
}

/// TOOL-3: a result that fits stays unchanged, to the character, and so does every result if there is no
/// limit.
#[tokio::test]
async fn what_fits_is_left_alone() {
    let shelf = Arc::new(Shelf::default());
    for (characters, cap) in [(40_000, Some(40_000)), (50_000, None), (0, Some(1))] {
        let tool = Scripted::new("big", Category::Write, vec![long(characters)]);
        let (result, events) = called(&tool, |agent| {
            agent.outputs(Arc::clone(&shelf) as _).output_cap(cap)
        })
        .await;
        assert_eq!(result.content.chars().count(), characters);
        assert!(warnings(&events).is_empty());
    }
    assert!(shelf.kept.lock().expect("kept").is_empty());
}

fn busy() -> Answer {
    Err(ToolError::Transient("busy".to_owned()))
}

fn fine() -> Answer {
    Ok(ToolOutput::text("fine").with_details(json!({ "lines": 1 })))
}

/// TOOL-7: a read-only call is retried once after a transient error; no other call is, and none twice.
#[tokio::test(start_paused = true)]
async fn transient_errors_of_reads_are_tried_again() {
    let again = "Error (may work when tried again): busy";
    let permanent = || Err(ToolError::Permanent("gone".to_owned()));
    type Case = (Category, bool, Vec<Answer>, &'static str, Value, usize);
    let cases: Vec<Case> = vec![
        (
            Category::Read,
            true,
            vec![busy(), fine()],
            "fine",
            json!({"lines": 1, "retried": true}),
            0,
        ),
        (
            Category::Read,
            true,
            vec![busy(), Ok(ToolOutput::text("plain"))],
            "plain",
            json!({"retried": true}),
            0,
        ),
        (
            Category::Read,
            true,
            vec![busy(), busy(), fine()],
            again,
            json!({"error_kind": "transient", "retried": true}),
            1,
        ),
        (
            Category::Read,
            true,
            vec![busy(), permanent()],
            "Error: gone",
            json!({"error_kind": "permanent", "retried": true}),
            0,
        ),
        (
            Category::Read,
            true,
            vec![permanent(), fine()],
            "Error: gone",
            json!({"error_kind": "permanent"}),
            1,
        ),
        (
            Category::Read,
            false,
            vec![busy(), fine()],
            again,
            json!({"error_kind": "transient"}),
            1,
        ),
        (
            Category::Write,
            true,
            vec![busy(), fine()],
            again,
            json!({"error_kind": "transient"}),
            1,
        ),
    ];
    for (index, (category, retry, answers, content, details, left)) in cases.into_iter().enumerate() {
        let tool = Scripted::new("flaky", category, answers);
        let (result, _) = called(&tool, |agent| agent.retry_transient(retry)).await;
        assert_eq!(
            (result.content.as_str(), result.metadata),
            (content, Some(details)),
            "case {index}"
        );
        assert_eq!(tool.left(), left, "case {index}");
    }
}

/// A clock whose pauses last until they are dropped.
struct Stopped(SystemClock);

#[async_trait::async_trait]
impl Clock for Stopped {
    fn now(&self) -> crate::clock::Timestamp {
        self.0.now()
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

/// TOOL-7, LOOP-8: the delay before the retry uses the clock, and ends when the turn is canceled.
#[tokio::test]
async fn the_pause_can_be_canceled() {
    let tool = Scripted::new("flaky", Category::Read, vec![busy(), fine()]);
    let provider: Arc<dyn Provider> =
        Arc::new(ScriptedProvider::new([Scene::call("c1", "flaky", json!({}))]));
    let mut tools = ToolSet::new();
    tools.insert(Arc::clone(&tool) as Arc<dyn AnyTool>);
    let agent = Agent::builder(provider)
        .tools(tools)
        .clock(Arc::new(Stopped(SystemClock::default())))
        .build();
    let mut stream = agent.run_stream("go");
    let cancel = stream.cancellation();
    let mut results = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            // The first attempt has been made when this is yielded to.
            Event::ToolCall { .. } => {
                while tool.left() > 1 {
                    tokio::task::yield_now().await;
                }
                cancel.cancel();
            }
            Event::ToolResult { content, .. } => results.push(content),
            _ => {}
        }
    }
    assert_eq!(results, ["Tool execution canceled by user"]);
    assert_eq!(tool.left(), 1, "it was tried again");
}
