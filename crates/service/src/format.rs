//! Sessions in words, for people. Nothing here cleans foreign text for a terminal: whoever prints it does.

use windlass_api::{SessionId, SessionInfo};
use windlass_core::clock::Timestamp;
use windlass_core::log::{SessionStatus, Spent};
use windlass_core::model::Usage;
pub use windlass_core::model::dollars;

/// How much of an id is shown: the moment a session was made, which is seldom another one's too.
const SHORT: usize = 13;

/// The beginning of a session's id.
pub fn short(info: &SessionInfo) -> String {
    short_id(&info.id)
}

/// The same, of the id alone.
pub fn short_id(id: &SessionId) -> String {
    id.as_str().chars().take(SHORT).collect()
}

/// What a session is called, on one line.
pub fn called(info: &SessionInfo) -> String {
    let title = info.label.title.as_deref().unwrap_or("untitled");
    match &info.label.name {
        Some(name) => one_line(&format!("{name}: {title}")),
        None => one_line(title),
    }
}

/// A text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, cut after so many characters.
pub fn cut(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= most {
        return line;
    }
    let start: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// How a session stands, in a word.
pub fn standing(standing: SessionStatus) -> &'static str {
    match standing {
        SessionStatus::New => "new",
        SessionStatus::Working => "working",
        SessionStatus::Answered => "answered",
        SessionStatus::Canceled => "canceled",
        SessionStatus::Failed => "failed",
    }
}

/// A date and time of UTC.
pub fn date(time: Timestamp) -> String {
    let millis = i64::try_from(time.0).unwrap_or_default();
    jiff::Timestamp::from_millisecond(millis)
        .map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// What groups of calls came to, together.
pub fn total(rows: &[Spent]) -> Spent {
    let mut total = Spent {
        of: "total".to_owned(),
        calls: 0,
        usage: Usage::default(),
        cost_usd: 0.0,
    };
    for row in rows {
        total.calls += row.calls;
        total.usage.add(&row.usage);
        total.cost_usd += row.cost_usd;
    }
    total
}

/// A table of what was spent, with a sum. `names` are those of the rows.
pub fn spent_table(names: &[String], rows: &[Spent]) -> String {
    let widths = names.iter().map(|name| name.chars().count());
    let width = widths.max().unwrap_or(0).max(5);
    let mut text = format!(
        "{:<width$}  {:>6}  {:>12}  {:>12}  {:>12}  {:>10}",
        "", "calls", "input", "cached", "output", "cost"
    );
    let sum = total(rows);
    let total = std::iter::once((&sum.of, &sum));
    for (name, spent) in names.iter().zip(rows).chain(total) {
        let usage = &spent.usage;
        text.push_str(&format!(
            "\n{name:<width$}  {:>6}  {:>12}  {:>12}  {:>12}  {:>10}",
            spent.calls,
            usage.total_input(),
            usage.cache_read,
            usage.output,
            dollars(spent.cost_usd)
        ));
    }
    text
}
