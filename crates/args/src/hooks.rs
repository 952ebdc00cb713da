//! Arguments of `windlass hooks`.

use clap::{Args, Subcommand};

use super::SettingsOptions;

#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// List the hooks with their files, their last runs, and why one did not run
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the hooks of an event as if it had happened, and print what each answered
    #[command(after_help = TEST_HELP)]
    Test(Box<HookTest>),
}

/// Text at the end of `windlass hooks test --help`.
const TEST_HELP: &str = "\
The hooks run for real, with their effects; the tool does not. Examples:
  windlass hooks test PreToolUse --tool bash --input '{\"command\": \"rm -rf build\"}'
  windlass hooks test PostToolUse --tool Edit --input '{\"path\": \"a.rs\", \"old_string\": \"a\", \"new_string\": \"b\"}'
  windlass hooks test UserPromptSubmit --input '{\"prompt\": \"hello\"}'
  windlass hooks test SessionStart --subject resume

Exit codes:
  0    no hook objected
  5    a hook denied it, or wants a person to be asked";

#[derive(Debug, Args)]
pub struct HookTest {
    /// The event: PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure, UserPromptSubmit, SessionStart,
    /// SessionEnd, Stop, SubagentStart, SubagentStop, PreCompact, PostCompact or Notification
    pub event: String,
    /// The tool of a call, by our name or Claude Code's
    #[arg(long)]
    pub tool: Option<String>,
    /// The arguments of the call, or further fields of another event, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// The value that matchers of other events are compared with, such as `startup` for SessionStart
    #[arg(long, default_value = "")]
    pub subject: String,
    #[command(flatten)]
    pub settings: SettingsOptions,
}
