//! The loop as a library: the same model, tools and sandbox as `windlass exec`, without a store.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tempfile::tempdir;
use windlass_core::agent::Agent;
use windlass_core::provider::Provider;
use windlass_tools::builtin;

use windlass_sandbox::process;

use crate::parts::{self, Told};

/// Options of the loop.
#[derive(Debug, Clone, Args)]
pub(crate) struct AloneOptions {
    /// Port of the server.
    #[arg(long)]
    pub(crate) port: u16,
    /// Recorded requests of Windlass, for the system prompt and the user's message.
    #[arg(long)]
    pub(crate) requests: PathBuf,
    /// Program that sets up the sandbox for commands.
    #[arg(long)]
    pub(crate) helper: PathBuf,
}

/// Runs one turn to its answer.
pub(crate) fn alone(options: &AloneOptions) -> Result<()> {
    let told = Told::read(&options.requests)?;
    let outputs = tempdir()?;
    let tools = parts::tools(&options.helper, outputs.path().join("outputs"))?;
    let kept = tools.outputs.clone();
    // Like `windlass exec`.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let _ = process::adopt_orphans();
        let provider: Box<dyn Provider> = Box::new(parts::provider(options.port)?);
        let mut agent = Agent::builder(provider)
            .tools(builtin(&tools))
            .system_prompt(told.system)
            .max_iterations(2_000)
            .execution_context(parts::execution("alone")?);
        if let Some(kept) = kept {
            agent = agent.outputs(kept);
        }
        agent.build().run(told.prompt).await?;
        Ok(())
    })
}
