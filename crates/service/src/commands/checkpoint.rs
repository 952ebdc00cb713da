//! `/checkpoint`, `/undo` and `/redo`: undoing and redoing the file changes of turns.

use std::fmt::Write;
use std::sync::Arc;

use windlass_api::{Event, MessageId, SessionEvent};
use windlass_core::checkpoint::{
    Changed, Checkpoint, CheckpointError, Checkpoints, FileChange, Force, Restored,
};
use windlass_core::log::Entry;

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::format::{PROMPT, checkpoints, cut};
use windlass_core::log::record;
use windlass_core::text::count;

/// Maximum number of lines shown of a diff.
const DIFF_LINES: usize = 200;

const CONVERSATION: &str = "--conversation";
pub(super) const FORCE: &str = "--force";

pub(super) async fn checkpoint(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(2, &[CONVERSATION, FORCE])?;
    match (words.get(0), words.get(1)) {
        (None | Some("list"), None) => list(cx).await,
        (Some("show"), Some(number)) => show(cx, number.parse().map_err(|_| Stop::Usage)?).await,
        (Some("rewind"), Some(number)) => {
            let number = number.parse().map_err(|_| Stop::Usage)?;
            cx.wait_for_turn()?;
            let checkpoints = kept(cx)?;
            rewind(cx, &*checkpoints, number, words).await
        }
        _ => Err(Stop::Usage),
    }
}

pub(super) async fn undo(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[CONVERSATION, FORCE])?;
    cx.wait_for_turn()?;
    let checkpoints = kept(cx)?;
    let all = checkpoints.list().await.map_err(refused)?;
    let is_open = |checkpoint: &&Checkpoint| !checkpoint.undone && checkpoint.files > 0;
    if let Some(last) = all.iter().rev().find(is_open) {
        return rewind(cx, &*checkpoints, last.number, words).await;
    }
    let mut text =
        "Nothing to undo: no turn of this session has changed files in its folder, or all is undone."
            .to_owned();
    uncovered(&mut text, &checkpoints.uncovered().await.map_err(refused)?);
    Err(Stop::Failed(text))
}

pub(super) async fn redo(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[FORCE])?;
    cx.wait_for_turn()?;
    let checkpoints = kept(cx)?;
    let restored = checkpoints.redo(force(words)).await.map_err(refused)?;
    let mut text = format!("Redid {}.", named(&restored.checkpoints));
    tell(&mut text, &restored);
    if let Some(line) = bring_back(cx, &restored).await? {
        let _ = write!(text, "\n{line}");
    }
    Ok(Said::text(text))
}

pub(super) fn kept(cx: &CommandContext<'_>) -> Result<Arc<dyn Checkpoints>, Stop> {
    cx.env
        .checkpoints()
        .ok_or_else(|| Stop::Failed("Checkpoints are off here.".to_owned()))
}

pub(super) fn force(words: &Words<'_>) -> Force {
    if words.has(FORCE) {
        Force::Always
    } else {
        Force::Never
    }
}

pub(super) fn refused(error: CheckpointError) -> Stop {
    Stop::Failed(match &error {
        CheckpointError::Conflict(_) => {
            format!("Nothing was changed, because some files were {error}. {FORCE} restores them anyway.")
        }
        _ => error.to_string(),
    })
}

async fn list(cx: &mut CommandContext<'_>) -> Outcome {
    let all = kept(cx)?.list().await.map_err(refused)?;
    Ok(Said::text(checkpoints(all, cx.inner.clock.now())))
}

async fn show(cx: &mut CommandContext<'_>, number: u64) -> Outcome {
    let changes = kept(cx)?.show(number).await.map_err(refused)?;
    if changes.is_empty() {
        return Ok(Said::text(format!(
            "The turn of checkpoint {number} changed no files."
        )));
    }
    let mut text = String::new();
    for change in &changes {
        let what = match change.what {
            Changed::Created => "created",
            Changed::Modified => "modified",
            Changed::Mode => "permissions changed",
            Changed::Deleted => "deleted",
            Changed::Replaced => "replaced",
        };
        let _ = writeln!(text, "{}: {what}", change.path);
        if let Some(diff) = &change.diff {
            shown(&mut text, diff);
        }
    }
    Ok(Said::text(text.trim_end()))
}

fn shown(text: &mut String, diff: &str) {
    for line in diff.lines().take(DIFF_LINES) {
        let _ = writeln!(text, "    {line}");
    }
    let more = diff.lines().count().saturating_sub(DIFF_LINES);
    if more > 0 {
        let _ = writeln!(text, "    … {}", count(more, "more line"));
    }
}

/// Restores files to a checkpoint, and the conversation on request. Obstacles are detected before anything is
/// changed.
async fn rewind(
    cx: &mut CommandContext<'_>,
    checkpoints: &dyn Checkpoints,
    number: u64,
    words: &Words<'_>,
) -> Outcome {
    let to = if words.has(CONVERSATION) {
        Some(before(cx, checkpoints, number).await?)
    } else {
        None
    };
    let restored = checkpoints.rewind(number, force(words)).await.map_err(refused)?;
    let mut text = format!("Undid {}.", named(&restored.checkpoints));
    tell(&mut text, &restored);
    match to {
        // The files are already restored, so this is reported in addition.
        Some(to) => match cx.rewind(to).await {
            Ok(()) => text.push_str("\nThe conversation continues from before that."),
            Err(error) => {
                let _ = write!(text, "\nThe conversation could not be rewound: {error}");
            }
        },
        None => text.push_str("\nThe conversation was not changed."),
    }
    text.push_str("\nTo redo: /redo, or `windlass redo`.");
    Ok(Said::text(text))
}

/// Returns the number of the last entry before the message of a checkpoint.
async fn before(cx: &CommandContext<'_>, checkpoints: &dyn Checkpoints, number: u64) -> Result<u64, Stop> {
    let all = checkpoints.list().await.map_err(refused)?;
    let last = all.last().map_or(0, |checkpoint| checkpoint.number);
    let found = all.iter().find(|checkpoint| checkpoint.number == number);
    let found = found.ok_or_else(|| refused(CheckpointError::Unknown { number, last }))?;
    let entries = record(cx.store(), &cx.info.id).await?;
    let said = found
        .message
        .as_ref()
        .and_then(|message| place(&entries, message));
    said.map(|seq| seq.saturating_sub(1)).ok_or_else(|| {
        Stop::Failed(format!(
            "Nothing was changed: the message that checkpoint {number} was made for is not in the record, so the \
             conversation cannot be taken back. Without {CONVERSATION} only files are."
        ))
    })
}

/// Returns the number of the entry in which a message first occurs.
pub(super) fn place(entries: &[Entry], wanted: &MessageId) -> Option<u64> {
    let found = entries
        .iter()
        .find(|entry| matches!(&entry.event, Event::Message { message } if message.id == *wanted));
    found.map(|entry| entry.seq)
}

/// After a redo of files: restores the conversation that was undone with them. Returns the report.
async fn bring_back(cx: &mut CommandContext<'_>, restored: &Restored) -> Result<Option<&'static str>, Stop> {
    let entries = record(cx.store(), &cx.info.id).await?;
    let first = restored.checkpoints.first();
    let message = first.and_then(|checkpoint| checkpoint.message.as_ref());
    let Some(said) = message.and_then(|message| place(&entries, message)) else {
        return Ok(None);
    };
    let is_undo = |entry: &&Entry| matches!(entry.event, Event::Session(SessionEvent::Rewind { to }) if to == said.saturating_sub(1));
    let Some(undo) = entries.iter().rev().find(is_undo) else {
        return Ok(None);
    };
    // An entry that was already restored, by a rewind to just before it.
    let is_back = |entry: &Entry| {
        entry.seq > undo.seq
            && matches!(entry.event, Event::Session(SessionEvent::Rewind { to }) if to == undo.seq.saturating_sub(1))
    };
    if entries.iter().any(is_back) {
        return Ok(None);
    }
    let went_on = |entry: &Entry| entry.seq > undo.seq && matches!(entry.event, Event::Message { .. });
    if entries.iter().any(went_on) {
        return Ok(Some("The conversation is unchanged: it has continued since."));
    }
    cx.rewind(undo.seq.saturating_sub(1)).await?;
    Ok(Some("The conversation was restored."))
}

/// Names checkpoints briefly.
fn named(checkpoints: &[Checkpoint]) -> String {
    match checkpoints {
        [] => "nothing".to_owned(),
        [one] => format!("checkpoint {} (\"{}\")", one.number, cut(&one.prompt, PROMPT)),
        [first, .., last] => format!("checkpoints {} to {}", first.number, last.number),
    }
}

/// Reports the change of each path, and the changes that are not covered.
pub(super) fn tell(text: &mut String, restored: &Restored) {
    for FileChange { path, what, .. } in &restored.changes {
        let what = match what {
            Changed::Created | Changed::Modified => "restored",
            Changed::Mode => "permissions restored",
            Changed::Deleted => "removed",
            Changed::Replaced => "replaced",
        };
        let _ = write!(text, "\n  {path}: {what}");
    }
    if restored.changes.is_empty() {
        text.push_str("\n  No file had to be changed.");
    }
    uncovered(text, &restored.uncovered);
}

fn uncovered(text: &mut String, lines: &[String]) {
    text.extend(lines.iter().map(|line| format!("\n  Not covered: {line}")));
}
