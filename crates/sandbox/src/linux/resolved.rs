//! A policy resolved on this machine: every path is real, and every other name of a denied path is known.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::mounts::Mounts;
use super::placeholders::is_mark;
use crate::policy::{Guard, LocalSockets, Network, ResourceLimits, SandboxPolicy};
use crate::protected::{Placeholder, absent_redirect, in_git, placeholder};
use crate::temp::SHARED;
use crate::{Gap, SandboxError};

impl SandboxPolicy {
    /// Resolves the policy on this machine. `masks` is true if mount namespaces work.
    pub(super) fn resolve(self, masks: bool) -> Result<ResolvedPolicy, SandboxError> {
        let mounts =
            Mounts::read().map_err(|error| SandboxError::system("reading the mount table", error))?;
        let mut denied = every_name(&self.denied, &mounts)?;
        let hidden = every_name(&self.hidden, &mounts)?;
        denied.extend(hidden.iter().cloned());
        let read_only: Vec<PathBuf> = self.read_only.iter().flat_map(|path| in_git(path)).collect();
        let read_only = every_name(&read_only, &mounts)?;
        let mut write = Vec::new();
        for path in &self.write {
            let place = real(path)?.0;
            if !place.is_dir() {
                return Err(wrong(path, "is not a folder that exists"));
            }
            if denied.iter().any(|denied| place.starts_with(denied)) {
                return Err(wrong(path, "is both denied and writable"));
            }
            write.push(place);
        }
        let read = self.read.iter().map(|path| Ok(real(path)?.0));
        let temp = match &self.temp {
            Some(temp) if masks => Some(real(temp)?.0),
            Some(temp) => {
                write.push(real(temp)?.0);
                None
            }
            None => None,
        };
        let visible = self.visible.iter().filter_map(|path| fs::canonicalize(path).ok());
        Ok(ResolvedPolicy {
            read: read.collect::<Result<_, SandboxError>>()?,
            write,
            temp,
            visible: visible.collect(),
            denied: denied.into_iter().collect(),
            hidden: hidden.into_iter().collect(),
            read_only: read_only.into_iter().collect(),
            network: self.network,
            local_sockets: self.local_sockets,
            limits: self.limits,
            masks,
            without: self.without_for_tests,
        })
    }
}

/// A policy whose paths are real, as it is passed to the helper.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ResolvedPolicy {
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    /// Private folder that replaces the shared temporary folders.
    pub(super) temp: Option<PathBuf>,
    /// Paths that stay visible although they are in a shared temporary folder.
    pub(super) visible: Vec<PathBuf>,
    pub(super) denied: Vec<PathBuf>,
    /// Those of `denied` that may be moved.
    pub(super) hidden: BTreeSet<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) local_sockets: LocalSockets,
    pub(super) limits: ResourceLimits,
    /// True if the launcher creates namespaces. Without them there are gaps, and the caller knows them.
    pub(super) masks: bool,
    pub(super) without: Vec<Guard>,
}

impl ResolvedPolicy {
    pub(super) fn encode(&self) -> String {
        // The paths were checked to be text, so encoding cannot fail; and an empty string is not a policy.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn decode(text: &str) -> Result<Self, SandboxError> {
        serde_json::from_str(text).map_err(|_| SandboxError::Arguments)
    }

    pub(super) fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    /// Returns true if commands may write everywhere, so that nothing has to become read-only.
    pub(super) fn writes_everywhere(&self) -> bool {
        self.write.iter().any(|path| path == Path::new("/"))
    }

    /// Returns true for a path in a shared temporary folder that a private one replaces, so that commands do not see
    /// what is there.
    pub(super) fn replaces(&self, path: &Path) -> bool {
        self.temp.is_some() && SHARED.iter().any(|shared| path.starts_with(shared))
    }

    /// Returns true if commands have a network of their own, with nothing in it.
    pub(super) fn own_network(&self) -> bool {
        self.masks && self.network != Network::On && self.has(Guard::OwnNetwork)
    }

    /// Returns the absent files of repositories that would redirect git to other settings.
    pub(super) fn redirects(&self) -> Vec<PathBuf> {
        let files = self.read_only.iter().filter_map(|path| absent_redirect(path));
        files
            .filter(|path| self.has(Guard::Masks) && self.writable(path))
            .collect()
    }

    pub(super) fn writable(&self, path: &Path) -> bool {
        self.write.iter().any(|root| path.starts_with(root))
    }

    /// Returns the denied and read-only paths that Landlock alone cannot protect.
    pub(super) fn inside_writable(&self) -> impl Iterator<Item = &PathBuf> {
        let paths = self.denied.iter().chain(&self.read_only);
        paths.filter(|path| self.writable(path))
    }

    /// Returns the protected paths that must stay where they are.
    pub(super) fn fixed(&self) -> impl Iterator<Item = &PathBuf> {
        self.inside_writable().filter(|path| !self.hidden.contains(*path))
    }

    /// Returns the paths that need a placeholder so that something can be mounted on them: for each absent
    /// path its first missing ancestor. A placeholder that is already there counts as missing: this sandbox has to
    /// hold it as well, because the program that created it may end first, or was killed.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = (PathBuf, Placeholder)> {
        let paths = self.masks.then(|| self.fixed());
        paths.into_iter().flatten().filter_map(|path| {
            let absent = first_absent(path)?;
            let kind = if absent == *path {
                placeholder(path)
            } else {
                Placeholder::Folder
            };
            Some((absent, kind))
        })
    }

    /// Gives up the read-only paths below an absent one that no placeholder can be created for.
    pub(super) fn give_up(&mut self, absent: &Path) {
        self.read_only.retain(|path| !path.starts_with(absent));
    }

    pub(super) fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for path in self.inside_writable() {
            let link = path.is_symlink();
            if link && self.hidden.contains(path) {
                // Its target is hidden, too, so a command gains nothing by replacing the link.
            } else if link || (!self.masks && first_absent(path).is_some()) {
                gaps.push(Gap::Open(path.clone()));
            } else if !self.masks {
                gaps.extend(path.parent().map(|parent| Gap::Frozen(parent.to_owned())));
            }
        }
        gaps.dedup();
        if !self.masks {
            gaps.push(Gap::Shared);
        }
        gaps
    }
}

/// Returns the shortest ancestor of a path, or the path itself, that does not exist or is a placeholder.
fn first_absent(path: &Path) -> Option<PathBuf> {
    let parts: Vec<&Path> = path.ancestors().collect();
    let absent = |part: &&&Path| match rustix::fs::lstat(**part) {
        Ok(found) => is_mark(&found),
        Err(error) => error == Errno::NOENT,
    };
    parts.iter().rev().find(absent).map(|part| (**part).to_owned())
}

/// Returns all paths that reach the same files: as written, with links followed, and through other mounts.
fn every_name(paths: &[PathBuf], mounts: &Mounts) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let mut names = BTreeSet::new();
    for path in paths {
        let (place, target) = real(path)?;
        for name in [Some(place), target].into_iter().flatten() {
            names.extend(mounts.other_names(&name));
            names.insert(name);
        }
    }
    let text = |name: &&PathBuf| name.to_str().is_none();
    match names.iter().find(text) {
        Some(name) => Err(wrong(name, "is not text")),
        None => Ok(names),
    }
}

/// Returns the path with the links of its folders followed; and, if the path itself is a link, the link's
/// target.
fn real(path: &Path) -> Result<(PathBuf, Option<PathBuf>), SandboxError> {
    if !path.is_absolute() {
        return Err(wrong(path, "is not absolute"));
    }
    if path.to_str().is_none() {
        return Err(wrong(path, "is not text"));
    }
    let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
        let whole = fs::canonicalize(path).map_err(|_| wrong(path, "does not exist"))?;
        return Ok((whole, None));
    };
    let place = nearest(parent)?.join(name);
    let target = if place.is_symlink() {
        fs::canonicalize(&place).ok()
    } else {
        None
    };
    Ok((place, target))
}

/// Returns the real path of the part of a path that exists, followed by the rest as written.
fn nearest(path: &Path) -> Result<PathBuf, SandboxError> {
    for ancestor in path.ancestors() {
        let Ok(existing) = fs::canonicalize(ancestor) else {
            continue;
        };
        let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
        if rest.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(existing.join(rest).components().collect());
        }
        return Err(wrong(path, "leads through a folder that does not exist"));
    }
    Err(wrong(path, "does not exist"))
}

fn wrong(path: &Path, problem: &'static str) -> SandboxError {
    SandboxError::Path {
        path: path.to_owned(),
        problem,
    }
}

#[cfg(test)]
#[path = "resolved_tests.rs"]
mod tests;
