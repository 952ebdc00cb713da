//! SUB-1, SUB-7: types of sub-agents from files.
//!
//! A type is a Markdown file: YAML between two lines of `---`, then the instructions for the agent. Files are read
//! from the user's folder, from a trusted project's `.windlass/agents`, and from the folders of Claude Code, Codex
//! and OpenCode. An error in one file affects only that file; an unknown key is reported with its line.

mod file;
pub(crate) mod foreign;

use std::path::{Path, PathBuf};

use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::settings::ChildSettings;
use windlass_config::trust::{self, FOREIGN_AGENTS, TrustState};
use windlass_service::{AgentCatalog, AgentType};

use self::file::parse;
use crate::command_files::{read_small, walk};
use crate::plugins;

/// Maximum number of files that are read.
const MOST: usize = 200;

/// Folders of other agents below the user's home, with types of agents.
const FOREIGN_HOME: [&str; 4] = [
    ".claude/agents",
    ".codex/agents",
    ".config/opencode/agent",
    ".config/opencode/agents",
];

/// Returns the types and limits of the sub-agents of a session in `cwd`. Of two types with the same name, the
/// user's own comes before the project's, and that before the built-in one.
pub fn catalog(settings: &ChildSettings, folders: &Folders, cwd: &Path) -> AgentCatalog {
    let mut found = Found::default();
    found.user(&folders.user_agents());
    found.project(folders, cwd);
    if let Some(home) = environment::var("HOME").map(PathBuf::from) {
        for name in FOREIGN_HOME {
            found.user(&home.join(name));
        }
    }
    for plugin in plugins::enabled(folders).plugins {
        for file in &plugin.agents {
            found.add(file, read_small(file));
        }
    }
    let Found {
        mut types,
        mut warnings,
    } = found;
    types.extend(AgentType::built_in());
    let mut kept: Vec<AgentType> = Vec::new();
    for kind in types {
        match kept.iter().find(|first| first.name == kind.name) {
            // A built-in type may be replaced.
            Some(first) if kind.source != "built-in" => warnings.push(format!(
                "{}: not used, because {} defines the agent type `{}` as well",
                kind.source, first.source, kind.name
            )),
            Some(_) => {}
            None => kept.push(kind),
        }
    }
    let default = AgentCatalog::default();
    AgentCatalog {
        types: kept,
        default_type: settings.default_type.clone().unwrap_or(default.default_type),
        limits: settings.limits.clone(),
        deadline: settings.deadline,
        silence: settings.silence,
        warnings,
    }
}

/// Types that were read, and warnings about others.
#[derive(Default)]
struct Found {
    types: Vec<AgentType>,
    warnings: Vec<String>,
}

impl Found {
    /// Reads a folder of the user.
    fn user(&mut self, folder: &Path) {
        let mut files = Vec::new();
        walk(folder, 0, &mut files);
        files.extend(toml_files(folder));
        files.sort();
        for file in files.iter().take(MOST) {
            self.add(file, read_small(file));
        }
    }

    /// Reads the folders of a trusted project, as they were trusted.
    fn project(&mut self, folders: &Folders, cwd: &Path) {
        let Some(project) = folders.project(cwd) else {
            return;
        };
        let own = project.agents_folder();
        let foreign = FOREIGN_AGENTS.map(|name| project.root.join(name));
        let all: Vec<PathBuf> = [own]
            .into_iter()
            .chain(foreign)
            .filter(|folder| folder.is_dir())
            .collect();
        if all.is_empty() {
            return;
        }
        let standing = trust::look(folders, &project);
        self.warnings.extend(standing.notice(&project));
        let TrustState::Trusted(snapshot) = standing else {
            return;
        };
        for folder in all {
            for (name, bytes) in snapshot.below(&project, &folder).into_iter().take(MOST) {
                if name.extension().is_some_and(|end| end == "md" || end == "toml") {
                    self.add(&folder.join(&name), Ok(bytes.to_vec()));
                }
            }
        }
    }

    fn add(&mut self, file: &Path, bytes: Result<Vec<u8>, String>) {
        let text =
            bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()));
        let parsed = match text {
            Ok(text) => parse(file, &text, &mut self.warnings),
            Err(why) => Err(format!("{}: {why}", file.display())),
        };
        match parsed {
            Ok(kind) => self.types.extend(kind),
            Err(why) => self.warnings.push(why),
        }
    }
}

/// Returns the TOML files of a folder.
fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .take(MOST)
        .collect()
}

#[cfg(test)]
#[path = "agent_types_tests.rs"]
mod tests;
