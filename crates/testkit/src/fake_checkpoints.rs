//! Checkpoints without files.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use windlass_core::checkpoint::{
    Changed, Checkpoint, CheckpointError, Checkpoints, FileChange, Force, Restored,
};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::Store;
use windlass_service::TurnStart;

use crate::fake_env::locked;

/// A session to open in this store, and its new owner.
pub type Takeover = (Arc<dyn Store>, SessionId, String);

/// Checkpoints of files that are not there: one per turn, each with one file.
#[derive(Default)]
pub struct FakeCheckpoints {
    all: Mutex<Vec<Checkpoint>>,
    /// Checkpoints of each undo that can be redone.
    undone: Mutex<Vec<Vec<u64>>>,
    /// Files that another program changed.
    pub conflict: Mutex<Vec<String>>,
    /// Session that another owner opens while files are restored, so that its record is closed to this one.
    pub lost: Mutex<Option<Takeover>>,
}

impl FakeCheckpoints {
    pub(crate) fn add(&self, turn: &TurnStart) {
        let mut all = locked(&self.all);
        let number = all.len() as u64 + 1;
        all.push(Checkpoint {
            number,
            time: Timestamp(1),
            message: turn.message.clone(),
            prompt: turn.prompt.clone(),
            tools: vec!["write_file".to_owned()],
            files: 1,
            undone: false,
        });
    }

    fn allowed(&self, force: Force) -> Result<(), CheckpointError> {
        let conflict = locked(&self.conflict).clone();
        if force == Force::Never && !conflict.is_empty() {
            return Err(CheckpointError::Conflict(conflict));
        }
        Ok(())
    }

    /// Marks checkpoints and reports the changes.
    fn set(&self, numbers: &[u64], undone: bool) -> Restored {
        let mut all = locked(&self.all);
        let mut restored = Restored {
            uncovered: vec!["big.bin is larger than is kept".to_owned()],
            ..Restored::default()
        };
        for checkpoint in all.iter_mut().filter(|each| numbers.contains(&each.number)) {
            checkpoint.undone = undone;
            restored.checkpoints.push(checkpoint.clone());
            restored.changes.push(change(checkpoint.number));
        }
        restored
    }
}

fn change(number: u64) -> FileChange {
    FileChange {
        path: format!("file{number}.txt"),
        what: Changed::Modified,
        diff: Some("-old\n+new".to_owned()),
    }
}

#[async_trait]
impl Checkpoints for FakeCheckpoints {
    async fn list(&self) -> Result<Vec<Checkpoint>, CheckpointError> {
        Ok(locked(&self.all).clone())
    }

    async fn show(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError> {
        let last = locked(&self.all).len() as u64;
        if number == 0 || number > last {
            return Err(CheckpointError::Unknown { number, last });
        }
        Ok(vec![change(number)])
    }

    async fn rewind(&self, number: u64, force: Force) -> Result<Restored, CheckpointError> {
        self.show(number).await?;
        self.allowed(force)?;
        let all = self.list().await?;
        let from = all.iter().filter(|each| each.number >= number && !each.undone);
        let numbers: Vec<u64> = from.map(|each| each.number).collect();
        let restored = self.set(&numbers, true);
        locked(&self.undone).push(numbers);
        let lost = locked(&self.lost).take();
        if let Some((store, session, owner)) = lost {
            crate::must(
                store.open(&session, &owner).await,
                "another owner opens the session",
            );
        }
        Ok(restored)
    }

    async fn redo(&self, force: Force) -> Result<Restored, CheckpointError> {
        self.allowed(force)?;
        let last = locked(&self.undone).pop();
        let numbers =
            last.ok_or_else(|| CheckpointError::Nothing("there is nothing to do again".to_owned()))?;
        Ok(self.set(&numbers, false))
    }
}
