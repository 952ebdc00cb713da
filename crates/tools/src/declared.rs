//! Tools declared in YAML: a program and its arguments, with parameters that a model fills in.
//!
//! No shell is ever involved. A template stays inside one argument, whatever its value contains; whole values
//! are checked against their declaration; and a value never becomes an option of the program. The format and
//! its restrictions are described in `docs/tools-yaml.md`.
//!
//! - [`Declarations`] is the content of one or two files. [`Declarations::tools`] turns it into tools.
//! - [`LastGood`] follows the files and keeps the last good set while one of them is broken.
//! - [`Fingerprint`] identifies definitions, so that a change after the user's approval is detected.
//!
//! ```
//! use windlass_tools::declared::{Declarations, Source};
//!
//! let text = "
//! tools:
//!   - name: git_log
//!     description: Shows the last commits.
//!     category: read
//!     cmd: git
//!     args: [log, --oneline, -n, '{{count}}']
//!     parameters:
//!       count: { type: integer, min: 1, max: 100 }
//! ";
//! let declarations = Declarations::parse(text, "tools.yaml", Source::User)?;
//! assert_eq!(declarations.names(), ["git_log"]);
//!
//! let broken = text.replace("category", "categry");
//! let error = Declarations::parse(&broken, "tools.yaml", Source::User).expect_err("a wrong key");
//! assert!(error.to_string().contains("tools.yaml:5: unknown key `git_log.categry`; did you mean `category`?"));
//! # Ok::<(), windlass_tools::declared::DeclarationError>(())
//! ```

mod check;
mod definition;
mod file;
mod fingerprint;
mod fuzz;
mod last_good;
mod outline;
mod parameter;
mod problem;
mod project_check;
mod reader;
mod template;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use windlass_core::tool::AnyTool;

use self::definition::Definition;
pub use self::fingerprint::Fingerprint;
pub(crate) use self::fuzz::fuzz;
pub use self::last_good::{LastGood, Refresh};
pub use self::outline::Outline;
pub use self::problem::{DeclarationError, DeclarationProblem};
pub use self::project_check::ProjectCheck;
use self::tool::DeclaredTool;
use crate::ToolsConfig;

/// Owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The user's own file.
    User,
    /// The project's file, written by the author of the repository. Its tools must not be offered until the
    /// user trusts them.
    Project,
}

/// Paths of the files. A file that does not exist declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    /// The user's file.
    pub user: Option<PathBuf>,
    /// The project's file.
    pub project: Option<PathBuf>,
}

/// Tools declared in files, in the order of the files, the user's first.
#[derive(Debug, Clone, Default)]
pub struct Declarations {
    definitions: Vec<Arc<Definition>>,
}

impl Declarations {
    /// Parses the text of a file. `file_name` is its name in messages.
    ///
    /// # Errors
    /// Every mistake in the text, each with its line, its field and the expected value.
    pub fn parse(text: &str, file_name: &str, source: Source) -> Result<Self, DeclarationError> {
        Ok(Self {
            definitions: file::read(text, file_name, source)?,
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// As [`Self::parse`], and when a file cannot be read or a project's tool has the name of one of the
    /// user's.
    pub fn read(paths: &Paths) -> Result<Self, DeclarationError> {
        let mut files = LastGood::new(paths.clone());
        match files.refresh() {
            Refresh::Broken { error, .. } => Err(error),
            Refresh::Unchanged | Refresh::Loaded { .. } => Ok(files.into_current()),
        }
    }

    /// Returns the names of the tools.
    pub fn names(&self) -> Vec<&str> {
        let names = self.definitions.iter().map(|definition| definition.name.as_str());
        names.collect()
    }

    /// Returns the outline of each tool for a person, in order.
    pub fn outlines(&self) -> Vec<Outline> {
        let outlines = self.definitions.iter().map(|definition| Outline::of(definition));
        outlines.collect()
    }

    /// Returns only the tools from one source. Use it to leave out the project's tools until the user trusts
    /// their [`fingerprint`](Self::fingerprint).
    #[must_use]
    pub fn only(&self, source: Source) -> Self {
        let definitions = self.definitions.iter().filter(|one| one.source == source);
        Self {
            definitions: definitions.cloned().collect(),
        }
    }

    /// Returns the fingerprint of all definitions. It changes when any of them changes, and only then.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.definitions)
    }

    /// Returns the fingerprint of one tool's definition.
    pub fn fingerprint_of(&self, name: &str) -> Option<Fingerprint> {
        let mut definitions = self.definitions.iter();
        let definition = definitions.find(|definition| definition.name == name)?;
        Some(Fingerprint::of(definition))
    }

    /// Builds the tools. `host_env` looks up the variables that declarations name with `${NAME}`; no other
    /// variable of the host's environment is read.
    pub fn tools(
        &self,
        config: &ToolsConfig,
        host_env: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Arc<dyn AnyTool>> {
        let tool = |definition: &Arc<Definition>| -> Arc<dyn AnyTool> {
            Arc::new(DeclaredTool::new(Arc::clone(definition), config, host_env))
        };
        self.definitions.iter().map(tool).collect()
    }
}

#[cfg(test)]
#[path = "declared/declared_tests.rs"]
mod tests;
