//! A custom tool in a dozen lines, and an agent that uses it.
//!
//! `cargo run --example own_tool` uses the simulated model, so it needs no key. For a real model, take the
//! address, the wire format and the quirks from `windlass_providers::preset::preset("anthropic")` and add a
//! key.

use std::error::Error;
use std::sync::Arc;

use serde_json::json;
use windlass_core::agent::Agent;
use windlass_core::clock::SystemClock;
use windlass_core::provider::Provider;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};
use windlass_providers::{HttpProvider, ProviderConfig, Quirks, Transport, Wire, registry};
use windlass_sim::{Brain, Reply, Script, Sim, SimConfig};

/// Counts the words of a text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountWords {
    /// The text whose words are counted.
    text: String,
}

struct WordCounter;

impl Tool for WordCounter {
    type Input = CountWords;
    const NAME: &'static str = "count_words";

    fn category(&self, _: &CountWords) -> Category {
        Category::Read
    }

    async fn run(&self, input: CountWords, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(
            input.text.split_whitespace().count().to_string(),
        ))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let script = Script::new()
        .reply(Reply::call(
            "count_words",
            json!({"text": "heave away, my johnnies"}),
        ))
        .reply(Reply::text("It has {{last_result}} words."));
    let sim = Sim::start(SimConfig {
        brain: Brain::script(script),
        ..SimConfig::default()
    })
    .await?;
    let agent = Agent::builder(model(&sim.url())?)
        .system_prompt("You count words.")
        .tool(WordCounter)
        .max_iterations(10)
        .build();

    let answer = agent.run("How many words has `heave away, my johnnies`?").await?;
    assert_eq!(answer, "It has 4 words.");

    // The agent keeps the conversation and its usage.
    assert_eq!(agent.history().await.len(), 4);
    assert_eq!(agent.usage().turns, 1);
    assert!(sim.violations().is_empty());
    Ok(())
}

fn model(base_url: &str) -> Result<Arc<dyn Provider>, Box<dyn Error>> {
    let config = ProviderConfig {
        name: "sim".to_owned(),
        wire: Wire::Anthropic,
        base_url: base_url.to_owned(),
        key: None,
        key_hint: String::new(),
        headers: Vec::new(),
        quirks: Quirks::default(),
        model: registry::lookup("sim-1", &[]),
        reasoning: None,
        limits: Default::default(),
        retry: Default::default(),
    };
    let provider = HttpProvider::new(config, Transport::new(), Arc::new(SystemClock::default()))?;
    Ok(Arc::new(provider))
}
