//! Commands that a subsystem of the session carries out: `/hooks`, `/skills`, `/mcp`, `/voice`, `/memory`, `/diff`.

use super::{CommandContext, Outcome, Said, Stop, Then, Words};
use crate::environment::ExtensionCommand;

/// Passes a command on to the subsystem of the same name.
pub(super) async fn extension(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    let name = words.command;
    let command = ExtensionCommand {
        name,
        arguments: words.raw.trim(),
        is_busy: cx.is_busy,
    };
    match cx.env.extension_command(&command).await {
        None => Err(Stop::Failed(format!("this session has no /{name}"))),
        Some(Err(text)) => Err(Stop::Failed(text)),
        Some(Ok(reply)) => Ok(Said {
            text: reply.text,
            then: reply.submit.map_or(Then::Nothing, Then::Submit),
        }),
    }
}
