//! Linux stays in the `linux` modules. Everything else compiles for other systems, too.

use super::finding::{Finding, Rule};
use super::tree::{Tree, fits};
use crate::rust_file::RustFile;

/// Calls, types and crates that exist on Linux only.
const LINUX_ONLY: &[&str] = &[
    "openat2",
    "ResolveFlags",
    "RawDir",
    "OFlags :: PATH",
    "ClockId :: RealtimeCoarse",
    "pidfd_open",
    "inotify ::",
    "eventfd",
    "prctl",
    "landlock ::",
    "seccomp ::",
    "seccompiler ::",
];

/// Folder that other systems do not have, or fill differently.
const PROC: &str = "/proc";

/// The backends for Linux, and packages that do not ship.
const ALLOWED_IN: &[&str] = &[
    "*/linux.rs",
    "*/linux/*",
    "crates/testkit/*",
    "bench/*",
    "xtask/*",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.production().flat_map(file).collect()
}

fn file(file: &RustFile) -> Vec<Finding> {
    if ALLOWED_IN.iter().any(|pattern| fits(pattern, &file.path)) {
        return Vec::new();
    }
    let calls = LINUX_ONLY
        .iter()
        .flat_map(|pattern| file.places(pattern).into_iter().map(|place| (*pattern, place)));
    let paths = file.texts(names_proc).map(|place| (PROC, place));
    calls
        .chain(paths)
        .filter(|(_, place)| !place.in_test)
        .map(|(pattern, place)| {
            let item = pattern.replace(' ', "");
            let message = format!(
                "`{item}` outside a `linux` module; move it there, with a `portable` module beside it as in \
                 crates/sandbox"
            );
            Finding::new(Rule::Platform, &file.path, place.line, message).about(&item)
        })
        .collect()
}

/// Returns true if a literal contains the folder as a whole name.
fn names_proc(literal: &str) -> bool {
    literal
        .split(PROC)
        .skip(1)
        .any(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| format!("{} {}", finding.line, finding.item))
            .collect()
    }

    const CALLS: &str = "use rustix::fs::{Dir, RawDir};\nfn a() { rustix::fs::openat2(b); }\n\
                         fn c() { open(OFlags::PATH | OFlags::CLOEXEC, ClockId::RealtimeCoarse); }\n";
    const PATHS: &str =
        "fn a() { read(\"/proc/self/stat\"); }\nfn b() { read(format!(\"/proc/{c}\"), \"/proc\"); }\n";

    #[test]
    fn linux_has_its_own_modules() {
        for path in [
            "crates/sandbox/src/linux.rs",
            "crates/sandbox/src/linux/files.rs",
            "crates/store/src/sqlite/process/linux.rs",
            "crates/testkit/src/process.rs",
            "bench/src/process.rs",
        ] {
            assert_eq!(findings(path, CALLS), [""; 0], "{path}");
            assert_eq!(findings(path, PATHS), [""; 0], "{path}");
        }
        let outside = "crates/checkpoint/src/scan.rs";
        assert_eq!(
            findings(outside, CALLS),
            [
                "2 openat2",
                "1 RawDir",
                "3 OFlags::PATH",
                "3 ClockId::RealtimeCoarse"
            ]
        );
        assert_eq!(findings(outside, PATHS), ["1 /proc", "2 /proc", "2 /proc"]);
    }

    #[test]
    fn names_that_only_look_like_it_pass() {
        let path = "crates/cli/src/doctor.rs";
        let text =
            "/// Reads `/proc`.\nfn a() { b(\"/processes\", \"a process\", support.seccomp, landlock); }";
        assert_eq!(findings(path, text), [""; 0]);
        assert_eq!(findings(path, "#[test]\nfn a() { read(\"/proc/1\"); }"), [""; 0]);
        assert_eq!(findings("crates/cli/tests/suite/a.rs", PATHS), [""; 0]);
        assert_eq!(
            findings(path, "fn a() { landlock::Ruleset::new(); }"),
            ["1 landlock::"]
        );
    }
}
