//! Path rules that are created before a command starts, and passed to it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use windlass_sandbox::{Sandbox, SandboxPolicy};

use crate::sandbox::{CASES, Scene, helper, output_text};

fn sandbox(policy: SandboxPolicy) -> Sandbox {
    Sandbox::with_helper(policy, &helper()).expect("a sandbox")
}

/// Runs a script in the sandbox, with prepared rules.
fn run(scene: &Scene, sandbox: &Sandbox, script: &str) -> String {
    let mut command = prepared(scene, sandbox, script);
    output_text(&command.output().expect("a command"))
}

fn prepared(scene: &Scene, sandbox: &Sandbox, script: &str) -> Command {
    let (_, arguments, input) = sandbox.wrap_without_input(Path::new("/bin/sh"), &["-c", script]);
    // Not the sandbox's own helper, which is missing in one test.
    let mut command = Command::new(helper());
    command.args(arguments).stdin(input).current_dir(scene.at("work"));
    command
}

/// SAFE-4: prepared rules close every way out that a command's own rules close.
#[test]
fn every_way_out_is_closed_by_rules_made_before() {
    let mut wrong = Vec::new();
    for case in CASES {
        let scene = Scene::new();
        let said = run(&scene, &sandbox(scene.policy()), case.script);
        if said.contains("REACHED") || said.contains("sandbox could not") {
            wrong.push(format!("{}: {said}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// SAFE-4: ordinary commands work with prepared rules, repeatedly, and have no input.
#[test]
fn ordinary_work_goes_on_with_rules_made_before() {
    let scene = Scene::new();
    let sandbox = sandbox(scene.policy());
    let script = "set -e; echo one > a; mv a b; echo two > ../temp/x; cat b ../temp/x ../home/notes; echo; rm b; \
        python3 -c 'import multiprocessing; multiprocessing.Semaphore()'; echo x > /dev/shm/x; ls /dev/shm; cat; \
        readlink /proc/self/fd/0; ls -l /proc/self/fd | grep -c landlock || true";
    for _ in 0..3 {
        assert_eq!(run(&scene, &sandbox, script), "one\ntwo\nnotes\nx\n/dev/null\n0");
    }
}

/// SAFE-4: the prepared rules apply, and without any the command does not start.
#[test]
fn the_rules_that_were_handed_on_hold() {
    let scene = Scene::new();
    let narrow = sandbox(SandboxPolicy {
        write: vec![scene.at("work")],
        ..scene.policy()
    });
    let (_, _, rules) = narrow.wrap_without_input(Path::new("/bin/true"), &[]);
    let wide = sandbox(scene.policy());
    let script = "echo x > new && cat new; echo x > ../temp/new && echo REACHED";
    let output = prepared(&scene, &wide, script).stdin(rules).output();
    let said = output_text(&output.expect("a command"));
    assert!(said.starts_with('x') && !said.contains("REACHED"), "{said}");

    let output = prepared(&scene, &wide, "echo REACHED")
        .stdin(Stdio::null())
        .output();
    let output = output.expect("a command");
    assert_eq!(output.status.code(), Some(126));
    assert!(
        !output_text(&output).contains("REACHED"),
        "{}",
        output_text(&output)
    );
}

/// SAFE-4: changes between two commands apply to the second, with masks and without.
#[test]
fn rules_follow_what_changes() {
    for helper in [helper(), "/no/helper".into()] {
        let scene = Scene::new();
        let sandbox = Sandbox::with_helper(scene.policy(), &helper).expect("a sandbox");
        fs::create_dir(scene.at("home/backup")).expect("a folder");
        fs::write(scene.at("home/backup/key"), "SECRET").expect("a key");
        assert_eq!(run(&scene, &sandbox, "cat ../home/backup/key"), "SECRET");
        fs::rename(scene.at("home/backup"), scene.at("home/.gnupg")).expect("renamed");
        let said = run(&scene, &sandbox, "cat ../home/.gnupg/key; ls ../home/.gnupg");
        assert!(!said.contains("SECRET") && !said.contains("key\n"), "{said}");
        fs::create_dir(scene.at("home/new")).expect("a folder");
        fs::write(scene.at("home/new/notes"), "new notes").expect("notes");
        assert_eq!(run(&scene, &sandbox, "cat ../home/new/notes"), "new notes");
    }
}

/// SAFE-4: prepared rules rely on a mask over a denied file. If the file is gone when the command starts,
/// nothing can be masked, so the helper creates its own rules, which still deny the file when it comes back.
#[test]
fn a_file_that_could_not_be_hidden_is_gone_around() {
    let scene = Scene::new();
    let mut policy = scene.policy();
    policy.denied.push(scene.at("outside/file"));
    let sandbox = sandbox(policy);
    let go = scene.at("work/go");
    let made = Command::new("mkfifo").arg(&go).status();
    assert!(made.expect("a command").success());
    let mut command = prepared(&scene, &sandbox, "read line < go; cat ../outside/file");
    fs::remove_file(scene.at("outside/file")).expect("removed");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("a command");
    // Opens when the command reads, which is after the sandbox is set up.
    let mut pipe = File::options().write(true).open(&go).expect("a pipe");
    fs::write(scene.at("outside/file"), "SECRET").expect("a file");
    pipe.write_all(b"\n").expect("written");
    drop(pipe);
    let said = output_text(&child.wait_with_output().expect("an end"));
    assert!(said.contains("Permission denied"), "{said}");
}
