//! Text output about sessions, for people. Nothing here sanitizes foreign text for a terminal: the printing
//! code must.

use windlass_api::{SessionId, SessionInfo};
use windlass_core::checkpoint::Checkpoint;
use windlass_core::clock::Timestamp;
use windlass_core::log::{SessionStatus, Spent};
pub use windlass_core::model::dollars;
use windlass_core::text::count;
pub use windlass_core::text::{column, cut, one_line};

/// Number of characters of a shortened id: its time part, which is rarely shared by two sessions.
const SHORT: usize = 13;

/// Returns the shortened id of a session.
pub fn short(info: &SessionInfo) -> String {
    short_id(&info.id)
}

/// Returns the shortened form of an id.
pub fn short_id(id: &SessionId) -> String {
    id.as_str().chars().take(SHORT).collect()
}

/// Returns the name or title of a session, on one line.
pub fn called(info: &SessionInfo) -> String {
    let title = info.label.title.as_deref().unwrap_or("untitled");
    let name = info.label.name.as_ref().map(|name| format!("{name}: "));
    one_line(&(name.unwrap_or_default() + title))
}

/// Returns the status of a session in one word.
pub fn standing(standing: SessionStatus) -> &'static str {
    match standing {
        SessionStatus::New => "new",
        SessionStatus::Working => "working",
        SessionStatus::Answered => "answered",
        SessionStatus::Canceled => "canceled",
        SessionStatus::Failed => "failed",
    }
}

/// Formats a date and time in UTC.
pub fn date(time: Timestamp) -> String {
    let millis = i64::try_from(time.0).unwrap_or_default();
    jiff::Timestamp::from_millisecond(millis)
        .map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// Formats a table of spending with a total. `names` are the labels of the rows.
pub fn spent_table(names: &[String], rows: &[Spent]) -> String {
    let widths = names.iter().map(|name| name.chars().count());
    let width = widths.max().unwrap_or(0).max(5);
    let mut text = format!(
        "{:<width$}  {:>6}  {:>12}  {:>12}  {:>12}  {:>10}",
        "", "calls", "input", "cached", "output", "cost"
    );
    let sum = Spent::total(rows);
    let total = std::iter::once((&sum.of, &sum));
    for (name, spent) in names.iter().zip(rows).chain(total) {
        let usage = &spent.usage;
        text.push_str(&format!(
            "\n{name:<width$}  {:>6}  {:>12}  {:>12}  {:>12}  {:>10}",
            spent.calls,
            usage.total_input(),
            usage.cache_read,
            usage.output,
            spent.cost()
        ));
    }
    text
}

/// Number of characters shown of the user's message.
pub(crate) const PROMPT: usize = 60;

/// Lists the checkpoints that changed files, latest first.
pub fn checkpoints(mut all: Vec<Checkpoint>, now: Timestamp) -> String {
    all.retain(|checkpoint| checkpoint.files > 0);
    if all.is_empty() {
        return "No checkpoints yet: no turn of this session has changed files.".to_owned();
    }
    let line = |checkpoint: &Checkpoint| {
        format!(
            "{:>3}  {:>10}  {:<9}  {}  \"{}\"{}",
            checkpoint.number,
            checkpoint.time.ago(now),
            count(checkpoint.files, "file"),
            checkpoint.tools.join(", "),
            cut(&checkpoint.prompt, PROMPT),
            if checkpoint.undone { "  (undone)" } else { "" }
        )
    };
    let lines: Vec<String> = all.iter().rev().map(line).collect();
    lines.join("\n")
}
