//! `code_search`: finds the files for a question, with their best lines.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::permission::Subject;
use windlass_core::text;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{resolve_path, shown};

use crate::index::IndexedFolder;
use crate::live::CodeIndex;
use crate::search::SearchScope;
use crate::show::shown_text;

/// Time that a call waits for an index that is not up to date. It searches the older one then.
const UPDATE_LIMIT: Duration = Duration::from_secs(2);
/// Time that a call waits for the first index of a workspace.
const BUILD_LIMIT: Duration = Duration::from_secs(60);
/// Number of files of a result.
const FILES: usize = 8;
const DEFAULT_LINES: usize = 60;
const MAX_LINES: usize = 400;

/// Finds the files that fit a question, an error or names, with their best lines. For an exact text use grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeSearchInput {
    query: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    lines: Option<usize>,
    /// Search Sourcegraph instead.
    #[serde(default)]
    remote: Option<bool>,
}

/// A second source of the tool: a server with an index of its own.
#[async_trait]
pub trait RemoteSearch: Send + Sync {
    /// Name of the server, for permission rules.
    fn host(&self) -> &str;

    /// Searches the server. Returns at most `files` files. Has a time limit of its own.
    ///
    /// # Errors
    /// Fails with a message for the model.
    async fn search(&self, query: &str, files: usize) -> Result<Vec<RemoteHit>, String>;
}

/// A file that a server found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteHit {
    /// Repository and path.
    pub path: String,
    /// Numbers and texts of its lines.
    pub lines: Vec<(u32, String)>,
}

/// The tool.
pub struct CodeSearch {
    /// The index.
    pub index: CodeIndex,
    /// Folders of the session.
    pub workspace: Workspace,
    /// The second source, if it is configured and the network is allowed.
    pub remote: Option<Arc<dyn RemoteSearch>>,
}

impl Tool for CodeSearch {
    type Input = CodeSearchInput;
    const NAME: &'static str = "code_search";

    fn category(&self, _: &CodeSearchInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &CodeSearchInput) -> Judgement {
        match &self.remote {
            Some(remote) if input.remote == Some(true) => Judgement {
                subjects: vec![Subject::Host(remote.host().to_owned())],
                ..Judgement::of(Category::Read)
            },
            _ => self.workspace.reading(&fixed_part(input.path.as_deref())),
        }
    }

    async fn run(&self, input: CodeSearchInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.query.trim().is_empty() {
            return Err(ToolError::Invalid("`query` is empty.".to_owned()));
        }
        let lines = input.lines.unwrap_or(DEFAULT_LINES).min(MAX_LINES);
        if input.remote == Some(true) {
            return self.ask_remote(&input.query, lines, &cx).await;
        }
        let scope = PathScope::new(input.path.as_deref(), self.index.folder(), &cx)?;
        let limit = match self.index.current() {
            Some(_) => UPDATE_LIMIT,
            None => BUILD_LIMIT,
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Canceled(String::new())),
            _ = self.index.up_to_date(limit) => {}
        }
        let warning = self.index.take_notices().join("\n");
        let Some(index) = self.index.current() else {
            return Err(ToolError::Transient(
                "The code index of this workspace is not ready yet; use grep meanwhile.".to_owned(),
            ));
        };
        let folder = self.index.folder().clone();
        let cwd = cx.execution.cwd.clone();
        let work = move || {
            let wanted = |path: &str| scope.contains(path);
            let scope = SearchScope {
                wanted: Some(&wanted),
                code_only: false,
            };
            let found = index.search(&input.query, FILES, &scope);
            let mut best = index.best_lines(&folder, &found, lines);
            for file in &mut best {
                file.path = shown(&cwd, &folder.root.join(&file.path));
            }
            answer(&input.query, &best, found.total)
        };
        let output = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Canceled(String::new())),
            output = tokio::task::spawn_blocking(work) => output,
        };
        let output = output.map_err(|error| ToolError::Permanent(format!("The search failed: {error}.")))?;
        Ok(ToolOutput {
            warning: Some(warning).filter(|text| !text.is_empty()),
            ..output
        })
    }
}

impl CodeSearch {
    async fn ask_remote(&self, query: &str, lines: usize, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(remote) = &self.remote else {
            return Err(ToolError::Invalid(
                "There is no remote code search: it needs `code.sourcegraph_url` in the settings and access to the \
                 network. Leave out `remote` to search the workspace."
                    .to_owned(),
            ));
        };
        let hits = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Canceled(String::new())),
            hits = remote.search(query, FILES) => hits.map_err(ToolError::Transient)?,
        };
        let total = hits.len();
        let mut left = lines;
        let mut best = Vec::new();
        for mut hit in hits {
            hit.lines.truncate(left);
            left -= hit.lines.len();
            best.push(crate::show::ShownFile {
                path: hit.path,
                score: 0.0,
                lines: hit.lines,
            });
        }
        Ok(answer(query, &best, total))
    }
}

fn answer(query: &str, best: &[crate::show::ShownFile], total: usize) -> ToolOutput {
    let mut content = match best {
        [] => format!("No file fits: {}", query.trim()),
        best => shown_text(best),
    };
    let more = total.saturating_sub(best.len());
    if more > 0 && !best.is_empty() {
        content.push_str(&format!(
            "\n[{} more with some of the words]",
            text::count(more, "file")
        ));
    }
    let files: Vec<_> = best
        .iter()
        .map(|file| json!({ "path": file.path, "lines": file.lines.iter().map(|line| line.0).collect::<Vec<_>>() }))
        .collect();
    ToolOutput::text(content).with_details(json!({ "files": files, "total": total }))
}

/// Returns the part of a path before its first wildcard.
fn fixed_part(path: Option<&str>) -> String {
    let path = path.unwrap_or(".");
    match path.find(['*', '?', '[', '{']) {
        None => path.to_owned(),
        Some(at) => match path.get(..at).and_then(|start| start.rsplit_once('/')) {
            Some(("", _)) => "/".to_owned(),
            Some((folder, _)) => folder.to_owned(),
            None => ".".to_owned(),
        },
    }
}

/// The part of the workspace that is searched.
enum PathScope {
    All,
    /// A file or a folder.
    Below(String),
    Pattern(GlobMatcher),
}

impl PathScope {
    fn new(path: Option<&str>, folder: &IndexedFolder, cx: &ToolContext) -> Result<Self, ToolError> {
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Ok(Self::All);
        };
        let outside = || {
            ToolError::Invalid(format!(
                "`path` is outside the indexed workspace {}; use grep there.",
                folder.root.display()
            ))
        };
        let place = resolve_path(cx, path)?;
        let place = std::fs::canonicalize(&place).unwrap_or(place);
        let below = place.strip_prefix(&folder.root).map_err(|_| outside())?;
        let below = below.to_str().ok_or_else(outside)?;
        if !path.contains(['*', '?', '[', '{']) {
            if !place.exists() {
                return Err(ToolError::Invalid(format!(
                    "`path` names nothing: {path} does not exist."
                )));
            }
            return Ok(if below.is_empty() {
                Self::All
            } else {
                Self::Below(below.to_owned())
            });
        }
        let below = if path.contains('/') {
            below.to_owned()
        } else {
            format!("**/{path}")
        };
        let glob = GlobBuilder::new(&below).literal_separator(true).build();
        let glob = glob.map_err(|error| {
            ToolError::Invalid(format!("`path` is not a valid pattern: {}.", error.kind()))
        })?;
        Ok(Self::Pattern(glob.compile_matcher()))
    }

    fn contains(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Below(folder) => Path::new(path).starts_with(folder),
            Self::Pattern(glob) => glob.is_match(path),
        }
    }
}
