//! The store of the tests: a database of its own for each workspace.

use windlass_testkit::{PostgresServer, Workspace};

/// Returns the server of this process.
pub(super) fn server() -> &'static PostgresServer {
    PostgresServer::shared(|url| {
        let clock = std::sync::Arc::new(windlass_core::clock::SystemClock::default());
        drop(windlass_store::open(url, clock).unwrap());
    })
}

/// True if the store is a file.
pub(super) const IS_FILE: bool = false;

/// Returns the workspace with its store.
pub(super) fn given(workspace: Workspace) -> Workspace {
    let database = server().database();
    workspace.with_store(server().url(&database))
}
