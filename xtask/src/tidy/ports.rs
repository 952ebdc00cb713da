//! The clock, sleeping, the environment and processes are reached through ports, so that tests need none of them.

use super::finding::{Finding, Rule};
use super::tree::{Tree, fits};
use crate::rust_file::RustFile;

/// What only a port may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Clock,
    Sleep,
    Environment,
    Process,
}

impl World {
    const ALL: &[World] = &[World::Clock, World::Sleep, World::Environment, World::Process];

    fn patterns(self) -> &'static [&'static str] {
        match self {
            World::Clock => &[
                "SystemTime :: now",
                "Instant :: now",
                "Timestamp :: now",
                "Zoned :: now",
            ],
            World::Sleep => &["time :: sleep", "time :: sleep_until", "thread :: sleep"],
            World::Environment => &[
                "env :: var",
                "env :: var_os",
                "env :: vars",
                "env :: vars_os",
                "env :: set_var",
                "env :: remove_var",
                "env :: current_dir",
                "env :: set_current_dir",
            ],
            World::Process => &["Command :: new"],
        }
    }

    fn advice(self) -> &'static str {
        match self {
            World::Clock => "take the time from the clock port",
            World::Sleep => "wait on the clock port, or for the event itself",
            World::Environment => "take the value as a setting; the binary reads the environment",
            World::Process => "start processes where they are confined and killed, in crates/tools",
        }
    }
}

/// Files that are a port, and to what.
struct Port {
    files: &'static str,
    to: &'static [World],
}

/// The table to edit when a port is added.
#[rustfmt::skip]
const PORTS: &[Port] = &[
    Port { files: "crates/core/src/clock.rs",       to: &[World::Clock, World::Sleep] },
    Port { files: "crates/tools/src/process*.rs",   to: &[World::Clock, World::Sleep, World::Process] },
    Port { files: "crates/tools/src/bash*.rs",      to: &[World::Clock, World::Sleep, World::Process] },
    // The helper becomes the command, from the folder it was started in.
    Port { files: "crates/tools/src/sandbox*.rs",   to: &[World::Environment, World::Process] },
    // A key comes from a variable or from a command the user named.
    Port { files: "crates/providers/src/key*.rs",   to: &[World::Environment, World::Process] },
    // The binary assembles the ports; the rest never ships or is a world of its own.
    Port { files: "crates/cli/*",                   to: World::ALL },
    Port { files: "crates/sim/*",                   to: World::ALL },
    Port { files: "crates/testkit/*",               to: World::ALL },
    Port { files: "bench/*",                        to: World::ALL },
    Port { files: "xtask/*",                        to: World::ALL },
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let worlds = |file| World::ALL.iter().flat_map(move |world| touched(file, *world));
    tree.production().flat_map(worlds).collect()
}

fn touched(file: &RustFile, world: World) -> Vec<Finding> {
    let is_port = |port: &Port| fits(port.files, &file.path) && port.to.contains(&world);
    if PORTS.iter().any(is_port) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for pattern in world.patterns() {
        let item = pattern.replace(' ', "");
        for place in file.places(pattern).into_iter().filter(|place| !place.in_test) {
            let message = format!("`{item}` outside the ports; {}", world.advice());
            findings.push(Finding::new(Rule::Port, &file.path, place.line, message).about(&item));
        }
    }
    findings
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

    const CLOCK: &str = "fn a() -> Instant { Instant::now() }";
    const PROCESS: &str = "use std::process::Command;\nfn a() { Command::new(\"git\"); }";

    #[test]
    fn ports_reach_what_they_are_for() {
        assert_eq!(findings("crates/core/src/clock.rs", CLOCK), [""; 0]);
        assert_eq!(findings("crates/tools/src/process/group.rs", PROCESS), [""; 0]);
        assert_eq!(findings("crates/core/src/clock.rs", PROCESS), ["2 Command::new"]);
    }

    #[test]
    fn other_files_reach_nothing() {
        let path = "crates/core/src/turn.rs";
        assert_eq!(findings(path, CLOCK), ["1 Instant::now"]);
        assert_eq!(
            findings(path, "use tokio::time::{Duration, sleep};"),
            ["1 time::sleep"]
        );
        assert_eq!(
            findings(path, "fn a() { std::env::var(\"HOME\"); }"),
            ["1 env::var"]
        );
        assert_eq!(
            findings(path, "fn a() -> Duration { Duration::from_secs(1) }"),
            [""; 0]
        );
    }

    #[test]
    fn tests_are_judged_by_their_own_rules() {
        assert_eq!(findings("crates/core/src/turn_tests.rs", CLOCK), [""; 0]);
        assert_eq!(
            findings("crates/core/src/turn.rs", "#[test]\nfn a() { Instant::now(); }"),
            [""; 0]
        );
    }
}
