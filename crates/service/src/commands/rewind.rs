//! `/rewind`: restores the conversation and the files to their state before a message.

use std::fmt::Write;

use windlass_api::{Event, Message, Role, SessionEvent, user_messages};
use windlass_core::checkpoint::{Checkpoint, Checkpoints, Force};
use windlass_core::log::Entry;

use super::checkpoint::{FORCE, force, kept, place, refused, tell};
use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::format::cut;
use windlass_core::log::record;

/// Maximum number of messages listed.
const SHOWN: usize = 20;
/// Number of characters shown of a message.
const MESSAGE: usize = 70;
const KEEP_FILES: &str = "--keep-files";

pub(super) async fn rewind(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[KEEP_FILES, FORCE])?;
    let entries = record(cx.store(), &cx.info.id).await?;
    let said = user_messages(&entries);
    let Some(word) = words.get(0) else {
        return Ok(Said::text(list(&said)));
    };
    let number: u64 = word.parse().map_err(|_| Stop::Usage)?;
    cx.wait_for_turn()?;
    let Some((_, message)) = said.iter().find(|(seq, _)| *seq == number) else {
        return Err(Stop::Failed(format!(
            "Entry {number} is not one of your messages in this conversation; /rewind lists them."
        )));
    };
    let (mut moved, mut left) = (None, None);
    if let Some(checkpoints) = kept(cx).ok().filter(|_| !words.has(KEEP_FILES)) {
        let all = checkpoints.list().await.map_err(refused)?;
        left = files_left(&all, &entries, number);
        moved = files_back(&*checkpoints, &all, &entries, number, force(words)).await?;
    }
    match (cx.rewind(number - 1).await, moved) {
        (Ok(()), moved) => Ok(Said::text(format!(
            "The conversation continues from before \"{}\". Everything after it stays in the record.{}{}",
            cut(&message.user_text(), MESSAGE),
            moved.unwrap_or_default(),
            left.unwrap_or_default()
        ))),
        // The files are already restored, so this is reported in addition.
        (Err(error), Some(moved)) => Ok(Said::text(format!(
            "The conversation could not be rewound: {error}{moved}\n/redo restores the files."
        ))),
        (Err(error), None) => Err(error.into()),
    }
}

/// Restores files to their state before the first later turn that changed some, and reports it. A turn that a
/// rewind left behind counts as well: its changes may still be there.
async fn files_back(
    checkpoints: &dyn Checkpoints,
    all: &[Checkpoint],
    entries: &[Entry],
    number: u64,
    force: Force,
) -> Result<Option<String>, Stop> {
    let is_later = |checkpoint: &&Checkpoint| {
        let message = checkpoint.message.as_ref();
        let said = message.and_then(|message| place(entries, message));
        !checkpoint.undone && said.is_some_and(|said| said >= number)
    };
    let Some(first) = all.iter().find(is_later) else {
        return Ok(None);
    };
    let restored = checkpoints.rewind(first.number, force).await.map_err(refused)?;
    let mut told = "\nFiles are back to how they were:".to_owned();
    tell(&mut told, &restored);
    Ok(Some(told))
}

/// Returns the note for a message that was sent while a turn ran: the file changes of that turn are undone as
/// a whole or not at all.
fn files_left(all: &[Checkpoint], entries: &[Entry], number: u64) -> Option<String> {
    let (begin, message) = turn_of(entries, number)?;
    let is_its = |checkpoint: &Checkpoint| {
        checkpoint.message.as_ref() == Some(&message.id) && !checkpoint.undone && checkpoint.files > 0
    };
    all.iter().any(is_its).then(|| {
        format!(
            "\nThis was sent while \"{}\" was running. The file changes of that turn remain, because they are only undone \
             together: /rewind {begin} undoes them.",
            cut(&message.user_text(), MESSAGE)
        )
    })
}

/// Returns the message that started the turn in which another one was sent, with its number; `None` if that
/// message started a turn itself.
fn turn_of(entries: &[Entry], number: u64) -> Option<(u64, &Message)> {
    // A rewind is possible only while no turn runs, so no turn spans one.
    let is_over = |entry: &Entry| {
        entry.event.is_terminal() || matches!(entry.event, Event::Session(SessionEvent::Rewind { .. }))
    };
    let earlier = entries.iter().rev().skip_while(|entry| entry.seq >= number);
    let said = earlier.take_while(|entry| !is_over(entry)).filter_map(|entry| {
        let Event::Message { message } = &entry.event else {
            return None;
        };
        let is_new = message.role == Role::User && place(entries, &message.id) == Some(entry.seq);
        is_new.then_some((entry.seq, &**message))
    });
    said.last()
}

fn list(said: &[(u64, &Message)]) -> String {
    let mut text = String::new();
    for (number, message) in said.iter().rev().take(SHOWN) {
        let _ = writeln!(text, "{number:>5}  {}", cut(&message.user_text(), MESSAGE));
    }
    if text.is_empty() {
        return "No messages yet.".to_owned();
    }
    text + "/rewind N goes back to before one of them, files included; --keep-files leaves those."
}
