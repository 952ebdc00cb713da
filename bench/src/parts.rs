//! Parts of a Windlass session, for running sessions or the loop in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use windlass_core::clock::SystemClock;
use windlass_core::tool::ExecutionContext;
use windlass_providers::key::Secret;
use windlass_providers::preset::preset;
use windlass_providers::{HttpProvider, ProviderConfig, Transport, install_tls, registry};
use windlass_tools::{OutputStore, ToolsConfig};

use windlass_sandbox::{CommandSandbox, Workspace, child_environment};

use crate::record;
use crate::sandbox;

/// Creates a provider for the server at `port`.
pub(crate) fn provider(port: u16) -> Result<HttpProvider> {
    install_tls();
    let vendor = preset("anthropic").context("there is no such preset")?;
    let config = ProviderConfig {
        name: vendor.name.clone(),
        wire: vendor.wire,
        base_url: format!("http://127.0.0.1:{port}"),
        key: Some(Secret::new("bench")),
        key_hint: vendor.key_hint(),
        headers: Vec::new(),
        quirks: vendor.quirks,
        model: registry::lookup(&vendor.default_model, &[]),
        reasoning: None,
        limits: Default::default(),
        retry: Default::default(),
    };
    Ok(HttpProvider::new(
        config,
        Transport::new(),
        Arc::new(SystemClock::default()),
    )?)
}

/// Returns the tools of a session in the current folder without settings. `helper` sets up the sandboxes,
/// `outputs` stores outputs that are too long.
pub(crate) fn tools(helper: &Path, outputs: PathBuf) -> Result<ToolsConfig> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let workspace = Workspace::new(&std::env::current_dir()?, home.as_deref());
    Ok(ToolsConfig {
        sandbox: Arc::new(CommandSandbox::with_helper(sandbox::policy()?, helper).hiding(&workspace)),
        outputs: Some(Arc::new(OutputStore::new(outputs))),
        workspace,
        ..ToolsConfig::default()
    })
}

/// Returns the execution context for the calls of a session.
pub(crate) fn execution(session: &str) -> Result<ExecutionContext> {
    let cwd = std::env::current_dir()?;
    Ok(ExecutionContext {
        env: child_environment(std::env::vars(), &cwd, session),
        session: Some(session.into()),
        cwd,
    })
}

/// Start of a Windlass request: the system prompt, and the user's message.
pub(crate) struct Told {
    pub(crate) system: String,
    pub(crate) prompt: String,
}

impl Told {
    /// Reads it from the first recorded request.
    pub(crate) fn read(requests: &Path) -> Result<Self> {
        let requests = record::read(&std::fs::read(requests)?)?;
        let request = requests.first().context("nothing was recorded")?;
        let body: serde_json::Value = serde_json::from_slice(&request.fresh)?;
        let texts = |place: &str| -> Result<String> {
            let blocks = body.pointer(place).and_then(|blocks| blocks.as_array());
            let blocks = blocks.with_context(|| format!("the request has no {place}"))?;
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str())
                .collect();
            Ok(texts.join("\n"))
        };
        Ok(Self {
            system: texts("/system")?,
            prompt: texts("/messages/0/content")?,
        })
    }
}
