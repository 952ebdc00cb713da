//! The path rules. A Landlock rule allows a folder with everything below it and has no exceptions; so around
//! a denied path its siblings are allowed, on every level, instead of the folders above it.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::private::{DEVICES, SHARED_MEMORY, TEMPORARY};
use super::resolved::ResolvedPolicy;
use crate::SandboxError;
use crate::policy::{Guard, Network};

/// Newest version whose rights were tested. The crate leaves out rights that a kernel does not know.
const TRIED: ABI = ABI::V7;

/// Folder of the devices. They give access to disks and memory, so only harmless ones are allowed.
const DEVICE_FOLDER: &str = "/dev";
/// The controlling terminal of a process.
const TERMINAL: &str = "/dev/tty";

/// Restricts this thread to the paths that the policy allows. The `masked` paths are protected already and
/// need no rules around them.
///
/// # Errors
/// If the kernel does not enforce the rules.
pub(super) fn restrict(policy: &ResolvedPolicy, masked: &BTreeSet<PathBuf>) -> Result<(), SandboxError> {
    match rules(policy, masked)?.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(SandboxError::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Creates the rules.
///
/// # Errors
/// If the kernel refuses a rule.
fn rules(policy: &ResolvedPolicy, masked: &BTreeSet<PathBuf>) -> Result<RulesetCreated, SandboxError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))?
        .scope(Scope::from_all(TRIED))?;
    if policy.network != Network::On && !policy.own_network() {
        ruleset = ruleset.handle_access(AccessNet::from_all(TRIED))?;
    }
    let mut rules = Rules {
        ruleset: ruleset.create()?,
        policy,
        masked,
    };
    for root in &policy.read {
        rules.around(root, Rights::Read)?;
    }
    for root in &policy.write {
        rules.around(root, Rights::Write)?;
    }
    rules.own_folders()?;
    rules.devices()?;
    Ok(rules.ruleset)
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
}

impl Rules<'_> {
    /// Allows a path, except for the denied paths below it.
    fn around(&mut self, place: &Path, rights: Rights) -> Result<(), SandboxError> {
        let policy = self.policy;
        if policy.denied.iter().any(|denied| place.starts_with(denied)) {
            return Ok(());
        }
        if rights == Rights::Read && place.starts_with(DEVICE_FOLDER) {
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
        let devices = rights == Rights::Read && Path::new(DEVICE_FOLDER).starts_with(place);
        let kept = rights == Rights::Write && policy.read_only.iter().any(|path| below(&path));
        devices || kept || policy.denied.iter().any(|path| below(&path))
    }

    /// Returns true if a folder may be listed. The right to list covers all folders below, as every right
    /// does, and would show the names in a denied folder unless a mask hides them.
    fn may_be_listed(&self, place: &Path) -> bool {
        let shown = |path: &&PathBuf| path.starts_with(place) && path.is_dir();
        self.policy.masks || !self.policy.denied.iter().any(|path| shown(&path))
    }

    /// Allows the folders that the launcher mounted for its commands alone.
    fn own_folders(&mut self) -> Result<(), SandboxError> {
        if !self.policy.masks {
            return Ok(());
        }
        let used = |path: &PathBuf| path.starts_with(SHARED_MEMORY);
        if self.policy.has(Guard::Mounts) || !self.policy.write.iter().chain(&self.policy.denied).any(used) {
            self.allow(Path::new(SHARED_MEMORY), Rights::Write.access())?;
        }
        if self.policy.temp.is_some() {
            for folder in TEMPORARY {
                self.allow(Path::new(folder), Rights::Write.access())?;
            }
        }
        Ok(())
    }

    /// Allows the devices that give access to nothing, and the terminals of this sandbox, but never those of
    /// the user.
    fn devices(&mut self) -> Result<(), SandboxError> {
        let use_it = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        let own = self.policy.masks && self.policy.has(Guard::Mounts);
        for path in DEVICES.into_iter().filter(|path| own || *path != TERMINAL) {
            let terminal = if path == TERMINAL {
                AccessFs::IoctlDev.into()
            } else {
                BitFlags::EMPTY
            };
            self.allow(Path::new(path), use_it | terminal)?;
        }
        let more: Vec<PathBuf> = self.policy.visible.clone();
        for path in more.iter().filter(|path| own && path.starts_with("/dev")) {
            self.allow(path, use_it | AccessFs::IoctlDev)?;
        }
        if own {
            self.allow(
                Path::new("/dev/pts"),
                use_it | AccessFs::IoctlDev | AccessFs::ReadDir,
            )?;
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
