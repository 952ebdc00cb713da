//! SRV-1: files of a session's folder for the server, under the limits of the session's own tools (SAFE-3).

use std::io::Read;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use windlass_config::environment::{self, Given};
use windlass_host::sandbox_access::SandboxAccess;
use windlass_sandbox::{OpenMode, Workspace};
use windlass_server::Files;

use crate::{file_walk, session_folder};

/// Files that are looked at for a match.
const MOST: usize = 50_000;

/// Files on this machine.
pub(crate) struct LocalFiles {
    pub(crate) given: Given,
}

impl LocalFiles {
    /// Returns the folders that the tools of a session in this folder may read.
    fn workspace(given: &Given, place: &Path) -> Result<Workspace, String> {
        let settings = environment::settings(given, place).map_err(|problem| problem.to_string())?;
        let access = SandboxAccess::new(&settings.security, place);
        let workspace = access.and_then(|access| access.workspace());
        workspace.map_err(|problem| problem.to_string())
    }
}

#[async_trait]
impl Files for LocalFiles {
    async fn check(&self, place: &str) -> Result<(), String> {
        let place = Path::new(place);
        if !place.is_dir() {
            return Err(format!("there is no folder {}", place.display()));
        }
        let settings = environment::settings(&self.given, place).map_err(|problem| problem.to_string())?;
        session_folder::check_given(&settings, place).map_err(|problem| problem.message)
    }

    async fn find(&self, place: &str, words: &str, limit: usize) -> Vec<String> {
        let (given, root) = (self.given.clone(), PathBuf::from(place));
        let words = words.to_lowercase();
        let walk = move || {
            let Ok(workspace) = Self::workspace(&given, &root) else {
                return Vec::new();
            };
            let roots = workspace.files();
            let walk = file_walk::shown(&root);
            let names = walk
                .filter_map(Result::ok)
                .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
                .take(MOST)
                .filter(|entry| !roots.denies(entry.path()))
                .filter_map(|entry| Some(entry.path().strip_prefix(&root).ok()?.display().to_string()));
            let mut found: Vec<(usize, String)> = names
                .filter_map(|name| Some((rank(&name, &words)?, name)))
                .collect();
            found.sort();
            found.into_iter().take(limit).map(|(_, name)| name).collect()
        };
        tokio::task::spawn_blocking(walk).await.unwrap_or_default()
    }

    async fn read(&self, place: &str, path: &str, limit: u64) -> Result<Vec<u8>, String> {
        let (given, root, path) = (self.given.clone(), PathBuf::from(place), path.to_owned());
        let read = move || {
            let workspace = Self::workspace(&given, &root)?;
            let file = workspace.files().open(&root.join(&path), OpenMode::Read);
            let file = file.map_err(|denied| format!("{path}: {denied}"))?;
            if !file.metadata().is_ok_and(|meta| meta.is_file()) {
                return Err(format!("{path} is not a file"));
            }
            let mut content = Vec::new();
            let read = file.take(limit + 1).read_to_end(&mut content);
            read.map_err(|error| format!("{path}: {error}"))?;
            if content.len() as u64 > limit {
                return Err(format!("{path} is larger than {limit} bytes"));
            }
            Ok(content)
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Returns how well a name matches, less being better: the end of the path counts most.
fn rank(name: &str, words: &str) -> Option<usize> {
    let lower = name.to_lowercase();
    if words.is_empty() {
        return Some(name.matches('/').count());
    }
    let file = lower.rsplit('/').next().unwrap_or(&lower);
    if file.starts_with(words) {
        return Some(0);
    }
    if file.contains(words) {
        return Some(1);
    }
    if lower.contains(words) {
        return Some(2);
    }
    let mut letters = lower.chars();
    let is_spread = words.chars().all(|letter| letters.any(|other| other == letter));
    is_spread.then_some(3)
}
