//! Files that are offered for a message.

use std::path::Path;

use windlass_sandbox::{can_read_ignore_files, can_read_ignore_files_above};

/// Walks the files of a folder that are neither hidden nor ignored.
pub(crate) fn shown(root: &Path) -> ignore::Walk {
    let readable = can_read_ignore_files_above(root);
    ignore::WalkBuilder::new(root)
        .hidden(true)
        .git_ignore(readable)
        .git_exclude(readable)
        .ignore(readable)
        .parents(readable)
        .filter_entry(|entry| {
            let is_folder = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
            !is_folder || can_read_ignore_files(entry.path())
        })
        .build()
}
