//! Long outputs are compressed, and nothing is lost.

use async_trait::async_trait;
use std::sync::Mutex;

use windlass_core::clock::SystemClock;
use windlass_core::id::CallId;
use windlass_core::provider::ProviderErrorKind;
use windlass_core::script::{Scene, ScriptedProvider};
use windlass_core::tool::{CallModel, Category, Person, Progress, Tool};

use super::*;

/// A tool with a long output.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Speech {
    words: usize,
}

struct Talk;

impl Tool for Talk {
    type Input = Speech;
    const NAME: &'static str = "bash";
    fn category(&self, _: &Speech) -> Category {
        Category::Read
    }
    async fn run(&self, speech: Speech, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("word ".repeat(speech.words)).with_details(json!({"exit_code": 0})))
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

#[async_trait]
impl Outputs for Kept {
    async fn keep(&self, _: &CallId, _: &str, content: &str) -> Option<String> {
        self.0.lock().unwrap().push(content.to_owned());
        Some("out-1".to_owned())
    }
}

struct Bed {
    kept: Arc<Kept>,
    booked: Arc<Mutex<u32>>,
    compressor: OutputCompressor,
}

fn bed(scenes: Vec<Scene>) -> Bed {
    let (kept, booked) = (Arc::new(Kept::default()), Arc::new(Mutex::new(0)));
    let count = Arc::clone(&booked);
    let compressor = OutputCompressor {
        limits: CompressionLimits {
            threshold: 100,
            target: 20,
            tools: vec!["bash".to_owned()],
            time: Duration::from_secs(20),
        },
        provider: Arc::new(ScriptedProvider::new(scenes)),
        outputs: Arc::clone(&kept) as _,
        session: "s".into(),
        clock: Arc::new(SystemClock::default()),
        count: Arc::new(|text| text.len() as u64 / 4),
        book: Arc::new(move |_, _| *count.lock().unwrap() += 1),
    };
    Bed {
        kept,
        booked,
        compressor,
    }
}

async fn call(bed: &Bed, words: usize) -> ToolOutput {
    output(bed, words, false).await
}

async fn output(bed: &Bed, words: usize, was_confirmed: bool) -> ToolOutput {
    let tool = windlass_core::tool::erase(Talk);
    let prepared = tool.prepare(&json!({"words": words}).to_string()).unwrap();
    let cx = ToolContext {
        call_id: "c1".into(),
        cancel: Default::default(),
        execution: Arc::default(),
        progress: Progress::none(),
        person: Person::nobody(),
        model: CallModel::none(),
        confirmed: false,
        places: Arc::default(),
    };
    let call = AdmittedCall {
        proposal: prepared.proposal(&cx.call_id, "bash", std::path::Path::new(".")),
        was_confirmed,
    };
    let result = prepared.run(cx.clone()).await;
    bed.compressor.after_call(&call, &cx, result).await.unwrap()
}

/// CTX-10: an output over the threshold is stored whole, then compressed, tagged and booked; a short one is
/// left alone.
#[tokio::test]
async fn long_outputs_are_compressed() {
    let bed = bed(vec![Scene::text("words, many of them")]);
    let short = call(&bed, 10).await;
    assert_eq!(short.content, "word ".repeat(10));
    let long = call(&bed, 1_000).await;
    assert_eq!(
        long.content,
        "[compressed by a model from 1250 to 4 tokens; tool_output {\"id\": \"out-1\"} shows all of it]\nwords, many of them"
    );
    let details = long.details.unwrap();
    assert_eq!(details["exit_code"], 0);
    assert_eq!(details["compressed"]["reference"], "out-1");
    assert_eq!(*bed.kept.0.lock().unwrap(), ["word ".repeat(1_000)]);
    assert_eq!(*bed.booked.lock().unwrap(), 1);
}

/// CTX-10: if the model fails, returns nothing or returns more than it was given, the output stays unchanged.
#[tokio::test]
async fn failures_leave_the_output() {
    for scene in [
        Scene::fail(ProviderErrorKind::Network, "gone"),
        Scene::text("  "),
        Scene::text(&"more ".repeat(2_000)),
    ] {
        let bed = bed(vec![scene]);
        assert_eq!(call(&bed, 1_000).await.content, "word ".repeat(1_000));
    }
}

/// CTX-10: outputs of calls that needed approval are not compressed, nor are those of unlisted tools.
#[tokio::test]
async fn approved_results_are_left_alone() {
    let bed = bed(vec![Scene::text("short")]);
    assert_eq!(output(&bed, 1_000, true).await.content, "word ".repeat(1_000));
    assert_eq!(*bed.booked.lock().unwrap(), 0);
}
