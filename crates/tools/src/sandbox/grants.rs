//! The path rules. Landlock allows a folder with all that is below, and cannot take anything out of it again; so around
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

use super::policy::{Network, Settled};
use super::{WallError, masks};

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
pub(super) fn restrict(settled: &Settled, masked: &BTreeSet<PathBuf>) -> Result<(), WallError> {
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
    };
    for root in &settled.read {
        rules.around(root, Rights::Read)?;
    }
    for root in &settled.write {
        rules.around(root, Rights::Write)?;
    }
    rules.devices()?;
    let status = rules.ruleset.restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(WallError::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
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
}

impl Rules<'_> {
    /// Allows a place, but not what is denied in it.
    fn around(&mut self, place: &Path, rights: Rights) -> Result<(), WallError> {
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

    fn devices(&mut self) -> Result<(), WallError> {
        let use_it = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        for path in HARMLESS_DEVICES {
            self.allow(Path::new(path), use_it)?;
        }
        for path in TERMINALS {
            let list = AccessFs::ReadDir;
            self.allow(Path::new(path), use_it | AccessFs::IoctlDev | list)?;
        }
        if masks::private_memory(self.settled) {
            self.allow(Path::new(SHARED_MEMORY), Rights::Write.access())?;
        }
        Ok(())
    }

    /// What has vanished, or cannot be reached, needs no rule.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), WallError> {
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
