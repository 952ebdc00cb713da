//! MCP-1: files with MCP servers: adding, removing, and importing from other agents.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use windlass_config::private_file::PrivateFile;
use windlass_config::{Problem, ProblemKind, environment};
use windlass_mcp::file;
use windlass_sandbox::read_given_text;

/// Size of the largest file of servers.
const MAX_FILE: u64 = 1 << 20;

/// A file in the `mcpServers` shape.
pub struct ServersFile {
    path: PathBuf,
}

impl ServersFile {
    /// The file at this path, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a server.
    ///
    /// # Errors
    /// If the file or the server is not valid, or the name is taken.
    pub fn add(&self, name: &str, entry: Value) -> Result<(), Problem> {
        self.change(|servers| {
            if servers.contains_key(name) {
                return Err(format!("there is a server {name} already; remove it first"));
            }
            servers.insert(name.to_owned(), entry);
            Ok(())
        })
    }

    /// Adds servers whose names are not taken. Returns the names of those that were added.
    ///
    /// # Errors
    /// If the file or a server is not valid.
    pub fn add_all(&self, found: Map<String, Value>) -> Result<Vec<String>, Problem> {
        let mut added = Vec::new();
        self.change(|servers| {
            for (name, entry) in found {
                if !servers.contains_key(&name) {
                    servers.insert(name.clone(), entry);
                    added.push(name);
                }
            }
            Ok(())
        })?;
        Ok(added)
    }

    /// Removes a server.
    ///
    /// # Errors
    /// If there is no such server, or the file cannot be changed.
    pub fn remove(&self, name: &str) -> Result<(), Problem> {
        self.change(|servers| match servers.shift_remove(name) {
            Some(_) => Ok(()),
            None => Err(format!("there is no server {name}")),
        })
    }

    fn change(
        &self,
        edit: impl FnOnce(&mut Map<String, Value>) -> Result<(), String>,
    ) -> Result<(), Problem> {
        let shown = self.path.display().to_string();
        let wrong = |text: String| Problem::new(ProblemKind::Config, text);
        let failed = |error: std::io::Error| Problem::new(ProblemKind::Failed, format!("{shown}: {error}"));
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let kept = PrivateFile::new(self.path.clone());
        let held = kept.hold().map_err(failed)?;
        let text = kept.read().map_err(failed)?.unwrap_or_else(|| "{}".to_owned());
        let mut root: Value = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("{shown}:{}: not valid JSON: {error}", error.line())))?;
        let servers = root
            .as_object_mut()
            .map(|map| map.entry("mcpServers").or_insert_with(|| json!({})))
            .and_then(Value::as_object_mut)
            .ok_or_else(|| wrong(format!("{shown}: expected an object with the key \"mcpServers\"")))?;
        edit(servers).map_err(|text| wrong(format!("{shown}: {text}")))?;
        let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
        text.push('\n');
        // Variables are checked when the server is used, not when it is written down.
        file::parse(&text, &shown, &|_| Some(String::new())).map_err(wrong)?;
        held.write(&text).map_err(failed)
    }
}

/// Returns the servers of Claude's files: the user's, and this folder's entry in it.
///
/// # Errors
/// If the file cannot be read.
pub fn claude_servers(named: Option<&Path>, cwd: &Path) -> Result<Map<String, Value>, Problem> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => home().join(".claude.json"),
    };
    let text = read(&path)?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        Problem::new(
            ProblemKind::Config,
            format!("{}:{}: {error}", path.display(), error.line()),
        )
    })?;
    let mut found = Map::new();
    let project = value
        .get("projects")
        .and_then(|all| all.get(cwd.display().to_string()));
    for source in [
        value.get("mcpServers"),
        project.and_then(|project| project.get("mcpServers")),
    ] {
        for (name, entry) in source.and_then(Value::as_object).into_iter().flatten() {
            found.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    Ok(found)
}

/// Returns the servers of Codex' file.
///
/// # Errors
/// If the file cannot be read.
pub fn codex_servers(named: Option<&Path>) -> Result<Map<String, Value>, Problem> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => environment::var("CODEX_HOME")
            .map_or_else(|| home().join(".codex"), PathBuf::from)
            .join("config.toml"),
    };
    let text = read(&path)?;
    let value: Value = windlass_config::toml_value(&text)
        .map_err(|error| Problem::new(ProblemKind::Config, format!("{}: {error}", path.display())))?;
    let mut found = Map::new();
    for (name, entry) in value
        .get("mcp_servers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let Some(entry) = entry.as_object() else { continue };
        found.insert(name.clone(), Value::Object(of_codex(entry)));
    }
    Ok(found)
}

/// Renames the keys that Codex spells differently.
fn of_codex(entry: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in entry {
        match key.as_str() {
            "startup_timeout_sec" => drop(out.insert("startup_timeout".to_owned(), value.clone())),
            "tool_timeout_sec" => drop(out.insert("timeout".to_owned(), value.clone())),
            "http_headers" => drop(out.insert("headers".to_owned(), value.clone())),
            "bearer_token_env_var" => {
                let name = value.as_str().unwrap_or_default();
                let headers = out.entry("headers").or_insert_with(|| json!({}));
                if let Value::Object(headers) = headers {
                    headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{{name}}}")));
                }
            }
            "command" | "args" | "env" | "cwd" | "url" | "enabled" | "enabled_tools" | "disabled_tools" => {
                out.insert(key.clone(), value.clone());
            }
            // The rest has no meaning here.
            _ => {}
        }
    }
    out
}

fn home() -> PathBuf {
    environment::var("HOME").map(PathBuf::from).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, Problem> {
    read_given_text(path, MAX_FILE)
        .map_err(|error| Problem::new(ProblemKind::Config, format!("{}: {error}", path.display())))
}
