//! Trust in a folder: a project's own files have no effect until the user has seen and approved them.
//!
//! The authors of a repository also write its `.windlass`, and cloning must not imply consent. The decision
//! is bound to the content ([`content::Snapshot`]) and stored in the user's own folder
//! ([`store::TrustStore`]). [`look`] is the only way to a project's files: it returns the bytes that were
//! checked, so that nothing can change between the check and the use.

mod content;
mod hooks;
mod store;

pub use self::content::{Covered, FOREIGN_AGENTS, Snapshot};
pub use self::store::{TrustStore, Trusted};
use crate::folders::{Folders, Project};

/// Trust state of a project.
#[derive(Debug)]
pub enum TrustState {
    /// The user trusts exactly this content.
    Trusted(Snapshot),
    /// The user has not trusted the project.
    Untrusted,
    /// The user trusted different content.
    Changed,
    /// The project was trusted, and its current content cannot be.
    Unfit(String),
    /// The list of trusted folders cannot be read.
    Unknown(String),
}

/// Compares a project with the trusted content. In a folder that is not trusted, no files are read.
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
    /// Explains on one line why the project's files are not in effect; `None` if they are.
    pub fn notice(&self, project: &Project) -> Option<String> {
        let shows = "`windlass trust` shows what it would do";
        let why = match self {
            Self::Trusted(_) => return None,
            Self::Untrusted => format!("because this folder is not trusted; {shows}"),
            Self::Changed => format!("because it changed since this folder was trusted; {shows}"),
            Self::Unfit(why) => format!("because this folder cannot be trusted as it is now: {why}"),
            Self::Unknown(why) => format!("because nothing is trusted: {why}"),
        };
        let own = match project.folder().exists() {
            true => project.folder(),
            false if project.has_servers() => project.servers_file(),
            false => project.root.clone(),
        };
        Some(format!("{}: not in effect, {why}", own.display()))
    }
}

/// Trusts the project's current content, as `windlass trust --yes` does.
///
/// # Errors
/// If the project cannot be trusted, or the trust file cannot be written.
pub fn trust(folders: &Folders, project: &Project) -> Result<(), String> {
    let hash = Snapshot::read(project)?.hash;
    TrustStore::change(&folders.trust_file(), |store| store.insert(&project.root, hash))?
}
