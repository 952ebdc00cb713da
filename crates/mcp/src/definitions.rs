//! Definitions of tools that were in use.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::client::lock;

/// Maximum number of tools that are remembered.
const MAX_TOOLS: usize = 20_000;

/// The definition with which each tool was first seen or last approved, in a file. A damaged file counts as empty.
#[derive(Debug, Default)]
pub struct Definitions {
    path: Option<PathBuf>,
    known: Mutex<Option<BTreeMap<String, String>>>,
}

impl Definitions {
    /// Remembers in this file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path: Some(path),
            known: Mutex::default(),
        }
    }

    /// Returns true if the tool is known with another definition. A tool that is not known is recorded.
    pub(crate) fn has_changed(&self, server: &str, tool: &str, digest: &str) -> bool {
        let key = format!("{server}/{tool}");
        let known = self.with(|known| known.get(&key).cloned());
        match known {
            Some(known) => known != digest,
            None => {
                self.accept(server, tool, digest);
                false
            }
        }
    }

    pub(crate) fn accept(&self, server: &str, tool: &str, digest: &str) {
        let key = format!("{server}/{tool}");
        let text = self.with(|known| {
            if known.len() >= MAX_TOOLS {
                known.clear();
            }
            let is_new = known.insert(key, digest.to_owned()).as_deref() != Some(digest);
            is_new.then(|| serde_json::to_string(known).unwrap_or_default())
        });
        if let (Some(text), Some(path)) = (text, &self.path) {
            if let Some(folder) = path.parent() {
                let _ = fs::create_dir_all(folder);
            }
            let _ = fs::write(path, text);
        }
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        let mut known = lock(&self.known);
        let known = known.get_or_insert_with(|| {
            let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
            text.and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default()
        });
        use_it(known)
    }
}
