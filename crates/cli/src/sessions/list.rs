//! `windlass sessions list` and `search`.

use std::path::Path;

use windlass_core::log::{SessionInfo, SessionQuery, Store, UserName};
use windlass_service::format::{column, short_id, standing};

use super::{called, cut, line, print_json, short};
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::session_choice::{ago, problem};
use crate::terminal::say;
use windlass_args::ListOptions;
use windlass_config::Problem;

/// Maximum length of a title.
const TITLE: usize = 60;

/// Prints one line per session.
pub(super) async fn list(store: &dyn Store, options: &ListOptions) -> Result<Exit, Problem> {
    let place = match options.all {
        true => None,
        false => Some(place(options.place.as_deref())?),
    };
    let query = SessionQuery {
        user: options.user.0.clone(),
        place: place.clone(),
        // One more than is shown, to detect whether there are more.
        limit: if options.limit == 0 { 0 } else { options.limit + 1 },
        ..SessionQuery::default()
    };
    let mut found = store.list(&query).await.map_err(problem)?;
    let more = options.limit > 0 && found.len() > options.limit;
    if more {
        found.truncate(options.limit);
    }
    if options.json {
        return print_json(&found);
    }
    if found.is_empty() {
        match &place {
            Some(place) => say!(
                "No sessions in {} yet; `windlass exec \"…\"` starts one, `windlass sessions list --all` shows those of \
                 other folders.",
                line(place)
            ),
            None => say!("No sessions yet; `windlass exec \"…\"` starts one."),
        }
        return Ok(Exit::Ok);
    }
    for info in &found {
        say!("{}", row(info, options.all));
    }
    if more {
        say!("… and more: `-n 0` shows all");
    }
    Ok(Exit::Ok)
}

fn row(info: &SessionInfo, with_place: bool) -> String {
    let place = with_place.then(|| format!("  ({})", line(&info.place)));
    let mut place = place.unwrap_or_default();
    if !info.user.is_local() {
        place.push_str(&format!("  [{}]", info.user));
    }
    if let Some(wait) = &info.waits {
        place.push_str(&format!("  {}", line(&wait.to_string())));
    }
    format!(
        "{}  {:>10}  {}  {:<8}  {:>8}  {}{place}",
        short(info),
        ago(info.updated_at.0),
        column(info.totals.messages, "message", 4),
        standing(info.standing),
        info.totals.cost(),
        cut(&called(info), TITLE)
    )
}

/// Returns the folder as sessions spell it. It may no longer exist.
fn place(given: Option<&Path>) -> Result<String, Problem> {
    let here = working_directory(None)?;
    let Some(given) = given else {
        return Ok(here.display().to_string());
    };
    let path = here.join(given);
    Ok(path.canonicalize().unwrap_or(path).display().to_string())
}

/// Prints the matches of a search.
pub(super) async fn search(
    store: &dyn Store,
    words: &[String],
    (user, limit): (Option<&UserName>, usize),
    json: bool,
) -> Result<Exit, Problem> {
    let words = words.join(" ");
    let found = store.search(&words, user, limit).await.map_err(problem)?;
    if json {
        return print_json(&found);
    }
    if found.is_empty() {
        say!("No matches for: {}", line(&words));
    }
    for place in &found {
        let title = match place.title.as_str() {
            "" => "untitled".to_owned(),
            title => cut(title, TITLE),
        };
        let id = short_id(&place.session);
        say!("{id}  {title}\n    {}", line(&place.snippet));
    }
    Ok(Exit::Ok)
}
