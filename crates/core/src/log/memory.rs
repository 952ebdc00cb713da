//! Ports of memory: units of what was said, the words they contain, their vectors, and searches that found nothing.
//!
//! A unit belongs to one scope: a project, named by its folder, or the user, with an empty name; both are written as
//! [`UserName::scoped`](super::UserName::scoped) writes names. Every search names its scopes, and the words of a scope are kept apart from those of all others.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::LogError;
use crate::clock::Timestamp;
use crate::id::SessionId;

/// Kind of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Something that was said in a session.
    Said,
    /// A note that was saved on purpose.
    Note,
    /// A correction by the user.
    Lesson,
    /// A preference of the user.
    Preference,
}

impl MemoryKind {
    /// Every kind with its name in the store.
    pub const NAMES: [(Self, &'static str); 4] = [
        (Self::Said, "said"),
        (Self::Note, "note"),
        (Self::Lesson, "lesson"),
        (Self::Preference, "preference"),
    ];

    /// Returns the name in the store.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind)
    }
}

/// A unit of memory, word for word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUnit {
    /// Number of the unit. Units that were said one after the other have consecutive numbers.
    pub id: u64,
    /// Folder of the project, or nothing for the user.
    pub scope: String,
    /// Kind.
    pub kind: MemoryKind,
    /// Author: `user`, `assistant`, or a name.
    pub speaker: String,
    /// Session it comes from, if any.
    pub session: Option<SessionId>,
    /// Entry of the session; 0 if there is none.
    pub seq: u64,
    /// The text.
    pub text: String,
    /// Number of words.
    pub length: u32,
    /// Time at which it was said.
    pub time: Timestamp,
    /// True if every session of its scope starts with it.
    pub pinned: bool,
    /// True if the user saved or confirmed it.
    pub confirmed: bool,
}

/// A unit to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUnit {
    /// Kind.
    pub kind: MemoryKind,
    /// Author.
    pub speaker: String,
    /// Entry of the session; 0 if there is none.
    pub seq: u64,
    /// The text.
    pub text: String,
    /// Time at which it was said.
    pub time: Timestamp,
    /// True if every session of its scope starts with it.
    pub pinned: bool,
    /// True if the user saved or confirmed it.
    pub confirmed: bool,
    /// Its words with their number of occurrences.
    pub words: Vec<(String, u32)>,
}

/// Source of units.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemorySource {
    /// Folder of the project, or nothing for the user.
    pub scope: String,
    /// The session, if they come from one.
    pub session: Option<SessionId>,
}

/// A session with entries that memory has not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The session.
    pub session: SessionId,
    /// Last entry that was read.
    pub after: u64,
    /// Last entry.
    pub last: u64,
}

/// Selects units.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryQuery {
    /// Scopes; empty for all.
    pub scopes: Vec<String>,
    /// Kinds; empty for all.
    pub kinds: Vec<MemoryKind>,
    /// True for pinned units only.
    pub pinned: bool,
    /// Maximum number; 0 for all.
    pub limit: usize,
}

/// Changes to a unit. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryChange {
    /// Pins or unpins it.
    pub pinned: Option<bool>,
    /// Confirms it.
    pub confirmed: Option<bool>,
}

/// Keeps units.
#[async_trait]
pub trait MemoryUnits: Send + Sync {
    /// Keeps units, in order, and records that the session was read up to an entry. Returns their numbers.
    ///
    /// # Errors
    /// Fails if they cannot be written; none is kept then.
    async fn keep_units(
        &self,
        source: &MemorySource,
        units: Vec<NewUnit>,
        read_to: u64,
    ) -> Result<Vec<u64>, LogError>;

    /// Returns sessions of a scope's user and folder with entries that were not read, the oldest first. Sub-agents are
    /// not among them.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn unread(&self, scope: &str) -> Result<Vec<Unread>, LogError>;

    /// Returns units by their numbers, in that order, without those that do not exist.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn units(&self, ids: &[u64]) -> Result<Vec<MemoryUnit>, LogError>;

    /// Returns units, the newest first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn list_units(&self, query: &MemoryQuery) -> Result<Vec<MemoryUnit>, LogError>;

    /// Changes a unit. Returns false if it does not exist.
    ///
    /// # Errors
    /// Fails if the change cannot be written.
    async fn change_unit(&self, id: u64, change: MemoryChange) -> Result<bool, LogError>;

    /// Removes units and every copy of their text: from memory, from the record of sessions, from its index, and from
    /// unused parts of the files. Returns the number of units removed.
    ///
    /// # Errors
    /// Fails if something cannot be removed.
    async fn forget_units(&self, ids: &[u64]) -> Result<u64, LogError>;
}

/// Occurrences of the words of a question in one scope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryPostings {
    /// Number of units in the scope.
    pub units: u64,
    /// Number of words in all of them.
    pub length: u64,
    /// The words, the rarest first. A word that does not occur is not among them.
    pub words: Vec<WordPostings>,
}

/// Occurrences of one word.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WordPostings {
    /// The word.
    pub word: String,
    /// Number of units with the word.
    pub units: u64,
    /// Unit, number of occurrences, and number of words of the unit, in the order of the units. Empty if the word was
    /// too common for the limit.
    pub places: Vec<(u64, u32, u32)>,
}

/// A vector of a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector {
    /// The unit.
    pub unit: u64,
    /// Signs of its components, for a first selection.
    pub sketch: Vec<u8>,
    /// Its components: a scale, as four bytes with the lowest first, then one signed byte each.
    pub vector: Vec<u8>,
}

/// A search that failed or found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMiss {
    /// Always `memory_miss`.
    pub outcome_type: String,
    /// The question, at most 512 characters.
    pub query: String,
    /// Strategy that was tried: `fulltext`, `semantic`, `graph` or `hybrid`.
    pub strategy: String,
    /// An error, or `no_results`.
    pub error: String,
    /// The session.
    pub session_id: String,
    /// Time in seconds since 1970.
    pub ts: u64,
}

/// Number of units, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MemoryStats {
    /// Units by scope and kind.
    pub units: Vec<(String, String, u64)>,
    /// Vectors by model.
    pub vectors: Vec<(String, u64)>,
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Number of searches that found nothing.
    pub misses: u64,
}

/// Finds units.
#[async_trait]
pub trait MemoryIndex: Send + Sync {
    /// Returns the occurrences of words in a scope. Common words are left out beyond `most` occurrences in total.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn postings(&self, scope: &str, words: &[String], most: usize) -> Result<MemoryPostings, LogError>;

    /// Returns the vectors of units that one model made, without those that do not exist.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn vectors(&self, model: &str, ids: &[u64]) -> Result<Vec<(u64, Vec<u8>)>, LogError>;

    /// Returns at most `limit` sketches of one model in a scope, of units after a number, in order.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn sketches(
        &self,
        model: &str,
        scope: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, LogError>;

    /// Returns the units of the scopes whose vectors of one model are nearest to a vector, the nearest first. `None` if
    /// the store cannot compare vectors, so that sketches are needed; a store that can also says so for `most` = 0.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn nearest(
        &self,
        _model: &str,
        _scopes: &[String],
        _vector: &[f32],
        _most: usize,
    ) -> Result<Option<Vec<u64>>, LogError> {
        Ok(None)
    }

    /// Keeps vectors of a model. Units that do not exist any more are skipped, and vectors of other models removed.
    ///
    /// # Errors
    /// Fails if they cannot be written.
    async fn keep_vectors(&self, model: &str, vectors: Vec<UnitVector>) -> Result<(), LogError>;

    /// Returns units of the scopes that have no vector of this model, the newest first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn without_vector(
        &self,
        model: &str,
        scopes: &[String],
        limit: usize,
    ) -> Result<Vec<MemoryUnit>, LogError>;
}

/// Records searches that found nothing.
#[async_trait]
pub trait MemoryLedger: Send + Sync {
    /// Records a search that found nothing. The oldest are dropped beyond a limit.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    async fn keep_miss(&self, miss: MemoryMiss) -> Result<(), LogError>;

    /// Returns searches that found nothing, the newest first.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn misses(&self, limit: usize) -> Result<Vec<MemoryMiss>, LogError>;

    /// Counts what is kept.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn memory_stats(&self) -> Result<MemoryStats, LogError>;
}

/// Every port of memory.
pub trait MemoryStore: MemoryUnits + MemoryIndex + MemoryLedger {}

impl<T: MemoryUnits + MemoryIndex + MemoryLedger> MemoryStore for T {}
