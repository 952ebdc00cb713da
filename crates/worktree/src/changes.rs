//! Compares a worktree with its base.

use std::io::Read;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;
use windlass_checkpoint::diff::Change;
use windlass_sandbox::folder;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::copy::join;
use crate::error::{Context, Result};
use crate::listing::{Group, Listing, each_folder};
use crate::manifest::{Entry, Manifest};
use crate::node::{Found, Node, Root, Stamp, as_path, file_node, find, is_same, permissions};
use crate::{Base, Worktree};

/// Maximum size of the diff of all files together.
const MAX_DIFF: usize = 400_000;
/// Maximum size of a file whose lines are compared.
pub(crate) const MAX_TEXT: u64 = 4 << 20;
/// Bytes at the start of a file in which a NUL makes it binary.
const SNIFFED: usize = 8_000;
const CUT: &str = "[… diff cut …]\n";

/// Changes in a worktree since it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// The changed files, in the order of their paths.
    pub files: Vec<ChangedFile>,
    /// Unified diff of the text files. It is cut if it is too long to read.
    pub diff: String,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Path below the top folder of the worktree.
    pub path: PathBuf,
    /// Kind of change.
    pub kind: FileChangeKind,
    /// Lines added and removed; `None` for a binary or very long file.
    pub lines: Option<(usize, usize)>,
}

/// Kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// The file or link is new.
    Added,
    /// The content, or the target of a link, changed.
    Modified,
    /// The file or link is gone.
    Deleted,
    /// Only the permission to execute the file changed.
    Mode,
    /// A file became a link, or a link a file.
    Replaced,
}

impl WorktreeChanges {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the number of lines added and removed in all text files.
    pub fn lines(&self) -> (usize, usize) {
        let lines = self.files.iter().filter_map(|file| file.lines);
        lines.fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1))
    }
}

/// A path whose state differs from the base.
#[derive(Debug, Clone)]
pub(crate) struct Differing {
    pub(crate) path: Vec<u8>,
    pub(crate) base: Option<Entry>,
    pub(crate) now: Option<Node>,
}

impl Differing {
    fn kind(&self) -> FileChangeKind {
        let base = self.base.as_ref().map(|entry| &entry.node);
        match (base, &self.now) {
            (None, _) => FileChangeKind::Added,
            (_, None) => FileChangeKind::Deleted,
            (Some(Node::File { digest: old, .. }), Some(Node::File { digest: new, .. })) if old == new => {
                FileChangeKind::Mode
            }
            (Some(Node::File { .. }), Some(Node::File { .. }))
            | (Some(Node::Link { .. }), Some(Node::Link { .. })) => FileChangeKind::Modified,
            _ => FileChangeKind::Replaced,
        }
    }
}

/// Returns every path that differs from the base, in order.
pub(crate) fn scan(worktree: &Worktree, cancel: &CancellationToken) -> Result<Vec<Differing>> {
    let manifest = worktree.manifest()?;
    let tree = &worktree.record.tree;
    let mut listing = Listing::of(tree, &[], cancel)?;
    listing.extend(manifest.keys().map(Vec::as_slice));
    let root = Root::open(tree).when("open", tree)?;
    let files = listing.files.iter().map(Vec::as_slice);
    let mut differing = each_folder(files, cancel, |group, differing| {
        compare(worktree, &root, &manifest, group, differing)
    })?;
    differing.sort_unstable_by(|one, two| one.path.cmp(&two.path));
    Ok(differing)
}

/// Compares the files of one folder.
fn compare(
    worktree: &Worktree,
    root: &Root,
    manifest: &Manifest,
    group: &Group<'_>,
    differing: &mut Vec<Differing>,
) -> Result<()> {
    let folder = match folder::open_below(&root.handle, as_path(group.folder)) {
        Ok(folder) => Some(folder),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
        Err(error) => return Err(error).when("open", &root.full(group.folder)),
    };
    for name in &group.names {
        let path = join(group.folder, name);
        let base = manifest.get(&path);
        let now = match &folder {
            None => None,
            Some(folder) => {
                if base.is_some_and(|base| is_untouched(folder, name, base)) {
                    continue;
                }
                let found = find(folder, name).when("read", &root.full(&path))?;
                match found {
                    Found::File(file, data) => {
                        let node = file_node(worktree.record.algorithm, file, &data);
                        Some(node.when("read", &root.full(&path))?)
                    }
                    Found::Link(target) => Some(Node::Link { target }),
                    Found::Nothing | Found::Folder | Found::Special => None,
                }
            }
        };
        if !is_same(base.map(|base| &base.node), now.as_ref()) {
            differing.push(Differing {
                path,
                base: base.cloned(),
                now,
            });
        }
    }
    Ok(())
}

/// Returns true if the metadata of a file prove that nothing changed.
fn is_untouched(folder: &std::os::fd::OwnedFd, name: &[u8], base: &Entry) -> bool {
    let data = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    data.is_ok_and(|data| {
        let has_mode = match &base.node {
            Node::File { mode, .. } => *mode == permissions(&data),
            Node::Link { .. } => true,
        };
        has_mode && base.stamp == Stamp::of(&data)
    })
}

/// Describes the differing files for people.
pub(crate) fn describe(
    worktree: &Worktree,
    differing: &[Differing],
    cancel: &CancellationToken,
) -> Result<WorktreeChanges> {
    let root = Root::open(&worktree.record.tree).when("open", &worktree.record.tree)?;
    let mut base = Base::new(worktree, cancel);
    base.prepare(differing.iter().filter_map(|file| file.base.as_ref()))?;
    let mut changes = WorktreeChanges::default();
    for file in differing {
        let old = match &file.base {
            None => Some(String::new()),
            Some(entry) => text_of_base(&mut base, &file.path, entry)?,
        };
        let new = match &file.now {
            None => Some(String::new()),
            Some(node) => text_now(&root, &file.path, node).when("read", &root.full(&file.path))?,
        };
        let path = PathBuf::from(as_path(&file.path));
        let change = old
            .zip(new)
            .map(|(old, new)| Change::between(&path.display().to_string(), &old, &new));
        changes.files.push(ChangedFile {
            path,
            kind: file.kind(),
            lines: change.as_ref().map(|change| (change.added, change.removed)),
        });
        changes.add_diff(change);
    }
    Ok(changes)
}

impl WorktreeChanges {
    /// Adds the diff of a file, unless the whole is too long already.
    fn add_diff(&mut self, change: Option<Change>) {
        let Some(change) = change else {
            return;
        };
        if self.diff.len() + change.text().len() <= MAX_DIFF {
            self.diff.push_str(change.text());
        } else if !self.diff.ends_with(CUT) {
            self.diff.push_str(CUT);
        }
    }
}

fn text_of_base(base: &mut Base<'_>, path: &[u8], entry: &Entry) -> Result<Option<String>> {
    Ok(match &entry.node {
        Node::Link { target } => Some(String::from_utf8_lossy(target).into_owned()),
        Node::File { size, .. } if *size > MAX_TEXT => None,
        Node::File { .. } => text(base.content(path, entry)?),
    })
}

fn text_now(root: &Root, path: &[u8], node: &Node) -> std::io::Result<Option<String>> {
    Ok(match node {
        Node::Link { target } => Some(String::from_utf8_lossy(target).into_owned()),
        Node::File { size, .. } if *size > MAX_TEXT => None,
        Node::File { .. } => text(content(root, path)?),
    })
}

/// Reads a file that was found before; empty if it is gone or no longer a file.
pub(crate) fn content(root: &Root, path: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if let Found::File(mut file, _) = root.find(path)? {
        file.read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Returns a content as text, if it is text.
pub(crate) fn text(content: Vec<u8>) -> Option<String> {
    let is_binary = content.iter().take(SNIFFED).any(|byte| *byte == 0);
    String::from_utf8(content).ok().filter(|_| !is_binary)
}
