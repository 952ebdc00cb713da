//! Removes a worktree.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType};
use tokio_util::sync::CancellationToken;
use windlass_sandbox::folder::{names, open_below_to_list, set_folder_mode};

use crate::copy::join;
use crate::error::{Context, Result, WorktreeError};
use crate::git::Git;
use crate::node::{Root, as_path};
use crate::record::Record;
use crate::repository::unregister;

/// Maximum number of folders that are opened up before they are removed.
const FOLDERS: usize = 1_000_000;

/// Removes the files first and the description last, so that what is left after a failure can be found.
pub(crate) fn remove(
    at: &Path,
    record: Option<&Record>,
    git: Option<&Git>,
    cancel: &CancellationToken,
) -> Result<()> {
    let repository = record.and_then(|record| record.repository.as_ref());
    // A repository that is gone took its branches with it.
    let repository = repository.filter(|part| part.common.is_dir());
    if repository.is_some() && git.is_none() {
        return Err(WorktreeError::Git {
            command: "update-ref".to_owned(),
            problem: "git is not installed".to_owned(),
        });
    }
    for name in ["tree", "base"] {
        let folder = at.join(name);
        erase(&folder).when("remove", &folder)?;
    }
    if let (Some(record), Some(part), Some(git)) = (record, repository, git) {
        unregister(git, &part.common, &record.tree, &part.branch, cancel)?;
    }
    erase(at).when("remove", at)
}

/// Removes a folder. Links in it are removed, not followed.
fn erase(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        done => done,
    }
}

/// Makes folders accessible that are closed to their owner.
fn open_up(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Ok(());
    };
    let root = Root::open(parent)?;
    let mut folders = vec![name.as_bytes().to_vec()];
    for _ in 0..FOLDERS {
        let Some(path) = folders.pop() else {
            break;
        };
        let (around, name) = root.parent(&path)?;
        set_folder_mode(&around, OsStr::from_bytes(name), 0o700)?;
        let inside = open_below_to_list(&root.handle, as_path(&path))?;
        names(&inside, |name| {
            let data = rustix::fs::statat(&inside, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(data.st_mode) == FileType::Directory {
                folders.push(join(&path, name.to_bytes()));
            }
            Ok(())
        })?;
    }
    Ok(())
}
