//! The decision whether to trust a project: its subject, and the effect of each answer. The callers do the
//! asking.

use super::review::review;
use windlass_config::folders::{Folders, Project};
use windlass_config::trust::{Snapshot, TrustStore as Store};
use windlass_config::{Problem, ProblemKind};

/// A snapshot of a project that the user decides about.
pub(super) struct Question<'a> {
    folders: &'a Folders,
    project: &'a Project,
    /// Both shown and stored, so the user decides about exactly these bytes, even if the files change
    /// meanwhile.
    snapshot: Snapshot,
    /// The answers so far. Never written back, because other processes may store answers while the user
    /// decides.
    store: Store,
}

impl<'a> Question<'a> {
    /// Reads the project.
    ///
    /// # Errors
    /// If the list of trusted folders cannot be read, or the project cannot be trusted.
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

    /// Describes the effects of the project for the user.
    ///
    /// # Errors
    /// If the project's settings are invalid.
    pub(super) fn text(&self) -> Result<String, Problem> {
        review(self.project, &self.snapshot).map_err(|error| {
            let text =
                format!("{error}\ncannot be trusted until this is fixed: it would stop every run here");
            Problem::new(ProblemKind::Config, text)
        })
    }

    /// Returns true if this content is trusted.
    pub(super) fn is_trusted(&self) -> bool {
        let known = self.store.find(&self.project.root);
        known.is_some_and(|known| known.hash == self.snapshot.hash)
    }

    /// Returns true if different content was trusted.
    pub(super) fn has_changed(&self) -> bool {
        self.store.find(&self.project.root).is_some() && !self.is_trusted()
    }

    /// Returns true if the user declined this content permanently.
    pub(super) fn is_declined(&self) -> bool {
        self.store.is_declined(&self.project.root, &self.snapshot.hash)
    }

    /// Trusts this content.
    pub(super) fn trust(self) -> Result<(), Problem> {
        let Self {
            project, snapshot, ..
        } = self;
        change(self.folders, |store| store.insert(&project.root, snapshot.hash))?
            .map_err(|why| Problem::new(ProblemKind::Failed, why))
    }

    /// Declines this content permanently.
    pub(super) fn decline(self) -> Result<(), Problem> {
        let Self {
            project, snapshot, ..
        } = self;
        change(self.folders, |store| store.decline(&project.root, snapshot.hash))
    }
}

/// Reads the list of trusted folders.
pub(super) fn store(folders: &Folders) -> Result<Store, Problem> {
    Store::read(&folders.trust_file()).map_err(|why| Problem::new(ProblemKind::Config, why))
}

/// Changes the current list of trusted folders.
pub(super) fn change<T>(folders: &Folders, change: impl FnOnce(&mut Store) -> T) -> Result<T, Problem> {
    Store::change(&folders.trust_file(), change).map_err(|why| Problem::new(ProblemKind::Failed, why))
}
