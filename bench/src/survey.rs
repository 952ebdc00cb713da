//! Scans a workspace as the first command of a turn does.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use windlass_checkpoint::{CheckpointLimits, Tracker};
use windlass_core::clock::SystemClock;

use windlass_sandbox::Workspace;

/// Options of the scan.
#[derive(Debug, Clone, Args)]
pub(crate) struct SurveyOptions {
    /// Path of the workspace.
    #[arg(long)]
    pub(crate) workspace: PathBuf,
    /// Folder that stores the state of the workspace.
    #[arg(long)]
    pub(crate) data: PathBuf,
}

pub(crate) fn survey(options: &SurveyOptions) -> Result<()> {
    let tracker = Tracker::new(
        &Workspace::new(&options.workspace, None),
        &options.data,
        &"bench".into(),
        Arc::new(SystemClock::default()),
        CheckpointLimits::default(),
    );
    if tracker.survey()? == 0 {
        bail!("nothing was found");
    }
    Ok(())
}
