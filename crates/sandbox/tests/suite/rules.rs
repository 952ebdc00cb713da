//! One launcher for many commands.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_sandbox::{Guard, Launch, Sandbox, SandboxPolicy};
use windlass_testkit::{eventually, processes_with};

use crate::sandbox::{CASES, Scene, helper, run_with};

fn sandbox(policy: SandboxPolicy) -> Sandbox {
    Sandbox::with_helper(policy, &helper()).expect("a sandbox")
}

fn run(scene: &Scene, sandbox: &Sandbox, script: &str) -> String {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    run_with(sandbox, "/bin/sh", &["-c", script], &scene.at("work"), &env).0
}

/// SAFE-4: no command gets out, whatever the commands before it did.
#[test]
fn every_way_out_stays_closed() {
    let scene = Scene::new();
    let sandbox = sandbox(scene.policy());
    let mut wrong = Vec::new();
    for case in CASES {
        let said = run(&scene, &sandbox, case.script);
        if said.contains("REACHED") || said.contains("sandbox could not") {
            wrong.push(format!("{}: {said}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// SAFE-4: ordinary commands work, repeatedly, and have no input and no files of the launcher.
#[test]
fn ordinary_work_continues_with_one_launcher() {
    let scene = Scene::new();
    let sandbox = sandbox(scene.policy());
    let script = "set -e; echo one > a; mv a b; echo two > ../temp/x; cat b ../temp/x ../home/notes; echo; rm b; \
        python3 -c 'import multiprocessing; multiprocessing.Semaphore()'; echo x > /dev/shm/x; ls /dev/shm; cat; \
        readlink /proc/self/fd/0; ls /proc/self/fd | wc -l";
    for _ in 0..3 {
        assert_eq!(run(&scene, &sandbox, script), "one\ntwo\nnotes\nx\n/dev/null\n4");
    }
}

/// SAFE-4: changes between two commands apply to the second, with namespaces and without.
#[test]
fn rules_follow_what_changes() {
    for guard in [None, Some(Guard::Namespaces)] {
        let scene = Scene::new();
        let policy = guard
            .into_iter()
            .fold(scene.policy(), SandboxPolicy::without_for_tests);
        let sandbox = sandbox(policy);
        fs::create_dir(scene.at("home/backup")).expect("a folder");
        fs::write(scene.at("home/backup/key"), "SECRET").expect("a key");
        assert_eq!(run(&scene, &sandbox, "cat ../home/backup/key"), "SECRET");
        fs::rename(scene.at("home/backup"), scene.at("home/.gnupg")).expect("renamed");
        let said = run(&scene, &sandbox, "cat ../home/.gnupg/key; ls ../home/.gnupg");
        assert!(!said.contains("SECRET") && !said.contains("key\n"), "{said}");
        fs::create_dir(scene.at("home/new")).expect("a folder");
        fs::write(scene.at("home/new/notes"), "new notes").expect("notes");
        assert_eq!(run(&scene, &sandbox, "cat ../home/new/notes"), "new notes");
        // An editor that saves a file replaces it.
        let (new, secret): (PathBuf, _) = (scene.at("work/saved"), scene.at("work/.env"));
        fs::write(&new, "NEW SECRET").expect("a file");
        fs::rename(new, secret).expect("renamed");
        let said = run(&scene, &sandbox, "cat .env");
        assert!(!said.contains("SECRET"), "{said}");
    }
}

/// SAFE-10, SES-16: without namespaces, too, a command that ends its supervisor leaves nothing behind, and the
/// next one gets a new launcher.
#[test]
fn nothing_is_left_behind_without_namespaces() {
    let scene = Scene::new();
    let sandbox = sandbox(scene.policy().without_for_tests(Guard::Namespaces));
    let mark = format!("71.{}", std::process::id());
    let script = format!("(setsid -f sleep {mark}) >/dev/null 2>&1; kill -9 $PPID; sleep {mark}");
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let null = fs::File::open("/dev/null").expect("a device");
    let launch = Launch {
        program: Path::new("/bin/sh"),
        arguments: &["-c".as_ref(), script.as_ref()],
        cwd: &scene.at("work"),
        env: &env,
    };
    let streams = [null.as_fd(), writer.as_fd(), writer.as_fd()];
    let mut confined = sandbox.start(launch, streams).expect("a command");
    confined.wait().expect_err("no supervisor reports");
    drop((confined, reader, sandbox));
    let ended = eventually(Duration::from_secs(2), || processes_with(&mark).is_empty());
    assert!(ended, "{:?}", processes_with(&mark));
}
