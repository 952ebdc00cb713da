//! The servers of a session, and the tools that they offer.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_core::tool::AnyTool;

use crate::config::{Launcher, McpServerConfig};
use crate::definitions::Definitions;
use crate::era::EraMemory;
use crate::naming::server_part;
use crate::oauth::TokenFile;
use crate::search::{CallTool, ResourceTool, SearchTool};
use crate::server::{McpServer, Phase};
use crate::tool::McpTool;

/// Surroundings of the servers.
pub struct Environment {
    /// Starts processes.
    pub launcher: Arc<dyn Launcher>,
    /// The revisions that servers spoke the last time.
    pub eras: EraMemory,
    /// The definitions of tools that were in use.
    pub definitions: Definitions,
    /// Tokens for servers behind a URL.
    pub tokens: TokenFile,
    /// Folder of the session.
    pub cwd: PathBuf,
}

/// The servers of a session. Dropping it ends them.
pub struct ServerSet {
    around: Arc<Environment>,
    servers: Vec<Arc<McpServer>>,
    /// The set whose servers come first, and end with it.
    base: Option<Arc<ServerSet>>,
}

impl ServerSet {
    /// Creates the servers. None is started yet.
    pub fn new(configs: Vec<McpServerConfig>, around: Environment) -> Arc<Self> {
        let around = Arc::new(around);
        let made = |config| McpServer::new(config, Arc::clone(&around));
        let servers = configs.into_iter().map(made).collect();
        Arc::new(Self {
            servers,
            around,
            base: None,
        })
    }

    /// Creates a set with the servers of another one, and further servers after them. A name that an earlier one has, or one
    /// that would be the same in the names of tools, means that server. None of the further ones is started yet.
    pub fn extending(base: &Arc<Self>, configs: Vec<McpServerConfig>) -> Arc<Self> {
        let around = Arc::clone(&base.around);
        let known = base.servers();
        let mut parts: BTreeSet<String> = known
            .iter()
            .map(|server| server_part(&server.config().name))
            .collect();
        let servers = configs
            .into_iter()
            .filter(|config| parts.insert(server_part(&config.name)))
            .map(|config| McpServer::new(config, Arc::clone(&around)))
            .collect();
        Arc::new(Self {
            around,
            servers,
            base: Some(Arc::clone(base)),
        })
    }

    /// Returns the servers, in the order of the configuration.
    pub fn servers(&self) -> Vec<Arc<McpServer>> {
        let mut all = self.base.as_ref().map(|base| base.servers()).unwrap_or_default();
        all.extend(self.servers.iter().cloned());
        all
    }

    /// Returns the server with this name.
    pub fn find(&self, name: &str) -> Option<Arc<McpServer>> {
        self.servers()
            .into_iter()
            .find(|server| server.config().name == name)
    }

    /// Waits until every server is ready or has failed.
    pub async fn settled(&self) {
        for server in self.servers() {
            server.settled().await;
        }
    }

    /// Returns the tools of the servers that are ready.
    pub(crate) fn tools(&self) -> Vec<Arc<McpTool>> {
        let servers = self.servers();
        servers.iter().flat_map(|server| server.tools()).collect()
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<Arc<McpTool>> {
        self.tools().into_iter().find(|tool| tool.name() == name)
    }

    /// Returns the tools for a request. If those of the servers take more than `budget` bytes, none of them is
    /// included, and the model finds them with `tool_search`. Servers that still start are expected to have as many as
    /// the others, so that tools are not offered in one turn and gone in the next.
    pub fn offer(self: &Arc<Self>, budget: usize) -> Vec<Arc<dyn AnyTool>> {
        let mut offer = self.search_tools();
        let tools = self.tools();
        let weight: usize = tools.iter().map(|tool| tool.weight()).sum();
        let (ready, starting) = self.counts();
        let expected = weight.saturating_mul(ready + starting) / ready.max(1);
        if expected <= budget {
            offer.extend(tools.into_iter().map(|tool| tool as Arc<dyn AnyTool>));
        }
        offer
    }

    /// Returns the tools that find and call the tools of servers. They depend on the configuration alone, so that a
    /// request stays the same while servers start.
    pub fn search_tools(self: &Arc<Self>) -> Vec<Arc<dyn AnyTool>> {
        let names: Vec<String> = self
            .servers()
            .iter()
            .filter(|server| server.config().enabled)
            .map(|server| server.config().name.clone())
            .collect();
        vec![
            Arc::new(SearchTool::new(self, &names)),
            Arc::new(CallTool::new(self)),
            Arc::new(ResourceTool::new(self)),
        ]
    }

    /// Returns a digest of the tools that are offered, to notice changes.
    pub fn fingerprint(&self) -> String {
        let tools = self.tools();
        let digests: Vec<&str> = tools.iter().map(|tool| tool.digest()).collect();
        digests.join(" ")
    }

    /// Returns the number of servers that are ready, and of those that still start.
    pub fn counts(&self) -> (usize, usize) {
        let servers = self.servers();
        let count = |phase: Phase| servers.iter().filter(|server| server.phase() == phase).count();
        (count(Phase::Ready), count(Phase::Starting))
    }
}

impl Drop for ServerSet {
    fn drop(&mut self) {
        for server in &self.servers {
            server.stop();
        }
    }
}
