//! An index of the files and definitions of a workspace, and the search over it.
//!
//! - [`Index`] is a snapshot: for each file its definitions (by grammar for six languages, by keywords for others)
//!   and the words of its path, its definitions and its chunks. [`Index::updated`] returns the next snapshot.
//! - [`Index::search`] ranks files by BM25 of these parts, [`Index::best_lines`] reads the lines worth showing, and
//!   [`Index::map`] lists files with the definitions that fit.
//! - [`CodeIndex`] is the index while sessions use it: stored in one file, updated in the background, never waited for
//!   longer than the caller says.
//! - [`CodeSearch`] is the `code_search` tool over it, with an optional second source ([`RemoteSearch`]).
//!
//! Ignored and denied files are left out when the workspace is walked, and a file is opened through the path handles of
//! the sandbox each time, when it is indexed and when its lines are shown.
//!
//! Deliberately absent: an inverted index and a vocabulary. A search reads the words of all files, a few milliseconds
//! for thousands of files, and in exchange a changed file costs only itself.

mod definitions;
mod index;
mod language;
mod live;
mod record;
mod search;
mod show;
mod sourcegraph;
mod store;
mod tool;
mod walk;
mod words;

pub use self::definitions::{Definition, DefinitionKind};
pub use self::index::{Index, IndexChanges, IndexSize, IndexedFolder};
pub use self::language::FileRole;
pub use self::live::{CodeIndex, CodeIndexes, IndexProgress};
pub use self::search::{FoundFile, FoundFiles, SearchScope};
pub use self::show::{ShownFile, shown_text};
pub use self::sourcegraph::Sourcegraph;
pub use self::store::{StoredIndexError, index_file};
pub use self::tool::{CodeSearch, CodeSearchInput, RemoteHit, RemoteSearch};

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
