//! `/cost`.

use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Spent, SpentBy};

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::format::{called, cut, short, spent_table};

/// Maximum width of the first column.
const NAME: usize = 60;

pub(super) async fn cost(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &["--all"])?;
    let by = match words.get(0) {
        None | Some("model") => SpentBy::Model,
        Some("session") => SpentBy::Session,
        Some("cause") => SpentBy::Cause,
        Some("day") => SpentBy::Day,
        Some(_) => return Err(Stop::Usage),
    };
    // Grouping by session is useful only with the other sessions.
    let is_all = words.has("--all") || by == SpentBy::Session;
    let rows = match is_all {
        true => cx.store().spent_by(&cx.info.user, Timestamp(0), by).await?,
        false => cx.store().spent(Some(&cx.info.id), by).await?,
    };
    let today = cx.inner.factory.budget_left(cx.info).await;
    let today = today.map(|left| format!("\nToday: {left}")).unwrap_or_default();
    if rows.is_empty() {
        let more = if is_all { "" } else { " in this session" };
        return Ok(Said::text(format!(
            "No costs{more} yet. /cost --all covers all sessions.{today}"
        )));
    }
    let mut names = Vec::new();
    for row in &rows {
        names.push(name(cx, row, by).await?);
    }
    Ok(Said::text(format!("{}{today}", spent_table(&names, &rows))))
}

/// Returns the label of a row. The cost of a deleted session remains.
async fn name(cx: &CommandContext<'_>, row: &Spent, by: SpentBy) -> Result<String, Stop> {
    if by != SpentBy::Session {
        return Ok(cut(&row.of, NAME));
    }
    let id = SessionId::from(row.of.as_str());
    Ok(match cx.store().get(&id).await? {
        Some(info) => cut(&format!("{}  {}", short(&info), called(&info)), NAME),
        None => cut(&format!("{} (deleted)", row.of), NAME),
    })
}
