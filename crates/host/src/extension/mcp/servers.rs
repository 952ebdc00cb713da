//! MCP-1: the configured servers: settings, the user's file, and the project's file if it is trusted.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::settings::Settings;
use windlass_config::trust::{self, TrustState};
use windlass_config::{Problem, ProblemKind};
use windlass_mcp::{McpServerConfig, McpTransport, ServerOrigin, file, server_part};

use crate::plugins;

/// Longest file that is read.
const MAX_FILE: u64 = 1_000_000;

/// The servers for a folder.
#[derive(Debug, Default)]
pub struct ConfiguredServers {
    /// The servers. A name that appears twice means the user's own server.
    pub servers: Vec<McpServerConfig>,
    /// Lines for the user about what is not used.
    pub warnings: Vec<String>,
}

impl ConfiguredServers {
    /// Reads the servers in the user's own files.
    ///
    /// # Errors
    /// If a file has a mistake.
    pub fn of_user(settings: &Settings) -> Result<Self, Problem> {
        let mut all = Self::default();
        let wrong = |text: String| Problem::new(ProblemKind::Config, text);
        all.add(of_settings(settings).map_err(wrong)?, ServerOrigin::User);
        let path = environment::folders()?.servers_file();
        if let Some(text) = read_file(&path).map_err(wrong)? {
            let parsed = file::parse(&text, &path.display().to_string(), &variable);
            all.add(parsed.map_err(wrong)?, ServerOrigin::User);
        }
        Ok(all)
    }

    /// Reads the servers for a session in `cwd`.
    ///
    /// # Errors
    /// If the user's own files have a mistake. One in the project's file is a warning.
    pub fn read(settings: &Settings, cwd: &Path) -> Result<Self, Problem> {
        let mut all = Self::of_user(settings)?;
        let folders = environment::folders()?;
        all.add_plugins(&folders);
        if let Some(project) = folders.project(cwd).filter(|project| project.has_servers())
            && let TrustState::Trusted(snapshot) = trust::look(&folders, &project)
            && let Some(text) = snapshot.servers(&project)
        {
            match file::parse(text, &project.servers_file().display().to_string(), &variable) {
                Ok(parsed) => all.add(parsed, ServerOrigin::Project),
                Err(why) => all.warnings.push(why),
            }
        }
        Ok(all)
    }

    /// Adds the servers that enabled plugins bring. A mistake in one of their files is a warning.
    fn add_plugins(&mut self, folders: &Folders) {
        let copies = folders.cache.join("plugins");
        for plugin in plugins::enabled(folders).plugins {
            let Some(path) = &plugin.mcp_file else { continue };
            let data = copies.join(format!("{}.data", plugin.name));
            let added = plugins::copy_for_servers(&plugin, &copies).and_then(|root| {
                let own = |name: &str| match name {
                    "CLAUDE_PLUGIN_ROOT" | "PLUGIN_ROOT" => Some(root.display().to_string()),
                    "CLAUDE_PLUGIN_DATA" | "PLUGIN_DATA" => Some(data.display().to_string()),
                    other => variable(other),
                };
                let text = read_file(path)?.unwrap_or_default();
                let (mut servers, warnings) = file::parse(&text, &path.display().to_string(), &own)?;
                for server in &mut servers {
                    if let McpTransport::Stdio(stdio) = &mut server.transport {
                        stdio.access.plugin = Some((root.clone(), data.clone()));
                    }
                }
                Ok((servers, warnings))
            });
            match added {
                Ok(added) => self.add(added, ServerOrigin::Plugin),
                Err(why) => self.warnings.push(format!("plugin {}: {why}", plugin.name)),
            }
        }
    }

    fn add(&mut self, (servers, warnings): (Vec<McpServerConfig>, Vec<String>), origin: ServerOrigin) {
        self.warnings.extend(warnings);
        for mut server in servers {
            server.origin = origin;
            let part = server_part(&server.name);
            let earlier = self.servers.iter().find(|known| server_part(&known.name) == part);
            match earlier {
                Some(earlier) => {
                    let why = match earlier.name == server.name {
                        true => "has the same name".to_owned(),
                        false => format!(
                            "is called {}, and their tools would have the same names",
                            earlier.name
                        ),
                    };
                    self.warnings.push(format!(
                        "MCP server {}: the {} one is not used, because an earlier one {why}",
                        server.name,
                        origin.word()
                    ));
                }
                None => self.servers.push(server),
            }
        }
    }
}

/// Returns the value of an environment variable.
pub(super) fn variable(name: &str) -> Option<String> {
    environment::var(name)
}

/// Reads the servers of the settings, which have the same keys as the files.
fn of_settings(settings: &Settings) -> Result<(Vec<McpServerConfig>, Vec<String>), String> {
    let servers: Map<String, Value> = settings
        .tools
        .mcp
        .servers
        .iter()
        .map(|(name, keys)| (name.clone(), Value::Object(keys.clone())))
        .collect();
    if servers.is_empty() {
        return Ok(Default::default());
    }
    let mut root = Map::new();
    root.insert("mcpServers".to_owned(), Value::Object(servers));
    let parsed = file::parse(&Value::Object(root).to_string(), "config.toml", &variable);
    // The line is that of the copy made here.
    parsed.map_err(|why| why.replacen("config.toml:1: mcpServers.", "config.toml: mcp_servers.", 1))
}

/// Reads a file of the user. `None` if there is none.
fn read_file(path: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(path) {
        Err(_) => Ok(None),
        Ok(found) if !found.is_file() => Err(format!("{}: not a regular file", path.display())),
        Ok(found) if found.len() > MAX_FILE => Err(format!("{}: it is larger than 1 MB", path.display())),
        Ok(_) => std::fs::read_to_string(path)
            .map(Some)
            .map_err(|error| format!("{}: {error}", path.display())),
    }
}

/// Replaces `~` at the start of a path.
pub fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), environment::var("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}
