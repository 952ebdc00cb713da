//! Folders that a session may work in.
//!
//! SAFE-10: a session in the home folder, or in a folder above it, could change everything that the user has. It needs
//! a deliberate decision. SAFE-3: no session works in a folder of the kernel, and none that a client of a server starts in a
//! denied one.

use std::io::{BufRead, Write};
use std::path::Path;

use crate::terminal::tell;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_host::sandbox_access::SandboxAccess;
use windlass_sandbox::is_of_kernel;

/// Allows a session in `cwd`, asks the user if one can answer, or refuses.
///
/// # Errors
/// If the folder is too wide and nobody allowed it.
pub(crate) fn check(settings: &Settings, cwd: &Path, is_somebody_there: bool) -> Result<(), Problem> {
    if is_in_kernel(cwd) {
        return Err(Problem::usage(format!(
            "{} is a folder of the kernel, which shows processes and devices: start in a folder with files",
            cwd.display()
        )));
    }
    let home = environment::var("HOME");
    let Some(what) = wide(cwd, home.as_deref().map(Path::new)) else {
        return Ok(());
    };
    if settings.security.allow_home {
        return Ok(());
    }
    let advice =
        "start in a project's folder, or allow this one with --allow-home or security.allow_home = true";
    // A command run by an agent cannot answer for the user.
    if is_somebody_there && environment::var("WINDLASS_SESSION").is_none() {
        tell!(
            "This is {what}. The agent could change everything in it. To be asked no more: security.allow_home = true"
        );
        if is_yes("Work here? [y/N] ") {
            return Ok(());
        }
        return Err(Problem::new(
            ProblemKind::Denied,
            format!("not started: {advice}"),
        ));
    }
    Err(Problem::usage(format!(
        "{} is {what}, and the agent could change everything in it: {advice}",
        cwd.display()
    )))
}

/// SAFE-3: allows a folder that somebody else than the user of this machine names, such as a client of a server. It may not
/// exist yet.
///
/// # Errors
/// If it is too wide or denied.
pub(crate) fn check_given(settings: &Settings, folder: &Path) -> Result<(), Problem> {
    check(settings, folder, false)?;
    let there = existing(folder);
    let workspace = SandboxAccess::new(&settings.security, there)?.reading_workspace()?;
    let real = workspace.real(&folder.to_string_lossy());
    if workspace.files().denies(&real) {
        let why = format!("{} is denied by security.denied_paths", folder.display());
        return Err(Problem::new(ProblemKind::Denied, why));
    }
    Ok(())
}

/// Returns the folder, or the first one above it that exists.
pub(crate) fn existing(folder: &Path) -> &Path {
    let mut above = folder.ancestors();
    above.find(|folder| folder.is_dir()).unwrap_or(folder)
}

fn is_in_kernel(folder: &Path) -> bool {
    let there = existing(folder);
    let real = std::fs::canonicalize(there).unwrap_or_else(|_| there.to_owned());
    is_of_kernel(&real)
}

/// Names a folder that contains everything of the user; `None` for any other folder.
fn wide(cwd: &Path, home: Option<&Path>) -> Option<&'static str> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (cwd, home) = (real(cwd), home.map(real));
    if cwd == Path::new("/") {
        return Some("the root of the file system");
    }
    match home {
        Some(home) if home == cwd => Some("your home folder"),
        Some(home) if home.starts_with(&cwd) => Some("a folder above your home folder"),
        _ => None,
    }
}

fn is_yes(question: &str) -> bool {
    let mut err = std::io::stderr();
    let _ = write!(err, "{question}").and_then(|()| err.flush());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok_and(|bytes| bytes > 0) && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-10: the home folder and everything above it is wide, under every name; a folder below it is not.
    #[test]
    fn wide_folders_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("users/ann");
        std::fs::create_dir_all(home.join("project")).unwrap();
        std::os::unix::fs::symlink(&home, folder.path().join("link")).unwrap();
        let wide = |path: &Path| wide(path, Some(&home)).is_some();
        assert!(wide(&home) && wide(&folder.path().join("users")) && wide(Path::new("/")));
        assert!(wide(&folder.path().join("link")));
        assert!(!wide(&home.join("project")) && !wide(Path::new("/usr")));
    }
}
