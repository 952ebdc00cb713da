//! A session as Markdown.

use std::fmt::Write;
use std::sync::Arc;

use windlass_api::{Event, Message, Part, Role, SessionInfo};
use windlass_core::log::Entry;
use windlass_core::message::FragmentSource;
use windlass_core::message::{ToolCall, ToolResult};
use windlass_core::text::fence;

use super::messages;
use crate::format::{called, date, one_line, standing};

/// Formats a session as Markdown. It contains foreign text, which must be sanitized for a terminal.
pub fn markdown(info: &SessionInfo, entries: &[Entry]) -> String {
    let mut text = head(info);
    let messages = messages(entries.iter().map(|entry| &entry.event));
    let mut rest = messages.as_slice();
    while let Some((message, after)) = rest.split_first() {
        let results = after.iter().take_while(|next| next.role == Role::Tool).count();
        let (tools, after) = after.split_at(results);
        write_message(&mut text, message, tools);
        rest = after;
    }
    end(&mut text, entries);
    text
}

fn head(info: &SessionInfo) -> String {
    let mut text = format!("# {}\n\n", called(info));
    let mut row = |what: &str, value: &str| {
        let _ = writeln!(text, "- {what}: {}", one_line(value));
    };
    row("session", info.id.as_str());
    row("folder", &info.place);
    if let Some((provider, model)) = &info.model {
        row("model", &format!("{model} ({provider})"));
    }
    row("from", &date(info.created_at));
    row("to", &date(info.updated_at));
    row("state", standing(info.standing));
    let totals = &info.totals;
    let (read, wrote) = (totals.prompt_tokens, totals.completion_tokens);
    row("tokens", &format!("{read} in, {wrote} out"));
    row("cost", &totals.cost());
    text
}

/// Heading under which an injected text is folded away.
fn heading(source: FragmentSource) -> &'static str {
    match source {
        FragmentSource::Environment => "Environment",
        FragmentSource::Reminder | FragmentSource::Prompt => "Reminder",
        FragmentSource::UserCommand => "Command of the user",
        FragmentSource::Quote => "Words of the user",
        FragmentSource::Reference => "Left out",
        FragmentSource::Fact => "Open",
        FragmentSource::Memory => "Memory",
        FragmentSource::Skill => "Skill",
        FragmentSource::Resource => "Resource",
        FragmentSource::Hook => "Hook",
        FragmentSource::Child => "Sub-agent",
    }
}

fn write_message(text: &mut String, message: &Message, tools: &[Arc<Message>]) {
    let is_injected = |part: &Part| match part {
        Part::Context(fragment) => fragment.source != FragmentSource::UserCommand,
        part => matches!(part, Part::Finish(_)),
    };
    let who = match message.role {
        // MSG-6: a message of the runtime, which a model reads in the user's place.
        Role::User if message.parts.iter().all(is_injected) => "Context",
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System => "System",
        // Results without the calls before them.
        Role::Tool => "Tools",
    };
    let _ = write!(text, "\n## {who}\n");
    let mut results: Vec<Option<&ToolResult>> =
        tools.iter().flat_map(|tool| tool.results()).map(Some).collect();
    for part in &message.parts {
        match part {
            Part::Text(part) => paragraph(text, &part.text),
            Part::Context(fragment) => fold(text, heading(fragment.source), &fragment.text),
            Part::Reasoning(part) if !part.text.trim().is_empty() => fold(text, "Reasoning", &part.text),
            Part::ToolCall(call) => {
                let of_call =
                    |slot: &Option<&ToolResult>| slot.is_some_and(|result| result.call_id == call.id);
                let place = results.iter().position(of_call);
                let result = place
                    .and_then(|place| results.get_mut(place))
                    .and_then(Option::take);
                write_call(text, call, result);
            }
            Part::ToolResult(result) => write_result(text, result),
            Part::Binary(file) => paragraph(text, &format!("*[{}: {}]*", file.mime, one_line(&file.path))),
            Part::ImageUrl(image) => {
                let url: String = image.url.chars().take(80).collect();
                paragraph(text, &format!("*[image: {}]*", one_line(&url)));
            }
            Part::Compaction(part) => fold(text, "Summary of what came before", &part.summary),
            Part::Compressed(part) => paragraph(text, &part.text),
            Part::Reasoning(_) | Part::Finish(_) | Part::Unknown(_) => {}
        }
    }
    for result in results.into_iter().flatten() {
        write_result(text, result);
    }
}

fn paragraph(text: &mut String, said: &str) {
    if !said.trim().is_empty() {
        let _ = write!(text, "\n{}\n", said.trim_end());
    }
}

fn fold(text: &mut String, title: &str, said: &str) {
    let said = said.trim().replace("</details>", "&lt;/details>");
    let _ = write!(
        text,
        "\n<details>\n<summary>{title}</summary>\n\n{said}\n\n</details>\n"
    );
}

fn write_call(text: &mut String, call: &ToolCall, result: Option<&ToolResult>) {
    let _ = write!(text, "\n**{}**\n", one_line(&call.name));
    let input: Option<serde_json::Value> = serde_json::from_str(&call.input).ok();
    let command = input
        .as_ref()
        .and_then(|input| input.get("command"))
        .and_then(|it| it.as_str());
    match (command, &input) {
        (Some(command), _) => fence(text, "sh", command),
        (None, Some(input)) => fence(text, "json", &format!("{input:#}")),
        (None, None) => fence(text, "", &call.input),
    }
    match result {
        Some(result) => write_result(text, result),
        None => paragraph(text, "*No result was recorded.*"),
    }
}

fn write_result(text: &mut String, result: &ToolResult) {
    let diff = result.metadata.as_ref().and_then(|details| details.get("diff"));
    let diff = diff
        .and_then(|diff| diff.as_str())
        .filter(|diff| !diff.is_empty());
    if result.is_error {
        paragraph(text, "*Failed:*");
    }
    match diff {
        Some(diff) => fence(text, "diff", diff),
        None if result.content.trim().is_empty() => {}
        None => fence(text, "", &result.content),
    }
}

/// Adds how the last turn ended, unless it ended with an answer.
fn end(text: &mut String, entries: &[Entry]) {
    let last = entries
        .iter()
        .rev()
        .map(|entry| &entry.event)
        .find(|event| event.is_terminal());
    match last {
        Some(Event::Failed { message, .. }) => {
            paragraph(text, &format!("*The last turn failed: {}*", one_line(message)));
        }
        Some(Event::Canceled { .. }) => paragraph(text, "*The last turn was canceled.*"),
        _ => {}
    }
}
