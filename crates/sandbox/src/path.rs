//! Paths as a model writes them. This is the only module that resolves them.

use std::path::{Path, PathBuf};

use windlass_core::tool::{ExecutionContext, ToolContext, ToolError};

/// Resolves a path: `~` is the home folder, and a relative path starts in the working directory.
///
/// This does not check access: [`crate::Roots`] does when the file is opened.
///
/// # Errors
/// If the path is empty, contains a NUL, or needs a home folder that is not known.
pub fn resolve_path(cx: &ToolContext, path: &str) -> Result<PathBuf, ToolError> {
    path_in(&cx.execution, path)
}

/// Like [`resolve_path`], for a call that does not run yet.
///
/// # Errors
/// As [`resolve_path`].
pub fn path_in(execution: &ExecutionContext, path: &str) -> Result<PathBuf, ToolError> {
    if path.is_empty() {
        return Err(ToolError::Invalid("`path` is empty.".to_owned()));
    }
    if path.contains('\0') {
        return Err(ToolError::Invalid(
            "`path` holds a NUL character, which no path can.".to_owned(),
        ));
    }
    Ok(place(execution, &expand_home(execution, path)?))
}

/// Resolves a path that was derived from one that a model wrote, without `~`.
pub fn place(execution: &ExecutionContext, path: &Path) -> PathBuf {
    // Collecting the components drops `.` and repeated slashes, which makes results easier to read.
    execution.cwd.join(path).components().collect()
}

fn expand_home(execution: &ExecutionContext, path: &str) -> Result<PathBuf, ToolError> {
    let rest = match path.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return Ok(PathBuf::from(path)),
    };
    let home = execution.env.get("HOME").filter(|home| !home.is_empty());
    let home =
        home.ok_or_else(|| ToolError::Invalid("`~` means nothing here: HOME is not set.".to_owned()))?;
    Ok(Path::new(home).join(rest))
}

/// Formats a path for the model: relative inside the working directory, absolute elsewhere.
pub fn shown(cwd: &Path, path: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;
    use windlass_core::tool::{CallModel, Person, Progress};

    use super::*;

    fn context(home: Option<&str>) -> ToolContext {
        let env = home
            .map(|home| ("HOME".to_owned(), home.to_owned()))
            .into_iter()
            .collect();
        ToolContext {
            call_id: "1".into(),
            cancel: CancellationToken::new(),
            execution: Arc::new(ExecutionContext {
                cwd: "/project".into(),
                env,
                session: None,
            }),
            progress: Progress::none(),
            person: Person::nobody(),
            model: CallModel::none(),
            confirmed: false,
            places: Arc::default(),
        }
    }

    #[test]
    fn paths_mean_places() {
        let cases = [
            ("a.txt", "/project/a.txt"),
            ("./a//b/./c", "/project/a/b/c"),
            ("../x", "/project/../x"),
            ("/etc/hosts", "/etc/hosts"),
            ("~", "/home/ann"),
            ("~/a", "/home/ann/a"),
            ("~//etc/hosts", "/home/ann/etc/hosts"),
            ("~ann/a", "/project/~ann/a"),
        ];
        for (path, place) in cases {
            let resolved = resolve_path(&context(Some("/home/ann")), path).expect(path);
            assert_eq!(resolved, Path::new(place), "{path}");
        }
        for path in ["", "a\0b"] {
            assert!(matches!(
                resolve_path(&context(None), path),
                Err(ToolError::Invalid(_))
            ));
        }
        assert!(resolve_path(&context(None), "~/a").is_err());
        assert!(resolve_path(&context(Some("")), "~").is_err());
    }

    #[test]
    fn paths_are_shown_short() {
        let cwd = Path::new("/project");
        for (path, text) in [
            ("/project/a/b", "a/b"),
            ("/project", "."),
            ("/projects/a", "/projects/a"),
        ] {
            assert_eq!(shown(cwd, Path::new(path)), text);
        }
    }
}
