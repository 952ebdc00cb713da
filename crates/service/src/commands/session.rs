//! `/session`, `/clear` and `/rename`: lists, creates, names, copies, exports and deletes sessions.

use std::fmt::Write;

use windlass_api::{Begin, Label, SessionId, SessionInfo};
use windlass_core::log::SessionQuery;

use super::{CommandContext, Outcome, Said, Stop, Then, Words};
use crate::format::{called, column, cut, date, one_line, short, short_id, standing};
use crate::past::{self, Exported, Stood, markdown};
use windlass_core::log::record;
use windlass_core::text::count;

/// Number of sessions listed by default, and maximum number of search results.
const LISTED: usize = 20;
/// Maximum number of sessions that an error names.
const NAMED: usize = 5;
/// Number of characters shown of a title, and of the last message.
const TITLE: usize = 60;
const PREVIEW: usize = 140;

pub(super) async fn session(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    let Some(verb) = words.get(0) else {
        words.check(0, &[])?;
        let info = cx.stored_info().await?;
        return Ok(Said::text(format!("Current session: {}", whole_name(&info))));
    };
    match verb {
        "show" => show(cx, words).await,
        "list" => list(cx, words).await,
        "new" => {
            words.check(usize::MAX, &[])?;
            new(cx, &words.rest(1)).await
        }
        "resume" => resume(cx, words).await,
        "name" => name(cx, &words.rest(1)).await,
        "fork" => fork(cx, words).await,
        "delete" => delete(cx, words).await,
        "export" => export(cx, words).await,
        "search" => search(cx, words).await,
        // A server of a cluster carries it out before it gets here.
        "move" => Err(Stop::Failed(
            "only a session of a cluster can move to another place: `windlass serve --cluster`".to_owned(),
        )),
        _ => Err(Stop::Usage),
    }
}

pub(super) async fn clear(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    new(cx, "").await
}

pub(super) async fn rename(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    name(cx, &words.rest(0)).await
}

fn whole_name(info: &SessionInfo) -> String {
    format!("{} [{}] (id={})", called(info), short(info), info.id)
}

async fn show(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(2, &[])?;
    let info = match words.get(1) {
        Some(called) => find(cx, called).await?,
        None => cx.stored_info().await?,
    };
    let mut text = whole_name(&info);
    summary(cx, &info, &mut text).await?;
    Ok(Said::text(text))
}

/// Reports the last state of a session.
async fn summary(cx: &CommandContext<'_>, info: &SessionInfo, text: &mut String) -> Result<(), Stop> {
    let entries = record(cx.store(), &info.id).await?;
    let stood = Stood::of(info, &entries, None);
    let now = cx.inner.clock.now();
    let mut row = |what: &str, value: &str| {
        let _ = write!(text, "\n  {what:<9} {}", one_line(value));
    };
    row("folder", &info.place);
    if let Some((provider, model)) = &info.model {
        row("model", &format!("{model} ({provider})"));
    }
    row(
        "state",
        &format!(
            "{}, {}",
            standing(info.standing),
            count(info.totals.messages, "message")
        ),
    );
    row("cost", &info.totals.cost());
    row("created", &date(info.created_at));
    row(
        "updated",
        &format!("{} ({})", date(info.updated_at), info.updated_at.ago(now)),
    );
    for (what, said) in [("asked", &stood.asked), ("answered", &stood.answered)] {
        if let Some(said) = said {
            row(what, &cut(said, PREVIEW));
        }
    }
    if let Some(note) = &stood.note {
        row("note", note);
    }
    Ok(())
}

async fn list(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(2, &["--all"])?;
    let limit = match words.get(1) {
        None => LISTED,
        Some(number) => number.parse().map_err(|_| Stop::Usage)?,
    };
    let query = SessionQuery {
        user: Some(cx.info.user.clone()),
        place: (!words.has("--all")).then(|| cx.info.place.clone()),
        limit,
        ..SessionQuery::default()
    };
    let own = &cx.info.id;
    let mut found = cx.store().list(&query).await?;
    // A session without entries is not worth listing.
    found.retain(|info| info.id != *own || info.last_seq > 0);
    if found.is_empty() {
        return Ok(Said::text("No sessions found."));
    }
    let now = cx.inner.clock.now();
    let line = |info: &SessionInfo| {
        let waits = info.waits.as_ref().map(|wait| format!("  {wait}"));
        format!(
            "{} {}  {:>10}  {}  {:<8}  {:>8}  {}{}",
            if info.id == *own { "*" } else { " " },
            short(info),
            info.updated_at.ago(now),
            column(info.totals.messages, "message", 4),
            standing(info.standing),
            info.totals.cost(),
            cut(&called(info), TITLE),
            waits.unwrap_or_default()
        )
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    Ok(Said::text(lines.join("\n")))
}

async fn new(cx: &mut CommandContext<'_>, name: &str) -> Outcome {
    if !name.is_empty() {
        allow_name(cx, None, name).await?;
    }
    let begin = Begin::New {
        id: None,
        place: cx.info.place.clone(),
        label: Label {
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            ..Label::default()
        },
        parent: None,
    };
    let info = cx.instead(begin).await?;
    let old = short(cx.info);
    Ok(Said {
        text: format!(
            "Started new session: {} (id={}). The previous one is saved: /session resume {old}",
            short(&info),
            info.id
        ),
        then: Then::Session(Box::new(info)),
    })
}

async fn resume(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(usize::MAX, &[])?;
    let wanted = words.rest(1);
    if wanted.is_empty() {
        return Err(Stop::Usage);
    }
    let found = find(cx, &wanted).await?;
    if found.id == cx.info.id {
        return Ok(Said::text("This is the current session."));
    }
    let info = cx.instead(Begin::Resume(found.id)).await?;
    let mut text = format!("Resumed session {}", whole_name(&info));
    summary(cx, &info, &mut text).await?;
    Ok(Said {
        text,
        then: Then::Session(Box::new(info)),
    })
}

async fn name(cx: &mut CommandContext<'_>, name: &str) -> Outcome {
    if name.is_empty() {
        return Err(Stop::Usage);
    }
    let id = cx.info.id.clone();
    allow_name(cx, Some(&id), name).await?;
    let label = Label {
        name: Some(name.to_owned()),
        ..Label::default()
    };
    cx.store().label(&id, &label).await?;
    cx.info.label.name = Some(name.to_owned());
    Ok(Said::text(format!("Session named: {name}")))
}

async fn allow_name(cx: &CommandContext<'_>, own: Option<&SessionId>, name: &str) -> Result<(), Stop> {
    match past::name_problem(cx.store(), (&cx.info.user, own), name).await? {
        Some(why) => Err(Stop::Failed(why)),
        None => Ok(()),
    }
}

pub(super) async fn fork(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(usize::from(words.command == "session"), &[])?;
    let begin = Begin::Fork {
        of: cx.info.id.clone(),
        after: None,
        id: None,
        place: None,
    };
    let info = cx.instead(begin).await?;
    Ok(Said {
        text: format!("Forked session {} -> {}", cx.info.id, info.id),
        then: Then::Session(Box::new(info)),
    })
}

async fn delete(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(usize::MAX, &["--yes"])?;
    let wanted = words.rest(1);
    if wanted.is_empty() {
        return Err(Stop::Usage);
    }
    let found = find(cx, &wanted).await?;
    let what = format!(
        "{} ({})",
        whole_name(&found),
        count(found.totals.messages, "message")
    );
    if found.id == cx.info.id {
        let text = "Not deleted: this is the current session. Go to another one first, as with /clear.";
        return Err(Stop::Failed(text.to_owned()));
    }
    if !words.has("--yes") {
        return Err(Stop::Failed(format!(
            "Not deleted: {what}. It would be gone for good; /session delete {} --yes deletes it.",
            short(&found)
        )));
    }
    cx.store().delete(&found.id).await?;
    cx.service().forget(&found.id);
    cx.inner.factory.forget(&found.id).await;
    Ok(Said::text(format!("Deleted session: {what}")))
}

async fn export(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(2, &[])?;
    match words.get(1) {
        None | Some("markdown") => Ok(Said::text(exported(cx, false).await?)),
        Some("json") => Ok(Said::text(exported(cx, true).await?)),
        Some(_) => Err(Stop::Usage),
    }
}

async fn exported(cx: &CommandContext<'_>, is_json: bool) -> Result<String, Stop> {
    let info = cx.stored_info().await?;
    let entries = record(cx.store(), &info.id).await?;
    if is_json {
        let text = serde_json::to_string_pretty(&Exported::new(info, entries));
        return text.map_err(|error| Stop::Failed(error.to_string()));
    }
    Ok(markdown(&info, &entries))
}

/// Shows the session, or writes it to a file that does not exist yet.
pub(super) async fn export_to(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    let path = words.raw.trim();
    let text = exported(cx, path.ends_with(".json")).await?;
    if path.is_empty() {
        return Ok(Said::text(text));
    }
    let written = cx.files()?.write(path, &text, true);
    written.map_err(|why| Stop::Failed(format!("{path}: {why}")))?;
    let lines = count(text.lines().count(), "line");
    Ok(Said::text(format!("Exported {lines} to {path}")))
}

async fn search(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    let wanted = words.rest(1);
    if wanted.is_empty() {
        return Err(Stop::Usage);
    }
    let found = cx.store().search(&wanted, Some(&cx.info.user), LISTED).await?;
    if found.is_empty() {
        return Ok(Said::text(format!("No messages match: {wanted}")));
    }
    let lines = found.iter().map(|place| {
        let title = match place.title.as_str() {
            "" => "untitled".to_owned(),
            title => cut(title, TITLE),
        };
        format!(
            "{}  {title}\n    {}",
            short_id(&place.session),
            one_line(&place.snippet)
        )
    });
    Ok(Said::text(lines.collect::<Vec<_>>().join("\n")))
}

/// Returns the one session that matches.
async fn find(cx: &CommandContext<'_>, wanted: &str) -> Result<SessionInfo, Stop> {
    let mut found = past::find(cx.store(), Some(&cx.info.user), wanted).await?;
    match found.len() {
        0 => Err(Stop::Failed(format!(
            "Session not found: {wanted}. /session list shows those of this folder."
        ))),
        1 => Ok(found.swap_remove(0)),
        count => {
            let ids: Vec<&str> = found.iter().take(NAMED).map(|info| info.id.as_str()).collect();
            Err(Stop::Failed(format!(
                "Session '{wanted}' is ambiguous ({count} matches: {}{})",
                ids.join(", "),
                if count > NAMED { ", …" } else { "" }
            )))
        }
    }
}
