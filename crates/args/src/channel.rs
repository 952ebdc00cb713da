//! Arguments of `windlass channel`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SettingsOptions;

/// Text at the end of `windlass channel webhook --help`.
const WEBHOOK_HELP: &str = "\
Both directions are signed with the secret in WINDLASS_WEBHOOK_SECRET, as the Standard Webhooks
specification defines it. A bridge posts messages to /messages, each with the key of its
conversation, and gets answers and questions at --to:
  {\"key\": \"agent:main:telegram:group:family\", \"sender\": \"ann\", \"text\": \"what changed today?\"}

docs/channels.md has a complete bridge.";

#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    /// Talk to sessions through signed HTTP requests: the base for bridges to chats
    #[command(after_help = WEBHOOK_HELP)]
    Webhook(WebhookOptions),
}

#[derive(Debug, Args)]
pub struct WebhookOptions {
    /// Receive messages at this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8791")]
    pub listen: SocketAddr,
    /// Send answers and questions to this address
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Person who may answer permission requests and use commands, as the bridge names the sender; may be repeated
    /// [default: channel.approvers in the settings, or the sender of the message]
    #[arg(long, value_name = "SENDER")]
    pub approver: Vec<String>,
    /// Folder that new sessions work in [default: the current one]
    #[arg(short = 'C', long = "cd", value_name = "FOLDER")]
    pub cd: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingsOptions,
}
