//! DIST-5: ports for the folders of sessions: what another server needs to rebuild one, and the way to another place.

use std::fmt;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LogError;
use crate::clock::Timestamp;
use crate::event::Event;
use crate::id::SessionId;

/// A place that no server has now. Sessions there wait for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceWait {
    /// The place: `host:NAME`, `volume:NAME` or `any`.
    pub place: String,
    /// Time at which the last server with it was lost or left; absent if the store never saw one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl PlaceWait {
    /// Returns the name of the place for people: that of a host without its kind.
    pub fn name(&self) -> &str {
        self.place.strip_prefix("host:").unwrap_or(&self.place)
    }
}

/// Formats as in `waits for alpha, gone since 12:03 UTC on 2026-11-19`.
impl fmt::Display for PlaceWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.since {
            Some(since) => write!(f, "waits for {}, gone since {}", self.name(), since.minute()),
            None => write!(f, "waits for {}, which no server has had", self.name()),
        }
    }
}

/// The one for whom a content is kept. It is removed with the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptFor {
    /// The description of a session's folder; replaced by the next one.
    Session(SessionId),
    /// Sessions in a folder, one of which is this one; kept while one of them exists.
    Folder(SessionId, String),
}

/// A description of a session's folder that is complete, so that the folder can be rebuilt from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRecord {
    /// The session.
    pub session: SessionId,
    /// Owner of the session that describes it.
    pub owner: String,
    /// The folder whose sessions share contents.
    pub folder: String,
    /// The description.
    pub document: String,
    /// Addresses of the contents that belong to this description alone.
    pub parts: Vec<String>,
}

/// A session that goes to another place.
#[derive(Debug, Clone, PartialEq)]
pub struct Relocation {
    /// The session.
    pub session: SessionId,
    /// Its fence before the move.
    pub fence: u64,
    /// Number of its last entry before the move.
    pub last_seq: u64,
    /// The new place.
    pub place: String,
    /// The folder there.
    pub folder: String,
    /// Event that records the move.
    pub event: Event,
}

/// Folders of sessions in a store that several servers share. Contents have their BLAKE3 digest as address.
#[async_trait]
pub trait SharedFolders: Send + Sync {
    /// Keeps stored contents, and returns the addresses of those that are missing.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn keep(&self, kept: &KeptFor, addresses: &[String]) -> Result<Vec<String>, LogError>;

    /// Stores and keeps contents.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn put(&self, kept: &KeptFor, contents: Vec<(String, Vec<u8>)>) -> Result<(), LogError>;

    /// Replaces the description of a session's folder.
    ///
    /// # Errors
    /// [`LogError::Lost`] if somebody else has had the session since; otherwise fails if the store cannot be written.
    async fn describe(&self, record: FolderRecord) -> Result<(), LogError>;

    /// Returns the description of a session's folder.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn description(&self, session: &SessionId) -> Result<Option<String>, LogError>;

    /// Returns contents, in any order, without those that are missing.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn contents(&self, addresses: &[String]) -> Result<Vec<(String, Vec<u8>)>, LogError>;

    /// Gives a session another place and folder, and records it. Nobody owns it afterwards.
    ///
    /// # Errors
    /// [`LogError::Busy`] if somebody works in it, [`LogError::Lost`] if somebody has worked in it since; otherwise fails
    /// if the store cannot be written. Then nothing changed.
    async fn relocate(&self, relocation: Relocation) -> Result<(), LogError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DIST-5: a wait names the host and the minute since which it is gone, in any year.
    #[test]
    fn a_wait_says_since_when() {
        let said = |place: &str, since: Option<u64>| {
            let (place, since) = (place.to_owned(), since.map(Timestamp));
            PlaceWait { place, since }.to_string()
        };
        let cases = [
            (
                "host:alpha",
                1_763_553_780_000,
                "waits for alpha, gone since 12:03 UTC on 2025-11-19",
            ),
            (
                "volume:work",
                1_709_251_199_999,
                "waits for volume:work, gone since 23:59 UTC on 2024-02-29",
            ),
            ("host:b", 0, "waits for b, gone since 00:00 UTC on 1970-01-01"),
            (
                "host:b",
                4_107_542_400_000,
                "waits for b, gone since 00:00 UTC on 2100-03-01",
            ),
        ];
        for (place, since, expected) in cases {
            assert_eq!(said(place, Some(since)), expected);
        }
        assert_eq!(said("any", None), "waits for any, which no server has had");
    }
}
