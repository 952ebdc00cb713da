//! Creates a worktree: copies the folder as it is now, and records the base for a later merge.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use windlass_sandbox::folder::stamp_time;

use crate::copy::{Copied, copy, keep};
use crate::digest::{Algorithm, Digest};
use crate::error::{Context, Result, WorktreeError};
use crate::index_file::{self, FILE, Item, LINK, PROGRAM, SUBMODULE};
use crate::listing::Listing;
use crate::manifest::{self, Entry, Kept, Manifest};
use crate::node::{Node, Root, Stamp};
use crate::record::{InRepository, Record};
use crate::repository::{Repository, Tracked};

/// Message of the commit that holds the copied state.
const MESSAGE: &str = "State of the working tree that a sub-agent started from";

/// A worktree being created.
pub(crate) struct Creation<'a> {
    /// Folder of the worktree and its records.
    pub(crate) at: &'a Path,
    pub(crate) branch: &'a str,
    /// Paths that are not copied.
    pub(crate) hidden: &'a [PathBuf],
    pub(crate) cancel: &'a CancellationToken,
}

impl Creation<'_> {
    /// Copies a folder that is not in a repository.
    pub(crate) fn plain(&self, source: &Path) -> Result<Record> {
        let mut record = Record {
            is_complete: false,
            top: source.to_owned(),
            subfolder: PathBuf::new(),
            tree: self.tree(source),
            algorithm: Algorithm::Sha256,
            repository: None,
        };
        record.write(self.at)?;
        let mut listing = Listing::of(source, self.hidden, self.cancel)?;
        listing.extend(std::iter::empty());
        fs::create_dir_all(&record.tree).when("create", &record.tree)?;
        let from = Root::open(source).when("open", source)?;
        let to = Root::open(&record.tree).when("open", &record.tree)?;
        let copied = copy(&listing, &from, &to, record.algorithm, self.cancel)?;
        let manifest = copied.into_iter().map(|file| {
            let entry = Entry {
                node: file.node,
                stamp: file.stamp,
                kept: Kept::File,
            };
            (file.path, entry)
        });
        self.finish(&mut record, manifest.collect(), &to)?;
        Ok(record)
    }

    /// Copies the working tree of a repository, and makes the copy a working tree of the same repository.
    pub(crate) fn in_repository(&self, repository: &Repository, source: &Path) -> Result<Record> {
        let cancel = self.cancel;
        let subfolder = source.strip_prefix(&repository.top).unwrap_or(Path::new(""));
        let mut record = Record {
            is_complete: false,
            top: repository.top.clone(),
            subfolder: subfolder.to_owned(),
            tree: self.tree(&repository.top),
            algorithm: repository.algorithm,
            repository: None,
        };
        record.write(self.at)?;
        let admin = || {
            repository.create_branch(self.branch, cancel)?;
            // From here on the branch is ours, and is removed when a later step fails.
            record.repository = Some(InRepository {
                common: repository.common.clone(),
                branch: self.branch.to_owned(),
                head: repository.head.clone(),
                base: None,
            });
            record.write(self.at)?;
            repository.add_worktree(&record.tree, self.branch, cancel)
        };
        let (admin, tracked, listing) = std::thread::scope(|scope| {
            let admin = scope.spawn(admin);
            let tracked = scope.spawn(|| repository.tracked(cancel));
            let listing = Listing::of(&repository.top, self.hidden, cancel);
            (joined(admin), joined(tracked), listing)
        });
        let (admin, tracked, mut listing) = (admin?, tracked?, listing?);
        let present = tracked
            .iter()
            .filter(|file| !file.is_skipped && file.mode != SUBMODULE);
        listing.extend(present.map(|file| &file.path[..]));
        let from = Root::open(&repository.top).when("open", &repository.top)?;
        let to = Root::open(&record.tree).when("open", &record.tree)?;
        let copied = copy(&listing, &from, &to, record.algorithm, cancel)?;

        let sorted = sort(&copied, &tracked, record.algorithm);
        self.write_objects(repository, &to, &sorted)?;
        let index = self.at.join("index");
        index_file::write(&sorted.items, record.algorithm, &record.tree, &index)?;
        let base = repository.commit(&index, MESSAGE, cancel)?;
        let own_index = admin.join("index");
        move_file(&index, &own_index)?;
        repository.set_base(&admin, self.branch, &base, cancel)?;
        if let Some(part) = &mut record.repository {
            part.base = Some(base);
        }
        let manifest = sorted.manifest;
        self.finish(&mut record, manifest, &to)?;
        Ok(record)
    }

    /// Returns the place of the copy: the last part is the name of the original, because build tools use it.
    fn tree(&self, top: &Path) -> PathBuf {
        let name = top.file_name().unwrap_or("root".as_ref());
        self.at.join("tree").join(name)
    }

    /// Writes the contents of new and changed files into the repository.
    fn write_objects(&self, repository: &Repository, tree: &Root, sorted: &Sorted<'_>) -> Result<()> {
        let links = self.at.join("links");
        fs::create_dir_all(&links).when("create", &links)?;
        let mut files = Vec::new();
        for (number, (file, _)) in sorted.unknown.iter().enumerate() {
            match &file.node {
                Node::File { .. } => files.push(tree.full(&file.path)),
                Node::Link { target } => {
                    let path = links.join(number.to_string());
                    fs::write(&path, target).when("write", &path)?;
                    files.push(path);
                }
            }
        }
        let written = repository.write_objects(&files, self.cancel)?;
        fs::remove_dir_all(&links).when("remove", &links)?;
        let expected = sorted.unknown.iter().map(|(_, digest)| digest);
        if !written.iter().eq(expected) {
            return Err(WorktreeError::Git {
                command: "hash-object".to_owned(),
                problem: "a copied file has changed".to_owned(),
            });
        }
        Ok(())
    }

    /// Stores the rest of the base, and marks the worktree as complete.
    fn finish(&self, record: &mut Record, mut manifest: Manifest, tree: &Root) -> Result<()> {
        let kept = manifest
            .iter()
            .filter(|(_, entry)| entry.kept == Kept::File && matches!(entry.node, Node::File { .. }));
        let kept = kept.map(|(path, _)| &path[..]);
        let base = self.at.join("base");
        keep(kept, tree, &base, record.algorithm, self.cancel)?;
        manifest::settle(&mut manifest, stamp_time());
        manifest::write(&manifest, &self.at.join("manifest"))?;
        let folder = record.tree.join(&record.subfolder);
        // A folder of ignored files only has no copy.
        fs::create_dir_all(&folder).when("create", &folder)?;
        record.is_complete = true;
        record.write(self.at)
    }
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Moves a file, also to another file system.
fn move_file(from: &Path, to: &Path) -> Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).when("write", to)?;
    fs::remove_file(from).when("remove", from)
}

/// The copied files, by what happens to them.
struct Sorted<'a> {
    algorithm: Algorithm,
    /// The index of the worktree.
    items: BTreeMap<&'a [u8], Item>,
    /// Files whose content is not in the repository yet.
    unknown: Vec<(&'a Copied, Digest)>,
    manifest: Manifest,
}

fn sort<'a>(copied: &'a [Copied], tracked: &'a [Tracked], algorithm: Algorithm) -> Sorted<'a> {
    let mut sorted = Sorted {
        algorithm,
        items: BTreeMap::new(),
        unknown: Vec::new(),
        manifest: Manifest::new(),
    };
    let mut by_path: BTreeMap<&[u8], &Tracked> = BTreeMap::new();
    for file in tracked {
        by_path.insert(&file.path, file);
        let is_kept = file.is_skipped || file.mode == SUBMODULE;
        if let Some(digest) = file.digest.filter(|_| is_kept) {
            let item = Item {
                mode: file.mode,
                digest,
                stamp: Stamp::default(),
                is_skipped: file.is_skipped,
            };
            sorted.items.insert(&file.path, item);
        }
    }
    let submodules: Vec<&[u8]> = tracked
        .iter()
        .filter(|file| file.mode == SUBMODULE)
        .map(|file| &file.path[..])
        .collect();
    for file in copied {
        let kept = sorted.add(file, by_path.get(&file.path[..]).copied(), &submodules);
        let entry = Entry {
            node: file.node.clone(),
            stamp: file.stamp,
            kept,
        };
        sorted.manifest.insert(file.path.clone(), entry);
    }
    sorted
}

impl<'a> Sorted<'a> {
    /// Adds a copied file to the index, unless it belongs to a submodule. Returns the place of its content.
    fn add(&mut self, file: &'a Copied, tracked: Option<&Tracked>, submodules: &[&[u8]]) -> Kept {
        let is_inside = |submodule: &&[u8]| {
            file.path
                .strip_prefix(*submodule)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        if submodules.iter().any(is_inside) {
            return Kept::File;
        }
        let (mode, digest) = match &file.node {
            Node::File { digest, .. } if file.node.is_executable() => (PROGRAM, *digest),
            Node::File { digest, .. } => (FILE, *digest),
            Node::Link { target } => (LINK, self.algorithm.of(target)),
        };
        let mut item = Item {
            mode,
            digest,
            stamp: file.stamp,
            is_skipped: false,
        };
        let mut kept = Kept::Object;
        match tracked.and_then(|tracked| tracked.digest.map(|digest| (tracked, digest))) {
            Some((_, known)) if known == digest => {}
            // Git converts this file when it is checked out, by a filter or another line end: the object is the
            // converted content of an unchanged file.
            Some((tracked, known)) if is_unchanged(file, tracked) => {
                item.digest = known;
                kept = Kept::File;
            }
            _ => self.unknown.push((file, digest)),
        }
        self.items.insert(&file.path, item);
        kept
    }
}

/// Returns true if a file is as it was when git last compared it.
fn is_unchanged(file: &Copied, tracked: &Tracked) -> bool {
    matches!(file.node, Node::File { .. })
        && tracked.mode != LINK
        && tracked.known == Some((file.original.mtime, file.original.size))
}
