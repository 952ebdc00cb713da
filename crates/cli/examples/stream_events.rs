//! The events of a run as they happen: pieces of the answer, calls, usage, and exactly one terminal event.
//!
//! `cargo run --example stream_events` uses the simulated model with the built-in tools, so it needs no key.

use std::error::Error;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;
use windlass_core::agent::Agent;
use windlass_core::clock::SystemClock;
use windlass_core::event::{DeltaKind, Event};
use windlass_core::permission::Policy;
use windlass_core::tool::ExecutionContext;
use windlass_providers::{HttpProvider, ProviderConfig, Quirks, Transport, Wire, registry};
use windlass_sim::{Brain, Reply, Script, Sim, SimConfig};
use windlass_tools::{ToolsConfig, builtin};

use windlass_sandbox::child_environment;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let script = Script::new()
        .reply(Reply::call("bash", json!({"command": "echo heave"})).say("I will ask the shell."))
        .reply(Reply::text("The shell said {{last_result}}.").delta_chars(4));
    let sim = Sim::start(SimConfig {
        brain: Brain::script(script),
        ..SimConfig::default()
    })
    .await?;
    let folder = tempfile::tempdir()?;
    let agent = agent(&sim.url(), folder.path())?;

    let mut stream = agent.run_stream("What does the shell say?");
    let mut answer = String::new();
    let mut story = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Event::Delta {
                kind: DeltaKind::Text,
                text,
            } => answer.push_str(&text),
            Event::Text { text } => {
                // Text before a call is not part of the answer.
                answer.clear();
                story.push(format!("said: {text}"));
            }
            Event::StepStart { title, .. } => story.push(format!("step: {title}")),
            Event::ToolResult { content, .. } => story.push(format!("result: {content}")),
            Event::Final { content, .. } => story.push(format!("final: {content}")),
            Event::Failed { message, .. } => return Err(message.into()),
            // `stream.cancellation().cancel()` stops a run; the stream then ends with `Canceled`.
            _ => {}
        }
    }
    assert_eq!(answer, "The shell said heave.");
    assert_eq!(
        story,
        [
            "said: I will ask the shell.",
            "step: bash echo heave",
            "result: heave",
            "final: The shell said heave.",
        ]
    );
    Ok(())
}

fn agent(base_url: &str, folder: &std::path::Path) -> Result<Agent, Box<dyn Error>> {
    let config = ProviderConfig {
        name: "sim".to_owned(),
        wire: Wire::Responses,
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
    let context = ExecutionContext {
        cwd: folder.to_owned(),
        env: child_environment(std::env::vars(), folder, "example"),
        session: None,
    };
    Ok(Agent::builder(Arc::new(provider) as Arc<_>)
        .system_prompt("You work with a shell.")
        .tools(builtin(&ToolsConfig::default()))
        .execution_context(context)
        .policy(Policy::default())
        .build())
}
