//! The code index in a session: the tool `code_search`, and a map of matching files before a turn.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use windlass_checkpoint::ChangeObserver;
use windlass_codeindex::{
    CodeIndex, CodeSearch, IndexedFolder, RemoteSearch, SearchScope, Sourcegraph, index_file,
};
use windlass_config::settings::{CodeSettings, NetworkAccess, Settings};
use windlass_config::{Problem, ProblemKind, environment};
use windlass_core::hook::{Hook, Hooks, TurnAction, TurnHook};
use windlass_core::message::{Fragment, FragmentSource, Message, Role};
use windlass_core::tool::{AnyTool, erase};
use windlass_service::TurnStart;

use super::{Extension, ExtensionHost, ExtensionOffer};
use crate::factory::SessionSpec;
use crate::sandbox_access::SandboxAccess;

/// Variable with the access token, as Sourcegraph's own programs name it.
const TOKEN: &str = "SRC_ACCESS_TOKEN";
/// Number of files in a map.
const MAP_FILES: usize = 15;
/// Label of the map among the fragments of a message.
pub const MAP_LABEL: &str = "code map";
const MAP_HEAD: &str = "Files of this workspace that fit the request, best first, with line numbers of definitions. \
                        A word index found them: read a file before relying on it, and use code_search for more.\n";

/// The code index of a session.
pub struct CodeExtension {
    index: CodeIndex,
    tool: Arc<dyn AnyTool>,
    hooks: Hooks,
    settings: CodeSettings,
    is_started: bool,
    /// True if the folder had no index when the turn began.
    is_new: bool,
}

impl CodeExtension {
    /// Creates the extension, unless the settings turn it off or the folder is the user's home.
    ///
    /// # Errors
    /// If a path or an address in the settings is wrong.
    pub fn new(
        settings: &Arc<Settings>,
        spec: &SessionSpec,
        host: &ExtensionHost,
    ) -> Result<Option<Self>, Problem> {
        let ExtensionHost {
            access, workspace, ..
        } = host;
        let code = settings.tools.code.clone();
        if !code.index || access.is_home() {
            return Ok(None);
        }
        let root = workspace.root().to_owned();
        let files = workspace.files().elsewhere(std::slice::from_ref(&root));
        let files = files
            .map_err(|error| Problem::new(ProblemKind::Failed, format!("{}: {error}", root.display())))?;
        let folder = IndexedFolder {
            root,
            files: Arc::new(files),
            max_files: code.max_files,
        };
        let file = index_file(&environment::folders()?.code_indexes(), &folder.root);
        let index = spec.indexes.share(folder, access.denied(), file);
        let tool = erase(CodeSearch {
            index: index.clone(),
            workspace: host.workspace.clone(),
            remote: remote(settings)?,
        });
        let mut hooks = Hooks::new();
        if code.map_tokens > 0 {
            hooks.push(MapHook {
                index: index.clone(),
                settings: code.clone(),
                last: Mutex::default(),
            });
        }
        Ok(Some(Self {
            index,
            tool,
            hooks,
            settings: code,
            is_started: false,
            is_new: false,
        }))
    }

    /// Returns the number of files up to which a folder needs no index.
    fn least(&self) -> usize {
        self.settings.map_min_files.max(1)
    }

    /// Returns the index.
    pub(super) fn index(&self) -> &CodeIndex {
        &self.index
    }
}

/// MEM-9: brings what calls change to the index, as the checkpoints find it.
pub(super) struct ChangedFiles(pub(super) CodeIndex);

impl ChangeObserver for ChangedFiles {
    fn files_changed(&self, paths: Option<Vec<PathBuf>>) {
        self.0.report(paths);
    }
}

/// Opens the index of a folder, for commands outside of sessions.
///
/// # Errors
/// If a path in the settings is wrong.
pub fn open(settings: &Settings, cwd: &std::path::Path) -> Result<CodeIndex, Problem> {
    let workspace = SandboxAccess::new(&settings.security, cwd)?.reading_workspace()?;
    let folder = IndexedFolder {
        root: workspace.root().to_owned(),
        files: workspace.files(),
        max_files: settings.tools.code.max_files,
    };
    let file = index_file(&environment::folders()?.code_indexes(), &folder.root);
    Ok(CodeIndex::new(folder, file))
}

/// TOOL-2: returns the second source, if it is configured and the network is allowed.
fn remote(settings: &Settings) -> Result<Option<Arc<dyn RemoteSearch>>, Problem> {
    let code = &settings.tools.code;
    let Some(address) = &code.sourcegraph_url else {
        return Ok(None);
    };
    let token = code.sourcegraph_key_env.as_deref().unwrap_or(TOKEN);
    let token = environment::var(token).filter(|token| !token.trim().is_empty());
    let server = Sourcegraph::new(address, token).map_err(|why| Problem::new(ProblemKind::Config, why))?;
    let is_allowed = match &settings.security.network {
        NetworkAccess::On => true,
        NetworkAccess::Off => false,
        NetworkAccess::Hosts(hosts) => is_listed(server.host(), hosts),
    };
    Ok(is_allowed.then(|| Arc::new(server) as _))
}

fn is_listed(host: &str, hosts: &[String]) -> bool {
    hosts.iter().any(|listed| {
        let listed = listed.split_once(':').map_or(listed.as_str(), |(name, _)| name);
        match listed.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
            None => listed.eq_ignore_ascii_case(host),
        }
    })
}

#[async_trait]
impl Extension for CodeExtension {
    fn name(&self) -> &'static str {
        "code"
    }

    async fn refresh(&mut self, turn: &TurnStart, _: &Settings) -> Vec<String> {
        self.is_new = turn.message.is_some() && self.index.current().is_none() && !self.index.file().exists();
        if turn.message.is_some() && !self.is_new {
            self.index.refresh_if(self.least());
            // A damaged index is noticed while it is loaded.
            if !std::mem::replace(&mut self.is_started, true) {
                self.index
                    .ready(Duration::from_millis(self.settings.map_wait_ms))
                    .await;
            }
        }
        self.index.take_notices()
    }

    fn offer(&self) -> ExtensionOffer {
        let (index, least) = (self.index.clone(), self.least());
        let build: Arc<dyn Fn() + Send + Sync> = Arc::new(move || index.refresh_if(least));
        ExtensionOffer {
            tools: vec![Arc::clone(&self.tool)],
            hooks: self.hooks.clone(),
            // The first index is ready too late for the request of this turn, so it need not delay it.
            ahead: Some(build).filter(|_| self.is_new).into_iter().collect(),
            ..ExtensionOffer::default()
        }
    }

    async fn close(&mut self) {
        let index = self.index.clone();
        let _ = tokio::task::spawn_blocking(move || index.save()).await;
    }
}

/// MEM-5, MEM-9: adds a map of the files that fit the user's message.
struct MapHook {
    index: CodeIndex,
    settings: CodeSettings,
    /// The last map, which is not repeated.
    last: Mutex<String>,
}

impl Hook for MapHook {
    fn name(&self) -> &str {
        "code map"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for MapHook {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        let asked = history.last().filter(|message| message.role == Role::User);
        let asked = asked.map(|message| message.user_text()).unwrap_or_default();
        let limit = Duration::from_millis(self.settings.map_wait_ms);
        let map = tokio::time::timeout(limit, self.map(asked)).await.ok().flatten();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match map.filter(|map| *map != *last) {
            Some(map) => {
                last.clone_from(&map);
                let text = format!("{MAP_HEAD}{}", map.trim_end());
                TurnAction::Start(vec![
                    Fragment::new(FragmentSource::Memory, text).labeled(MAP_LABEL),
                ])
            }
            None => TurnAction::default(),
        }
    }
}

impl MapHook {
    async fn map(&self, asked: String) -> Option<String> {
        if asked.trim().is_empty() || asked.starts_with('/') {
            return None;
        }
        if self.index.current().is_none() && self.index.file().exists() {
            self.index
                .ready(Duration::from_millis(self.settings.map_wait_ms))
                .await;
        }
        let index = self.index.current()?;
        if index.files() <= self.settings.map_min_files {
            return None;
        }
        let folder = self.index.folder().clone();
        // A token of code has about three and a half bytes.
        let budget = self.settings.map_tokens * 7 / 2;
        let budget = budget.saturating_sub(MAP_HEAD.len() + MAP_LABEL.len() + 40);
        let work = move || {
            let found = index.search(&asked, MAP_FILES, &SearchScope::default());
            index.map(&folder, &found, budget)
        };
        tokio::task::spawn_blocking(work).await.ok().flatten()
    }
}
