//! `windlass sessions show`: details and state of one session.

use serde_json::json;
use windlass_core::log::{SessionInfo, Store};
use windlass_service::past::Stood;

use windlass_core::log::record;
use windlass_service::format::{date, standing};

use super::{called, cut, line, print_json};
use crate::exit::Exit;
use crate::session_choice::{ago, find, problem};
use crate::terminal::say;
use windlass_config::Problem;

/// Maximum length of the last messages, in characters.
const SHOWN: usize = 400;

/// Prints the details, then the last messages.
pub(super) async fn show(store: &dyn Store, session: &str, json: bool) -> Result<Exit, Problem> {
    let info = find(store, session).await?;
    let entries = record(store, &info.id).await.map_err(problem)?;
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
    row("title", &called(info));
    if let Some(key) = &info.label.key {
        row("key", key);
    }
    row("folder", &info.place);
    if let Some((provider, model)) = &info.model {
        row("model", &format!("{model} ({provider})"));
    }
    row("state", standing(info.standing));
    if let Some(wait) = &info.waits {
        row("place", &wait.to_string());
    }
    row("messages", &totals.messages.to_string());
    let (read, wrote, held) = (
        totals.prompt_tokens,
        totals.completion_tokens,
        totals.context_tokens,
    );
    row(
        "tokens",
        &format!("{read} in, {wrote} out; {held} in the last request"),
    );
    row("cost", &totals.cost());
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
        row("summary", &format!("message {summary} replaces all earlier ones"));
    }
}
