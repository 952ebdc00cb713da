//! The loop as a library: the same model, tools and walls as `windlass exec`, and nothing kept.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tempfile::tempdir;
use windlass_core::agent::Agent;
use windlass_core::provider::Provider;
use windlass_tools::builtin;

use windlass_sandbox::process;

use crate::parts::{self, Told};

/// Whom to ask, and what.
#[derive(Debug, Clone, Args)]
pub(crate) struct AloneOptions {
    /// Where the server listens.
    #[arg(long)]
    pub(crate) port: u16,
    /// The recorded requests of Windlass, for what it told the model.
    #[arg(long)]
    pub(crate) requests: PathBuf,
    /// What puts up the wall that commands run behind.
    #[arg(long)]
    pub(crate) helper: PathBuf,
}

/// Runs one turn to its answer.
pub(crate) fn alone(options: &AloneOptions) -> Result<()> {
    let told = Told::read(&options.requests)?;
    let outputs = tempdir()?;
    let tools = parts::tools(&options.helper, outputs.path().join("outputs"))?;
    let kept = tools.outputs.clone();
    // As `windlass exec` has it.
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
