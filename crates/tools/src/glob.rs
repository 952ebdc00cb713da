//! `glob`: finds files by name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkState;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use crate::blocking;
use crate::disk::{self, DiskError};
use crate::search::{PathPattern, Smallest, as_asked, split_root, walk};
use windlass_sandbox::Roots;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{place, resolve_path, shown};

const MAX_RESULTS: usize = 200;

/// Finds files by name, such as `*.rs` (at any depth) or `src/**/*.{ts,tsx}`. Skips what .gitignore excludes. A
/// pattern ending in `/` finds folders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobInput {
    pattern: String,
    /// The working directory by default.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
}

impl GlobInput {
    /// Returns the pattern, and true if it finds folders.
    fn parts(&self) -> (&str, bool) {
        let pattern = self.pattern.strip_prefix("./").unwrap_or(&self.pattern);
        match pattern.strip_suffix('/') {
            Some(pattern) => (pattern, true),
            None => (pattern, false),
        }
    }

    /// Returns the folder that the search starts in, which the pattern may name as well as the path. It is what a judgement
    /// is about.
    fn start(&self) -> String {
        let path = self.path.as_deref().unwrap_or(".");
        let (pattern, _) = self.parts();
        if !pattern.contains('/') {
            return path.to_owned();
        }
        let (start, _) = split_root(pattern);
        match start.as_os_str().is_empty() {
            true => path.to_owned(),
            false if start.starts_with("~") => start.to_string_lossy().into_owned(),
            false => Path::new(path).join(start).to_string_lossy().into_owned(),
        }
    }
}

/// The tool.
pub(crate) struct Glob {
    pub(crate) workspace: Workspace,
}

impl Tool for Glob {
    type Input = GlobInput;
    const NAME: &'static str = "glob";

    fn category(&self, _: &GlobInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &GlobInput) -> Judgement {
        self.workspace.reading(&input.start())
    }

    async fn run(&self, input: GlobInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let base = resolve_path(&cx, input.path.as_deref().unwrap_or("."))?;
        let roots = self.workspace.files_of(&cx);
        let (pattern, folders) = input.parts();
        if pattern.is_empty() {
            return Err(ToolError::Invalid("`pattern` is empty.".to_owned()));
        }
        let search = Search::new(roots, &cx, &base, pattern, folders)?;
        let cancel = cx.cancel.clone();
        blocking::look(&cancel, move || search.answer(&input.pattern, &cx)).await
    }
}

struct Search {
    roots: Arc<Roots>,
    /// The folder as requested.
    root: PathBuf,
    /// The same with every link resolved.
    real: PathBuf,
    pattern: Arc<PathPattern>,
    folders: bool,
}

impl Search {
    fn new(
        roots: Arc<Roots>,
        cx: &ToolContext,
        base: &Path,
        pattern: &str,
        folders: bool,
    ) -> Result<Self, ToolError> {
        let (root, pattern) = if pattern.contains('/') {
            let (start, rest) = split_root(pattern);
            let root = if start.starts_with("~") {
                resolve_path(cx, &start.to_string_lossy())?
            } else {
                place(&cx.execution, &base.join(start))
            };
            (root, PathPattern::anchored(&rest)?)
        } else {
            (base.to_owned(), PathPattern::new(pattern)?)
        };
        // Only the folder that the search starts in was judged, so no other is looked at.
        let real = match disk::real(&roots, &root) {
            Ok((real, FileType::Directory)) => real,
            Ok(_) | Err(DiskError::Missing) if root == base => {
                let name = shown(&cx.execution.cwd, base);
                return Err(ToolError::Permanent(format!("`path` is not a folder: {name}")));
            }
            // The pattern leads into a folder that does not exist, so nothing matches.
            Ok(_) | Err(DiskError::Missing) => root.clone(),
            Err(error) => return Err(error.about(&shown(&cx.execution.cwd, &root))),
        };
        Ok(Self {
            roots,
            root,
            real,
            pattern: Arc::new(pattern),
            folders,
        })
    }

    fn answer(&self, asked: &str, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = self.run(&cx.cancel);
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Canceled(String::new()));
        }
        let total = found.total();
        let mut lines: Vec<String> = found
            .into_kept()
            .map(|(path, ())| shown(&cx.execution.cwd, &as_asked(&self.root, &self.real, &path)))
            .collect();
        if total == 0 {
            let kind = if self.folders { "folder" } else { "file" };
            lines.push(format!("No {kind} matches {asked}."));
        } else if total > lines.len() {
            lines.push(format!(
                "[{} more left out; narrow the pattern]",
                total - lines.len()
            ));
        }
        Ok(ToolOutput::text(lines.join("\n")).with_details(json!({ "pattern": asked, "matches": total })))
    }

    fn run(&self, cancel: &CancellationToken) -> Smallest<()> {
        let found = Mutex::new(Smallest::new(MAX_RESULTS));
        let (pattern, real, folders) = (Arc::clone(&self.pattern), self.real.clone(), self.folders);
        let wanted = move |path: &Path| !folders && pattern.fits_below(&real, path);
        walk(&self.roots, &self.real, wanted).run(|| {
            Box::new(|entry| {
                if cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                if let Ok(entry) = entry
                    && entry.depth() > 0
                    && entry.file_type().is_some_and(|kind| kind.is_dir()) == self.folders
                    && (!self.folders || self.pattern.fits_below(&self.real, entry.path()))
                {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.add(entry.into_path(), 1, ());
                }
                WalkState::Continue
            })
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
