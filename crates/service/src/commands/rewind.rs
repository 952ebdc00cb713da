//! `/rewind`: the conversation, and the files with it, as they were before a message.

use std::collections::HashSet;
use std::fmt::Write;

use windlass_api::{CallId, Event, MessageId, Role, own_call};
use windlass_core::checkpoint::Force;
use windlass_core::log::Entry;

use super::checkpoint::{FORCE, kept, refused, tell};
use super::{Desk, Outcome, Said, Stop, Words};
use crate::past::record;
use crate::telling::cut;

/// How many messages are listed.
const SHOWN: usize = 20;
/// How much is shown of a message.
const MESSAGE: usize = 70;
const KEEP_FILES: &str = "--keep-files";

pub(super) async fn rewind(desk: &mut Desk<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[KEEP_FILES, FORCE])?;
    let entries = record(desk.store(), &desk.live.info.id).await?;
    let Some(word) = words.get(0) else {
        return Ok(Said::text(list(&entries)));
    };
    let number: u64 = word.parse().map_err(|_| Stop::Usage)?;
    desk.wait_for_turn()?;
    let calls = calls(&entries);
    let found = entries.iter().find(|entry| entry.seq == number);
    let Some((_, text)) = found.and_then(said).filter(|(id, _)| !is_own(&calls, id)) else {
        return Err(Stop::Failed(format!(
            "Entry {number} is no message of yours; /rewind lists them."
        )));
    };
    let mut told = String::new();
    if !words.has(KEEP_FILES) {
        files_back(desk, &entries, number, words.has(FORCE), &mut told).await?;
    }
    desk.live.rewind(number - 1).await?;
    Ok(Said::text(format!(
        "The conversation goes on from before \"{}\". What came after stays in the record.{told}",
        cut(&text, MESSAGE)
    )))
}

/// Takes files back to before the first turn from there on that changed some.
async fn files_back(
    desk: &Desk<'_>,
    entries: &[Entry],
    number: u64,
    force: bool,
    told: &mut String,
) -> Result<(), Stop> {
    let Ok(checkpoints) = kept(desk) else {
        return Ok(());
    };
    let later = |message: &MessageId| {
        let mut later = entries.iter().filter(|entry| entry.seq >= number);
        later.any(|entry| said(entry).is_some_and(|(id, _)| id == message))
    };
    let all = checkpoints.list().await.map_err(refused)?;
    let first = all
        .iter()
        .find(|checkpoint| !checkpoint.undone && checkpoint.message.as_ref().is_some_and(later));
    let Some(first) = first else {
        return Ok(());
    };
    let force = if force { Force::Always } else { Force::Never };
    let restored = checkpoints.rewind(first.number, force).await.map_err(refused)?;
    told.push_str("\nFiles are back to how they were:");
    tell(told, &restored);
    Ok(())
}

/// What the user said in an entry, or what the model was told of a command of theirs: that one's files go back, too.
fn said(entry: &Entry) -> Option<(&MessageId, String)> {
    let Event::Message { message } = &entry.event else {
        return None;
    };
    if message.role != Role::User {
        return None;
    }
    let text = message.said();
    (!text.is_empty()).then_some((&message.id, text))
}

/// The calls that began.
fn calls(entries: &[Entry]) -> HashSet<&CallId> {
    let begun = entries.iter().filter_map(|entry| match &entry.event {
        Event::StepStart { call_id, .. } => Some(call_id),
        _ => None,
    });
    begun.collect()
}

/// Whether a message only tells the model of a command that the user ran.
fn is_own(calls: &HashSet<&CallId>, message: &MessageId) -> bool {
    calls.contains(&own_call(message))
}

fn list(entries: &[Entry]) -> String {
    let calls = calls(entries);
    let said = entries.iter().rev().filter_map(|entry| {
        let (id, text) = said(entry)?;
        (!is_own(&calls, id)).then_some((entry.seq, text))
    });
    let mut text = String::new();
    for (number, words) in said.take(SHOWN) {
        let _ = writeln!(text, "{number:>5}  {}", cut(&words, MESSAGE));
    }
    if text.is_empty() {
        return "Nothing has been said yet.".to_owned();
    }
    text + "/rewind N goes back to before one of them, files included; --keep-files leaves those."
}
