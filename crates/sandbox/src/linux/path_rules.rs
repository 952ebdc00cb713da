//! The path rules. A Landlock rule allows a folder with everything below it and has no exceptions; so around
//! a denied path its siblings are allowed, on every level, instead of the folders above it.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::prepared::Seen;
use super::resolved::ResolvedPolicy;
use super::{masks, support, syscalls};
use crate::SandboxError;
use crate::policy::Network;

/// Newest version whose rights were tested. The crate leaves out rights that a kernel does not know.
const TRIED: ABI = ABI::V7;

pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Folder of the devices. They give access to disks and memory, so only the following ones are allowed.
const DEVICES: &str = "/dev";
const HARMLESS_DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
const TERMINALS: [&str; 3] = ["/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Restricts this thread to the paths that the policy allows. The `masked` paths are protected already and
/// need no rules around them.
///
/// # Errors
/// If the kernel does not enforce the rules.
pub(super) fn restrict(policy: &ResolvedPolicy, masked: &BTreeSet<PathBuf>) -> Result<(), SandboxError> {
    let mut rules = rules(policy, masked, &mut Seen::default())?;
    if let Some((memory, access)) = private_memory(policy) {
        rules = rules.add_rule(PathBeneath::new(memory, access))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(SandboxError::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Like [`restrict`], with rules that were created in advance.
///
/// # Errors
/// If the descriptor is not a set of rules, or the kernel does not enforce them.
pub(super) fn restrict_to(rules: BorrowedFd<'_>, policy: &ResolvedPolicy) -> Result<(), SandboxError> {
    if let Some((memory, access)) = private_memory(policy) {
        // The library leaves out rights that the kernel does not know; this call bypasses the library.
        let access = access & support::file_rights();
        let allowed = syscalls::allow(rules, memory.as_fd(), access.bits());
        allowed.map_err(|error| SandboxError::system("allowing shared memory", error))?;
    }
    syscalls::restrict_self(rules).map_err(|error| SandboxError::system("applying path rules", error))
}

/// Creates the rules that are the same for every command, and records in `seen` the files that they depend
/// on.
///
/// # Errors
/// If the kernel refuses a rule.
pub(super) fn rules(
    policy: &ResolvedPolicy,
    masked: &BTreeSet<PathBuf>,
    seen: &mut Seen,
) -> Result<RulesetCreated, SandboxError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))?
        .scope(Scope::from_all(TRIED))?;
    if policy.network == Network::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(TRIED))?;
    }
    let mut rules = Rules {
        ruleset: ruleset.create()?,
        policy,
        masked,
        seen,
    };
    for root in &policy.read {
        rules.seen.place(root);
        rules.around(root, Rights::Read)?;
    }
    for root in &policy.write {
        rules.seen.place(root);
        rules.around(root, Rights::Write)?;
    }
    rules.devices()?;
    Ok(rules.ruleset)
}

/// Returns the private shared memory of this command, and the rights on it.
fn private_memory(policy: &ResolvedPolicy) -> Option<(OwnedFd, BitFlags<AccessFs>)> {
    if !masks::private_memory(policy) {
        return None;
    }
    opened(Path::new(SHARED_MEMORY), Rights::Write.access())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rights {
    Read,
    Write,
}

impl Rights {
    fn access(self) -> BitFlags<AccessFs> {
        let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
        match self {
            Self::Read => AccessFs::from_read(TRIED),
            Self::Write => AccessFs::from_all(TRIED) & !devices,
        }
    }
}

struct Rules<'a> {
    ruleset: RulesetCreated,
    policy: &'a ResolvedPolicy,
    masked: &'a BTreeSet<PathBuf>,
    seen: &'a mut Seen,
}

impl Rules<'_> {
    /// Allows a path, except for the denied paths below it.
    fn around(&mut self, place: &Path, rights: Rights) -> Result<(), SandboxError> {
        let policy = self.policy;
        if policy.denied.iter().any(|denied| place.starts_with(denied)) {
            return Ok(());
        }
        if rights == Rights::Read && place.starts_with(DEVICES) {
            return Ok(());
        }
        let keep = |kept: &PathBuf| !self.masked.contains(kept) && place.starts_with(kept);
        if rights == Rights::Write && policy.read_only.iter().any(keep) {
            return self.allow(place, Rights::Read.access());
        }
        if !self.must_go_around(place, rights) {
            return self.allow(place, rights.access());
        }
        if self.may_be_listed(place) {
            self.allow(place, AccessFs::ReadDir.into())?;
        }
        self.seen.folder(place);
        // A folder that we cannot list the child cannot list either; nothing in it is allowed.
        let Ok(entries) = fs::read_dir(place) else {
            return Ok(());
        };
        for entry in entries.flatten().filter(|entry| !is_link(entry)) {
            self.around(&entry.path(), rights)?;
        }
        Ok(())
    }

    /// Returns true if a path below must be left out.
    fn must_go_around(&self, place: &Path, rights: Rights) -> bool {
        let policy = self.policy;
        let below = |path: &&PathBuf| path.starts_with(place) && !self.masked.contains(*path);
        let devices = rights == Rights::Read && Path::new(DEVICES).starts_with(place);
        let kept = rights == Rights::Write && policy.read_only.iter().any(|path| below(&path));
        devices || kept || policy.denied.iter().any(|path| below(&path))
    }

    /// Returns true if a folder may be listed. The right to list covers all folders below, as every right
    /// does, and would show the names in a denied folder unless a mask hides them.
    fn may_be_listed(&self, place: &Path) -> bool {
        let shown = |path: &&PathBuf| path.starts_with(place) && path.is_dir();
        self.policy.masks || !self.policy.denied.iter().any(|path| shown(&path))
    }

    fn devices(&mut self) -> Result<(), SandboxError> {
        let use_it = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        for path in HARMLESS_DEVICES.into_iter().chain(TERMINALS) {
            self.seen.place(Path::new(path));
        }
        for path in HARMLESS_DEVICES {
            self.allow(Path::new(path), use_it)?;
        }
        for path in TERMINALS {
            let list = AccessFs::ReadDir;
            self.allow(Path::new(path), use_it | AccessFs::IoctlDev | list)?;
        }
        Ok(())
    }

    /// Adds a rule. A path that has vanished or cannot be reached needs none.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        let Some((place, access)) = opened(path, access) else {
            return Ok(());
        };
        let rule = PathBeneath::new(place, access);
        (&mut self.ruleset).add_rule(rule)?;
        Ok(())
    }
}

/// Opens a path for a rule. Does not follow a link at the end: the rule would apply to the link's target.
fn opened(path: &Path, access: BitFlags<AccessFs>) -> Option<(OwnedFd, BitFlags<AccessFs>)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let kind = rustix::fs::fstat(&place).ok()?.st_mode;
    let access = match FileType::from_raw_mode(kind) {
        FileType::Symlink => return None,
        FileType::Directory => access,
        _ => access & AccessFs::from_file(TRIED),
    };
    Some((place, access))
}

fn is_link(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}
