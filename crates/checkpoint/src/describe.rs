//! Changes as people see them: paths, kinds and diffs.

use std::path::PathBuf;

use windlass_core::checkpoint::FileChange;

use super::diff;
use super::node::{Change, Node};
use super::pack::Contents;
use super::tree::Tree;

/// Maximum number of files listed for one call, and maximum size of their diffs together.
const CALL_FILES: usize = 50;
const CALL_DIFFS: usize = 64 << 10;
/// Maximum size of a file whose diff is shown.
const SHOWN: usize = 1 << 20;

/// Result of recording the end of a call.
pub(super) struct CallEnd {
    /// Warning for the user if its changes are not covered, once.
    pub(super) warning: Option<String>,
    /// Changes of a call that named no files, such as a command. A tool that names its files reports them itself.
    pub(super) changed: Vec<FileChange>,
    /// Paths of all changes; `None` if they are not known.
    pub(super) touched: Option<Vec<PathBuf>>,
}

/// Describes the first changes of a call, with diffs as long as they are short enough together.
pub(super) fn call_changes(tree: &Tree, changes: &[Change]) -> Vec<FileChange> {
    if changes.is_empty() {
        return Vec::new();
    }
    let contents = tree.packs.contents().ok();
    let mut left = CALL_DIFFS;
    let changes = changes.iter().take(CALL_FILES);
    changes
        .map(|change| {
            let mut change = shown(change, contents.as_ref().filter(|_| left > 0));
            let length = change.diff.as_ref().map_or(0, String::len);
            change.diff = change.diff.filter(|_| length <= left);
            left = left.saturating_sub(length);
            change
        })
        .collect()
}

/// Describes a change for people, with a diff of text files if their contents are available.
pub(super) fn shown(change: &Change, contents: Option<&Contents>) -> FileChange {
    let text = |node: &Option<Node>| match node {
        None => Some(String::new()),
        Some(Node::File { digest, .. }) => {
            let content = contents?.get(digest).filter(|content| content.len() <= SHOWN)?;
            String::from_utf8(content).ok()
        }
        Some(_) => None,
    };
    let path = change.path.to_string();
    let both = text(&change.before).zip(text(&change.after));
    let diff = both
        .filter(|(before, after)| before != after)
        .map(|(before, after)| diff::Change::between(&path, &before, &after).diff());
    FileChange {
        path,
        what: change.what(),
        diff,
    }
}
