//! What a child may reach, and the same settled on this machine: every path real, every other name of a denied path found.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::aliases::Mounts;
use super::hold::holds_a_place;
use super::{Gap, SandboxError};

/// What a child and all its children may reach.
#[derive(Debug, Clone, Default)]
pub struct SandboxPolicy {
    /// What may be read and executed, with everything below.
    pub read: Vec<PathBuf>,
    /// What may be changed, with everything below.
    pub write: Vec<PathBuf>,
    /// What may not be reached at all, whatever else says so, whether it exists or not.
    pub denied: Vec<PathBuf>,
    /// What may be read but never changed or made, inside what may be changed.
    pub read_only: Vec<PathBuf>,
    /// Whether other machines can be reached.
    pub network: Network,
    /// Whether other programs on this machine can be reached.
    pub local_sockets: LocalSockets,
    /// How much of it.
    pub limits: ResourceLimits,
    /// What a test leaves out.
    #[doc(hidden)]
    pub without_for_tests: Vec<Guard>,
}

/// Whether other machines can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// No sockets but local ones.
    #[default]
    Off,
    /// Internet sockets.
    On,
}

/// Whether sockets that have a path can be used. Docker, the session bus, the key agent and the system's name service
/// listen on such, and each is a way out, so this is a decision of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalSockets {
    /// Only pairs of connected sockets, which a program makes for itself and its children.
    #[default]
    Pairs,
    /// All.
    All,
}

/// ResourceLimits of one process. What is `None` stays as it is.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// How many processes the user may have.
    pub processes: Option<u64>,
    /// How many bytes a file may grow to.
    pub file_size: Option<u64>,
    /// How many files may be open.
    pub open_files: Option<u64>,
    /// How many bytes of addresses a process may use.
    pub memory: Option<u64>,
    /// How many bytes of a crashed process are written to disk. `None` is none.
    pub core: Option<u64>,
}

/// One part of the wall. A test leaves one out to see that it then fails.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guard {
    Paths,
    Masks,
    Pins,
    Filter,
    Capabilities,
    Descriptors,
    ResourceLimits,
    NewPrivileges,
    Directory,
}

impl SandboxPolicy {
    /// Everything may be read but what is denied, the workspace and the temporary folder may be changed, the network is off.
    pub fn for_workspace(workspace: &Path, temp: &Path, denied: &[PathBuf]) -> Self {
        Self {
            read: vec!["/".into()],
            write: vec![workspace.to_owned(), temp.to_owned()],
            denied: denied.to_vec(),
            ..Self::default()
        }
    }

    /// The same with a guard left out.
    #[doc(hidden)]
    #[must_use]
    pub fn without_for_tests(mut self, guard: Guard) -> Self {
        self.without_for_tests.push(guard);
        self
    }

    /// The policy on this machine. `masks` says whether mount namespaces work.
    pub(super) fn settle(self, masks: bool) -> Result<Settled, SandboxError> {
        let mounts =
            Mounts::read().map_err(|error| SandboxError::system("reading the mount table", error))?;
        let denied = every_name(&self.denied, &mounts)?;
        let read_only = every_name(&self.read_only, &mounts)?;
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
        let settled = Settled {
            read: read.collect::<Result<_, SandboxError>>()?,
            write,
            denied: denied.into_iter().collect(),
            read_only: read_only.into_iter().collect(),
            network: self.network,
            local_sockets: self.local_sockets,
            limits: self.limits,
            masks: false,
            prepared: None,
            without: self.without_for_tests,
        };
        // A namespace costs less than the rules that go around a file in a big folder.
        let exists = |path: &PathBuf| path.is_file();
        let needed = settled.inside_writable().next().is_some() || settled.denied.iter().any(exists);
        Ok(Settled {
            masks: masks && needed,
            ..settled
        })
    }
}

/// A policy whose paths are real ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Settled {
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    pub(super) denied: Vec<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) local_sockets: LocalSockets,
    pub(super) limits: ResourceLimits,
    /// Whether the helper makes a mount namespace. Without one there are gaps, and the caller knows them.
    pub(super) masks: bool,
    /// When the path rules are made already, and on standard input: the files that they count on being hidden.
    pub(super) prepared: Option<BTreeSet<PathBuf>>,
    pub(super) without: Vec<Guard>,
}

impl Settled {
    pub(super) fn encode(&self) -> String {
        // The paths were checked to be text, so there is nothing left to fail; and nothing is not a policy.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn decode(text: &str) -> Result<Self, SandboxError> {
        serde_json::from_str(text).map_err(|_| SandboxError::Arguments)
    }

    pub(super) fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    pub(super) fn writable(&self, path: &Path) -> bool {
        self.write.iter().any(|root| path.starts_with(root))
    }

    /// The denied and read-only paths that Landlock alone cannot keep.
    pub(super) fn inside_writable(&self) -> impl Iterator<Item = &PathBuf> {
        let paths = self.denied.iter().chain(&self.read_only);
        paths.filter(|path| self.writable(path))
    }

    /// The places that must exist so that something can be mounted on them: for each absent path the first part of it
    /// that is not there.
    pub(super) fn to_hold(&self) -> impl Iterator<Item = PathBuf> {
        let paths = self.masks.then(|| self.inside_writable());
        let absent = paths.into_iter().flatten().filter_map(|path| first_absent(path));
        absent.filter(|path| !path.parent().is_some_and(holds_a_place))
    }

    pub(super) fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for path in self.inside_writable() {
            let link = path.is_symlink();
            if link || (!self.masks && first_absent(path).is_some()) {
                gaps.push(Gap::Open(path.clone()));
            } else if !self.masks {
                gaps.extend(path.parent().map(|parent| Gap::Frozen(parent.to_owned())));
            }
        }
        gaps.dedup();
        gaps
    }
}

/// The shortest beginning of a path that does not exist.
fn first_absent(path: &Path) -> Option<PathBuf> {
    let parts: Vec<&Path> = path.ancestors().collect();
    let absent = |part: &&&Path| {
        fs::symlink_metadata(part).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    parts.iter().rev().find(absent).map(|part| (**part).to_owned())
}

/// All paths under which the same places can be reached: as written, with links followed, and through other mounts.
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

/// The path with the links of its folders followed; and, when it is a link itself, what it leads to.
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

/// The real path of what exists of a path, and the rest as it is written.
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
#[path = "policy_tests.rs"]
mod tests;
