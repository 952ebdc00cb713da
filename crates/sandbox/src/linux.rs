//! The Linux backend: Landlock, seccomp, namespaces and the process table.

mod capabilities;
mod enter;
pub(crate) mod files;
mod filter;
mod masks;
mod mounts;
mod path_rules;
mod placeholders;
mod prepared;
pub(crate) mod process;
mod resolved;
mod support;
mod syscalls;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub(crate) use self::enter::enter;
use self::placeholders::Placeholders;
use self::prepared::Prepared;
use self::resolved::ResolvedPolicy;
use crate::{Gap, HELPER, SandboxError, SandboxPolicy, Support};

/// This binary, even if an update has replaced its file in the meantime.
const OURSELVES: &str = "/proc/self/exe";

/// A policy resolved on this machine, and everything its children need.
#[derive(Debug)]
pub(crate) struct Confinement {
    policy: ResolvedPolicy,
    helper: PathBuf,
    placeholders: Placeholders,
    prepared: Prepared,
    gaps: Vec<Gap>,
}

impl Confinement {
    /// Resolves a policy. The helper is this binary unless another one is given.
    pub(crate) fn new(policy: SandboxPolicy, helper: Option<&Path>) -> Result<Self, SandboxError> {
        let helper = helper.unwrap_or(Path::new(OURSELVES));
        let support = support::of(helper);
        if support.landlock_abi.is_none() {
            return Err(SandboxError::NoLandlock);
        }
        if !support.seccomp {
            return Err(SandboxError::NoFilter);
        }
        let policy = policy.resolve(support.user_namespaces)?;
        let mut confinement = Self {
            gaps: policy.gaps(),
            policy,
            helper: helper.to_owned(),
            placeholders: Placeholders::default(),
            prepared: Prepared::default(),
        };
        let missed = confinement.hold();
        confinement.gaps.extend(missed.into_iter().map(Gap::Open));
        Ok(confinement)
    }

    pub(crate) fn wrap(&self, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
        // If a placeholder cannot be created again, the helper reports it and does not start the program.
        self.hold();
        self.arguments(&self.policy, program, args)
    }

    pub(crate) fn wrap_without_input(
        &self,
        program: &Path,
        args: &[&str],
    ) -> (PathBuf, Vec<OsString>, Stdio) {
        self.hold();
        let (policy, input) = match self.prepared.next(&self.policy) {
            Ok((rules, hidden)) => {
                let mut policy = self.policy.clone();
                policy.prepared = Some(hidden);
                (policy, rules.into())
            }
            // The helper creates its own rules, or reports why it cannot.
            Err(_) => (self.policy.clone(), Stdio::null()),
        };
        let (helper, arguments) = self.arguments(&policy, program, args);
        (helper, arguments, input)
    }

    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    fn arguments(&self, policy: &ResolvedPolicy, program: &Path, args: &[&str]) -> (PathBuf, Vec<OsString>) {
        let mut all: Vec<OsString> = vec![HELPER.into(), policy.encode().into(), "--".into()];
        all.push(program.into());
        all.extend(args.iter().map(OsString::from));
        (self.helper.clone(), all)
    }

    /// Creates the missing placeholders and returns the paths for which that failed.
    fn hold(&self) -> Vec<PathBuf> {
        let paths = self.policy.placeholders();
        paths
            .filter(|path| self.placeholders.hold(path).is_err())
            .collect()
    }
}

/// Asks the kernel for its features.
pub(crate) fn support() -> Support {
    support::of(Path::new(OURSELVES))
}

impl SandboxError {
    fn system(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            step: step.into(),
            source: source.into(),
        }
    }
}

impl From<landlock::RulesetError> for SandboxError {
    fn from(error: landlock::RulesetError) -> Self {
        Self::system("Landlock", io::Error::other(error))
    }
}

impl From<seccompiler::Error> for SandboxError {
    fn from(error: seccompiler::Error) -> Self {
        Self::system("seccomp", io::Error::other(error))
    }
}
