//! Trust in a folder: what a project brings along does nothing until its user has seen it and said yes.
//!
//! Whoever writes a repository writes its `.windlass` too, and cloning must not be agreeing. The answer is bound to the
//! content ([`content::Snapshot`]) and kept in the user's own folder ([`store::TrustStore`]). [`look`] is the one way to a
//! project's files: it hands out what was checked, as bytes, so that nothing can change between the check and the use.

mod content;
mod store;

pub use self::content::{Covered, Snapshot};
pub use self::store::{TrustStore, Trusted};
use crate::folders::{Folders, Project};

/// How a project stands with the user.
#[derive(Debug)]
pub enum TrustState {
    /// The user said yes to exactly this.
    Trusted(Snapshot),
    /// Nobody said yes.
    Untrusted,
    /// The user said yes to something else.
    Changed,
    /// It was trusted, and is now something that cannot be.
    Unfit(String),
    /// It is not known what is trusted.
    Unknown(String),
}

/// Compares a project with what is trusted. Of a folder that nobody trusts, nothing is read.
pub fn look(folders: &Folders, project: &Project) -> TrustState {
    let store = match TrustStore::read(&folders.trust_file()) {
        Ok(store) => store,
        Err(why) => return TrustState::Unknown(why),
    };
    let Some(trusted) = store.find(&project.root) else {
        return TrustState::Untrusted;
    };
    match Snapshot::read(project) {
        Ok(snapshot) if snapshot.hash == trusted.hash => TrustState::Trusted(snapshot),
        Ok(_) => TrustState::Changed,
        Err(why) => TrustState::Unfit(why),
    }
}

impl TrustState {
    /// Why the project's files are not in effect, on one line; `None` when they are.
    pub fn notice(&self, project: &Project) -> Option<String> {
        let shows = "`windlass trust` shows what it would do";
        let why = match self {
            Self::Trusted(_) => return None,
            Self::Untrusted => format!("because this folder is not trusted; {shows}"),
            Self::Changed => format!("because it changed since this folder was trusted; {shows}"),
            Self::Unfit(why) => format!("because this folder cannot be trusted as it is now: {why}"),
            Self::Unknown(why) => format!("because nothing is trusted: {why}"),
        };
        Some(format!("{}: not in effect, {why}", project.folder().display()))
    }
}

/// Trusts a project as it is now, as `windlass trust --yes` does.
///
/// # Errors
/// When the project cannot be trusted, or the trust file cannot be written.
pub fn trust(folders: &Folders, project: &Project) -> Result<(), String> {
    let hash = Snapshot::read(project)?.hash;
    TrustStore::change(&folders.trust_file(), |store| store.insert(&project.root, hash))?
}
