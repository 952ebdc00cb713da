//! A call that the model has to make: `tool_choice` names the tool, so even a small model calls it.
//!
//! `cargo run --example forced_call` uses the simulated model. `cargo run --example forced_call -- URL` uses a server
//! of llama.cpp.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;
use windlass_core::agent::Agent;
use windlass_core::clock::SystemClock;
use windlass_core::event::Event;
use windlass_core::provider::ToolChoice;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};
use windlass_providers::preset::preset;
use windlass_providers::{HttpProvider, ProviderConfig, Transport, registry};
use windlass_sim::{Brain, Reply, Script, Sim, SimConfig};

/// Greets a person.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Person {
    /// First name of the person.
    name: String,
}

struct Greeting;

impl Tool for Greeting {
    type Input = Person;
    const NAME: &'static str = "greet";

    fn category(&self, _: &Person) -> Category {
        Category::Read
    }

    async fn run(&self, input: Person, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!("Hello, {}", input.name)))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // Of a test, the arguments are those of the test runner.
    let server = std::env::args().nth(1).filter(|text| text.starts_with("http://"));
    match server {
        Some(url) => writeln!(std::io::stdout(), "{}", greet(&url).await?)?,
        None => {
            let script = Script::new().reply(Reply::call("greet", json!({ "name": "Ada" })).forever());
            let sim = Sim::start(SimConfig {
                brain: Brain::script(script),
                ..SimConfig::default()
            })
            .await?;
            assert_eq!(greet(&sim.url()).await?, "Hello, Ada");
            assert!(sim.violations().is_empty());
        }
    }
    Ok(())
}

/// Returns the result of the first call.
async fn greet(url: &str) -> Result<String, Box<dyn Error>> {
    let preset = preset("llama.cpp").ok_or("there is no preset for llama.cpp")?;
    let config = ProviderConfig {
        name: preset.name.clone(),
        wire: preset.wire,
        base_url: url.to_owned(),
        key: None,
        key_hint: String::new(),
        headers: Vec::new(),
        quirks: preset.quirks,
        model: registry::lookup("local", &[]),
        reasoning: None,
        limits: Default::default(),
        retry: Default::default(),
    };
    let provider = HttpProvider::new(config, Transport::new(), Arc::new(SystemClock::default()))?;
    let agent = Agent::builder(Arc::new(provider) as Arc<_>)
        .system_prompt("You greet people.")
        .tool(Greeting)
        .tool_choice(ToolChoice::Tool("greet".to_owned()))
        .max_output(100)
        .max_iterations(1)
        .build();
    let mut stream = agent.run_stream("Greet Ada.");
    while let Some(event) = stream.next().await {
        match event {
            // The rest of the run is not waited for: the model would have to call again.
            Event::ToolResult {
                content,
                is_error: false,
                ..
            } => return Ok(content),
            Event::ToolResult { content, .. } => return Err(content.into()),
            Event::Failed { message, .. } => return Err(message.into()),
            _ => {}
        }
    }
    Err("the model did not call the tool".into())
}
