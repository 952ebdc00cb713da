//! Tools declared in YAML: a program and its arguments, with parameters that a model fills in.
//!
//! No shell is ever involved. Each template fills inside one argument, whatever its value holds; values are checked
//! against their declaration as a whole; and a value does not become an option of the program. What the file says
//! and what it may not say is in `docs/tools-yaml.md`.
//!
//! - [`Declarations`] is what one or two files declare. [`Declarations::tools`] makes tools of it.
//! - [`LastGood`] follows the files and keeps the last good set while one of them is broken.
//! - [`Fingerprint`] says whether definitions are the ones that somebody agreed to.
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
mod reader;
mod template;
mod tool;
mod tree;

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
use self::tool::DeclaredTool;
use crate::ToolsConfig;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The user's own.
    User,
    /// The project's, written by whoever wrote the repository. Its tools must stay out until the user trusts them.
    Project,
}

/// Where the files are. A file that does not exist declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    /// The user's file.
    pub user: Option<PathBuf>,
    /// The project's file.
    pub project: Option<PathBuf>,
}

/// The tools that files declare, in the order of the files, the user's first.
#[derive(Debug, Clone, Default)]
pub struct Declarations {
    definitions: Vec<Arc<Definition>>,
}

impl Declarations {
    /// Reads a file's text. `file_name` stands for the file in messages.
    ///
    /// # Errors
    /// Every mistake in the text, each with its line, its field and what would be right.
    pub fn parse(text: &str, file_name: &str, source: Source) -> Result<Self, DeclarationError> {
        Ok(Self {
            definitions: file::read(text, file_name, source)?,
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// As [`Self::parse`], when a file cannot be read, and when a project's tool has the name of one of the user's.
    pub fn read(paths: &Paths) -> Result<Self, DeclarationError> {
        let mut files = LastGood::new(paths.clone());
        match files.refresh() {
            Refresh::Broken { error, .. } => Err(error),
            Refresh::Unchanged | Refresh::Loaded { .. } => Ok(files.into_current()),
        }
    }

    /// The names of the tools.
    pub fn names(&self) -> Vec<&str> {
        let names = self.definitions.iter().map(|definition| definition.name.as_str());
        names.collect()
    }

    /// What a person has to see of each tool, in order.
    pub fn outlines(&self) -> Vec<Outline> {
        let outlines = self.definitions.iter().map(|definition| Outline::of(definition));
        outlines.collect()
    }

    /// Only what comes from there. The project's tools are to be left out this way until their
    /// [`fingerprint`](Self::fingerprint) is one that the user trusts.
    #[must_use]
    pub fn only(&self, source: Source) -> Self {
        let definitions = self.definitions.iter().filter(|one| one.source == source);
        Self {
            definitions: definitions.cloned().collect(),
        }
    }

    /// Stands for everything that is declared here: it changes when any of it does, and with nothing else.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.definitions)
    }

    /// Stands for everything that one tool's declaration says.
    pub fn fingerprint_of(&self, name: &str) -> Option<Fingerprint> {
        let mut definitions = self.definitions.iter();
        let definition = definitions.find(|definition| definition.name == name)?;
        Some(Fingerprint::of(definition))
    }

    /// The tools. `host_env` looks up the variables that declarations name with `${NAME}`; nothing else of our
    /// environment is asked for.
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
