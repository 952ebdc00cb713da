//! Settings and records of the test environment, besides model and tools.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use windlass_core::checkpoint::{
    Changed, Checkpoint, CheckpointError, Checkpoints, FileChange, Force, Restored,
};
use windlass_core::clock::Timestamp;
use windlass_core::hook::Hooks;
use windlass_core::id::SessionId;
use windlass_core::log::Store;
use windlass_core::provider::Provider;
use windlass_core::turn::Limits;
use windlass_service::{Defined, Goals, NotReady, Titles, TurnStart};

/// Shared by all environments of a bed.
pub(crate) struct Kit {
    /// Starts of the turns.
    pub(crate) starts: Mutex<Vec<TurnStart>>,
    /// Error of the next plan, if it is to fail.
    pub(crate) not_ready: Mutex<Option<NotReady>>,
    /// True if planning a turn never finishes.
    pub(crate) is_stuck: Mutex<bool>,
    pub(crate) checkpoints: Mutex<Option<Arc<FakeCheckpoints>>>,
    pub(crate) defined: Mutex<Defined>,
    pub(crate) active: Mutex<(String, String)>,
    pub(crate) title_model: Mutex<Option<Arc<dyn Provider>>>,
    pub(crate) goals: Mutex<Goals>,
    /// Description of the environment for the model.
    pub(crate) surroundings: Mutex<Option<String>>,
    pub(crate) limits: Mutex<Limits>,
    /// Hooks that follow the sessions.
    pub(crate) hooks: Mutex<Hooks>,
}

impl Default for Kit {
    fn default() -> Self {
        Self {
            starts: Mutex::default(),
            not_ready: Mutex::default(),
            is_stuck: Mutex::default(),
            checkpoints: Mutex::default(),
            defined: Mutex::default(),
            active: Mutex::new(("first".to_owned(), "first-1".to_owned())),
            title_model: Mutex::default(),
            goals: Mutex::default(),
            surroundings: Mutex::default(),
            limits: Mutex::default(),
            hooks: Mutex::default(),
        }
    }
}

impl Kit {
    /// Waits until planning may finish.
    pub(crate) async fn prepare(&self) {
        let is_stuck = *self.is_stuck.lock().unwrap();
        if is_stuck {
            std::future::pending::<()>().await;
        }
    }

    /// Records a turn, and creates a checkpoint for it if they are on.
    pub(crate) fn begin(&self, turn: &TurnStart) -> Result<(), NotReady> {
        if let Some(why) = self.not_ready.lock().unwrap().take() {
            return Err(why);
        }
        self.starts.lock().unwrap().push(turn.clone());
        if let Some(checkpoints) = &*self.checkpoints.lock().unwrap() {
            checkpoints.add(turn);
        }
        Ok(())
    }

    pub(crate) fn keep_checkpoints(&self) -> Arc<FakeCheckpoints> {
        let kept = Arc::new(FakeCheckpoints::default());
        *self.checkpoints.lock().unwrap() = Some(Arc::clone(&kept));
        kept
    }

    pub(crate) fn titles(&self) -> Option<Arc<dyn Titles>> {
        let provider = self.title_model.lock().unwrap().clone()?;
        Some(Arc::new(TitleModel(provider)))
    }
}

struct TitleModel(Arc<dyn Provider>);

#[async_trait]
impl Titles for TitleModel {
    async fn provider(&self) -> Option<Arc<dyn Provider>> {
        Some(Arc::clone(&self.0))
    }
}

/// A session to open in this store, and its new owner.
pub(crate) type Takeover = (Arc<dyn Store>, SessionId, String);

/// Checkpoints of files that are not there: one per turn, each with one file.
#[derive(Default)]
pub(crate) struct FakeCheckpoints {
    all: Mutex<Vec<Checkpoint>>,
    /// Checkpoints of each undo that can be redone.
    undone: Mutex<Vec<Vec<u64>>>,
    /// Files that another program changed.
    pub(crate) conflict: Mutex<Vec<String>>,
    /// The owner of a session that is opened anew while files are taken back, so that its record is closed to the one here.
    pub(crate) lost: Mutex<Option<Takeover>>,
}

impl FakeCheckpoints {
    fn add(&self, turn: &TurnStart) {
        let mut all = self.all.lock().unwrap();
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
        let conflict = self.conflict.lock().unwrap().clone();
        if force == Force::Never && !conflict.is_empty() {
            return Err(CheckpointError::Conflict(conflict));
        }
        Ok(())
    }

    /// Marks checkpoints and reports the changes.
    fn set(&self, numbers: &[u64], undone: bool) -> Restored {
        let mut all = self.all.lock().unwrap();
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
        Ok(self.all.lock().unwrap().clone())
    }

    async fn show(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError> {
        let last = self.all.lock().unwrap().len() as u64;
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
        self.undone.lock().unwrap().push(numbers);
        let lost = self.lost.lock().unwrap().take();
        if let Some((store, session, owner)) = lost {
            store.open(&session, &owner).await.unwrap();
        }
        Ok(restored)
    }

    async fn redo(&self, force: Force) -> Result<Restored, CheckpointError> {
        self.allowed(force)?;
        let last = self.undone.lock().unwrap().pop();
        let numbers =
            last.ok_or_else(|| CheckpointError::Nothing("there is nothing to do again".to_owned()))?;
        Ok(self.set(&numbers, false))
    }
}
