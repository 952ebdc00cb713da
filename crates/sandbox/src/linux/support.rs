//! Detection of the kernel features that the sandbox needs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictSelfAttr, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};

use super::masks;
use crate::{HELPER, Support};

/// Argument that makes the helper test namespaces instead of running a program.
pub(super) const PROBE: &str = "--probe";

/// Returns the features of this kernel. Namespaces are tried with this helper.
pub(super) fn of(helper: &Path) -> Support {
    let abi = landlock_abi();
    Support {
        landlock_abi: abi,
        seccomp: seccomp(),
        network: abi.is_some_and(|abi| abi >= 4),
        scopes: abi.is_some_and(|abi| abi >= 6),
        user_namespaces: namespaces(helper),
    }
}

/// Finds the version by asking for the features that each one added.
pub(super) fn landlock_abi() -> Option<u32> {
    let by_files = [
        (9, ABI::V9),
        (5, ABI::V5),
        (3, ABI::V3),
        (2, ABI::V2),
        (1, ABI::V1),
    ];
    let files = by_files.into_iter().find(|(_, abi)| handles(*abi).is_ok());
    let version = files.map(|(version, _)| version)?;
    Some(match version {
        5 if all_threads().is_ok() => 8,
        5 if logging().is_ok() => 7,
        5 if scopes().is_ok() => 6,
        3 if network().is_ok() => 4,
        other => other,
    })
}

/// Support of Landlock for the right to truncate files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truncation {
    Known,
    Unknown,
}

pub(super) fn truncation() -> Truncation {
    match handles(ABI::V3) {
        Ok(()) => Truncation::Known,
        Err(_) => Truncation::Unknown,
    }
}

fn strict() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

fn handles(abi: ABI) -> Result<(), RulesetError> {
    strict().handle_access(AccessFs::from_all(abi)).map(drop)
}

fn network() -> Result<(), RulesetError> {
    strict().handle_access(AccessNet::from_all(ABI::V4)).map(drop)
}

fn scopes() -> Result<(), RulesetError> {
    strict().scope(Scope::from_all(ABI::V6)).map(drop)
}

fn logging() -> Result<(), RulesetError> {
    let created = strict().handle_access(AccessFs::Execute)?.create()?;
    created.log_new_exec(true).map(drop)
}

fn all_threads() -> Result<(), RulesetError> {
    let created = strict().handle_access(AccessFs::Execute)?.create()?;
    created.all_threads(true).map(drop)
}

pub(super) fn seccomp() -> bool {
    let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    known && actions.split_whitespace().any(|action| action == "errno")
}

/// Tests namespaces in a child. Some systems let every user create a namespace and then allow nothing in it,
/// so the test includes a mount.
fn namespaces(helper: &Path) -> bool {
    let status = Command::new(helper)
        .args([HELPER, PROBE])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.code() == Some(PROBED))
}

/// Exit code of a successful test. Not 0, which any program that is not the helper could exit with.
const PROBED: i32 = 83;

/// Runs the test in the helper and returns its exit code.
pub(super) fn probe() -> i32 {
    match masks::probe() {
        Ok(()) => PROBED,
        Err(_) => 1,
    }
}
