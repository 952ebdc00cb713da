//! Plans and applies a merge: each file in three states, as it was copied, as it is in the worktree, and as it
//! is in the folder that is merged into.

mod apply;
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use windlass_sandbox::folder;

pub use self::apply::MergeOutcome;
use self::text::{Labels, MergedText};
use crate::changes::{Differing, MAX_TEXT, content, scan, text};
use crate::copy::join;
use crate::digest::Algorithm;
use crate::error::{Context, Result, WorktreeError};
use crate::manifest::Entry;
use crate::node::{Found, Node, Root, Seen, as_path, is_same};
use crate::{Base, Worktree};

/// Maximum number of names in a folder that is to become a file.
const NAMES: usize = 100_000;

/// The changes that a merge will make, and those it cannot make.
#[derive(Debug)]
pub struct MergePlan {
    /// Changes that conflict with the folder, in the order of their paths.
    pub conflicts: Vec<MergeConflict>,
    edits: Vec<Edit>,
    /// Texts with conflict markers.
    marks: Vec<Edit>,
    /// Folder that is merged into, and the worktree.
    into: PathBuf,
    tree: PathBuf,
    algorithm: Algorithm,
}

/// A change that conflicts with the folder. The folder's version stays unless the plan is applied with
/// [`OnConflict::Mark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// Path below the top folder.
    pub path: PathBuf,
    /// Reason.
    pub reason: ConflictReason,
    /// The text with both versions of the conflicting lines between markers, for a text file that both changed.
    pub marked: Option<String>,
}

/// Reason of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictReason {
    /// Both changed the same lines.
    Lines,
    /// Both changed a file that is not text, or is too long, or a link.
    Content,
    /// The folder's file was deleted, and the worktree's changed.
    DeletedInFolder,
    /// The worktree's file was deleted, and the folder's changed.
    DeletedInWorktree,
    /// One is a file and the other a link.
    Kind,
    /// The path, or a folder on the way to it, is something else in the folder.
    InTheWay,
}

impl ConflictReason {
    /// Returns the reason, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Lines => "both changed the same lines",
            Self::Content => "both changed it, and it cannot be merged by lines",
            Self::DeletedInFolder => "deleted in the folder and changed in the worktree",
            Self::DeletedInWorktree => "changed in the folder and deleted in the worktree",
            Self::Kind => "a file on one side and a link on the other",
            Self::InTheWay => "something else is in its place in the folder",
        }
    }
}

/// Treatment of conflicts in text files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// The folder's version stays.
    Keep,
    /// The text with conflict markers is written.
    Mark,
}

/// One change of the folder.
#[derive(Debug, Clone)]
struct Edit {
    path: Vec<u8>,
    /// State of the path that the plan is based on.
    before: Option<Node>,
    action: Action,
}

#[derive(Debug, Clone)]
enum Action {
    Remove,
    /// Writes the worktree's file, which must still be this one.
    Take {
        theirs: Node,
        mode: u32,
    },
    /// Sets the mode of the file.
    Mode {
        mode: u32,
    },
    /// Writes a merged text.
    Write {
        text: String,
        mode: u32,
    },
    Link {
        target: Vec<u8>,
    },
}

impl MergePlan {
    /// Returns the paths that applying the plan changes, in order. A checkpoint of them makes the merge one
    /// step that can be undone. With [`OnConflict::Mark`] the conflicting text files belong to them.
    pub fn paths(&self, conflicts: OnConflict) -> Vec<PathBuf> {
        let paths: BTreeSet<PathBuf> = self
            .edits(conflicts)
            .map(|edit| as_path(&edit.path).to_owned())
            .collect();
        paths.into_iter().collect()
    }

    fn edits(&self, conflicts: OnConflict) -> impl DoubleEndedIterator<Item = &Edit> {
        let marks = match conflicts {
            OnConflict::Keep => &[][..],
            OnConflict::Mark => &self.marks,
        };
        self.edits.iter().chain(marks)
    }

    /// Returns true if there is nothing to do, and no conflict.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.conflicts.is_empty()
    }

    /// Returns the top folder that is merged into.
    pub fn into_folder(&self) -> &Path {
        &self.into
    }
}

pub(crate) fn plan(worktree: &Worktree, into: &Path, cancel: &CancellationToken) -> Result<MergePlan> {
    let into = top(into, &worktree.record.subfolder)?;
    let differing = scan(worktree, cancel)?;
    let folder = Root::open(&into).when("open", &into)?;
    let tree = Root::open(&worktree.record.tree).when("open", &worktree.record.tree)?;
    let mut planner = Planner {
        base: Base::new(worktree, cancel),
        folder,
        tree,
        algorithm: worktree.record.algorithm,
        label: worktree.branch().unwrap_or(&worktree.session),
        edits: Vec::new(),
        marks: Vec::new(),
        conflicts: Vec::new(),
    };
    for file in &differing {
        if cancel.is_cancelled() {
            return Err(WorktreeError::Canceled);
        }
        planner.file(file)?;
    }
    planner.check_places()?;
    planner.conflicts.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(MergePlan {
        conflicts: planner.conflicts,
        edits: planner.edits,
        marks: planner.marks,
        into,
        tree: worktree.record.tree.clone(),
        algorithm: worktree.record.algorithm,
    })
}

/// Returns the top folder around `into`, whose position below it is `subfolder`.
fn top(into: &Path, subfolder: &Path) -> Result<PathBuf> {
    let real = std::fs::canonicalize(into).when("open", into)?;
    let depth = subfolder.components().count();
    match real.ancestors().nth(depth) {
        Some(top) if top.join(subfolder) == real || depth == 0 => Ok(top.to_owned()),
        _ => Err(WorktreeError::Elsewhere {
            into: into.to_owned(),
            subfolder: subfolder.to_owned(),
        }),
    }
}

struct Planner<'a> {
    base: Base<'a>,
    folder: Root,
    tree: Root,
    algorithm: Algorithm,
    /// Name of the worktree's version in conflict markers.
    label: &'a str,
    edits: Vec<Edit>,
    marks: Vec<Edit>,
    conflicts: Vec<MergeConflict>,
}

/// Two versions of a file that both differ from the base.
#[derive(Clone, Copy)]
struct Versions<'a> {
    path: &'a [u8],
    base: Option<&'a Entry>,
    ours: &'a Node,
    theirs: &'a Node,
    /// Mode of the merged file.
    mode: u32,
}

impl Planner<'_> {
    fn file(&mut self, file: &Differing) -> Result<()> {
        let path = &file.path;
        let base = file.base.as_ref().map(|entry| &entry.node);
        let seen = self.folder.look(path, self.algorithm);
        let ours = match seen.when("read", &self.folder.full(path))? {
            Seen::Nothing => None,
            Seen::Node(node) => Some(node),
            // Replaced by something else, and gone in the worktree.
            Seen::Folder | Seen::Special if file.now.is_none() => return Ok(()),
            // A folder gives way if everything in it is removed, which is known later.
            Seen::Folder if base.is_none() => None,
            Seen::Folder | Seen::Special => {
                self.conflict(path, ConflictReason::InTheWay);
                return Ok(());
            }
        };
        if is_same(ours.as_ref(), file.now.as_ref()) {
            return Ok(());
        }
        if is_same(ours.as_ref(), base) {
            self.take(path, ours, file.now.as_ref());
            return Ok(());
        }
        match (&ours, &file.now) {
            (None, _) => self.conflict(path, ConflictReason::DeletedInFolder),
            (_, None) => self.conflict(path, ConflictReason::DeletedInWorktree),
            (Some(ours @ Node::File { mode, .. }), Some(theirs @ Node::File { .. })) => {
                let was_executable = base.is_some_and(Node::is_executable);
                let is_executable = match ours.is_executable() == was_executable {
                    true => theirs.is_executable(),
                    false => ours.is_executable(),
                };
                return self.files(Versions {
                    path,
                    base: file.base.as_ref(),
                    ours,
                    theirs,
                    mode: with_execution(*mode, is_executable),
                });
            }
            (Some(Node::Link { .. }), Some(Node::Link { .. })) => {
                self.conflict(path, ConflictReason::Content);
            }
            _ => self.conflict(path, ConflictReason::Kind),
        }
        Ok(())
    }

    fn conflict(&mut self, path: &[u8], reason: ConflictReason) {
        self.conflicts.push(MergeConflict {
            path: as_path(path).to_owned(),
            reason,
            marked: None,
        });
    }

    fn edit(&mut self, path: &[u8], before: Option<Node>, action: Action) {
        self.edits.push(Edit {
            path: path.to_vec(),
            before,
            action,
        });
    }

    /// Takes the worktree's version.
    fn take(&mut self, path: &[u8], ours: Option<Node>, theirs: Option<&Node>) {
        let action = match theirs {
            None => Action::Remove,
            Some(Node::Link { target }) => Action::Link {
                target: target.clone(),
            },
            Some(theirs @ Node::File { mode, digest, .. }) => match &ours {
                Some(Node::File {
                    mode: our_mode,
                    digest: our_digest,
                    ..
                }) => {
                    let mode = with_execution(*our_mode, theirs.is_executable());
                    match our_digest == digest {
                        true => Action::Mode { mode },
                        false => Action::Take {
                            theirs: theirs.clone(),
                            mode,
                        },
                    }
                }
                _ => Action::Take {
                    theirs: theirs.clone(),
                    mode: *mode,
                },
            },
        };
        self.edit(path, ours, action);
    }

    /// Merges two files: contents and modes, each on its own.
    fn files(&mut self, versions: Versions<'_>) -> Result<()> {
        let Versions {
            path,
            base,
            ours,
            theirs,
            mode,
        } = versions;
        let (ours_changed, theirs_changed) = match base.map(|entry| &entry.node) {
            Some(base) => (!has_content_of(ours, base), !has_content_of(theirs, base)),
            None => (true, true),
        };
        let before = Some(ours.clone());
        if !theirs_changed || has_content_of(ours, theirs) {
            self.set_mode(path, ours, mode);
            return Ok(());
        }
        if !ours_changed {
            let theirs = theirs.clone();
            self.edit(path, before, Action::Take { theirs, mode });
            return Ok(());
        }
        match self.merged_text(versions)? {
            None => self.conflict(path, ConflictReason::Content),
            // Merged before: the folder has all changes already.
            Some(MergedText::Clean(text)) if self.is_content(ours, &text) => {
                self.set_mode(path, ours, mode);
            }
            Some(MergedText::Clean(text)) => self.edit(path, before, Action::Write { text, mode }),
            Some(MergedText::Conflict(text)) => {
                self.conflicts.push(MergeConflict {
                    path: as_path(path).to_owned(),
                    reason: ConflictReason::Lines,
                    marked: Some(text.clone()),
                });
                self.marks.push(Edit {
                    path: path.to_vec(),
                    before,
                    action: Action::Write { text, mode },
                });
            }
        }
        Ok(())
    }

    fn set_mode(&mut self, path: &[u8], ours: &Node, mode: u32) {
        if with_execution(mode, ours.is_executable()) != mode {
            self.edit(path, Some(ours.clone()), Action::Mode { mode });
        }
    }

    fn is_content(&self, node: &Node, text: &str) -> bool {
        matches!(node, Node::File { digest, .. } if *digest == self.algorithm.of(text.as_bytes()))
    }

    /// Returns `None` if a version is not text, or is too long.
    fn merged_text(&mut self, versions: Versions<'_>) -> Result<Option<MergedText>> {
        let Versions { path, base, .. } = versions;
        let is_long = |node: &Node| matches!(node, Node::File { size, .. } if *size > MAX_TEXT);
        let base_node = base.map(|entry| &entry.node);
        if [Some(versions.ours), Some(versions.theirs), base_node]
            .into_iter()
            .flatten()
            .any(is_long)
        {
            return Ok(None);
        }
        let ours = content(&self.folder, path).when("read", &self.folder.full(path))?;
        let theirs = content(&self.tree, path).when("read", &self.tree.full(path))?;
        let old = match base {
            // A link that became a file on both sides.
            Some(Entry {
                node: Node::Link { .. },
                ..
            })
            | None => Some(String::new()),
            Some(entry) => text(self.base.content(path, entry)?),
        };
        let (Some(old), Some(ours), Some(theirs)) = (old, text(ours), text(theirs)) else {
            return Ok(None);
        };
        let labels = Labels {
            ours: "folder",
            theirs: self.label,
        };
        Ok(Some(text::merge(&old, &ours, &theirs, labels)))
    }

    /// Turns edits into conflicts if something that stays is in their place.
    fn check_places(&mut self) -> Result<()> {
        let removed: BTreeSet<Vec<u8>> = self
            .edits
            .iter()
            .filter(|edit| matches!(edit.action, Action::Remove))
            .map(|edit| edit.path.clone())
            .collect();
        for edit in std::mem::take(&mut self.edits) {
            let is_new = edit.before.is_none();
            if is_new && !self.has_place(&edit.path, &removed)? {
                self.conflict(&edit.path, ConflictReason::InTheWay);
            } else {
                self.edits.push(edit);
            }
        }
        Ok(())
    }

    /// Returns true if a new file can be written at a path after the removals.
    fn has_place(&self, path: &[u8], removed: &BTreeSet<Vec<u8>>) -> Result<bool> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (end, _) in ends {
            let above = path.get(..end).unwrap_or_default();
            if removed.contains(above) {
                // It is a file now, so nothing can be below it.
                return Ok(true);
            }
            let seen = self.folder.find(above).when("read", &self.folder.full(above))?;
            match seen {
                Found::Folder => {}
                Found::Nothing => return Ok(true),
                Found::File(..) | Found::Link(_) | Found::Special => return Ok(false),
            }
        }
        match self.folder.find(path).when("read", &self.folder.full(path))? {
            Found::Folder => self.is_emptied(path, removed),
            _ => Ok(true),
        }
    }

    /// Returns true if the removals leave no file in a folder.
    fn is_emptied(&self, path: &[u8], removed: &BTreeSet<Vec<u8>>) -> Result<bool> {
        let mut folders = vec![path.to_vec()];
        let mut left = NAMES;
        while let Some(path) = folders.pop() {
            let mut names = Vec::new();
            folder::open_below_to_list(&self.folder.handle, as_path(&path))
                .map_err(std::io::Error::from)
                .and_then(|handle| {
                    folder::names(handle, |name| {
                        names.push(join(&path, name.to_bytes()));
                        Ok(())
                    })
                })
                .when("read", &self.folder.full(&path))?;
            for name in names {
                left -= 1;
                let is_folder = matches!(
                    self.folder.find(&name).when("read", &self.folder.full(&name))?,
                    Found::Folder
                );
                if left == 0 || (!is_folder && !removed.contains(&name)) {
                    return Ok(false);
                }
                if is_folder {
                    folders.push(name);
                }
            }
        }
        Ok(true)
    }
}

fn has_content_of(one: &Node, two: &Node) -> bool {
    matches!((one, two), (Node::File { digest: one, .. }, Node::File { digest: two, .. }) if one == two)
}

/// Returns a mode with or without the permission to execute the file, for those who may read it.
fn with_execution(mode: u32, is_executable: bool) -> u32 {
    match is_executable {
        true => mode | (mode & 0o444) >> 2,
        false => mode & !0o111,
    }
}
