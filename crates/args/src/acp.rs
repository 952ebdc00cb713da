//! Arguments of `windlass acp`.

use clap::Args;

use super::{ModeOptions, SettingsOptions};

/// Text at the end of `windlass acp --help`.
pub(super) const ACP_HELP: &str = "\
Your editor starts this command; there is nothing to type here. In Zed's settings:
  \"agent_servers\": { \"Windlass\": { \"type\": \"custom\", \"command\": \"windlass\", \"args\": [\"acp\"] } }

docs/editors.md has the setup of other editors. Standard output carries only the protocol;
problems are reported on standard error. Set a model up first, with `windlass connect` or a key in
the environment, or try it without one:
  windlass acp --provider sim";

#[derive(Debug, Args)]
pub struct AcpOptions {
    #[command(flatten)]
    pub settings: SettingsOptions,
    #[command(flatten)]
    pub mode: ModeOptions,
    /// Work in your home folder, or in a folder above it, if the editor opens it
    #[arg(long)]
    pub allow_home: bool,
}

impl AcpOptions {
    /// Returns the settings that the flags stand for.
    pub fn flags(&self) -> Vec<(&'static str, &'static str, String)> {
        self.mode.flags(self.allow_home)
    }
}
