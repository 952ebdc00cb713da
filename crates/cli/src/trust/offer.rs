//! Asks, before a conversation begins, whether to trust the folder it is in.

use std::io::{BufRead, Write};
use std::path::Path;

use super::content::Snapshot;
use super::review::{line, review};
use super::store::Store;
use super::{Standing, look};
use crate::environment;
use crate::folders::{Folders, Project};
use crate::terminal::tell;

/// Shows what the project around `cwd` would bring along and asks about it, unless that was answered before. Must only be
/// called where somebody is there. Nothing that goes wrong here stops anybody: what is not trusted has no effect.
pub(crate) fn offer(folders: &Folders, cwd: &Path) {
    // An agent's command cannot answer for the user.
    if environment::var("WINDLASS_SESSION").is_some() {
        return;
    }
    let Some(project) = folders.project(cwd) else {
        return;
    };
    let has_changed = match look(folders, &project) {
        Standing::Untrusted => false,
        Standing::Changed => true,
        // Settings that are read next say why nothing of it takes effect.
        Standing::Trusted(_) | Standing::Unfit(_) | Standing::Unknown(_) => return,
    };
    if let Err(why) = ask(folders, &project, has_changed) {
        tell!(
            "{}: not trusted: {}",
            line(&project.root.display().to_string()),
            line(&why)
        );
    }
}

fn ask(folders: &Folders, project: &Project, has_changed: bool) -> Result<(), String> {
    let mut store = Store::read(&folders.trust_file())?;
    // What is shown and what is remembered are the same bytes, whatever happens to the files meanwhile.
    let snapshot = Snapshot::read(project)?;
    if store.is_declined(&project.root, &snapshot.hash) {
        return Ok(());
    }
    let text = review(project, &snapshot).map_err(|error| error.to_string())?;
    tell!(
        "This folder has settings, tools or commands of its own, written by whoever wrote the folder:\n\n{text}"
    );
    if has_changed {
        tell!("They changed since you trusted this folder.");
    }
    tell!(
        "y = trust them, until one changes · n = no, and do not ask again until they change · Enter = not now"
    );
    match answer().as_str() {
        "y" | "yes" => store.insert(&project.root, snapshot.hash)?,
        "n" | "no" => store.decline(&project.root, snapshot.hash),
        _ => return Ok(()),
    }
    let path = folders.trust_file();
    store
        .write()
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// What is typed; nothing when nothing can be read.
fn answer() -> String {
    let mut err = std::io::stderr();
    let _ = write!(err, "Trust this folder? ").and_then(|()| err.flush());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if !read.is_ok_and(|bytes| bytes > 0) {
        tell!("");
        return String::new();
    }
    answer.trim().to_lowercase()
}
