//! One session: what is known about it, and where it stood.

use serde_json::json;
use windlass_api::{Event, FailureKind, Role};
use windlass_core::event::Waiting;
use windlass_core::log::{Entry, SessionInfo, Sessions, Standing};
use windlass_store::SqliteStore;

use super::record::{messages, record, said};
use super::{called, cut, date, dollars, line, print_json};
use crate::exit::{Exit, Problem};
use crate::keeping::{ago, find, problem, standing};
use crate::terminal::say;

/// How much is shown of what was said last.
const SHOWN: usize = 400;

/// Prints everything known, then the last words.
pub(super) async fn show(store: &SqliteStore, session: &str, json: bool) -> Result<Exit, Problem> {
    let info = find(store, session).await?;
    let entries = record(store, &info.id).await?;
    let holder = store.holder(&info.id).await.map_err(problem)?;
    let stood = Stood::of(&info, &entries, holder.as_deref());
    if json {
        return print_json(&json!({
            "session": info,
            "in_use_by": holder,
            "last_user_message": stood.asked,
            "last_answer": stood.answered,
            "note": stood.note,
        }));
    }
    facts(&info);
    for (what, text) in [("user", &stood.asked), ("answer", &stood.answered)] {
        if let Some(text) = text {
            say!("\nLast {what}:\n  {}", cut(text, SHOWN));
        }
    }
    if let Some(note) = &stood.note {
        say!("\n{}", line(note));
    }
    Ok(Exit::Ok)
}

fn facts(info: &SessionInfo) {
    let row = |what: &str, text: &str| say!("{what:<10} {}", line(text));
    let totals = &info.totals;
    row("session", info.id.as_str());
    row("called", &called(info));
    if let Some(key) = &info.label.key {
        row("key", key);
    }
    row("folder", &info.place);
    if let Some((provider, model)) = &info.model {
        row("model", &format!("{model} ({provider})"));
    }
    row("standing", standing(info.standing));
    row("messages", &totals.messages.to_string());
    let (read, wrote, held) = (
        totals.prompt_tokens,
        totals.completion_tokens,
        totals.context_tokens,
    );
    row(
        "tokens",
        &format!("{read} in, {wrote} out; the last request held {held}"),
    );
    row("cost", &dollars(totals.cost_usd));
    row(
        "created",
        &format!("{} ({})", date(info.created_at), ago(info.created_at.0)),
    );
    row(
        "updated",
        &format!("{} ({})", date(info.updated_at), ago(info.updated_at.0)),
    );
    if let Some(parent) = &info.parent {
        row("started by", parent.as_str());
    }
    if let Some(summary) = &info.summary {
        row(
            "summary",
            &format!("message {summary} stands for what came before it"),
        );
    }
}

/// Where a session stood.
struct Stood {
    asked: Option<String>,
    answered: Option<String>,
    note: Option<String>,
}

impl Stood {
    fn of(info: &SessionInfo, entries: &[Entry], holder: Option<&str>) -> Self {
        let messages = messages(entries.iter().map(|entry| &entry.event));
        let last = |role: Role, text: &dyn Fn(&windlass_api::Message) -> String| {
            let mut texts = messages
                .iter()
                .rev()
                .filter(|message| message.role == role)
                .map(|message| text(message));
            texts.find(|text| !text.trim().is_empty())
        };
        Self {
            asked: last(Role::User, &said),
            answered: last(Role::Assistant, &windlass_api::Message::text),
            note: note(info, entries, holder),
        }
    }
}

/// What somebody who comes back should know.
fn note(info: &SessionInfo, entries: &[Entry], holder: Option<&str>) -> Option<String> {
    if let Some(holder) = holder {
        let waits = question(entries).map(|question| format!(" It waits for an answer: {question}"));
        return Some(format!("In use by {holder}.{}", waits.unwrap_or_default()));
    }
    if info.standing == Standing::Working {
        let text = "It was stopped in the middle of a turn. Going on with it tells the model which calls may have run.";
        return Some(text.to_owned());
    }
    let end = entries
        .iter()
        .rev()
        .map(|entry| &entry.event)
        .find(|event| event.is_terminal())?;
    match end {
        Event::Failed {
            reason: FailureKind::Interrupted,
            ..
        } => Some("The last turn was interrupted: the program was stopped.".to_owned()),
        Event::Failed { message, .. } => Some(format!("The last turn failed: {message}")),
        Event::Canceled { .. } => Some("The last turn was canceled.".to_owned()),
        _ => None,
    }
}

/// The question that nobody has answered yet.
fn question(entries: &[Entry]) -> Option<String> {
    let mut open = None;
    for entry in entries {
        match &entry.event {
            Event::Waiting(Waiting::PermissionRequest {
                call_id,
                tool,
                subjects,
                ..
            }) => {
                open = Some((call_id, format!("may {tool} run: {}", subjects.join(" · "))));
            }
            Event::Waiting(Waiting::Question { call_id, text, .. }) => open = Some((call_id, text.clone())),
            Event::Waiting(Waiting::PermissionAnswer { call_id, .. }) | Event::ToolResult { call_id, .. } => {
                open = open.filter(|(asked, _)| *asked != call_id);
            }
            event if event.is_terminal() => open = None,
            _ => {}
        }
    }
    open.map(|(_, text)| text)
}
