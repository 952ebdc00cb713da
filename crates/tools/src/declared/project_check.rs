//! The check that runs before each call of a project's tool.

use std::fmt;
use std::sync::Arc;

/// SAFE-6: checks, directly before each call of a project's tool, that the files which the user trusted have not
/// changed: a call before it may have rewritten the script that it runs.
#[derive(Clone)]
pub struct ProjectCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl ProjectCheck {
    /// Creates a check. It returns the reason why the project's tools must not run.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn run(&self) -> Result<(), String> {
        (self.0)()
    }
}

impl fmt::Debug for ProjectCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectCheck")
    }
}
