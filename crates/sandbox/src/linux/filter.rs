//! The system call filter: refuses the calls that commands do not need.
//!
//! A refused call fails with `EPERM`, with two exceptions: `clone3` and `openat2` fail as if the kernel did
//! not know them, so that libraries fall back to `clone` and `openat`, whose flags a filter can read; and
//! calls in the numbering of another processor end the process.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::resolved::ResolvedPolicy;
use super::support::Truncation;
use crate::SandboxError;
use crate::policy::{Guard, LocalSockets, Network};

mod numbers;

use self::numbers as call;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const NOT_PERMITTED: u32 = 1;
const NOT_KNOWN: u32 = 38;

/// Instructions and offsets of the filter language.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const FAIL: u32 = 0x0005_0000;

/// Number of gaps between refused calls that get a shortcut.
const SHORTCUTS: usize = 12;

/// Flags of `clone` and `unshare` for new namespaces.
const NAMESPACES: [u64; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];
/// Flag for a new time namespace, which only `unshare` has.
const TIME_NAMESPACE: u64 = 0x80;

/// `ioctl` requests that type into the user's terminal.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

const UNIX: u64 = 1;
const INTERNET: [u64; 3] = [2, 10, 16];
/// Types of sockets whose pairs cannot be connected to anything else later: streams, and packets in order.
const CLOSED_PAIRS: [u64; 2] = [1, 5];
const SOCKET_TYPE: u64 = 0xf;

/// Mode bit that lets a program run as its owner.
const SET_USER: u64 = 0o4000;
/// Mode bit that lets a program run as its group. Folders use it too.
const SET_GROUP: u64 = 0o2000;
/// Flag of `open` that creates a file.
const CREATE: u64 = 0o100;

/// Installs the filter on this thread.
///
/// # Errors
/// If the processor is not supported or the kernel refuses.
pub(super) fn install(policy: &ResolvedPolicy, truncation: Truncation) -> Result<(), SandboxError> {
    let arch: TargetArch = ARCH.try_into().map_err(|_| SandboxError::NoFilter)?;
    let rules = refused(policy, truncation).map_err(seccompiler::Error::from)?;
    let program = program(rules, arch).map_err(seccompiler::Error::from)?;
    seccompiler::apply_filter(&program)?;
    Ok(())
}

fn program(rules: Rules, arch: TargetArch) -> Result<BpfProgram, BackendError> {
    let mut program = preamble(&rules);
    let action = SeccompAction::Errno(NOT_PERMITTED);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?;
    let checked: BpfProgram = filter.try_into()?;
    program.extend(checked);
    Ok(program)
}

/// Returns the part of the program that the crate cannot express: the exceptions, and shortcuts for most
/// allowed calls. The kernel evaluates every number when a filter is installed, so without the shortcuts
/// starting a command would take longer.
fn preamble(rules: &Rules) -> BpfProgram {
    let mut program = vec![
        instruction(LOAD, 0, 0, PROCESSOR),
        instruction(JUMP_IF_EQUAL, 1, 0, call::PROCESSOR),
        instruction(RETURN, 0, 0, KILL_PROCESS),
        instruction(LOAD, 0, 0, NUMBER),
        // The numbers of x32 are the usual ones plus a bit, on the same processor; comparing numbers misses
        // them.
        instruction(JUMP_IF_AT_LEAST, 0, 1, 0x4000_0000),
        instruction(RETURN, 0, 0, KILL_PROCESS),
        // A filter of the crate has one action for all matches, and a second filter would cost as much as
        // this one.
        instruction(JUMP_IF_EQUAL, 1, 0, call::CLONE3),
        // Its flags and its mode are in memory, too.
        instruction(JUMP_IF_EQUAL, 0, 1, call::OPENAT2),
        instruction(RETURN, 0, 0, FAIL | NOT_KNOWN),
    ];
    let numbers: Vec<u32> = rules
        .keys()
        .filter_map(|number| u32::try_from(*number).ok())
        .collect();
    let mut gaps: Vec<(u32, u32)> = numbers.windows(2).map(|pair| (pair[0], pair[1])).collect();
    gaps.sort_by_key(|(low, high)| std::cmp::Reverse(high - low));
    for (low, high) in gaps.into_iter().take(SHORTCUTS) {
        // There is no rule between the two numbers.
        program.push(instruction(JUMP_IF_AT_LEAST, 0, 2, low + 1));
        program.push(instruction(JUMP_IF_AT_LEAST, 1, 0, high));
        program.push(instruction(RETURN, 0, 0, ALLOW));
    }
    program
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn refused(policy: &ResolvedPolicy, truncation: Truncation) -> Result<Rules, BackendError> {
    let mut rules: Rules = call::ALWAYS.iter().map(|number| (*number, Vec::new())).collect();
    if truncation == Truncation::Unknown {
        // This version of Landlock does not cover truncation.
        rules.insert(call::TRUNCATE, Vec::new());
    }
    let bits = |bit: &u64| rule(&[(0, SeccompCmpOp::MaskedEq(*bit), *bit)]);
    let clone: Vec<SeccompRule> = NAMESPACES.iter().map(bits).collect::<Result<_, _>>()?;
    let mut unshare = clone.clone();
    unshare.push(bits(&TIME_NAMESPACE)?);
    rules.insert(call::CLONE, clone);
    rules.insert(call::UNSHARE, unshare);
    let typing = TERMINAL_INPUT
        .iter()
        .map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(call::IOCTL, typing.collect::<Result<_, _>>()?);
    // Querying the personality is harmless, and so is setting the default one.
    let other = rule(&[(0, SeccompCmpOp::Ne, 0), (0, SeccompCmpOp::Ne, 0xffff_ffff)])?;
    rules.insert(call::PERSONALITY, vec![other]);
    // Limits, also of other processes. A command may change its own.
    let others = rule(&[(0, SeccompCmpOp::Ne, 0)])?;
    rules.insert(call::PRLIMIT, vec![others]);
    if !(policy.masks && policy.has(Guard::Processes)) {
        // Without a PID namespace these reach the user's other processes.
        for (number, argument) in call::OF_OTHERS {
            let others = rule(&[(*argument, SeccompCmpOp::Ne, 0)])?;
            rules.insert(*number, vec![others]);
        }
    }
    modes(&mut rules)?;
    sockets(&mut rules, policy)?;
    Ok(rules)
}

/// Refuses programs that run as their owner, because such a file outlives the sandbox; for root also as their
/// group. Others need that bit for folders.
fn modes(rules: &mut Rules) -> Result<(), BackendError> {
    let root = rustix::process::geteuid().is_root();
    let bits = if root {
        vec![SET_USER, SET_GROUP]
    } else {
        vec![SET_USER]
    };
    for (number, argument) in call::MODES {
        let set = bits
            .iter()
            .map(|bit| rule(&[(*argument, SeccompCmpOp::MaskedEq(*bit), *bit)]));
        rules.insert(*number, set.collect::<Result<_, _>>()?);
    }
    for (number, flags) in call::OPENS {
        let set = bits.iter().map(|bit| {
            let creates = (*flags, SeccompCmpOp::MaskedEq(CREATE), CREATE);
            rule(&[creates, (*flags + 1, SeccompCmpOp::MaskedEq(*bit), *bit)])
        });
        rules.insert(*number, set.collect::<Result<_, _>>()?);
    }
    Ok(())
}

fn sockets(rules: &mut Rules, policy: &ResolvedPolicy) -> Result<(), BackendError> {
    let local = policy.local_sockets == LocalSockets::All;
    let network = policy.network == Network::On || policy.own_network();
    let mut families = Vec::new();
    if local {
        families.push(UNIX);
    }
    if network {
        families.extend(INTERNET);
    }
    let others: Vec<_> = families
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, *family))
        .collect();
    let others = if others.is_empty() {
        Vec::new()
    } else {
        vec![rule(&others)?]
    };
    rules.insert(call::SOCKET, others);
    if !local {
        // Any other socket of a pair, such as a datagram socket, can be connected to another one later. The
        // kernel treats raw ones as datagrams.
        let open = (0..=SOCKET_TYPE).filter(|kind| !CLOSED_PAIRS.contains(kind));
        let refused = open.map(|kind| rule(&[(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind)]));
        rules.insert(call::SOCKETPAIR, refused.collect::<Result<_, _>>()?);
    }
    if !local && !network {
        rules.insert(call::CONNECT, Vec::new());
    }
    Ok(())
}

/// Returns a rule that matches if all conditions do. Each argument is compared as the kernel reads it: as 32
/// bits.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let condition = |(index, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}
