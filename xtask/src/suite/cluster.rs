//! The faults of a cluster: `cargo xtask cluster`, and its short form as a step of the test command.
//!
//! Some tests need more than Postgres: namespaces and a disk of their own, which only root can make, and a library that
//! shifts clocks. On Debian as root it is installed. Where something is missing, the tests are left out by name.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Ended, postgres, prerequisites, retry};
use crate::child;
use crate::repo::Root;

/// Time of each run in the long form, in seconds.
const LONG: &str = "600";

/// Tests with a network or a disk that they make.
const OF_ROOT: &[&str] = &[
    "the_network_to_the_database_is_cut",
    "the_network_between_servers_is_cut",
    "both_servers_of_a_session_are_cut_in_turn",
    "the_disk_of_the_database_is_full",
    "a_full_disk_is_reported",
];

/// Tests with wrong clocks.
const OF_CLOCKS: &[&str] = &["clocks_are_wrong", "a_wrong_clock_is_reported"];

/// Tests that cannot run on this machine, and the reason.
struct LeftOut {
    tests: &'static [&'static str],
    why: String,
}

/// Installs what is missing, and returns what cannot run.
fn left_out(root: &Root) -> Result<Vec<LeftOut>> {
    let mut left = Vec::new();
    let can_install = prerequisites::can_install(root);
    if can_install && !child::succeeds(child::command(root, "ip").arg("-V")) {
        prerequisites::install(root, &["iproute2"])?;
    }
    if !makes_namespaces(root) {
        left.push(LeftOut {
            tests: OF_ROOT,
            why: "they need root, `ip`, and the right to make network namespaces".to_owned(),
        });
    }
    if !has_clock_library() && can_install {
        prerequisites::install(root, &["libfaketime"])?;
    }
    if !has_clock_library() {
        left.push(LeftOut {
            tests: OF_CLOCKS,
            why: "there is no libfaketime (on Debian: apt-get install libfaketime)".to_owned(),
        });
    }
    Ok(left)
}

fn makes_namespaces(root: &Root) -> bool {
    const NAME: &str = "windlass-check";
    let netns = |act: &str| child::succeeds(child::command(root, "ip").args(["netns", act, NAME]));
    netns("add") && netns("del")
}

/// Returns true if the library is where Debian puts it, which is where the tests look.
fn has_clock_library() -> bool {
    let libraries = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut files = libraries.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    files.any(|file| file.is_file())
}

/// Runs the short form.
pub(super) fn test(root: &Root) -> Result<Ended> {
    if let Some(reason) = postgres::provide(root)? {
        return Ok(Ended::LeftOut(reason));
    }
    let left = left_out(root)?;
    let names: Vec<&str> = left.iter().flat_map(|left| left.tests).copied().collect();
    // Each run is mostly waiting for leases to end.
    let variables = [
        ("WINDLASS_CLUSTER_SECONDS", Path::new("8")),
        ("RUST_TEST_THREADS", Path::new("4")),
    ];
    let alone = retry::test_part(root, "cluster", (&variables, &names))?;
    if left.is_empty() {
        return Ok(Ended::of(alone));
    }
    Ok(Ended::Partly {
        alone,
        left_out: lines(&left),
    })
}

fn lines(left: &[LeftOut]) -> Vec<String> {
    let line = |LeftOut { tests, why }: &LeftOut| format!("{}: {why}", tests.join(", "));
    left.iter().map(line).collect()
}

/// Runs `cargo xtask cluster`.
pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    let seconds = match arguments {
        [] => "20",
        [long] if long == "--long" => LONG,
        [option, seconds] if option == "--seconds" && seconds.parse::<u32>().is_ok() => seconds.as_str(),
        _ => bail!("usage: cargo xtask cluster [--long | --seconds <n>]"),
    };
    if let Some(reason) = postgres::provide(root)? {
        bail!("{reason}");
    }
    let left = left_out(root)?;
    lines(&left).iter().for_each(|line| println!("left out: {line}"));
    println!(
        "| faults | number | turns | effects | streams | moved | told as interrupted | taken over after, median / p99 ms | longest turn, s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut test = child::cargo(root);
    test.args([
        "test",
        "--package",
        "windlass",
        "--test",
        "cluster",
        "--",
        "--test-threads=1",
        "--nocapture",
    ]);
    test.args(
        left.iter()
            .flat_map(|left| left.tests)
            .flat_map(|name| ["--skip", name]),
    );
    test.env("WINDLASS_CLUSTER_SECONDS", seconds);
    child::run(&mut test)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that was renamed would no longer be left out.
    #[test]
    fn the_names_are_current() {
        let root = Root::find().expect("the workspace");
        let read = |name: &str| {
            let file = root.join("crates/cli/tests/cluster").join(name);
            std::fs::read_to_string(file).expect("the tests")
        };
        let tests = read("faults.rs") + &read("cases.rs");
        for name in OF_ROOT.iter().chain(OF_CLOCKS) {
            assert!(tests.contains(&format!("fn {name}()")), "{name}");
        }
    }

    #[test]
    fn what_is_left_out_is_listed_by_name() {
        let left = [LeftOut {
            tests: &["a", "b"],
            why: "they need root".to_owned(),
        }];
        assert_eq!(lines(&left), ["a, b: they need root"]);
    }
}
