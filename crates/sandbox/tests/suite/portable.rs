//! The portable backend. `cargo xtask test --only portable` builds it on Linux.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;
use windlass_core::permission::Escalation;
use windlass_core::tool::{Category, Judgement};
use windlass_sandbox::process::{self, Tree};
use windlass_sandbox::{
    Access, CommandSandbox, HELPER, OpenMode, Parents, PathDenied, Roots, Sandbox, SandboxError,
    SandboxPolicy, support,
};

const REASON: &str = "this build has no kernel sandbox for this platform, so commands cannot be confined";

/// Longer than a kill may take.
const LIMIT: Duration = Duration::from_secs(20);

/// LIB-2: nothing is enforced, and no sandbox can be created.
#[test]
fn nothing_is_enforced() {
    let support = support();
    assert_eq!(support.landlock_abi, None);
    assert!(!support.seccomp && !support.network && !support.scopes && !support.user_namespaces);
    let sandbox = Sandbox::new(SandboxPolicy::default());
    assert!(matches!(sandbox, Err(SandboxError::NoBackend)), "{sandbox:?}");
}

/// LIB-2: without a kernel sandbox every command asks for approval and gives the reason; an approved command
/// runs, and the sandbox is not blamed for its failure.
#[tokio::test]
async fn every_command_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = SandboxPolicy::for_workspace(folder.path(), folder.path(), &[]);
    let sandbox = CommandSandbox::new(policy);
    for (network, outside) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut judgement = Judgement::of(Category::Read);
        let escalation = Escalation {
            network,
            outside,
            protected: false,
        };
        sandbox.judge(&Access::of(Category::Write, escalation), &mut judgement);
        assert_eq!(judgement.category, Category::Admin);
        assert!(
            judgement.reasons.iter().any(|reason| reason == REASON),
            "{judgement:?}"
        );
        assert_eq!(judgement.refusal, None);
    }
    for output in ["curl: Could not resolve host", "sh: x: Permission denied"] {
        assert_eq!(sandbox.hint(&Access::default(), output), None, "{output}");
    }
    let spawned = sandbox.spawn(
        &Access::default(),
        Path::new("/bin/sh"),
        &["-c", "echo approved"],
        folder.path(),
        &BTreeMap::new(),
    );
    let (mut tree, mut output) = spawned.expect("a command");
    assert_eq!(rest_of(&mut output).await, "approved\n");
    assert!(tree.wait().await.expect("a status").success());
}

/// LIB-2: the helper fails instead of running a program that it cannot confine.
#[test]
fn the_helper_runs_nothing() {
    let test = std::env::current_exe().expect("our path");
    let target = test.parent().and_then(Path::parent).expect("the target folder");
    let output = Command::new(target.join("examples/sandbox"))
        .args([HELPER, "{}", "--", "/bin/echo", "REACHED"])
        .output()
        .expect("the helper");
    assert_eq!(output.status.code(), Some(126));
    assert_eq!(output.stdout, b"");
    let expected = format!("windlass: the sandbox could not be set up: {REASON}\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}

/// A shell with a child that is ready when it writes a line. `before` runs in both.
async fn shell(before: &str) -> (Tree, BufReader<Receiver>) {
    let script = format!("{before}\n(echo ready; exec sleep 1000) & wait");
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let (tree, output) = process::spawn(
        Path::new("/bin/sh"),
        &["-c", &script],
        Path::new("/"),
        &env,
        Stdio::null(),
    )
    .expect("a shell");
    let mut output = BufReader::new(output);
    let mut line = String::new();
    output.read_line(&mut line).await.expect("a line");
    assert_eq!(line, "ready\n");
    (tree, output)
}

/// Reads to the end of the output, which comes when the last process that holds the pipe has ended.
async fn rest_of(output: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = String::new();
    let read = timeout(LIMIT, output.read_to_string(&mut text)).await;
    read.expect("all processes end in time").expect("text");
    text
}

/// LIB-2: a kill ends the process group of a command, including processes that ignore TERM.
#[tokio::test]
async fn a_kill_ends_the_process_group() {
    for before in ["", "trap '' TERM"] {
        let (tree, mut output) = shell(before).await;
        timeout(LIMIT, tree.kill().finished())
            .await
            .expect("the kill ends");
        assert_eq!(rest_of(&mut output).await, "");
    }
}

/// LIB-2: a command that is dropped, or runs in the background when the program exits, ends with its process
/// group.
#[tokio::test]
async fn no_process_group_is_left_behind() {
    let (tree, mut output) = shell("").await;
    drop(tree);
    assert_eq!(rest_of(&mut output).await, "");

    let (mut tree, mut output) = shell("").await;
    let background = tree.in_background();
    let kill = background.kill().expect("a running tree");
    assert!(!tree.wait().await.expect("a status").success());
    kill.finished().await;
    assert_eq!(rest_of(&mut output).await, "");
}

struct Scene {
    _folder: TempDir,
    root: PathBuf,
    roots: Roots,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        for name in ["work/src", "work/.ssh", "outside"] {
            fs::create_dir_all(root.join(name)).expect(name);
        }
        for name in ["work/src/file", "work/.env", "work/.ssh/key", "outside/file"] {
            fs::write(root.join(name), name).expect(name);
        }
        symlink("../outside", root.join("work/out")).expect("a link");
        symlink(".ssh", root.join("work/keys")).expect("a link");
        symlink("src/file", root.join("work/link")).expect("a link");
        let denied = [".env*".into(), root.join("work/.ssh"), root.join("work/absent")];
        let roots = Roots::new(&[root.join("work")], &denied).expect("roots");
        Self {
            _folder: folder,
            root,
            roots,
        }
    }

    fn open(&self, name: &str, mode: OpenMode) -> &'static str {
        match self.roots.open(&self.root.join(name), mode) {
            Ok(_) => "opened",
            Err(PathDenied::Denied(_)) => "denied",
            Err(PathDenied::Outside(_)) => "outside",
            Err(PathDenied::Raced(_)) => "raced",
            Err(PathDenied::Moved { .. }) => "moved",
            Err(PathDenied::System { .. }) => "refused",
        }
    }
}

/// LIB-2: path handles refuse paths outside the allowed folders and denied paths, through links, too.
#[test]
fn path_handles_refuse_outside_and_denied_paths() {
    let scene = Scene::new();
    let cases = [
        ("work/src/file", "opened"),
        ("work/link", "opened"),
        ("work", "opened"),
        ("outside/file", "outside"),
        ("work/../outside/file", "outside"),
        ("work/out/file", "outside"),
        ("work/.env", "denied"),
        ("work/.ssh/key", "denied"),
        ("work/keys/key", "denied"),
        ("work/absent", "denied"),
        ("work/none", "refused"),
    ];
    for (name, expected) in cases {
        assert_eq!(scene.open(name, OpenMode::Read), expected, "{name}");
    }
    for name in ["work/absent", "work/src/.env", "work/.ssh/new"] {
        assert_eq!(scene.open(name, OpenMode::Create), "denied", "{name}");
    }
    assert_eq!(scene.open("work/out/new", OpenMode::Create), "outside");
    assert_eq!(
        fs::read_dir(scene.root.join("outside"))
            .expect("a folder")
            .count(),
        1
    );
}

/// LIB-2: files found by a walk are opened, links are not, and a new file never replaces another.
#[test]
fn path_handles_open_and_create_files() {
    let scene = Scene::new();
    let mut text = String::new();
    let mut walked = scene
        .roots
        .open_walked(&scene.root.join("work/src/file"))
        .expect("a file");
    walked.read_to_string(&mut text).expect("text");
    assert_eq!(text, "work/src/file");
    assert!(scene.roots.open_walked(&scene.root.join("work/.env")).is_err());
    assert!(
        scene
            .roots
            .open_walked(&scene.root.join("work/out/file"))
            .is_err()
    );
    let path = scene.root.join("work/new/deep/file");
    let place = scene.roots.locate(&path, Parents::Make).expect("a place");
    place.create(b"one", None).expect("a new file");
    place.create(b"two", None).expect_err("the file exists");
    assert_eq!(fs::read(&path).expect("the file"), b"one");
    assert_eq!(
        fs::read_dir(path.parent().expect("a folder"))
            .expect("a folder")
            .count(),
        1
    );
}
