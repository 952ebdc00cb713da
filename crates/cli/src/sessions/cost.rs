//! `windlass sessions cost`: spending.

use serde_json::json;
use windlass_core::id::SessionId;
use windlass_core::log::{Spent, SpentBy, Store};
use windlass_service::format::spent_table;

use super::{called, cut, line, print_json, short};
use crate::exit::Exit;
use crate::session_choice::{find, problem};
use crate::terminal::say;
use windlass_args::CostBy;
use windlass_config::Problem;

/// Maximum width of the first column.
const NAME: usize = 60;

/// Prints a table with a total.
pub(super) async fn cost(
    store: &dyn Store,
    session: Option<&str>,
    by: CostBy,
    json: bool,
) -> Result<Exit, Problem> {
    let session = match session {
        Some(called) => Some(find(store, called).await?.id),
        None => None,
    };
    let grouped = match by {
        CostBy::Session => SpentBy::Session,
        CostBy::Model => SpentBy::Model,
        CostBy::Cause => SpentBy::Cause,
        CostBy::Day => SpentBy::Day,
        CostBy::User => SpentBy::User,
    };
    let rows = store.spent(session.as_ref(), grouped).await.map_err(problem)?;
    if json {
        return print_json(&json!({ "rows": rows, "total": Spent::total(&rows) }));
    }
    if rows.is_empty() {
        say!("Nothing spent yet.");
        return Ok(Exit::Ok);
    }
    let mut names = Vec::new();
    for row in &rows {
        names.push(name(store, row, by).await?);
    }
    say!("{}", spent_table(&names, &rows));
    Ok(Exit::Ok)
}

/// Returns the name of a row. Spending includes deleted sessions.
async fn name(store: &dyn Store, row: &Spent, by: CostBy) -> Result<String, Problem> {
    if by != CostBy::Session {
        return Ok(cut(&row.of, NAME));
    }
    let id = SessionId::from(row.of.as_str());
    Ok(match store.get(&id).await.map_err(problem)? {
        Some(info) => cut(&format!("{}  {}", short(&info), called(&info)), NAME),
        None => line(&format!("{} (deleted)", row.of)),
    })
}
