//! `windlass trust`: shows a project's own files, asks, and stores the answer.

use std::path::{Path, PathBuf};

use super::question::{Question, change, store};
use super::review::line;
use crate::asking::confirm;
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{say, tell};
use windlass_args::TrustOptions;
use windlass_config::environment;
use windlass_config::folders::{Folders, Project};
use windlass_config::trust::Snapshot;
use windlass_config::{Problem, ProblemKind};

/// A change of trust, for the audit log.
pub(crate) struct TrustChange {
    /// The change, as the audit log calls it.
    pub(crate) action: &'static str,
    /// Folder that is trusted now, or no longer.
    pub(crate) folder: PathBuf,
}

/// Runs the command. Also returns the change that it made.
pub(crate) fn command(options: &TrustOptions) -> Result<(Exit, Option<TrustChange>), Problem> {
    let folders = environment::folders()?;
    if options.list {
        return list(&folders).map(|exit| (exit, None));
    }
    let folder = working_directory(None)?.join(options.folder.as_deref().unwrap_or(Path::new("")));
    if options.revoke {
        let revoked = revoke(&folders, &folder)?.map(|folder| TrustChange {
            action: "trust_revoked",
            folder,
        });
        return Ok((Exit::Ok, revoked));
    }
    if environment::var("WINDLASS_SESSION").is_some() {
        let text = "an agent's command cannot trust a folder; run `windlass trust` yourself";
        return Err(Problem::new(ProblemKind::Denied, text));
    }
    let project = project(&folders, &folder)?;
    let (exit, is_new) = trust(&folders, &project, options.yes)?;
    let given = is_new.then_some(TrustChange {
        action: "trust_given",
        folder: project.root,
    });
    Ok((exit, given))
}

/// Also returns true if the folder was not trusted before.
fn trust(folders: &Folders, project: &Project, yes: bool) -> Result<(Exit, bool), Problem> {
    let question = Question::about(folders, project)?;
    say!("{}", question.text()?);
    if question.is_trusted() {
        say!("This folder is already trusted.");
        return Ok((Exit::Ok, false));
    }
    if question.has_changed() {
        say!("It has changed since you trusted it.");
    }
    let alone = "not trusted: there is no terminal to ask on; `windlass trust --yes` trusts without asking";
    if !yes && !confirm(alone, || "Trust this folder?".to_owned())? {
        tell!("not trusted: none of this takes effect");
        return Ok((Exit::Denied, false));
    }
    question.trust()?;
    say!("Trusted until one of these files changes. `windlass trust --revoke` revokes it.");
    Ok((Exit::Ok, true))
}

fn list(folders: &Folders) -> Result<Exit, Problem> {
    let trusted = store(folders)?;
    if trusted.all().next().is_none() {
        tell!("No folder is trusted; `windlass trust` in a project shows what trusting it means.");
    }
    for (path, trusted) in trusted.all() {
        let root = PathBuf::from(path);
        let state = match Snapshot::read(&Project { root }) {
            Ok(snapshot) if snapshot.hash == trusted.hash => "trusted",
            Ok(_) => "changed",
            Err(_) => "unusable",
        };
        say!("{state:<9} {}  {}", line(&trusted.when), line(path));
    }
    Ok(Exit::Ok)
}

/// Returns the folder that is no longer trusted.
fn revoke(folders: &Folders, folder: &Path) -> Result<Option<PathBuf>, Problem> {
    let trusted = store(folders)?;
    // A folder whose files no longer exist is still on the list, under its own name.
    let around = folder.canonicalize().ok();
    let around = around.and_then(|folder| folders.project(&folder));
    let roots = [Some(folder.to_owned()), around.map(|project| project.root)];
    let is_trusted = |root: &PathBuf| trusted.find(root).is_some();
    let Some(root) = roots.into_iter().flatten().find(is_trusted) else {
        say!("{}: was not trusted", line(&folder.display().to_string()));
        return Ok(None);
    };
    change(folders, |trusted| trusted.remove(&root))?;
    say!("{}: no longer trusted", line(&root.display().to_string()));
    Ok(Some(root))
}

fn project(folders: &Folders, folder: &Path) -> Result<Project, Problem> {
    let shown = folder.display();
    let real = folder
        .canonicalize()
        .map_err(|error| Problem::usage(format!("{shown}: {error}")))?;
    if !real.is_dir() {
        return Err(Problem::usage(format!("{shown}: not a folder")));
    }
    folders.project(&real).ok_or_else(|| {
        let what = "there is no .windlass/config.toml and no .windlass/tools.yaml";
        Problem::usage(format!(
            "{shown}: nothing to trust: {what} here or in a parent folder within the repository"
        ))
    })
}
