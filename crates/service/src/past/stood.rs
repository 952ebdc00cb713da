//! Last state of a session, for a user who returns to it.

use windlass_api::{Event, FailureKind, Message, Role, SessionInfo, Waiting};
use windlass_core::log::{Entry, SessionStatus};

use super::messages;

/// Last state of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stood {
    /// Last message of the user.
    pub asked: Option<String>,
    /// Last reply of the model.
    pub answered: Option<String>,
    /// Open question or last failure.
    pub note: Option<String>,
}

impl Stood {
    /// Reads the state; `holder` is the current owner of the session.
    pub fn of(info: &SessionInfo, entries: &[Entry], holder: Option<&str>) -> Self {
        let messages = messages(entries.iter().map(|entry| &entry.event));
        let last = |role: Role, text: &dyn Fn(&Message) -> String| {
            let mut texts = messages
                .iter()
                .rev()
                .filter(|message| message.role == role)
                .map(|message| text(message));
            texts.find(|text| !text.trim().is_empty())
        };
        Self {
            asked: last(Role::User, &Message::user_text),
            answered: last(Role::Assistant, &Message::text),
            note: note(info, entries, holder),
        }
    }
}

/// Returns the notice for a user who returns.
fn note(info: &SessionInfo, entries: &[Entry], holder: Option<&str>) -> Option<String> {
    if let Some(holder) = holder {
        let waits = question(entries).map(|question| format!(" It is waiting for an answer: {question}"));
        return Some(format!("In use by {holder}.{}", waits.unwrap_or_default()));
    }
    if info.standing == SessionStatus::Working {
        let text = "It was stopped in the middle of a turn. When you continue, the model learns which calls may have run.";
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

/// Returns the question that is still unanswered.
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
