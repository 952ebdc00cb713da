//! The question whether to trust a project: what it is about, and what becomes of the answer. Who asks, and how, is theirs.

use super::review::review;
use windlass_config::folders::{Folders, Project};
use windlass_config::trust::{Snapshot, TrustStore as Store};
use windlass_config::{Problem, ProblemKind};

/// A project as it was when the question came up.
pub(super) struct Question<'a> {
    folders: &'a Folders,
    project: &'a Project,
    /// What is shown and what is remembered are the same bytes, whatever happens to the files meanwhile.
    snapshot: Snapshot,
    /// The answers so far. Others may answer while somebody thinks, so this is never written back.
    store: Store,
}

impl<'a> Question<'a> {
    /// Reads the project.
    ///
    /// # Errors
    /// When it is not known what is trusted, or this cannot be.
    pub(super) fn about(folders: &'a Folders, project: &'a Project) -> Result<Self, Problem> {
        let store = store(folders)?;
        let snapshot = Snapshot::read(project).map_err(|why| {
            let root = project.root.display();
            Problem::new(ProblemKind::Failed, format!("{root}: cannot be trusted: {why}"))
        })?;
        Ok(Self {
            folders,
            project,
            snapshot,
            store,
        })
    }

    /// What the project would do, for people.
    ///
    /// # Errors
    /// When it would do nothing but fail.
    pub(super) fn text(&self) -> Result<String, Problem> {
        review(self.project, &self.snapshot).map_err(|error| {
            let text =
                format!("{error}\ncannot be trusted until this is fixed: it would stop every run here");
            Problem::new(ProblemKind::Config, text)
        })
    }

    /// Whether the answer was yes.
    pub(super) fn is_trusted(&self) -> bool {
        let known = self.store.find(&self.project.root);
        known.is_some_and(|known| known.hash == self.snapshot.hash)
    }

    /// Whether the answer was yes to something else.
    pub(super) fn has_changed(&self) -> bool {
        self.store.find(&self.project.root).is_some() && !self.is_trusted()
    }

    /// Whether the answer was no, for good.
    pub(super) fn is_declined(&self) -> bool {
        self.store.is_declined(&self.project.root, &self.snapshot.hash)
    }

    /// The answer is yes.
    pub(super) fn trust(self) -> Result<(), Problem> {
        let Self {
            project, snapshot, ..
        } = self;
        change(self.folders, |store| store.insert(&project.root, snapshot.hash))?
            .map_err(|why| Problem::new(ProblemKind::Failed, why))
    }

    /// The answer is no, for good.
    pub(super) fn decline(self) -> Result<(), Problem> {
        let Self {
            project, snapshot, ..
        } = self;
        change(self.folders, |store| store.decline(&project.root, snapshot.hash))
    }
}

/// What is trusted.
pub(super) fn store(folders: &Folders) -> Result<Store, Problem> {
    Store::read(&folders.trust_file()).map_err(|why| Problem::new(ProblemKind::Config, why))
}

/// Changes what is trusted, as it is now.
pub(super) fn change<T>(folders: &Folders, change: impl FnOnce(&mut Store) -> T) -> Result<T, Problem> {
    Store::change(&folders.trust_file(), change).map_err(|why| Problem::new(ProblemKind::Failed, why))
}
