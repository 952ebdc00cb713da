//! The store of the tests: the database in the data folder.

use windlass_testkit::Workspace;

/// True if the store is a file.
pub(super) const IS_FILE: bool = true;

/// Returns the workspace with its store.
pub(super) fn given(workspace: Workspace) -> Workspace {
    workspace
}
