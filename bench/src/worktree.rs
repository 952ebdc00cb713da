//! Creates the worktree of a sub-agent.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tokio_util::sync::CancellationToken;
use windlass_worktree::Worktrees;

/// Options of the worktree.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorktreeOptions {
    /// Folder to copy.
    #[arg(long)]
    pub(crate) source: PathBuf,
    /// Folder that stores worktrees.
    #[arg(long)]
    pub(crate) state: PathBuf,
    /// Name of the worktree.
    #[arg(long)]
    pub(crate) name: String,
    /// Remove the worktree instead of creating it
    #[arg(long)]
    pub(crate) remove: bool,
}

pub(crate) fn worktree(options: &WorktreeOptions) -> Result<()> {
    let worktrees = Worktrees::new(&options.state, &std::env::vars().collect());
    let cancel = CancellationToken::new();
    if options.remove {
        worktrees.remove(&options.name, &cancel)?;
    } else {
        worktrees.create(&options.source, &options.name, &cancel)?;
    }
    Ok(())
}
