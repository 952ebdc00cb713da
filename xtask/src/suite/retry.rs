//! Runs the tests, and those that failed a second time, one after the other.
//!
//! A test that fails beside hundreds of others and passes alone found a busy machine, or a race. It does not stop the
//! check, but the summary names it, so that somebody looks at it. More than a few failures are not run again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::child;
use crate::repo::Root;

/// Number of failed tests that are run again.
const AT_MOST: usize = 5;

/// Time for the rest of the output after cargo has ended.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

/// Runs all tests. Returns those that passed only when they ran alone.
pub(crate) fn test(root: &Root) -> Result<Vec<String>> {
    // Tests in documents run once only.
    select(root, &["--workspace"], &["--workspace", "--tests"], (&[], &[]))
}

/// Runs the tests of one target with variables. Returns those that passed only when they ran alone.
pub(crate) fn test_target(root: &Root, target: &str, variables: &[(&str, &Path)]) -> Result<Vec<String>> {
    test_part(root, target, (variables, &[]))
}

/// Runs the tests of one target, except those with these names. Returns those that passed only when they ran alone.
pub(crate) fn test_part(
    root: &Root,
    target: &str,
    (variables, left_out): (&[(&str, &Path)], &[&str]),
) -> Result<Vec<String>> {
    let selected = ["--workspace", "--test", target];
    select(root, &selected, &selected, (variables, left_out))
}

fn select(
    root: &Root,
    selected: &[&str],
    selected_again: &[&str],
    (variables, left_out): (&[(&str, &Path)], &[&str]),
) -> Result<Vec<String>> {
    let skip = left_out.iter().flat_map(|name| ["--skip", name]);
    let first = run(child::cargo(root)
        .arg("test")
        .args(selected)
        .arg("--no-fail-fast")
        .envs(variables.iter().copied())
        .arg("--")
        .args(skip))?;
    if first.succeeded {
        return Ok(Vec::new());
    }
    let failed = with_verdict(&first.text, "FAILED");
    if failed.is_empty() || failed.len() > AT_MOST {
        bail!("`cargo test {}` failed", selected.join(" "));
    }
    let names: Vec<String> = failed.into_iter().collect();
    println!("\n    once more, alone: {}", names.join(", "));
    // The same packages as before: other ones would be compiled again with other features.
    let again = run(child::cargo(root)
        .arg("test")
        .args(selected_again)
        .arg("--no-fail-fast")
        .envs(variables.iter().copied())
        .args(["--", "--test-threads=1", "--exact"])
        .args(&names))?;
    if !again.succeeded {
        bail!("tests failed twice: {}", names.join(", "));
    }
    let passed = with_verdict(&again.text, "ok");
    match names.iter().find(|name| !passed.contains(*name)) {
        Some(name) => bail!("{name} failed and could not be run again"),
        None => Ok(names),
    }
}

/// Returns the names in lines such as `test suite::exec::quiet ... ok`.
fn with_verdict(text: &str, verdict: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| {
            line.strip_prefix("test ")?
                .strip_suffix(verdict)?
                .strip_suffix(" ... ")
        })
        .map(|name| name.split(" - ").next().unwrap_or(name).to_owned())
        .collect()
}

struct Ran {
    succeeded: bool,
    text: String,
}

/// Runs a command, shows its output and keeps it.
fn run(command: &mut Command) -> Result<Ran> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let text = Arc::new(Mutex::new(String::new()));
    let (ended, ends) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    for pipe in pipes.into_iter().flatten() {
        let (text, ended) = (Arc::clone(&text), ended.clone());
        thread::spawn(move || {
            show(pipe, &text);
            let _ = ended.send(());
        });
    }
    let succeeded = child.wait().context("cannot wait for cargo")?.success();
    // A process that a test left behind keeps the pipes open; nobody waits for it.
    for _ in 0..2 {
        if ends.recv_timeout(LEFT_BEHIND).is_err() {
            break;
        }
    }
    let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Ran { succeeded, text })
}

fn show(pipe: impl Read, text: &Mutex<String>) {
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // Nobody may be reading any more; the tests go on.
        let _ = writeln!(std::io::stdout(), "{line}");
        let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read() {
        let text = "test suite::exec::quiet ... ok\ntest suite::exec::loud ... FAILED\n\
                    test result: FAILED. 1 passed; 1 failed\n";
        let names = |verdict| with_verdict(text, verdict).into_iter().collect::<Vec<_>>();
        assert_eq!(names("FAILED"), ["suite::exec::loud"]);
        assert_eq!(names("ok"), ["suite::exec::quiet"]);
    }

    #[test]
    fn a_build_that_fails_names_no_tests() {
        let text = "error: could not compile `windlass-core` (lib) due to 1 previous error\n";
        assert!(with_verdict(text, "FAILED").is_empty());
    }
}
