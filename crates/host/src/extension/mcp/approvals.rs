//! Approvals of servers that run without a sandbox.

use std::collections::BTreeSet;
use std::path::PathBuf;

use windlass_config::environment;
use windlass_mcp::McpServerConfig;
use windlass_sandbox::sha256_hex;

/// The effect of `sandbox = "off"`, as a clause.
pub const GIVES_UP: &str =
    "it could read and change all your files, see your other programs, and use the network";

/// Approvals in a file, each bound to the whole configuration of a server.
pub struct ServerApprovals(Option<PathBuf>);

impl ServerApprovals {
    /// The approvals of the user.
    pub fn of_user() -> Self {
        let folders = environment::folders().ok();
        Self(folders.map(|folders| folders.data.join("mcp-approvals.json")))
    }

    /// Returns true if the user approved exactly this configuration.
    pub fn has(&self, config: &McpServerConfig) -> bool {
        self.read().contains(&digest(config))
    }

    /// Approves a configuration.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&self, config: &McpServerConfig) -> Result<(), String> {
        let Some(path) = &self.0 else {
            return Err("there is no folder for approvals".to_owned());
        };
        let mut all = self.read();
        all.insert(digest(config));
        let text = serde_json::to_string(&all).unwrap_or_default();
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    fn read(&self) -> BTreeSet<String> {
        let text = self
            .0
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }
}

fn digest(config: &McpServerConfig) -> String {
    sha256_hex(format!("{:?} {}", config.transport, config.name).as_bytes())
}
