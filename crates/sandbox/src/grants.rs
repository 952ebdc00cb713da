//! The path rules. Landlock allows a folder with all that is below, and cannot take anything out of it again; so around
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

use super::policy::{Network, Settled};
use super::prepared::Seen;
use super::{SandboxError, kernel, masks, support};

/// The newest version whose rights we have tried. Rights that a kernel does not know are left out by the crate.
const TRIED: ABI = ABI::V7;

pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Devices hold whole disks and the memory of the machine, so of `/dev` only these are allowed.
const DEVICES: &str = "/dev";
const HARMLESS_DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
const TERMINALS: [&str; 3] = ["/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Narrows this thread to what the policy allows. What is `masked` is kept already, and needs no way around it.
///
/// # Errors
/// When the kernel does not enforce it.
pub(super) fn restrict(settled: &Settled, masked: &BTreeSet<PathBuf>) -> Result<(), SandboxError> {
    let mut rules = rules(settled, masked, &mut Seen::default())?;
    if let Some((memory, access)) = private_memory(settled) {
        rules = rules.add_rule(PathBeneath::new(memory, access))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(SandboxError::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// The same with rules that were made before.
///
/// # Errors
/// When the descriptor is something else, or the kernel does not enforce it.
pub(super) fn restrict_to(rules: BorrowedFd<'_>, settled: &Settled) -> Result<(), SandboxError> {
    if let Some((memory, access)) = private_memory(settled) {
        // The library leaves out what the kernel does not know; here that is for us to do.
        let access = access & support::file_rights();
        let allowed = kernel::allow(rules, memory.as_fd(), access.bits());
        allowed.map_err(|error| SandboxError::system("allowing shared memory", error))?;
    }
    kernel::restrict_self(rules).map_err(|error| SandboxError::system("applying path rules", error))
}

/// The rules for what is the same for every command, and in `seen` what they were made from.
///
/// # Errors
/// When the kernel refuses one.
pub(super) fn rules(
    settled: &Settled,
    masked: &BTreeSet<PathBuf>,
    seen: &mut Seen,
) -> Result<RulesetCreated, SandboxError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))?
        .scope(Scope::from_all(TRIED))?;
    if settled.network == Network::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(TRIED))?;
    }
    let mut rules = Rules {
        ruleset: ruleset.create()?,
        settled,
        masked,
        seen,
    };
    for root in &settled.read {
        rules.seen.place(root);
        rules.around(root, Rights::Read)?;
    }
    for root in &settled.write {
        rules.seen.place(root);
        rules.around(root, Rights::Write)?;
    }
    rules.devices()?;
    Ok(rules.ruleset)
}

/// The shared memory that only this command has, and what it may do there.
fn private_memory(settled: &Settled) -> Option<(OwnedFd, BitFlags<AccessFs>)> {
    if !masks::private_memory(settled) {
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
    settled: &'a Settled,
    masked: &'a BTreeSet<PathBuf>,
    seen: &'a mut Seen,
}

impl Rules<'_> {
    /// Allows a place, but not what is denied in it.
    fn around(&mut self, place: &Path, rights: Rights) -> Result<(), SandboxError> {
        let settled = self.settled;
        if settled.denied.iter().any(|denied| place.starts_with(denied)) {
            return Ok(());
        }
        if rights == Rights::Read && place.starts_with(DEVICES) {
            return Ok(());
        }
        let keep = |kept: &PathBuf| !self.masked.contains(kept) && place.starts_with(kept);
        if rights == Rights::Write && settled.read_only.iter().any(keep) {
            return self.allow(place, Rights::Read.access());
        }
        if !self.must_go_around(place, rights) {
            return self.allow(place, rights.access());
        }
        if self.may_be_listed(place) {
            self.allow(place, AccessFs::ReadDir.into())?;
        }
        self.seen.folder(place);
        // A folder that we cannot list the child cannot list either, and it gets nothing in it.
        let Ok(entries) = fs::read_dir(place) else {
            return Ok(());
        };
        for entry in entries.flatten().filter(|entry| !is_link(entry)) {
            self.around(&entry.path(), rights)?;
        }
        Ok(())
    }

    /// Whether something below must be left out.
    fn must_go_around(&self, place: &Path, rights: Rights) -> bool {
        let settled = self.settled;
        let below = |path: &&PathBuf| path.starts_with(place) && !self.masked.contains(*path);
        let devices = rights == Rights::Read && Path::new(DEVICES).starts_with(place);
        let kept = rights == Rights::Write && settled.read_only.iter().any(|path| below(&path));
        devices || kept || settled.denied.iter().any(|path| below(&path))
    }

    /// The right to list goes down as all rights do, and would show the names in a denied folder unless it is masked.
    fn may_be_listed(&self, place: &Path) -> bool {
        let shown = |path: &&PathBuf| path.starts_with(place) && path.is_dir();
        self.settled.masks || !self.settled.denied.iter().any(|path| shown(&path))
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

    /// What has vanished, or cannot be reached, needs no rule.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), SandboxError> {
        let Some((place, access)) = opened(path, access) else {
            return Ok(());
        };
        let rule = PathBeneath::new(place, access);
        (&mut self.ruleset).add_rule(rule)?;
        Ok(())
    }
}

/// Never through a link at the end: the rule would be for what it leads to.
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
