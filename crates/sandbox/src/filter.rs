//! The system calls that a command has no business with.
//!
//! They are not permitted, with two exceptions: `clone3` must look as if the kernel did not know it, so that libraries fall
//! back to `clone`, whose flags can be looked at; and calls in the numbering of another processor end the process.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::SandboxError;
use super::policy::{LocalSockets, Network, Settled};
use super::support::Truncation;

mod numbers;

use self::numbers as call;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const NOT_PERMITTED: u32 = 1;
const NOT_KNOWN: u32 = 38;

/// The language of the filter.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const FAIL: u32 = 0x0005_0000;

/// How many of the gaps between the refused numbers get a short way.
const SHORT_WAYS: usize = 12;

/// The namespaces, as bits of `clone` and `unshare`.
const NAMESPACES: [u64; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];
/// The time namespace, which only `unshare` knows by a bit.
const TIME_NAMESPACE: u64 = 0x80;

/// Typing into the terminal of the person in front of it.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

const UNIX: u64 = 1;
const INTERNET: [u64; 3] = [2, 10, 16];
const DATAGRAMS: u64 = 2;
const SOCKET_TYPE: u64 = 0xf;

/// Installs the filter on this thread.
///
/// # Errors
/// When the processor is not known or the kernel refuses.
pub(super) fn install(settled: &Settled, truncation: Truncation) -> Result<(), SandboxError> {
    let arch: TargetArch = ARCH.try_into().map_err(|_| SandboxError::NoFilter)?;
    let rules = refused(settled, truncation).map_err(seccompiler::Error::from)?;
    let program = program(rules, arch).map_err(seccompiler::Error::from)?;
    seccompiler::apply_filter(&program)?;
    Ok(())
}

fn program(rules: Rules, arch: TargetArch) -> Result<BpfProgram, BackendError> {
    let mut program = first_look(&rules);
    let action = SeccompAction::Errno(NOT_PERMITTED);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?;
    let checked: BpfProgram = filter.try_into()?;
    program.extend(checked);
    Ok(program)
}

/// What the crate has no words for: the exceptions, and a short way for most calls that are allowed. The kernel tries
/// every number when a filter is installed, so without the short way starting a command would take longer.
fn first_look(rules: &Rules) -> BpfProgram {
    let mut program = vec![
        instruction(LOAD, 0, 0, PROCESSOR),
        instruction(JUMP_IF_EQUAL, 1, 0, call::PROCESSOR),
        instruction(RETURN, 0, 0, KILL_PROCESS),
        instruction(LOAD, 0, 0, NUMBER),
        // The numbers of x32 are the others plus a bit, on the same processor; comparing numbers misses them.
        instruction(JUMP_IF_AT_LEAST, 0, 1, 0x4000_0000),
        instruction(RETURN, 0, 0, KILL_PROCESS),
        // One filter of the crate has one answer, and a second filter would cost as much as this one.
        instruction(JUMP_IF_EQUAL, 0, 1, call::CLONE3),
        instruction(RETURN, 0, 0, FAIL | NOT_KNOWN),
    ];
    let numbers: Vec<u32> = rules
        .keys()
        .filter_map(|number| u32::try_from(*number).ok())
        .collect();
    let mut gaps: Vec<(u32, u32)> = numbers.windows(2).map(|pair| (pair[0], pair[1])).collect();
    gaps.sort_by_key(|(low, high)| std::cmp::Reverse(high - low));
    for (low, high) in gaps.into_iter().take(SHORT_WAYS) {
        // Above the one and below the other there is no rule.
        program.push(instruction(JUMP_IF_AT_LEAST, 0, 2, low + 1));
        program.push(instruction(JUMP_IF_AT_LEAST, 1, 0, high));
        program.push(instruction(RETURN, 0, 0, ALLOW));
    }
    program
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn refused(settled: &Settled, truncation: Truncation) -> Result<Rules, BackendError> {
    let mut rules: Rules = call::ALWAYS.iter().map(|number| (*number, Vec::new())).collect();
    if truncation == Truncation::Unknown {
        // Landlock does not know yet that this changes a file.
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
    // Waiting for the personality is harmless, and so is the plain one.
    let other = rule(&[(0, SeccompCmpOp::Ne, 0), (0, SeccompCmpOp::Ne, 0xffff_ffff)])?;
    rules.insert(call::PERSONALITY, vec![other]);
    sockets(&mut rules, settled)?;
    Ok(rules)
}

fn sockets(rules: &mut Rules, settled: &Settled) -> Result<(), BackendError> {
    let local = settled.local_sockets == LocalSockets::All;
    let network = settled.network == Network::On;
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
        // One of a pair for datagrams can be pointed at any other socket afterwards.
        let datagrams = rule(&[(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), DATAGRAMS)])?;
        rules.insert(call::SOCKETPAIR, vec![datagrams]);
    }
    if !local && !network {
        rules.insert(call::CONNECT, Vec::new());
    }
    Ok(())
}

/// All of the conditions together. Each argument is looked at as the kernel does: as 32 bits.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let condition = |(index, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}
