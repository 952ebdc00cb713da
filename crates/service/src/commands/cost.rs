//! `/cost`.

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
    let session = (!is_all).then_some(&cx.info.id);
    let rows = cx.store().spent(session, by).await?;
    if rows.is_empty() {
        return Ok(Said::text(if is_all {
            "No costs yet."
        } else {
            "No costs in this session yet. /cost --all covers all sessions."
        }));
    }
    let mut names = Vec::new();
    for row in &rows {
        names.push(name(cx, row, by).await?);
    }
    Ok(Said::text(spent_table(&names, &rows)))
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
