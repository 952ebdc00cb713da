//! `/rewind`: the conversation, and the files with it, as they were before a message.

use std::fmt::Write;

use windlass_api::{Message, user_messages};
use windlass_core::checkpoint::{Checkpoint, Force};
use windlass_core::log::Entry;

use super::checkpoint::{FORCE, kept, place, refused, tell};
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
    let said = user_messages(&entries);
    let Some(word) = words.get(0) else {
        return Ok(Said::text(list(&said)));
    };
    let number: u64 = word.parse().map_err(|_| Stop::Usage)?;
    desk.wait_for_turn()?;
    let Some((_, message)) = said.iter().find(|(seq, _)| *seq == number) else {
        return Err(Stop::Failed(format!(
            "Entry {number} is no message of yours in this conversation; /rewind lists them."
        )));
    };
    let mut told = String::new();
    if !words.has(KEEP_FILES) {
        files_back(desk, &entries, number, words.has(FORCE), &mut told).await?;
    }
    desk.live.rewind(number - 1).await?;
    Ok(Said::text(format!(
        "The conversation goes on from before \"{}\". What came after stays in the record.{told}",
        cut(&message.said(), MESSAGE)
    )))
}

/// Takes files back to before the first turn from there on that changed some. One that a rewind left behind counts as well:
/// what it did may still be there.
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
    let is_later = |checkpoint: &&Checkpoint| {
        let message = checkpoint.message.as_ref();
        let said = message.and_then(|message| place(entries, message));
        !checkpoint.undone && said.is_some_and(|said| said >= number)
    };
    let all = checkpoints.list().await.map_err(refused)?;
    let Some(first) = all.iter().find(is_later) else {
        return Ok(());
    };
    let force = if force { Force::Always } else { Force::Never };
    let restored = checkpoints.rewind(first.number, force).await.map_err(refused)?;
    told.push_str("\nFiles are back to how they were:");
    tell(told, &restored);
    Ok(())
}

fn list(said: &[(u64, &Message)]) -> String {
    let mut text = String::new();
    for (number, message) in said.iter().rev().take(SHOWN) {
        let _ = writeln!(text, "{number:>5}  {}", cut(&message.said(), MESSAGE));
    }
    if text.is_empty() {
        return "Nothing has been said yet.".to_owned();
    }
    text + "/rewind N goes back to before one of them, files included; --keep-files leaves those."
}
