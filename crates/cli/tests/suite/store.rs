//! The store of the tests: the database in the data folder.

use windlass_testkit::Workspace;

/// Returns the workspace with its store.
pub(super) fn given(workspace: Workspace) -> Workspace {
    workspace
}
