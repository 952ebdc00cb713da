//! Scheduling, observed from inside the tools.

use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use crate::agent::Agent;
use crate::clock::{Clock, SystemClock};
use crate::dispatch::Execution;
use crate::provider::Provider;
use crate::script::{Scene, ScriptedProvider};
use crate::tool::{AnyTool, Category, Prepared, ToolError, ToolOutput, ToolSpec, ToolTraits};
use crate::turn::Limits;

use super::*;

/// A tool that sleeps and records which other calls are running.
struct Sleeper {
    spec: ToolSpec,
    category: Category,
    exclusive: bool,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    running: Vec<String>,
    overlaps: Vec<(String, String)>,
}

impl AnyTool for Sleeper {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn traits(&self) -> ToolTraits {
        ToolTraits {
            exclusive: self.exclusive,
            ..ToolTraits::default()
        }
    }
    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let value = crate::tool::raw_arguments(arguments);
        let millis = value["ms"].as_u64().unwrap_or(10);
        let category = self.category;
        Ok(Prepared::new(category, value, move |cx| {
            Box::pin(async move {
                let me = cx.call_id.to_string();
                {
                    let mut log = self.log.lock().expect("log");
                    let others: Vec<_> = log
                        .running
                        .iter()
                        .map(|other| (other.clone(), me.clone()))
                        .collect();
                    log.overlaps.extend(others);
                    log.running.push(me.clone());
                }
                SystemClock::default().sleep(Duration::from_millis(millis)).await;
                self.log.lock().expect("log").running.retain(|other| *other != me);
                Ok(ToolOutput::text(format!("slept {me}")))
            })
        }))
    }
}

fn sleeper(name: &str, category: Category, exclusive: bool, log: &Arc<Mutex<Log>>) -> Arc<dyn AnyTool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema: json!({"type": "object"}).into(),
    };
    Arc::new(Sleeper {
        spec,
        category,
        exclusive,
        log: Arc::clone(log),
    })
}

/// Runs calls named by letter: `r`ead, `w`rite, e`x`clusive read. Returns overlaps, result order and
/// duration.
async fn schedule(calls: &[(char, u64)], mode: Execution) -> (Vec<(String, String)>, Vec<String>, Duration) {
    let log = Arc::new(Mutex::new(Log::default()));
    let mut tools = ToolSet::new();
    tools.insert(sleeper("r", Category::Read, false, &log));
    tools.insert(sleeper("w", Category::Write, false, &log));
    tools.insert(sleeper("x", Category::Read, true, &log));
    let ids: Vec<String> = calls
        .iter()
        .enumerate()
        .map(|(i, (kind, _))| format!("{kind}{i}"))
        .collect();
    let names: Vec<String> = calls.iter().map(|(kind, _)| kind.to_string()).collect();
    let scene = ids
        .iter()
        .zip(&names)
        .zip(calls)
        .map(|((id, name), (_, ms))| (id.as_str(), name.as_str(), json!({"ms": ms})));
    let provider = ScriptedProvider::new([Scene::calls(scene.collect()), Scene::text("done")]);
    let provider: Arc<dyn Provider> = Arc::new(provider);
    let agent = Agent::builder(provider)
        .tools(tools)
        .execution(mode)
        .limits(Limits::default())
        .build();
    let begun = tokio::time::Instant::now();
    agent.run("go").await.expect("an answer");
    let took = begun.elapsed();
    let history = agent.history().await;
    let order = history
        .iter()
        .flat_map(|message| message.results())
        .map(|result| result.call_id.to_string())
        .collect();
    let overlaps = std::mem::take(&mut log.lock().expect("log").overlaps);
    (overlaps, order, took)
}

/// LOOP-5: neighbouring reads run together, a write is a barrier; results keep call order.
#[tokio::test(start_paused = true)]
async fn auto_scheduling() {
    let calls = [
        ('r', 30),
        ('r', 10),
        ('w', 10),
        ('r', 10),
        ('r', 20),
        ('w', 10),
        ('w', 10),
    ];
    let (overlaps, order, took) = schedule(&calls, Execution::Auto).await;
    let overlaps: Vec<_> = overlaps.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(overlaps, [("r0", "r1"), ("r3", "r4")]);
    assert_eq!(order, ["r0", "r1", "w2", "r3", "r4", "w5", "w6"]);
    assert_eq!(took.as_millis(), 30 + 10 + 20 + 10 + 10);
}

/// LOOP-5: both forced modes; an exclusive tool never overlaps.
#[tokio::test(start_paused = true)]
async fn forced_scheduling() {
    let calls = [('w', 20), ('r', 20), ('x', 20), ('w', 20), ('r', 20)];
    let (overlaps, order, took) = schedule(&calls, Execution::Parallel).await;
    assert!(
        !overlaps
            .iter()
            .any(|(a, b)| a.starts_with('x') || b.starts_with('x')),
        "{overlaps:?}"
    );
    assert_eq!((took.as_millis(), order.len()), (60, 5));
    let (overlaps, _, took) = schedule(&calls, Execution::Sequential).await;
    assert_eq!((overlaps.len(), took.as_millis()), (0, 100));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// LOOP-5, LOOP-4: for any mix of calls and any mode, results keep call order, writes and exclusive tools
    /// run alone.
    #[test]
    fn scheduling_holds(calls in proptest::collection::vec((prop::sample::select(vec!['r', 'w', 'x']), 1u64..30), 1..14), mode in 0usize..3) {
        let mode = [Execution::Auto, Execution::Parallel, Execution::Sequential][mode];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("runtime");
        let (overlaps, order, _) = runtime.block_on(schedule(&calls, mode));
        let expected: Vec<_> = calls.iter().enumerate().map(|(i, (kind, _))| format!("{kind}{i}")).collect();
        prop_assert_eq!(order, expected);
        for (a, b) in overlaps {
            let both = format!("{a}{b}");
            prop_assert!(!both.contains('x'), "{} overlaps {}", a, b);
            prop_assert!(mode != Execution::Sequential);
            prop_assert!(mode == Execution::Parallel || !both.contains('w'), "{} overlaps {}", a, b);
        }
    }
}
