//! Memory of the protocol revision that each server speaks.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use windlass_sandbox::sha256_hex;

use crate::config::McpServerConfig;

/// Maximum number of servers that are remembered.
const MAX_SERVERS: usize = 500;

/// The revision that each server spoke the last time, in a file. A damaged file counts as empty.
#[derive(Debug, Default)]
pub struct EraMemory {
    path: Option<PathBuf>,
    known: Mutex<Option<BTreeMap<String, bool>>>,
}

impl EraMemory {
    /// Remembers in this file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path: Some(path),
            known: Mutex::default(),
        }
    }

    /// Returns true if the server is known to speak the stateless revision, false for the handshake.
    pub(crate) fn is_modern(&self, server: &McpServerConfig) -> Option<bool> {
        self.with(|known| known.get(&key(server)).copied())
    }

    pub(crate) fn remember(&self, server: &McpServerConfig, is_modern: bool) {
        let key = key(server);
        let changed = self.with(|known| {
            if known.len() >= MAX_SERVERS {
                known.clear();
            }
            let is_new = known.insert(key, is_modern) != Some(is_modern);
            is_new.then(|| serde_json::to_string(known).unwrap_or_default())
        });
        if let (Some(text), Some(path)) = (changed, &self.path) {
            if let Some(folder) = path.parent() {
                let _ = fs::create_dir_all(folder);
            }
            // What cannot be stored is found out again.
            let _ = fs::write(path, text);
        }
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut BTreeMap<String, bool>) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| {
            let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
            text.and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default()
        });
        use_it(known)
    }
}

fn key(server: &McpServerConfig) -> String {
    let digest = sha256_hex(server.line().as_bytes());
    digest.chars().take(24).collect()
}
