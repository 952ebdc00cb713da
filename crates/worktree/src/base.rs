//! Contents of the files as they were copied.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use crate::Worktree;
use crate::changes::{MAX_TEXT, content};
use crate::digest::Digest;
use crate::error::{Context, Result, WorktreeError};
use crate::manifest::{Entry, Kept};
use crate::node::{Node, Root};
use crate::repository::read_objects;

/// Bytes of objects that are read with one command.
const PREPARED: u64 = 64 << 20;

/// Reads the base of a worktree.
pub(crate) struct Base<'a> {
    worktree: &'a Worktree,
    cancel: &'a CancellationToken,
    /// Objects that were read in advance.
    read: HashMap<Digest, Vec<u8>>,
}

impl<'a> Base<'a> {
    pub(crate) fn new(worktree: &'a Worktree, cancel: &'a CancellationToken) -> Self {
        Self {
            worktree,
            cancel,
            read: HashMap::new(),
        }
    }

    /// Reads the contents of several files at once, as far as they are objects and not too large.
    pub(crate) fn prepare<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>) -> Result<()> {
        let mut left = PREPARED;
        let digests: Vec<Digest> = entries
            .filter_map(|entry| match (&entry.node, entry.kept) {
                (Node::File { digest, size, .. }, Kept::Object) if *size <= MAX_TEXT => {
                    left = left.checked_sub(*size)?;
                    Some(*digest)
                }
                _ => None,
            })
            .collect();
        let contents = self.objects(&digests)?;
        self.read.extend(digests.into_iter().zip(contents));
        Ok(())
    }

    fn objects(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        if digests.is_empty() {
            return Ok(Vec::new());
        }
        let repository = self.worktree.record.repository.as_ref();
        let Some((git, part)) = self.worktree.git.as_ref().zip(repository) else {
            return Err(WorktreeError::Git {
                command: "cat-file".to_owned(),
                problem: "git is not installed".to_owned(),
            });
        };
        read_objects(git, &part.common, digests, self.cancel)
    }

    /// Returns the content that a file had.
    pub(crate) fn content(&self, path: &[u8], entry: &Entry) -> Result<Vec<u8>> {
        let Node::File { digest, .. } = &entry.node else {
            return Ok(Vec::new());
        };
        if let Some(known) = self.read.get(digest) {
            return Ok(known.clone());
        }
        match entry.kept {
            Kept::Object => Ok(self.objects(&[*digest])?.pop().unwrap_or_default()),
            Kept::File => {
                let folder = self.worktree.at.join("base");
                let root = Root::open(&folder).when("open", &folder)?;
                let found = content(&root, path).when("read", &root.full(path))?;
                match self.worktree.record.algorithm.of(&found) == *digest {
                    true => Ok(found),
                    false => Err(WorktreeError::Damaged {
                        path: root.full(path),
                        problem: "it is not the content that was copied".to_owned(),
                    }),
                }
            }
        }
    }
}
