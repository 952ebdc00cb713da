//! Wraps tool calls so that their changes are recorded.

use std::path::Path;
use std::sync::Arc;

use windlass_core::permission::Subject;
use windlass_core::tool::{Category, Prepared, ToolError, ToolSpec};

use super::files::{Files, Scope};
use super::node::Bytes;

/// Wraps a call. A call that only reads is returned unchanged.
pub(super) fn follow(files: &Arc<Files>, spec: &ToolSpec, prepared: Prepared) -> Prepared {
    if prepared.category == Category::Read {
        return prepared;
    }
    let scope = scope(files.workspace.root(), &prepared);
    let (files, tool) = (Arc::clone(files), spec.name.clone());
    prepared.around(move |inner, cx| {
        Box::pin(async move {
            let name = tool.clone();
            let begun = files.blocking(move |files| files.begin(&name, &scope)).await;
            let name = tool.clone();
            if cx.cancel.is_cancelled() {
                // The scan may take so long that the caller gives up. A cancelled call must not run later.
                if begun.is_ok() {
                    let nothing = Some(Vec::new());
                    let _ = files.blocking(move |files| files.end(&name, nothing)).await;
                }
                return Err(ToolError::Canceled(String::new()));
            }
            let mut output = inner.run(cx).await;
            let kept = match begun {
                Ok(paths) => files.blocking(move |files| files.end(&name, paths)).await,
                Err(error) => Err(error),
            };
            // The call's result matters more than the ability to undo it, but the user must know.
            if let Err(error) = kept {
                let warning = format!("what `{tool}` changed cannot be undone: {error}");
                match &mut output {
                    Ok(output) => output.warning = Some(warning),
                    Err(_) => files.notes().notices.push(warning),
                }
            }
            output
        })
    })
}

/// Returns the files that a call can change: those it names if all its subjects are files, otherwise any
/// file.
fn scope(root: &Path, prepared: &Prepared) -> Scope {
    let path = |subject: &Subject| match subject {
        Subject::Path(path) => {
            let whole = root.join(path);
            let inside = whole.strip_prefix(root).unwrap_or(&whole);
            let inside = if inside.as_os_str().is_empty() {
                Path::new(".")
            } else {
                inside
            };
            Some(Bytes::of(inside))
        }
        _ => None,
    };
    let paths: Option<Vec<Bytes>> = prepared.subjects.iter().map(path).collect();
    match paths {
        Some(paths) if !paths.is_empty() => Scope::Paths(paths),
        _ => Scope::Everything,
    }
}
