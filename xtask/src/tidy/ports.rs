//! Ports: only a few files touch the clock, sleep, read the environment or start processes.
//!
//! All other code receives these as values or traits, so that tests control them.

use super::finding::{Finding, Rule};
use super::tree::{Tree, fits};
use crate::rust_file::RustFile;

/// A part of the outside world that only a port may touch.
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
            World::Environment => "take the value as a setting; crates/config reads the environment",
            World::Process => "start processes through crates/sandbox, which confines and kills them",
        }
    }

    fn rule(self) -> Rule {
        match self {
            World::Environment => Rule::Environment,
            World::Clock | World::Sleep | World::Process => Rule::Port,
        }
    }
}

/// Files that are a port, and the parts of the world they may touch.
struct Port {
    files: &'static str,
    to: &'static [World],
}

/// The table to edit when a port is added.
#[rustfmt::skip]
const PORTS: &[Port] = &[
    Port { files: "crates/core/src/clock.rs",         to: &[World::Clock, World::Sleep] },
    // The environment is read here and passed on as settings.
    Port { files: "crates/config/*",                  to: &[World::Environment] },
    // Notices on the desktop are shown by the program of the platform.
    Port { files: "crates/host/src/job_courier.rs",   to: &[World::Process] },
    Port { files: "crates/sandbox/src/process*.rs",   to: &[World::Clock, World::Sleep, World::Process] },
    // The launcher's helper and its supervisors end processes that do not end by themselves, without any runtime.
    Port { files: "crates/sandbox/src/linux/memory.rs",    to: &[World::Clock] },
    Port { files: "crates/sandbox/src/linux/launcher.rs",  to: &[World::Clock, World::Sleep] },
    Port { files: "crates/sandbox/src/linux/supervise.rs", to: &[World::Clock] },
    // The helper process replaces itself with the command, in the folder and environment it was started with.
    Port { files: "crates/sandbox/*",                 to: &[World::Environment, World::Process] },
    Port { files: "crates/tools/src/bash*.rs",        to: &[World::Clock, World::Sleep, World::Process] },
    // Hooks are programs of the user, and run as the user would run them.
    Port { files: "crates/hooks/src/process.rs",      to: &[World::Process] },
    // Git makes the worktrees of sub-agents, without any program that a repository names.
    Port { files: "crates/worktree/src/git.rs",       to: &[World::Process] },
    // A key comes from a variable or from a command in the user's settings.
    Port { files: "crates/providers/src/key*.rs",     to: &[World::Environment, World::Process] },
    // The user names a command that prints a key; it is theirs, and runs as they would run it.
    Port { files: "crates/host/src/connect/key.rs",   to: &[World::Process] },
    Port { files: "crates/host/src/connect/keyring.rs", to: &[World::Process] },
    // The binary creates the ports.
    Port { files: "crates/cli/*",                     to: &[World::Clock, World::Sleep, World::Process] },
    // Cargo passes parameters to build scripts in the environment.
    Port { files: "*/build.rs",                       to: &[World::Environment] },
    // The simulator is an independent program; the other packages do not ship.
    Port { files: "crates/sim/*",                     to: World::ALL },
    Port { files: "crates/testkit/*",                 to: World::ALL },
    Port { files: "bench/*",                          to: World::ALL },
    Port { files: "xtask/*",                          to: World::ALL },
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
            findings.push(Finding::new(world.rule(), &file.path, place.line, message).about(&item));
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
        assert_eq!(findings("crates/sandbox/src/process/group.rs", PROCESS), [""; 0]);
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
    fn the_environment_is_read_in_few_places() {
        let variable = "fn a() { std::env::var(\"HOME\"); }";
        for path in [
            "crates/config/src/folders.rs",
            "crates/sandbox/src/helper.rs",
            "crates/providers/src/key/command.rs",
            "crates/cli/build.rs",
            "crates/sim/src/server.rs",
        ] {
            assert_eq!(findings(path, variable), [""; 0], "{path}");
        }
        for path in [
            "crates/cli/src/main.rs",
            "crates/tools/src/bash.rs",
            "crates/host/src/lib.rs",
        ] {
            assert_eq!(findings(path, variable), ["1 env::var"], "{path}");
            let rules = check(&Tree::of(&[(path, variable)]));
            assert!(
                rules.iter().all(|finding| finding.rule == Rule::Environment),
                "{path}"
            );
        }
        assert_eq!(findings("crates/cli/src/main.rs", PROCESS), [""; 0]);
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
