//! The tools of a session: the built-in ones, the user's and the project's, refreshed before every turn.
//!
//! Files are not watched. [`ToolCatalog::refresh`] compares them with the loaded state, and creates new tools
//! and a new prefix only when they differ: a prefix is encoded once, and providers cache by its bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::provider::{Prefix, Prefixes};
use windlass_core::tool::{AnyTool, ExecutionContext, ToolSet};
use windlass_sandbox::CommandSandbox;
use windlass_tools::declared::{
    DeclarationError, Declarations, LastGood, Paths, ProjectCheck, Refresh, Source,
};
use windlass_tools::{OutputStore, ToolsConfig};

use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::trust::{self, TrustState};
use windlass_config::{Problem, ProblemKind};

/// The tools that a turn offers the model, and their implementations.
#[derive(Clone)]
pub struct ToolOffer {
    /// The tools.
    pub tools: ToolSet,
    /// Their encoded form in requests.
    pub prefix: Arc<Prefix>,
    /// TOOL-8: the context that the calls of the turn run in.
    pub execution: Arc<ExecutionContext>,
}

/// Creates the tool offer of each turn.
pub struct ToolCatalog {
    built_in: ToolSet,
    /// Tools of the extensions.
    extensions: Vec<Arc<dyn AnyTool>>,
    config: ToolsConfig,
    files: ToolFiles,
    offer: ToolOffer,
    /// Notices to show with the next turn.
    notices: Vec<String>,
    /// Prefixes of other sessions, for sharing identical ones.
    prefixes: Arc<Prefixes>,
    /// SUB-3: the tools that a sub-agent may have; `None` for all.
    allowed: Option<AllowedTools>,
}

/// Decides about a tool by its name.
pub type AllowedTools = Arc<dyn Fn(&str) -> bool + Send + Sync>;

impl ToolCatalog {
    /// Returns the sandbox of commands.
    pub fn sandbox(&self) -> Arc<CommandSandbox> {
        Arc::clone(&self.config.sandbox)
    }

    /// Adds the tools that files declare to the built-in ones. A mistake in the user's own file is an error;
    /// one in a project's file only disables that file's tools, because the user may not be able to fix it.
    pub fn new(
        built_in: ToolSet,
        mut config: ToolsConfig,
        files: ToolFiles,
        execution: Arc<ExecutionContext>,
    ) -> Result<Self, Problem> {
        config.project_check = Some(files.check());
        let mut catalog = Self {
            offer: ToolOffer {
                tools: built_in.clone(),
                prefix: Arc::default(),
                execution,
            },
            built_in,
            extensions: Vec::new(),
            config,
            files,
            notices: Vec::new(),
            prefixes: Arc::default(),
            allowed: None,
        };
        let news = catalog.files.refresh();
        if let Some(error) = news.error {
            if catalog.files.is_of_user(&error) {
                return Err(Problem::new(ProblemKind::Config, error.to_string()));
            }
            catalog.notices.push(error.to_string());
        }
        // The settings are read first and have already reported whether the project is in effect.
        catalog.rebuild();
        Ok(catalog)
    }

    /// Shares identical prefixes with other sessions.
    pub fn share(&mut self, prefixes: Arc<Prefixes>) {
        self.prefixes = prefixes;
    }

    /// Adds tools to the built-in ones.
    pub fn add(&mut self, tools: Vec<Arc<dyn AnyTool>>) {
        if !tools.is_empty() {
            tools.into_iter().for_each(|tool| self.built_in.insert(tool));
            self.rebuild();
        }
    }

    /// Sets the tools of the extensions.
    pub fn set_extensions(&mut self, tools: Vec<Arc<dyn AnyTool>>) {
        let is_same = tools.len() == self.extensions.len()
            && tools
                .iter()
                .zip(&self.extensions)
                .all(|(new, old)| Arc::ptr_eq(new, old));
        if !is_same {
            self.extensions = tools;
            self.rebuild();
        }
    }

    /// SUB-3: withholds all tools but these from now on.
    pub fn restrict(&mut self, allowed: AllowedTools) {
        self.allowed = Some(allowed);
        self.rebuild();
    }

    /// Puts the system prompt before the tools.
    pub fn set_system_prompt(&mut self, system: String) {
        self.offer.prefix = self.prefixes.share(Prefix {
            system,
            tools: self.offer.tools.specs(),
            ..Prefix::default()
        });
    }

    /// Adds a notice to show with the next turn.
    pub fn notify(&mut self, notices: Vec<String>) {
        self.notices.extend(notices);
    }

    /// Rereads the files. The second value holds notices for the user.
    pub fn refresh(&mut self) -> (ToolOffer, Vec<String>) {
        let news = self.files.refresh();
        self.notices.extend(news.notice);
        if let Some(error) = news.error {
            let kept = if self.files.is_of_user(&error) {
                "\nkeeping the last valid tools"
            } else {
                ""
            };
            self.notices.push(format!("{error}{kept}"));
        }
        if news.has_changed {
            self.rebuild();
        }
        self.move_on();
        (self.offer.clone(), std::mem::take(&mut self.notices))
    }

    /// Changes to the folder that `set_working_directory` set.
    fn move_on(&mut self) {
        let cwd = self.config.workspace.working_directory().begin_turn();
        if cwd != self.offer.execution.cwd {
            self.offer.execution = Arc::new(ExecutionContext {
                cwd,
                ..(*self.offer.execution).clone()
            });
        }
    }

    /// Returns the store of complete long outputs.
    pub fn outputs(&self) -> Option<Arc<OutputStore>> {
        self.config.outputs.clone()
    }

    /// Returns the context that calls run in.
    pub fn execution(&self) -> Arc<ExecutionContext> {
        Arc::clone(&self.offer.execution)
    }

    /// Returns the tools as of the last refresh.
    pub fn tools(&self) -> &ToolSet {
        &self.offer.tools
    }

    /// Returns the declarations in files, as of the last refresh.
    pub fn declared(&self) -> &Declarations {
        self.files.files.current()
    }

    /// Returns notices that no turn has shown yet.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    fn rebuild(&mut self) {
        // The built-in tools are reused: they know which files the model has read.
        let mut tools = self.built_in.clone();
        for tool in self.declared().tools(&self.config, &environment::var) {
            tools.insert(tool);
        }
        for tool in &self.extensions {
            tools.insert(Arc::clone(tool));
        }
        if let Some(allowed) = &self.allowed {
            tools.retain(|name| allowed(name));
        }
        let specs = tools.specs();
        self.offer.tools = tools;
        if self.offer.prefix.tools != specs {
            self.offer.prefix = self.prefixes.share(Prefix {
                system: self.offer.prefix.system.clone(),
                tools: specs,
                ..Prefix::default()
            });
        }
    }
}

/// The declaration files of the user and of the project around a folder, if the project is trusted.
pub struct ToolFiles {
    folders: Folders,
    cwd: PathBuf,
    user: PathBuf,
    files: LastGood,
    /// Reason why the project was not in effect at the last refresh.
    told: Option<String>,
}

/// Changes found by a refresh.
struct News {
    has_changed: bool,
    /// Reason why the project is no longer in effect.
    notice: Option<String>,
    error: Option<DeclarationError>,
}

impl ToolFiles {
    /// The files for a session in `cwd`. Reads nothing yet.
    pub fn new(folders: Folders, cwd: &Path) -> Self {
        let user = folders.user_tools();
        let paths = Paths {
            user: Some(user.clone()),
            project: None,
        };
        Self {
            folders,
            cwd: cwd.to_owned(),
            user,
            files: LastGood::new(paths),
            told: None,
        }
    }

    /// Returns the check that the project's files are still the trusted ones.
    fn check(&self) -> ProjectCheck {
        let (folders, cwd) = (self.folders.clone(), self.cwd.clone());
        ProjectCheck::new(move || match folders.project(&cwd) {
            None => Ok(()),
            Some(project) => match trust::look(&folders, &project).notice(&project) {
                None => Ok(()),
                Some(why) => Err(why),
            },
        })
    }

    fn refresh(&mut self) -> News {
        let mut notice = None;
        let mut trusted = None;
        if let Some(project) = self.folders.project(&self.cwd) {
            let standing = trust::look(&self.folders, &project);
            notice = standing.notice(&project);
            if let TrustState::Trusted(snapshot) = &standing {
                let text = snapshot.tools(&project);
                trusted = text.map(|text| (project.tools_file(), text.to_owned()));
            }
        }
        self.files.set_project(trusted);
        let is_news = notice != self.told;
        self.told.clone_from(&notice);
        let (has_changed, error) = match self.files.refresh() {
            Refresh::Unchanged => (false, None),
            Refresh::Loaded { .. } => (true, None),
            Refresh::Broken { error, .. } => (true, Some(error)),
        };
        News {
            has_changed,
            notice: notice.filter(|_| is_news),
            error,
        }
    }

    fn is_of_user(&self, error: &DeclarationError) -> bool {
        let user = self.user.display().to_string();
        error.problems().iter().any(|problem| problem.file == user)
    }
}

/// Returns the source of a tool as one word.
pub fn source(declared: &Declarations, name: &str) -> &'static str {
    let outlines = declared.outlines();
    match outlines.iter().find(|outline| outline.name == name) {
        Some(outline) if outline.source == Source::User => "user",
        Some(_) => "project",
        None => "built-in",
    }
}

#[cfg(test)]
#[path = "tool_catalog_tests.rs"]
mod tests;
