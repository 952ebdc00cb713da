//! The files of a project that Windlass itself runs with other rights than a command has: scripts of hooks, of trusted
//! tools, and of MCP servers. Commands cannot change them, and file tools ask, because a check of their content before
//! each run would come too early: a command can change a file between the check and the run.

use std::path::{Path, PathBuf};

use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_config::trust::{self, TrustState};
use windlass_mcp::McpTransport;

use crate::extension::HookSources;
use crate::extension::mcp::ConfiguredServers;

/// Maximum number of files.
const MAX_FILES: usize = 500;

/// Folders whose files are texts for a model, and not run.
const TEXTS: [&str; 2] = [".agents", ".claude/skills"];

/// Returns the files for a session in `cwd`. Best effort: what cannot be read is not run either.
pub(crate) fn run_here(settings: &Settings, cwd: &Path) -> Vec<PathBuf> {
    let Ok(folders) = environment::folders() else {
        return Vec::new();
    };
    let mut files = Vec::new();
    if let Some(project) = folders.project(cwd)
        && let TrustState::Trusted(snapshot) = trust::look(&folders, &project)
    {
        let covered = snapshot.files().iter().map(|file| &file.path);
        let run = covered.filter(|path| !TEXTS.iter().any(|texts| path.starts_with(texts)));
        files.extend(run.map(|path| project.root.join(path)));
    }
    let (hooks, _) = HookSources::new(folders, cwd).read();
    let scripts = hooks.handlers().flat_map(|handler| &handler.scripts);
    files.extend(scripts.map(|script| script.path().to_owned()));
    let servers = ConfiguredServers::of_user(settings).unwrap_or_default();
    for server in servers.servers {
        let McpTransport::Stdio(stdio) = &server.transport else {
            continue;
        };
        let folder = stdio
            .cwd
            .as_ref()
            .map_or_else(|| cwd.to_owned(), |folder| cwd.join(folder));
        let words = std::iter::once(&stdio.command).chain(&stdio.args);
        let named = words.map(|word| folder.join(word));
        files.extend(named.filter(|path| path.starts_with(cwd) && path.is_file()));
    }
    files.truncate(MAX_FILES);
    files
}
