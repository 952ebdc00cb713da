//! `/help`.

use std::fmt::Write;

use windlass_api::{CommandInfo, CommandSource};

use super::{CommandContext, Outcome, Said, Stop, Words, built_in, defined, unknown};

/// Maximum column at which the descriptions start.
const WIDEST: usize = 30;

pub(super) async fn help(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[])?;
    let files = cx.defined();
    let own: Vec<CommandInfo> = files.commands.iter().map(defined::info).collect();
    if let Some(name) = words.get(0) {
        let name = name.strip_prefix('/').unwrap_or(name);
        let all = built_in().into_iter().chain(own);
        let mut fits = all.filter(|info| info.name == name || info.aliases.iter().any(|alias| alias == name));
        let found = fits.next();
        let found = found.ok_or_else(|| Stop::Failed(unknown(name, &files.commands)))?;
        return Ok(Said::text(one(&found)));
    }
    let mut text = "Commands:".to_owned();
    list(&mut text, &built_in());
    if !own.is_empty() {
        text.push_str("\n\nPrompts, skills and your own commands:");
        list(&mut text, &own);
    }
    if !files.warnings.is_empty() {
        text.push_str("\n\nNot in effect:");
        for warning in &files.warnings {
            let _ = write!(text, "\n  {warning}");
        }
    }
    text.push_str("\n\n/help COMMAND says how one is written. All other input goes to the model.");
    Ok(Said::text(text))
}

/// Describes one command in full.
fn one(info: &CommandInfo) -> String {
    let mut text = format!("/{} {}", info.name, info.arguments).trim_end().to_owned();
    let _ = write!(text, "\n  {}", info.help);
    if !info.aliases.is_empty() {
        let aliases: Vec<String> = info.aliases.iter().map(|alias| format!("/{alias}")).collect();
        let _ = write!(text, "\n  The same: {}", aliases.join(", "));
    }
    match info.source {
        CommandSource::BuiltIn => {}
        CommandSource::User => text.push_str("\n  One of your own."),
        CommandSource::Project => text.push_str("\n  One of the project's."),
    }
    text
}

fn list(text: &mut String, commands: &[CommandInfo]) {
    let head = |info: &CommandInfo| match info.arguments.chars().count() {
        0..=18 => format!("/{} {}", info.name, info.arguments),
        _ => format!("/{} …", info.name),
    };
    let heads: Vec<String> = commands.iter().map(head).collect();
    let widths = heads.iter().map(|head| head.trim_end().chars().count());
    let width = widths.max().unwrap_or(0).min(WIDEST);
    for (head, info) in heads.iter().zip(commands) {
        let source = match info.source {
            CommandSource::Project => " (project)",
            CommandSource::BuiltIn | CommandSource::User => "",
        };
        let _ = write!(text, "\n  {:<width$}  {}{source}", head.trim_end(), info.help);
    }
}
