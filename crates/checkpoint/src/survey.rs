//! The state of the workspace as it is known, and bringing it up to date.

use std::io;
use std::path::Path;

use super::index::{Extent, Index, Previous};
use super::node::{Change, Digest};
use super::scan::{Report, Scan, Scanned};
use super::tree::Tree;
use super::watch::Watch;
use windlass_sandbox::sha256_hex;

/// Known state of a workspace.
pub(super) struct Survey {
    index: Index,
    /// Reports what changed since the index was up to date.
    watch: Option<Watch>,
    /// True if the folders cannot be watched, so that it is not tried again.
    is_unwatchable: bool,
    #[cfg(test)]
    whole_scans: usize,
}

impl Survey {
    pub(super) fn open(file: &Path) -> Self {
        Self {
            index: Index::open(file),
            watch: None,
            is_unwatchable: false,
            #[cfg(test)]
            whole_scans: 0,
        }
    }

    /// Returns true if a complete earlier state is known.
    pub(super) fn is_known(&self) -> bool {
        self.index.is_whole()
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    /// Returns the number of files and folders.
    pub(super) fn entries(&self) -> usize {
        self.index.entries()
    }

    /// GOAL-7: returns a digest of all files and folders as they are known, without ignored folders.
    pub(super) fn digest(&self) -> io::Result<String> {
        let mut folders = Vec::new();
        let mut failed = None;
        self.index.below(b"", |path, folder| {
            if folder.ignored {
                return;
            }
            let mut text = path.to_vec();
            for entry in &folder.entries {
                text.push(0);
                text.extend_from_slice(&entry.name);
                text.push(0);
                match serde_json::to_vec(&entry.node) {
                    Ok(node) => text.extend(node),
                    Err(error) => failed = Some(error),
                }
            }
            folders.push(Digest::of(&text).0);
        })?;
        match failed {
            Some(error) => Err(io::Error::other(error)),
            None => Ok(sha256_hex(&folders.concat())),
        }
    }

    /// Brings the state up to date and returns the changes if they are wanted. Returns `None` if the workspace
    /// is too large.
    ///
    /// The cost follows the changes while the folders are watched. If anything may have been missed, everything
    /// is scanned.
    pub(super) fn refresh(&mut self, tree: &Tree, report: Report) -> io::Result<Option<Vec<Change>>> {
        let previous = match report {
            Report::Changes => Previous::Needed,
            Report::Nothing => Previous::Disposable,
        };
        // Put back when everything went well: after an error the notices that were taken are lost.
        if let Some(watch) = self.watch.take()
            && let Some(touched) = watch.take()
        {
            if touched.is_empty() {
                self.watch = Some(watch);
                return Ok(Some(Vec::new()));
            }
            let draft = self.index.draft(Previous::Needed)?;
            match self.scan(tree, Some(&watch), report).touched(draft, touched)? {
                Scanned::Done(draft, changes) => {
                    self.index.commit(draft, Extent::Part)?;
                    self.watch = Some(watch).filter(Watch::works);
                    return Ok(Some(changes));
                }
                Scanned::TooLarge(_) => return Ok(None),
                Scanned::Incomplete => {}
            }
        }
        #[cfg(test)]
        {
            self.whole_scans += 1;
        }
        self.index.tidy()?;
        let is_large = self.index.entries() >= tree.limits.watched_from;
        let watch = if is_large && !self.is_unwatchable {
            Watch::start(&tree.root, tree.limits.watches)
        } else {
            None
        };
        let draft = self.index.draft(previous)?;
        match self.scan(tree, watch.as_ref(), report).whole(draft)? {
            Scanned::Done(draft, changes) => {
                self.index.commit(draft, Extent::Whole)?;
                self.is_unwatchable |= watch.as_ref().is_some_and(|watch| !watch.works());
                self.watch = watch.filter(Watch::works);
                Ok(Some(changes))
            }
            // What was read until then is kept, so that it is not read and stored again.
            Scanned::TooLarge(draft) if previous == Previous::Disposable => {
                self.index.commit(draft, Extent::Part)?;
                Ok(None)
            }
            Scanned::TooLarge(_) | Scanned::Incomplete => Ok(None),
        }
    }

    fn scan<'a>(&'a self, tree: &'a Tree, watch: Option<&'a Watch>, report: Report) -> Scan<'a> {
        Scan {
            tree,
            known: &self.index,
            watch,
            report,
        }
    }
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
