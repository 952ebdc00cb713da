//! Calls that record what they change.

use std::path::Path;
use std::sync::Arc;

use windlass_core::permission::Subject;
use windlass_core::tool::{Category, Prepared, ToolError, ToolSpec};

use super::files::{Files, Scope};
use super::node::Bytes;

/// The same call, followed. One that only reads is left as it is.
pub(super) fn follow(files: &Arc<Files>, spec: &ToolSpec, prepared: Prepared) -> Prepared {
    if prepared.category == Category::Read {
        return prepared;
    }
    let scope = scope(files.ground.root(), &prepared);
    let (files, tool) = (Arc::clone(files), spec.name.clone());
    prepared.around(move |inner, cx| {
        Box::pin(async move {
            let name = tool.clone();
            let begun = files.blocking(move |files| files.begin(&name, &scope)).await;
            let name = tool.clone();
            if cx.cancel.is_cancelled() {
                // Looking may take so long that nobody waits any more. What was given up must not be done later.
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
            // The work counts more than the way back, but the user must know.
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

/// What a call can change: the files it names when all it names are files, and otherwise anything.
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
