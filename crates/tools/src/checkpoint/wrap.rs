//! A tool that records what it changes.

use std::path::Path;
use std::sync::Arc;

use windlass_core::permission::Subject;
use windlass_core::tool::{AnyTool, Category, Prepared, ToolError, ToolSpec, ToolTraits};

use super::files::{Files, Scope};
use super::node::Bytes;

/// A tool, followed.
pub(super) struct Tracked {
    tool: Arc<dyn AnyTool>,
    tracker: Arc<Files>,
}

impl Tracked {
    pub(super) fn new(tool: Arc<dyn AnyTool>, tracker: Arc<Files>) -> Self {
        Self { tool, tracker }
    }
}

impl AnyTool for Tracked {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn traits(&self) -> ToolTraits {
        self.tool.traits()
    }

    fn definition(&self) -> Option<String> {
        self.tool.definition()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let prepared = Arc::clone(&self.tool).prepare(arguments)?;
        if prepared.category == Category::Read {
            return Ok(prepared);
        }
        let scope = self.scope(&prepared);
        Ok(prepared.around(move |inner, cx| {
            Box::pin(async move {
                let name = self.tool.spec().name.clone();
                let begun = {
                    let name = name.clone();
                    self.tracker
                        .blocking(move |tracker| tracker.begin(&name, &scope))
                        .await
                };
                let output = inner.run(cx).await;
                let kept = match begun {
                    Ok(paths) => {
                        self.tracker
                            .blocking(move |tracker| tracker.end(&name, paths))
                            .await
                    }
                    Err(error) => Err(error),
                };
                // The work counts more than the way back, but the user must know.
                if let Err(error) = kept {
                    self.tracker.lock().notices.push(format!(
                        "what `{}` changed cannot be undone: {error}",
                        self.tool.spec().name
                    ));
                }
                output
            })
        }))
    }
}

impl Tracked {
    /// What a call can change: the files it names when all it names are files, and otherwise anything.
    fn scope(&self, prepared: &Prepared) -> Scope {
        let root = self.tracker.ground.root();
        let path = |subject: &Subject| match subject {
            Subject::Path(path) => {
                let whole = root.join(path);
                let inside = whole.strip_prefix(root).unwrap_or(&whole);
                Some(Bytes::of(if inside.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    inside
                }))
            }
            _ => None,
        };
        let paths: Option<Vec<Bytes>> = prepared.subjects.iter().map(path).collect();
        match paths {
            Some(paths) if !paths.is_empty() => Scope::Paths(paths),
            _ => Scope::Everything,
        }
    }
}
